//! A value over time in bounded memory: means over stretches of time that grow with the run.

/// The most stretches that a run is cut into. When the length of the stretches is doubled, their
/// number halves.
const BUCKETS_MAX: usize = 400;

/// A value that changes at whole seconds, kept as its mean over each of a few hundred stretches.
///
/// Changes come in any order. At first a stretch is one second long; the length is doubled whenever
/// a change lies behind the last stretch that there may be. The means are exact: nothing is
/// sampled.
#[derive(Debug, Clone)]
pub(super) struct Buckets {
    width_s: u64,
    buckets: Vec<Bucket>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// The sum of all changes in the stretch.
    change: i64,
    /// The sum of all changes in the stretch, each times the seconds from the change to the end of
    /// the stretch.
    area: i128,
}

impl Default for Buckets {
    fn default() -> Self {
        let buckets = Vec::new();
        Self {
            width_s: 1,
            buckets,
        }
    }
}

impl Buckets {
    /// Changes the value by `change` at this second.
    pub(super) fn add(&mut self, at_s: u64, change: i64) {
        if change == 0 {
            return;
        }
        let index = self.make_room(at_s);
        let bucket = &mut self.buckets[index];
        let rest_s = self.width_s - at_s % self.width_s;
        bucket.change += change;
        bucket.area += i128::from(change) * i128::from(rest_s);
    }

    /// Adds another value to this one, for all times.
    pub(super) fn merge(&mut self, mut other: Self) {
        self.widen(other.width_s);
        other.widen(self.width_s);
        let length = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(length, Bucket::default());
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket = bucket.plus(*more);
        }
    }

    /// The length of a stretch, in seconds.
    pub(super) fn width_s(&self) -> u64 {
        self.width_s
    }

    /// Makes stretches at least so long. `width_s` is a power of two, as all lengths of stretches
    /// are.
    pub(super) fn widen(&mut self, width_s: u64) {
        while self.width_s < width_s {
            self.double();
        }
    }

    /// How many stretches there are, up to that of the last change.
    pub(super) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// The mean of the value over each of the first `count` stretches. After the last change the
    /// value stays as it is.
    pub(super) fn means(&self, count: usize) -> Vec<f64> {
        let mut value = 0;
        let rest = std::iter::repeat(Bucket::default());
        let buckets = self.buckets.iter().copied().chain(rest).take(count);
        let mean = |bucket: Bucket| {
            let before = as_float(value);
            value += bucket.change;
            before + as_float(bucket.area) / as_float(self.width_s)
        };
        buckets.map(mean).collect()
    }

    fn make_room(&mut self, at_s: u64) -> usize {
        loop {
            match usize::try_from(at_s / self.width_s) {
                Ok(index) if index < BUCKETS_MAX => {
                    let length = self.buckets.len().max(index + 1);
                    self.buckets.resize(length, Bucket::default());
                    return index;
                }
                _ => self.double(),
            }
        }
    }

    fn double(&mut self) {
        let width_s = i128::from(self.width_s);
        let halves = self.buckets.chunks(2);
        let whole = halves.map(|halves| {
            let second = halves.get(1).copied().unwrap_or_default();
            let mut whole = halves[0].plus(second);
            whole.area += i128::from(halves[0].change) * width_s;
            whole
        });
        self.buckets = whole.collect();
        self.width_s *= 2;
    }
}

impl Bucket {
    fn plus(self, other: Self) -> Self {
        Self {
            change: self.change + other.change,
            area: self.area + other.area,
        }
    }
}

/// Sums of a report are far below 2^53, where doubles are exact; beyond it no plot shows more.
#[expect(clippy::cast_precision_loss, reason = "see above")]
pub(super) fn as_float<N: TryInto<i128>>(number: N) -> f64 {
    number.try_into().unwrap_or(i128::MAX) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The value at every second, slowly.
    fn by_second(changes: &[(u64, i64)], seconds: u64) -> Vec<f64> {
        let value = |second: u64| {
            let until = changes.iter().filter(|change| change.0 <= second);
            as_float(until.map(|change| change.1).sum::<i64>())
        };
        (0..seconds).map(value).collect()
    }

    fn changes(seed: u64) -> Vec<(u64, i64)> {
        let mut random = Random::new(seed);
        let one = |_| {
            let change = i64::try_from(random.below(9)).unwrap();
            (random.below(5_000), change - 4)
        };
        (0..60).map(one).collect()
    }

    fn filled(changes: &[(u64, i64)]) -> Buckets {
        let mut buckets = Buckets::default();
        for &(at_s, change) in changes {
            buckets.add(at_s, change);
        }
        buckets
    }

    fn assert_means(buckets: &Buckets, changes: &[(u64, i64)]) {
        let width = buckets.width_s();
        let expected = by_second(changes, width * 500);
        let width = usize::try_from(width).unwrap();
        let means = buckets.means(500);
        for (mean, seconds) in means.iter().zip(expected.chunks(width)) {
            let expected = seconds.iter().sum::<f64>() / as_float(width);
            assert!((mean - expected).abs() < 1e-9, "{mean} is not {expected}");
        }
    }

    #[test]
    fn means_are_those_of_the_seconds() {
        for seed in 0..200 {
            let changes = changes(seed);
            let buckets = filled(&changes);
            assert!(buckets.len() <= BUCKETS_MAX);
            assert_means(&buckets, &changes);
        }
    }

    #[test]
    fn merged_is_as_if_all_came_to_one() {
        for seed in 0..200 {
            let mut changes = changes(seed);
            let (first, second) = changes.split_at_mut(30);
            first.iter_mut().for_each(|change| change.0 /= 100);
            let mut merged = filled(first);
            merged.merge(filled(second));
            assert_means(&merged, &changes);
        }
    }

    #[test]
    fn the_far_future_and_huge_amounts_fit() {
        let mut buckets = Buckets::default();
        buckets.add(3, 5);
        buckets.add(3, 1_000_000_000_000_000);
        buckets.add(4, -1_000_000_000_000_000);
        buckets.add(100_000_000_000, 1);
        buckets.add(100_000_000_000, 1_000_000_000_000_000);
        assert!(buckets.len() <= BUCKETS_MAX);
        assert_eq!(buckets.means(2)[1], 5.0);
    }
}
