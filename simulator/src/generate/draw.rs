//! Drawing from tables, in whole numbers.

use crate::random::Random;

/// A choice among weights.
#[derive(Debug, Clone)]
pub(super) struct Weighted {
    /// For each choice the sum of its weight and of all weights before it.
    sums: Vec<u64>,
}

impl Weighted {
    /// At least one weight must not be 0, and their sum below 2^64.
    pub(super) fn new(weights: impl IntoIterator<Item = u64>) -> Self {
        let mut sum = 0;
        let sums = weights.into_iter().map(|weight| {
            sum += weight;
            sum
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// Draws the index of a choice.
    pub(super) fn pick(&self, random: &mut Random) -> usize {
        let drawn = random.below(self.total());
        self.sums.partition_point(|sum| *sum <= drawn)
    }

    /// The index of the choice below which this fraction of the weight lies.
    pub(super) fn at(&self, fraction: Fraction) -> usize {
        let drawn = u128::from(self.total()) * u128::from(fraction.0) / u128::from(WHOLE);
        self.sums.partition_point(|sum| u128::from(*sum) <= drawn)
    }

    fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or_default()
    }
}

/// How many parts a whole has, see [`Fraction`].
const WHOLE: u64 = 1_000_000_000;

/// From 0 to below 1, in parts of [`WHOLE`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Fraction(u64);

impl Fraction {
    /// Anywhere within one of `count` equal parts of the whole. `count` must not be 0.
    pub(super) fn of_stratum(stratum: u64, count: u64, random: &mut Random) -> Self {
        Self((stratum * WHOLE + random.below(WHOLE)) / count)
    }
}

/// All orders are equally likely (Fisher and Yates).
pub(super) fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for end in 1..items.len() {
        let other = random.below(end as u64 + 1);
        items.swap(end, usize::try_from(other).unwrap_or(end));
    }
}

/// For each knot of [`Quantiles`]: how many of 1,000 values are at most as large.
const PER_MILLE: [u64; 10] = [0, 50, 100, 250, 500, 750, 900, 950, 990, 1_000];

/// A distribution as the values at [`PER_MILLE`], and straight lines between them.
///
/// The mean of the distribution is that of the lines. For tails as long as those of jobs it is far
/// more than the mean of a curve through the same values. So the last value is chosen to make the
/// mean right, and is not the longest job that was ever seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantiles(pub(super) [u64; 10]);

impl Quantiles {
    /// Inverse transform sampling: the value below which this fraction of all values lies.
    pub(super) fn at(&self, fraction: Fraction) -> u64 {
        let part = |knot: usize| PER_MILLE[knot] * (WHOLE / 1_000);
        let upper = (1..9).find(|knot| fraction.0 < part(*knot)).unwrap_or(9);
        let (low, high) = (self.0[upper - 1], self.0[upper]);
        let (from, to) = (part(upper - 1), part(upper));
        low + (high - low) * (fraction.0 - from) / (to - from)
    }

    /// A thousand times the mean of the distribution.
    pub(super) fn mean_thousandths(&self) -> u64 {
        let values = self.0.windows(2).map(|pair| pair[0] + pair[1]);
        let widths = PER_MILLE.windows(2).map(|pair| pair[1] - pair[0]);
        values
            .zip(widths)
            .map(|(sum, width)| sum * width)
            .sum::<u64>()
            / 2
    }
}
