//! Cards are given back exactly by a rollback, and no choice of cards spoils the next one.

use super::{asking, card, node};
use crate::audit;
use crate::event::Object;
use crate::facts::{
    CardClosed, CardFacts, CardMemory, CardModes, CardNeed, CardPart, CardTerms, MigProfile,
    NodeFacts, Placement, PodFacts,
};
use crate::ids::PodId;
use crate::state::ClusterState;
use crate::state::node::Node;
use crate::txn::Txn;
use alloc::sync::Arc;
use alloc::{format, string::String, vec::Vec};
use proptest::prelude::*;

const PLACEMENTS: [Placement; 8] = [
    Placement::Binpack,
    Placement::Spread,
    Placement::BestFit,
    Placement::Fragmentation,
    Placement::DotProduct,
    Placement::GpuPacking,
    Placement::GpuClustering,
    Placement::Random { seed: 7 },
];

/// The profiles of a card with four slices, of an eighth, a half and all of its memory.
fn profiles() -> Vec<MigProfile> {
    let profile = |size: u8, starts: &[u8]| {
        let (memory_mib, thousandths) = (24 * u64::from(size), 250 * u32::from(size));
        MigProfile::new(&format!("{size}g"), memory_mib, thousandths, size, starts)
    };
    [
        profile(1, &[0, 1, 2, 3]),
        profile(2, &[0, 2]),
        profile(4, &[0]),
    ]
    .into()
}

/// A need, the modes of cards that will do, and whether all cards have to be in one cell, and
/// have to be idle.
type Request = (CardNeed, CardModes, bool, bool);

/// A pod that asks for cards.
fn asking_of(number: u32, (need, modes, in_one_cell, idle): Request) -> PodFacts {
    let mut pod = asking(number, need);
    let terms = CardTerms {
        modes,
        in_one_cell,
        idle,
        ..CardTerms::default()
    };
    Arc::make_mut(&mut pod.shape).card_terms = terms.boxed();
    pod
}

/// One node with a card, one with two, and one with more, of which one is closed and three are in
/// MIG mode. Every other card is in another cell.
fn nodes() -> impl Iterator<Item = Object> {
    let node = |number: u32| NodeFacts {
        cards: (0..=number)
            .map(|of_node| CardFacts {
                slots: 2 + number,
                numa: of_node % 2,
                thousandths: if of_node == 1 { 1_500 } else { 1_000 },
                closed: (of_node == 2).then_some(CardClosed::Cordoned),
                profiles: match of_node {
                    3..=5 => profiles(),
                    _ => Vec::new(),
                },
                ..card(of_node)
            })
            .collect(),
        ..node(number, 0)
    };
    [0, 1, 6].into_iter().map(node).map(Object::Node)
}

/// The cell of a card that a pod holds a part of.
fn cell_of(part: &CardPart) -> u32 {
    part.card.parse::<u32>().unwrap() % 2
}

/// Everything that a rollback has to bring back.
fn snapshot(state: &ClusterState) -> String {
    let node = |node: &Node| {
        let mut pods = node.pods.clone();
        pods.sort_unstable();
        let resources: Vec<_> = node.resources().collect();
        format!("{} {resources:?} {:?} {pods:?}", node.name, node.cards)
    };
    let nodes: Vec<String> = state.nodes.iter().map(|(_, one)| node(one)).collect();
    let pods = state
        .pods
        .iter()
        .map(|(_, pod)| format!("{:?} {:?}", pod.stage, pod.cards));
    nodes.into_iter().chain(pods).collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Clone)]
enum Step {
    Place {
        pod: usize,
        node: usize,
        placement: usize,
    },
    Mark,
    RollBack,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = (
        0..24usize,
        prop::sample::select(&[0usize, 1, 6][..]),
        0..PLACEMENTS.len(),
    )
        .prop_map(|(pod, node, placement)| Step::Place {
            pod,
            node,
            placement,
        });
    prop::collection::vec(
        prop_oneof![8 => place, 1 => Just(Step::Mark), 1 => Just(Step::RollBack)],
        1..60,
    )
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let memory = prop_oneof![
        Just(CardMemory::Any),
        (1..60u64).prop_map(CardMemory::Mib),
        (1..=100u32).prop_map(CardMemory::Percent),
    ];
    let thousandths = prop_oneof![Just(0u64), 1..=1000u64, Just(1000u64)];
    let request = (1..=3u64, thousandths, memory)
        .prop_map(|(count, thousandths, memory)| CardNeed::new(count, thousandths, memory));
    let modes = prop_oneof![
        Just(CardModes::Shared),
        Just(CardModes::Mig),
        Just(CardModes::Any)
    ];
    let request = request.prop_map(|request| request.unwrap());
    let idle = prop::sample::select(&[false, false, true][..]);
    prop::collection::vec((request, modes, any::<bool>(), idle), 24)
}

/// How many pods with this request fit on a node if each takes the cards with the most room for it.
/// Of a card in MIG mode a pod may have several instances.
fn one_after_the_other(node: &Node, need: CardNeed, terms: Option<&CardTerms>) -> u64 {
    match terms.is_some_and(|terms| terms.in_one_cell) {
        true => (0..2)
            .map(|cell| in_cells(node, need, terms, &[cell]))
            .sum(),
        false => in_cells(node, need, terms, &[0, 1]),
    }
}

/// As [`one_after_the_other`], with the cards of these cells.
fn in_cells(node: &Node, need: CardNeed, terms: Option<&CardTerms>, cells: &[u32]) -> u64 {
    let mut cards = node.cards.clone();
    let mut pods = 0;
    loop {
        let alone = CardNeed::new(1, need.thousandths().into(), need.memory()).unwrap();
        let mut fitting: Vec<(u64, usize)> = Vec::new();
        let with_room = cards.fitting(alone, terms);
        for card in with_room.filter(|card| cells.contains(&card.cell)) {
            let mut with_more = cards.clone();
            let mut room = 0;
            while with_more
                .fitting(alone, terms)
                .any(|it| it.position == card.position)
            {
                with_more.take(&with_more.parts(&alone, &[card.position]));
                room += 1;
            }
            match card.loss {
                None => fitting.push((room, card.position)),
                Some(_) => fitting.extend((0..room).map(|_| (1, card.position))),
            }
        }
        fitting.sort_unstable();
        if fitting.len() < usize::from(need.count()) {
            return pods;
        }
        let most = fitting.iter().rev().take(need.count().into());
        let most: Vec<usize> = most.map(|(_, position)| *position).collect();
        cards.take(&cards.parts(&need, &most));
        pods += 1;
    }
}

fn state_of(objects: impl IntoIterator<Item = Object>) -> ClusterState {
    let mut state = ClusterState::new();
    for object in objects {
        state.apply(object, 0);
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn cards_are_given_back_exactly_and_never_given_twice(requests in requests(), steps in steps()) {
        let pods = (0..).zip(&requests).map(|(n, request)| asking_of(n, *request));
        let mut state = state_of(nodes().chain(pods.map(Object::Pod)));
        let ids: Vec<PodId> = state.pods.ids();
        let mut txn = Txn::default();
        let mut marks = Vec::from([(txn.checkpoint(), snapshot(&state))]);
        for step in steps {
            match step {
                Step::Place { pod, node, placement } => {
                    let node = state.node_ids[&*format!("n{node}")];
                    let class = &state.classes[state.pods[ids[pod]].class];
                    let need = class.cards.unwrap();
                    let terms = class.shape.card_terms.clone();
                    let terms = terms.as_deref();
                    let fits = state.nodes[node].cards.multiplicity(&need, terms, u64::MAX);
                    prop_assert_eq!(fits, one_after_the_other(&state.nodes[node], need, terms));
                    if state.pods[ids[pod]].stage.node().is_none() && fits > 0 {
                        txn.place(&mut state, ids[pod], node, PLACEMENTS[placement]);
                        let parts = &state.pods[ids[pod]].cards;
                        let slots: u32 = parts.iter().map(|part| part.slots).sum();
                        prop_assert_eq!(slots, u32::from(need.count()));
                        prop_assert!(parts.is_sorted_by(|one, next| one.card < next.card));
                        let mut cells: Vec<u32> = parts.iter().map(cell_of).collect();
                        cells.dedup();
                        prop_assert!(cells.len() == 1 || !requests[pod].2, "{:?}", parts);
                        let left = state.nodes[node].cards.multiplicity(&need, terms, u64::MAX);
                        prop_assert_eq!(left, fits - 1);
                    }
                }
                Step::Mark => marks.push((txn.checkpoint(), snapshot(&state))),
                Step::RollBack => {
                    let (mark, before) = marks.pop().unwrap();
                    txn.rollback(&mut state, mark);
                    prop_assert_eq!(&snapshot(&state), &before);
                    marks.push((mark, before));
                }
            }
            prop_assert_eq!(audit::violations(&state), Vec::<String>::new());
            for (_, pod) in state.pods.iter() {
                let node = pod.stage.node().map(|node| &state.nodes[node]);
                prop_assert!(node.is_none_or(|node| !node.cards.fail(&pod.cards)));
            }
        }
        // A scheduler that begins with bound pods knows as much of the cards.
        let bound = ids.iter().zip(0..).zip(&requests).filter_map(|((id, n), request)| {
            let pod = &state.pods[*id];
            let node = pod.stage.node()?;
            Some(Object::Pod(PodFacts {
                node: Some(state.nodes[node].name.clone()),
                cards: pod.cards.to_vec(),
                ..asking_of(n, *request)
            }))
        });
        let restarted = state_of(nodes().chain(bound));
        for (_, node) in state.nodes.iter() {
            let same = &restarted.nodes[restarted.node_ids[&node.name]];
            prop_assert_eq!(&node.cards, &same.cards);
        }
    }
}
