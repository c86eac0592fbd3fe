//! What every queue holds and asks for, and how much more it may hold.

use super::{Demand, GovernedId, QueueId, QueueTree};
use crate::facts::{Amount, quantity, saturated};
use crate::reason::Reason;
use alloc::{boxed::Box, collections::BTreeMap, format, string::String, vec, vec::Vec};

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

    /// The amounts of one queue, by key.
    pub(super) fn row(&self, queue: QueueId) -> &[Amount] {
        let start = queue.index() * self.width;
        &self.cells[start..start + self.width]
    }

    /// One amount; 0 where there is no such queue or key.
    pub(super) fn get(&self, queue: QueueId, key: GovernedId) -> Amount {
        let start = queue.index() * self.width;
        let row = self.cells.get(start..start + self.width);
        row.and_then(|row| row.get(key.index()))
            .copied()
            .unwrap_or(0)
    }

    /// Makes room for so many queues.
    pub(super) fn grow(&mut self, queues: usize) {
        let cells = self.cells.len().max(queues * self.width);
        self.cells.resize(cells, 0);
    }

    pub(super) fn row_mut(&mut self, queue: QueueId) -> &mut [Amount] {
        let start = queue.index() * self.width;
        &mut self.cells[start..start + self.width]
    }
}

/// Sums by queue and key, in which whatever is taken off leaves what was there before.
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

#[derive(Debug, Clone, Copy)]
enum Direction {
    Add,
    Subtract,
}

impl Direction {
    fn apply(self, sum: u128, amount: Amount) -> u128 {
        match self {
            Self::Add => sum.saturating_add(u128::from(amount)),
            Self::Subtract => sum.saturating_sub(u128::from(amount)),
        }
    }
}

/// What one queue wants, by the model that those who want it can run on alone, and by key. What can
/// run on any model is one part, and what can run on one model another: each stops by itself where
/// something that it needs is gone.
pub(super) type Parts = BTreeMap<Option<GovernedId>, Vec<u128>>;

/// The books. Every amount of a queue is part of those of all its ancestors and of the root.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) allocated: Sums,
    /// The part of `allocated` that gangs have which are never evicted.
    allocated_non_preemptible: Sums,
    pub(super) requested: Sums,
    /// What the members in each queue ask for, whether they wait or run; not part of what the
    /// queues above have.
    pub(super) wanted: Vec<Parts>,
    capacity: Vec<Amount>,
}

impl Ledger {
    /// Forgets all but the capacities, and makes room for so many queues and keys.
    pub(super) fn reset(&mut self, queues: usize, keys: usize) {
        self.allocated = Sums::new(queues, keys);
        self.allocated_non_preemptible = Sums::new(queues, keys);
        self.requested = Sums::new(queues, keys);
        self.wanted = vec![Parts::new(); queues];
        self.capacity.resize(keys, 0);
    }

    /// Makes room for so many queues; what is there stays.
    pub(super) fn grow(&mut self, queues: usize) {
        self.allocated.grow(queues);
        self.allocated_non_preemptible.grow(queues);
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

    /// Says whether anything changed.
    pub(super) fn set_capacity(&mut self, key: GovernedId, capacity: Amount) -> bool {
        match self.capacity.get_mut(key.index()) {
            Some(cell) if *cell != capacity => {
                *cell = capacity;
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

/// A bound that a gang would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// Whose bound.
    pub queue: QueueId,
    /// Of what.
    pub key: GovernedId,
    /// Which bound.
    pub bound: Bound,
    /// How much is allowed.
    pub allowed: Amount,
    /// How much is allocated already; for [`Bound::Quota`] to non-preemptible gangs alone.
    pub allocated: Amount,
    /// How much is asked for on top.
    pub asked: Amount,
}

/// Which bound of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// `limit`: nobody exceeds it.
    Limit,
    /// `quota`: non-preemptible gangs do not exceed it.
    Quota,
}

impl Excess {
    /// What a gang is told that would exceed it.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self.bound {
            Bound::Limit => Reason::OverLimit,
            Bound::Quota => Reason::NonPreemptibleOverQuota,
        }
    }
}

impl QueueTree {
    /// Enters that a gang of the queue holds this much. O(depth x keys).
    pub fn charge(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book(queue, demand, preemptible, Direction::Add);
    }

    /// Takes a charge back: the exact inverse, also for the order of queues.
    pub fn release(&mut self, queue: QueueId, demand: &Demand, preemptible: bool) {
        self.book(queue, demand, preemptible, Direction::Subtract);
    }

    fn book(&mut self, queue: QueueId, demand: &Demand, preemptible: bool, direction: Direction) {
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

    /// Enters that waiting gangs of the queue ask for this much more; for the status.
    pub fn add_requested(&mut self, queue: QueueId, demand: &Demand) {
        self.request(queue, demand, Direction::Add);
    }

    /// Takes a request back.
    pub fn sub_requested(&mut self, queue: QueueId, demand: &Demand) {
        self.request(queue, demand, Direction::Subtract);
    }

    fn request(&mut self, queue: QueueId, demand: &Demand, direction: Direction) {
        for id in self.structure.path_to_root(queue) {
            self.ledger.requested.change(id, demand, direction);
        }
    }

    /// Enters that a member in the queue, waiting or running, asks for this; fair shares divide by
    /// it. At most one model is among the keys: the one that it can run on alone.
    pub fn add_wanted(&mut self, queue: QueueId, demand: &Demand) {
        self.want_part(queue, demand, Direction::Add);
    }

    /// Takes back what [`QueueTree::add_wanted`] has entered.
    pub fn sub_wanted(&mut self, queue: QueueId, demand: &Demand) {
        self.want_part(queue, demand, Direction::Subtract);
    }

    fn want_part(&mut self, queue: QueueId, demand: &Demand, direction: Direction) {
        let mut keys = demand.iter().map(|(key, _)| *key);
        let part = keys.find(|key| self.is_model(*key));
        self.ledger.want(queue, part, demand, direction);
        self.fair.outdated();
    }

    /// Whether the queue may hold this much more under its own limits and those of all its
    /// ancestors.
    ///
    /// # Errors
    /// Names the first limit on the way up that would be exceeded; of several of one queue that of
    /// plain GPUs, else the first by name.
    pub fn room(&self, queue: QueueId, demand: &Demand) -> Result<(), Excess> {
        for id in self.structure.path(queue) {
            let asked = demand.iter();
            let excesses =
                asked.filter_map(|&(key, asked)| self.excess(id, key, Bound::Limit, asked));
            self.first(excesses).map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Whether a non-preemptible gang that asks for this much stays within quota, together with
    /// the non-preemptible gangs that run: in its leaf for everything that it asks for and that is
    /// divided there (no entry: no quota), and in every ancestor that has an entry for it.
    ///
    /// # Errors
    /// Names the first quota on the way up that would be exceeded.
    pub fn quota_room(&self, queue: QueueId, demand: &Demand) -> Result<(), Excess> {
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

    /// The one that users are told of several: by what is exceeded, not by what was named first.
    fn first(&self, excesses: impl Iterator<Item = Excess>) -> Option<Excess> {
        excesses.min_by(|one, other| self.keys.place(one.key).cmp(&self.keys.place(other.key)))
    }

    /// How much a bound of a queue allows of a key, and how much of that is allocated; `None`:
    /// there is no such bound.
    fn under(&self, queue: QueueId, key: GovernedId, bound: Bound) -> Option<(Amount, Amount)> {
        let terms = self.structure.node(queue).terms_of(key)?;
        let (allowed, booked) = match bound {
            Bound::Limit => (terms.limit?, &self.ledger.allocated),
            Bound::Quota => (terms.quota, &self.ledger.allocated_non_preemptible),
        };
        Some((allowed, booked.row(queue)[key.index()]))
    }

    /// By what one bound would be exceeded.
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

    /// Whether one bound of one queue now lets it hold so much more of a key; also where there is
    /// no such bound any more.
    #[must_use]
    pub fn bound_allows(
        &self,
        queue: QueueId,
        key: GovernedId,
        bound: Bound,
        asked: Amount,
    ) -> bool {
        self.excess(queue, key, bound, asked).is_none()
    }

    /// What is left of a key under the limit of one queue.
    fn left(&self, queue: QueueId, key: GovernedId) -> Option<Amount> {
        let (limit, allocated) = self.under(queue, key, Bound::Limit)?;
        Some(limit.saturating_sub(allocated))
    }

    /// How much more of one key the queue may hold under the tightest limit on its path; `None`:
    /// there is none.
    #[must_use]
    pub fn budget(&self, queue: QueueId, key: GovernedId) -> Option<Amount> {
        let path = self.structure.path(queue);
        path.filter_map(|id| self.left(id, key)).min()
    }

    /// The least that limits on GPU models leave on the path of a queue, whichever model it is;
    /// `None` without such limits. Whoever asks for no more meets none of them.
    #[must_use]
    pub fn least_model_budget(&self, queue: QueueId) -> Option<Amount> {
        let left = |id: QueueId| {
            let keys = self.structure.node(id).terms.iter().map(|(key, _)| *key);
            let models = keys.filter(|key| self.is_model(*key));
            models.filter_map(move |key| self.left(id, key))
        };
        self.structure.path(queue).flat_map(left).min()
    }

    /// The limits on GPU models on the path of a queue that leave fewer GPUs than are asked for, in
    /// words: of these models, or of all if there are none.
    #[must_use]
    pub fn tight_model_limits(
        &self,
        queue: QueueId,
        asked: Amount,
        models: &[Box<str>],
    ) -> Vec<String> {
        let limits = self.tight_limits_of_models(queue, asked, models);
        let words = limits.into_iter().map(|(queue, key, limit, allocated)| {
            format!("the queue {queue} has a limit of {limit} {key} and holds {allocated}")
        });
        words.collect()
    }

    /// Whether anything is held under those of [`Self::tight_model_limits`], which its holders can
    /// release.
    pub(crate) fn tight_model_limits_are_used(
        &self,
        queue: QueueId,
        asked: Amount,
        models: &[Box<str>],
    ) -> bool {
        let limits = self.tight_limits_of_models(queue, asked, models);
        limits.iter().any(|(.., allocated)| *allocated > 0)
    }

    /// The names of the queue and of the governed model, the limit, and what is held of it.
    fn tight_limits_of_models(
        &self,
        queue: QueueId,
        asked: Amount,
        models: &[Box<str>],
    ) -> Vec<(&str, &str, Amount, Amount)> {
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
                is_tight.then(|| (self.name(id), self.governed_name(key), limit, allocated))
            });
            let mut limits: Vec<_> = limits.collect();
            limits.sort_unstable();
            limits
        };
        self.structure.path(queue).flat_map(tight).collect()
    }

    /// What a gang is told that would exceed a bound.
    #[must_use]
    pub fn describe(&self, excess: &Excess) -> String {
        let bound = match excess.bound {
            Bound::Limit => "limit",
            Bound::Quota => "quota for non-preemptible gangs",
        };
        let key = self.governed_name(excess.key);
        format!(
            "the {bound} of the queue {} is {} of {key}; {} are held and {} more asked for",
            self.name(excess.queue),
            quantity(key, excess.allowed),
            quantity(key, excess.allocated),
            quantity(key, excess.asked),
        )
    }
}
