//! Runs as files: every job, and the summaries of the runs.

use super::fairness::{Fairness, fairness};
use super::summary::{Summary, seconds, summaries};
use super::{Run, Workload};
use crate::report;
use crate::report::jobs::{Queue, Record};
use std::io::{self, Write};

/// The name of all queues together.
pub const ALL: &str = "ALL";

/// A run with its summaries.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// The run.
    pub run: Run,
    /// A summary for each queue that has jobs, and as the last one that of all queues.
    pub summaries: Vec<Summary>,
    /// How evenly the run served the queues.
    pub fairness: Fairness,
}

/// Works out the summaries and the fairness of a run.
#[must_use]
pub fn evaluate(run: Run, workload: Workload<'_>) -> Evaluated {
    Evaluated {
        summaries: summaries(&run, workload),
        fairness: fairness(&run, workload),
        run,
    }
}

/// Writes `policy,row,queue,start_s,end_s`: every job of the trace under every policy, in the order
/// of the trace. A job that never starts has neither start nor end.
///
/// # Errors
/// If the file cannot be written.
pub fn write_jobs(runs: &[Evaluated], workload: Workload<'_>, file: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record(["policy", "row", "queue", "start_s", "end_s"])?;
    let jobs = workload.jobs;
    for Evaluated { run, .. } in runs {
        for (index, job) in jobs.jobs.iter().enumerate() {
            table.write_record([
                run.policy.name(),
                &job.row.to_string(),
                &jobs.queues[job.queue as usize],
                &text(run.starts_s[index]),
                &text(run.end_s(index, job)),
            ])?;
        }
    }
    table.flush()
}

/// Writes `policy,queue,jobs,avg_jct_s,avg_queue_s,p99_queue_s,makespan_s`: a line for each queue,
/// and a line for `ALL`, which has neither p99 nor makespan, as in published summaries.
///
/// # Errors
/// If the file cannot be written.
pub fn write_summary(
    runs: &[Evaluated],
    workload: Workload<'_>,
    file: impl Write,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record([
        "policy",
        "queue",
        "jobs",
        "avg_jct_s",
        "avg_queue_s",
        "p99_queue_s",
        "makespan_s",
    ])?;
    for Evaluated { run, summaries, .. } in runs {
        for summary in summaries {
            let of_one = |figure| text(summary.queue.filter(|_| summary.jobs > 0).map(|_| figure));
            table.write_record([
                run.policy.name(),
                name(summary.queue, workload),
                &summary.jobs.to_string(),
                &seconds(summary.completion),
                &seconds(summary.wait),
                &of_one(summary.wait_p99_s),
                &of_one(summary.makespan_s),
            ])?;
        }
    }
    table.flush()
}

/// Writes `policy,utilisation,jain,worst_queue,worst_served`, see [`Fairness`].
///
/// # Errors
/// If the file cannot be written.
pub fn write_fairness(
    runs: &[Evaluated],
    workload: Workload<'_>,
    file: impl Write,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record([
        "policy",
        "utilisation",
        "jain",
        "worst_queue",
        "worst_served",
    ])?;
    for Evaluated { run, fairness, .. } in runs {
        let worst = fairness.worst();
        table.write_record([
            run.policy.name(),
            &format!("{:.6}", fairness.utilisation),
            &format!("{:.6}", fairness.jain),
            worst.map_or("", |(queue, _)| &workload.queues[queue].name),
            &worst.map_or_else(String::new, |(_, served)| format!("{served:.6}")),
        ])?;
    }
    table.flush()
}

/// The name of a queue of the workload; `None`: of all queues together.
#[must_use]
pub fn name(queue: Option<usize>, workload: Workload<'_>) -> &str {
    queue.map_or(ALL, |queue| &workload.queues[queue].name)
}

fn text(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// The record of a run over time, for the page about it.
#[must_use]
pub fn record(run: &Run, workload: Workload<'_>) -> Record {
    let of_gpus = |gpus: u64| gpus * 1_000;
    let quota = |nodes: u32| of_gpus(u64::from(nodes) * u64::from(workload.gpus_per_node));
    let queues: Vec<Queue> = workload
        .queues
        .iter()
        .map(|queue| Queue {
            name: queue.name.clone(),
            quota: Some(quota(queue.nodes)),
        })
        .collect();
    let capacity = queues.iter().filter_map(|queue| queue.quota).sum();
    let mut record = Record::new(run.policy.name(), queues, capacity);
    let places = workload.queues_of_trace();
    for (index, job) in workload.jobs.jobs.iter().enumerate() {
        let Some(queue) = places[job.queue as usize] else {
            continue;
        };
        record.job(&report::jobs::Job {
            queue,
            gpu_thousandths: of_gpus(u64::from(job.num_gpus)),
            submit_s: job.submit_s,
            start_s: run.starts_s[index],
            end_s: run.end_s(index, job),
        });
    }
    for share in &run.fair_shares {
        record.fair_share(share.at_s, share.queue, of_gpus(share.gpus));
    }
    record
}
