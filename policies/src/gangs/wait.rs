//! What a gang waits for, why, and what must change before it is looked at again.

use crate::facts::Amount;
use crate::ids::{ClassId, GangId};
use crate::place::{Refusal, Scope};
use crate::queues::{Bound, Excess, GovernedId, QueueId};
use crate::reason::Reason;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// What a gang waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: no member needs a place.
    #[default]
    Nothing,
    /// Something other than room must change first: the verdict says what.
    Barred(Verdict),
    /// Its turn.
    Turn,
    /// Room: the gang was tried and refused, and is tried again when what the refusal names
    /// changes.
    Room(Refused, Wake),
}

impl Wait {
    /// Why the gang is barred or was refused; `None`: it is neither.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Barred(verdict) => Some(verdict.reason),
            Self::Room(refused, _) => Some(refused.reason),
            Self::Nothing | Self::Turn => None,
        }
    }
}

/// Why a gang waits: a reason, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// Whether more nodes would help: only then do autoscalers hear of the refusal.
    pub(crate) more_nodes_help: bool,
}

impl Verdict {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            more_nodes_help: reason.more_nodes_help(),
        }
    }
}

/// Why the last attempt at a gang was refused. The sentence is made when the refusal is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Reason,
    /// The refusal by nodes; `None`: the queue has no room for the gang.
    pub(crate) by_nodes: Option<Box<Refusal>>,
    /// The gang that would start later than it was promised; `None`: that is not the reason.
    pub(crate) behind: Option<GangId>,
}

impl Refused {
    /// The gang fits, but would keep another one from starting when it was promised to.
    pub(crate) fn behind(promised: GangId) -> Self {
        Self {
            reason: Reason::Reserved,
            by_nodes: None,
            behind: Some(promised),
        }
    }

    /// No way to meet the needs of the gang was found.
    pub(crate) fn without_choice() -> Self {
        Self {
            reason: Reason::NotFoundWithinBound,
            by_nodes: Some(Box::new(Refusal::NotTogether { proved: false })),
            behind: None,
        }
    }

    /// What is told of the refusal until its sentence is made.
    pub(crate) fn in_short(&self) -> Verdict {
        let message = match &self.by_nodes {
            None if self.reason == Reason::Reserved => {
                "its room is kept for a gang that was promised to start"
            }
            None => "its queue had no room for it when it was last tried",
            Some(_) => "no place was found for it when it was last tried",
        };
        Verdict::new(self.reason, message)
    }
}

impl From<Excess> for Refused {
    fn from(over: Excess) -> Self {
        Self {
            reason: over.reason(),
            by_nodes: None,
            behind: None,
        }
    }
}

/// What must change before a refused gang is looked at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wake {
    /// What counting has proved to be lacking has become free.
    Eased(Shortfall),
    /// Any node gets more room for one of the classes, or something is released in the queue.
    AnyRoom(Vec<ClassId>, Option<QueueId>),
    /// Something is released in the queue.
    Queue(QueueId),
    /// What other gangs were promised changes.
    Promises,
}

/// What a refused gang lacks, where counting proves it. A shortfall that is proved of one gang of a
/// queue is proved of all its gangs with an equal shortfall, so only the first of them is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shortfall {
    /// Room for so many pods of a class in a scope. The smaller needs come first.
    Room {
        class: ClassId,
        /// Where the pods must fit together.
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

impl From<Excess> for Shortfall {
    fn from(excess: Excess) -> Self {
        Self::Bound {
            queue: excess.queue,
            key: excess.key,
            bound: excess.bound,
            asked: excess.asked,
        }
    }
}
