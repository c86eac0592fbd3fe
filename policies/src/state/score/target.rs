//! The target workload, ready to be measured against.

use super::float;
use crate::facts::{Amount, TargetWorkload};
use crate::ids::ModelId;
use crate::state::kinds::Kinds;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// A distribution of kinds of pods, in the order in which the kinds are summed.
#[derive(Debug, Default)]
pub(crate) struct Target {
    pub(crate) typical: Vec<Typical>,
    /// The sum of all weights.
    pub(crate) weight: u64,
    /// The CPU amounts that kinds ask for, sorted, each once.
    cpu_levels: Vec<Amount>,
}

/// One kind of pod of a target workload.
#[derive(Debug)]
pub(crate) struct Typical {
    pub(crate) cpu_milli: Amount,
    /// How many cards the kind asks for, and how many thousandths of each.
    pub(crate) cards: Option<(u16, u16)>,
    /// The GPU models that the kind can run on; empty: all.
    pub(crate) models: SmallVec<[ModelId; 4]>,
    pub(crate) weight: u64,
    /// The kind's share in the weight of all kinds.
    pub(crate) probability: f64,
}

impl Target {
    /// Prepares a target workload. The probabilities are those of the published experiment, whose
    /// rounding decides ties: the share of a kind in all pods over the share of the typical ones.
    pub(crate) fn new(target: &TargetWorkload, kinds: &mut Kinds) -> Self {
        let typical = &target.typical;
        let sum = |sum: u64, weight| sum.saturating_add(weight);
        let weight = typical.iter().map(|pod| pod.weight).fold(0, sum);
        let all = float(target.weight);
        let mut cpu_levels: Vec<Amount> = typical.iter().map(|pod| pod.kind.cpu_milli).collect();
        cpu_levels.sort_unstable();
        cpu_levels.dedup();
        let typical = typical.iter().map(|pod| Typical {
            cpu_milli: pod.kind.cpu_milli,
            cards: pod
                .kind
                .cards
                .map(|cards| (cards.count(), cards.thousandths())),
            models: pod
                .kind
                .models
                .iter()
                .map(|model| kinds.model(model))
                .collect(),
            weight: pod.weight,
            probability: (float(pod.weight) / all) / (float(weight) / all),
        });
        Self {
            typical: typical.collect(),
            weight,
            cpu_levels,
        }
    }

    /// How many of the CPU amounts that kinds ask for a room has. Rooms of one level are alike to
    /// all kinds.
    pub(crate) fn cpu_level(&self, cpu_milli: Amount) -> u32 {
        let level = self
            .cpu_levels
            .partition_point(|needed| *needed <= cpu_milli);
        u32::try_from(level).unwrap_or(u32::MAX)
    }
}
