//! Workloads as distributions: which sorts of pods there are, and how many of each.

use super::{Amount, CardRequest};
use alloc::{boxed::Box, vec::Vec};

/// What a placement by score sees of a pod: pods of one kind get the same score on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKind {
    /// Thousandths of a core.
    pub cpu_milli: Amount,
    /// The GPUs; `None` for work without any. Plain GPUs (`nvidia.com/gpu`) are whole cards.
    pub cards: Option<CardRequest>,
    /// The GPU models that it can run on, sorted; empty: all.
    pub models: Vec<Box<str>>,
}

/// One kind of a target workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypicalPod {
    /// The kind. How much memory of a card it asks for is not looked at.
    pub kind: PodKind,
    /// How often it occurs, beside the weights of the others; at most 2^55 in all.
    pub weight: u64,
}

/// The target workload of these pods: the most frequent kinds, until they are at least 95 % of all
/// pods. Of kinds as frequent as each other, those that ask for more come first.
///
/// Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023.
#[must_use]
pub fn typical_pods(counted: impl IntoIterator<Item = (PodKind, u64)>) -> Vec<TypicalPod> {
    let mut typical: Vec<TypicalPod> = counted
        .into_iter()
        .map(|(kind, weight)| TypicalPod { kind, weight })
        .collect();
    let size = |kind: &PodKind| {
        let cards = kind.cards.map(|cards| (cards.thousandths(), cards.count()));
        (kind.cpu_milli, cards)
    };
    typical.sort_by(|a, b| {
        (b.weight, size(&b.kind), &b.kind.models).cmp(&(a.weight, size(&a.kind), &a.kind.models))
    });
    let all = typical
        .iter()
        .map(|pod| u128::from(pod.weight))
        .sum::<u128>();
    let mut taken = 0;
    typical.retain(|pod| {
        let enough = taken * 100 >= all * 95;
        taken += u128::from(pod.weight);
        !enough
    });
    typical
}
