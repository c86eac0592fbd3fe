//! The order of gangs inside a leaf queue.

use crate::facts::UnixMs;
use crate::queues::QueueId;
use alloc::sync::Arc;

/// The order inside a leaf: gangs of which only a part is bound, then replacements, then priority,
/// then gangs below their minimum before surplus, then age. Where the shortest gang comes first,
/// the runtime goes before the age.
///
/// Where gangs age, priority and age are one number. All gangs age alike, so the order of two
/// waiting gangs never changes, and no time is needed to compare them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CandidateKey {
    pub(crate) kind: CandidateKind,
    /// Where gangs age: the creation time that would give the gang its place if its priority were
    /// 0. Elsewhere 0.
    pub(crate) aged_ms: i64,
    pub(crate) priority_descending: i64,
    pub(crate) surplus: bool,
    /// The runtime that was given for the gang; 0 where the order does not use it.
    pub(crate) runtime_ms: u64,
    pub(crate) created_ms: UnixMs,
    pub(crate) name: Arc<str>,
    /// Tells gangs of one name apart.
    pub(crate) namesake: u128,
}

/// A place in the line of a queue.
pub(crate) type LinePosition = (QueueId, CandidateKey);

/// The first criterion of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CandidateKind {
    /// A gang of which a part is bound and the minimum never was: before everything else in all
    /// queues.
    Unfinished,
    /// A gang that runs below its minimum.
    Replacement,
    /// Any other gang.
    Ordinary,
}
