//! Past use, and how it adjusts weights.
//!
//! What a queue holds is looked at on a grid of a minute, and averaged with weights that halve with
//! each half-life. Averages are numbers with a fixed point, so that every machine has the same.
//!
//! A weight is divided by how much of its siblings' use the queue has had against how much of their
//! weights it has: whoever had twice its part counts half, within a factor of four either way. The
//! outcome is a weight again, so order and fair shares know nothing of it. What is within quota is
//! not touched, and a weight of 0 stays 0.

use super::ledger::Ledger;
use super::node::Node;
use super::{GovernedId, QueueId, QueueTree};
use crate::facts::{Amount, PastUse, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};

/// The grid, in milliseconds.
pub(crate) const GRID_MS: u64 = 60_000;

/// Fractions have so many bits.
const FRACTION_BITS: u32 = 62;
const ONE: u128 = 1 << FRACTION_BITS;
/// Averages have so many bits after the point.
const AVERAGE_BITS: u32 = 32;
/// How much a weight may count more or less, as a power of two.
const FACTOR_BITS: u32 = 2;
/// Factors have so many bits after the point.
const FACTOR_POINT_BITS: u32 = 16;

/// The average use of one queue, by key.
type Averages = BTreeMap<GovernedId, u128>;

/// The past use of all queues.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// What is left of the past after one step of the grid; `None`: the past does not count.
    kept: Option<u128>,
    /// The step up to which everything is counted.
    step: Option<u64>,
    used: BTreeMap<Box<str>, Averages>,
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

/// The product of an average and a fraction. Averages are below 2^87.
fn part_of(average: u128, fraction: u128) -> u128 {
    let (high, low) = (average >> FRACTION_BITS, average & (ONE - 1));
    high * fraction + ((low * fraction) >> FRACTION_BITS)
}

impl Past {
    /// Counts the steps that have passed; what was held in between counts as what is held now.
    fn pass(&mut self, names: &[(Arc<str>, QueueId)], ledger: &Ledger, steps: u64) {
        let Some(kept) = self.kept.map(|kept| power(kept, steps)) else {
            return;
        };
        for (name, id) in names {
            let used = self.used.entry((**name).into()).or_default();
            for key in ledger.all_keys() {
                let held = ledger.held.row(*id)[key.index()];
                let before = used.get(&key).copied().unwrap_or(0);
                if held > 0 || before > 0 {
                    let new = part_of(u128::from(held) << AVERAGE_BITS, ONE - kept);
                    used.insert(key, part_of(before, kept) + new);
                }
            }
        }
    }

    /// A queue is gone; another one of its name begins anew.
    pub(super) fn forget(&mut self, name: &str) {
        self.used.remove(name);
    }

    fn average(&self, name: &str, key: GovernedId) -> u128 {
        let used = self.used.get(name);
        used.and_then(|used| used.get(&key)).copied().unwrap_or(0)
    }
}

/// The weights of siblings for one key, by queue: what they say, and what they have used.
fn adjusted(siblings: &[(u16, u128)]) -> Vec<u64> {
    let taking_part = || siblings.iter().filter(|(weight, _)| *weight > 0);
    let weights: u128 = taking_part().map(|(weight, _)| u128::from(*weight)).sum();
    let used: u128 = taking_part().map(|(_, used)| *used).sum();
    let (most, one) = (FACTOR_POINT_BITS + FACTOR_BITS, 1u128 << FACTOR_POINT_BITS);
    let factor = |weight: u16, own: u128| {
        if used == 0 {
            return one;
        }
        // Used is below 2^97 with a thousand siblings, so one of the shifts comes first.
        let entitled = (used / weights.max(1)).saturating_mul(u128::from(weight));
        let factor = entitled.saturating_mul(one) / own.max(1);
        factor.clamp(1 << (FACTOR_POINT_BITS - FACTOR_BITS), 1 << most)
    };
    let one = |&(weight, own): &(u16, u128)| {
        let adjusted = u128::from(weight) * factor(weight, own);
        u64::try_from(adjusted).unwrap_or(u64::MAX)
    };
    siblings.iter().map(one).collect()
}

impl QueueTree {
    /// Lets past use count from now on, halved with each half-life of at least a minute; or no
    /// more. A new half-life goes on with the averages that there are; where there are none, with
    /// those of the queues' statuses.
    pub fn set_half_life(&mut self, half_life_ms: Option<u64>) {
        let Some(half_life_ms) = half_life_ms else {
            self.past = Past::default();
            self.adopted.clear();
            self.weigh_as_said();
            return;
        };
        let begins = self.past.kept.is_none();
        self.past.kept = Some(halved(GRID_MS, half_life_ms.max(GRID_MS)));
        if begins {
            let definitions = self.definitions.iter();
            let past = definitions.filter_map(|(name, facts)| {
                let past = facts.past_use.clone()?;
                Some((name.clone(), past))
            });
            for (name, past) in past.collect::<Vec<_>>() {
                self.adopt_past(&name, &past);
            }
        }
    }

    /// Takes all adjustments of weights back.
    fn weigh_as_said(&mut self) {
        let structure = Arc::make_mut(&mut self.structure);
        for id in structure.walk().top_down {
            structure.weigh_as_said(id);
        }
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
        let ids = self.structure.walk().top_down;
        let name = |&id: &QueueId| (Arc::clone(&self.structure.node(id).name), id);
        let names: Vec<_> = ids.iter().map(name).collect();
        match last {
            Some(last) => self.past.pass(&names, &self.ledger, step - last),
            None => {
                let adopted: Vec<_> = core::mem::take(&mut self.adopted).into_iter().collect();
                for (name, since) in adopted {
                    self.catch_up(&name, since, step);
                }
            }
        }
        self.past.step = Some(step);
        self.past.used.retain(|name, used| {
            used.retain(|_, average| *average > 0);
            !used.is_empty() && self.structure.find(name).is_some()
        });
        self.adjust_weights();
    }

    /// A queue that is seen for the first time brings its past with it.
    pub(super) fn adopt_past(&mut self, name: &str, past: &PastUse) {
        if self.past.kept.is_none() || self.past.used.contains_key(name) {
            return;
        }
        let mut used = Averages::new();
        for (key, thousandths) in &past.averages {
            let (resource, product) = match key.split_once('@') {
                Some((resource, product)) => (resource, Some(product)),
                None => (&**key, None),
            };
            let Some(key) = self.keys.lookup(resource, product) else {
                continue;
            };
            used.insert(key, (u128::from(*thousandths) << AVERAGE_BITS) / 1_000);
        }
        let step = past.at_ms / GRID_MS;
        self.past.used.insert(name.into(), used);
        match self.past.step {
            None => {
                self.adopted.insert(name.into(), step);
            }
            Some(now) => self.catch_up(name, step, now),
        }
    }

    /// Brings what a queue has brought with it up to a step.
    fn catch_up(&mut self, name: &str, since: u64, now: u64) {
        if let Some(id) = self.find(name) {
            let names = [(Arc::clone(&self.structure.node(id).name), id)];
            let steps = now.saturating_sub(since);
            self.past.pass(&names, &self.ledger, steps);
        }
    }

    /// What the queue has used on average, for its status: in thousandths of base units.
    pub(super) fn past_use(&self, queue: QueueId) -> Option<PastUse> {
        self.past.kept?;
        let used = self.past.used.get(self.name(queue))?;
        let mut averages: Vec<(Box<str>, Amount)> = used
            .iter()
            .map(|(key, average)| {
                let thousandths = (average * 1_000 + (1 << (AVERAGE_BITS - 1))) >> AVERAGE_BITS;
                let thousandths = Amount::try_from(thousandths).unwrap_or(Amount::MAX);
                (self.keys.name(*key).into(), thousandths)
            })
            .filter(|(_, thousandths)| *thousandths > 0)
            .collect();
        averages.sort();
        let at_ms = self.past.step?.saturating_mul(GRID_MS);
        (!averages.is_empty()).then_some(PastUse { at_ms, averages })
    }

    /// Adjusts the weights of all siblings.
    pub(super) fn adjust_weights(&mut self) {
        if self.past.kept.is_none() {
            return;
        }
        let mut weights: Vec<(QueueId, GovernedId, u16)> = Vec::new();
        for parent in self.structure.walk().with_root() {
            self.adjusted_below(parent, &mut weights);
        }
        let structure = Arc::make_mut(&mut self.structure);
        for (id, key, weight) in weights {
            structure.set_weight(id, key, weight);
        }
        self.mark_all();
        self.fair.outdated();
    }

    fn adjusted_below(&self, parent: QueueId, weights: &mut Vec<(QueueId, GovernedId, u16)>) {
        let children = &self.structure.node(parent).children;
        let mut found: Vec<(QueueId, GovernedId, u64)> = Vec::new();
        for key in self.structure.divided_below(parent) {
            let said = |node: &Node| node.terms_of(key).map_or(0, |terms| terms.said_weight);
            let of = |&id: &QueueId| {
                let node = self.structure.node(id);
                (said(node), self.past.average(&node.name, key))
            };
            let siblings: Vec<(u16, u128)> = children.iter().map(of).collect();
            let adjusted = children.iter().zip(adjusted(&siblings));
            found.extend(adjusted.map(|(&id, weight)| (id, key, weight)));
        }
        // Only their ratios mean anything; the largest becomes the largest that there is.
        let largest = found.iter().map(|(.., weight)| *weight).max().unwrap_or(0);
        weights.extend(found.into_iter().map(|(id, key, weight)| {
            let most = u64::from(u16::MAX);
            let fitting = weight.saturating_mul(most) / largest.max(1);
            let fitting = fitting.max(u64::from(weight > 0));
            (id, key, u16::try_from(fitting).unwrap_or(u16::MAX))
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::{ONE, adjusted, halved, power};

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
        let check = |siblings: &[(u16, u128)], expected: &[f64]| {
            let adjusted = adjusted(siblings);
            for (found, expected) in adjusted.iter().zip(expected) {
                #[expect(clippy::cast_precision_loss, reason = "a test of digits")]
                let found = *found as f64 / 65_536.0;
                assert!((found - expected).abs() < 1e-3, "{adjusted:?} {expected}");
            }
        };
        check(&[(1, 0), (1, 0)], &[1.0, 1.0]);
        check(&[(1, 1_000_000), (1, 1_000_000)], &[1.0, 1.0]);
        check(&[(2, 2_000_000), (1, 1_000_000)], &[2.0, 1.0]);
        check(&[(1, 3_000_000), (1, 1_000_000)], &[2.0 / 3.0, 2.0]);
        check(&[(1, 9_000_000), (1, 0)], &[0.5, 4.0]);
        check(&[(1, 0), (1, 0), (8, 8 << 80)], &[4.0, 4.0, 6.4]);
        check(&[(0, 5_000_000), (3, 5_000_000)], &[0.0, 3.0]);
    }
}
