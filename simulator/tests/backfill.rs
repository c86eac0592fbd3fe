//! EASY and conservative backfilling: every start second that the oracles give. Their files lie
//! outside of the repository.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use flate2::read::GzDecoder;
#[path = "shared/public_traces.rs"]
mod public_traces;

use gpu_batch_simulator::jobs::{Execution, Policy, Run, Workload, simulate};
use gpu_batch_simulator::trace::jobs::{Job, Jobs};
use gpu_batch_simulator::trace::queues::{self, TraceQueue};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

fn path(name: &str) -> PathBuf {
    public_traces::file(&format!("backfill/{name}"))
}

/// How the processors of a machine are modelled. Backfilling only counts them, so starts are equal.
#[derive(Debug, Clone, Copy)]
enum Machine {
    /// Each is a node: a job is a gang of as many pods.
    NodesOfOne,
    /// All are one node: a job is one pod.
    OneNode,
}

const MACHINES: [Machine; 2] = [Machine::NodesOfOne, Machine::OneNode];

fn run(policy: Policy, jobs: &Jobs, processors: u32, machine: Machine) -> Run {
    let (nodes, gpus_per_node) = match machine {
        Machine::NodesOfOne => (processors, 1),
        Machine::OneNode => (1, processors),
    };
    let queues = [TraceQueue {
        name: "all".to_owned(),
        nodes,
    }];
    let workload = Workload {
        jobs,
        queues: &queues,
        gpus_per_node,
    };
    let execution = Execution {
        threads: NonZeroUsize::MIN,
        events: &AtomicU64::new(0),
        fair_shares_every_s: None,
    };
    simulate(&[policy], workload, execution).remove(0)
}

/// The oracle's start seconds by row.
type Oracle = BTreeMap<u64, u64>;

/// The starts of the oracle under a policy.
fn oracle(named: &str) -> Oracle {
    let file = File::open(path("kth_starts.csv.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let starts = text.lines().skip(1).map(|line| {
        let mut fields = line.rsplitn(3, ',');
        let start_s = fields.next().unwrap().parse().unwrap();
        let row = fields.next().unwrap().parse().unwrap();
        (fields.next().unwrap().trim_matches('"'), row, start_s)
    });
    let starts = starts.filter(|(policy, ..)| *policy == named);
    starts.map(|(_, row, start_s)| (row, start_s)).collect()
}

/// Holds every start of the trace against the oracle. `with`: what is changed of each job.
fn holds(policy: Policy, named: &str, with: impl Fn(&mut Job)) {
    let mut jobs = Jobs::read(&path("kth.csv.gz")).unwrap();
    jobs.jobs.iter_mut().for_each(with);
    let queues = queues::read(&path("queues.csv")).unwrap();
    let processors = u32::try_from(queues::nodes(&queues)).unwrap();
    let oracle = oracle(named);
    for machine in MACHINES {
        let run = run(policy, &jobs, processors, machine);
        let named = format!("{named}, {machine:?}");
        compare(&jobs, &run.starts_s, &oracle, &named);
    }
}

/// Fails where a start is in another second than in that of the oracle.
fn compare(jobs: &Jobs, starts_s: &[Option<u64>], oracle: &Oracle, named: &str) {
    let mut wrong = Vec::new();
    for (job, start_s) in jobs.jobs.iter().zip(starts_s) {
        let expected = oracle[&job.row];
        if *start_s != Some(expected) {
            wrong.push((job.row, *start_s, expected));
        }
    }
    wrong.sort_by_key(|(.., expected)| *expected);
    let first = wrong.iter().take(5).collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{} of {} starts differ under {named}, the first by row, start, oracle: {first:?}",
        wrong.len(),
        jobs.jobs.len()
    );
}

#[test]
fn easy_starts_every_job_in_the_second_of_the_oracle() {
    holds(Policy::Easy, "easy", |_| {});
}

#[test]
fn easy_with_true_runtimes_starts_every_job_in_the_second_of_the_oracle() {
    holds(Policy::Easy, "easy, true runtimes", |job| {
        job.expected_s = Some(job.duration_s);
    });
}

#[test]
fn conservative_starts_every_job_in_the_second_of_the_oracle() {
    holds(Policy::Conservative, "conservative", |_| {});
}

/// One of the instances that Feitelson's group has worked out by hand for its simulator.
#[derive(Deserialize)]
struct Instance {
    policy: String,
    name: String,
    processors: u32,
    jobs: Vec<InstanceJob>,
}

#[derive(Deserialize)]
struct InstanceJob {
    submit: u64,
    processors: u32,
    runtime: u64,
    expected: u64,
    finish: u64,
}

#[test]
fn every_instance_worked_out_by_hand_finishes_in_the_seconds_written_there() {
    let text = std::fs::read_to_string(path("pyss_instances.json")).unwrap();
    let instances: Vec<Instance> = serde_json::from_str(&text).unwrap();
    assert_eq!(instances.len(), 82);
    for mut instance in instances {
        instance.jobs.sort_by_key(|job| job.submit);
        let jobs = instance.jobs.iter().zip(1..).map(|(job, row)| Job {
            row,
            submit_s: job.submit,
            duration_s: job.runtime,
            num_gpus: job.processors,
            queue: 0,
            checkpoint_s: None,
            expected_s: Some(job.expected),
            owner: None,
        });
        let jobs = Jobs {
            jobs: jobs.collect(),
            queues: vec!["all".to_owned()],
            owners: Vec::new(),
        };
        let policy = match instance.policy.as_str() {
            "easy" => Policy::Easy,
            _ => Policy::Conservative,
        };
        let expected = instance.jobs.iter().map(|job| Some(job.finish));
        let expected: Vec<_> = expected.collect();
        for machine in MACHINES {
            let run = run(policy, &jobs, instance.processors, machine);
            let ends = jobs.jobs.iter().enumerate();
            let ends: Vec<_> = ends.map(|(index, job)| run.end_s(index, job)).collect();
            let name = format!("{} under {}", instance.name, instance.policy);
            assert_eq!(ends, expected, "{name}, {machine:?}");
        }
    }
}
