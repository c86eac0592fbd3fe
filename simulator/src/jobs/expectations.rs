//! How good the expectations of owners were: how long jobs ran, over how long they were expected to
//! run. Depends on the trace alone.

use super::output::ALL;
use super::ratios::Ratios;
use super::sizes::{CLASSES, class};
use crate::trace::jobs::{Job, Jobs};
use std::io::{self, Write};

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
