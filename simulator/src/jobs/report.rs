//! The page about some runs of one workload, see [`crate::report`].

use super::fairness::fairness;
use super::summary::{seconds, summaries};
use super::{Policy, Run, Workload};
use crate::report::jobs::{self, Queue, Record};
use crate::report::{Report, Table};
use std::collections::BTreeMap;

/// Thousandths in a GPU.
const GPU: u64 = 1_000;

/// What some runs of a workload did, side by side. `facts` says where the workload is from; see
/// [`Report::facts`].
#[must_use]
pub fn report(workload: Workload<'_>, runs: &[Run], facts: Vec<(String, String)>) -> Report {
    let records: Vec<Record> = runs.iter().map(|run| record(run, workload)).collect();
    let names: Vec<&str> = runs.iter().map(|run| run.policy.name()).collect();
    let nodes: u64 = workload
        .queues
        .iter()
        .map(|queue| u64::from(queue.nodes))
        .sum();
    let mut tables = vec![summary(runs, workload), fairness_of(runs, workload)];
    let never = never(runs, workload);
    if !never.rows.is_empty() {
        tables.push(never);
    }
    Report {
        title: format!("Jobs under {}", names.join(", ")),
        subtitle: format!(
            "{} jobs of {} queues on {nodes} nodes with {} GPUs each",
            workload.jobs.jobs.len(),
            workload.queues.len(),
            workload.gpus_per_node,
        ),
        facts,
        runs: names.into_iter().map(str::to_owned).collect(),
        panels: jobs::panels(&records),
        tables,
    }
}

/// Jobs that never started are not in it: they would wait to the end of every plot.
fn record(run: &Run, workload: Workload<'_>) -> Record {
    let thousandths = |nodes: u32| u64::from(nodes) * u64::from(workload.gpus_per_node) * GPU;
    let queue = |queue: &crate::trace::queues::TraceQueue| Queue {
        name: queue.name.clone(),
        quota: Some(thousandths(queue.nodes)),
    };
    let queues: Vec<Queue> = workload.queues.iter().map(queue).collect();
    let capacity = queues.iter().filter_map(|queue| queue.quota).sum();
    let mut record = Record::new(run.policy.name(), queues, capacity);
    let places = workload.queues_of_trace();
    for (index, job) in workload.jobs.jobs.iter().enumerate() {
        let end_s = run.end_s(index, job);
        if let (Some(queue), Some(_)) = (places[job.queue as usize], end_s) {
            record.job(&jobs::Job {
                queue,
                gpu_thousandths: u64::from(job.num_gpus) * GPU,
                submit_s: job.submit_s,
                start_s: run.starts_s[index],
                end_s,
            });
        }
    }
    for fair in &run.fair_shares {
        record.fair_share(fair.at_s, fair.queue, fair.gpus * GPU);
    }
    record
}

fn summary(runs: &[Run], workload: Workload<'_>) -> Table {
    let columns = [
        "policy",
        "queue",
        "jobs",
        "mean wait, s",
        "99 % waited at most, s",
        "mean from submission to end, s",
        "makespan, s",
    ];
    let note = "Of the jobs that started. A heading sorts the rows.";
    let mut table = Table::new("Waiting and completion", note, &columns);
    for run in runs {
        for row in summaries(run, workload) {
            let queue = row.queue.map(|queue| workload.queues[queue].name.clone());
            table.row(vec![
                run.policy.name().to_owned(),
                queue.unwrap_or_else(|| "all queues".to_owned()),
                row.jobs.to_string(),
                seconds(row.wait),
                row.wait_p99_s.to_string(),
                seconds(row.completion),
                row.makespan_s.to_string(),
            ]);
        }
    }
    table
}

fn fairness_of(runs: &[Run], workload: Workload<'_>) -> Table {
    let columns = [
        "policy",
        "GPUs in use",
        "Jain's index",
        "worst served queue",
        "served",
    ];
    let note = "Served: the part of its quota that a queue got while it asked for it. Jain's index \
                is 1 if all queues were served alike. Use is counted up to the last submission.";
    let mut table = Table::new("Use and fairness", note, &columns);
    for run in runs {
        let fairness = fairness(run, workload);
        let worst = fairness.worst();
        let name = worst.map(|(queue, _)| workload.queues[queue].name.clone());
        table.row(vec![
            run.policy.name().to_owned(),
            format!("{:.1} %", 100.0 * fairness.utilisation),
            format!("{:.4}", fairness.jain),
            name.unwrap_or_default(),
            worst.map_or_else(String::new, |(_, served)| {
                format!("{:.1} %", 100.0 * served)
            }),
        ]);
    }
    table
}

/// One row for each job and reason, with the policies under which it is so.
fn never(runs: &[Run], workload: Workload<'_>) -> Table {
    let columns = ["row", "queue", "GPUs", "why", "under"];
    let note = "They are in none of the figures above.";
    let mut table = Table::new("Jobs that never started", note, &columns);
    let mut policies: BTreeMap<(usize, &str), Vec<Policy>> = BTreeMap::new();
    for run in runs {
        for never in &run.never {
            policies
                .entry((never.job, &never.why))
                .or_default()
                .push(run.policy);
        }
    }
    for ((index, why), under) in policies {
        let Some(job) = workload.jobs.jobs.get(index) else {
            continue;
        };
        let under: Vec<&str> = under.into_iter().map(Policy::name).collect();
        table.row(vec![
            job.row.to_string(),
            workload.jobs.queues[job.queue as usize].clone(),
            job.num_gpus.to_string(),
            why.to_owned(),
            under.join(", "),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{FairShare, Never};
    use crate::trace::jobs::{Job, Jobs};
    use crate::trace::queues::TraceQueue;

    fn job(row: u64, submit_s: u64, num_gpus: u32, queue: u32) -> Job {
        Job {
            row,
            submit_s,
            duration_s: 10,
            num_gpus,
            queue,
        }
    }

    fn run(policy: Policy, starts_s: Vec<Option<u64>>, never: &[(usize, &str)]) -> Run {
        let why = |&(job, why): &(usize, &str)| Never {
            job,
            why: why.to_owned(),
        };
        let fair = FairShare {
            at_s: 0,
            queue: 0,
            gpus: 8,
        };
        Run {
            policy,
            starts_s,
            never: never.iter().map(why).collect(),
            steps: 0,
            fair_shares: vec![fair],
        }
    }

    #[test]
    fn tables_have_a_row_for_each_policy_queue_and_reason() {
        let jobs = Jobs {
            jobs: vec![
                job(1, 0, 4, 0),
                job(2, 0, 8, 0),
                job(7, 3, 99, 0),
                job(9, 4, 1, 1),
            ],
            queues: vec!["a".to_owned(), "unknown".to_owned()],
        };
        let queues = [TraceQueue {
            name: "a".to_owned(),
            nodes: 1,
        }];
        let workload = Workload {
            jobs: &jobs,
            queues: &queues,
            gpus_per_node: 8,
        };
        let starts = || vec![Some(0), Some(10), None, None];
        let too_large = [(2, "it is too large"), (3, "its queue is unknown")];
        let runs = [
            run(Policy::Fifo, starts(), &too_large),
            run(Policy::Drf, starts(), &too_large[..1]),
        ];
        let report = report(workload, &runs, Vec::new());
        let titles: Vec<&str> = report.tables.iter().map(|table| &*table.title).collect();
        let expected = [
            "Waiting and completion",
            "Use and fairness",
            "Jobs that never started",
        ];
        assert_eq!(titles, expected);
        let never = &report.tables[2].rows;
        assert_eq!(never[0], ["7", "a", "99", "it is too large", "fifo, drf"]);
        assert_eq!(
            never[1],
            ["9", "unknown", "1", "its queue is unknown", "fifo"]
        );
        let first = ["fifo", "a", "2", "5.00", "10", "15.00", "20"];
        assert_eq!(report.tables[0].rows[0], first);
        assert_eq!(report.tables[0].rows.len(), 4);
        assert_eq!(report.tables[1].rows.len(), 2);
        assert_eq!(report.runs, ["fifo", "drf"]);
        assert!(report.panels.iter().all(|panel| !panel.series.is_empty()));
    }
}
