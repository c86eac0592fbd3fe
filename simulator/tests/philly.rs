//! The trace of Microsoft's Philly cluster: every start second and every figure that the oracle
//! gives for it. Its files lie outside of the repository.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use flate2::read::GzDecoder;
#[path = "shared/public_traces.rs"]
mod public_traces;

use gpu_batch_simulator::jobs::summary::{Summary, seconds, summaries};
use gpu_batch_simulator::jobs::{Execution, Policy, Run, Workload, simulate};
use gpu_batch_simulator::trace::jobs::Jobs;
use gpu_batch_simulator::trace::queues::{self, TraceQueue};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

/// What the oracle calls each policy.
const POLICIES: [(Policy, &str); 3] = [
    (Policy::Fifo, "fifo"),
    (Policy::Sjf, "sjf"),
    (Policy::FirstFit, "fifo+backfill"),
];

fn path(name: &str) -> PathBuf {
    public_traces::file(&format!("philly/{name}"))
}

/// The jobs, and the queues with a part of their nodes.
fn trace(halves: u32) -> (Jobs, Vec<TraceQueue>) {
    let jobs = Jobs::read(&path("philly_jobs_sep_oct.csv.gz")).unwrap();
    let mut queues = queues::read(&path("philly_vc_nodes.csv")).unwrap();
    for queue in &mut queues {
        queue.nodes = queue.nodes * halves / 2;
    }
    (jobs, queues)
}

fn run(policy: Policy, jobs: &Jobs, queues: &[TraceQueue], threads: usize) -> Run {
    let workload = workload(jobs, queues);
    let execution = Execution {
        threads: NonZeroUsize::new(threads).unwrap(),
        events: &AtomicU64::new(0),
        fair_shares_every_s: None,
    };
    let mut runs = simulate(&[policy], workload, execution);
    runs.remove(0)
}

fn workload<'a>(jobs: &'a Jobs, queues: &'a [TraceQueue]) -> Workload<'a> {
    Workload {
        jobs,
        queues,
        gpus_per_node: 8,
    }
}

/// The lines of a file, without the header, cut at commas.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// The oracle's start seconds, by policy and row.
fn starts(text: &str) -> BTreeMap<(&str, u64), u64> {
    let starts = lines(text).map(|fields| {
        let (row, start_s) = (fields[2].parse().unwrap(), fields[6].parse().unwrap());
        ((fields[0], row), start_s)
    });
    starts.collect()
}

#[test]
fn every_job_starts_in_the_very_second_of_the_oracle() {
    let (jobs, queues) = trace(1);
    let file = File::open(path("oracle_sep_oct_half_starts.csv.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let expected = starts(&text);
    assert_eq!(expected.len(), 3 * 52_841);
    for (policy, name) in POLICIES {
        let run = run(policy, &jobs, &queues, 2);
        let mut wrong = Vec::new();
        for (job, start_s) in jobs.jobs.iter().zip(&run.starts_s) {
            let expected_s = expected.get(&(name, job.row)).copied();
            if *start_s != expected_s {
                wrong.push((job, *start_s, expected_s));
            }
        }
        assert!(
            wrong.is_empty(),
            "{name}: {} jobs start at other times, the first of them: {:?}",
            wrong.len(),
            &wrong[..wrong.len().min(3)]
        );
        assert_eq!(run.never.len(), 8, "the jobs of the queues without nodes");
    }
}

#[test]
fn every_figure_is_that_of_the_oracle() {
    let text = std::fs::read_to_string(path("oracle_sep_oct.csv")).unwrap();
    let mut rows = 0;
    for (scale, halves) in [("0.5", 1), ("1", 2)] {
        let (jobs, queues) = trace(halves);
        for (policy, name) in POLICIES {
            let run = run(policy, &jobs, &queues, 2);
            let summaries = summaries(&run, workload(&jobs, &queues));
            let expected: Vec<Vec<&str>> = lines(&text)
                .filter(|fields| fields[1] == scale && fields[2] == name)
                .collect();
            assert_eq!(summaries.len(), expected.len());
            for (summary, expected) in summaries.iter().zip(expected) {
                assert_eq!(written(summary, &queues), expected[3..], "{name} {scale}");
                rows += 1;
            }
        }
    }
    assert_eq!(rows, 72);
}

/// A summary as the oracle writes it; of all queues it gives neither nodes, nor p99, nor makespan.
fn written(summary: &Summary, queues: &[TraceQueue]) -> [String; 7] {
    let queue = summary.queue.map(|queue| &queues[queue]);
    let of_one = |figure: String| queue.map_or_else(String::new, |_| figure);
    [
        queue.map_or_else(|| "ALL".to_owned(), |queue| queue.name.clone()),
        of_one(queue.map_or(0, |queue| queue.nodes).to_string()),
        summary.jobs.to_string(),
        seconds(summary.completion),
        seconds(summary.wait),
        of_one(summary.wait_p99_s.to_string()),
        of_one(summary.makespan_s.to_string()),
    ]
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let (jobs, queues) = trace(1);
    let runs = |threads| {
        let execution = Execution {
            threads: NonZeroUsize::new(threads).unwrap(),
            events: &AtomicU64::new(0),
            fair_shares_every_s: Some(86_400),
        };
        // Eviction plans for two months take too long for a test.
        let policies = Policy::ALL.into_iter().filter(|policy| !policy.evicts());
        let policies: Vec<Policy> = policies.collect();
        simulate(&policies, workload(&jobs, &queues), execution)
    };
    assert!(runs(1) == runs(4));
}
