//! Objects with everything set that most worlds do not care about.

use gpu_batch_policies::facts::{
    Amounts, GangHints, GangMinimum, GroupSource, Labels, NodeFacts, PlacementChoice, PodFacts,
    PodGroupFacts, PodPhase, PodShape, QueueFacts, TopologyFacts, TopologyLevel, Uid, UnixMs,
};
use std::sync::Arc;

/// The one namespace of these worlds.
pub const NAMESPACE: &str = "default";

/// Amounts by name, without zeros, sorted.
#[must_use]
pub fn amounts(amounts: &[(&str, u64)]) -> Amounts {
    let mut amounts: Amounts = amounts
        .iter()
        .filter(|(_, amount)| *amount > 0)
        .map(|(name, amount)| ((*name).into(), *amount))
        .collect();
    amounts.sort();
    amounts
}

/// A ready node of so many CPUs and GPUs, with these labels.
#[must_use]
pub fn node(name: &str, uid: Uid, cpus: u64, gpus: u64, labels: &[(&str, &str)]) -> NodeFacts {
    let has = amounts(&[
        ("cpu", cpus * 1000),
        ("nvidia.com/gpu", gpus),
        ("pods", 110),
    ]);
    let mut labels: Labels = labels
        .iter()
        .map(|(k, v)| ((*k).into(), (*v).into()))
        .collect();
    labels.sort();
    NodeFacts {
        name: name.into(),
        uid,
        labels,
        annotations: Vec::new(),
        taints: Vec::new(),
        unschedulable: false,
        ready: true,
        allocatable: has.clone(),
        capacity: has,
        cards: Vec::new(),
        problems: Vec::new(),
    }
}

/// A pod of ours that waits, of so many CPUs and GPUs.
#[must_use]
pub fn pod(name: &str, uid: Uid, created_ms: UnixMs, cpus: u64, gpus: u64) -> PodFacts {
    let requests = amounts(&[("cpu", cpus * 1000), ("nvidia.com/gpu", gpus), ("pods", 1)]);
    PodFacts {
        uid,
        namespace: NAMESPACE.into(),
        name: name.into(),
        ours: true,
        node: None,
        cards: Vec::new(),
        phase: PodPhase::Pending,
        deleting: false,
        created_ms,
        bound_ms: None,
        started_ms: None,
        priority: 0,
        never_preempts: false,
        gates: Vec::new(),
        shape: Arc::new(PodShape {
            requests,
            ..PodShape::default()
        }),
        pod_group: None,
        sub_group: None,
        queue: None,
        native_group: None,
        owner: None,
        hints: GangHints::default(),
        bound_queue: None,
        bound_pod_group: None,
        unscheduled: None,
        problems: Vec::new(),
    }
}

/// A PodGroup of so many members.
#[must_use]
pub fn pod_group(name: &str, uid: Uid, created_ms: UnixMs, minimum: u32) -> PodGroupFacts {
    PodGroupFacts {
        source: GroupSource::GpuBatch,
        namespace: NAMESPACE.into(),
        name: name.into(),
        uid,
        generation: 1,
        created_ms,
        queue: None,
        minimum: GangMinimum::Together(minimum),
        sub_groups: Vec::new(),
        min_sub_groups: None,
        priority_class: None,
        priority: None,
        preemptible: None,
        topology: None,
        required_label: None,
        placement: PlacementChoice::default(),
        expected_runtime_ms: None,
        preemption_delay_ms: None,
        staleness_grace_ms: None,
        unsupported: Vec::new(),
        problems: Vec::new(),
        status: None,
    }
}

/// A queue without entries below the root.
#[must_use]
pub fn queue(name: &str, uid: Uid) -> QueueFacts {
    QueueFacts {
        name: name.into(),
        uid,
        generation: 1,
        created_ms: 0,
        parent: None,
        priority: 0,
        resources: Vec::new(),
        preempt_min_runtime_ms: None,
        reclaim_min_runtime_ms: None,
        placement: PlacementChoice::default(),
        namespace_selector: None,
        closed: false,
        past_use: None,
        problems: Vec::new(),
    }
}

/// A Topology whose levels are the labels of the same names.
#[must_use]
pub fn topology(name: &str, uid: Uid, levels: &[&str]) -> TopologyFacts {
    let level = |name: &&str| TopologyLevel {
        name: (*name).into(),
        node_label: (*name).into(),
    };
    TopologyFacts {
        name: name.into(),
        uid,
        levels: levels.iter().map(level).collect(),
        problems: Vec::new(),
    }
}
