//! Makes objects for small worlds. Fields that most of them do not care about have defaults.

use gpu_batch_policies::facts::{
    Amounts, Labels, NodeFacts, PodFacts, PodGroupFacts, PodShape, TopologyFacts, TopologyLevel,
    Uid, UnixMs,
};
use std::sync::Arc;

/// The only namespace of the simulated worlds.
pub const NAMESPACE: &str = "default";

/// The resource of whole GPUs.
pub(crate) const GPU: &str = "nvidia.com/gpu";

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

/// A ready node with this many CPUs and GPUs and these labels, and room for 110 pods.
#[must_use]
pub fn node(name: &str, uid: Uid, cpus: u64, gpus: u64, labels: &[(&str, &str)]) -> NodeFacts {
    let has = amounts(&[("cpu", cpus * 1000), (GPU, gpus), ("pods", 110)]);
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

/// A waiting pod of this scheduler that asks for this many CPUs and GPUs.
#[must_use]
pub fn pod(name: &str, uid: Uid, created_ms: UnixMs, cpus: u64, gpus: u64) -> PodFacts {
    let requests = amounts(&[("cpu", cpus * 1000), (GPU, gpus), ("pods", 1)]);
    let shape = PodShape {
        requests,
        ..PodShape::default()
    };
    PodFacts {
        created_ms,
        ..PodFacts::new(uid, NAMESPACE, name, Arc::new(shape))
    }
}

/// A PodGroup with this minimum of members.
#[must_use]
pub fn pod_group(name: &str, uid: Uid, created_ms: UnixMs, minimum: u32) -> PodGroupFacts {
    PodGroupFacts {
        created_ms,
        ..PodGroupFacts::new(uid, NAMESPACE, name, minimum)
    }
}

/// A Topology whose levels have the names of their node labels.
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
