//! The order of gangs inside a leaf queue.

use crate::facts::UnixMs;
use crate::queues::QueueId;
use alloc::sync::Arc;

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
