//! What a pod says.

use super::{
    CardEntries, CardPart, ClaimUse, OwnerReference, PlacementChoice, PodLabels, PodShape, Problem,
    Uid, UnixMs,
};
use alloc::{boxed::Box, sync::Arc, vec::Vec};

/// The scheduling gate that keeps kube-scheduler off an extended pod until the engine has a place
/// for the pod, and lifts the gate.
pub const GANG_GATE: &str = "gpu-batch.io/gang";

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
    /// queue and is never evicted.
    pub ours: bool,
    /// kube-scheduler asks to bind the pod, with this scheduler as its extender: the pod has a
    /// queue and counts there. kube-scheduler also chooses the node, unless the pod is *planned*:
    /// see [`PodFacts::is_planned`]. Only pods of ours can be extended.
    pub extended: bool,
    /// The annotation `gpu-batch.io/planned-node`: the node that was chosen for an extended pod
    /// when its [`GANG_GATE`] was lifted.
    pub planned_node: Option<Box<str>>,
    /// `spec.nodeName`: set once the pod is bound.
    pub node: Option<Box<str>>,
    /// `status.nominatedNodeName`: where room is being made, or kept, for the pod.
    pub nominated: Option<Box<str>>,
    /// What the pod holds of cards of its node, each card once; empty: not said.
    pub cards: Vec<CardPart>,
    /// Where the container that asks for cards stands among the others.
    pub card_entries: CardEntries,
    /// HAMi's own scheduler has given the pod its cards. It keeps books of its own and would give
    /// the same room away again, so gpu-batch uses no card of a node with such a pod.
    pub is_of_hami: bool,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `status.reason` is `TopologyAffinityError`: the kubelet has rejected the pod, because it
    /// could not align what the pod asks for.
    pub is_misaligned: bool,
    /// `metadata.deletionTimestamp`: by when the pod is to be gone; it still takes its room.
    /// `None`: the pod is not being deleted.
    pub deletion_ms: Option<UnixMs>,
    /// `metadata.creationTimestamp`.
    pub created_ms: UnixMs,
    /// When the pod was bound: the API server sets the condition `PodScheduled=True` with the
    /// binding and its `lastTransitionTime`, to the second. `None`: the pod has no node, or no such
    /// condition.
    pub bound_ms: Option<UnixMs>,
    /// `status.startTime`.
    pub started_ms: Option<UnixMs>,
    /// `spec.priority`; 0 where absent.
    pub priority: i32,
    /// `spec.preemptionPolicy` is `Never`.
    pub never_preempts: bool,
    /// `spec.schedulingGates`, by name; the pod waits while it has any gate.
    pub gates: Vec<Box<str>>,
    /// What decides where the pod can run. Foreign pods carry requests, host ports and their
    /// anti-affinity only.
    pub shape: Arc<PodShape>,
    /// The claims that the pod uses, each once, in the order of their names.
    pub claims: Vec<ClaimUse>,
    /// `metadata.labels`, by which disruption budgets and rules of other pods select pods. Of
    /// foreign pods none is implied.
    pub labels: PodLabels,
    /// The label `gpu-batch.io/pod-group`.
    pub pod_group: Option<Box<str>>,
    /// The label `gpu-batch.io/subgroup`.
    pub sub_group: Option<Box<str>>,
    /// The label `gpu-batch.io/queue`.
    pub queue: Option<Box<str>>,
    /// `spec.schedulingGroup.podGroupName`: a native group.
    pub native_group: Option<Box<str>>,
    /// The owner that controls the pod.
    pub owner: Option<OwnerReference>,
    /// The Deployment that controls the owner of the pod. A rolling update brings another owner,
    /// since there is a ReplicaSet for each template, but the Deployment stays.
    pub deployment: Option<Box<str>>,
    /// Annotations that do for implicit gangs what the fields of a PodGroup do.
    pub hints: GangHints,
    /// The annotation `gpu-batch.io/bound-queue`: the queue that the pod was bound for.
    pub bound_queue: Option<Box<str>>,
    /// The annotation `gpu-batch.io/bound-podgroup`: the gang that the pod was bound for.
    pub bound_pod_group: Option<Box<str>>,
    /// The annotation `gpu-batch.io/bound-minimum`: the minima that the pod was bound for, from its
    /// gang's down to that of its leaf; empty: not said.
    pub bound_minima: Vec<u32>,
    /// The condition `PodScheduled` where it is `False`, so that an equal one is not written again.
    pub unscheduled: Option<ScheduledCondition>,
    /// What could not be read; a pod of ours with any problem is barred with `InvalidSpec`.
    pub problems: Vec<Problem>,
    /// Labels and annotations of `gpu-batch.io` that mean nothing on this pod. They hold nothing
    /// up; the pod's owner is told.
    pub unknown_keys: Vec<Problem>,
}

impl PodFacts {
    /// A pod of ours that waits, created at time zero, with nothing else set.
    #[must_use]
    pub fn new(uid: Uid, namespace: &str, name: &str, shape: Arc<PodShape>) -> Self {
        Self {
            uid,
            namespace: namespace.into(),
            name: name.into(),
            ours: true,
            extended: false,
            planned_node: None,
            node: None,
            nominated: None,
            cards: Vec::new(),
            card_entries: CardEntries::default(),
            is_of_hami: false,
            phase: PodPhase::Pending,
            is_misaligned: false,
            deletion_ms: None,
            created_ms: 0,
            bound_ms: None,
            started_ms: None,
            priority: 0,
            never_preempts: false,
            gates: Vec::new(),
            shape,
            claims: Vec::new(),
            labels: PodLabels::default(),
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

    /// Whether the engine plans the pod, although kube-scheduler asks to bind it: the pod has, or
    /// had, the [`GANG_GATE`].
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.extended && (self.planned_node.is_some() || self.has_gang_gate())
    }

    /// Whether another scheduler chooses the node of the pod.
    #[must_use]
    pub fn is_chosen_elsewhere(&self) -> bool {
        !self.ours || (self.extended && !self.is_planned())
    }

    /// Whether the pod has the [`GANG_GATE`].
    #[must_use]
    pub fn has_gang_gate(&self) -> bool {
        self.gates.iter().any(|gate| **gate == *GANG_GATE)
    }

    /// The gates that hold the pod back: all but the one that the engine lifts itself.
    pub fn holding_gates(&self) -> impl Iterator<Item = &str> {
        let lifts = self.is_planned();
        let gates = self.gates.iter().map(|gate| &**gate);
        gates.filter(move |gate| !(lifts && *gate == GANG_GATE))
    }
}

/// `status.phase` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// Not all containers are ready to run yet; the pod may be bound or not.
    Pending,
    /// All containers were created, and at least one runs or starts.
    Running,
    /// The pod ended well and takes no room.
    Succeeded,
    /// The pod ended badly and takes no room.
    Failed,
}

impl PodPhase {
    /// Whether the pod has ended and takes no room any more.
    #[must_use]
    pub fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The pod annotations `gpu-batch.io/...` that describe an implicit gang.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GangHints {
    /// `min-member`: the owner's pods are a gang with this minimum.
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
    /// The condition's reason, e.g. `Unschedulable` or a [`Reason`](crate::reason::Reason).
    pub reason: Box<str>,
    /// The condition's message.
    pub message: Box<str>,
}
