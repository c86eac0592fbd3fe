//! What evicting pods costs: a row of sums that is compared from the first sum on.

use core::cmp::Ordering;
use smallvec::{SmallVec, smallvec};

/// Costs are kept in so many parts, so that the cost of a gang can be split among the nodes on
/// which the gang stands. All numbers up to 8 divide it.
const PARTS: u64 = 840;

/// How many sums follow the counts of broken gangs by priority.
const LAST: usize = 4;

/// What a set of evictions costs.
///
/// The sums, in the order in which they decide: broken gangs outside queues of weight 0, broken
/// gangs, broken gangs of each priority from the highest down, GPU-seconds lost, CPU-seconds lost,
/// pods, seconds that the pods have run. Costs are added and compared sum by sum, so the smallest
/// sum of costs is the smallest in each sum that decides.
///
/// Of sets with equally many broken gangs, a set with more gangs of a high priority has the larger
/// list of priorities, sorted from the highest down.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Cost(SmallVec<[u64; 8]>);

/// What evicting some pods loses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Loss {
    pub(super) gpu_seconds: u64,
    pub(super) cpu_seconds: u64,
    pub(super) pods: u64,
    pub(super) run_seconds: u64,
}

impl Clone for Cost {
    /// Copies the sums as a slice, because their own `clone` goes element by element.
    fn clone(&self) -> Self {
        Self(SmallVec::from_slice(&self.0))
    }
}

impl Cost {
    /// No cost, where broken gangs have so many priorities.
    pub(super) fn zero(priorities: usize) -> Self {
        Self(smallvec![0; 2 + priorities + LAST])
    }

    /// The cost of evicting pods. `breaks`: they are the minimum of a gang; the place of its
    /// priority among all, the highest first, and whether its queue has a weight other than 0.
    pub(super) fn new(priorities: usize, breaks: Option<(usize, bool)>, loss: Loss) -> Self {
        let mut cost = Self::zero(priorities);
        if let Some((place, has_weight)) = breaks {
            cost.0[0] = u64::from(has_weight);
            cost.0[1] = 1;
            cost.0[2 + place] = 1;
        }
        let last = [
            loss.gpu_seconds,
            loss.cpu_seconds,
            loss.pods,
            loss.run_seconds,
        ];
        cost.0[2 + priorities..].copy_from_slice(&last);
        for sum in &mut cost.0 {
            *sum = sum.saturating_mul(PARTS);
        }
        cost
    }

    /// No cost, with as many sums.
    pub(super) fn none(&self) -> Self {
        Self(smallvec![0; self.0.len()])
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Whether this cost and more together are less than another cost.
    pub(super) fn is_less_with(&self, more: &Self, than: &Self) -> bool {
        let sums = self.0.iter().zip(&more.0);
        let sums = sums.map(|(sum, more)| sum.saturating_add(*more));
        sums.lt(than.0.iter().copied())
    }

    /// One of `parts` equal parts, rounded down: all parts together cost no more than the whole.
    pub(super) fn part(&self, parts: usize) -> Self {
        let parts = parts.max(1) as u64;
        Self(self.0.iter().map(|sum| sum / parts).collect())
    }

    /// How many gangs are broken.
    pub(crate) fn broken(&self) -> u64 {
        self.0.get(1).map_or(0, |sum| sum / PARTS)
    }

    /// How many gangs any set breaks that costs no less than this: each breaks as many outside
    /// queues of weight 0 at least, and a set that breaks fewer gangs in all breaks more outside.
    pub(crate) fn broken_at_least(&self) -> u64 {
        let outside = self.0.first().map_or(0, |sum| sum / PARTS);
        self.broken().min(outside + 1).max(outside)
    }

    /// How many GPU-seconds are lost.
    pub(crate) fn gpu_seconds(&self) -> u64 {
        let at = self.0.len().checked_sub(LAST);
        at.map_or(0, |at| self.0[at] / PARTS)
    }

    /// `self - before`, as a difference for each sum.
    fn rise(&self, before: &Self) -> SmallVec<[i128; 8]> {
        let sums = self.0.iter().zip(&before.0);
        sums.map(|(now, before)| i128::from(*now) - i128::from(*before))
            .collect()
    }

    /// The order of two rises, each for each pod that is gained.
    pub(super) fn compare_rises(
        (one_from, one, one_gain): (&Self, &Self, u64),
        (other_from, other, other_gain): (&Self, &Self, u64),
    ) -> Ordering {
        slope_order(
            (&one.rise(one_from), one_gain),
            (&other.rise(other_from), other_gain),
        )
    }

    /// Adds the way from one cost to another.
    pub(super) fn add_rise(&mut self, from: &Self, to: &Self) {
        for (sum, (from, to)) in self.0.iter_mut().zip(from.0.iter().zip(&to.0)) {
            *sum = sum.saturating_add(*to).saturating_sub(*from);
        }
    }

    /// The least that a set of whole units can cost, if it costs no less than this and `part` of
    /// `whole` of the way from one cost to another: rounded up to whole units, and once a sum had
    /// to be rounded up, the sums after it may be anything.
    pub(super) fn least_whole(&self, from: &Self, to: &Self, part: u64, whole: u64) -> Self {
        let whole = i128::from(whole.max(1));
        let mut least = Self(smallvec![0; self.0.len()]);
        for (index, rise) in to.rise(from).into_iter().enumerate() {
            let unit = whole * i128::from(PARTS);
            let sum = i128::from(self.0[index]) * whole + rise * i128::from(part);
            let is_whole = sum.rem_euclid(unit) == 0;
            let units = sum.div_euclid(unit) + i128::from(!is_whole);
            let parts = (units * i128::from(PARTS)).max(0);
            least.0[index] = u64::try_from(parts).unwrap_or(u64::MAX);
            if !is_whole {
                break;
            }
        }
        least
    }
}

fn slope_order(one: (&[i128], u64), other: (&[i128], u64)) -> Ordering {
    let by = |gain: u64| i128::from(gain.max(1));
    let left = one.0.iter().map(|rise| rise * by(other.1));
    let right = other.0.iter().map(|rise| rise * by(one.1));
    left.cmp(right)
}

#[cfg(test)]
mod tests;
