//! Promised starts, and how true they were.
//!
//! What counts is the first promise to a job: what its owner was told when it began to wait. Later
//! promises are nearer to the truth. A promise is broken where a job runs for longer than expected,
//! and where the order of jobs changes: under drf a queue may come before another one later.

#[cfg(test)]
mod tests;

use super::Run;
use super::summary::quantile;

/// The first promise to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// The index of the job in the trace.
    pub job: usize,
    /// When the promise was made, in seconds.
    pub made_s: u64,
    /// When the job was to start for the first time, in seconds.
    pub start_s: u64,
}

/// How true the promises of a run were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    /// How many jobs were promised a start and have started.
    pub promised: u64,
    /// How many of them started at the promised second or before.
    pub kept: u64,
    /// How late the others started, in seconds; the median. `None`: all promises were kept.
    pub late_median_s: Option<u64>,
    /// The 95th percentile of how late the others started, in seconds.
    pub late_p95_s: Option<u64>,
    /// The median error of the estimate: the promised start minus the real one, in seconds. Above 0
    /// a job starts earlier than promised. `None`: nothing was promised.
    pub error_median_s: Option<i64>,
    /// The 95th percentile of the errors, in seconds: one job of twenty starts earlier still.
    pub error_p95_s: Option<i64>,
}

impl Truth {
    /// The part of the promises that was kept, in tenths of a percent; `None`: there were none.
    #[must_use]
    pub fn kept_per_mille(&self) -> Option<u64> {
        (self.kept * 1_000 + self.promised / 2).checked_div(self.promised)
    }
}

/// How true the promises of a run were. Jobs that never started take no part.
#[must_use]
pub fn truth(run: &Run) -> Truth {
    let started = run.promises.iter().filter_map(|promise| {
        let start_s = run.first_start_s(promise.job)?;
        Some(signed(promise.start_s) - signed(start_s))
    });
    let mut errors_s: Vec<i64> = started.collect();
    let late = errors_s.iter().filter(|error_s| **error_s < 0);
    let mut late_s: Vec<u64> = late.map(|error_s| error_s.unsigned_abs()).collect();
    Truth {
        promised: errors_s.len() as u64,
        kept: (errors_s.len() - late_s.len()) as u64,
        late_median_s: quantile(&mut late_s, 50),
        late_p95_s: quantile(&mut late_s, 95),
        error_median_s: quantile(&mut errors_s, 50),
        error_p95_s: quantile(&mut errors_s, 95),
    }
}

fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
