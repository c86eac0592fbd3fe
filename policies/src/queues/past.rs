//! Past use, and how it adjusts weights.
//!
//! What a queue holds is looked at on a grid of a minute, and averaged with weights that halve with
//! each half-life. Averages are numbers with a fixed point, so that every machine has the same.
//!
//! A weight is divided by how much of its siblings' use the queue has had against how much of their
//! weights it has: whoever had twice its part counts half, within a factor of four either way. The
//! outcome is a weight again, so order and fair shares know nothing of it. What is within quota is
//! not touched, and a weight of 0 stays 0. Siblings of weight 0 do not count for the others.
//!
//! A minute adjusts all weights, and so does a change of queues.

use super::ledger::Ledger;
use super::node::{WEIGHT_ONE, WEIGHT_POINT_BITS};
use super::{GovernedId, QueueId, QueueTree};
use crate::facts::{Amount, PastUse, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};

/// The grid, in milliseconds.
pub(crate) const GRID_MS: u64 = 60_000;

/// Fractions have so many bits.
const FRACTION_BITS: u32 = 62;
const ONE: u128 = 1 << FRACTION_BITS;
/// Averages are in thousandths of base units, as statuses have them, so that what is read is
/// exactly what was written; with so many bits after the point.
const AVERAGE_BITS: u32 = 22;
/// How many times as much, or as little, a weight counts at most.
const FACTOR_MAX: u64 = 4;

/// The average use of one queue, by key.
type Averages = BTreeMap<GovernedId, u128>;

/// The past use of all queues.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The part of the past that remains after one step of the grid; `None`: the past does not
    /// count.
    kept: Option<u128>,
    /// The step up to which everything is counted.
    step: Option<u64>,
    used: BTreeMap<QueueId, Averages>,
    /// Queues that brought their past with them before time began, and as of which step.
    adopted: BTreeMap<QueueId, u64>,
}

/// `2^-(part / whole)`, with [`FRACTION_BITS`] after the point; `part` is not more than `whole`.
fn halved(part: u64, whole: u64) -> u128 {
    let mut rest = (u128::from(part) << FRACTION_BITS) / u128::from(whole.max(1));
    if rest >= ONE {
        return ONE / 2;
    }
    // 2^-(1/2), 2^-(1/4), ...: each the root of the one before.
    let mut root = ONE / 2;
    let mut kept = ONE;
    for bit in (0..FRACTION_BITS).rev() {
        root = (root << FRACTION_BITS).isqrt();
        if rest >> bit == 1 {
            kept = (kept * root) >> FRACTION_BITS;
            rest -= 1 << bit;
        }
    }
    kept
}

/// A fraction with itself, so many times.
fn power(mut fraction: u128, mut times: u64) -> u128 {
    let mut product = ONE;
    while times > 0 {
        if times % 2 == 1 {
            product = (product * fraction) >> FRACTION_BITS;
        }
        fraction = (fraction * fraction) >> FRACTION_BITS;
        times /= 2;
    }
    product
}

/// So many base units, as an average.
fn constant(allocated: Amount) -> u128 {
    (u128::from(allocated) * 1_000) << AVERAGE_BITS
}

/// The product of an average and a fraction. Averages are below 2^87.
fn part_of(average: u128, fraction: u128) -> u128 {
    let (high, low) = (average >> FRACTION_BITS, average & (ONE - 1));
    high * fraction + ((low * fraction) >> FRACTION_BITS)
}

impl Past {
    /// Counts the steps that have passed; what was held in between counts as what is held now.
    fn pass(&mut self, queues: &[QueueId], ledger: &Ledger, steps: u64) {
        let Some(kept) = self.kept.map(|kept| power(kept, steps)) else {
            return;
        };
        for id in queues {
            let used = self.used.entry(*id).or_default();
            for key in ledger.all_keys() {
                let allocated = ledger.allocated.row(*id)[key.index()];
                let before = used.get(&key).copied().unwrap_or(0);
                if allocated > 0 || before > 0 {
                    let new = part_of(constant(allocated), ONE - kept);
                    used.insert(key, part_of(before, kept) + new);
                }
            }
        }
    }

    /// A queue is gone; another one of its name or number begins anew.
    pub(super) fn forget(&mut self, queue: QueueId) {
        self.used.remove(&queue);
        self.adopted.remove(&queue);
    }

    fn average(&self, queue: QueueId, key: GovernedId) -> u128 {
        let used = self.used.get(&queue);
        used.and_then(|used| used.get(&key)).copied().unwrap_or(0)
    }
}

/// What the weights of siblings count for one key, by queue, in parts of [`WEIGHT_ONE`]: of what
/// they say, and what they have used.
///
/// Up to a million siblings have used less than 2^107 together, so nothing here reaches 2^128.
fn adjusted(siblings: &[(u16, u128)]) -> Vec<u64> {
    let taking_part = || siblings.iter().filter(|(weight, _)| *weight > 0);
    let weights: u128 = taking_part().map(|(weight, _)| u128::from(*weight)).sum();
    let used: u128 = taking_part().map(|(_, used)| *used).sum();
    let adjusted = |&(weight, own): &(u16, u128)| {
        let factor = if used == 0 || weight == 0 {
            WEIGHT_ONE
        } else {
            factor(used * u128::from(weight), own * weights)
        };
        u64::from(weight) * factor
    };
    siblings.iter().map(adjusted).collect()
}

/// What a queue is entitled to over what it has had, within [`FACTOR_MAX`] either way, to the
/// nearest part of [`WEIGHT_ONE`].
fn factor(entitled: u128, own: u128) -> u64 {
    let most = u128::from(FACTOR_MAX);
    if own * most <= entitled {
        return WEIGHT_ONE * FACTOR_MAX;
    }
    if entitled * most <= own {
        return WEIGHT_ONE / FACTOR_MAX;
    }
    // Neither is much smaller than the other, so the digits that are dropped make no difference.
    let most_bits = u128::BITS - WEIGHT_POINT_BITS - 1;
    let dropped = (u128::BITS - entitled.leading_zeros()).saturating_sub(most_bits);
    let (entitled, own) = (entitled >> dropped, own >> dropped);
    let quotient = ((entitled << WEIGHT_POINT_BITS) + own / 2) / own.max(1);
    u64::try_from(quotient).unwrap_or(WEIGHT_ONE)
}

impl QueueTree {
    /// Lets past use count from now on, halved with each half-life of at least a minute; or no
    /// more. A new half-life goes on with the averages that there are; where there are none, with
    /// those of the queues' statuses.
    pub fn set_half_life(&mut self, half_life_ms: Option<u64>) {
        let Some(half_life_ms) = half_life_ms else {
            self.past = Past::default();
            self.weigh_as_said();
            return;
        };
        let begins = self.past.kept.is_none();
        self.past.kept = Some(halved(GRID_MS, half_life_ms.max(GRID_MS)));
        if begins {
            for queue in self.ids() {
                self.adopt_past(queue);
            }
        }
    }

    /// Takes all adjustments of weights back.
    fn weigh_as_said(&mut self) {
        let structure = Arc::make_mut(&mut self.structure);
        structure.weigh_as_said();
        self.mark_all();
        self.fair.outdated();
    }

    /// When the next step of the grid comes; `None`: the past does not count.
    #[must_use]
    pub fn next_use_ms(&self) -> Option<UnixMs> {
        self.past.kept?;
        let step = self.past.step?;
        Some(step.saturating_add(1).saturating_mul(GRID_MS))
    }

    /// Counts what was used up to now. Call it when everything that is held is on the books.
    pub fn count_use(&mut self, now_ms: UnixMs) {
        let step = now_ms / GRID_MS;
        let last = self.past.step;
        if self.past.kept.is_none() || last.is_some_and(|last| last >= step) {
            return;
        }
        let ids = self.ids();
        match last {
            Some(last) => self.past.pass(&ids, &self.ledger, step - last),
            None => {
                let adopted = core::mem::take(&mut self.past.adopted);
                // A queue of which nothing is told had used nothing when the others were told of.
                let latest = adopted.values().max().copied().unwrap_or(step);
                for id in ids {
                    let created = self.structure.node(id).created_ms / GRID_MS;
                    let since = adopted.get(&id).copied();
                    self.catch_up(id, since.unwrap_or(latest.max(created)), step);
                }
            }
        }
        self.past.step = Some(step);
        self.past.used.retain(|_, used| {
            used.retain(|_, average| *average > 0);
            !used.is_empty()
        });
        for id in self.adjust_weights() {
            self.mark(id);
        }
    }

    /// A queue that is seen for the first time brings its past with it.
    pub(super) fn adopt_past(&mut self, queue: QueueId) {
        // tests plant bugs here: past-after-a-start
        if self.past.kept.is_none() || self.past.used.contains_key(&queue) {
            return;
        }
        let Some(past) = self.told_past(queue) else {
            return;
        };
        let mut used = Averages::new();
        for (key, thousandths) in &past.averages {
            let (resource, product) = match key.split_once('@') {
                Some((resource, product)) => (resource, Some(product)),
                None => (&**key, None),
            };
            let Some(key) = self.keys.lookup(resource, product) else {
                continue;
            };
            used.insert(key, u128::from(*thousandths) << AVERAGE_BITS);
        }
        let step = past.at_ms / GRID_MS;
        self.past.used.insert(queue, used);
        match self.past.step {
            None => {
                self.past.adopted.insert(queue, step);
            }
            Some(now) => self.catch_up(queue, step, now),
        }
    }

    /// Brings what a queue has brought with it up to a step.
    fn catch_up(&mut self, queue: QueueId, since: u64, now: u64) {
        // tests plant bugs here: steps-to-catch-up
        let steps = now.saturating_sub(since);
        self.past.pass(&[queue], &self.ledger, steps);
    }

    /// What the queue has used on average, for its status: in thousandths of base units.
    pub(super) fn past_use(&self, queue: QueueId) -> Option<PastUse> {
        self.past.kept?;
        let used = self.past.used.get(&queue)?;
        let mut averages: Vec<(Box<str>, Amount)> = used
            .iter()
            .map(|(key, average)| {
                let thousandths = (average + (1 << (AVERAGE_BITS - 1))) >> AVERAGE_BITS;
                let thousandths = Amount::try_from(thousandths).unwrap_or(Amount::MAX);
                (self.keys.name(*key).into(), thousandths)
            })
            .filter(|(_, thousandths)| *thousandths > 0)
            .collect();
        averages.sort();
        let at_ms = self.past.step?.saturating_mul(GRID_MS);
        (!averages.is_empty()).then_some(PastUse { at_ms, averages })
    }

    /// Adjusts all weights; the queues of which one counts for something else than before.
    pub(super) fn adjust_weights(&mut self) -> Vec<QueueId> {
        let mut changed: Vec<(QueueId, GovernedId, u64)> = Vec::new();
        if self.past.kept.is_some() {
            for parent in self.structure.with_root() {
                self.adjusted_below(*parent, &mut changed);
            }
        }
        if !changed.is_empty() {
            let structure = Arc::make_mut(&mut self.structure);
            for (id, key, weight) in &changed {
                structure.set_weight(*id, *key, *weight);
            }
            self.fair.outdated();
        }
        changed.into_iter().map(|(id, ..)| id).collect()
    }

    /// Which of the weights below a queue count for something else than before.
    fn adjusted_below(&self, parent: QueueId, changed: &mut Vec<(QueueId, GovernedId, u64)>) {
        for key in self.structure.divided_below(parent) {
            let children = self.structure.node(parent).children.iter();
            let weighed =
                children.filter_map(|&id| Some((id, self.structure.node(id).terms_of(key)?)));
            let siblings: Vec<(u16, u128)> = weighed
                .clone()
                .map(|(id, terms)| (terms.said_weight, self.past.average(id, key)))
                .collect();
            let differs = weighed.zip(adjusted(&siblings));
            let differs = differs.filter(|((_, terms), weight)| terms.weight != *weight);
            changed.extend(differs.map(|((id, _), weight)| (id, key, weight)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ONE, WEIGHT_ONE, adjusted, factor, halved, power};
    use alloc::vec::Vec;

    #[test]
    fn fractions_halve_with_each_half_life() {
        let near = |fraction: u128, expected: f64| {
            #[expect(clippy::cast_precision_loss, reason = "a test of digits")]
            let found = fraction as f64 / ONE as f64;
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        };
        near(halved(1, 1), 0.5);
        near(halved(1, 2), 0.5f64.powf(0.5));
        near(halved(60, 86_400), 0.5f64.powf(60.0 / 86_400.0));
        near(power(halved(60, 86_400), 1_440), 0.5);
        near(power(halved(60, 86_400), 0), 1.0);
    }

    #[test]
    fn weights_fall_with_use_within_a_factor_of_four() {
        let parts = |over: u64, under: u64| {
            let weight = u128::from(WEIGHT_ONE) * u128::from(over);
            u64::try_from((weight + u128::from(under / 2)) / u128::from(under)).unwrap()
        };
        let check = |siblings: &[(u16, u128)], expected: &[(u64, u64)]| {
            let expected: Vec<u64> = expected.iter().map(|it| parts(it.0, it.1)).collect();
            assert_eq!(adjusted(siblings), expected, "{siblings:?}");
        };
        check(&[(1, 0), (1, 0)], &[(1, 1), (1, 1)]);
        check(&[(1, 7), (1, 7)], &[(1, 1), (1, 1)]);
        check(&[(2, 2_000_000), (1, 1_000_000)], &[(2, 1), (1, 1)]);
        check(&[(1, 3), (1, 1)], &[(2, 3), (2, 1)]);
        check(&[(1, 9_000_000), (1, 0)], &[(1, 2), (4, 1)]);
        check(&[(1, 0), (1, 0), (1, 1 << 86)], &[(4, 1), (4, 1), (1, 3)]);
        check(&[(0, 5_000_000), (3, 5_000_000)], &[(0, 1), (3, 1)]);
        check(&[(1, 100), (99, 1)], &[(1, 4), (99 * 4, 1)]);
        let huge = [(u16::MAX, u128::MAX >> 41); 1_000];
        assert_eq!(adjusted(&huge)[999], u64::from(u16::MAX) * WEIGHT_ONE);
    }

    #[test]
    fn factors_of_huge_uses_are_those_of_small_ones() {
        for (entitled, own) in [(1, 3), (7, 5), (999, 1_000), (4, 1), (1, 4), (1_000, 251)] {
            let small = factor(entitled, own);
            let huge = factor(entitled << 115, own << 115);
            assert_eq!(small, huge, "{entitled} over {own}");
        }
    }
}
