//! Why a gang waits, taken apart for `gpu-batch explain`: the words shared with the shells.
//! `tell::explain` works out explanations.

pub use crate::queues::{ComparedBy, DecidedBy, DecidingQuota, DominantShare, Level, Sibling};

use crate::facts::{Amount, RuntimeSource, UnixMs};
use crate::reason::Reason;
use crate::report::PodReport;
use crate::status::{MemberCounts, Phase};
use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;

/// What is to be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A gang: `NS/NAME` of a PodGroup; `NS/job/NAME` or `NS/pod/NAME` of an implicit gang.
    Gang(&'a str),
    /// A pod of ours, `NS/NAME`: its gang is explained.
    Pod(&'a str),
}

/// There is no gang or pod of the name that was asked for: a sentence, with what may have been
/// meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound(pub String);

impl fmt::Display for NotFound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl core::error::Error for NotFound {}

/// Why a gang waits, what it lacks, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The name of the gang.
    pub gang: String,
    /// The pod that was asked about; `None`: the gang was.
    pub pod: Option<PodReport>,
    /// The queue that the gang names, existing or not.
    pub queue: Box<str>,
    /// The gang's phase.
    pub phase: Phase,
    /// The gang's members, by what has become of them.
    pub members: MemberCounts,
    /// How many more members must get a place before the gang runs; 0: it runs, and waiting members
    /// are surplus.
    pub needed: u32,
    /// Whether no other queue can reclaim the gang's minimum: it is within the quota of its queue,
    /// or is not preemptible; `None`: it holds nothing, or it was not looked at yet.
    pub protected: Option<bool>,
    /// Why the gang waits; `None`: no member waits.
    pub reason: Option<Reason>,
    /// The reason as a sentence.
    pub message: String,
    /// How sure it is that there is no place; `None`: the gang waits for something else.
    pub proof: Option<Proof>,
    /// How near the members come to fit together, where they are of several shapes or sub-groups.
    pub together: Option<Together>,
    /// The shortages of room: an entry for each shape of the members.
    pub shortages: Vec<Shortage>,
    /// The bound of a queue that the gang would exceed; `None`: no bound is in the way.
    pub excess: Option<ExcessReport>,
    /// The gang's place in the order; `None` while something keeps the gang out of the line.
    pub standing: Option<Standing>,
    /// When the gang is expected to start; `None`: it does not wait for room alone, or waits for no
    /// more than its right to take room from others, or there are no reservations.
    pub expected_start: Option<ExpectedStart>,
    /// The gangs that would have to give the gang room, or why none can; `None`: the gang does not
    /// wait for room.
    pub eviction: Option<Result<EvictionPlan, NoEvictionPlan>>,
    /// The queues and gangs that could take the gang's own room; `None`: the gang does not run.
    pub takers: Option<Takers>,
    /// What would let the gang start, a sentence each, the nearest first.
    pub remedies: Vec<String>,
    /// What else the gang's owner should know, a sentence each; nothing of this holds the gang up.
    pub notes: Vec<String>,
}

/// When a gang is expected to start, if all goes as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedStart {
    /// When there is room for the gang at the latest; `None`: that cannot be said.
    pub at_ms: Option<UnixMs>,
    /// How sure the time is.
    pub standing: StartStanding,
    /// Whose ends make the room, the first to end first.
    pub ends: Vec<ExpectedEnd>,
    /// Gangs that run or are promised to start, and of whose runtime nothing is known, at most
    /// three: first those whose ends would let the gang start. Empty if it lacks room, and no end
    /// that lets it start was found.
    pub endless: Vec<String>,
    /// How many such gangs there are; 0 if none is named.
    pub endless_count: usize,
}

/// How sure an expected start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartStanding {
    /// The gang has a reservation: no other gang starts where that delays it.
    Promised,
    /// The room is held for the gang, and pods are leaving it.
    Held,
    /// Gangs may still go before it.
    Guessed,
}

/// Room that is expected to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedEnd {
    /// The name of the gang that gives the room; of a pod without a gang, the pod's.
    pub gang: String,
    /// When the room is expected.
    pub at_ms: UnixMs,
    /// Why it is expected then.
    pub cause: EndCause,
}

/// Why room is expected to come at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// A gang that runs is expected to end.
    Runs {
        /// Where the expectation comes from.
        source: RuntimeSource,
        /// The gang was expected to end before now, and has not.
        is_overdue: bool,
    },
    /// A gang is promised to start, and expected to end after that.
    WillRun {
        /// Where the expectation comes from.
        source: RuntimeSource,
    },
    /// Pods are being deleted, and their grace periods end.
    Leaves,
}

/// Evictions that would make room for a gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionPlan {
    /// By what right pods would be evicted.
    pub action: EvictionAction,
    /// The pods, by name; empty: the room comes free anyway.
    pub evict: Vec<EvictedPod>,
    /// Where the members of the gang would be: pods and their nodes.
    pub places: Vec<(String, Box<str>)>,
    /// Where evicted pods would be placed again.
    pub moved: Vec<(String, Box<str>)>,
    /// How many gangs would lose their minimum.
    pub gangs_broken: u64,
    /// The GPU-seconds of work since the last checkpoints, or since the starts.
    pub gpu_seconds_lost: u64,
    /// Whether it is proved that no plan by this right costs less.
    pub is_optimal: bool,
    /// How many gangs any plan by this right breaks, as far as is proved.
    pub gangs_broken_at_least: u64,
    /// When the `preemptionDelay` of the gang ends, before which no pod is evicted for it; `None`:
    /// the delay has ended, or no pod has to be evicted.
    pub from_ms: Option<UnixMs>,
}

/// By what right pods are evicted for a gang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionAction {
    /// No gang is evicted: the room is being left.
    Free,
    /// Gangs move: they have another place.
    Consolidate,
    /// Queues give what they hold beyond their quotas or fair shares.
    Reclaim,
    /// Gangs of lower priority of the queue give way.
    Preempt,
    /// Several of these together.
    Mixed,
}

impl EvictionAction {
    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "Free",
            Self::Consolidate => "Consolidate",
            Self::Reclaim => "Reclaim",
            Self::Preempt => "Preempt",
            Self::Mixed => "Mixed",
        }
    }
}

/// A pod that would be evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictedPod {
    /// `NS/NAME`.
    pub pod: String,
    /// The pod's gang.
    pub gang: String,
    /// The queue that holds the pod.
    pub queue: Box<str>,
}

/// No evictions that the rules allow make room for a gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoEvictionPlan {
    /// A sentence that says why.
    pub message: String,
    /// Whether this is proved.
    pub is_proved: bool,
    /// When the next gang will have run for long enough to be evicted; `None`: time alone changes
    /// nothing.
    pub next_ms: Option<UnixMs>,
    /// The quotas with which the gang's queue could claim what the gang asks for, in base units, by
    /// `resource` or `resource@product`; empty: that is not what is missing.
    pub more_quota: Vec<(Box<str>, Amount)>,
}

/// The queues and gangs that could take the room of a running gang, and from when on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Takers {
    /// The gang may be evicted for others at all.
    pub preemptible: bool,
    /// From when on other queues could reclaim the gang's minimum; `None`: they cannot, as things
    /// are.
    pub reclaim_from_ms: Option<UnixMs>,
    /// From when on gangs of higher priority of the gang's queue could preempt it; `None`: none
    /// can.
    pub preempt_from_ms: Option<UnixMs>,
    /// From when on the gang could be moved to other nodes so that another one can start; `None`:
    /// it stays where it is.
    pub move_from_ms: Option<UnixMs>,
    /// How many members the gang has beyond its minimum, which neither quota nor time protects.
    pub surplus: u32,
    /// All of this in words, a sentence each.
    pub sentences: Vec<String>,
}

/// How sure a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// There is no place.
    Proved,
    /// No place was found within the steps that a search may take; there may be one.
    Bounded,
}

impl Proof {
    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proved => "Proved",
            Self::Bounded => "Bounded",
        }
    }
}

/// How many members of several shapes or sub-groups find a place together, in the area where most
/// do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// The level of which one domain must hold the gang: its name, `node`, or `cluster`.
    pub level: Box<str>,
    /// The domain or node where most find a place; `None`: the level is the cluster.
    pub domain: Option<String>,
    /// How many members are needed.
    pub need: u64,
    /// How many of the needed members have a place together. `proved` says whether more cannot have
    /// one.
    pub placed: u64,
    /// Whether it is proved that no way to place the members leaves out fewer.
    pub proved: bool,
    /// How many GPUs the members without a place ask for.
    pub gpus_short: Amount,
    /// The members without a place.
    pub left: Vec<LeftOut>,
}

impl Together {
    /// How many members have no place.
    #[must_use]
    pub fn members_short(&self) -> u64 {
        self.need - self.placed
    }
}

/// Members of one shape (and of one sub-group, if the gang has any) that have no place beside the
/// other members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The path of the sub-group; `None`: the gang has none.
    pub sub_group: Option<String>,
    /// How many members of the sub-group, or of the gang if it has none, are needed.
    pub need: u64,
    /// How many members of this shape have no place.
    pub members: u64,
    /// What one such member asks for, in words that tell the shapes of the gang apart.
    pub asks: String,
    /// How many GPUs all these members ask for.
    pub gpus: Amount,
    /// The level of which the sub-group, or one above it, requires one domain; `None`: neither
    /// does.
    pub level: Option<Box<str>>,
    /// The domain in which other members of that sub-group have their places.
    pub domain: Option<String>,
}

/// How much room the members of one shape lack in the domain where most of them fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The paths of the sub-groups that the members are of: `slices/a`. Each of several sub-groups
    /// has this shortage. Empty: members of the whole gang.
    pub sub_groups: Vec<String>,
    /// The paths of the sub-groups that require one domain of the level. Empty: the gang requires
    /// it, or no domain is required.
    pub required_by: Vec<String>,
    /// What one member asks for, by resource, in base units.
    pub requests: Vec<(Box<str>, Amount)>,
    /// What one member asks for, in words, of the scarcest resource and of what most nodes have too
    /// little of: `8 nvidia.com/gpu and 600Gi memory`.
    pub asks: String,
    /// The labels that a node must have for these members: `zone=a or b`.
    pub selects: Vec<String>,
    /// A sentence for each resource that a member asks for and no node has.
    pub unknown_resources: Vec<String>,
    /// A sentence for each label that the shape requires and no node has.
    pub unknown_labels: Vec<String>,
    /// A sentence about a level, this one or one above it, whose label no node has, so that each
    /// node is a domain of its own.
    pub unlabelled_level: Option<String>,
    /// A sentence for each idle node that would hold some of the members if its cards were cut into
    /// other MIG devices, or into none.
    pub other_layouts: Vec<String>,
    /// The limits on GPU models that leave fewer GPUs than these members ask for, in words.
    pub model_limits: Option<String>,
    /// The level of which one domain must hold the members: its name, `node`, or `cluster`.
    pub level: Box<str>,
    /// The domain or node where most of the members fit; `None`: the level is the cluster, or has
    /// no domain.
    pub domain: Option<String>,
    /// How many domains of the level the members may use.
    pub domains: u32,
    /// How many of these domains have room for all of the members.
    pub domains_with_room: u32,
    /// How many members must be placed; for several sub-groups, how many of each.
    pub need: u64,
    /// How many members fit in `domain` now.
    pub fits: u64,
    /// How many members would fit in the best domain of the level if all nodes were empty.
    pub fits_empty: u64,
    /// How many members fit in the whole cluster now, the level left aside.
    pub fits_anywhere: u64,
    /// How many GPUs the members that do not fit ask for.
    pub gpus_short: Amount,
    /// Whether new nodes might take these members, limits left aside: not where they must join
    /// others on one node.
    pub more_nodes_help: bool,
    /// What the nodes of `domain` say to these members.
    pub nearest: NodeCounts,
    /// What all nodes say to these members.
    pub all: NodeCounts,
    /// The gangs that hold the missing resource in `domain`; the first to end comes first.
    pub occupants: Vec<Occupant>,
    /// Room on these nodes that is kept for others, for which pods leave, or were moved.
    pub kept: Vec<KeptRoom>,
}

impl Shortage {
    /// How many members do not fit.
    #[must_use]
    pub fn members_short(&self) -> u64 {
        self.need.saturating_sub(self.fits)
    }
}

/// What nodes say to the members of one shape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many nodes have room for at least one member.
    pub with_room: u32,
    /// Why the other nodes have none, the reason of most nodes first.
    pub refused: Vec<Refused>,
}

/// Nodes that refuse a member for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The predicate of the sentence about these nodes: `had insufficient nvidia.com/gpu`.
    pub because: String,
    /// How many nodes refuse for this reason.
    pub nodes: u32,
    /// How many members would fit on those of these nodes that refuse for nothing else, by what is
    /// free there; 0 if the reason is an amount that is missing.
    pub would_hold: u64,
    /// The nodes are closed for what is wrong or going on there, for instance a cordon, whatever
    /// the pods ask for.
    pub closed: bool,
    /// They refuse because of where volumes of the pods are, or can be.
    pub for_volumes: bool,
}

/// What a number of nodes did, in words: `1 was unschedulable` for `were unschedulable`.
#[must_use]
pub fn nodes_that(nodes: u32, because: &str) -> String {
    match because.strip_prefix("were ") {
        Some(rest) if nodes == 1 => alloc::format!("1 was {rest}"),
        _ => alloc::format!("{nodes} {because}"),
    }
}

/// A gang that has what members of another gang lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// The gang's name; `None`: pods of other schedulers.
    pub gang: Option<String>,
    /// How much of the missing resource the gang holds in the domain, in words: `8 nvidia.com/gpu`.
    pub holds: String,
    /// On how many nodes the gang holds it.
    pub nodes: u32,
    /// How many more members would fit on these nodes if the gang ended, by the missing resource
    /// alone.
    pub makes_room_for: u64,
    /// When the gang ends, if its runtime was given and has not passed.
    pub ends_ms: Option<UnixMs>,
}

/// Room that no pod uses, and that is kept for another gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRoom {
    /// For which gang or pods the room is kept, in words: `the gang default/a, for which others
    /// leave`.
    pub beneficiary: String,
    /// How much of the missing resource is kept in the domain, in words: `8 nvidia.com/gpu`.
    pub amount: String,
    /// On how many nodes it is kept.
    pub nodes: u32,
    /// Until when it is kept at most; `None`: until the beneficiary is placed, or gives up.
    pub until_ms: Option<UnixMs>,
}

/// A bound of a queue that a gang would exceed. Amounts are in base units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcessReport {
    /// The queue that has the bound.
    pub queue: Box<str>,
    /// The governed key: `resource` or `resource@product`.
    pub resource: Box<str>,
    /// `limit`, or `quota`, which only gangs that are not preemptible may not exceed.
    pub bound: &'static str,
    /// How much the bound allows, in base units.
    pub allowed: Amount,
    /// How much is allocated already under the bound, in base units; under a quota, by gangs that
    /// are not preemptible.
    pub allocated: Amount,
    /// How much the gang asks for beyond what is allocated, in base units.
    pub asked: Amount,
}

/// The place of a gang in the order of all gangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The gang's place in the line of its queue; 1 is the first.
    pub position: u32,
    /// How many gangs are in the line.
    pub length: u32,
    /// The gang's rank, by which the line is ordered.
    pub rank: Rank,
    /// The gangs right before this one, the nearest first.
    pub before: Vec<Ahead>,
    /// Where the gang's queue and its ancestors stand among their siblings, the highest first.
    pub levels: Vec<QueueStanding>,
    /// The gangs before this one that new room may help.
    pub rivals: Rivals,
}

/// The gangs before a gang that may use new room. Room does not help gangs that a bound of a queue
/// keeps out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rivals {
    /// How many such gangs are in the line of the gang's queue.
    pub gangs: u32,
    /// Where the gang's queue and its ancestors stand among the siblings that send such a gang.
    pub levels: Vec<Level>,
}

/// Where a queue stands among its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStanding {
    /// The queue's place, and the sibling that is served right before it.
    pub level: Level,
    /// The gang that this sibling would send, and why that gang waits. A refused gang is passed
    /// over until something helps it.
    pub sent_before: Option<(String, Reason)>,
}

/// What orders the gangs of one queue: each field decides between gangs that are equal in the
/// fields before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// The gang is unfinished: a part of it is bound. It comes before everything else in all
    /// queues.
    pub unfinished: bool,
    /// The gang runs, and the waiting members replace lost ones.
    pub replacement: bool,
    /// The gang's priority: the higher, the earlier.
    pub priority: i32,
    /// The gang runs, and the waiting members are surplus.
    pub surplus: bool,
    /// When the gang was created: the older, the earlier.
    pub created_ms: UnixMs,
}

/// A gang that stands before another one in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The name of the gang before.
    pub gang: String,
    /// What puts the gang before: `it is older`.
    pub because: &'static str,
    /// Why the gang before waits itself.
    pub reason: Reason,
}
