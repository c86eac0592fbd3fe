//! Workloads as distributions: which kinds of pods there are, and how many of each.

use super::{Amount, CardNeed};
use alloc::{boxed::Box, vec::Vec};

/// What a placement by score sees of a pod: pods of one kind get the same score on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKind {
    /// The CPU request, in thousandths of a core.
    pub cpu_milli: Amount,
    /// The GPUs that the pod asks for, plain ones (`nvidia.com/gpu`) as whole cards; `None`: none.
    pub cards: Option<CardNeed>,
    /// The GPU models that the pod can run on, sorted; empty: all.
    pub models: Vec<Box<str>>,
}

/// A target workload: the kinds of pods that GPUs are to stay usable for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetWorkload {
    /// The most frequent kinds of pods, in the order in which they are summed.
    pub typical: Vec<TypicalPod>,
    /// The weight of all pods, rare kinds included; at most 2^55.
    pub weight: u64,
}

/// One kind of a target workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypicalPod {
    /// The kind of pod. How much memory of a card it asks for is not looked at.
    pub kind: PodKind,
    /// How often the kind occurs: a number of pods, or any other measure that all kinds share.
    pub weight: u64,
}

impl TargetWorkload {
    /// The target workload of these pods: the most frequent kinds, until they are at least 95 % of
    /// all pods. Of equally frequent kinds, the kinds that ask for more come first.
    ///
    /// Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023.
    #[must_use]
    pub fn of(counted: impl IntoIterator<Item = (PodKind, u64)>) -> Self {
        let mut typical: Vec<TypicalPod> = counted
            .into_iter()
            .map(|(kind, weight)| TypicalPod { kind, weight })
            .collect();
        let size = |kind: &PodKind| {
            let cards = kind.cards.map(|cards| (cards.thousandths(), cards.count()));
            (kind.cpu_milli, cards)
        };
        typical.sort_by(|a, b| {
            let models = (&b.kind.models, &a.kind.models);
            (b.weight, size(&b.kind), models.0).cmp(&(a.weight, size(&a.kind), models.1))
        });
        let weight: u64 = typical.iter().map(|pod| pod.weight).sum();
        let mut taken = 0;
        typical.retain(|pod| {
            let enough = taken * 100 >= u128::from(weight) * 95;
            taken += u128::from(pod.weight);
            !enough
        });
        Self { typical, weight }
    }
}
