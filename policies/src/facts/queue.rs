//! What a queue says, and Namespaces and PriorityClasses with it.

use super::status::{LearnedRuntimes, PastUse};
use super::{Amount, LabelSelector, Labels, PlacementChoice, Problem, Uid, UnixMs};
use alloc::{boxed::Box, vec::Vec};

/// A min-runtime that is there and cannot be read: no gang of the queue is evicted for
/// others meanwhile.
pub const UNREADABLE_MS: u64 = u64::MAX;

/// A Queue object as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.generation`, reported back as `observedGeneration`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created_ms: UnixMs,
    /// `spec.parent`; `None`: a child of the implicit root.
    pub parent: Option<Box<str>>,
    /// `spec.priority`: over quota, siblings with a higher priority come strictly first.
    pub priority: i32,
    /// `spec.resources`.
    pub resources: Vec<QueueResource>,
    /// `spec.preemptMinRuntime`; `None`: the parent's; [`UNREADABLE_MS`]: it cannot be read.
    pub preempt_min_runtime_ms: Option<u64>,
    /// `spec.reclaimMinRuntime`; `None`: the parent's; [`UNREADABLE_MS`]: it cannot be read.
    pub reclaim_min_runtime_ms: Option<u64>,
    /// `spec.placement`; the parent's where this queue does not say.
    pub placement: PlacementChoice,
    /// `spec.namespaceSelector`; `None`: all namespaces.
    pub namespace_selector: Option<LabelSelector>,
    /// `spec.closed`: the queue admits nothing new.
    pub closed: bool,
    /// `status.pastUse`: the past use of the queue, as the scheduler last wrote it; `None`: not
    /// written.
    pub past_use: Option<PastUse>,
    /// `status.runtimes`: how long gangs of the queue have run, as the scheduler last wrote it;
    /// `None`: not written.
    pub runtimes: Option<LearnedRuntimes>,
    /// `status.scheduler` names another gpu-batch, which wrote the status.
    pub is_told_by_other: bool,
    /// Labels and annotations of ours that mean nothing on a queue, each with what may have been
    /// meant.
    pub unknown_keys: Vec<Problem>,
    /// What could not be read or contradicts itself. A queue with any problem is not Ready, with
    /// `InvalidResources` or `InvalidSpec`.
    pub problems: Vec<Problem>,
}

impl QueueFacts {
    /// A queue below the root without entries, of the first generation, created at time zero.
    #[must_use]
    pub fn new(uid: Uid, name: &str) -> Self {
        Self {
            name: name.into(),
            uid,
            generation: 1,
            created_ms: 0,
            parent: None,
            priority: 0,
            resources: Vec::new(),
            preempt_min_runtime_ms: None,
            reclaim_min_runtime_ms: None,
            placement: PlacementChoice::default(),
            namespace_selector: None,
            closed: false,
            past_use: None,
            runtimes: None,
            is_told_by_other: false,
            unknown_keys: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// One entry of a queue: a resource, or one GPU model of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueResource {
    /// The resource's name.
    pub name: Box<str>,
    /// The GPU model (`nvidia.com/gpu.product` without suffixes); `None`: all models.
    pub product: Option<Box<str>>,
    /// What the queue is served first, in base units: of GPUs, thousandths of a card.
    pub quota: Amount,
    /// What the queue never exceeds, in base units; `None`: no limit.
    pub limit: Option<Amount>,
    /// The queue's weight when what is over quota is divided.
    pub weight: u16,
}

/// A PriorityClass as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityClassFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `value`.
    pub value: i32,
    /// `preemptionPolicy` is `Never`.
    pub never_preempts: bool,
}

/// A Namespace as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
    /// The labels; those beyond the bound of conversion are left out and told as a problem.
    pub labels: Labels,
    /// What could not be read.
    pub problems: Vec<Problem>,
}
