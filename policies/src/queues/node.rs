//! One queue in the hierarchy.

use super::graph::Fault;
use super::keys::GovernedKeys;
use super::{GovernedId, QueueId};
use crate::facts::{Amount, PlacementChoice, QueueResource, UnixMs};
use alloc::{sync::Arc, vec::Vec};
use core::ops::Range;
use smallvec::SmallVec;

/// How many bits a weight has after the point. A factor by past use is at least a quarter, so that
/// rounding changes it by a part of 2^-45 at most: less than one base unit of up to 2^44.
pub(super) const WEIGHT_POINT_BITS: u32 = 46;
/// The weight 1.
pub(super) const WEIGHT_ONE: u64 = 1 << WEIGHT_POINT_BITS;

/// What one queue may have of one key that is divided among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    /// What the queue is served first, in base units.
    pub quota: Amount,
    /// What the queue never exceeds, in base units.
    pub limit: Option<Amount>,
    /// By how much the queue shares in what is over quota, in parts of [`WEIGHT_ONE`]: the weight
    /// as the queue says it times a factor by past use. Below 2^64, because the factor is 4 at
    /// most.
    pub weight: u64,
    /// The weight as the queue says it.
    pub said_weight: u16,
    /// Whether the queue has an entry for the key; if not, the key is divided because a sibling has
    /// one, or because it is plain GPUs.
    pub written: bool,
    /// The most that the parent can ever have of the key by its limit and those above it.
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

    /// What shares are divided by: the weight, and 1 for a weight of 0, which a rule of its own
    /// puts last.
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
    /// The name of the Queue object; empty for the root.
    pub name: Arc<str>,
    /// Whether a queue has this number now; false for the root.
    pub exists: bool,
    /// Whether the queue has an object; only the queue `default` may have none.
    pub defined: bool,
    /// The queue above, to which everything is charged that is charged to this one; the root has
    /// none.
    pub parent: Option<QueueId>,
    /// The queues right below, sorted by name.
    pub children: Vec<QueueId>,
    /// Where all queues below this one stand in the order of the hierarchy.
    pub below: Range<usize>,
    /// The depth in the hierarchy; the root has 0.
    pub depth: usize,
    /// When the Queue object was created.
    pub created_ms: UnixMs,
    /// The `priority` of the queue: over quota, siblings with a higher one come strictly first.
    pub priority: i32,
    /// The keys that are divided among the queue and its siblings, sorted, and the queue's terms.
    pub terms: SmallVec<[(GovernedId, Terms); 2]>,
    /// Why nothing starts in the queue; `None`: gangs may start.
    pub fault: Option<Fault>,
    /// When the condition Ready of the queue last became true or false.
    pub ready_since_ms: UnixMs,
    /// The placements that the queue chooses for its gangs.
    pub placement: PlacementChoice,
    /// How long a gang of the queue runs before a gang of the queue may preempt it.
    pub preempt_min_runtime_ms: u64,
    /// How long a gang of the queue runs before another queue may reclaim its room.
    pub reclaim_min_runtime_ms: u64,
    /// Rises with every change of the rules for the queue's gangs: admission, placement, models.
    pub rules: u64,
}

impl Node {
    /// What decides between siblings that are equal otherwise: the older one first, then by name.
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

    /// The terms whose quota decides about a gang, or a flow, that `touches` these keys.
    ///
    /// A queue with an entry for a model and none for the whole resource has been promised that
    /// model. Its quota of the plain key is 0 then, but decides nothing about GPUs of that model.
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
