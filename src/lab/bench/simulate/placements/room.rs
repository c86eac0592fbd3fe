//! The use of each node, and how many nodes are free as a whole, over time.

use super::{CPUS_PER_NODE, GPU_NODES, GPUS_PER_NODE, NODES_PER_RACK, PLAIN_NODES};
use crate::lab::bench::engine::facts::node;
use gpu_batch_policies::facts::NodeFacts;
use std::collections::BTreeMap;

/// CPUs and GPUs of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) cpus: u64,
    pub(super) gpus: u64,
}

/// The nodes: first those with GPUs, then those without; each rack has nodes of one sort.
pub(super) struct Room {
    numbers: BTreeMap<Box<str>, usize>,
    used: Vec<Amount>,
    /// Sums over time.
    pub(super) sums: Sums,
}

/// Sums of numbers times milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// GPUs in use.
    pub(super) gpus_ms: u64,
    /// Nodes with GPUs of which no GPU is in use (whole nodes).
    pub(super) whole_ms: u64,
    /// Racks that have only whole nodes.
    pub(super) racks_ms: u64,
    /// Whole nodes of the rack that has the most of them.
    pub(super) in_rack_ms: u64,
    /// Nodes without GPUs on which nothing runs.
    pub(super) plain_ms: u64,
}

impl Room {
    pub(super) fn new() -> Self {
        let names = nodes().map(|node| node.name);
        Self {
            numbers: names.zip(0..).collect(),
            used: vec![Amount::default(); GPU_NODES + PLAIN_NODES],
            sums: Sums::default(),
        }
    }

    /// Adds the time that has passed, in which the use of the nodes was as it is now.
    pub(super) fn pass(&mut self, passed_ms: u64) {
        let (with_gpus, plain) = self.used.split_at(GPU_NODES);
        let whole = |nodes: &[Amount]| nodes.iter().filter(|used| used.gpus == 0).count() as u64;
        let racks = with_gpus.chunks(NODES_PER_RACK);
        let free = racks
            .clone()
            .filter(|rack| whole(rack) == rack.len() as u64);
        let sums = &mut self.sums;
        sums.gpus_ms += passed_ms * with_gpus.iter().map(|used| used.gpus).sum::<u64>();
        sums.whole_ms += passed_ms * whole(with_gpus);
        sums.racks_ms += passed_ms * free.count() as u64;
        sums.in_rack_ms += passed_ms * racks.map(whole).max().unwrap_or(0);
        sums.plain_ms += passed_ms * plain.iter().filter(|used| used.cpus == 0).count() as u64;
    }

    /// Whether a node has GPUs.
    pub(super) fn has_gpus(&self, node: &str) -> bool {
        self.numbers[node] < GPU_NODES
    }

    /// How many members of `cpus` CPUs fit on the nodes without GPUs.
    pub(super) fn fit_without_gpus(&self, cpus: u64) -> u64 {
        let plain = self.used[GPU_NODES..].iter();
        plain.map(|used| (CPUS_PER_NODE - used.cpus) / cpus).sum()
    }

    pub(super) fn take(&mut self, node: &str, amount: Amount) {
        let used = &mut self.used[self.numbers[node]];
        used.cpus += amount.cpus;
        used.gpus += amount.gpus;
    }

    pub(super) fn give_back(&mut self, node: &str, amount: Amount) {
        let used = &mut self.used[self.numbers[node]];
        used.cpus -= amount.cpus;
        used.gpus -= amount.gpus;
    }
}

/// The nodes as facts.
pub(super) fn nodes() -> impl Iterator<Item = NodeFacts> {
    (0..GPU_NODES + PLAIN_NODES).map(|number| {
        let gpus = if number < GPU_NODES { GPUS_PER_NODE } else { 0 };
        node(number, gpus, [0, 0, number / NODES_PER_RACK])
    })
}
