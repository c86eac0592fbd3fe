//! Real over expected runtimes.

use super::summary::quantile;

/// How long some jobs ran, over how long they were expected to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ratios {
    /// How many jobs there are.
    pub jobs: u64,
    /// The median of the ratios of the real to the expected time, in thousandths. `None`: there are
    /// no jobs.
    pub median: Option<u64>,
    /// The 95th percentile of the ratios, in thousandths.
    pub p95: Option<u64>,
    /// How many jobs ran for longer than expected.
    pub overruns: u64,
}

impl Ratios {
    /// Of jobs with their real and their expected time, in seconds each.
    pub(super) fn of(jobs: &[(u64, u64)]) -> Self {
        let overruns = jobs
            .iter()
            .filter(|(real_s, expected_s)| real_s > expected_s);
        let overruns = overruns.count() as u64;
        // The engine takes no time for a second, too. Times of traces are far from overflow.
        let ratio = |(real_s, expected_s): &(u64, u64)| real_s * 1_000 / expected_s.max(&1);
        let mut ratios: Vec<u64> = jobs.iter().map(ratio).collect();
        Self {
            jobs: ratios.len() as u64,
            median: quantile(&mut ratios, 50),
            p95: quantile(&mut ratios, 95),
            overruns,
        }
    }

    /// The part of the jobs that ran for longer, in tenths of a percent; `None`: there are no jobs.
    #[must_use]
    pub fn overruns_per_mille(&self) -> Option<u64> {
        (self.overruns * 1_000 + self.jobs / 2).checked_div(self.jobs)
    }

    /// The columns `ratio_median`, `ratio_p95` and `overruns`.
    pub(super) fn columns(&self) -> [String; 3] {
        let overruns = self.overruns.to_string();
        [ratio(self.median), ratio(self.p95), overruns]
    }
}

/// A ratio in thousandths as tables have it; empty if there is none.
#[must_use]
pub fn ratio(thousandths: Option<u64>) -> String {
    thousandths.map_or_else(String::new, |it| {
        format!("{}.{:03}", it / 1_000, it % 1_000)
    })
}
