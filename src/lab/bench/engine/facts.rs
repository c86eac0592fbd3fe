//! Nodes, pods and gangs as facts.

use gpu_batch_policies::facts::{
    Amounts, NodeFacts, PodFacts, PodGroupFacts, PodPhase, PodShape, QueueFacts,
    TopologyConstraint, TopologyFacts, TopologyLevel, Uid,
};
use std::sync::Arc;

/// When every session begins, in Unix milliseconds.
pub(in crate::lab::bench) const START_MS: u64 = 1_800_000_000_000;

/// The resource that counts GPUs.
pub(in crate::lab::bench) const GPU: &str = "nvidia.com/gpu";

/// The GPU model of all nodes.
pub(in crate::lab::bench) const GPU_MODEL: &str = "NVIDIA-H100-80GB-HBM3";

/// When everything was created, in Unix milliseconds.
const CREATED_MS: u64 = START_MS - 3_600_000;

const GIB: u64 = 1 << 30;

/// The levels of the Topology `default`, farthest first; also their labels.
pub(in crate::lab::bench) const LEVELS: [&str; 3] = ["zone", "block", "rack"];

/// Where a node stands: zone, block and rack by number.
pub(in crate::lab::bench) type Place = [usize; 3];

/// A node of 128 CPUs, 2 TiB of memory and `gpus` GPUs.
pub(in crate::lab::bench) fn node(number: usize, gpus: u64, place: Place) -> NodeFacts {
    let name = format!("node-{number:05}");
    let mut labels: Vec<(Box<str>, Box<str>)> = LEVELS
        .iter()
        .zip(place)
        .map(|(level, value)| ((*level).into(), format!("{level}-{value:04}").into()))
        .collect();
    labels.push(("kubernetes.io/hostname".into(), name.as_str().into()));
    labels.push(("pool".into(), format!("pool-{}", number % 4).into()));
    if gpus > 0 {
        labels.push(("nvidia.com/gpu.product".into(), GPU_MODEL.into()));
    }
    labels.sort();
    let amounts = amounts(&[
        ("cpu", 128_000),
        ("memory", 2048 * GIB),
        (GPU, gpus),
        ("pods", 110),
    ]);
    NodeFacts {
        labels,
        ..NodeFacts::new(uid(1, number), &name, amounts)
    }
}

/// A shape of `millicpu` thousandths of a CPU, `gib` GiB of memory and `gpus` GPUs.
pub(in crate::lab::bench) fn shape(millicpu: u64, gib: u64, gpus: u64) -> PodShape {
    PodShape {
        requests: amounts(&[
            ("cpu", millicpu),
            ("memory", gib * GIB),
            (GPU, gpus),
            ("pods", 1),
        ]),
        ..PodShape::default()
    }
}

/// A single pod of ours that waits.
pub(in crate::lab::bench) fn pod(number: usize, shape: &Arc<PodShape>) -> PodFacts {
    let name = format!("pod-{number:06}");
    PodFacts {
        created_ms: CREATED_MS,
        ..PodFacts::new(uid(2, number), "team", &name, Arc::clone(shape))
    }
}

/// A pod that runs on a node.
pub(in crate::lab::bench) fn running(mut pod: PodFacts, node: &NodeFacts) -> PodFacts {
    pod.node = Some(node.name.clone());
    pod.phase = PodPhase::Running;
    pod.started_ms = Some(CREATED_MS);
    pod
}

/// A PodGroup that needs `minimum` members, in one domain of a level if `required` names one.
pub(in crate::lab::bench) fn pod_group(
    number: usize,
    minimum: u32,
    required: Option<&str>,
) -> PodGroupFacts {
    PodGroupFacts {
        created_ms: CREATED_MS,
        topology: required.map(|level| TopologyConstraint {
            required: Some(level.into()),
            ..TopologyConstraint::default()
        }),
        ..PodGroupFacts::new(uid(3, number), "team", &group_name(number), minimum)
    }
}

/// The name of a PodGroup.
pub(in crate::lab::bench) fn group_name(number: usize) -> Box<str> {
    format!("gang-{number:05}").into()
}

/// A queue without entries.
pub(in crate::lab::bench) fn queue(number: usize) -> QueueFacts {
    QueueFacts {
        created_ms: CREATED_MS,
        ..QueueFacts::new(uid(4, number), &format!("queue-{number:07}"))
    }
}

/// The Topology `default`.
pub(in crate::lab::bench) fn topology() -> TopologyFacts {
    TopologyFacts {
        name: "default".into(),
        uid: uid(5, 0),
        levels: LEVELS
            .iter()
            .map(|level| TopologyLevel {
                name: (*level).into(),
                node_label: (*level).into(),
            })
            .collect(),
        problems: Vec::new(),
    }
}

fn uid(kind: u128, number: usize) -> Uid {
    Uid(kind << 64 | number as u128)
}

fn amounts(amounts: &[(&str, u64)]) -> Amounts {
    amounts
        .iter()
        .filter(|(_, amount)| *amount > 0)
        .map(|(name, amount)| ((*name).into(), *amount))
        .collect()
}
