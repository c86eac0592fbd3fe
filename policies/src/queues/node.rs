//! One queue in the hierarchy.

use super::graph::Fault;
use super::keys::GovernedKeys;
use super::{GovernedId, QueueId};
use crate::facts::{Amount, PlacementChoice, QueueResource, UnixMs};
use alloc::{sync::Arc, vec::Vec};
use core::ops::Range;
use smallvec::SmallVec;

/// Weights have so many bits after the point. A rounded factor is then off by a part of 2^-45 at
/// most, which of anything up to 2^44 base units moves less than one.
pub(super) const WEIGHT_POINT_BITS: u32 = 46;
/// The weight 1.
pub(super) const WEIGHT_ONE: u64 = 1 << WEIGHT_POINT_BITS;

/// What one queue may have of one key that is divided among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    /// Guaranteed.
    pub quota: Amount,
    /// Never exceeded.
    pub limit: Option<Amount>,
    /// Share of what is over quota: the weight as the queue says it times a factor by past use, in
    /// parts of [`WEIGHT_ONE`]. Below 2^64, because the factor is 4 at most.
    pub weight: u64,
    /// The weight as the queue says it.
    pub said_weight: u16,
    /// Whether the queue has an entry, or these are the terms of a sibling without one.
    pub written: bool,
    /// The most that the parent can ever have of the key by the limits above.
    pub reach: Amount,
}

impl Terms {
    pub(super) fn of(entry: Option<&QueueResource>, reach: Amount) -> Self {
        let said_weight = entry.map_or(1, |entry| entry.weight);
        Self {
            quota: entry.map_or(0, |entry| entry.quota),
            limit: entry.and_then(|entry| entry.limit),
            weight: u64::from(said_weight) * WEIGHT_ONE,
            said_weight,
            written: entry.is_some(),
            reach,
        }
    }

    /// The weight over which shares are taken: a weight of 0 counts as 1 there, and another rule
    /// puts such queues last.
    pub(super) fn divisor(&self) -> u64 {
        if self.weight == 0 {
            WEIGHT_ONE
        } else {
            self.weight
        }
    }
}

/// One queue in the hierarchy. The root has no name, no parent and no terms.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub name: Arc<str>,
    /// Whether a queue has this number now.
    pub exists: bool,
    /// Whether there is an object.
    pub defined: bool,
    /// The queue that its use is charged to, too; `None` for the root alone.
    pub parent: Option<QueueId>,
    /// By name.
    pub children: Vec<QueueId>,
    /// Where all queues below it are in the order of the hierarchy.
    pub below: Range<usize>,
    /// The root has 0.
    pub depth: usize,
    pub created_ms: UnixMs,
    pub priority: i32,
    /// The keys that are divided among its siblings, sorted, and the terms on which it takes part.
    pub terms: SmallVec<[(GovernedId, Terms); 2]>,
    pub fault: Option<Fault>,
    pub ready_since_ms: UnixMs,
    pub placement: PlacementChoice,
    pub preempt_min_runtime_ms: u64,
    pub reclaim_min_runtime_ms: u64,
    /// Rises with every change of the rules by which its gangs fare.
    pub rules: u64,
}

impl Node {
    /// Its place among its siblings where nothing else decides: the older one first, then by name.
    pub(super) fn age(&self) -> (UnixMs, &str) {
        (self.created_ms, &self.name)
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    pub(super) fn terms_of(&self, key: GovernedId) -> Option<&Terms> {
        let at = self
            .terms
            .binary_search_by_key(&key, |(key, _)| *key)
            .ok()?;
        Some(&self.terms[at].1)
    }

    /// The terms whose quota decides over something that touches these keys.
    ///
    /// A queue with an entry for a model and none for the whole resource has been promised that
    /// model: the plain key, of which it has no quota, then says nothing about it.
    pub(super) fn quota_terms(
        &self,
        keys: &GovernedKeys,
        touches: impl Fn(GovernedId) -> bool,
    ) -> impl Iterator<Item = &(GovernedId, Terms)> {
        let excused: SmallVec<[GovernedId; 2]> = self
            .terms
            .iter()
            .filter(|(key, terms)| terms.written && touches(*key))
            .filter_map(|(key, _)| keys.plain(*key))
            .collect();
        self.terms
            .iter()
            .filter(move |(key, terms)| touches(*key) && (terms.written || !excused.contains(key)))
    }
}
