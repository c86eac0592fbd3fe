//! The page about the runs.

use super::{Args, screen};
use gpu_batch_simulator::jobs::Workload;
use gpu_batch_simulator::jobs::evictions::Losses;
use gpu_batch_simulator::jobs::expectations::Expectations;
use gpu_batch_simulator::jobs::output::{self, Evaluated};
use gpu_batch_simulator::jobs::ratios::{Ratios, ratio};
use gpu_batch_simulator::jobs::sizes::{CLASSES, Waits};
use gpu_batch_simulator::jobs::summary::seconds;
use gpu_batch_simulator::report::jobs::panels;
use gpu_batch_simulator::report::{Report, Table};

pub(super) fn report(
    runs: &[Evaluated],
    workload: Workload<'_>,
    expected: &[Expectations],
    args: &Args,
) -> Report {
    let (nodes, gpus) = (workload.nodes(), workload.gpus());
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let records: Vec<_> = runs
        .iter()
        .map(|run| output::record(&run.run, workload))
        .collect();
    let mut tables = vec![policies(runs, workload), sizes(runs)];
    if output::any_reserves(runs) {
        tables.push(promises(runs));
    }
    if !expected.is_empty() {
        tables.push(expectations(expected));
    }
    if output::any_learns(runs, workload) {
        tables.push(runtimes(runs));
    }
    tables.push(queues(runs, workload));
    if output::any_evicts(runs) {
        tables.push(takings(runs, workload));
    }
    tables.push(never(runs, workload));
    let names: Vec<String> = runs
        .iter()
        .map(|run| run.run.policy.name().into())
        .collect();
    let mut facts = vec![
        fact("trace", args.trace.display().to_string()),
        fact("queues", args.queues.display().to_string()),
        fact(
            "nodes",
            format!("{nodes} of {} GPUs", workload.gpus_per_node),
        ),
    ];
    if runs
        .iter()
        .any(|run| run.run.policy.without_reservations().is_some())
    {
        facts.push(fact("reservations", args.reservations().to_string()));
    }
    facts.push(fact("version", env!("CARGO_PKG_VERSION").to_owned()));
    Report {
        title: "Jobs of a trace".to_owned(),
        subtitle: format!(
            "{} jobs of {} queues on {gpus} GPUs, under {}.",
            workload.jobs.jobs.len(),
            workload.queues.len(),
            names.join(", ")
        ),
        facts,
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

fn sizes(runs: &[Evaluated]) -> Table {
    let mut table = Table::new(
        "Waits by size",
        "How long jobs waited by how many GPUs they ask for. Change: how much longer (+) or \
         shorter (-) the mean and the p99 are than under the policy without reservations, where \
         it is among the runs.",
        &[
            &[
                "GPUs",
                "policy",
                "jobs",
                "mean wait, s",
                "median wait, s",
                "p99 wait, s",
            ],
            beside_titles(runs),
        ]
        .concat(),
    );
    for (class, (name, _)) in CLASSES.iter().enumerate() {
        for run in runs {
            let Some(waits) = waits_of(run, class) else {
                continue;
            };
            let mut row = vec![
                (*name).to_owned(),
                run.run.policy.name().to_owned(),
                waits.jobs.to_string(),
                seconds(waits.mean),
                screen::shown(waits.median_s),
                screen::shown(waits.p99_s),
            ];
            if !beside_titles(runs).is_empty() {
                let without = without(runs, run).and_then(|run| waits_of(run, class));
                let change =
                    |of: fn(&Waits) -> Option<u64>| change_percent(without.and_then(of), of(waits));
                row.extend([change(|waits| waits.mean), change(|waits| waits.p99_s)]);
            }
            table.row(row);
        }
    }
    table
}

/// The titles of the columns that compare a policy with the one without reservations, where both
/// are among the runs.
fn beside_titles(runs: &[Evaluated]) -> &'static [&'static str] {
    if runs.iter().any(|run| without(runs, run).is_some()) {
        &["change of the mean, %", "change of the p99, %"]
    } else {
        &[]
    }
}

/// The run of the policy that differs only in that nobody is promised a start.
fn without<'a>(runs: &'a [Evaluated], run: &Evaluated) -> Option<&'a Evaluated> {
    let without = run.run.policy.without_reservations()?;
    runs.iter().find(|run| run.run.policy == without)
}

fn waits_of(run: &Evaluated, class: usize) -> Option<&Waits> {
    run.sizes.iter().find(|waits| waits.class == class)
}

/// By how many percent the second number is larger (+) or smaller (-) than the first one.
fn change_percent(before: Option<u64>, after: Option<u64>) -> String {
    let both = before.filter(|before| *before > 0).zip(after);
    both.map_or_else(String::new, |(before, after)| {
        format!("{:+.1}", 100.0 * after as f64 / before as f64 - 100.0)
    })
}

fn promises(runs: &[Evaluated]) -> Table {
    let mut table = Table::new(
        "Promised starts",
        "What jobs were told first when they began to wait. Kept: they started then or before. \
         The error is the promised start minus the real one: above 0 the job started earlier.",
        &[
            "policy",
            "promised",
            "kept",
            "kept, %",
            "late by, median, s",
            "late by, p95, s",
            "error, median, s",
            "error, p95, s",
            "used, %",
            "used without, %",
        ],
    );
    for run in runs.iter().filter(|run| run.run.policy.reserves()) {
        let used = |run: &Evaluated| format!("{:.2}", run.fairness.utilisation * 100.0);
        let mut row = vec![run.run.policy.name().to_owned()];
        row.extend(screen::truth(run));
        row.push(used(run));
        row.push(without(runs, run).map_or_else(String::new, used));
        table.row(row);
    }
    table
}

/// The titles of the columns about real and expected runtimes.
const RATIOS: [&str; 3] = [
    "real / expected, median",
    "real / expected, p95",
    "overruns, %",
];

/// The values of these columns.
fn ratios(of: &Ratios) -> [String; 3] {
    let overruns = screen::tenths(of.overruns_per_mille());
    [ratio(of.median), ratio(of.p95), overruns]
}

fn expectations(rows: &[Expectations]) -> Table {
    let mut table = Table::new(
        "Expectations",
        "How long jobs ran, over how long their owners expected them to run. Under 1: they were \
         done earlier. An overrun ran for longer than expected.",
        &[&["GPUs", "jobs", "with expectation"][..], &RATIOS].concat(),
    );
    for row in rows {
        let class = row.class.map_or(output::ALL, |class| CLASSES[class].0);
        let counts = [row.jobs, row.expected.jobs].map(|count| count.to_string());
        let cells = [class.to_owned()].into_iter().chain(counts);
        table.row(cells.chain(ratios(&row.expected)).collect());
    }
    table
}

fn runtimes(runs: &[Evaluated]) -> Table {
    let mut table = Table::new(
        "Runtimes by where they came from",
        "What was expected of jobs when they started: what their owner said, else what earlier \
         jobs of the owner took, else what earlier jobs of the queue took. Of the others nothing \
         was expected.",
        &[&["policy", "expected by", "jobs"][..], &RATIOS].concat(),
    );
    for run in runs.iter().filter(|run| run.run.policy.reserves()) {
        let policy = run.run.policy.name().to_owned();
        for (source, of) in &run.runtimes {
            let source = source.label().to_owned();
            let cells = [policy.clone(), source, of.jobs.to_string()];
            table.row(cells.into_iter().chain(ratios(of)).collect());
        }
        let none = ["none".to_owned(), run.unforeseen().to_string()];
        let cells = [policy].into_iter().chain(none);
        table.row(cells.chain([const { String::new() }; 3]).collect());
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
