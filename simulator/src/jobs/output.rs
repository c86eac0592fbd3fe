//! Runs as files: every job, and the summaries of the runs.

use super::evictions::{Losses, Pair};
use super::fairness::{Fairness, fairness};
use super::promises::{Truth, truth};
use super::ratios::{Ratios, by_source};
use super::sizes::{CLASSES, Waits, class, waits};
use super::summary::{Summary, seconds, summaries};
use super::{Run, Workload};
use crate::report;
use crate::report::jobs::{Queue, Record};
use gpu_batch_policies::facts::RuntimeSource;
use std::collections::BTreeMap;
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
    /// How long jobs waited by their size, the smallest first.
    pub sizes: Vec<Waits>,
    /// How true promised starts were.
    pub promises: Truth,
    /// How good expectations were, by where they came from.
    pub runtimes: [(RuntimeSource, Ratios); 3],
    /// How evenly the run served the queues.
    pub fairness: Fairness,
    /// What evictions have taken, by who gave and who got.
    pub losses: BTreeMap<Pair, Losses>,
}

impl Evaluated {
    /// What evictions have taken from a queue; `None`: from all queues together.
    #[must_use]
    pub fn lost_by(&self, queue: Option<usize>) -> Losses {
        let mut sum = Losses::default();
        for ((gave, _), losses) in &self.losses {
            if queue.is_none_or(|queue| queue == *gave) {
                sum.evictions += losses.evictions;
                sum.lost_gpu_s += losses.lost_gpu_s;
            }
        }
        sum
    }

    /// How many jobs came to their end of which nothing was expected when they started.
    #[must_use]
    pub fn unforeseen(&self) -> u64 {
        let ended = self.run.starts_s.iter().flatten().count() as u64;
        let foreseen: u64 = self.runtimes.iter().map(|(_, ratios)| ratios.jobs).sum();
        ended.saturating_sub(foreseen)
    }
}

/// Whether jobs may be evicted in one of the runs. Only then the files and pages have columns for
/// it.
#[must_use]
pub fn any_evicts(runs: &[Evaluated]) -> bool {
    runs.iter().any(|run| run.run.policy.evicts())
}

/// Whether jobs may be promised starts in one of the runs. Only then files and pages tell of
/// promises.
#[must_use]
pub fn any_reserves(runs: &[Evaluated]) -> bool {
    runs.iter().any(|run| run.run.policy.reserves())
}

/// Whether runtimes are learned in one of the runs. Only then files and pages tell how good they
/// were.
#[must_use]
pub fn any_learns(runs: &[Evaluated], workload: Workload<'_>) -> bool {
    runs.iter().any(|run| workload.teaches(run.run.policy))
}

/// Works out the figures of a run.
#[must_use]
pub fn evaluate(run: Run, workload: Workload<'_>) -> Evaluated {
    Evaluated {
        summaries: summaries(&run, workload),
        sizes: waits(&run, workload),
        promises: truth(&run),
        runtimes: by_source(&run.foreseen),
        fairness: fairness(&run, workload),
        losses: run.losses(workload),
        run,
    }
}

/// The columns that tables of runs with evictions have at the end.
const LOSSES: [&str; 2] = ["evictions", "gpu_seconds_lost"];

/// The columns of [`LOSSES`] that tables of these runs have: all or none.
fn more_columns(runs: &[Evaluated]) -> &'static [&'static str] {
    if any_evicts(runs) { &LOSSES } else { &[] }
}

/// The values of the columns of [`LOSSES`], if a table has them.
fn lost(losses: Losses, columns: &[&str]) -> impl Iterator<Item = String> {
    let values = [losses.evictions, losses.lost_gpu_s].map(|number| number.to_string());
    values.into_iter().take(columns.len())
}

/// Writes `policy,row,queue,start_s,end_s`: every job of the trace under every policy, in the order
/// of the trace. The start is the first one; a job that never starts has neither start nor end.
/// Where jobs may be evicted, `evictions,gpu_seconds_lost` follow.
///
/// # Errors
/// If the file cannot be written.
pub fn write_jobs(runs: &[Evaluated], workload: Workload<'_>, file: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    let more = more_columns(runs);
    table.write_record(
        ["policy", "row", "queue", "start_s", "end_s"]
            .iter()
            .chain(more),
    )?;
    let jobs = workload.jobs;
    for Evaluated { run, .. } in runs {
        for (index, job) in jobs.jobs.iter().enumerate() {
            let fields = [
                run.policy.name(),
                &job.row.to_string(),
                &jobs.queues[job.queue as usize],
                &text(run.first_start_s(index)),
                &text(run.end_s(index, job)),
            ];
            for field in fields {
                table.write_field(field)?;
            }
            let mut losses = Losses::default();
            for eviction in run.evictions_of(index) {
                losses.add(eviction, job);
            }
            for field in lost(losses, more) {
                table.write_field(field)?;
            }
            table.write_record(None::<&[u8]>)?;
        }
    }
    table.flush()
}

/// Writes `policy,time_s,row,queue,cause,for_row,for_queue,gpu_seconds_lost`: every eviction by its
/// time. `row` and `queue` gave, `for_row` and `for_queue` got.
///
/// # Errors
/// If the file cannot be written.
pub fn write_evictions(
    runs: &[Evaluated],
    workload: Workload<'_>,
    file: impl Write,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record([
        "policy",
        "time_s",
        "row",
        "queue",
        "cause",
        "for_row",
        "for_queue",
        "gpu_seconds_lost",
    ])?;
    let jobs = workload.jobs;
    let queue = |job: usize| &*jobs.queues[jobs.jobs[job].queue as usize];
    for Evaluated { run, .. } in runs {
        let mut evictions: Vec<_> = run.evictions.iter().collect();
        evictions.sort_by_key(|eviction| (eviction.at_s, eviction.job));
        for eviction in evictions {
            let job = &jobs.jobs[eviction.job];
            let row = eviction.beneficiary.map(|job| jobs.jobs[job].row);
            table.write_record([
                run.policy.name(),
                &eviction.at_s.to_string(),
                &job.row.to_string(),
                queue(eviction.job),
                eviction.cause.as_str(),
                &text(row),
                eviction.beneficiary.map_or("", queue),
                &eviction.lost_gpu_s(job).to_string(),
            ])?;
        }
    }
    table.flush()
}

/// Writes `policy,row,queue,num_gpus,promised_at_s,promised_s,start_s`: the first promise to each
/// job that was promised a start, when it was made, and when the job started; a job that never
/// started has no start.
///
/// # Errors
/// If the file cannot be written.
pub fn write_promises(
    runs: &[Evaluated],
    workload: Workload<'_>,
    file: impl Write,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record([
        "policy",
        "row",
        "queue",
        "num_gpus",
        "promised_at_s",
        "promised_s",
        "start_s",
    ])?;
    for Evaluated { run, .. } in runs {
        for promise in &run.promises {
            let job = &workload.jobs.jobs[promise.job];
            let start_s = run.first_start_s(promise.job);
            table.write_record([
                run.policy.name(),
                &job.row.to_string(),
                &workload.jobs.queues[job.queue as usize],
                &job.num_gpus.to_string(),
                &promise.made_s.to_string(),
                &promise.start_s.to_string(),
                &start_s.map_or_else(String::new, |start_s| start_s.to_string()),
            ])?;
        }
    }
    table.flush()
}

/// Writes `policy,source,jobs,ratio_median,ratio_p95,overruns`: a line for each source, and
/// one with `none` for the jobs of which nothing was expected when they started, under each policy
/// that promises starts. The ratios are of the real to the expected time.
///
/// # Errors
/// If the file cannot be written.
pub fn write_runtimes(runs: &[Evaluated], file: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record([
        "policy",
        "source",
        "jobs",
        "ratio_median",
        "ratio_p95",
        "overruns",
    ])?;
    for run in runs.iter().filter(|run| run.run.policy.reserves()) {
        let policy = run.run.policy.name();
        for (source, ratios) in &run.runtimes {
            let jobs = ratios.jobs.to_string();
            let fields = [policy.to_owned(), source.label().to_owned(), jobs];
            table.write_record(fields.into_iter().chain(ratios.columns()))?;
        }
        let unknown = run.unforeseen().to_string();
        table.write_record([policy, "none", &unknown, "", "", ""])?;
    }
    table.flush()
}

/// Writes `policy,gpus,jobs,avg_queue_s,median_queue_s,p99_queue_s`: a line for each class of sizes
/// under each policy.
///
/// # Errors
/// If the file cannot be written.
pub fn write_sizes(runs: &[Evaluated], file: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    table.write_record([
        "policy",
        "gpus",
        "jobs",
        "avg_queue_s",
        "median_queue_s",
        "p99_queue_s",
    ])?;
    for evaluated in runs {
        for waits in &evaluated.sizes {
            let text = |figure: Option<u64>| figure.map_or_else(String::new, |it| it.to_string());
            table.write_record([
                evaluated.run.policy.name(),
                CLASSES[waits.class].0,
                &waits.jobs.to_string(),
                &seconds(waits.mean),
                &text(waits.median_s),
                &text(waits.p99_s),
            ])?;
        }
    }
    table.flush()
}

/// Writes `policy,queue,jobs,avg_jct_s,avg_queue_s,p99_queue_s,makespan_s`: a line for each queue,
/// and a line for `ALL`, which has neither p99 nor makespan, as in published summaries. Where jobs
/// may be evicted, `evictions,gpu_seconds_lost` follow: what was taken from the queue.
///
/// # Errors
/// If the file cannot be written.
pub fn write_summary(
    runs: &[Evaluated],
    workload: Workload<'_>,
    file: impl Write,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(file);
    let columns = [
        "policy",
        "queue",
        "jobs",
        "avg_jct_s",
        "avg_queue_s",
        "p99_queue_s",
        "makespan_s",
    ];
    let more = more_columns(runs);
    table.write_record(columns.iter().chain(more))?;
    for evaluated in runs {
        for summary in &evaluated.summaries {
            let of_one = |figure| text(summary.queue.filter(|_| summary.jobs > 0).map(|_| figure));
            let row = [
                evaluated.run.policy.name().to_owned(),
                name(summary.queue, workload).to_owned(),
                summary.jobs.to_string(),
                seconds(summary.completion),
                seconds(summary.wait),
                of_one(summary.wait_p99_s),
                of_one(summary.makespan_s),
            ];
            let lost = lost(evaluated.lost_by(summary.queue), more);
            table.write_record(row.into_iter().chain(lost))?;
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
            runs_s: run.runs_s(index, job).collect(),
        });
        if let Some(wait_s) = run.waited_s(index, job) {
            let class = class(job.num_gpus);
            record.waited_by_size((class, CLASSES[class].0), wait_s);
        }
    }
    for share in &run.fair_shares {
        record.fair_share(share.at_s, share.queue, share.gpu_thousandths);
    }
    record
}
