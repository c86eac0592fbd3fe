//! Jobs of traces: two months of Philly, eleven months of KTH-SP2, and a million.

use super::{processor_time, trace};
use crate::lab::bench::{Bound, Row, as_f64, median};
use anyhow::Context;
use gpu_batch_simulator::generate::profile::Like;
use gpu_batch_simulator::generate::{GPUS_PER_NODE, Scale, Settings, generate};
use gpu_batch_simulator::jobs::{Execution, Policy, Run, Workload, simulate};
use gpu_batch_simulator::trace::jobs::Jobs;
use gpu_batch_simulator::trace::queues;
use std::fs;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

const REPEATS: usize = 5;

/// How many halves of the nodes that the queues had are used; with all nodes no job waits.
const HALVES: u32 = 1;

const MILLION: Settings = Settings {
    like: Like::Philly,
    seed: 1,
    days: 16,
    scale: Scale::Both {
        jobs: 1_000_000,
        gpus: 80_000,
    },
    queues: Some(100),
};

/// Each policy on one core; all policies at once on two cores.
pub(super) fn philly() -> anyhow::Result<Vec<Row>> {
    let jobs = Jobs::read(&trace("philly/philly_jobs_sep_oct.csv.gz")?)?;
    let mut queues = queues::read(&trace("philly/philly_vc_nodes.csv")?)?;
    for queue in &mut queues {
        queue.nodes = queue.nodes * HALVES / 2;
    }
    let workload = Workload {
        jobs: &jobs,
        queues: &queues,
        gpus_per_node: GPUS_PER_NODE,
    };
    let mut rows = Vec::new();
    // Eviction plans are measured by themselves, with the engine.
    for policy in Policy::ALL.into_iter().filter(|it| !it.evicts()) {
        let scenario = format!(
            "Philly, September and October 2017, {} jobs, half of the nodes, {}",
            jobs.jobs.len(),
            policy.name()
        );
        let samples: Vec<(Duration, u64)> = (0..REPEATS).map(|_| one(policy, workload).1).collect();
        let times = samples.iter().map(|(took, _)| took.as_secs_f64());
        let rates = samples.iter().map(|(took, events)| {
            as_f64(usize::try_from(*events).unwrap_or(usize::MAX)) / took.as_secs_f64()
        });
        rows.push(
            Row::new(
                "simulating a trace",
                scenario.clone(),
                median(times.collect()),
                "s",
            )
            .against(
                Bound::AtMost,
                0.2,
                "target, one core; per-second Python takes 4 to 15 s for one queue",
            ),
        );
        let rate = Row::new(
            "events simulated",
            scenario,
            median(rates.collect()),
            "events/s",
        );
        rows.push(match policy {
            Policy::Fifo => rate.against(
                Bound::AtLeast,
                1_000_000.0,
                "aim, floor 200,000; arrivals, starts and ends of jobs",
            ),
            _ => rate,
        });
    }
    Ok(rows)
}

/// The log of KTH-SP2 under EASY and conservative backfilling: as one node with all processors, and
/// under EASY also as a node for each, where jobs are gangs of as many pods. Starts are equal.
pub(super) fn kth() -> anyhow::Result<Vec<Row>> {
    let jobs = Jobs::read(&trace("backfill/kth.csv.gz")?)?;
    let nodes_of_one = queues::read(&trace("backfill/queues.csv")?)?;
    let processors = queues::nodes(&nodes_of_one);
    let processors = u32::try_from(processors).context("too many processors")?;
    let mut one_node = nodes_of_one.clone();
    for queue in &mut one_node {
        queue.nodes = 1;
    }
    let count = jobs.jobs.len();
    let mut rows = Vec::new();
    for (policy, queues, gpus_per_node) in [
        (Policy::Easy, &one_node, processors),
        (Policy::Easy, &nodes_of_one, 1),
        (Policy::Conservative, &one_node, processors),
    ] {
        let workload = Workload {
            jobs: &jobs,
            queues,
            gpus_per_node,
        };
        let runs = (0..REPEATS).map(|_| one(policy, workload).1);
        let times = runs.map(|(took, _)| took.as_secs_f64());
        let nodes = queues::nodes(queues);
        let scenario = format!(
            "KTH-SP2, {count} jobs, {nodes} x {gpus_per_node} processors, {}",
            policy.name()
        );
        let row = Row::new("simulating a trace", scenario, median(times.collect()), "s");
        rows.push(match policy {
            Policy::Easy => row.against(Bound::AtMost, 1.0, "target"),
            _ => row,
        });
    }
    Ok(rows)
}

/// A million jobs on one cluster, with queues that lend and borrow.
pub(super) fn million() -> anyhow::Result<Vec<Row>> {
    let trace = generate(&MILLION)?;
    let nodes = queues::nodes(&trace.queues);
    let workload = Workload {
        jobs: &trace.jobs,
        queues: &trace.queues,
        gpus_per_node: GPUS_PER_NODE,
    };
    let scenario = format!(
        "{} generated jobs of {} queues, {nodes} nodes of 8 GPUs, drf",
        trace.jobs.jobs.len(),
        trace.queues.len()
    );
    let before = peak_memory()?;
    let started = Instant::now();
    let (run, (took, events)) = one(Policy::Drf, workload);
    let elapsed = started.elapsed();
    let peak = peak_memory()?;
    let never = run.never.len();
    anyhow::ensure!(never == 0, "{never} jobs never ran");
    let events = as_f64(usize::try_from(events).unwrap_or(usize::MAX));
    let row = |name, value, unit| Row::new(name, scenario.clone(), value, unit);
    Ok(vec![
        row("simulating a trace", took.as_secs_f64(), "s").against(
            Bound::AtMost,
            600.0,
            "target: minutes",
        ),
        row("simulating a trace, elapsed", elapsed.as_secs_f64(), "s"),
        row("events simulated", events / took.as_secs_f64(), "events/s"),
        row("memory, peak", peak, "MB"),
        row("memory of the trace before", before, "MB"),
    ])
}

/// One run on one thread: its result, how long it took, and how many events it had.
fn one(policy: Policy, workload: Workload<'_>) -> (Run, (Duration, u64)) {
    let events = AtomicU64::new(0);
    let execution = Execution {
        threads: NonZeroUsize::MIN,
        events: &events,
        fair_shares_every_s: None,
    };
    let started = processor_time();
    let mut runs = simulate(&[policy], workload, execution);
    let took = processor_time().saturating_sub(started);
    (runs.remove(0), (took, events.into_inner()))
}

/// The most memory that this process ever held, in MB.
fn peak_memory() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")
        .context("memory is read from /proc, which only Linux has")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    let kibibytes = kibibytes.context("no VmHWM in /proc/self/status")?;
    Ok(kibibytes * 1_024.0 / 1e6)
}
