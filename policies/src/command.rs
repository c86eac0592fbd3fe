//! What the engine returns: commands, of which each is one call to the API server.

use crate::facts::{CardLock, CardPart, ClaimReference, GroupSource, Uid, UnixMs};
use crate::lease::LeaseCall;
pub use crate::queues::ClaimKind;
use crate::status::{PodGroupStatus, QueueStatus};
use alloc::{borrow::Cow, boxed::Box, format, vec::Vec};

/// The number of a command; one engine never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// One call to be made to the API server.
///
/// The shell sends a command at once (the engine bounds how many are under way), gives up at the
/// deadline with [`Outcome::Unknown`](crate::event::Outcome::Unknown), never repeats the call, and
/// reports exactly one outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The number of the command, which comes back with the outcome.
    pub id: CommandId,
    /// When the shell stops waiting for an answer.
    pub deadline_ms: UnixMs,
    /// What the command does.
    pub action: Action,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Binds a pod to a node: POST of a Binding with the UID as precondition.
    Bind(Bind),
    /// Evicts a pod through the Eviction API, with the UID as precondition.
    Evict(Evict),
    /// Lifts the gate of a pod, so that kube-scheduler looks at it.
    Lift(Lift),
    /// Has a volume made for a claim where its pod is to be.
    SelectNode(SelectNode),
    /// Keeps a volume that exists for a claim.
    KeepVolume(KeepVolume),
    /// Takes the lock on the cards of a node, before a pod is bound that gets some of them.
    LockCards(LockCards),
    /// Gives that lock back if the pod is not bound.
    UnlockCards(UnlockCards),
    /// Reads a pod by a quorum GET, answered with
    /// [`Outcome::Observed`](crate::event::Outcome::Observed).
    Observe(PodReference),
    /// Writes a status, or the condition of a pod.
    PatchStatus(StatusPatch),
    /// Reads or writes the leader's lease.
    Lease(LeaseCall),
    /// Publishes a Kubernetes event.
    Publish(Announcement),
}

/// A pod in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodReference {
    /// The pod's namespace.
    pub namespace: Box<str>,
    /// The pod's name.
    pub name: Box<str>,
    /// The pod's UID, a precondition of every request.
    pub uid: Uid,
}

/// A binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The pod to bind.
    pub pod: PodReference,
    /// The name of the node to bind the pod to.
    pub node: Box<str>,
    /// What the pod gets of cards of the node, in the order of their ids; empty for a pod without
    /// a [`CardNeed`](crate::facts::CardNeed).
    pub cards: Vec<CardPart>,
    /// What tells HAMi's device plugin which cards the pod gets; `None`: nobody has to be told.
    pub assignment: Option<CardAssignment>,
    /// The queue that the pod is bound for: the annotation `gpu-batch.io/bound-queue`.
    pub queue: Box<str>,
    /// The gang's PodGroup: the annotation `gpu-batch.io/bound-podgroup`; `None` for implicit
    /// gangs.
    pub pod_group: Option<Box<str>>,
    /// The minima that the pod was placed for, from its gang's down to that of its leaf: the
    /// annotation `gpu-batch.io/bound-minimum`. Empty for a gang of one.
    pub minima: Vec<u32>,
}

/// How the cards of a [`Bind`] are assigned through HAMi's device plugin. All of it are annotations
/// of the Binding, which the API server copies to the pod in the same write: `hami.io/vgpu-node`
/// (also a label if it has no more than 63 characters), `hami.io/vgpu-time`,
/// `hami.io/vgpu-devices-to-allocate`, `hami.io/vgpu-devices-allocated`, `hami.io/bind-phase`
/// (`allocating`) and `hami.io/bind-time`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardAssignment {
    /// What each container of the pod gets, init containers first; empty for one that asks for no
    /// cards. An init container and others may use the same part of a card.
    pub entries: Vec<Vec<CardPart>>,
    /// The time to be written, to the second.
    pub at_ms: UnixMs,
}

/// A lock on the cards of a node: the annotation `hami.io/mutex.lock` with the value
/// `TIME,NAMESPACE,NAME`, its time in RFC 3339 to the second, in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCardLock {
    /// The namespace of the pod that gets cards.
    pub namespace: Box<str>,
    /// The name of the pod.
    pub name: Box<str>,
    /// When the lock was asked for first.
    pub at_ms: UnixMs,
}

impl OwnCardLock {
    /// The lock as it is read back in a model of a cluster, where the time in its value is in
    /// seconds since 1970.
    #[must_use]
    pub fn read_back(&self) -> CardLock {
        let (seconds, namespace, name) = (self.at_ms / 1_000, &self.namespace, &self.name);
        CardLock {
            value: format!("{seconds},{namespace},{name}").into(),
            holder: Some((namespace.clone(), name.clone())),
            at_ms: Some(seconds * 1_000),
        }
    }
}

/// Takes the lock on the cards of a node: one JSON PATCH of the node that tests what stands there
/// and writes the lock. If the test fails, somebody else has the lock: a
/// [`Conflict`](crate::event::Outcome::Conflict).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockCards {
    /// The name of the node.
    pub node: Box<str>,
    /// The lock to be written.
    pub lock: OwnCardLock,
    /// The value that is replaced, as it stands; `None`: there is to be no lock.
    pub seen: Option<Box<str>>,
}

/// Gives the lock on the cards of a node back: one JSON PATCH of the node that tests whether the
/// lock is this one, and takes it away. If the test fails, the lock is gone: a
/// [`Conflict`](crate::event::Outcome::Conflict).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlockCards {
    /// The name of the node.
    pub node: Box<str>,
    /// The lock to be taken away.
    pub lock: OwnCardLock,
}

/// What makes kube-scheduler look at a pod that has a place: one PATCH of the pod, with the UID as
/// precondition. It may be sent any number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lift {
    /// The pod, whose [`GANG_GATE`](crate::facts::GANG_GATE) is taken away.
    pub pod: PodReference,
    /// The name of the node that was chosen for the pod: the annotation
    /// `gpu-batch.io/planned-node`.
    pub node: Box<str>,
}

/// Where a volume is to be made for a claim: one PATCH of the claim, with its UID as precondition,
/// that sets the annotation `volume.kubernetes.io/selected-node`. It may be sent any number of
/// times. The provisioner takes the annotation away if it cannot make the volume there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectNode {
    /// The claim's namespace.
    pub namespace: Box<str>,
    /// The claim's name.
    pub name: Box<str>,
    /// The claim's UID.
    pub uid: Uid,
    /// The name of the node; `None`: the annotation is taken away.
    pub node: Option<Box<str>>,
}

/// For which claim a volume is kept: one PATCH of the PersistentVolume that sets `spec.claimRef`,
/// with the version as precondition, so that no change of anybody else is overwritten. Kubernetes
/// then binds the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepVolume {
    /// The volume's name.
    pub volume: Box<str>,
    /// `metadata.resourceVersion` of the volume as it was seen.
    pub version: Box<str>,
    /// The claim; `None`: the volume is free again.
    pub claim: Option<ClaimReference>,
}

/// An eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evict {
    /// The pod to evict.
    pub pod: PodReference,
    /// Why the pod is evicted.
    pub cause: EvictionCause,
    /// The gang for which the pod is evicted; `None` where the cause is a rule about the pod's own
    /// gang.
    pub beneficiary: Option<Beneficiary>,
}

/// The gang for which a pod is evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beneficiary {
    /// The gang by its name: `NS/NAME`, `NS/job/NAME`, `NS/deployment/NAME` or `NS/pod/NAME`.
    pub gang: Box<str>,
    /// Up to which bound the gang's queue claims from the queue of the pod; `None`: the pod gives
    /// way to a higher priority, or moves.
    pub claim: Option<ClaimKind>,
    /// It is proved that no other set of victims costs less.
    pub is_optimal: bool,
}

/// Why a pod is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictionCause {
    /// The pod's gang was below its minimum for longer than `stalenessGracePeriod`.
    Stale,
    /// The pod's gang has never had its minimum, and cannot have it now.
    Unwind,
    /// The pod's queue holds more than its bound, and another queue claims what is its own.
    Reclaim,
    /// A gang of higher priority of the same queue takes the room.
    Preempt,
    /// The pod has another place, so that its gang makes room by moving.
    Consolidate,
    /// The pod's gang runs on a node of which GPUs have failed, and a rule of the settings evicts
    /// it for that.
    CardFailed,
}

impl EvictionCause {
    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stale => "Stale",
            Self::Unwind => "Unwind",
            Self::Reclaim => "Reclaim",
            Self::Preempt => "Preempt",
            Self::Consolidate => "Consolidate",
            Self::CardFailed => "CardFailed",
        }
    }
}

/// A status to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum StatusPatch {
    /// The status of a PodGroup; of a native one only the condition `PodGroupScheduled` is written.
    PodGroup {
        /// Whether the PodGroup is ours or a native one.
        source: GroupSource,
        /// The PodGroup's namespace.
        namespace: Box<str>,
        /// The PodGroup's name.
        name: Box<str>,
        /// The PodGroup's UID.
        uid: Uid,
        /// The new status.
        status: PodGroupStatus,
    },
    /// The status of a queue.
    Queue {
        /// The queue's name.
        name: Box<str>,
        /// The queue's UID.
        uid: Uid,
        /// The new status.
        status: QueueStatus,
    },
    /// `status.nominatedNodeName` of a pod that waits: where room is being made for it. It is the
    /// only record of that, from which the next leader learns for which gang room is kept.
    Nominated {
        /// The pod that waits.
        pod: PodReference,
        /// The name of the node; `None`: the nomination is taken back.
        node: Option<Box<str>>,
    },
    /// The condition `PodScheduled=False` of a pod that waits.
    Unscheduled {
        /// The pod that waits.
        pod: PodReference,
        /// The condition's reason: `Unschedulable` where more nodes would help (autoscalers act on
        /// it), else our own word.
        reason: Box<str>,
        /// The condition's message.
        message: Box<str>,
        /// When the condition became `False`, for `lastTransitionTime`.
        since_ms: UnixMs,
    },
}

/// A Kubernetes event on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The object that the event is about.
    pub regarding: ObjectReference,
    /// Whether the event is a warning and not just news.
    pub warning: bool,
    /// The event's reason, a word in CamelCase: `Scheduled`, `FailedScheduling`, or a
    /// [`Reason`](crate::reason::Reason).
    pub reason: Cow<'static, str>,
    /// The event's message.
    pub message: Box<str>,
    /// Whether the API server keeps the event only once, however often it is published: then the
    /// event's name follows from its object and what it says.
    pub once: bool,
}

/// An object in an [`Announcement`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectReference {
    /// `apiVersion`, e.g. `v1`.
    pub api_version: Box<str>,
    /// `kind`, e.g. `Pod`.
    pub kind: Box<str>,
    /// The object's namespace; empty for objects without one.
    pub namespace: Box<str>,
    /// The object's name.
    pub name: Box<str>,
    /// The object's UID.
    pub uid: Uid,
}
