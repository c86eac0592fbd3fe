//! A gang whose pods get 4 of the 8 cards of their nodes, chosen by links and NUMA nodes among
//! those with enough memory.

use super::cards::shared_node;
use super::facts::{node, pod, running, shape};
use super::gang::completed;
use crate::lab::bench::{Bound, Row, as_f64, median};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    CardLink, CardMemory, CardNeed, CardOrder, CardPart, CardTerms, NodeFacts, PodFacts, PodShape,
};
use std::sync::Arc;

const NODES: usize = 1_000;
const MEMBERS: usize = 2 * NODES;
const REPEATS: usize = 11;

/// The cards of a node, which are attached to two NUMA nodes, and those that one pod gets.
const CARDS: u16 = 8;
const CHOSEN: u64 = 4;
/// The memory that a member takes of each of its cards, and a pod that runs takes of one card.
const MEMORY_MIB: u64 = 30_000;

/// The gang, and a gang of pods of 4 GPUs on nodes whose kubelets choose the devices: what the
/// first one takes longer is the choice.
pub(super) fn measure() -> Vec<Row> {
    let of = |gang: fn() -> f64| median((0..REPEATS).map(|_| gang()).collect());
    let (counting, choosing) = (of(by_numbers), of(by_cards));
    let scenario = format!("{MEMBERS} pods of {CHOSEN} of {CARDS} cards, {NODES} nodes");
    let row = |name, value| Row::new(name, scenario.clone(), value, "us");
    vec![
        row("a pod of a gang, GPUs counted", counting),
        row("a pod of a gang, cards chosen", choosing),
        row("choosing the cards of a pod", choosing - counting).against(
            Bound::AtMost,
            2.0,
            "target; by links, NUMA and memory: the difference of the two rows above",
        ),
    ]
}

/// Microseconds for each pod of a gang for which GPUs are counted.
fn by_numbers() -> f64 {
    let nodes = (0..NODES).map(|number| node(number, CARDS.into(), [0, 0, number / 16]));
    placing(nodes.map(Object::Node), &Arc::new(shape(8_000, 64, CHOSEN)))
}

/// Microseconds for each pod of a gang for which cards are chosen.
fn by_cards() -> f64 {
    let member = PodShape {
        cards: CardNeed::new(CHOSEN, 400, CardMemory::Mib(MEMORY_MIB)),
        card_terms: CardTerms {
            order: vec![CardOrder::Links, CardOrder::Numa],
            ..CardTerms::default()
        }
        .boxed(),
        ..shape(8_000, 64, CHOSEN)
    };
    let held = Arc::new(shape(8_000, 64, 1));
    let world = (0..NODES).flat_map(|number| {
        let node = linked_node(number);
        let pod = holding(pod(MEMBERS + number, &held), &node, number);
        [Object::Node(node), Object::Pod(pod)]
    });
    placing(world, &Arc::new(member))
}

/// Microseconds for each pod of a gang of this shape, from the arrival of the last one until the
/// first requests for all are sent: binds, or the locks that come before them.
fn placing(world: impl Iterator<Item = Object>, shape: &Arc<PodShape>) -> f64 {
    let (mut session, planned) = completed(world, shape, MEMBERS, None);
    session.settle(planned.commands);
    assert_eq!(session.binds, MEMBERS, "the gang is bound whole");
    planned.took.as_secs_f64() * 1e6 / as_f64(MEMBERS)
}

/// A node with pairs of cards with NVLinks between them, in two NUMA nodes.
fn linked_node(number: usize) -> NodeFacts {
    let mut node = shared_node(number);
    for (place, card) in (0..).zip(&mut node.cards) {
        card.numa = place / 4;
    }
    let pairs = (0..CARDS).flat_map(|one| (one + 1..CARDS).map(move |other| (one, other)));
    let score = |one: u16, other: u16| match (one / 2 == other / 2, one / 4 == other / 4) {
        (true, _) => 200,
        (_, true) => 40,
        _ => 10,
    };
    node.card_links = pairs
        .map(|(one, other)| CardLink {
            one,
            other,
            score: score(one, other),
        })
        .collect();
    node
}

/// A pod that runs and holds a part of one card of its node, another one from node to node.
fn holding(pod: PodFacts, node: &NodeFacts, number: usize) -> PodFacts {
    let card = &node.cards[number % node.cards.len()];
    let mut pod = running(pod, node);
    pod.cards = vec![CardPart {
        card: card.id.clone(),
        slots: 1,
        thousandths: 300,
        memory_mib: MEMORY_MIB,
        instances: Vec::new(),
    }];
    pod
}
