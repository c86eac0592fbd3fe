//! What a queue says, and Namespaces and PriorityClasses with it.

use super::status::PastUse;
use super::{Amount, Labels, MatchOperator, PlacementChoice, Problem, Uid, UnixMs};
use alloc::{boxed::Box, vec::Vec};

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
    /// `spec.priority`: between siblings, over quota; higher first, strictly.
    pub priority: i32,
    /// `spec.resources`.
    pub resources: Vec<QueueResource>,
    /// `spec.preemptMinRuntime`; `None`: the parent's.
    pub preempt_min_runtime_ms: Option<u64>,
    /// `spec.reclaimMinRuntime`; `None`: the parent's.
    pub reclaim_min_runtime_ms: Option<u64>,
    /// `spec.placement`; what it does not say is the parent's.
    pub placement: PlacementChoice,
    /// `spec.namespaceSelector`; `None`: all namespaces.
    pub namespace_selector: Option<LabelSelector>,
    /// `spec.closed`: admits nothing new.
    pub closed: bool,
    /// `status.pastUse`: what the scheduler has written of its past use; `None`: nothing.
    pub past_use: Option<PastUse>,
    /// What could not be read or contradicts itself; the queue is not Ready with `InvalidResources`
    /// (or `InvalidSpec`) while there is any.
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
    /// Guaranteed, in base units.
    pub quota: Amount,
    /// Never exceeded, in base units; `None`: no limit.
    pub limit: Option<Amount>,
    /// Share of what is over quota.
    pub weight: u16,
}

/// A selector over labels: all of it must hold; the empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// `matchLabels`.
    pub match_labels: Labels,
    /// `matchExpressions`; `Gt` and `Lt` do not occur.
    pub match_expressions: Vec<SelectorRequirement>,
}

/// One requirement of a [`LabelSelector`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorRequirement {
    /// The label.
    pub key: Box<str>,
    /// How the values are compared.
    pub operator: MatchOperator,
    /// The values.
    pub values: Vec<Box<str>>,
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
    /// All labels, as far as there may be.
    pub labels: Labels,
    /// What could not be read.
    pub problems: Vec<Problem>,
}
