//! The page about the runs.

use super::{Args, screen};
use gpu_batch_simulator::jobs::Workload;
use gpu_batch_simulator::jobs::evictions::Losses;
use gpu_batch_simulator::jobs::output::{self, Evaluated};
use gpu_batch_simulator::jobs::summary::seconds;
use gpu_batch_simulator::report::jobs::panels;
use gpu_batch_simulator::report::{Report, Table};

pub(super) fn report(runs: &[Evaluated], workload: Workload<'_>, args: &Args) -> Report {
    let (nodes, gpus) = (workload.nodes(), workload.gpus());
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let records: Vec<_> = runs
        .iter()
        .map(|run| output::record(&run.run, workload))
        .collect();
    let mut tables = vec![policies(runs, workload), queues(runs, workload)];
    if output::any_evicts(runs) {
        tables.push(takings(runs, workload));
    }
    tables.push(never(runs, workload));
    let names: Vec<String> = runs
        .iter()
        .map(|run| run.run.policy.name().into())
        .collect();
    Report {
        title: "Jobs of a trace".to_owned(),
        subtitle: format!(
            "{} jobs of {} queues on {gpus} GPUs, under {}.",
            workload.jobs.jobs.len(),
            workload.queues.len(),
            names.join(", ")
        ),
        facts: vec![
            fact("trace", args.trace.display().to_string()),
            fact("queues", args.queues.display().to_string()),
            fact(
                "nodes",
                format!("{nodes} of {} GPUs", workload.gpus_per_node),
            ),
            fact("version", env!("CARGO_PKG_VERSION").to_owned()),
        ],
        runs: names,
        panels: panels(&records, "jobs"),
        tables,
    }
}

/// The titles of the columns that tables have at the end where jobs may be evicted.
fn lost_titles(runs: &[Evaluated]) -> &'static [&'static str] {
    if output::any_evicts(runs) {
        &["evictions", "GPU hours lost"]
    } else {
        &[]
    }
}

/// The values of these columns.
fn lost(runs: &[Evaluated], losses: Losses) -> impl Iterator<Item = String> {
    losses.shown().into_iter().take(lost_titles(runs).len())
}

fn policies(runs: &[Evaluated], workload: Workload<'_>) -> Table {
    let mut table = Table::new(
        "Policies",
        "Used: GPU time that jobs held until the last submission, of all that there was. Served: \
         GPU time within its quota that a queue got while it asked for it; Jain's index is 1 if \
         all queues were served alike.",
        &[
            &[
                "policy",
                "jobs",
                "mean wait, s",
                "p99 wait, s",
                "mean JCT, s",
                "used, %",
                "Jain's index",
                "worst served queue",
            ],
            lost_titles(runs),
        ]
        .concat(),
    );
    for run in runs {
        for all in run.summaries.iter().filter(|it| it.queue.is_none()) {
            let mut row = vec![
                run.run.policy.name().to_owned(),
                all.jobs.to_string(),
                seconds(all.wait),
                all.wait_p99_s.to_string(),
                seconds(all.completion),
            ];
            row.extend(screen::fairness(run, workload));
            row.extend(lost(runs, run.lost_by(None)));
            table.row(row);
        }
    }
    table
}

fn queues(runs: &[Evaluated], workload: Workload<'_>) -> Table {
    let mut table = Table::new(
        "Queues",
        "Each queue under each policy; served is the part of its quota that it got while it asked \
         for it.",
        &[
            &[
                "policy",
                "queue",
                "jobs",
                "mean wait, s",
                "p99 wait, s",
                "mean JCT, s",
                "makespan, s",
                "served, %",
            ],
            lost_titles(runs),
        ]
        .concat(),
    );
    for run in runs {
        for summary in &run.summaries {
            let Some(queue) = summary.queue else {
                continue;
            };
            let served = run.fairness.served[queue];
            let mut row = vec![
                run.run.policy.name().to_owned(),
                output::name(Some(queue), workload).to_owned(),
                summary.jobs.to_string(),
                seconds(summary.wait),
                summary.wait_p99_s.to_string(),
                seconds(summary.completion),
                summary.makespan_s.to_string(),
                served.map_or_else(String::new, |served| format!("{:.1}", served * 100.0)),
            ];
            row.extend(lost(runs, run.lost_by(Some(queue))));
            table.row(row);
        }
    }
    table
}

fn takings(runs: &[Evaluated], workload: Workload<'_>) -> Table {
    let mut table = Table::new(
        "Who gave and who got",
        "Jobs of the one queue were evicted for jobs of the other, and lost the work that they had \
         not saved.",
        &["policy", "gave", "got", "evictions", "GPU hours lost"],
    );
    for run in runs {
        for ((gave, got), losses) in &run.losses {
            let got = got.map_or("", |got| output::name(Some(got), workload));
            let mut row = vec![
                run.run.policy.name().to_owned(),
                output::name(Some(*gave), workload).to_owned(),
                got.to_owned(),
            ];
            row.extend(losses.shown());
            table.row(row);
        }
    }
    table
}

fn never(runs: &[Evaluated], workload: Workload<'_>) -> Table {
    let mut table = Table::new(
        "Jobs that never ran",
        "They take part in none of the figures.",
        &["policy", "row", "queue", "GPUs", "why"],
    );
    for run in runs {
        for never in &run.run.never {
            let job = &workload.jobs.jobs[never.job];
            table.row(vec![
                run.run.policy.name().to_owned(),
                job.row.to_string(),
                workload.jobs.queues[job.queue as usize].clone(),
                job.num_gpus.to_string(),
                never.why.clone(),
            ]);
        }
    }
    table
}
