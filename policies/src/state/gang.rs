//! One gang and what it waits for.

mod tree;

pub(crate) use tree::{GroupTree, SubGroup};

use crate::facts::{
    Amount, GroupSource, PlacementChoice, PodGroupFacts, Problem, TopologyRequest, Uid, UnixMs,
};
use crate::ids::{ClassId, NodeId, PodId};
use crate::queues::{Bound, Excess, GovernedId, QueueId};
use crate::reason::Reason;
use crate::state::pod::Pod;
use crate::state::submitted::QueueNames;
use crate::status::{PodGroupStatus, Staleness};
use alloc::{boxed::Box, collections::BTreeMap, format, string::String, sync::Arc, vec::Vec};
use smallvec::SmallVec;

/// What makes pods a gang.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GangKey {
    /// A PodGroup: source, namespace, name.
    Group(GroupSource, Box<str>, Box<str>),
    /// The pods of one owner: an Indexed Job, or any owner whose pods carry `min-member`.
    Owner(Uid),
    /// The pods of all ReplicaSets of one Deployment that carry `min-member`: namespace, name.
    Deployment(Box<str>, Box<str>),
    /// A pod of its own.
    Pod(Uid),
}

impl GangKey {
    /// A number that tells gangs of one name apart: groups of two sources, pods or owners of which
    /// one is leaving.
    pub(crate) fn namesake(&self) -> u128 {
        match self {
            Self::Group(GroupSource::GpuBatch, ..) => 0,
            Self::Group(GroupSource::Native, ..) => 1,
            Self::Deployment(..) => 0,
            Self::Owner(uid) | Self::Pod(uid) => uid.0,
        }
    }
}

/// The pods of a gang: most are gangs of one.
pub(crate) type Members = SmallVec<[PodId; 4]>;

/// A gang, from the moment that anybody mentions it.
#[derive(Debug)]
pub(crate) struct Gang {
    pub(crate) key: GangKey,
    /// `NS/NAME`, `NS/job/NAME`, `NS/deployment/NAME` or `NS/pod/NAME`.
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Box<str>,
    /// The PodGroup object; `None` for implicit gangs, and for a PodGroup that only pods mention.
    pub(crate) object: Option<Box<PodGroupFacts>>,
    /// The sub-groups of its PodGroup, or what is wrong with them.
    pub(crate) tree: Result<Option<Arc<GroupTree>>, Problem>,
    /// Its pods, in no order.
    pub(crate) members: Members,
    /// The Jobs that control pods of it, or have done so.
    pub(crate) jobs: SmallVec<[Uid; 1]>,
    /// The spec that follows from its objects, as of the last look.
    pub(crate) spec: GangSpec,
    /// When we saw that it asks for something else than before.
    pub(crate) specified_ms: UnixMs,
    /// The queues under whose names it is found.
    pub(crate) named: QueueNames,
    /// For what it waits, if it does.
    pub(crate) wait: Wait,
    /// Its place in the line of its queue: as a candidate, or refused and parked.
    pub(crate) place: Option<PlaceInLine>,
    /// How it counts in its queue.
    pub(crate) tally: Option<Tally>,
    /// How far it has come since it last held nothing.
    pub(crate) start: Start,
    /// How far each sub-group has come of which a member has a place, by name.
    pub(crate) parts: BTreeMap<Box<str>, Start>,
    /// The count of bindings that were refused, and the pause that follows from it.
    pub(crate) backoff: Backoff,
    /// How many members had a place (or had succeeded) at the last look.
    pub(crate) held: u32,
    /// A member has lost its place since the minimum was last met.
    pub(crate) bereaved: bool,
    /// A member was lost and the gang has been below its minimum since then.
    pub(crate) lost_ms: Option<UnixMs>,
    /// The condition `Stale` that its status has told last.
    pub(crate) staleness: Option<Staleness>,
    /// Whether its status has said that it is scheduled, and when that last changed.
    pub(crate) scheduled: (bool, UnixMs),
    /// The status that was last handed out to be written.
    pub(crate) reported: Option<PodGroupStatus>,
    /// The fingerprint of the last try, so that an event that changes nothing about it wakes
    /// nobody.
    pub(crate) tried: u64,
    /// As of when its refusal is (see `engine::review`).
    pub(crate) judged: u64,
    /// The reason that was last announced.
    pub(crate) announced: Option<Reason>,
}

/// How far a gang has come since it last held nothing.
///
/// ```text
///              a member gets a place             the minimum is bound
///  NOT BEGUN -------------------------> UNFINISHED -----------------> COMPLETE
///   ^   |                                |    ^                         |  ^
///   |   | it is seen with bound members  |    |                         |  |
///   |   +--- somebody waited all along --|----+                         |  |
///   |   +--- else: it ran (see `engine::first_look`) -------------------|--+
///   +------------------------------------+------------------------------+
///                          no member has a place any more
/// ```
///
/// An unfinished gang is completed or unwound at once. A complete one that loses members keeps the
/// others for its `stalenessGracePeriod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// No member has a place.
    NotBegun,
    /// Members have places, and the minimum has not been bound yet.
    Unfinished {
        /// When it became known that it cannot be completed as things are.
        stuck_ms: Option<UnixMs>,
    },
    /// The minimum was bound.
    Complete {
        /// When we first saw it so.
        since_ms: UnixMs,
    },
}

/// How often in a row bindings of a gang were refused, and until when it is not tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub(crate) refusals: u32,
    pub(crate) until_ms: UnixMs,
    /// Members that had been bound were evicted for it.
    pub(crate) unwound: bool,
}

impl Backoff {
    /// A binding was refused: the next try is twice as far away as the last one was, up to a limit.
    /// A try that costs nobody anything is repeated soon, so that the gang starts soon after what
    /// refused it is mended. One that ends in evictions is not.
    /// The refusals of one try count once.
    pub(crate) fn refused(&mut self, now_ms: UnixMs, first_ms: u64) -> UnixMs {
        if now_ms >= self.until_ms {
            let doublings_max = if self.unwound { 6 } else { 3 };
            let wait_ms = first_ms.saturating_mul(1 << self.refusals.min(doublings_max));
            self.refusals = self.refusals.saturating_add(1);
            self.until_ms = now_ms.saturating_add(wait_ms);
        }
        self.until_ms
    }
}

/// How a gang counts in its queue and those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) queue: QueueId,
    /// Its minimum is met; otherwise it waits.
    pub(crate) runs: bool,
}

/// What a gang asks for, from its PodGroup or from its pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GangSpec {
    pub(crate) queue: Arc<str>,
    pub(crate) minimum: u32,
    pub(crate) priority: i32,
    pub(crate) preemptible: bool,
    pub(crate) topology: TopologyRequest,
    /// The label of a native group's constraint.
    pub(crate) required_label: Option<Box<str>>,
    pub(crate) placement: PlacementChoice,
    /// `None`: the configuration's; negative: never.
    pub(crate) staleness_grace_ms: Option<i64>,
    pub(crate) expected_runtime_ms: Option<u64>,
    pub(crate) created_ms: UnixMs,
}

/// What a gang waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: no member needs a place.
    Nothing,
    /// Something outside must change first.
    Held(Verdict),
    /// Its turn.
    Turn,
    /// Room: it was tried and refused, and is tried again when what the verdict names changes.
    Room(Verdict, Wake),
}

/// Why not, for people and for machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// Counting alone refused it, so that to say it anew takes no search.
    pub(crate) counted: bool,
    /// Whether more nodes would help: only then do autoscalers hear of the refusal.
    pub(crate) more_nodes_help: bool,
}

impl Verdict {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            counted: false,
            more_nodes_help: reason.more_nodes_help(),
        }
    }
}

/// What must change before a refused gang is looked at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wake {
    /// What counting has proved to be lacking is there.
    Over(Shortfall),
    /// Any node gets more room for one of the classes, or something is released in the queue.
    AnyRoom(Vec<ClassId>, Option<QueueId>),
    /// Something is released in the queue.
    Queue(QueueId),
}

/// What a refused gang lacks, where counting proves it. What it proves of one gang of a queue it
/// proves of all that lack the same, so only the first of them is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shortfall {
    /// Room for so many pods of a class in a scope. The smaller needs come first.
    Room {
        class: ClassId,
        /// Where they must fit together.
        scope: Scope,
        need: u64,
    },
    /// So much more of a key under a bound of a queue. The smaller amounts come first.
    Bound {
        queue: QueueId,
        key: GovernedId,
        bound: Bound,
        asked: Amount,
    },
}

/// Where pods must fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Anywhere.
    Cluster,
    /// In any one domain of a level.
    Level(crate::ids::TopologyId, usize),
    /// In the domain of a level in which this node is: running members are there.
    DomainOf(crate::ids::TopologyId, usize, NodeId),
    /// On any one node.
    OneNode,
    /// On this node.
    Node(NodeId),
}

/// The order inside a leaf: gangs of which only a part is bound, then replacements first, then
/// priority, then gangs below their minimum before surplus, then age. In the order of the shortest,
/// their runtime goes before their age.
///
/// Where gangs age, priority and age are one number. All of them age alike, so the order of two
/// that wait is always the same, and no time is needed to compare them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CandidateKey {
    pub(crate) kind: CandidateKind,
    /// When it would have been created to stand where it stands, were its priority 0; 0 where gangs
    /// do not age.
    pub(crate) aged_ms: i64,
    pub(crate) priority_descending: i64,
    pub(crate) surplus: bool,
    /// 0 where the order does not ask for it.
    pub(crate) runtime_ms: u64,
    pub(crate) created_ms: UnixMs,
    pub(crate) name: Arc<str>,
    /// Tells gangs of one name apart.
    pub(crate) namesake: u128,
}

/// A place in the line of a queue.
pub(crate) type PlaceInLine = (QueueId, CandidateKey);

/// What goes before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CandidateKind {
    /// A gang of which a part is bound and the minimum never was: before everything else in all
    /// queues.
    Unfinished,
    /// A gang that runs below its minimum.
    Replacement,
    /// Everything else.
    Ordinary,
}

impl From<Excess> for Shortfall {
    fn from(over: Excess) -> Self {
        Self::Bound {
            queue: over.queue,
            key: over.key,
            bound: over.bound,
            asked: over.asked,
        }
    }
}

impl Gang {
    pub(crate) fn new(key: GangKey, namespace: &str, name: String) -> Self {
        Self {
            key,
            name: name.into(),
            namespace: namespace.into(),
            object: None,
            tree: Ok(None),
            members: Members::new(),
            jobs: SmallVec::new(),
            spec: GangSpec::default(),
            specified_ms: 0,
            named: QueueNames::new(),
            wait: Wait::Nothing,
            place: None,
            tally: None,
            start: Start::NotBegun,
            parts: BTreeMap::new(),
            backoff: Backoff::default(),
            held: 0,
            bereaved: false,
            lost_ms: None,
            staleness: None,
            scheduled: (false, 0),
            reported: None,
            tried: 0,
            judged: 0,
            announced: None,
        }
    }

    /// Whether a part of it is bound and the minimum never was.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self.start, Start::Unfinished { .. })
    }

    /// The sub-groups, if there are any and they make sense.
    pub(crate) fn tree(&self) -> Option<&Arc<GroupTree>> {
        self.tree.as_ref().ok()?.as_ref()
    }

    /// The leaf of the tree that a member names.
    pub(crate) fn leaf_of(&self, pod: &Pod) -> Option<usize> {
        let name = pod.own.as_ref()?.sub_group.as_deref()?;
        self.tree()?.leaf(name)
    }

    /// The groups of the tree that a member is in, its leaf first, without the gang itself.
    pub(crate) fn groups_of(&self, pod: &Pod) -> Vec<usize> {
        let mut groups = Vec::new();
        let mut next = self.leaf_of(pod).unwrap_or(0);
        while let Some(tree) = self.tree().filter(|_| next != 0) {
            groups.push(next);
            next = tree.group(next).parent;
        }
        groups
    }

    /// Whether a member is in a sub-group that has begun and has not been complete.
    pub(crate) fn is_cut_off(&self, pod: &Pod) -> bool {
        let Some(tree) = self.tree() else {
            return false;
        };
        self.groups_of(pod).into_iter().any(|group| {
            let start = self.parts.get(&tree.group(group).name);
            matches!(start, Some(Start::Unfinished { .. }))
        })
    }

    /// Whether a member stands where the gang has a place for it: in a leaf of the tree, or in the
    /// gang itself where there is no tree.
    pub(crate) fn has_group_of(&self, pod: &Pod) -> bool {
        match self.tree() {
            None => !pod.glance.in_sub_group,
            Some(_) => self.leaf_of(pod).is_some(),
        }
    }

    /// The status that the watch shows.
    pub(crate) fn shown(&self) -> Option<&PodGroupStatus> {
        self.object.as_ref()?.status.as_ref()
    }

    /// Whether a PodGroup makes it.
    pub(crate) fn is_explicit(&self) -> bool {
        matches!(self.key, GangKey::Group(..))
    }

    /// Whether the gang could have more than one pod.
    pub(crate) fn may_have_others(&self) -> bool {
        !matches!(self.key, GangKey::Pod(_))
    }

    /// Whether it is a native group that no pod of ours names: another scheduler's, which counts
    /// nowhere.
    pub(crate) fn is_others(&self) -> bool {
        self.members.is_empty() && self.native_name().is_some()
    }

    /// Namespace and name of a native group.
    pub(crate) fn native_name(&self) -> Option<(&str, &str)> {
        match &self.key {
            GangKey::Group(GroupSource::Native, namespace, name) => Some((namespace, name)),
            _ => None,
        }
    }

    /// The name of a native group that no PodGroup of ours can have.
    pub(crate) fn long_name(&self) -> Option<String> {
        let (namespace, name) = self.native_name()?;
        Some(format!("{namespace}/podgroup.scheduling.k8s.io/{name}"))
    }

    /// Whether its PodGroup is not known: not yet, or not any more.
    pub(crate) fn lacks_object(&self) -> bool {
        self.is_explicit() && self.object.is_none()
    }

    /// Why it waits.
    pub(crate) fn verdict(&self) -> Option<&Verdict> {
        match &self.wait {
            Wait::Held(verdict) | Wait::Room(verdict, _) => Some(verdict),
            Wait::Nothing | Wait::Turn => None,
        }
    }
}
