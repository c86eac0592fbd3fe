//! One pod and what has become of it.

use crate::command::{ObjectReference, PodReference};
use crate::event::Kind;
use crate::facts::{
    CardEntries, ClaimUse, GangHints, OwnerReference, Problem, ScheduledCondition, Uid, UnixMs,
};
use crate::ids::{ClassId, GangId, LabelSetId, NodeId};
use crate::numa::CellShare;
use crate::queues::{Demand, QueueId};
use crate::state::cards::Held;
use alloc::{boxed::Box, vec::Vec};
use core::cmp::{Ordering, Reverse};

/// A pod, of ours or foreign.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) uid: Uid,
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) class: ClassId,
    /// The stated labels of the pod, see [`PodLabels`](crate::facts::PodLabels).
    pub(crate) label_set: LabelSetId,
    pub(crate) priority: i32,
    pub(crate) created_ms: UnixMs,
    pub(crate) stage: Stage,
    /// What the pod holds of cards of its node, in the order of their ids.
    pub(crate) cards: Held,
    /// What the pod has of the NUMA nodes of its node; `None`: the node has none that are known.
    pub(crate) cells: Option<Box<[CellShare]>>,
    pub(crate) deleting: bool,
    /// By when the pod is to be gone, if it is being deleted and the API server has said so.
    pub(crate) deletion_ms: Option<UnixMs>,
    /// The room of the pod counts as coming: the pod is being deleted and not stuck, or is about to
    /// be evicted for a gang that waits.
    pub(crate) leaving: bool,
    /// `status.phase` is Running.
    pub(crate) running: bool,
    /// Until when the pod waits because a binding of it was refused; 0: not at all.
    pub(crate) retry_at_ms: UnixMs,
    pub(crate) glance: Glance,
    /// The claims that the pod uses; `None`: none, or the pod has ended.
    #[expect(
        clippy::box_collection,
        reason = "few pods have claims: one word where there are none"
    )]
    pub(crate) claims: Option<Box<Vec<ClaimUse>>>,
    /// What only pods of ours have; `None`: the pod is foreign.
    pub(crate) own: Option<Box<Own>>,
}

/// Answers that are needed of every pod again and again. They are kept here because [`Own`] is
/// large and elsewhere in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Nothing that the pod says of itself forbids placing it: it has no gates and no problems,
    /// names one group at most, and leaves the choice of its node to nobody else.
    pub(crate) ready: bool,
    /// The pod names a sub-group.
    pub(crate) in_sub_group: bool,
    /// A Job controls the pod, and the pod names no group: only the Job says whether it is part of
    /// a gang.
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
    /// The pod has no node.
    Waiting,
    /// We have chosen this node for the pod and taken the room there; the API server has not
    /// confirmed it yet.
    Assumed(NodeId),
    /// The API server says that the pod is bound to this node.
    Bound(NodeId),
    /// The pod has ended and takes no room.
    Ended {
        /// Whether the pod ended well.
        succeeded: bool,
    },
}

impl Stage {
    /// The node on which a pod in this stage takes room.
    pub(crate) fn node(self) -> Option<NodeId> {
        match self {
            Self::Assumed(node) | Self::Bound(node) => Some(node),
            Self::Waiting | Self::Ended { .. } => None,
        }
    }

    /// Whether the API server says that the pod has a node.
    pub(crate) fn is_bound(self) -> bool {
        matches!(self, Self::Bound(_))
    }
}

/// The part of a pod's record that only pods of ours have.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) gang: Option<GangId>,
    /// kube-scheduler asks to bind the pod.
    pub(crate) extended: bool,
    /// The pod is extended, and the engine chooses its node: see
    /// [`PodFacts::is_planned`](crate::facts::PodFacts::is_planned).
    pub(crate) planned: bool,
    /// kube-scheduler does not look at the pod yet, because of the gate that the engine lifts.
    pub(crate) is_shut: bool,
    /// The implied labels of the pod, a bit each.
    pub(crate) implied_labels: u16,
    pub(crate) pod_group: Option<Box<str>>,
    pub(crate) sub_group: Option<Box<str>>,
    pub(crate) queue: Option<Box<str>>,
    pub(crate) native_group: Option<Box<str>>,
    pub(crate) owner: Option<OwnerReference>,
    pub(crate) deployment: Option<Box<str>>,
    pub(crate) hints: GangHints,
    /// The gates that hold the pod back: all but the one that the engine lifts itself.
    pub(crate) gates: Vec<Box<str>>,
    /// Where the container that asks for cards stands among the others.
    pub(crate) card_entries: CardEntries,
    pub(crate) problems: Vec<Problem>,
    /// Labels and annotations under `gpu-batch.io` that mean nothing on this pod.
    pub(crate) unknown_keys: Vec<Problem>,
    /// The node that the API server has as the pod's nominated one.
    pub(crate) nominated: Option<Box<str>>,
    pub(crate) bound_queue: Option<Box<str>>,
    /// The minima that the pod was placed for, from its gang's down to its leaf's.
    pub(crate) bound_minima: Box<[u32]>,
    /// When the pod was bound, or at the latest when it started, if the API server has said so.
    pub(crate) bound_ms: Option<UnixMs>,
    /// The API server says when the pod was bound. Otherwise `bound_ms` is when it started.
    pub(crate) is_binding_told: bool,
    /// The pod's gang is not to evict or move others for it.
    pub(crate) never_preempts: bool,
    /// The condition `PodScheduled=False` that the pod carries, as far as we know.
    pub(crate) unscheduled: Option<ScheduledCondition>,
    /// When we last wrote the condition `PodScheduled=False`; 0: never. It is kept here because it
    /// goes with the pod.
    pub(crate) condition_ms: UnixMs,
    /// What the pod counts for in its queue; `None`: it counts in no queue.
    pub(crate) account: Option<Account>,
    /// The sentence about the last binding of the pod that was refused, has failed more than once,
    /// or waits for volumes.
    pub(crate) failure: Option<Box<str>>,
    /// Nothing has failed: `failure` says that volumes are being made.
    pub(crate) prepares: bool,
}

/// What a pod counts for in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) queue: QueueId,
    pub(crate) demand: Demand,
    pub(crate) preemptible: bool,
    /// Whether the pod has a place, so that its demand is allocated and not only asked for.
    pub(crate) allocated: bool,
    /// Whether the pod has a place that it is leaving.
    pub(crate) leaving: bool,
}

impl Pod {
    /// Whether the pod says that no other pod is to be evicted for it.
    pub(crate) fn never_preempts(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.never_preempts)
    }

    /// The order in which members of a gang are taken: by priority, age and name.
    pub(crate) fn order_in_gang(&self, other: &Self) -> Ordering {
        let key = |pod: &Self| (Reverse(pod.priority), pod.created_ms);
        let order = key(self).cmp(&key(other));
        order.then_with(|| self.name.cmp(&other.name))
    }

    /// The gang that the pod is a member of.
    pub(crate) fn gang(&self) -> Option<GangId> {
        self.own.as_ref()?.gang
    }

    /// Whether kube-scheduler chooses the node of the pod, which is one of ours.
    pub(crate) fn is_chosen_by_kube_scheduler(&self) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| own.is_chosen_elsewhere())
    }

    /// Whether the pod is one of ours that kube-scheduler asks to bind, to the node that the engine
    /// has chosen.
    pub(crate) fn is_planned(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.planned)
    }

    /// Whether the volumes of the pod are made ready before it is bound. kube-scheduler does that
    /// for pods that it asks to bind.
    pub(crate) fn is_prepared(&self) -> bool {
        self.own.as_ref().is_some_and(|own| !own.extended)
    }

    /// Whether another scheduler chooses the node of the pod.
    pub(crate) fn is_chosen_elsewhere(&self) -> bool {
        self.own
            .as_ref()
            .is_none_or(|own| own.is_chosen_elsewhere())
    }

    /// The owner that controls the pod.
    pub(crate) fn owner(&self) -> Option<&OwnerReference> {
        self.own.as_ref()?.owner.as_ref()
    }

    /// What the pod counts for in its queue.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.own.as_ref()?.account.as_ref()
    }

    /// Whether the pod has a place and is to keep it.
    pub(crate) fn stays(&self) -> bool {
        self.stage.node().is_some() && !self.deleting && !self.leaving
    }

    /// When the pod was bound; a pod that does not say it has just been.
    pub(crate) fn bound_ms(&self, now_ms: UnixMs) -> UnixMs {
        let bound_ms = self.own.as_ref().and_then(|own| own.bound_ms);
        bound_ms.unwrap_or(now_ms).min(now_ms)
    }

    /// When the work of the pod was last saved; `None`: never.
    pub(crate) fn checkpoint_ms(&self, now_ms: UnixMs) -> Option<UnixMs> {
        let checkpoint_ms = self.own.as_ref()?.hints.last_checkpoint_ms?;
        Some(checkpoint_ms.min(now_ms))
    }

    /// How long the pod has worked since its last checkpoint or its start: what an eviction loses.
    pub(crate) fn unsaved_ms(&self, now_ms: UnixMs) -> u64 {
        let saved_ms = self.checkpoint_ms(now_ms).unwrap_or(0);
        now_ms.saturating_sub(self.bound_ms(now_ms).max(saved_ms))
    }

    pub(crate) fn reference(&self) -> PodReference {
        PodReference {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid,
        }
    }

    /// The pod as the object of a Kubernetes event.
    pub(crate) fn object(&self) -> ObjectReference {
        Kind::Pod.reference(&self.namespace, &self.name, self.uid)
    }

    /// Why the binding of the pod takes long, or has failed, while the pod is assumed on a node.
    pub(crate) fn failure(&self) -> Option<&str> {
        let assumed = matches!(self.stage, Stage::Assumed(_));
        self.own.as_ref().filter(|_| assumed)?.failure.as_deref()
    }

    /// Whether the pod waits, and nothing about the pod itself forbids placing it now.
    pub(crate) fn can_be_placed(&self, now_ms: UnixMs) -> bool {
        self.could_be_placed() && self.retry_at_ms <= now_ms
    }

    /// Whether the pod waits, and nothing about the pod itself forbids placing it, except perhaps
    /// the pause after a refused binding.
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
            ready: groups <= 1
                && self.gates.is_empty()
                && self.problems.is_empty()
                && !self.is_chosen_elsewhere(),
            in_sub_group: self.sub_group.is_some(),
            needs_job: groups == 0 && self.job().is_some(),
        }
    }

    /// Whether kube-scheduler chooses the node of the pod.
    pub(crate) fn is_chosen_elsewhere(&self) -> bool {
        self.extended && !self.planned
    }

    /// Whether kube-scheduler tells why the pod waits.
    pub(crate) fn is_told_elsewhere(&self) -> bool {
        self.extended && !self.is_shut
    }

    /// The Job that controls the pod.
    pub(crate) fn job(&self) -> Option<Uid> {
        let owner = self.owner.as_ref()?;
        (&*owner.kind == "Job").then_some(owner.uid)
    }
}
