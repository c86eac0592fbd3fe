//! What comes out of the engine: each command is one request to the API server.

use crate::facts::{CardIndex, GroupSource, Uid, UnixMs};
use crate::lease::LeaseRequest;
use crate::reason::Reason;
use crate::status::{PodGroupStatus, QueueStatus};
use alloc::{borrow::Cow, boxed::Box, vec::Vec};

/// Numbers commands; never used twice by one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// One request to be sent.
///
/// The shell sends it at once (the engine bounds how many are under way), gives up at the deadline
/// with [`Outcome::Unknown`](crate::event::Outcome::Unknown), never repeats it, and reports exactly
/// one outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Comes back with the outcome.
    pub id: CommandId,
    /// When to give up.
    pub deadline_ms: UnixMs,
    /// What to do.
    pub action: Action,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Binds a pod to a node: POST of a Binding with the UID as precondition.
    Bind(Bind),
    /// Evicts a pod through the Eviction API, with the UID as precondition.
    Evict(Evict),
    /// A quorum GET of a pod, answered with
    /// [`Outcome::Observed`](crate::event::Outcome::Observed).
    Observe(PodReference),
    /// Writes a status.
    PatchStatus(StatusPatch),
    /// Reads or writes the leader's lease.
    Lease(LeaseRequest),
    /// Publishes a Kubernetes event.
    Publish(Announcement),
}

/// A pod in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodReference {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its UID, a precondition of every request.
    pub uid: Uid,
}

/// A binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The pod.
    pub pod: PodReference,
    /// The node.
    pub node: Box<str>,
    /// The cards of the node, in rising order; empty for a pod that asks for none by
    /// [`CardRequest`](crate::facts::CardRequest).
    pub cards: Vec<CardIndex>,
    /// Becomes the annotation `gpu-batch.io/bound-queue`.
    pub queue: Box<str>,
    /// Becomes the annotation `gpu-batch.io/bound-podgroup`; `None` for implicit gangs.
    pub pod_group: Option<Box<str>>,
    /// Become the annotation `gpu-batch.io/bound-minimum`: the minima that the pod was placed for,
    /// from its gang's down to that of its leaf; none for a gang of one.
    pub minima: Vec<u32>,
}

/// An eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evict {
    /// The pod.
    pub pod: PodReference,
    /// Why.
    pub cause: EvictionCause,
}

/// Why a pod is evicted. Reclaim, preempt and consolidate will join with the victim search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvictionCause {
    /// Its gang was below its minimum for longer than `stalenessGracePeriod`.
    Stale,
    /// Its gang has never had its minimum, and cannot have it now.
    Unwind,
}

/// A status to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum StatusPatch {
    /// Of a PodGroup; of a native one only the condition `PodGroupScheduled` is written.
    PodGroup {
        /// Which kind.
        source: GroupSource,
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
        /// Its UID.
        uid: Uid,
        /// The new status.
        status: PodGroupStatus,
    },
    /// Of a queue.
    Queue {
        /// Its name.
        name: Box<str>,
        /// Its UID.
        uid: Uid,
        /// The new status.
        status: QueueStatus,
    },
    /// The condition `PodScheduled=False` of a pod that waits.
    Unscheduled {
        /// The pod.
        pod: PodReference,
        /// `Unschedulable` where more nodes would help (autoscalers act on it), else our reason.
        reason: Box<str>,
        /// The message.
        message: Box<str>,
        /// When the condition became as it is, for `lastTransitionTime`.
        since_ms: UnixMs,
    },
}

/// A Kubernetes event on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The object that the event is about.
    pub regarding: ObjectReference,
    /// A warning, or just news.
    pub warning: bool,
    /// A word in CamelCase: `Scheduled`, `FailedScheduling`, or a [`Reason`].
    pub reason: Cow<'static, str>,
    /// The message.
    pub message: Box<str>,
    /// The API server takes it once, however often it is published: its name follows from what it
    /// says of which object.
    pub once: bool,
}

impl Announcement {
    /// The event's reason for a waiting pod or gang.
    #[must_use]
    pub fn reason_of(reason: Reason) -> &'static str {
        reason.as_str()
    }
}

/// An object in an [`Announcement`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectReference {
    /// e.g. `v1`.
    pub api_version: Box<str>,
    /// e.g. `Pod`.
    pub kind: Box<str>,
    /// Empty for objects without one.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
    /// The identity.
    pub uid: Uid,
}
