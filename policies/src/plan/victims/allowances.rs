//! How much may be taken from each queue, for any choice of its victims (R1).
//!
//! A queue gives until it is within its bound: with the largest victim, and without all others, it
//! must be over it. So a set of victims soon leaves no room for more of the queue, and once a
//! search has decided that some units leave, others have to stay.

use super::bound::{AllDecided, Decided};
use super::rules;
use super::units::Unit;
use crate::facts::Amount;
use crate::ids::GangId;
use crate::queues::{ClaimKind, GovernedId, QueueId};
use crate::state::ClusterState;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What one unit takes from the queues above it, for each key in which it may be taken.
type Takes = Vec<Vec<(usize, Amount)>>;

/// What each queue has beyond its bound, and what each unit takes of it.
#[derive(Debug)]
pub(super) struct Allowances {
    /// What a queue holds of a key beyond its bound; 0: nothing may be taken.
    beyond: Vec<Amount>,
    /// The gang of each unit that is reclaimed, and what it takes, by unit.
    units: BTreeMap<usize, (GangId, Takes)>,
    /// The units with which each of these units may leave, if it follows any.
    leaders: BTreeMap<usize, Vec<usize>>,
}

/// What the gangs that leave take from each row of [`Allowances::beyond`].
type Leaving = BTreeMap<usize, BTreeMap<GangId, Amount>>;

impl Allowances {
    /// What the queues of these units may lose to a gang of the queue `to`, by claims of one kind.
    pub(super) fn of(state: &ClusterState, to: QueueId, units: &[Unit], kind: ClaimKind) -> Self {
        let mut rows: BTreeMap<(QueueId, GovernedId), usize> = BTreeMap::new();
        let mut beyond = Vec::new();
        let (mut by_unit, mut leaders) = (BTreeMap::new(), BTreeMap::new());
        let is_reclaimed = |(_, unit): &(usize, &Unit)| unit.goes && unit.queue != to;
        for (index, unit) in units.iter().enumerate().filter(is_reclaimed) {
            let levels = state.queues.below_common(unit.queue, to);
            let takes = rules::entries(state, &unit.holds).into_iter();
            let takes = takes.map(|(plain, model)| {
                let of_level = |queue: &QueueId| {
                    let key = state.queues.deciding(*queue, plain, model);
                    let row = *rows.entry((*queue, key)).or_insert_with(|| {
                        let allocated = state.queues.allocated_of(*queue, key);
                        let keeps = state.queues.keeps(*queue, key, kind);
                        beyond.push(keeps.map_or(0, |keeps| allocated.saturating_sub(keeps)));
                        beyond.len() - 1
                    });
                    let mut holds = unit.holds.iter();
                    let held = holds.find(|(held, _)| *held == key);
                    (row, held.map_or(0, |(_, amount)| *amount))
                };
                levels.iter().map(of_level).collect()
            });
            by_unit.insert(index, (unit.gang, takes.collect()));
            let goes = unit.leaders.iter().filter(|leader| units[**leader].goes);
            leaders.insert(index, goes.copied().collect());
        }
        Self {
            beyond,
            units: by_unit,
            leaders,
        }
    }

    /// The open units of a branch that cannot leave beside those that do.
    pub(super) fn used_up(&self, decided: &AllDecided) -> Vec<usize> {
        let mut leaving = Leaving::new();
        let leaves = decided.iter().filter(|(_, how)| **how == Decided::Leaves);
        for (gang, takes) in leaves.filter_map(|(unit, _)| self.units.get(unit)) {
            let mut rows: Vec<(usize, Amount)> = takes.iter().flatten().copied().collect();
            rows.sort_unstable();
            rows.dedup();
            for (row, amount) in rows {
                let of_gang = leaving.entry(row).or_default().entry(*gang).or_default();
                *of_gang = of_gang.saturating_add(amount);
            }
        }
        let open = self.units.keys().copied();
        let open = open.filter(|unit| !decided.contains_key(unit));
        open.filter(|unit| {
            let leaders = self.leaders.get(unit).into_iter().flatten();
            let mut rights = leaders.chain([unit]);
            !rights.any(|unit| self.may_leave(*unit, &leaving))
        })
        .collect()
    }

    /// Whether a unit may leave beside these: in some key all queues above it stay over their
    /// bounds until the last victim leaves.
    fn may_leave(&self, unit: usize, leaving: &Leaving) -> bool {
        let (gang, takes) = &self.units[&unit];
        let is_over = |(row, amount): &(usize, Amount)| {
            let others = leaving.get(row);
            let own = others.and_then(|others| others.get(gang).copied());
            let own = own.unwrap_or(0).saturating_add(*amount);
            let others = others.into_iter().flatten().filter(|(of, _)| *of != gang);
            let (mut all, mut largest) = (own, own);
            for (_, amount) in others {
                all = all.saturating_add(*amount);
                largest = largest.max(*amount);
            }
            all - largest < self.beyond[*row]
        };
        takes.iter().any(|levels| levels.iter().all(is_over))
    }
}
