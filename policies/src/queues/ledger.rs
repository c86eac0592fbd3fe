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
    pub(super) held: Sums,
    /// The part of `held` that gangs hold which are never evicted.
    held_non_preemptible: Sums,
    pub(super) requested: Sums,
    /// What the members in each queue ask for, whether they wait or run; not part of what the
    /// queues above have.
    pub(super) wanted: Vec<Parts>,
    capacity: Vec<Amount>,
}

impl Ledger {
    /// Forgets all but the capacities, and makes room for so many queues and keys.
    pub(super) fn reset(&mut self, queues: usize, keys: usize) {
        self.held = Sums::new(queues, keys);
        self.held_non_preemptible = Sums::new(queues, keys);
        self.requested = Sums::new(queues, keys);
        self.wanted = vec![Parts::new(); queues];
        self.capacity.resize(keys, 0);
    }

    /// Makes room for so many queues; what is there stays.
    pub(super) fn grow(&mut self, queues: usize) {
        self.held.grow(queues);
        self.held_non_preemptible.grow(queues);
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
    /// How much is held already; for [`Bound::Quota`] by non-preemptible gangs alone.
    pub held: Amount,
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
            self.ledger.held.change(id, demand, direction);
            if !preemptible {
                self.ledger
                    .held_non_preemptible
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
            let held = self.ledger.held.row(id);
            let terms = self.structure.node(id).terms.iter();
            let limits = terms.filter_map(|(key, terms)| Some((*key, terms.limit?)));
            let over = limits.filter_map(|(key, allowed)| {
                within(id, key, Bound::Limit, allowed, held, demand).err()
            });
            self.first(over).map_or(Ok(()), Err)?;
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
        for id in self.structure.path(queue) {
            let held = self.ledger.held_non_preemptible.row(id);
            let touches = |key| demand.iter().any(|(asked, _)| *asked == key);
            let terms = self.structure.node(id).quota_terms(&self.keys, touches);
            let terms = terms.filter(|(_, terms)| terms.written || id == queue);
            let over = terms.filter_map(|(key, terms)| {
                within(id, *key, Bound::Quota, terms.quota, held, demand).err()
            });
            self.first(over).map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// The one that users are told of several: by what is exceeded, not by what was named first.
    fn first(&self, over: impl Iterator<Item = Excess>) -> Option<Excess> {
        over.min_by(|one, other| self.keys.place(one.key).cmp(&self.keys.place(other.key)))
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
        let Some(terms) = self.structure.node(queue).terms_of(key) else {
            return true;
        };
        let (allowed, held) = match bound {
            Bound::Limit => (terms.limit, &self.ledger.held),
            Bound::Quota => (Some(terms.quota), &self.ledger.held_non_preemptible),
        };
        let held = held.row(queue)[key.index()];
        allowed.is_none_or(|allowed| held.saturating_add(asked) <= allowed)
    }

    /// How much more of one key the queue may hold under the tightest limit on its path; `None`:
    /// there is none.
    #[must_use]
    pub fn budget(&self, queue: QueueId, key: GovernedId) -> Option<Amount> {
        let left = |id: QueueId| {
            let limit = self.structure.node(id).terms_of(key)?.limit?;
            Some(limit.saturating_sub(self.ledger.held.row(id)[key.index()]))
        };
        self.structure.path(queue).filter_map(left).min()
    }

    /// The least that limits on GPU models leave on the path of a queue, whichever model it is;
    /// `None` without such limits. Whoever asks for no more meets none of them.
    #[must_use]
    pub fn least_model_budget(&self, queue: QueueId) -> Option<Amount> {
        let left = |id: QueueId| {
            let held = self.ledger.held.row(id);
            let terms = self.structure.node(id).terms.iter();
            let of_models = terms.filter(|(key, _)| self.keys.plain(*key).is_some());
            of_models
                .filter_map(|(key, terms)| Some(terms.limit?.saturating_sub(held[key.index()])))
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
        let words = limits.into_iter().map(|(queue, key, limit, held)| {
            format!("the queue {queue} has a limit of {limit} {key} and holds {held}")
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
        limits.iter().any(|(.., held)| *held > 0)
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
        let mut tight = Vec::new();
        for id in self.structure.path(queue) {
            let held = self.ledger.held.row(id);
            let terms = self.structure.node(id).terms.iter();
            let limits = terms.filter_map(|(key, terms)| Some((*key, terms.limit?)));
            let mut of_models: Vec<_> = limits
                .filter(|(key, limit)| {
                    concerns(*key) && limit.saturating_sub(held[key.index()]) < asked
                })
                .map(|(key, limit)| (self.governed_name(key), limit, held[key.index()]))
                .collect();
            of_models.sort_unstable();
            let of_models = of_models.into_iter();
            let queue = self.name(id);
            tight.extend(of_models.map(|(key, limit, held)| (queue, key, limit, held)));
        }
        tight
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
            quantity(key, excess.held),
            quantity(key, excess.asked),
        )
    }
}

/// Whether what is asked for of the key fits under the bound.
fn within(
    queue: QueueId,
    key: GovernedId,
    bound: Bound,
    allowed: Amount,
    held: &[Amount],
    demand: &Demand,
) -> Result<(), Excess> {
    let held = held[key.index()];
    let asked = demand.iter().find(|(asked, _)| *asked == key);
    match asked {
        // tests plant bugs here: limit
        Some(&(_, asked)) if asked > 0 && held.saturating_add(asked) > allowed => Err(Excess {
            queue,
            key,
            bound,
            allowed,
            held,
            asked,
        }),
        _ => Ok(()),
    }
}
