//! The printed tables: each queue under each policy, the policies side by side, and jobs that never
//! ran.

use crate::views::table::{self, Entry, Screen};
use gpu_batch_simulator::jobs::Workload;
use gpu_batch_simulator::jobs::output::{self, Evaluated};
use gpu_batch_simulator::jobs::sizes::CLASSES;
use gpu_batch_simulator::jobs::summary::{Summary, seconds};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// How many groups of jobs that never run are printed; the files list each job.
const NEVER_SHOWN: usize = 20;

const QUEUES: [&str; 7] = [
    "POLICY",
    "QUEUE",
    "JOBS",
    "MEAN WAIT, S",
    "P99 WAIT, S",
    "MEAN JCT, S",
    "MAKESPAN, S",
];

const SIZES: [&str; 6] = [
    "GPUS",
    "POLICY",
    "JOBS",
    "MEAN WAIT, S",
    "MEDIAN WAIT, S",
    "P99 WAIT, S",
];

const PROMISES: [&str; 8] = [
    "POLICY",
    "PROMISED",
    "KEPT",
    "KEPT, %",
    "LATE, MEDIAN, S",
    "LATE, P95, S",
    "ERROR, MEDIAN, S",
    "ERROR, P95, S",
];

/// The columns that follow where jobs may be evicted.
const LOSSES: [&str; 2] = ["EVICTIONS", "GPU HOURS LOST"];

const POLICIES: [&str; 8] = [
    "POLICY",
    "JOBS",
    "MEAN WAIT, S",
    "P99 WAIT, S",
    "MEAN JCT, S",
    "USED, %",
    "JAIN",
    "WORST SERVED QUEUE",
];

pub(super) fn text(runs: &[Evaluated], workload: Workload<'_>, out: Option<&Path>) -> String {
    let queues = runs.iter().flat_map(|run| {
        let of_queues = run.summaries.iter().filter(|it| it.queue.is_some());
        of_queues.map(|summary| queue(run, summary, workload))
    });
    let screen = Screen::of_stdout();
    let mut text = table::draw(&QUEUES, queues.collect(), screen);
    text.push('\n');
    if output::any_reserves(runs) {
        text += &table::draw(&SIZES, sizes(runs), screen);
        text.push('\n');
        let reserve = runs.iter().filter(|run| run.run.policy.reserves());
        let promises = reserve.map(|run| {
            let policy = [run.run.policy.name().into()].into_iter();
            policy.chain(truth(run).map(Entry::from)).collect()
        });
        text += &table::draw(&PROMISES, promises.collect(), screen);
        text.push('\n');
    }
    let mut titles = POLICIES.to_vec();
    let mut policies: Vec<_> = runs.iter().map(|run| policy(run, workload)).collect();
    if output::any_evicts(runs) {
        titles.extend(LOSSES);
        for (row, run) in policies.iter_mut().zip(runs) {
            row.extend(run.lost_by(None).shown().map(Entry::from));
        }
    }
    text += &table::draw(&titles, policies, screen);
    text += &never(runs, workload);
    if let Some(folder) = out {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "\nwritten to {0}; open {0}/report.html",
            folder.display()
        );
    }
    text
}

fn queue(run: &Evaluated, summary: &Summary, workload: Workload<'_>) -> Vec<Entry> {
    vec![
        run.run.policy.name().into(),
        output::name(summary.queue, workload).into(),
        summary.jobs.to_string().into(),
        seconds(summary.wait).into(),
        summary.wait_p99_s.to_string().into(),
        seconds(summary.completion).into(),
        summary.makespan_s.to_string().into(),
    ]
}

fn policy(run: &Evaluated, workload: Workload<'_>) -> Vec<Entry> {
    let mut row: Vec<Entry> = vec![run.run.policy.name().into()];
    for all in run.summaries.iter().filter(|it| it.queue.is_none()) {
        row.extend([
            all.jobs.to_string().into(),
            seconds(all.wait).into(),
            all.wait_p99_s.to_string().into(),
            seconds(all.completion).into(),
        ]);
    }
    row.extend(fairness(run, workload).map(Entry::from));
    row
}

/// How long jobs waited, by size and policy.
fn sizes(runs: &[Evaluated]) -> Vec<Vec<Entry>> {
    let mut rows = Vec::new();
    for (class, (name, _)) in CLASSES.iter().enumerate() {
        for run in runs {
            for waits in run.sizes.iter().filter(|waits| waits.class == class) {
                rows.push(vec![
                    (*name).into(),
                    run.run.policy.name().into(),
                    waits.jobs.to_string().into(),
                    seconds(waits.mean).into(),
                    shown(waits.median_s).into(),
                    shown(waits.p99_s).into(),
                ]);
            }
        }
    }
    rows
}

/// How true the promises of a run were: how many there were, how many and how many percent were
/// kept, how late the others were, and the error of the estimate; median and p95 of both in
/// seconds.
pub(super) fn truth(run: &Evaluated) -> [String; 7] {
    let truth = &run.promises;
    [
        truth.promised.to_string(),
        truth.kept.to_string(),
        tenths(truth.kept_per_mille()),
        shown(truth.late_median_s),
        shown(truth.late_p95_s),
        shown(truth.error_median_s),
        shown(truth.error_p95_s),
    ]
}

/// A part in tenths of a percent, in percent; empty if there is none.
pub(super) fn tenths(per_mille: Option<u64>) -> String {
    per_mille.map_or_else(String::new, |it| format!("{}.{}", it / 10, it % 10))
}

/// A figure; empty if there is none.
pub(super) fn shown(figure: Option<impl ToString>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

/// The use of the cluster in percent, Jain's index, and the queue that got the least of its quota.
pub(super) fn fairness(run: &Evaluated, workload: Workload<'_>) -> [String; 3] {
    let worst = run.fairness.worst().map(|(queue, served)| {
        let name = output::name(Some(queue), workload);
        format!("{name}: {:.1} % of its quota", served * 100.0)
    });
    [
        format!("{:.1}", run.fairness.utilisation * 100.0),
        format!("{:.4}", run.fairness.jain),
        worst.unwrap_or_default(),
    ]
}

/// The jobs that never run; those of one queue with one reason are put together.
fn never(runs: &[Evaluated], workload: Workload<'_>) -> String {
    let mut groups: BTreeMap<(usize, &str, &str), Vec<u64>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for never in &run.run.never {
            let job = &workload.jobs.jobs[never.job];
            let queue = &*workload.jobs.queues[job.queue as usize];
            groups
                .entry((index, queue, &never.why))
                .or_default()
                .push(job.row);
        }
    }
    let mut text = String::new();
    for ((run, queue, why), rows) in groups.iter().take(NEVER_SHOWN) {
        let policy = runs[*run].run.policy.name();
        let count = rows.len();
        let (jobs, first) = match rows.as_slice() {
            [row] => ("job".to_owned(), format!("row {row}")),
            [row, ..] => (format!("{count} jobs"), format!("row {row} and others")),
            [] => continue,
        };
        let _ = writeln!(
            text,
            "{policy}: {jobs} of queue {queue} never ran ({first}): {why}"
        );
    }
    if groups.len() > NEVER_SHOWN {
        let more = groups.len() - NEVER_SHOWN;
        let _ = writeln!(text, "... and {more} more groups of jobs that never ran");
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}
