//! A generated trace with evictions: they happen, what they cost is accounted exactly, and the
//! queue that is served worst is served better for it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use gpu_batch_simulator::generate::profile::Like;
use gpu_batch_simulator::generate::{GPUS_PER_NODE, Scale, Settings, Trace, generate};
use gpu_batch_simulator::jobs::fairness::fairness;
use gpu_batch_simulator::jobs::{Execution, Policy, Run, Workload, simulate};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;

/// A few busy days on a small cluster.
const BUSY: Settings = Settings {
    like: Like::Philly,
    seed: 1,
    days: 3,
    scale: Scale::Cluster {
        gpus: Some(64),
        load_percent: 130,
    },
    queues: Some(3),
};

/// A trace in which all jobs save their work so often.
fn trace(checkpoint_s: Option<u64>) -> Trace {
    let mut trace = generate(&BUSY).unwrap();
    for job in &mut trace.jobs.jobs {
        job.checkpoint_s = checkpoint_s;
    }
    trace
}

fn workload(trace: &Trace) -> Workload<'_> {
    Workload {
        jobs: &trace.jobs,
        queues: &trace.queues,
        gpus_per_node: GPUS_PER_NODE,
    }
}

fn run(policy: Policy, trace: &Trace) -> Run {
    let execution = Execution {
        threads: NonZeroUsize::MIN,
        events: &AtomicU64::new(0),
        fair_shares_every_s: None,
    };
    simulate(&[policy], workload(trace), execution).remove(0)
}

/// GPU-seconds that jobs held, that were useful, and that were lost.
fn gpu_seconds(run: &Run, trace: &Trace) -> [u64; 3] {
    let mut sums = [0; 3];
    for (index, job) in trace.jobs.jobs.iter().enumerate() {
        let held_s: u64 = run.runs_s(index, job).map(|(from, to)| to - from).sum();
        let evictions = run.evictions_of(index).iter();
        let lost: u64 = evictions.map(|eviction| eviction.lost_gpu_s(job)).sum();
        let gpus = u64::from(job.num_gpus);
        for (sum, more) in sums
            .iter_mut()
            .zip([held_s * gpus, job.duration_s * gpus, lost])
        {
            *sum += more;
        }
    }
    sums
}

/// The most GPUs that jobs held at once.
fn gpus_at_once(run: &Run, trace: &Trace) -> i64 {
    let mut changes = Vec::new();
    for (index, job) in trace.jobs.jobs.iter().enumerate() {
        let gpus = i64::from(job.num_gpus);
        for (from_s, to_s) in run.runs_s(index, job) {
            changes.extend([(from_s, gpus), (to_s, -gpus)]);
        }
    }
    // What ends in a second makes room for what starts in it.
    changes.sort_unstable();
    let levels = changes.into_iter().scan(0, |held, (_, change)| {
        *held += change;
        Some(*held)
    });
    levels.max().unwrap()
}

#[test]
fn evictions_serve_the_worst_served_queue_and_cost_what_they_say() {
    let plain = trace(None);
    let worst = |run: &Run| fairness(run, workload(&plain)).worst().unwrap().1;
    let before = run(Policy::Drf, &plain);
    assert_eq!(before.evictions, []);
    let mut lost_gpu_s = Vec::new();
    for checkpoint_s in [None, Some(600)] {
        let trace = trace(checkpoint_s);
        let after = run(Policy::DrfEvictions, &trace);
        let [held, useful, lost] = gpu_seconds(&after, &trace);
        println!(
            "checkpoints {checkpoint_s:?}: {} evictions, {lost} of {held} GPU-seconds lost, worst \
             served {} before and {} after",
            after.evictions.len(),
            worst(&before),
            worst(&after)
        );
        assert!(!after.evictions.is_empty());
        assert!(after.never.is_empty() && after.starts_s.iter().all(Option::is_some));
        assert_eq!(held, useful + lost);
        assert!(gpus_at_once(&after, &trace) <= 64);
        assert!(worst(&after) > worst(&before));
        lost_gpu_s.push(lost);
    }
    assert!(lost_gpu_s[1] < lost_gpu_s[0], "{lost_gpu_s:?}");
}

/// The ten days of `docs/simulating.md`, which has the generated month, too: that takes 20 minutes.
#[test]
fn every_queue_gets_nearly_all_of_its_quota() {
    let ten_days = Settings {
        days: 10,
        scale: Scale::Cluster {
            gpus: Some(256),
            load_percent: 90,
        },
        queues: None,
        ..BUSY
    };
    let trace = generate(&ten_days).unwrap();
    let run = run(Policy::DrfEvictions, &trace);
    let (queue, served) = fairness(&run, workload(&trace)).worst().unwrap();
    assert!(served >= 0.99, "{queue:?} gets {served} of its quota");
}

#[test]
fn the_same_trace_gives_the_same_evictions() {
    let trace = trace(Some(3_600));
    let twice = [(); 2].map(|()| run(Policy::DrfEvictions, &trace));
    assert!(twice[0] == twice[1]);
    let jobs = &trace.jobs.jobs;
    for eviction in &twice[0].evictions {
        let gave = &jobs[eviction.job];
        assert!(eviction.lost_s < 3_600 && eviction.saved_s % 3_600 == 0);
        assert!(eviction.saved_s < gave.duration_s);
        assert!(eviction.beneficiary.is_some_and(|got| got != eviction.job));
    }
}
