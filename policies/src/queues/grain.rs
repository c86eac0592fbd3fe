//! How finely amounts are divided: GPUs by whole cards, until somebody counts a part of one.
//!
//! The books keep GPUs in thousandths of a card. But a fair share of 3333 thousandths says nothing
//! to queues whose gangs ask for whole cards. So what is worked out by dividing (fair shares, what
//! quotas guarantee, rescaled use) is cut to whole cards as long as everything that is held, asked
//! for, promised or divided comes in whole cards; else to thousandths.

use super::keys::GovernedKeys;
use super::tree::Structure;
use super::{Demand, GovernedId, QueueTree};
use crate::facts::{Amount, CARD};
use alloc::{vec, vec::Vec};

/// How finely each key is divided, by key.
#[derive(Debug, Default)]
pub(super) struct Grains {
    /// What makes one whole, in base units: 1 for keys of which nothing smaller is kept anyway.
    wholes: Vec<Amount>,
    /// How many demands are in the books that come in no whole number.
    broken: Vec<u64>,
    /// Whether a queue has a quota or a limit that is no whole number.
    promised: Vec<bool>,
    /// Whether what is divided is no whole number.
    divided: Vec<bool>,
    /// The grain that follows from the above; kept because every share asks for it.
    grains: Vec<Amount>,
}

impl Grains {
    /// Grains of empty books, with nothing promised or divided.
    pub(super) fn new(keys: &GovernedKeys) -> Self {
        let count = keys.interned();
        let whole = |key: GovernedId| match keys.is_gpu(key) {
            true => CARD,
            false => 1,
        };
        let wholes: Vec<Amount> = GovernedId::first(count).map(whole).collect();
        Self {
            grains: wholes.clone(),
            wholes,
            broken: vec![0; count],
            promised: vec![false; count],
            divided: vec![false; count],
        }
    }

    /// What makes one whole of a key, in base units.
    pub(super) fn whole(&self, key: GovernedId) -> Amount {
        self.wholes.get(key.index()).copied().unwrap_or(1)
    }

    /// The least amount that is told apart where a key is divided, in base units.
    pub(super) fn of(&self, key: GovernedId) -> Amount {
        self.grains.get(key.index()).copied().unwrap_or(1)
    }

    /// Works out the grain of a key anew. Returns whether it has changed.
    fn settle(&mut self, key: GovernedId) -> bool {
        let now = match self.is_broken(key) {
            true => 1,
            false => self.whole(key),
        };
        let grain = self.grains.get_mut(key.index());
        grain.is_some_and(|grain| core::mem::replace(grain, now) != now)
    }

    /// An amount of a key without what is less than its grain.
    pub(super) fn cut(&self, key: GovernedId, amount: Amount) -> Amount {
        let grain = self.of(key);
        amount / grain * grain
    }

    fn is_broken(&self, key: GovernedId) -> bool {
        let at = key.index();
        let is = |list: &[bool]| list.get(at).copied().unwrap_or(false);
        self.broken.get(at).is_some_and(|count| *count > 0)
            || is(&self.promised)
            || is(&self.divided)
    }

    fn is_whole(&self, key: GovernedId, amount: Amount) -> bool {
        let whole = self.whole(key);
        whole == 1 || amount.is_multiple_of(whole)
    }

    /// Notes that a demand enters the books, or leaves them. Returns whether a grain has changed.
    fn book(&mut self, demand: &Demand, direction: Direction) -> bool {
        let mut changed = false;
        for &(key, amount) in demand {
            // tests plant bugs here: broken-demand
            if self.is_whole(key, amount) {
                continue;
            }
            if let Some(count) = self.broken.get_mut(key.index()) {
                *count = match direction {
                    Direction::Add => count.saturating_add(1),
                    Direction::Subtract => count.saturating_sub(1),
                };
            }
            changed |= self.settle(key);
        }
        changed
    }

    /// Notes how much of a key is divided. Returns whether its grain has changed.
    pub(super) fn divide(&mut self, key: GovernedId, capacity: Amount) -> bool {
        let is_broken = !self.is_whole(key, capacity);
        if let Some(divided) = self.divided.get_mut(key.index()) {
            *divided = is_broken;
        }
        self.settle(key)
    }

    /// Notes what the queues promise. Returns whether a grain has changed.
    pub(super) fn promise(&mut self, structure: &Structure) -> bool {
        let count = self.wholes.len();
        let mut promised = vec![false; count];
        for (key, terms) in structure.terms() {
            // tests plant bugs here: promised-part
            let is_broken = [Some(terms.quota), terms.limit]
                .into_iter()
                .flatten()
                .any(|amount| !self.is_whole(*key, amount));
            if let Some(promised) = promised.get_mut(key.index()) {
                *promised |= is_broken;
            }
        }
        self.promised = promised;
        GovernedId::first(count).fold(false, |changed, key| self.settle(key) | changed)
    }
}

/// Whether an amount enters the books or leaves them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Add,
    Subtract,
}

impl Direction {
    /// The sum with the amount, or without it.
    pub(super) fn apply(self, sum: u128, amount: Amount) -> u128 {
        match self {
            Self::Add => sum.saturating_add(u128::from(amount)),
            Self::Subtract => sum.saturating_sub(u128::from(amount)),
        }
    }
}

impl QueueTree {
    /// Notes that a demand enters the books, or leaves them: what was worked out by dividing is
    /// outdated if it is to be cut otherwise now.
    pub(super) fn note_grain(&mut self, demand: &Demand, direction: Direction) {
        if self.ledger.grains.book(demand, direction) {
            self.grain_changed();
        }
    }

    /// Whether an amount of a key is no multiple of what is told apart where the key is divided;
    /// for the audit.
    pub(crate) fn is_cut_off(&self, key: GovernedId, amount: Amount) -> bool {
        self.ledger.grains.cut(key, amount) != amount
    }

    /// The keys of which a queue has a quota or a limit that is no multiple of what is told apart;
    /// for the audit.
    pub(crate) fn wrong_promises(&self) -> impl Iterator<Item = GovernedId> {
        let terms = self.structure.terms();
        let wrong = terms.filter(move |(key, terms)| {
            let mut amounts = [Some(terms.quota), terms.limit].into_iter().flatten();
            amounts.any(|amount| self.is_cut_off(*key, amount))
        });
        wrong.map(|(key, _)| *key)
    }

    /// Lets everything be worked out anew that was cut to the grain of a key.
    pub(super) fn grain_changed(&mut self) {
        self.mark_all();
        self.fair.outdated();
    }
}
