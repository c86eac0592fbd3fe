//! Many single pods that ask for parts of cards, on nodes whose cards HAMi shares.

use super::facts::{node, shape};
use super::policy;
use super::throughput::Work;
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row};
use gpu_batch_policies::facts::{
    CardFacts, CardMemory, CardNeed, HAMI_REGISTER, NodeFacts, PodShape,
};
use std::sync::Arc;

/// Numbers of nodes; the target is for the last number.
const SIZES: [usize; 3] = [2_500, 5_000, 10_000];
const PODS_PER_NODE: usize = 10;
const SHAPES: usize = 50;

/// The cards of a node, the containers that may share one, and its memory.
const CARDS: u32 = 8;
const SLOTS: u32 = 10;
const MEMORY_MIB: u64 = 81_559;

/// Ten pods for each node, all of which fit.
pub(super) fn measure() -> Vec<Row> {
    over_sizes(SIZES, at_size)
}

fn at_size(nodes: usize) -> Vec<Row> {
    let pods = nodes * PODS_PER_NODE;
    let scenario = format!(
        "{pods} pods with parts of cards, {SHAPES} shapes, {nodes} nodes of HAMi with {CARDS} cards"
    );
    let shapes: Vec<Arc<PodShape>> = (0..SHAPES).map(part_of_a_card).map(Arc::new).collect();
    let work = Work {
        nodes,
        node: &shared_node,
        shapes: &shapes,
        pods,
        placed: pods,
    };
    let [placing, answered] = work.rates(&policy::settings());
    let row = |name, rate| Row::new(name, scenario.clone(), rate, "pods/s");
    let placing = row("placing parts of cards", placing);
    vec![
        match nodes == SIZES[SIZES.len() - 1] {
            true => placing.against(
                Bound::AtLeast,
                150_000.0,
                "target; looking at every pod and its queue, and a node and a card for it",
            ),
            false => placing,
        },
        row("placing and binding parts of cards", answered),
    ]
}

/// A node as HAMi's device plugin registers it: of `nvidia.com/gpu` it offers slots.
pub(super) fn shared_node(number: usize) -> NodeFacts {
    let card = |card| CardFacts {
        model: "NVIDIA H100 80GB HBM3".into(),
        slots: SLOTS,
        ..CardFacts::new(format!("GPU-{number:05}-{card}"), MEMORY_MIB)
    };
    NodeFacts {
        annotations: vec![(HAMI_REGISTER.into(), "".into())],
        cards: (0..CARDS).map(card).collect(),
        ..node(number, (CARDS * SLOTS).into(), [0, 0, number / 16])
    }
}

/// A shape with a part of one card, with different CPU and memory.
fn part_of_a_card(number: usize) -> PodShape {
    let (millicpu, gib) = (1000 + 100 * (number as u64 % 10), 1 + number as u64 / 10);
    let (thousandths, memory) = [
        (250, CardMemory::Percent(25)),
        (500, CardMemory::Percent(50)),
        (0, CardMemory::Mib(20_480)),
        (300, CardMemory::Mib(40_000)),
        (750, CardMemory::Percent(75)),
    ][number % 5];
    PodShape {
        cards: CardNeed::new(1, thousandths, memory),
        ..shape(millicpu, gib, 1)
    }
}
