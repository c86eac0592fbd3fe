//! Nodes, pods and gangs as facts.

use gpu_batch_policies::facts::{
    Amounts, GangHints, GangMinimum, GroupSource, NodeFacts, PlacementChoice, PodFacts,
    PodGroupFacts, PodPhase, PodShape, QueueFacts, TopologyFacts, TopologyLevel, TopologyRequest,
    Uid,
};
use std::sync::Arc;

/// When every session begins.
pub(in crate::bench) const START_MS: u64 = 1_800_000_000_000;

/// The resource that counts GPUs.
pub(in crate::bench) const GPU: &str = "nvidia.com/gpu";

/// The GPUs of all nodes.
pub(in crate::bench) const GPU_MODEL: &str = "NVIDIA-H100-80GB-HBM3";

/// When everything was created.
const CREATED_MS: u64 = START_MS - 3_600_000;

const GIB: u64 = 1 << 30;

/// The levels of the Topology `default`, farthest first; also their labels.
pub(in crate::bench) const LEVELS: [&str; 3] = ["zone", "block", "rack"];

/// Where a node stands: zone, block and rack by number.
pub(in crate::bench) type Place = [usize; 3];

/// A node of 128 CPUs, 2 TiB and so many GPUs.
pub(in crate::bench) fn node(number: usize, gpus: u64, place: Place) -> NodeFacts {
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
        name: name.into(),
        uid: uid(1, number),
        labels,
        annotations: Vec::new(),
        taints: Vec::new(),
        unschedulable: false,
        ready: true,
        allocatable: amounts.clone(),
        capacity: amounts,
        cards: Vec::new(),
        problems: Vec::new(),
    }
}

/// A shape of so many thousandths of a CPU, GiB of memory and GPUs.
pub(in crate::bench) fn shape(millicpu: u64, gib: u64, gpus: u64) -> PodShape {
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

/// A pod of ours that waits, a gang of its own.
pub(in crate::bench) fn pod(number: usize, shape: &Arc<PodShape>) -> PodFacts {
    PodFacts {
        uid: uid(2, number),
        namespace: "team".into(),
        name: format!("pod-{number:06}").into(),
        ours: true,
        node: None,
        cards: Vec::new(),
        phase: PodPhase::Pending,
        deleting: false,
        created_ms: CREATED_MS,
        bound_ms: None,
        started_ms: None,
        priority: 0,
        never_preempts: false,
        gates: Vec::new(),
        shape: Arc::clone(shape),
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

/// A pod that runs on a node.
pub(in crate::bench) fn running(mut pod: PodFacts, node: &NodeFacts) -> PodFacts {
    pod.node = Some(node.name.clone());
    pod.phase = PodPhase::Running;
    pod.started_ms = Some(CREATED_MS);
    pod
}

/// A PodGroup that needs so many members, in one domain of a level if one is named.
pub(in crate::bench) fn pod_group(
    number: usize,
    minimum: u32,
    required: Option<&str>,
) -> PodGroupFacts {
    PodGroupFacts {
        source: GroupSource::GpuBatch,
        namespace: "team".into(),
        name: group_name(number),
        uid: uid(3, number),
        generation: 1,
        created_ms: CREATED_MS,
        queue: None,
        minimum: GangMinimum::Together(minimum),
        sub_groups: Vec::new(),
        min_sub_groups: None,
        priority_class: None,
        priority: None,
        preemptible: None,
        topology: required.map(|level| TopologyRequest {
            required: Some(level.into()),
            ..TopologyRequest::default()
        }),
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

/// The name of a PodGroup.
pub(in crate::bench) fn group_name(number: usize) -> Box<str> {
    format!("gang-{number:05}").into()
}

/// A queue without entries.
pub(in crate::bench) fn queue(number: usize) -> QueueFacts {
    QueueFacts {
        name: format!("queue-{number:07}").into(),
        uid: uid(4, number),
        generation: 1,
        created_ms: CREATED_MS,
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

/// The Topology `default`.
pub(in crate::bench) fn topology() -> TopologyFacts {
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
