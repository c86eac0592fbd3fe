//! What every queue holds and asks for, and how much more it may hold.

use super::grain::{Direction, Grains};
use super::keys::GovernedKeys;
use super::{Demand, GovernedId, QueueId, QueueTree, add_demand, amount_in};
use crate::facts::{Amount, saturated};
use crate::reason::Reason;
use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};

/// Amounts by queue and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Matrix {
    width: usize,
    cells: Vec<Amount>,
}

impl Matrix {
    pub(super) fn new(queues: usize, keys: usize) -> Self {
        Self {
            width: keys,
            cells: vec![0; queues * keys],
        }
    }

    /// The amounts of one queue, by key. Panics for a queue without a row.
    pub(super) fn row(&self, queue: QueueId) -> &[Amount] {
        let start = queue.index() * self.width;
        &self.cells[start..start + self.width]
    }

    /// One amount; 0 for a queue or a key that the matrix does not have.
    pub(super) fn get(&self, queue: QueueId, key: GovernedId) -> Amount {
        let start = queue.index() * self.width;
        let row = self.cells.get(start..start + self.width);
        row.and_then(|row| row.get(key.index()))
            .copied()
            .unwrap_or(0)
    }

    /// Makes room for so many queues; amounts stay.
    pub(super) fn grow(&mut self, queues: usize) {
        let cells = self.cells.len().max(queues * self.width);
        self.cells.resize(cells, 0);
    }

    pub(super) fn row_mut(&mut self, queue: QueueId) -> &mut [Amount] {
        let start = queue.index() * self.width;
        &mut self.cells[start..start + self.width]
    }
}

/// Sums by queue and key. They are wide enough for subtracting an amount to undo adding it, also
/// where the sum is more than an [`Amount`] holds.
#[derive(Debug, Default)]
pub(super) struct Sums {
    exact: Vec<u128>,
    /// The sums, as far as an [`Amount`] holds them.
    shown: Matrix,
}

impl Sums {
    fn new(queues: usize, keys: usize) -> Self {
        Self {
            exact: vec![0; queues * keys],
            shown: Matrix::new(queues, keys),
        }
    }

    /// The sums of one queue, by key.
    pub(super) fn row(&self, queue: QueueId) -> &[Amount] {
        self.shown.row(queue)
    }

    fn grow(&mut self, queues: usize) {
        self.shown.grow(queues);
        self.exact.resize(self.shown.cells.len(), 0);
    }

    fn change(&mut self, queue: QueueId, demand: &Demand, direction: Direction) {
        let start = queue.index() * self.shown.width;
        let exact = &mut self.exact[start..start + self.shown.width];
        let shown = self.shown.row_mut(queue);
        for &(key, amount) in demand {
            let cells = exact.get_mut(key.index()).zip(shown.get_mut(key.index()));
            let Some((exact, shown)) = cells else {
                continue;
            };
            *exact = direction.apply(*exact, amount);
            *shown = saturated(*exact);
        }
    }
}

/// What the members in one queue want, by part and by key. A part is what can run on one GPU model
/// alone, or on any (`None`). Where a key is gone that one part needs, the other parts go on.
pub(super) type Parts = BTreeMap<Option<GovernedId>, Vec<u128>>;

/// The books. What a queue holds and requests is booked to all its ancestors and to the root, too;
/// what it wants is not.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What is held by pods that stay, and for gangs whose room is coming.
    pub(super) allocated: Sums,
    /// The part of `allocated` that non-preemptible gangs hold.
    allocated_non_preemptible: Sums,
    /// The part of `allocated` for gangs whose room is coming.
    coming: Sums,
    /// What pods still hold that are leaving; no part of `allocated`.
    leaving: Sums,
    /// The part of `leaving` that non-preemptible gangs hold.
    leaving_non_preemptible: Sums,
    /// Amounts that are leaving count under no bound, as if their pods had left.
    is_leaving_gone: bool,
    pub(super) requested: Sums,
    /// What the members in each queue ask for, whether they wait or run.
    pub(super) wanted: Vec<Parts>,
    capacity: Vec<Amount>,
    pub(super) grains: Grains,
}

impl Ledger {
    /// Forgets all but the capacities, and makes room for so many queues and keys.
    pub(super) fn reset(&mut self, queues: usize, keys: &GovernedKeys) {
        self.grains = Grains::new(keys);
        let keys = keys.interned();
        self.allocated = Sums::new(queues, keys);
        self.allocated_non_preemptible = Sums::new(queues, keys);
        self.coming = Sums::new(queues, keys);
        self.leaving = Sums::new(queues, keys);
        self.leaving_non_preemptible = Sums::new(queues, keys);
        self.requested = Sums::new(queues, keys);
        self.wanted = vec![Parts::new(); queues];
        self.capacity.resize(keys, 0);
        for (key, capacity) in GovernedId::first(keys).zip(&self.capacity) {
            self.grains.divide(key, *capacity);
        }
    }

    /// Makes room for so many queues; all amounts stay.
    pub(super) fn grow(&mut self, queues: usize) {
        self.allocated.grow(queues);
        self.allocated_non_preemptible.grow(queues);
        self.coming.grow(queues);
        self.leaving.grow(queues);
        self.leaving_non_preemptible.grow(queues);
        self.requested.grow(queues);
        let queues = self.wanted.len().max(queues);
        self.wanted.resize(queues, Parts::new());
    }

    fn want(&mut self, queue: QueueId, part: Option<GovernedId>, demand: &Demand, by: Direction) {
        let keys = self.keys();
        let parts = &mut self.wanted[queue.index()];
        let sums = parts.entry(part).or_insert_with(|| vec![0; keys]);
        for &(key, amount) in demand {
            if let Some(sum) = sums.get_mut(key.index()) {
                *sum = by.apply(*sum, amount);
            }
        }
        if sums.iter().all(|sum| *sum == 0) {
            parts.remove(&part);
        }
    }

    /// What the pods of a queue hold now, leaving or not; nothing that is coming.
    pub(super) fn held_now(&self, queue: QueueId, key: GovernedId) -> Amount {
        let of = |sums: &Sums| sums.row(queue)[key.index()];
        let stays = of(&self.allocated).saturating_sub(of(&self.coming));
        stays.saturating_add(of(&self.leaving))
    }

    /// What counts under a limit: what is coming takes the room of what is leaving first.
    fn under_limit(&self, queue: QueueId, key: GovernedId) -> Amount {
        let of = |sums: &Sums| sums.row(queue)[key.index()];
        let beyond = self.yet_to_leave(&self.leaving, queue, key);
        let beyond = beyond.saturating_sub(of(&self.coming));
        of(&self.allocated).saturating_add(beyond)
    }

    /// What counts of sums of what is leaving.
    fn yet_to_leave(&self, leaving: &Sums, queue: QueueId, key: GovernedId) -> Amount {
        match self.is_leaving_gone {
            true => 0,
            false => leaving.row(queue)[key.index()],
        }
    }

    /// Returns whether the capacity has changed.
    pub(super) fn set_capacity(&mut self, key: GovernedId, capacity: Amount) -> bool {
        match self.capacity.get_mut(key.index()) {
            Some(cell) if *cell != capacity => {
                *cell = capacity;
                self.grains.divide(key, capacity);
                true
            }
            _ => false,
        }
    }

    /// How many keys the books have.
    pub(super) fn keys(&self) -> usize {
        self.capacity.len()
    }

    pub(super) fn all_keys(&self) -> impl Iterator<Item = GovernedId> + use<> {
        GovernedId::first(self.keys())
    }

    pub(super) fn capacity(&self, key: GovernedId) -> Amount {
        self.capacity.get(key.index()).copied().unwrap_or(0)
    }
}

/// A bound that a gang would exceed, with amounts in base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    /// The queue that has the bound.
    pub queue: QueueId,
    /// The key that is bounded.
    pub key: GovernedId,
    /// The kind of the bound.
    pub bound: Bound,
    /// How much the bound allows, in base units.
    pub allowed: Amount,
    /// How much is allocated already, in base units; for [`Bound::Quota`] to non-preemptible gangs
    /// alone.
    pub allocated: Amount,
    /// How much more the gang asks for, in base units.
    pub asked: Amount,
}

/// A limit that leaves less than is asked for; ordered by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TightLimit<'a> {
    pub(crate) queue: &'a str,
    pub(crate) key: &'a str,
    /// In base units.
    pub(crate) limit: Amount,
    /// What the queue holds under the limit, in base units.
    pub(crate) allocated: Amount,
}

/// The kinds of bounds that a queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    /// `limit`: no gang exceeds it.
    Limit,
    /// `quota`: non-preemptible gangs do not exceed it.
    Quota,
}

impl Excess {
    /// The reason for which a gang is refused that would exceed the bound.
    pub(crate) fn reason(&self) -> Reason {
        match self.bound {
            Bound::Limit => Reason::OverLimit,
            Bound::Quota => Reason::NonPreemptibleOverQuota,
        }
    }
}

impl QueueTree {
    /// Enters that a gang of the queue holds this much more. O(depth x keys).
    pub(crate) fn charge(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book(queue, demand, preemptible, Direction::Add);
    }

    /// Takes a charge back: the exact inverse of [`QueueTree::charge`] with these arguments, also
    /// for the order of the queues.
    pub(crate) fn release(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book(queue, demand, preemptible, Direction::Subtract);
    }

    /// Enters that a gang of the queue will hold this much more, whose room is coming.
    pub(crate) fn charge_coming(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book_coming(queue, demand, Direction::Add);
        self.book(queue, demand, preemptible, Direction::Add);
    }

    /// The exact inverse of [`QueueTree::charge_coming`] with these arguments.
    pub(crate) fn release_coming(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book_coming(queue, demand, Direction::Subtract);
        self.book(queue, demand, preemptible, Direction::Subtract);
    }

    /// Enters that a pod of the queue still holds this much, and is leaving.
    pub(crate) fn charge_leaving(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book_leaving(queue, demand, preemptible, Direction::Add);
    }

    /// The exact inverse of [`QueueTree::charge_leaving`] with these arguments.
    pub(crate) fn release_leaving(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book_leaving(queue, demand, preemptible, Direction::Subtract);
    }

    /// Lets everything that is leaving count as gone, or not any more.
    pub(crate) fn let_leave(&mut self, is_gone: bool) {
        self.ledger.is_leaving_gone = is_gone;
    }

    fn book_coming(&mut self, queue: QueueId, demand: &Demand, direction: Direction) {
        for id in self.structure.path_to_root(queue) {
            self.ledger.coming.change(id, demand, direction);
        }
    }

    fn book_leaving(
        &mut self,
        queue: QueueId,
        demand: &Demand,
        preemptible: bool,
        direction: Direction,
    ) {
        self.note_grain(demand, direction);
        for id in self.structure.path_to_root(queue) {
            let ledger = &mut self.ledger;
            ledger.leaving.change(id, demand, direction);
            if !preemptible {
                ledger.leaving_non_preemptible.change(id, demand, direction);
            }
        }
    }

    fn book(&mut self, queue: QueueId, demand: &Demand, preemptible: bool, direction: Direction) {
        self.note_grain(demand, direction);
        for id in self.structure.path_to_root(queue) {
            self.ledger.allocated.change(id, demand, direction);
            if !preemptible {
                self.ledger
                    .allocated_non_preemptible
                    .change(id, demand, direction);
            }
        }
        self.mark(queue);
    }

    /// Enters that waiting gangs of the queue ask for this much more; the status shows it.
    pub(crate) fn add_requested(&mut self, queue: QueueId, demand: &Demand) {
        self.request(queue, demand, Direction::Add);
    }

    /// Takes back what [`QueueTree::add_requested`] has entered.
    pub(crate) fn sub_requested(&mut self, queue: QueueId, demand: &Demand) {
        self.request(queue, demand, Direction::Subtract);
    }

    fn request(&mut self, queue: QueueId, demand: &Demand, direction: Direction) {
        self.note_grain(demand, direction);
        for id in self.structure.path_to_root(queue) {
            self.ledger.requested.change(id, demand, direction);
        }
    }

    /// Enters that a member in the queue, waiting or running, asks for this much; fair shares are
    /// worked out from it. At most one of the keys may be a model: the only one on which the member
    /// can run.
    pub(crate) fn add_wanted(&mut self, queue: QueueId, demand: &Demand) {
        self.want_part(queue, demand, Direction::Add);
    }

    /// Takes back what [`QueueTree::add_wanted`] has entered.
    pub(crate) fn sub_wanted(&mut self, queue: QueueId, demand: &Demand) {
        self.want_part(queue, demand, Direction::Subtract);
    }

    fn want_part(&mut self, queue: QueueId, demand: &Demand, direction: Direction) {
        self.note_grain(demand, direction);
        let mut keys = demand.iter().map(|(key, _)| *key);
        let part = keys.find(|key| self.is_model(*key));
        self.ledger.want(queue, part, demand, direction);
        self.fair.outdated();
    }

    /// Whether the queue may hold this much more under its own limits and those of its ancestors.
    ///
    /// # Errors
    /// The first limit on the way up that would be exceeded. If several limits of one queue would
    /// be, the one on plain GPUs, else the first by name.
    pub(crate) fn room(&self, queue: QueueId, demand: &Demand) -> Result<(), Excess> {
        for id in self.structure.path(queue) {
            let asked = demand.iter();
            let excesses =
                asked.filter_map(|&(key, asked)| self.excess(id, key, Bound::Limit, asked));
            self.first(excesses).map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Whether the limits of a queue and its ancestors leave room for all that others ask for which
    /// counts there, too. GPUs of no certain model count as GPUs of each model.
    pub(crate) fn has_room_for_all(&self, queue: QueueId, others: &[(QueueId, Demand)]) -> bool {
        self.structure.path(queue).all(|id| {
            let mut total = Demand::new();
            for (other, demand) in others {
                if self.structure.path(*other).any(|above| above == id) {
                    add_demand(&mut total, demand);
                }
            }
            let asked = |key| amount_in(&total, key);
            let mut limits = self.structure.node(id).terms.iter();
            limits.all(|(key, _)| {
                let plain = self.keys.plain(*key).map_or(0, asked);
                let asked = asked(*key).max(plain);
                self.excess(id, *key, Bound::Limit, asked).is_none()
            })
        })
    }

    /// Whether a non-preemptible gang that asks for this much stays within quota, together with the
    /// non-preemptible gangs that run. Quotas that count: in its leaf, those of all divided keys
    /// that it asks for (no entry: no quota); in an ancestor, those of the keys that the ancestor
    /// has an entry for.
    ///
    /// # Errors
    /// The first quota on the way up that would be exceeded.
    pub(crate) fn quota_room(&self, queue: QueueId, demand: &Demand) -> Result<(), Excess> {
        let asked = |key| demand.iter().find(|(asked, _)| *asked == key);
        for id in self.structure.path(queue) {
            let node = self.structure.node(id);
            let terms = node.quota_terms(&self.keys, |key| asked(key).is_some());
            let terms = terms.filter(|(_, terms)| terms.written || id == queue);
            let asked = terms.filter_map(|(key, _)| asked(*key));
            let excesses =
                asked.filter_map(|&(key, asked)| self.excess(id, key, Bound::Quota, asked));
            self.first(excesses).map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Whether what was booked by [`QueueTree::charge_coming`] with these arguments keeps to the
    /// limits of the queue and its ancestors, and to their quotas, if the gang is not preemptible.
    pub(crate) fn keeps_bounds(
        &mut self,
        queue: QueueId,
        demand: &Demand,
        preemptible: bool,
    ) -> bool {
        let asked = demand.iter().filter(|(_, amount)| *amount > 0);
        let keeps_limits = self.structure.path(queue).all(|id| {
            asked.clone().all(|&(key, _)| {
                let limit = self.under(id, key, Bound::Limit);
                limit.is_none_or(|(allowed, allocated)| allocated <= allowed)
            })
        });
        if preemptible || !keeps_limits {
            return keeps_limits;
        }
        self.release_coming(queue, demand, preemptible);
        let keeps_quotas = self.quota_room(queue, demand).is_ok();
        self.charge_coming(queue, demand, preemptible);
        keeps_quotas
    }

    /// Which of several excesses users are told: that of plain GPUs, else the first by name of the
    /// key, whichever key has the lowest number.
    fn first(&self, excesses: impl Iterator<Item = Excess>) -> Option<Excess> {
        excesses.min_by(|one, other| self.keys.place(one.key).cmp(&self.keys.place(other.key)))
    }

    /// How much a bound of a queue allows of a key, and how much is allocated under that bound;
    /// `None`: there is no such bound.
    fn under(&self, queue: QueueId, key: GovernedId, bound: Bound) -> Option<(Amount, Amount)> {
        let terms = self.structure.node(queue).terms_of(key)?;
        let ledger = &self.ledger;
        Some(match bound {
            Bound::Limit => (terms.limit?, ledger.under_limit(queue, key)),
            Bound::Quota => {
                let stays = ledger.allocated_non_preemptible.row(queue)[key.index()];
                let leaves = &ledger.leaving_non_preemptible;
                let leaves = ledger.yet_to_leave(leaves, queue, key);
                (terms.quota, stays.saturating_add(leaves))
            }
        })
    }

    /// The excess if a bound of a queue does not allow it to hold `asked` more of a key.
    fn excess(
        &self,
        queue: QueueId,
        key: GovernedId,
        bound: Bound,
        asked: Amount,
    ) -> Option<Excess> {
        let (allowed, allocated) = self.under(queue, key, bound)?;
        // tests plant bugs here: limit
        let exceeds = asked > 0 && allocated.saturating_add(asked) > allowed;
        exceeds.then_some(Excess {
            queue,
            key,
            bound,
            allowed,
            allocated,
            asked,
        })
    }

    /// Whether a bound of a queue now allows it to hold `asked` more of a key; `true` if the queue
    /// has no such bound any more.
    pub(crate) fn bound_allows(
        &self,
        queue: QueueId,
        key: GovernedId,
        bound: Bound,
        asked: Amount,
    ) -> bool {
        self.excess(queue, key, bound, asked).is_none()
    }

    /// How much of a key the queue's own limit still allows; `None`: it has no limit on the key.
    fn left(&self, queue: QueueId, key: GovernedId) -> Option<Amount> {
        let (limit, allocated) = self.under(queue, key, Bound::Limit)?;
        Some(limit.saturating_sub(allocated))
    }

    /// How much more of a key the queue may hold under the tightest limit on its path, in base
    /// units; `None`: no queue on the path has a limit on the key.
    pub(crate) fn budget(&self, queue: QueueId, key: GovernedId) -> Option<Amount> {
        let path = self.structure.path(queue);
        path.filter_map(|id| self.left(id, key)).min()
    }

    /// How much of GPUs the tightest limit on any GPU model on the queue's path still allows;
    /// `None`: there is no such limit. A gang that asks for no more GPUs exceeds none of these
    /// limits.
    pub(crate) fn least_model_budget(&self, queue: QueueId) -> Option<Amount> {
        let left = |id: QueueId| {
            let keys = self.structure.node(id).terms.iter().map(|(key, _)| *key);
            let models = keys.filter(|key| self.is_model(*key));
            models.filter_map(move |key| self.left(id, key))
        };
        self.structure.path(queue).flat_map(left).min()
    }

    /// Whether one of [`Self::tight_model_limits`] allows more pods once something is released. All
    /// `pods` that are asked for count for `gpus` each.
    pub(crate) fn release_lets_in_more(
        &self,
        queue: QueueId,
        (gpus, pods): (Amount, u64),
        models: &[Box<str>],
    ) -> bool {
        let limits = self.tight_model_limits(queue, gpus.saturating_mul(pods), models);
        limits.iter().any(|tight| {
            let allows = |amount: Amount| amount.checked_div(gpus);
            allows(tight.limit) > allows(tight.limit.saturating_sub(tight.allocated))
        })
    }

    /// The limits on GPU models on the queue's path that allow fewer than `asked` more GPUs.
    /// `models`: the models that count; all if empty.
    pub(crate) fn tight_model_limits(
        &self,
        queue: QueueId,
        asked: Amount,
        models: &[Box<str>],
    ) -> Vec<TightLimit<'_>> {
        let concerns = |key: GovernedId| {
            let name = self.governed_name(key);
            let model = name.split_once('@').map(|(_, model)| model);
            model.is_some_and(|model| {
                models.is_empty() || models.iter().any(|named| **named == *model)
            })
        };
        let tight = |id: QueueId| {
            let keys = self.structure.node(id).terms.iter().map(|(key, _)| *key);
            let limits = keys.filter(|key| concerns(*key)).filter_map(|key| {
                let (limit, allocated) = self.under(id, key, Bound::Limit)?;
                let is_tight = limit.saturating_sub(allocated) < asked;
                is_tight.then(|| TightLimit {
                    queue: self.name(id),
                    key: self.governed_name(key),
                    limit,
                    allocated,
                })
            });
            let mut limits: Vec<_> = limits.collect();
            limits.sort_unstable();
            limits
        };
        self.structure.path(queue).flat_map(tight).collect()
    }
}
