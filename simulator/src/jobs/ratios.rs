//! Real over expected runtimes.

use super::summary::quantile;
use gpu_batch_policies::facts::RuntimeSource;
use gpu_batch_policies::report::Forecast;

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

/// How long a job ran of which a runtime was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreseen {
    /// Where the expectation came from.
    pub source: RuntimeSource,
    /// How long the job was expected to run when it started, in seconds.
    pub expected_s: u64,
    /// How long its last run took, in seconds.
    pub real_s: u64,
}

impl Foreseen {
    /// `None`: the forecast is no runtime.
    pub(super) fn of(forecast: Forecast) -> Option<Self> {
        match forecast {
            Forecast::Runtime {
                source,
                expected_ms,
                real_ms,
            } => Some(Self {
                source,
                expected_s: expected_ms / 1_000,
                real_s: real_ms / 1_000,
            }),
            Forecast::Start { .. } | Forecast::Misaligned => None,
        }
    }
}

/// How good expectations were, by where they came from; those without jobs, too.
#[must_use]
pub fn by_source(foreseen: &[Foreseen]) -> [(RuntimeSource, Ratios); 3] {
    RuntimeSource::ALL.map(|source| {
        let jobs = foreseen.iter().filter(|it| it.source == source);
        let pairs: Vec<(u64, u64)> = jobs.map(|it| (it.real_s, it.expected_s)).collect();
        (source, Ratios::of(&pairs))
    })
}

/// A ratio in thousandths as tables have it; empty if there is none.
#[must_use]
pub fn ratio(thousandths: Option<u64>) -> String {
    thousandths.map_or_else(String::new, |it| {
        format!("{}.{:03}", it / 1_000, it % 1_000)
    })
}
