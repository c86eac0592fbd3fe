//! Kubelets that give containers GPUs of as few NUMA nodes as they can, or reject the pod, and the
//! exporters that say what the NUMA nodes have left. Written down from the kubelet's Topology
//! Manager, and not by the engine's code.

use super::{Cluster, Task};
use crate::objects::GPU;
use crate::random::Random;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    AlignmentPolicy, AlignmentScope, NumaFacts, PodFacts, PodPhase, PodShape, Uid, UnixMs, amount,
};
use std::collections::{BTreeMap, BTreeSet};

/// What kubelets have given to pods.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    /// How many GPUs of each NUMA node a pod got.
    given: BTreeMap<Uid, Vec<u64>>,
    /// The nodes whose exporters are about to look.
    exporting: BTreeSet<Box<str>>,
}

/// What becomes of a pod that a kubelet is to align.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aligned {
    Admitted,
    /// Where the other pods are, the pod cannot be aligned. They could have been elsewhere.
    Rejected,
    /// The pod cannot be aligned beside the other pods, wherever these are.
    Impossible,
}

impl Cluster {
    /// What the kubelet of a node aligns; `None`: nothing.
    pub(crate) fn numa(&self, node: &str) -> Option<&NumaFacts> {
        match self.object(Kind::Numa, node)? {
            Object::Numa(facts) => Some(facts),
            _ => None,
        }
    }

    /// The kubelet of a node admits a pod and gives it GPUs of NUMA nodes, or rejects it.
    pub(super) fn align(&mut self, node: &str, facts: &PodFacts) -> Aligned {
        let Some(numa) = self.numa(node).cloned() else {
            return Aligned::Admitted;
        };
        let has = gpus_of(&numa);
        let mut free = self.free_gpus(&numa);
        let mut given = vec![0; has.len()];
        for asked in needs(&facts.shape, numa.scope) {
            let Some(taken) = take(&has, &mut free, asked, numa.policy) else {
                let others = self.running_on(node).filter(|other| other.uid != facts.uid);
                let all = others.chain([facts]);
                let all: Vec<u64> = all.flat_map(|pod| needs(&pod.shape, numa.scope)).collect();
                return match could_be_aligned(&has, has.clone(), &all, 0, numa.policy) {
                    true => Aligned::Rejected,
                    false => Aligned::Impossible,
                };
            };
            for (given, taken) in given.iter_mut().zip(taken) {
                *given += taken;
            }
        }
        self.alignment.given.insert(facts.uid, given);
        Aligned::Admitted
    }

    fn running_on(&self, node: &str) -> impl Iterator<Item = &PodFacts> {
        let running = self.api.pods().filter(|pod| pod.phase == PodPhase::Running);
        running.filter(move |pod| pod.node.as_deref() == Some(node))
    }

    /// The free GPUs of each NUMA node, as the kubelet knows them.
    fn free_gpus(&self, numa: &NumaFacts) -> Vec<u64> {
        let mut free = gpus_of(numa);
        let given = &self.alignment.given;
        for given in self
            .running_on(&numa.name)
            .filter_map(|pod| given.get(&pod.uid))
        {
            for (free, given) in free.iter_mut().zip(given) {
                *free = free.saturating_sub(*given);
            }
        }
        free
    }

    /// A pod has changed: the exporter on its node looks in a while.
    pub(super) fn plan_export(&mut self, facts: &PodFacts, random: &mut Random, now_ms: UnixMs) {
        let Some(node) = facts.node.as_ref().filter(|node| self.numa(node).is_some()) else {
            return;
        };
        if self.alignment.exporting.insert(node.clone()) {
            let at_ms = now_ms + random.between(100, 5_000);
            self.tasks.push((at_ms, Task::Export(node.clone())));
        }
    }

    /// The exporter on a node says what its NUMA nodes have left.
    pub(super) fn export(&mut self, node: &str, now_ms: UnixMs) {
        self.alignment.exporting.remove(node);
        let Some(mut numa) = self.numa(node).cloned() else {
            return;
        };
        let before = numa.clone();
        let free = self.free_gpus(&numa);
        for (cell, free) in numa.cells.iter_mut().zip(free) {
            for resource in &mut cell.resources {
                resource.available = free;
            }
        }
        if numa != before {
            self.put(Object::Numa(numa), now_ms);
        }
    }
}

/// How many GPUs each NUMA node has.
fn gpus_of(numa: &NumaFacts) -> Vec<u64> {
    let gpus = |cell: &gpu_batch_policies::facts::NumaCell| {
        cell.resources.iter().map(|it| it.allocatable).sum()
    };
    numa.cells.iter().map(gpus).collect()
}

/// How many GPUs are to be of as few NUMA nodes as possible: those of each container, or all of a
/// pod.
fn needs(shape: &PodShape, scope: AlignmentScope) -> Vec<u64> {
    let containers = shape.aligned.iter();
    let containers = containers.map(|container| amount(&container.amounts, GPU));
    let needs = match scope {
        AlignmentScope::Container => containers.collect(),
        AlignmentScope::Pod => vec![containers.sum()],
    };
    needs.into_iter().filter(|gpus| *gpus > 0).collect()
}

/// In how many NUMA nodes so many GPUs have to be on an empty node; more than there are: on none.
fn fewest(has: &[u64], gpus: u64) -> usize {
    let mut has: Vec<u64> = has.to_vec();
    has.sort_unstable_by_key(|gpus| std::cmp::Reverse(*gpus));
    let sums = has.iter().scan(0, |sum, gpus| {
        *sum += gpus;
        Some(*sum)
    });
    1 + sums.take_while(|sum| *sum < gpus).count()
}

/// Takes GPUs of the first set of NUMA nodes that is as small as can be and has enough free.
/// Returns how many of each; `None`: there is no such set.
fn take(has: &[u64], free: &mut [u64], gpus: u64, policy: AlignmentPolicy) -> Option<Vec<u64>> {
    let size = fewest(has, gpus);
    if size > 1 && policy == AlignmentPolicy::SingleCell {
        return None;
    }
    let is_in = |set: u32, cell: usize| set & (1 << cell) != 0;
    let mut sets = (1_u32..1 << has.len()).filter(|set| set.count_ones() as usize == size);
    let set = sets.find(|set| {
        let free = free
            .iter()
            .enumerate()
            .filter(|(cell, _)| is_in(*set, *cell));
        free.map(|(_, free)| free).sum::<u64>() >= gpus
    })?;
    let mut left = gpus;
    let taken = free.iter_mut().enumerate().map(|(cell, free)| {
        let taken = if is_in(set, cell) { left.min(*free) } else { 0 };
        left -= taken;
        *free -= taken;
        taken
    });
    Some(taken.collect())
}

/// Whether there are NUMA nodes for all these amounts of GPUs from one on, found by trying all.
/// Amounts that need several NUMA nodes take what the others leave.
fn could_be_aligned(
    has: &[u64],
    free: Vec<u64>,
    all: &[u64],
    next: usize,
    policy: AlignmentPolicy,
) -> bool {
    let is_large = |gpus: &&u64| fewest(has, **gpus) > 1;
    let Some(gpus) = all.get(next) else {
        let large: u64 = all.iter().filter(is_large).sum();
        return large <= free.iter().sum();
    };
    if is_large(&gpus) {
        return policy != AlignmentPolicy::SingleCell
            && could_be_aligned(has, free, all, next + 1, policy);
    }
    (0..has.len()).any(|cell| {
        let mut free = free.clone();
        let is_free = free[cell] >= *gpus;
        free[cell] = free[cell].saturating_sub(*gpus);
        is_free && could_be_aligned(has, free, all, next + 1, policy)
    })
}
