//! Past use, and how it adjusts weights.
//!
//! What a queue holds is looked at once a minute, and averaged with weights that halve with each
//! half-life. Averages are fixed-point numbers, so that every machine has equal ones.
//!
//! A weight is multiplied by the queue's part of its siblings' weights over its part of what they
//! have used: a queue that has used twice its part counts half. The factor is at most four and at
//! least a quarter. The product is used like any weight, so order and fair shares know nothing of
//! past use. What is within quota is not touched, and a weight of 0 stays 0. Siblings of weight 0
//! do not count for the others.
//!
//! Weights are adjusted each minute, and when queues change.

use super::ledger::Ledger;
use super::node::{WEIGHT_ONE, WEIGHT_POINT_BITS};
use super::{GovernedId, QueueId, QueueTree};
use crate::facts::{Amount, PastUse, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};

/// The length of a step in which use is counted, in milliseconds; steps begin at its multiples.
pub(crate) const GRID_MS: u64 = 60_000;

/// How many bits a fraction of the past has after the point.
const FRACTION_BITS: u32 = 62;
const ONE: u128 = 1 << FRACTION_BITS;
/// How many bits an average has after the point. Averages are in thousandths of base units, and of
/// GPUs in thousandths of a card, as in statuses, so that what is read from a status is exactly
/// what was written to it.
const AVERAGE_BITS: u32 = 22;
/// The largest factor by which past use changes a weight; the smallest is one over it.
const FACTOR_MAX: u64 = 4;

/// The average use of one queue, by key.
type Averages = BTreeMap<GovernedId, u128>;

/// The past use of all queues.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The part of an average that remains after one step; `None`: past use does not count.
    kept: Option<u128>,
    /// The step up to which use is counted; `None`: none is counted yet.
    step: Option<u64>,
    used: BTreeMap<QueueId, Averages>,
    /// Queues whose averages were read from their status before the first step was counted, and the
    /// step that each status is of.
    adopted: BTreeMap<QueueId, u64>,
}

/// `2^-(part / whole)`, with [`FRACTION_BITS`] after the point; `part` must not exceed `whole`.
fn halved(part: u64, whole: u64) -> u128 {
    let mut rest = (u128::from(part) << FRACTION_BITS) / u128::from(whole.max(1));
    if rest >= ONE {
        return ONE / 2;
    }
    // In the loop: 2^-(1/2), 2^-(1/4), ..., each the square root of the one before.
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

/// A fraction to the power of `times`.
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

/// The average of a queue that has always held so many base units, of which so many make one whole.
fn constant(allocated: Amount, whole: Amount) -> u128 {
    ((u128::from(allocated) * 1_000) << AVERAGE_BITS) / u128::from(whole)
}

/// The product of an average and a fraction. Averages are below 2^87.
fn part_of(average: u128, fraction: u128) -> u128 {
    let (high, low) = (average >> FRACTION_BITS, average & (ONE - 1));
    high * fraction + ((low * fraction) >> FRACTION_BITS)
}

impl Past {
    /// Counts `steps` steps for these queues. What a queue holds now counts as held in all of them.
    fn pass(&mut self, queues: &[QueueId], ledger: &Ledger, steps: u64) {
        let Some(kept) = self.kept.map(|kept| power(kept, steps)) else {
            return;
        };
        for id in queues {
            let used = self.used.entry(*id).or_default();
            for key in ledger.all_keys() {
                let allocated = ledger.held_now(*id, key);
                let before = used.get(&key).copied().unwrap_or(0);
                if allocated > 0 || before > 0 {
                    let constant = constant(allocated, ledger.grains.whole(key));
                    let new = part_of(constant, ONE - kept);
                    used.insert(key, part_of(before, kept) + new);
                }
            }
        }
    }

    /// Forgets a queue that was deleted: another queue of its name or number begins anew.
    pub(super) fn forget(&mut self, queue: QueueId) {
        self.used.remove(&queue);
        self.adopted.remove(&queue);
    }

    fn average(&self, queue: QueueId, key: GovernedId) -> u128 {
        let used = self.used.get(&queue);
        used.and_then(|used| used.get(&key)).copied().unwrap_or(0)
    }
}

/// What the weights of siblings count for with one key, in parts of [`WEIGHT_ONE`]. `siblings`: the
/// weight that each one's definition says, and its average use.
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

/// What a queue is entitled to over its own use, in parts of [`WEIGHT_ONE`], rounded to the
/// nearest; within [`FACTOR_MAX`] either way.
fn factor(entitled: u128, own: u128) -> u64 {
    let factor_max = u128::from(FACTOR_MAX);
    if own * factor_max <= entitled {
        return WEIGHT_ONE * FACTOR_MAX;
    }
    if entitled * factor_max <= own {
        return WEIGHT_ONE / FACTOR_MAX;
    }
    // Neither number is more than four times the other, so dropped digits make no difference.
    let most_bits = u128::BITS - WEIGHT_POINT_BITS - 1;
    let dropped = (u128::BITS - entitled.leading_zeros()).saturating_sub(most_bits);
    let (entitled, own) = (entitled >> dropped, own >> dropped);
    let quotient = ((entitled << WEIGHT_POINT_BITS) + own / 2) / own.max(1);
    u64::try_from(quotient).unwrap_or(WEIGHT_ONE)
}

impl QueueTree {
    /// Lets past use count from now on, with this half-life in milliseconds (at least a minute;
    /// less counts as a minute), or no more (`None`). A changed half-life goes on with the averages
    /// that there are. Where past use did not count before, averages begin with those of the
    /// queues' statuses.
    pub(crate) fn set_half_life(&mut self, half_life_ms: Option<u64>) {
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

    /// Lets every weight count for what its definition says.
    fn weigh_as_said(&mut self) {
        let structure = Arc::make_mut(&mut self.structure);
        structure.weigh_as_said();
        self.mark_all();
        self.fair.outdated();
    }

    /// When the next step is to be counted; `None`: past use does not count, or
    /// [`QueueTree::count_use`] has not been called yet.
    pub(crate) fn next_use_ms(&self) -> Option<UnixMs> {
        self.past.kept?;
        let step = self.past.step?;
        Some(step.saturating_add(1).saturating_mul(GRID_MS))
    }

    /// Counts the use of all steps up to now, and adjusts the weights.
    ///
    /// The trap: what is not charged yet counts as not held, so charge everything before.
    pub(crate) fn count_use(&mut self, now_ms: UnixMs) {
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
                // A queue whose status tells nothing had used nothing as of the latest status of
                // another.
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

    /// Takes the averages of a queue from its status, unless the tree has averages of it.
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

    /// Counts the steps from `since` to `now` for one queue.
    fn catch_up(&mut self, queue: QueueId, since: u64, now: u64) {
        // tests plant bugs here: steps-to-catch-up
        let steps = now.saturating_sub(since);
        self.past.pass(&[queue], &self.ledger, steps);
    }

    /// The average use of a queue, for its status: in thousandths of base units, of GPUs in
    /// thousandths of a card, rounded. `None`: past use does not count, or the queue has used
    /// nothing.
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

    /// Adjusts all weights. Returns the queues with a weight that counts for something else than
    /// before.
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

    /// Adds to `changed` the weights below a queue that count for something else than before.
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
