//! Cards are given back exactly by a rollback.

use super::{asking, card, node};
use crate::audit;
use crate::event::Object;
use crate::facts::{CardNeed, NodeFacts, Placement, PodFacts};
use crate::ids::PodId;
use crate::state::ClusterState;
use crate::state::node::Node;
use crate::txn::Txn;
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

/// One node with a card, one with two, and one with three.
fn nodes() -> impl Iterator<Item = Object> {
    let node = |number: u32| NodeFacts {
        cards: (0..=number).map(card).collect(),
        ..node(number, 0)
    };
    (0..3).map(node).map(Object::Node)
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
    let place = (0..24usize, 0..3usize, 0..PLACEMENTS.len()).prop_map(|(pod, node, placement)| {
        Step::Place {
            pod,
            node,
            placement,
        }
    });
    prop::collection::vec(
        prop_oneof![8 => place, 1 => Just(Step::Mark), 1 => Just(Step::RollBack)],
        1..60,
    )
}

fn requests() -> impl Strategy<Value = Vec<CardNeed>> {
    let memory = prop_oneof![Just(0u64), 1..60u64];
    let request = (any::<bool>(), 1..=1000u64, 1..=2u64, memory).prop_map(
        |(whole, thousandths, count, memory)| match whole {
            true => CardNeed::whole(count, memory),
            false => CardNeed::fraction(thousandths, memory),
        },
    );
    prop::collection::vec(request.prop_map(|request| request.unwrap()), 24)
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
        let pods = (0..).zip(&requests).map(|(n, request)| asking(n, *request));
        let mut state = state_of(nodes().chain(pods.map(Object::Pod)));
        let ids: Vec<PodId> = state.pods.ids();
        let mut txn = Txn::default();
        let mut marks = Vec::from([(txn.checkpoint(), snapshot(&state))]);
        for step in steps {
            match step {
                Step::Place { pod, node, placement } => {
                    let node = state.node_ids[&*format!("n{node}")];
                    let class = &state.classes[state.pods[ids[pod]].class];
                    if state.pods[ids[pod]].stage.node().is_none()
                        && state.nodes[node].multiplicity(class) > 0
                    {
                        txn.place(&mut state, ids[pod], node, PLACEMENTS[placement]);
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
                ..asking(n, *request)
            }))
        });
        let restarted = state_of(nodes().chain(bound));
        for (_, node) in state.nodes.iter() {
            let same = &restarted.nodes[restarted.node_ids[&node.name]];
            prop_assert_eq!(&node.cards, &same.cards);
        }
    }
}
