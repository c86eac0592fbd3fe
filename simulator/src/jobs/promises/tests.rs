//! Small traces whose promises can be worked out by hand.

use super::super::output::{evaluate, write_promises};
use super::super::tests::{queues, run, trace, workload};
use super::super::{Policy, RESERVATIONS};
use super::*;
use crate::trace::jobs::Jobs;

const POLICY: Policy = Policy::DrfReservations(RESERVATIONS);

/// A trace of (submit, duration, GPUs, expected) on two nodes of one queue.
fn jobs(jobs: &[(u64, u64, u32, u64)]) -> Jobs {
    let told: Vec<_> = jobs.iter().map(|it| ("a", it.0, it.1, it.2)).collect();
    let mut trace = trace(&told);
    for (job, (.., expected_s)) in trace.jobs.iter_mut().zip(jobs) {
        job.expected_s = Some(*expected_s);
    }
    trace
}

#[test]
fn a_promised_start_is_not_delayed_by_those_that_pass() {
    // The job of 16 GPUs is promised second 100. The one of 50 s passes, the one of 200 s waits.
    let jobs = jobs(&[
        (0, 100, 8, 100),
        (1, 10, 16, 10),
        (2, 50, 8, 50),
        (3, 200, 8, 200),
    ]);
    let queues = queues(&[("a", 2)]);
    let with = run(POLICY, &jobs, &queues);
    assert_eq!(with.starts_s, [0, 100, 2, 110].map(Some));
    let of_job = |job| with.promises.iter().find(|it| it.job == job).copied();
    let first = Promise {
        job: 1,
        made_s: 1,
        start_s: 100,
    };
    assert_eq!(of_job(1), Some(first));
    assert_eq!(of_job(2), None, "it starts at once");
    assert_eq!(of_job(3).map(|it| (it.made_s, it.start_s)), Some((3, 110)));
    let without = run(Policy::Drf, &jobs, &queues);
    assert_eq!(without.starts_s, [0, 252, 2, 52].map(Some));
    assert_eq!(without.promises, []);
    let none = run(Policy::DrfReservations(0), &jobs, &queues);
    assert_eq!(none.starts_s, without.starts_s);
}

#[test]
fn an_early_end_and_an_overrun_are_errors_of_the_promise() {
    // The first job ends 60 s early, then the third one 50 s late.
    let jobs = jobs(&[(0, 40, 16, 100), (1, 100, 16, 50), (2, 10, 16, 10)]);
    let queues = queues(&[("a", 2)]);
    let workload = workload(&jobs, &queues);
    let runs = [evaluate(run(POLICY, &jobs, &queues), workload)];
    assert_eq!(runs[0].run.starts_s, [0, 40, 140].map(Some));
    let mut file = Vec::new();
    write_promises(&runs, workload, &mut file).unwrap();
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "policy,row,queue,num_gpus,promised_at_s,promised_s,start_s\n\
         drf+reservations,2,a,16,1,100,40\ndrf+reservations,3,a,16,2,150,140\n"
    );
    let truth = &runs[0].promises;
    assert_eq!((truth.promised, truth.kept), (2, 2));
    assert_eq!(truth.late_median_s, None);
    assert_eq!(
        (truth.error_median_s, truth.error_p95_s),
        (Some(60), Some(60))
    );
}

#[test]
fn a_late_start_is_counted_with_how_late_it_is() {
    let jobs = jobs(&[(0, 100, 16, 30), (1, 10, 16, 10)]);
    let queues = queues(&[("a", 2)]);
    let run = evaluate(run(POLICY, &jobs, &queues), workload(&jobs, &queues));
    assert_eq!(
        run.promises,
        Truth {
            promised: 1,
            kept: 0,
            late_median_s: Some(70),
            late_p95_s: Some(70),
            error_median_s: Some(-70),
            error_p95_s: Some(-70),
        }
    );
    assert_eq!(run.promises.kept_per_mille(), Some(0));
}

#[test]
fn the_promise_of_an_evicted_job_is_that_of_its_first_start() {
    let policy = Policy::DrfEvictionsReservations(RESERVATIONS);
    let mut jobs = trace(&[("a", 0, 100, 8), ("a", 5, 100, 8), ("b", 10, 50, 8)]);
    for job in &mut jobs.jobs {
        job.expected_s = Some(job.duration_s);
    }
    let run = run(policy, &jobs, &queues(&[("a", 1), ("b", 1)]));
    assert_eq!(run.evictions.len(), 1);
    assert_eq!(run.starts_s, [0, 60, 10].map(Some));
    assert_eq!(run.promises, []);
}
