//! What users see of gangs and queues: in the objects' status, in `plan` and in `queues`.

use super::{Amount, UnixMs};
use crate::reason::Reason;
use alloc::{boxed::Box, vec::Vec};

/// The phase of a gang; derived from its pods, never latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The gang is below its minimum.
    Pending,
    /// Members are being bound.
    Binding,
    /// The gang has its minimum.
    Running,
    /// All members ended, none failed.
    Succeeded,
    /// All members ended, at least one failed.
    Failed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Binding,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
    ];

    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Binding => "Binding",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

/// How many members a gang has, by what has become of them. Bound includes running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemberCounts {
    /// The gang's minimum.
    pub expected: u32,
    /// Pods that exist.
    pub created: u32,
    /// Pods with a node that have not ended.
    pub bound: u32,
    /// Pods that run.
    pub running: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Pods that ended badly.
    pub failed: u32,
}

/// The status of a gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodGroupStatus {
    /// `metadata.generation` of the spec that was looked at.
    pub observed_generation: i64,
    /// How far the gang has come.
    pub phase: Phase,
    /// The number of members by what has become of them.
    pub members: MemberCounts,
    /// Why the gang waits; `None` once the minimum is met.
    pub reason: Option<Reason>,
    /// A sentence for people: why the gang waits, or that it runs.
    pub message: Box<str>,
    /// Condition `PodGroupScheduled`: the minimum is met (or was, for an ended gang).
    pub scheduled: bool,
    /// When `scheduled` became as it is, in whole seconds.
    pub scheduled_since_ms: UnixMs,
    /// Condition `Stale`; `None` before the minimum was first met.
    pub staleness: Option<Staleness>,
    /// Whether the minimum is within the quota of the queue, so that no other queue can reclaim it;
    /// `None`: the gang holds nothing, or it was not looked at yet.
    pub protected: Option<bool>,
    /// When the gang is promised to start at the latest, in whole seconds; `None`: it was promised
    /// nothing.
    pub estimated_start_ms: Option<UnixMs>,
}

/// The condition `Stale` of a gang that has had its minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staleness {
    /// The gang has lost members and is below its minimum.
    pub stale: bool,
    /// When `stale` became as it is, in whole seconds.
    pub since_ms: UnixMs,
}

/// Why a queue is not Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueFault {
    /// The queue's parent does not exist.
    ParentNotFound,
    /// The queue is its own ancestor.
    Cycle,
    /// An ancestor of the queue is not Ready.
    ParentNotReady,
    /// An entry of `spec.resources` makes no sense.
    InvalidResources,
    /// Another field makes no sense.
    InvalidSpec,
}

impl QueueFault {
    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ParentNotFound => "ParentNotFound",
            Self::Cycle => "Cycle",
            Self::ParentNotReady => "ParentNotReady",
            Self::InvalidResources => "InvalidResources",
            Self::InvalidSpec => "InvalidSpec",
        }
    }
}

/// Amounts by `resource` or `resource@product`, sorted, in base units (see [`Amount`]): of GPUs, in
/// thousandths of a card.
pub type GovernedAmounts = Vec<(Box<str>, Amount)>;

/// The status of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// `metadata.generation` of the spec that was looked at.
    pub observed_generation: i64,
    /// Why the queue is not Ready, and a sentence for people; `None`: the queue is Ready.
    pub fault: Option<(QueueFault, Box<str>)>,
    /// Of a Ready queue, a sentence about entries that count what no node has.
    pub note: Option<Box<str>>,
    /// When the queue became Ready, or ceased to be.
    pub ready_since_ms: UnixMs,
    /// The amounts that the queue's gangs hold, in base units.
    pub allocated: GovernedAmounts,
    /// The amounts that the queue's gangs hold and ask for, in base units.
    pub requested: GovernedAmounts,
    /// The queue's fair share, in base units.
    pub fair_share: GovernedAmounts,
    /// The queue's dominant share, in millionths of what is divided.
    pub dominant_share_millionths: u64,
    /// The queue's average past use; `None`: the past does not count, or the queue has none.
    pub past_use: Option<PastUse>,
    /// How long gangs of the queue have run; `None`: none has ended well.
    pub runtimes: Option<LearnedRuntimes>,
    /// How many gangs wait.
    pub pending: u32,
    /// How many gangs have their minimum.
    pub running: u32,
}

/// How long gangs of a queue that ended well have run, in whole seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearnedRuntimes {
    /// The runtimes of the last gangs of the queue, the newest last.
    pub seconds: Vec<u32>,
    /// The runtimes by owner; the owner whose gang ended last comes last.
    pub owners: Vec<OwnerRuntimes>,
}

/// How long the gangs of one owner have run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerRuntimes {
    /// What makes gangs one after the other: the name of the gangs without its counted or
    /// generated end, such as `vision/job/nightly`.
    pub owner: Box<str>,
    /// The runtimes of the last gangs of the owner, in whole seconds, the newest last.
    pub seconds: Vec<u32>,
}

/// Where an expected runtime comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeSource {
    /// The gang says so: `expectedRuntime`, the annotation for it, or `activeDeadlineSeconds`.
    Said,
    /// Earlier gangs of the gang's owner ran so long.
    Owner,
    /// Earlier gangs of the gang's queue ran so long.
    Queue,
}

impl RuntimeSource {
    /// All sources, the best first.
    pub const ALL: [Self; 3] = [Self::Said, Self::Owner, Self::Queue];

    /// The word of metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Owner => "owner",
            Self::Queue => "queue",
        }
    }

    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Said => "Said",
            Self::Owner => "Owner",
            Self::Queue => "Queue",
        }
    }
}

/// What a queue has used on average; older use counts less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastUse {
    /// Up to when use is counted.
    pub at_ms: UnixMs,
    /// The average amounts by `resource` or `resource@product`, sorted, in thousandths of base
    /// units; of GPUs, in thousandths of a card.
    pub averages: Vec<(Box<str>, u64)>,
}
