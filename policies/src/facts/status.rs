//! What users see of gangs and queues: in the objects' status, in `plan` and in `queues`.

use super::{Amount, UnixMs};
use crate::reason::Reason;
use alloc::{boxed::Box, vec::Vec};

/// The phase of a gang; derived from its pods, never latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Below its minimum.
    Pending,
    /// Binding requests are in flight.
    Binding,
    /// The minimum is met.
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
    /// The minimum.
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
    /// The phase.
    pub phase: Phase,
    /// The members.
    pub members: MemberCounts,
    /// Why it waits; `None` once the minimum is met.
    pub reason: Option<Reason>,
    /// A sentence for people: why it waits, or that it runs.
    pub message: Box<str>,
    /// Condition `PodGroupScheduled`: the minimum is met (or was, for an ended gang).
    pub scheduled: bool,
    /// When `scheduled` became as it is, in whole seconds.
    pub scheduled_since_ms: UnixMs,
    /// Condition `Stale`; `None` before the minimum was first met.
    pub staleness: Option<Staleness>,
}

/// The condition `Stale` of a gang that has had its minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staleness {
    /// It has lost members and is below its minimum.
    pub stale: bool,
    /// When `stale` became as it is, in whole seconds.
    pub since_ms: UnixMs,
}

/// Why a queue is not Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueFault {
    /// Its parent does not exist.
    ParentNotFound,
    /// It is its own ancestor.
    Cycle,
    /// An ancestor is not Ready.
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

/// Amounts by `resource` or `resource@product`, sorted, in base units.
pub type GovernedAmounts = Vec<(Box<str>, Amount)>;

/// The status of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// `metadata.generation` of the spec that was looked at.
    pub observed_generation: i64,
    /// `None`: Ready. Otherwise why not, and a sentence for people.
    pub fault: Option<(QueueFault, Box<str>)>,
    /// Of a Ready queue, a sentence about entries that count what no node has.
    pub note: Option<Box<str>>,
    /// When it became Ready, or ceased to be.
    pub ready_since_ms: UnixMs,
    /// What its gangs hold.
    pub allocated: GovernedAmounts,
    /// The amounts that its gangs hold and ask for.
    pub requested: GovernedAmounts,
    /// What fairness would give it now.
    pub fair_share: GovernedAmounts,
    /// Its dominant share of the cluster, in millionths.
    pub dominant_share_millionths: u64,
    /// Its average past use; `None` where the past does not count or there is none.
    pub past_use: Option<PastUse>,
    /// Gangs that wait.
    pub pending: u32,
    /// Gangs whose minimum is met.
    pub running: u32,
}

/// What a queue has used on average, the past counting ever less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastUse {
    /// Up to when it is counted.
    pub at_ms: UnixMs,
    /// By `resource` or `resource@product`, sorted, in thousandths of base units.
    pub averages: Vec<(Box<str>, u64)>,
}
