//! The waits of many jobs, in bounded memory.

use super::buckets::as_float;
use std::collections::BTreeMap;

/// Waits of this many seconds or more keep their first three digits only: they are at most 1 % too
/// short.
const EXACT_BELOW_S: u64 = 1_000;

/// The smallest step that a plot of percentages shows, in percent.
const STEP_PERCENT: f64 = 0.2;

/// Counts of waits by length.
#[derive(Debug, Clone, Default)]
pub(super) struct Waits {
    counts: BTreeMap<u64, u64>,
}

impl Waits {
    /// Counts a job that waited so long.
    pub(super) fn add(&mut self, wait_s: u64) {
        *self.counts.entry(shortened(wait_s)).or_default() += 1;
    }

    /// Adds the jobs that another one has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        for (&wait_s, count) in &other.counts {
            *self.counts.entry(wait_s).or_default() += count;
        }
    }

    /// Lengths in seconds, each with the percentage of jobs that waited at most so long, beginning
    /// with 0 s, in steps of [`STEP_PERCENT`] or more. Empty if there is no job.
    pub(super) fn distribution(&self) -> Vec<(f64, f64)> {
        let all: u64 = self.counts.values().sum();
        let mut until = 0;
        let percent = |(&wait_s, &count)| {
            until += count;
            (as_float(wait_s), 100.0 * as_float(until) / as_float(all))
        };
        let mut points: Vec<(f64, f64)> = Vec::new();
        if self.counts.keys().next().is_some_and(|&first| first > 0) {
            points.push((0.0, 0.0));
        }
        for point in self.counts.iter().map(percent) {
            let last = points.last().map_or(f64::NEG_INFINITY, |last| last.1);
            if point.1 >= last + STEP_PERCENT || point.1 == 100.0 {
                points.push(point);
            }
        }
        points
    }
}

fn shortened(wait_s: u64) -> u64 {
    let mut unit = 1;
    while wait_s / unit >= EXACT_BELOW_S {
        unit *= 10;
    }
    wait_s / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_count_all_jobs_up_to_a_length() {
        let mut waits = Waits::default();
        for wait_s in [5, 5, 70, 12_345] {
            waits.add(wait_s);
        }
        let points = waits.distribution();
        assert_eq!(
            points,
            [(0.0, 0.0), (5.0, 50.0), (70.0, 75.0), (12_300.0, 100.0)]
        );
        assert!(Waits::default().distribution().is_empty());
    }
}
