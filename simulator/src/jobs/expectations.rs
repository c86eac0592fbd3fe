//! How good the expectations of owners were: how long jobs ran, over how long they were expected to
//! run. Depends on the trace alone.

use super::output::ALL;
use super::sizes::{CLASSES, class};
use super::summary::quantile;
use crate::trace::jobs::{Job, Jobs};
use std::io::{self, Write};

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

/// How good the expectations of the owners of some jobs were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectations {
    /// The class of the jobs, an index into [`CLASSES`]; `None`: all jobs.
    pub class: Option<usize>,
    /// How many jobs there are.
    pub jobs: u64,
    /// Of those of them that are expected to run for a time.
    pub expected: Ratios,
}

impl Expectations {
    fn of(class: Option<usize>, jobs: &[&Job]) -> Self {
        let expected = jobs.iter().filter_map(|job| {
            let expected_s = job.expected_s?;
            Some((job.duration_s, expected_s))
        });
        let expected: Vec<(u64, u64)> = expected.collect();
        Self {
            class,
            jobs: jobs.len() as u64,
            expected: Ratios::of(&expected),
        }
    }
}

/// How good the expectations of a trace were, by the size of jobs, and of all jobs as the last.
/// Empty if nothing is expected of any job.
#[must_use]
pub fn expectations(jobs: &Jobs) -> Vec<Expectations> {
    if jobs.jobs.iter().all(|job| job.expected_s.is_none()) {
        return Vec::new();
    }
    let of_class = |of: usize| {
        let jobs = jobs.jobs.iter();
        let jobs: Vec<&Job> = jobs.filter(|job| class(job.num_gpus) == of).collect();
        (!jobs.is_empty()).then(|| Expectations::of(Some(of), &jobs))
    };
    let all: Vec<&Job> = jobs.jobs.iter().collect();
    let rows = (0..CLASSES.len()).filter_map(of_class);
    rows.chain([Expectations::of(None, &all)]).collect()
}

/// A ratio in thousandths as tables have it; empty if there is none.
#[must_use]
pub fn ratio(thousandths: Option<u64>) -> String {
    thousandths.map_or_else(String::new, |it| {
        format!("{}.{:03}", it / 1_000, it % 1_000)
    })
}

/// Writes `gpus,jobs,expected,ratio_median,ratio_p95,overruns`: a line for each class of sizes, and
/// one for `ALL`. The ratios are of the real to the expected time.
///
/// # Errors
/// If the file cannot be written.
pub fn write(rows: &[Expectations], file: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record([
        "gpus",
        "jobs",
        "expected",
        "ratio_median",
        "ratio_p95",
        "overruns",
    ])?;
    for row in rows {
        let class = row.class.map_or(ALL, |class| CLASSES[class].0);
        let counts = [row.jobs, row.expected.jobs].map(|count| count.to_string());
        table.write_field(class)?;
        table.write_record(counts.into_iter().chain(row.expected.columns()))?;
    }
    table.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(num_gpus: u32, duration_s: u64, expected_s: Option<u64>) -> Job {
        Job {
            row: 0,
            submit_s: 0,
            duration_s,
            num_gpus,
            queue: 0,
            checkpoint_s: None,
            expected_s,
            owner: None,
        }
    }

    #[test]
    fn ratios_and_overruns_are_those_that_one_works_out_by_hand() {
        let jobs = Jobs {
            jobs: vec![
                job(1, 30, Some(60)),
                job(1, 90, Some(60)),
                job(1, 5, None),
                job(64, 2, Some(0)),
            ],
            queues: vec!["a".to_owned()],
            owners: Vec::new(),
        };
        let mut file = Vec::new();
        write(&expectations(&jobs), &mut file).unwrap();
        assert_eq!(
            String::from_utf8(file).unwrap(),
            "gpus,jobs,expected,ratio_median,ratio_p95,overruns\n\
             1,3,2,1.500,1.500,1\n64+,1,1,2.000,2.000,1\nALL,4,3,1.500,2.000,2\n"
        );
        let nothing = Jobs {
            jobs: vec![job(1, 5, None)],
            ..jobs
        };
        assert_eq!(expectations(&nothing), []);
    }
}
