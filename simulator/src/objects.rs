//! Objects with everything set that most worlds do not care about.

use gpu_batch_policies::facts::{
    Amounts, Labels, NodeFacts, PodFacts, PodGroupFacts, PodShape, TopologyFacts, TopologyLevel,
    Uid, UnixMs,
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
        labels,
        ..NodeFacts::new(uid, name, has)
    }
}

/// A pod of ours that waits, of so many CPUs and GPUs.
#[must_use]
pub fn pod(name: &str, uid: Uid, created_ms: UnixMs, cpus: u64, gpus: u64) -> PodFacts {
    let requests = amounts(&[("cpu", cpus * 1000), ("nvidia.com/gpu", gpus), ("pods", 1)]);
    let shape = PodShape {
        requests,
        ..PodShape::default()
    };
    PodFacts {
        created_ms,
        ..PodFacts::new(uid, NAMESPACE, name, Arc::new(shape))
    }
}

/// A PodGroup of so many members.
#[must_use]
pub fn pod_group(name: &str, uid: Uid, created_ms: UnixMs, minimum: u32) -> PodGroupFacts {
    PodGroupFacts {
        created_ms,
        ..PodGroupFacts::new(uid, NAMESPACE, name, minimum)
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
