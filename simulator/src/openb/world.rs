//! The experiment in the engine's words.

use super::input::{Machine, PodRow};
use crate::objects;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    Amounts, CardFacts, MatchOperator, MatchRequirement, NodeFacts, NodeSelectorTerm, PodFacts,
    PodShape, TargetWorkload, TypicalPod, Uid,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many pods a node of the experiment takes at most.
const PODS: u64 = 1_001;
const BYTES_PER_MIB: u64 = 1 << 20;
const PRODUCT: &str = "nvidia.com/gpu.product";

/// The nodes, named after their ranks: nodes of equal score are taken in the order of their names.
pub(super) fn nodes(machines: &[Machine], ranks: &[usize]) -> Vec<Object> {
    let node = |(machine, rank): (&Machine, &usize)| {
        let name = format!("node-{rank:08}");
        let labels: &[(&str, &str)] = match machine.gpus {
            0 => &[],
            _ => &[(PRODUCT, &machine.model)],
        };
        let allocatable = amounts(machine.cpu_milli, machine.memory_mib, PODS);
        let uid = Uid((1 << 64) + u128::from(u64::try_from(*rank).unwrap_or(u64::MAX)));
        Object::Node(NodeFacts {
            capacity: allocatable.clone(),
            allocatable,
            cards: (0..machine.gpus).map(card).collect(),
            ..objects::node(&name, uid, 0, 0, labels)
        })
    };
    machines.iter().zip(ranks).map(node).collect()
}

/// A card. The trace says nothing of its memory, and lets any number of pods share it.
fn card(number: u64) -> CardFacts {
    CardFacts::new(format!("{number:04}"), 0)
}

fn amounts(cpu_milli: u64, memory_mib: u64, pods: u64) -> Amounts {
    let memory = memory_mib * BYTES_PER_MIB;
    let all = [("cpu", cpu_milli), ("memory", memory), ("pods", pods)];
    let some = all.into_iter().filter(|(_, amount)| *amount > 0);
    some.map(|(name, amount)| (name.into(), amount)).collect()
}

/// The shapes of all pods. Pods with equal requests share one shape.
pub(super) fn shapes(pods: &[PodRow]) -> Vec<Arc<PodShape>> {
    let mut known: BTreeMap<(u64, &gpu_batch_policies::facts::PodKind), Arc<PodShape>> =
        BTreeMap::new();
    let shared = pods.iter().map(|pod| {
        let shape = known.entry((pod.memory_mib, &pod.kind));
        shape.or_insert_with(|| Arc::new(shape_of(pod))).clone()
    });
    shared.collect()
}

fn shape_of(pod: &PodRow) -> PodShape {
    let models = &pod.kind.models;
    let allowed = NodeSelectorTerm {
        match_expressions: vec![MatchRequirement {
            key: PRODUCT.into(),
            operator: MatchOperator::In,
            values: models.clone(),
        }],
        match_fields: Vec::new(),
    };
    PodShape {
        requests: amounts(pod.kind.cpu_milli, pod.memory_mib, 1),
        cards: pod.kind.cards,
        node_affinity: (!models.is_empty()).then(|| vec![allowed]),
        ..PodShape::default()
    }
}

/// The pod that arrives at this position of the order.
pub(super) fn pod(position: u64, shape: &Arc<PodShape>) -> PodFacts {
    PodFacts {
        shape: shape.clone(),
        ..objects::pod(
            &format!("pod-{position:08}"),
            Uid(u128::from(position)),
            position,
            0,
            0,
        )
    }
}

/// The target workload of a pod list: its most frequent kinds of pods.
pub(super) fn target(pods: &[PodRow]) -> TargetWorkload {
    let mut counted: BTreeMap<_, u64> = BTreeMap::new();
    for pod in pods {
        *counted.entry(pod.kind.clone()).or_insert(0) += 1;
    }
    TargetWorkload::of(counted)
}

/// Whether one target workload is the other with its probabilities rounded to twelve decimals.
pub(super) fn is_rounded(rounded: &TargetWorkload, exact: &TargetWorkload) -> bool {
    const UNITS: u128 = 1_000_000_000_000;
    let all: u128 = exact.typical.iter().map(|pod| u128::from(pod.weight)).sum();
    let same = |(rounded, exact): (&TypicalPod, &TypicalPod)| {
        let nearest = (u128::from(exact.weight) * 2 * UNITS / all).div_ceil(2);
        rounded.kind == exact.kind && u128::from(rounded.weight) == nearest
    };
    rounded.typical.len() == exact.typical.len()
        && rounded.typical.iter().zip(&exact.typical).all(same)
}
