//! One pod and what has become of it.

use crate::command::{ObjectReference, PodReference};
use crate::event::Kind;
use crate::facts::{
    CardIndex, GangHints, OwnerReference, Problem, ScheduledCondition, Uid, UnixMs,
};
use crate::ids::{ClassId, GangId, NodeId};
use crate::queues::{Demand, QueueId};
use alloc::{boxed::Box, vec::Vec};

/// A pod, of ours or foreign.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) uid: Uid,
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) class: ClassId,
    pub(crate) priority: i32,
    pub(crate) created_ms: UnixMs,
    pub(crate) stage: Stage,
    /// The cards that it holds on its node, rising.
    pub(crate) cards: Box<[CardIndex]>,
    pub(crate) deleting: bool,
    /// `status.phase` is Running.
    pub(crate) running: bool,
    /// A binding failed: it waits until then.
    pub(crate) retry_at_ms: UnixMs,
    pub(crate) glance: Glance,
    /// What only pods of ours have.
    pub(crate) own: Option<Box<Own>>,
}

/// The answers to questions that are asked of every pod again and again: so its [`Own`] need not be
/// looked at, which is large and somewhere else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Nothing that it says of itself forbids that it is placed: it has no gates and no problems,
    /// and names one group at most.
    pub(crate) ready: bool,
    /// It names a sub-group.
    pub(crate) in_sub_group: bool,
    /// A Job owns it, and it is in no group: whether it is of a gang only the Job says.
    pub(crate) needs_job: bool,
}

/// How far a pod has come.
///
/// ```text
///            assume            the watch, or an outcome, says so
/// Waiting ----------> Assumed ----------------------------------> Bound ----> Ended
///    ^                   |
///    +-------------------+  the binding was refused, or never sent
/// ```
///
/// A pod that another scheduler (or a user) binds goes from Waiting to Bound at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has no node.
    Waiting,
    /// We have chosen this node; its room is taken, the API server does not know yet.
    Assumed(NodeId),
    /// The API server says that it is on this node.
    Bound(NodeId),
    /// It has ended and takes no room.
    Ended {
        /// Whether it ended well.
        succeeded: bool,
    },
}

impl Stage {
    /// The node whose room it takes.
    pub(crate) fn node(self) -> Option<NodeId> {
        match self {
            Self::Assumed(node) | Self::Bound(node) => Some(node),
            Self::Waiting | Self::Ended { .. } => None,
        }
    }

    /// It has a node according to the API server.
    pub(crate) fn is_bound(self) -> bool {
        matches!(self, Self::Bound(_))
    }
}

/// What only pods of ours have.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) gang: Option<GangId>,
    pub(crate) pod_group: Option<Box<str>>,
    pub(crate) sub_group: Option<Box<str>>,
    pub(crate) queue: Option<Box<str>>,
    pub(crate) native_group: Option<Box<str>>,
    pub(crate) owner: Option<OwnerReference>,
    pub(crate) deployment: Option<Box<str>>,
    pub(crate) hints: GangHints,
    pub(crate) gates: Vec<Box<str>>,
    pub(crate) problems: Vec<Problem>,
    /// Labels and annotations of ours that mean nothing where they stand.
    pub(crate) unknown_keys: Vec<Problem>,
    pub(crate) bound_queue: Option<Box<str>>,
    /// The minima that it was placed for, from its gang's down to its leaf's.
    pub(crate) bound_minima: Box<[u32]>,
    /// When it was bound, if the API server has said so.
    pub(crate) bound_ms: Option<UnixMs>,
    /// The condition that the pod carries, as far as we know.
    pub(crate) unscheduled: Option<ScheduledCondition>,
    /// When we last wrote that condition.
    pub(crate) condition_ms: UnixMs,
    /// Its account in the books of its queue.
    pub(crate) account: Option<Account>,
    /// The sentence about the last binding that was refused, or has failed more than once.
    pub(crate) failure: Option<Box<str>>,
}

/// What a pod counts for in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) queue: QueueId,
    pub(crate) demand: Demand,
    pub(crate) preemptible: bool,
    /// It takes room (and does not only ask for it).
    pub(crate) held: bool,
}

impl Pod {
    pub(crate) fn reference(&self) -> PodReference {
        PodReference {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid,
        }
    }

    /// The pod as the object of an event.
    pub(crate) fn object(&self) -> ObjectReference {
        Kind::Pod.reference(&self.namespace, &self.name, self.uid)
    }

    /// The sentence about the failed binding of a pod that has a place and no node.
    pub(crate) fn failure(&self) -> Option<&str> {
        let assumed = matches!(self.stage, Stage::Assumed(_));
        self.own.as_ref().filter(|_| assumed)?.failure.as_deref()
    }

    /// It waits, and nothing about the pod itself forbids that it is placed.
    pub(crate) fn can_be_placed(&self, now_ms: UnixMs) -> bool {
        self.could_be_placed() && self.retry_at_ms <= now_ms
    }

    /// It waits, and nothing forbids that it is placed but perhaps the pause after a binding that
    /// failed.
    pub(crate) fn could_be_placed(&self) -> bool {
        self.stage == Stage::Waiting && !self.deleting && self.glance.ready
    }
}

impl Own {
    pub(crate) fn glance(&self) -> Glance {
        let groups = [&self.pod_group, &self.native_group];
        let groups = groups.into_iter().flatten().count();
        Glance {
            // tests plant bugs here: scheduling-gates
            ready: groups <= 1 && self.gates.is_empty() && self.problems.is_empty(),
            in_sub_group: self.sub_group.is_some(),
            needs_job: groups == 0 && self.job().is_some(),
        }
    }

    /// The Job that controls the pod.
    pub(crate) fn job(&self) -> Option<Uid> {
        let owner = self.owner.as_ref()?;
        (&*owner.kind == "Job").then_some(owner.uid)
    }
}
