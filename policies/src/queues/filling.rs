//! What would be fair: what [`next_leaf`](super::QueueTree::next_leaf) would give the queues from
//! an empty cluster, in infinitely small units of what each leaf wants.
//!
//! With infinitely small units, all siblings that are level in the order are served at once, so
//! that they stay level; amounts grow on straight lines from one event to the next. An event is: a
//! leaf has all that it wants; a limit is reached or a resource is used up; a queue's quota is used
//! up; a waiting sibling becomes level with those that are served; another key becomes a queue's
//! dominant one.
//!
//! What a leaf wants has parts: one for each GPU model, of what can run on that model alone, and
//! one of what can run on any. The parts grow together, in proportion. Where a model is used up, or
//! a limit on it is reached, the part that needs it stops and the leaf goes on with the other
//! parts.
//!
//! ```text
//! empty ──> queues served, how fast (bottom up, top down) ──> none ──> whole units, trimmed
//!                ^                                │
//!                └── grow until the next event <──┘
//! ```
//!
//! Shares need no rescaling here: from an empty cluster no queue gets ahead of its siblings except
//! within quota or by priority, and what it gets so counts in full.
//!
//! Exact fractions would double their digits at each event. So an amount is a [`number::Number`] of
//! 64 significant bits, and a difference of up to 2^-52 counts as none. At the end amounts are cut
//! to whole base units (of GPUs, to what `grain` says), level by level, so that children together
//! never exceed their parent.
//!
//! An event costs O(siblings x keys) at each queue on its path, and there are about two events for
//! each leaf.
//!
//! `queues/tests/reference.rs` works out these shares in exact fractions of any length, and is
//! written to be read. On random trees the two must agree to one base unit a level; the laws of
//! fairness are judged of the exact shares.

mod flow;
mod number;

use super::keys::GovernedKeys;
use super::ledger::{Ledger, Matrix};
use super::tree::Structure;
use super::{GovernedId, QueueId};
use crate::facts::{Amount, saturated};
use alloc::{sync::Arc, vec::Vec};
use flow::{Filling, State};

/// A division under way. It goes on in slices, of the state that there was at its beginning.
#[derive(Debug)]
pub(super) struct Division {
    structure: Arc<Structure>,
    keys: Arc<GovernedKeys>,
    capacity: Vec<Amount>,
    /// What shares are cut to, by key.
    grains: Vec<Amount>,
    /// The parts of what each leaf wants, by queue; empty for inner queues.
    parts: Vec<LeafParts>,
    wanted: Matrix,
    /// What each inner queue has for its children: a child's quota counts for no more than that.
    parent_amount: Matrix,
    /// Down to this depth `parent_amount` is final; the root has depth 0.
    settled: usize,
    /// The filling that was interrupted at the end of the last slice.
    filling: Option<State>,
}

/// The parts of what a leaf wants: a row of amounts by key for the members that can run on any
/// model, and one for those of each model.
type LeafParts = Vec<Vec<Amount>>;

impl Division {
    /// Begins a division of what there is now.
    pub(super) fn new(
        structure: &Arc<Structure>,
        keys: &Arc<GovernedKeys>,
        ledger: &Ledger,
    ) -> Self {
        let capacity: Vec<Amount> = ledger.all_keys().map(|key| ledger.capacity(key)).collect();
        let parts = parts(structure, ledger);
        Self {
            wanted: wanted(structure, &parts, capacity.len()),
            parts,
            parent_amount: most_per_parent(structure, &capacity),
            structure: Arc::clone(structure),
            keys: Arc::clone(keys),
            grains: ledger.all_keys().map(|key| ledger.grains.of(key)).collect(),
            capacity,
            settled: 0,
            filling: None,
        }
    }

    /// Goes on until `work` has reached `until`, in units of about ten nanoseconds. At the end of
    /// the division, returns the fair shares by queue and key. The root's are the sums of its
    /// children's, but for rounding.
    pub(super) fn advance(&mut self, work: &mut u64, until: u64) -> Option<Matrix> {
        loop {
            let state = self.filling.take();
            let mut filling = match state {
                Some(state) => Filling::resume(self, state),
                None => Filling::begin(self, work),
            };
            if !filling.pass_events(work, until) {
                self.filling = Some(filling.interrupt());
                return None;
            }
            let shares = self.whole_units(&filling);
            if !self.lower_next_level(&shares) {
                return Some(shares);
            }
        }
    }

    /// Cuts amounts to whole grains, parents first, and to what must never be exceeded: the
    /// capacity, limits, what is wanted, and the parent's amount. If rounding would give the
    /// children more than the parent has, the last children get less.
    fn whole_units(&self, filling: &Filling<'_>) -> Matrix {
        let (structure, wanted) = (&self.structure, &self.wanted);
        let mut shares = Matrix::new(structure.len(), self.capacity.len());
        for key in self.all_keys() {
            let at = key.index();
            let grain = self.grains[at];
            let whole = |id: QueueId| {
                let amount = filling.amount(id, at).floor();
                (amount / grain * grain).min(wanted.row(id)[at])
            };
            shares.row_mut(QueueId::ROOT)[at] = whole(QueueId::ROOT).min(self.capacity(key));
            for &id in structure.with_root() {
                let mut left = shares.row(id)[at];
                for &child in &structure.node(id).children {
                    let terms = structure.node(child).terms_of(key);
                    let limit = terms.and_then(|terms| terms.limit).unwrap_or(left);
                    let amount = whole(child).min(limit).min(left);
                    shares.row_mut(child)[at] = amount;
                    left -= amount;
                }
            }
        }
        shares
    }

    fn all_keys(&self) -> impl Iterator<Item = GovernedId> + use<> {
        GovernedId::first(self.capacity.len())
    }

    fn capacity(&self, key: GovernedId) -> Amount {
        self.capacity[key.index()]
    }

    /// Makes `parent_amount` final level by level, down to the first level where that changes
    /// anything. Returns whether there is such a level: then everything must be filled anew.
    ///
    /// What a parent has follows from the divisions above it. So the levels are taken from the top.
    fn lower_next_level(&mut self, shares: &Matrix) -> bool {
        let depths = self.structure.queues().iter();
        let depths = depths.map(|id| self.structure.node(*id).depth);
        let depth = depths.max().unwrap_or(0);
        while self.settled + 1 < depth {
            self.settled += 1;
            if self.lower_over_committed(self.settled, shares) {
                return true;
            }
        }
        false
    }

    /// Lowers `parent_amount` of the queues of one depth to their shares, where their children's
    /// quotas, as far as wanted, add up to more than that. Returns whether anything changed.
    fn lower_over_committed(&mut self, depth: usize, shares: &Matrix) -> bool {
        let mut changed = false;
        let structure = &self.structure;
        let of_level = |id: &&QueueId| structure.node(**id).depth == depth;
        for &id in structure.queues().iter().filter(of_level) {
            for key in structure.divided_below(id) {
                let has = shares.row(id)[key.index()];
                let claims = structure.node(id).children.iter().map(|&child| {
                    let terms = structure.node(child).terms_of(key);
                    let quota = terms.map_or(0, |terms| terms.quota);
                    u128::from(quota.min(self.wanted.row(child)[key.index()]))
                });
                let amount = &mut self.parent_amount.row_mut(id)[key.index()];
                if claims.sum::<u128>() > u128::from(has) && *amount != has {
                    *amount = has;
                    changed = true;
                }
            }
        }
        changed
    }
}

/// The parts of what each leaf wants, by queue.
fn parts(structure: &Structure, ledger: &Ledger) -> Vec<LeafParts> {
    let mut parts: Vec<LeafParts> = Vec::new();
    parts.resize_with(structure.len(), LeafParts::new);
    let queues = structure.queues().iter();
    for leaf in queues.filter(|id| structure.node(**id).is_leaf()) {
        let of_leaf = ledger.wanted[leaf.index()].values();
        let amounts = |part: &Vec<u128>| part.iter().map(|sum| saturated(*sum)).collect();
        parts[leaf.index()] = of_leaf.map(amounts).collect();
    }
    parts
}

/// What each queue wants, by key: a leaf what all its members ask for, an inner queue what its
/// leaves want.
fn wanted(structure: &Structure, parts: &[LeafParts], keys: usize) -> Matrix {
    let mut wanted = Matrix::new(structure.len(), keys);
    for &id in structure.queues().iter().rev() {
        for part in &parts[id.index()] {
            for (wanted, amount) in wanted.row_mut(id).iter_mut().zip(part) {
                *wanted = wanted.saturating_add(*amount);
            }
        }
        let parent = structure.parent_id(id);
        for key in 0..keys {
            let sum = wanted.row(parent)[key].saturating_add(wanted.row(id)[key]);
            wanted.row_mut(parent)[key] = sum;
        }
    }
    wanted
}

/// The most that the root and each inner queue can have, by key: the smallest of its limit, the
/// limits above it and the capacity.
fn most_per_parent(structure: &Structure, capacity: &[Amount]) -> Matrix {
    let mut most = Matrix::new(structure.len(), capacity.len());
    for &id in structure.with_root() {
        for key in structure.divided_below(id) {
            let at = key.index();
            most.row_mut(id)[at] = structure.reach(id, key).min(capacity[at]);
        }
    }
    most
}
