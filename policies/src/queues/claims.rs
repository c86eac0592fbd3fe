//! What one queue may claim from others, and what others may claim from it.
//!
//! A claim is for what the quota of a queue guarantees, or for the queue's fair share. Both are
//! bounds: a queue that claims stays within its bound, and one that gives keeps what is within
//! its own.
//!
//! No fair share counts as less than what the quota guarantees: quotas are obtainable, and safe.
//!
//! A fair share of GPUs is of all models together. A queue may claim of one model what its members
//! that need other models leave of that share, and at least its quota of the model. Members that
//! can run on any model may so have the same part of the share in each model; therefore a queue
//! that holds more GPUs in all than its fair share gives of each of them.

use super::{Demand, GovernedId, QueueId, QueueTree};
use crate::facts::Amount;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Up to which bound a queue claims, and down to which bound others give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimKind {
    /// What quotas guarantee.
    Quota,
    /// Fair shares.
    FairShare,
}

/// A queue that gives for an eviction plan, and the largest victims of the plan that are below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Giver {
    pub(crate) queue: QueueId,
    pub(crate) kind: ClaimKind,
    /// The most that one victim holds, by key.
    pub(crate) largest: Demand,
}

impl QueueTree {
    /// Whether a queue is over its bound in some key until the last victim of a plan leaves (R1).
    pub(crate) fn is_over(&self, giver: &Giver) -> bool {
        let mut largest = giver.largest.iter();
        largest.any(|(key, amount)| self.stands_over(giver.queue, *key, *amount, giver.kind))
    }

    /// Up to what a queue claims a key, in base units; `None`: the key is not divided among the
    /// queue and its siblings, or no fair shares were worked out yet.
    pub(crate) fn bound(&self, queue: QueueId, key: GovernedId, kind: ClaimKind) -> Option<Amount> {
        self.structure.node(queue).terms_of(key)?;
        match (kind, self.keys.plain(key)) {
            (ClaimKind::Quota, _) => Some(self.guaranteed(queue, key)),
            (ClaimKind::FairShare, None) => self.fair_bound(queue, key),
            (ClaimKind::FairShare, Some(plain)) => {
                let share = self.fair_bound(queue, plain)?;
                let is_other =
                    |other: &GovernedId| *other != key && self.keys.plain(*other) == Some(plain);
                let others = self.ledger.all_keys().filter(is_other);
                let others = others.map(|other| self.fair.of(queue, other));
                let left = others.fold(share, Amount::saturating_sub);
                Some(left.max(self.guaranteed(queue, key)))
            }
        }
    }

    /// The fair share of a queue of a plain key, in base units, and at least what is guaranteed of
    /// it: a pending pod that asks for much of one resource lowers the fair shares of others, and
    /// the guarantee holds all the same. `None`: no fair shares were worked out yet.
    fn fair_bound(&self, queue: QueueId, plain: GovernedId) -> Option<Amount> {
        let share = self.fair.last_of(queue, plain)?;
        Some(share.max(self.guaranteed(queue, plain)))
    }

    /// Down to what a queue gives of a key, in base units; `None`: it gives nothing. That is its
    /// bound. By fair shares it gives of a GPU model also what is over its fair share of all GPUs,
    /// down to what the quota of the model guarantees.
    pub(crate) fn keeps(&self, queue: QueueId, key: GovernedId, kind: ClaimKind) -> Option<Amount> {
        let bound = self.bound(queue, key, kind)?;
        let plain = self.keys.plain(key);
        let Some(plain) = plain.filter(|_| kind == ClaimKind::FairShare) else {
            return Some(bound);
        };
        let elsewhere = self
            .allocated_of(queue, plain)
            .saturating_sub(self.allocated_of(queue, key));
        let left = self.fair_bound(queue, plain)?.saturating_sub(elsewhere);
        Some(bound.min(left.max(self.guaranteed(queue, key))))
    }

    /// How much of a key a queue holds, in base units.
    pub(crate) fn allocated_of(&self, queue: QueueId, key: GovernedId) -> Amount {
        let row = self.ledger.allocated.row(queue);
        row.get(key.index()).copied().unwrap_or(0)
    }

    /// How much of a key all nodes have, in base units.
    pub(crate) fn capacity(&self, key: GovernedId) -> Amount {
        self.ledger.capacity(key)
    }

    /// Whether a queue that holds `more` of a key stands over what it keeps: with the largest
    /// victim as `more`, it is over it until the last victim leaves (R1).
    pub(crate) fn stands_over(
        &self,
        queue: QueueId,
        key: GovernedId,
        more: Amount,
        kind: ClaimKind,
    ) -> bool {
        let keeps = self.keeps(queue, key, kind);
        keeps.is_some_and(|keeps| self.allocated_of(queue, key).saturating_add(more) > keeps)
    }

    /// The most that one of several victims holds of each key, in each queue on their paths. A
    /// victim is its queue and what it holds there.
    pub(crate) fn largest_of<'a>(
        &self,
        victims: impl Iterator<Item = (QueueId, &'a Demand)>,
    ) -> BTreeMap<(QueueId, GovernedId), Amount> {
        let mut largest = BTreeMap::new();
        for (leaf, holds) in victims {
            for queue in self.path(leaf) {
                for (key, amount) in holds {
                    let most: &mut Amount = largest.entry((queue, *key)).or_default();
                    // tests plant bugs here: largest-victim
                    *most = (*most).max(*amount);
                }
            }
        }
        largest
    }

    /// The key that decides what a queue may claim or give of a resource: that of the GPU model, if
    /// it is divided among the queue and its siblings, else the plain one.
    pub(crate) fn deciding(
        &self,
        queue: QueueId,
        plain: GovernedId,
        model: Option<GovernedId>,
    ) -> GovernedId {
        let terms = |key: &GovernedId| self.structure.node(queue).terms_of(*key).is_some();
        model.filter(terms).unwrap_or(plain)
    }

    /// The plain key of a resource, of which this key may be one model.
    pub(crate) fn plain_of(&self, key: GovernedId) -> GovernedId {
        self.keys.plain(key).unwrap_or(key)
    }

    /// The first key in which the queue holds more than its bound, among those that a gang asks
    /// for; `None`: it is within its bound. `more`: how much more it would hold of a key.
    pub(crate) fn beyond(
        &self,
        queue: QueueId,
        asked: &Demand,
        kind: ClaimKind,
        more: impl Fn(GovernedId) -> Amount,
    ) -> Option<GovernedId> {
        let asks = |key: GovernedId| asked.iter().any(|(asked, _)| *asked == key);
        let node = self.structure.node(queue);
        let mut terms = node.quota_terms(&self.keys, asks).map(|(key, _)| *key);
        terms.find(|key| {
            let bound = self.bound(queue, *key, kind);
            let holds = self.allocated_of(queue, *key).saturating_add(more(*key));
            bound.is_none_or(|bound| holds > bound)
        })
    }

    /// The first key in which the queue holds more than its fair share and more than `before`,
    /// among those that a gang asks for.
    pub(crate) fn grown_beyond_share(
        &self,
        queue: QueueId,
        asked: &Demand,
        before: impl Fn(GovernedId) -> Amount,
    ) -> Option<GovernedId> {
        let divided = |key: &GovernedId| self.structure.node(queue).terms_of(*key).is_some();
        let mut keys = asked.iter().map(|(key, _)| *key).filter(divided);
        keys.find(|key| {
            let share = self.bound(queue, *key, ClaimKind::FairShare).unwrap_or(0);
            self.allocated_of(queue, *key) > share.max(before(*key))
        })
    }

    /// The queues from one queue up to just below the lowest queue that is above (or is) both.
    pub(crate) fn below_common(&self, queue: QueueId, other: QueueId) -> Vec<QueueId> {
        let others: Vec<QueueId> = self.path(other).collect();
        let is_own = |id: &QueueId| !others.contains(id);
        self.path(queue).take_while(is_own).collect()
    }

    /// Whether a queue, or one above it, has the weight 0 for a key that is held there: such a
    /// queue gets only what no other queue wants.
    pub(crate) fn is_weightless(&self, queue: QueueId, held: &Demand) -> bool {
        let weightless = |id: QueueId| {
            let node = self.structure.node(id);
            let terms = held.iter().filter_map(|(key, _)| node.terms_of(*key));
            terms.into_iter().any(|terms| terms.said_weight == 0)
        };
        self.path(queue).any(weightless)
    }

    /// How long gangs of the queue run, in ms, before a gang of higher priority of the queue may
    /// evict them, and before another queue may reclaim them.
    pub(crate) fn min_runtimes_ms(&self, queue: QueueId) -> (u64, u64) {
        let node = self.structure.node(queue);
        (node.preempt_min_runtime_ms, node.reclaim_min_runtime_ms)
    }
}
