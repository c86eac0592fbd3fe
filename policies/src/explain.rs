//! Why a gang waits: in a sentence for its status, and taken apart for `gpu-batch explain`.
//!
//! A sentence is made when a gang is refused (`words`). All else is worked out when somebody asks,
//! from `&ClusterState` alone: nothing that is explained can change a decision, the answer depends
//! on the state and not on its history, and the work is bounded by the nodes and the gangs.
//!
//! The place of a gang is found in the line of its queue (`line`), and the order of the queues is
//! computed once more by the demand that the planning loop itself compares. What would help is said
//! last (`advice`).

mod advice;
mod held;
mod labels;
mod line;
mod room;
mod shapes;
mod words;

pub(crate) use advice::{Ends, Tried, remedies};
pub(crate) use held::{Held, held};
pub(crate) use line::standing;
pub(crate) use room::{Missing, level, shortage};
pub(crate) use shapes::told_apart;
pub(crate) use words::{area_name, asks, model_limits, refusal};

pub use crate::queues::{Claim, DecidedBy, DominantShare, Level, QuotaClaim, Sibling};

use crate::facts::{Amount, UnixMs};
use crate::reason::Reason;
use crate::report::PodReport;
use crate::status::{MemberCounts, Phase};
use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;

/// The object of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A gang: `NS/NAME` of a PodGroup; `NS/job/NAME` or `NS/pod/NAME` of an implicit gang.
    Gang(&'a str),
    /// A pod of ours, `NS/NAME`: its gang is explained.
    Pod(&'a str),
}

/// There is nothing of that name: a sentence, with what may have been meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound(pub String);

impl fmt::Display for NotFound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl core::error::Error for NotFound {}

/// Why a gang waits, what is missing, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The name of the gang.
    pub gang: String,
    /// The pod that was asked about.
    pub pod: Option<PodReport>,
    /// The queue that it names, existing or not.
    pub queue: Box<str>,
    /// Its phase.
    pub phase: Phase,
    /// Its members, by what has become of them.
    pub members: MemberCounts,
    /// How many more members must get a place before it runs; 0: it runs, and what waits is
    /// surplus.
    pub needed: u32,
    /// Why it waits; `None`: nothing of it waits.
    pub reason: Option<Reason>,
    /// The reason as a sentence.
    pub message: String,
    /// How sure it is that there is no place; `None` where it waits for something else.
    pub proof: Option<Proof>,
    /// How near its members come to fit together, where they are of several shapes or sub-groups.
    pub together: Option<Together>,
    /// The shortages on nodes: an entry for each shape of its members.
    pub shortages: Vec<Shortage>,
    /// The bound of a queue that it would exceed.
    pub excess: Option<ExcessReport>,
    /// Its place in the order; `None` while something keeps it out of it.
    pub standing: Option<Standing>,
    /// What would let it start, a sentence each, the nearest first.
    pub remedies: Vec<String>,
    /// What else its owner should know, a sentence each: it holds nothing up.
    pub notes: Vec<String>,
}

/// How sure a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// There is no place.
    Proved,
    /// None was found within the bound of the search; there may be one.
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

/// How many members of several shapes or sub-groups find a place together, where it comes nearest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// Within what the gang must be: the name of a level, `node`, or `cluster`.
    pub level: Box<str>,
    /// The domain or node that comes nearest; `None`: the level is the cluster.
    pub domain: Option<String>,
    /// How many members are needed.
    pub need: u64,
    /// How many of them have a place together. It is possible; whether more is, see `proved`.
    pub placed: u64,
    /// No way to place them leaves out fewer.
    pub proved: bool,
    /// GPUs that those ask for which have no place.
    pub gpus_short: Amount,
    /// Those which have no place.
    pub left: Vec<LeftOut>,
}

impl Together {
    /// How many members have no place.
    #[must_use]
    pub fn members_short(&self) -> u64 {
        self.need - self.placed
    }
}

/// Members of one shape, and of one sub-group where there are some, that have no place beside the
/// others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The sub-group by path.
    pub sub_group: Option<String>,
    /// How many members of the sub-group, or of the gang if it has none, are needed.
    pub need: u64,
    /// How many of this shape have no place.
    pub members: u64,
    /// What one of them asks for, in words that tell the shapes of the gang apart.
    pub asks: String,
    /// GPUs of all of them.
    pub gpus: Amount,
    /// The level of which the sub-group, or one above it, requires one domain.
    pub level: Option<Box<str>>,
    /// The domain in which others of that group have their places.
    pub domain: Option<String>,
}

/// How much room the members of one shape lack in the domain that comes nearest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The sub-groups that they are members of, by path: `slices/a`. Several lack the same, each
    /// for itself. Empty: members of the whole gang.
    pub sub_groups: Vec<String>,
    /// The sub-groups that require one domain of the level. Empty: the gang does, or nobody.
    pub required_by: Vec<String>,
    /// What one member asks for, by resource, in base units.
    pub requests: Vec<(Box<str>, Amount)>,
    /// What of it matters, in words: its scarcest resource, and what most nodes have too little of:
    /// `8 nvidia.com/gpu and 600Gi memory`.
    pub asks: String,
    /// The labels that its nodes must have: `zone=a or b`.
    pub selects: Vec<String>,
    /// A sentence for each resource that it asks for and no node has.
    pub unknown_resources: Vec<String>,
    /// A sentence for each label that it insists on and no node has.
    pub unknown_labels: Vec<String>,
    /// A sentence about a level down to that one whose label no node has, which makes each node a
    /// domain of its own.
    pub unlabelled_level: Option<String>,
    /// The limits on GPU models that leave fewer GPUs than these members ask for, in words.
    pub model_limits: Option<String>,
    /// Within what they must fit together: the name of a level, `node`, or `cluster`.
    pub level: Box<str>,
    /// The domain or node that comes nearest; `None`: the level is the cluster, or has none.
    pub domain: Option<String>,
    /// How many domains of the level there are for them.
    pub domains: u32,
    /// How many of these have room for all of them.
    pub domains_with_room: u32,
    /// How many members must be placed; of several sub-groups, how many of each.
    pub need: u64,
    /// How many fit there now.
    pub fits: u64,
    /// How many would fit in the best domain of the level if all nodes were empty.
    pub fits_empty: u64,
    /// How many fit in the whole cluster now, wherever they are.
    pub fits_anywhere: u64,
    /// GPUs that the members ask for which do not fit.
    pub gpus_short: Amount,
    /// The nodes of that domain.
    pub nearest: NodeCounts,
    /// All nodes.
    pub all: NodeCounts,
    /// The gangs that hold the missing resource in that domain; the first to end comes first.
    pub holders: Vec<Holder>,
}

impl Shortage {
    /// How many members do not fit.
    #[must_use]
    pub fn members_short(&self) -> u64 {
        self.need.saturating_sub(self.fits)
    }
}

/// What nodes say to a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// How many there are.
    pub nodes: u32,
    /// How many have room for at least one.
    pub with_room: u32,
    /// Why the others have none, most nodes first.
    pub refused: Vec<Refused>,
}

/// Nodes that refuse a member for the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The predicate of the sentence about these nodes: `had insufficient nvidia.com/gpu`.
    pub because: String,
    /// How many they are.
    pub nodes: u32,
    /// How many members the free amounts of those would hold that nothing else refuses; 0 where it
    /// is an amount that is missing.
    pub would_hold: u64,
    /// The nodes are closed to new pods for what is wrong or going on there, and not for what these
    /// pods are or ask for: a cordon, say.
    pub closed: bool,
}

/// What so many nodes did, in words: `1 was unschedulable` of `were unschedulable`.
#[must_use]
pub fn nodes_that(nodes: u32, because: &str) -> String {
    match because.strip_prefix("were ") {
        Some(rest) if nodes == 1 => alloc::format!("1 was {rest}"),
        _ => alloc::format!("{nodes} {because}"),
    }
}

/// A gang that holds what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its name; `None`: pods of other schedulers.
    pub gang: Option<String>,
    /// How much it holds there of what is scarcest, in words: `8 nvidia.com/gpu`.
    pub holds: String,
    /// On how many nodes.
    pub nodes: u32,
    /// How many members would fit there if it ended, as far as what is scarcest goes.
    pub makes_room_for: u64,
    /// When it ends, if it was said how long it runs and that has not passed.
    pub ends_ms: Option<UnixMs>,
}

/// A bound of a queue that a gang would exceed. Amounts are in base units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcessReport {
    /// Whose bound.
    pub queue: Box<str>,
    /// `resource` or `resource@product`.
    pub resource: Box<str>,
    /// `limit`, or `quota`, which non-preemptible gangs do not exceed.
    pub bound: &'static str,
    /// How much is allowed.
    pub allowed: Amount,
    /// How much is held already; of a quota by non-preemptible gangs alone.
    pub held: Amount,
    /// How much is asked for on top.
    pub asked: Amount,
}

/// The place of a gang in the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its place in the line of its queue; 1 is the first.
    pub position: u32,
    /// How long the line is.
    pub length: u32,
    /// Its rank, by which the line is ordered.
    pub rank: Rank,
    /// Those right before it, the nearest first.
    pub before: Vec<Ahead>,
    /// Where its queue and those above it stand among their siblings, the highest first.
    pub levels: Vec<QueueStanding>,
    /// The gangs before it that new room may help.
    pub rivals: Rivals,
}

/// The gangs before a gang that may use new room: no room helps those that a bound of a queue keeps
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rivals {
    /// How many gangs of its queue.
    pub gangs: u32,
    /// Where its queue and those above it stand among the siblings that send such a gang.
    pub levels: Vec<Level>,
}

/// Where a queue stands among its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStanding {
    /// Its place, and the sibling that is served right before it.
    pub level: Level,
    /// The gang that this sibling would send, and why that waits. One that was refused is passed
    /// over until something helps it.
    pub sent_before: Option<(String, Reason)>,
}

/// What orders the gangs of one queue: each line decides where those before are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// A part of it is bound: it comes before everything else in all queues.
    pub unfinished: bool,
    /// It replaces lost members of a running gang.
    pub replacement: bool,
    /// The higher, the earlier.
    pub priority: i32,
    /// It runs, and what waits is beyond its minimum.
    pub surplus: bool,
    /// The older, the earlier.
    pub created_ms: UnixMs,
}

/// A gang that stands before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// Its name.
    pub gang: String,
    /// What puts it before: `it is older`.
    pub because: &'static str,
    /// Why it waits itself.
    pub reason: Reason,
}
