//! What a pod says.

use super::{CardIndex, PlacementChoice, PodShape, Problem, Uid, UnixMs};
use alloc::{boxed::Box, sync::Arc, vec::Vec};

/// A pod as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFacts {
    /// `metadata.uid`: the pod's identity.
    pub uid: Uid,
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.schedulerName` is ours. A pod of another scheduler is *foreign*: it takes room, has no
    /// queue and is nobody's victim.
    pub ours: bool,
    /// `spec.nodeName`: set once it is bound.
    pub node: Option<Box<str>>,
    /// The cards of its node that it holds, in rising order; empty while nobody says.
    pub cards: Vec<CardIndex>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `metadata.deletionTimestamp` is set. The pod still takes its room.
    pub deleting: bool,
    /// `metadata.creationTimestamp`.
    pub created_ms: UnixMs,
    /// When it was bound: the API server sets the condition `PodScheduled=True` with the binding
    /// and its `lastTransitionTime`, to the second. `None` where it has no node or nobody says.
    pub bound_ms: Option<UnixMs>,
    /// `status.startTime`.
    pub started_ms: Option<UnixMs>,
    /// `spec.priority`; 0 where absent.
    pub priority: i32,
    /// `spec.preemptionPolicy` is `Never`.
    pub never_preempts: bool,
    /// `spec.schedulingGates`, by name; the pod waits while there is any.
    pub gates: Vec<Box<str>>,
    /// What decides where it can run. Foreign pods carry requests and host ports only.
    pub shape: Arc<PodShape>,
    /// The label `gpu-batch.io/pod-group`.
    pub pod_group: Option<Box<str>>,
    /// The label `gpu-batch.io/subgroup`.
    pub sub_group: Option<Box<str>>,
    /// The label `gpu-batch.io/queue`.
    pub queue: Option<Box<str>>,
    /// `spec.schedulingGroup.podGroupName`: a native group.
    pub native_group: Option<Box<str>>,
    /// The owner that controls it.
    pub owner: Option<OwnerReference>,
    /// The Deployment that controls its owner. A rolling update changes the owner, which is a
    /// ReplicaSet for each template, and not this.
    pub deployment: Option<Box<str>>,
    /// Annotations that do for implicit gangs what the fields of a PodGroup do.
    pub hints: GangHints,
    /// The annotation `gpu-batch.io/bound-queue`: the queue that it was bound for.
    pub bound_queue: Option<Box<str>>,
    /// The annotation `gpu-batch.io/bound-podgroup`: the gang that it was bound for.
    pub bound_pod_group: Option<Box<str>>,
    /// The annotation `gpu-batch.io/bound-minimum`: the minima that it was bound for, from its
    /// gang's down to that of its leaf; empty where nobody says.
    pub bound_minima: Vec<u32>,
    /// The `PodScheduled` condition where it is `False`, so that it is not written again.
    pub unscheduled: Option<ScheduledCondition>,
    /// What could not be read; a pod of ours with any is held with `InvalidSpec`.
    pub problems: Vec<Problem>,
    /// Labels and annotations of `gpu-batch.io` that mean nothing where they stand. They hold
    /// nothing up: whoever wrote them is told.
    pub unknown_keys: Vec<Problem>,
}

impl PodFacts {
    /// A pod of ours that waits, created at time zero, of which nothing else is said.
    #[must_use]
    pub fn new(uid: Uid, namespace: &str, name: &str, shape: Arc<PodShape>) -> Self {
        Self {
            uid,
            namespace: namespace.into(),
            name: name.into(),
            ours: true,
            node: None,
            cards: Vec::new(),
            phase: PodPhase::Pending,
            deleting: false,
            created_ms: 0,
            bound_ms: None,
            started_ms: None,
            priority: 0,
            never_preempts: false,
            gates: Vec::new(),
            shape,
            pod_group: None,
            sub_group: None,
            queue: None,
            native_group: None,
            owner: None,
            deployment: None,
            hints: GangHints::default(),
            bound_queue: None,
            bound_pod_group: None,
            bound_minima: Vec::new(),
            unscheduled: None,
            problems: Vec::new(),
            unknown_keys: Vec::new(),
        }
    }
}

/// `status.phase` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// Not all containers run yet; bound or not.
    Pending,
    /// At least one container runs.
    Running,
    /// Ended well. Takes no room.
    Succeeded,
    /// Ended badly. Takes no room.
    Failed,
}

impl PodPhase {
    /// Whether the pod has ended and takes no room any more.
    #[must_use]
    pub fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The controlling owner of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerReference {
    /// e.g. `batch/v1`.
    pub api_version: Box<str>,
    /// e.g. `Job`.
    pub kind: Box<str>,
    /// The name; the namespace is the pod's.
    pub name: Box<str>,
    /// The identity.
    pub uid: Uid,
}

/// The pod annotations `gpu-batch.io/...` that describe an implicit gang.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GangHints {
    /// `min-member`: one owner's pods are a gang of so many.
    pub min_member: Option<u32>,
    /// `expected-runtime`.
    pub expected_runtime_ms: Option<u64>,
    /// `preemptible`.
    pub preemptible: Option<bool>,
    /// `placement`.
    pub placement: PlacementChoice,
    /// `topology-required`: a level of the Topology `default`.
    pub topology_required: Option<Box<str>>,
    /// `topology-preferred`: a level of the Topology `default`.
    pub topology_preferred: Option<Box<str>>,
    /// `preemption-delay`.
    pub preemption_delay_ms: Option<u64>,
    /// `last-checkpoint`.
    pub last_checkpoint_ms: Option<UnixMs>,
}

/// The `PodScheduled=False` condition that a pod carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledCondition {
    /// The reason, e.g. `Unschedulable` or one of ours.
    pub reason: Box<str>,
    /// The message.
    pub message: Box<str>,
}
