//! Small traces of jobs of one owner, whose learned runtimes can be worked out by hand.

use super::super::output::{evaluate, write_runtimes};
use super::super::tests::{queues, run, trace, workload};
use super::super::{Policy, RESERVATIONS, Run};
use crate::jobs::ratios::Foreseen;
use crate::trace::jobs::Jobs;
use gpu_batch_policies::facts::RuntimeSource;

const POLICY: Policy = Policy::DrfReservations(RESERVATIONS);

/// A trace of (submit, duration, GPUs, owner) of one queue.
fn jobs(jobs: &[(u64, u64, u32, &str)]) -> Jobs {
    let told: Vec<_> = jobs.iter().map(|it| ("a", it.0, it.1, it.2)).collect();
    let mut trace = trace(&told);
    for (job, (.., owner)) in trace.jobs.iter_mut().zip(jobs) {
        let known = trace.owners.iter().position(|known| known == owner);
        let index = known.unwrap_or_else(|| {
            trace.owners.push((*owner).to_owned());
            trace.owners.len() - 1
        });
        job.owner = Some(u32::try_from(index).unwrap());
    }
    trace
}

fn foreseen(source: RuntimeSource, expected_s: u64, real_s: u64) -> Foreseen {
    Foreseen {
        source,
        expected_s,
        real_s,
    }
}

/// Two runs of `nightly` take 100 s, so the third one is expected to take 100 s, too. The job of
/// two nodes is promised the end of it, and what takes longer does not pass.
const NIGHTS: [(u64, u64, u32, &str); 6] = [
    (0, 100, 8, "nightly"),
    (0, 90, 8, "nightly"),
    (200, 120, 8, "nightly"),
    (210, 10, 16, "big"),
    (220, 500, 8, "long"),
    (230, 50, 8, "short"),
];

#[test]
fn what_an_owner_s_jobs_took_promises_a_start_to_others() {
    let jobs = jobs(&NIGHTS);
    let queues = queues(&[("a", 2)]);
    let with = run(POLICY, &jobs, &queues);
    // Nothing is expected of the jobs of the other owners: they pass nobody who is promised room.
    assert_eq!(with.starts_s, [0, 0, 200, 320, 330, 330].map(Some));
    let of_big = with.promises.iter().find(|it| it.job == 3).unwrap();
    assert_eq!((of_big.made_s, of_big.start_s), (210, 300));
    assert_eq!(with.foreseen, [foreseen(RuntimeSource::Owner, 100, 120)]);
    let evaluated = evaluate(with, workload(&jobs, &queues));
    assert_eq!(evaluated.unforeseen(), 5);
    let mut file = Vec::new();
    write_runtimes(&[evaluated], &mut file).unwrap();
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "policy,source,jobs,ratio_median,ratio_p95,overruns\n\
         drf+reservations,said,0,,,0\n\
         drf+reservations,owner,1,1.200,1.200,1\n\
         drf+reservations,queue,0,,,0\n\
         drf+reservations,none,5,,,\n"
    );
}

#[test]
fn nothing_is_learned_where_nobody_says_whose_jobs_these_are() {
    let mut jobs = jobs(&NIGHTS);
    jobs.owners.clear();
    jobs.jobs.iter_mut().for_each(|job| job.owner = None);
    let queues = queues(&[("a", 2)]);
    let with = run(POLICY, &jobs, &queues);
    assert_eq!(with.starts_s, run(Policy::Drf, &jobs, &queues).starts_s);
    assert_eq!((with.promises, with.foreseen), (vec![], vec![]));
}

/// A start a second, each a single pod: the queue is known after sixteen of them.
#[test]
fn a_queue_is_learned_after_sixteen_jobs_and_what_is_said_comes_first() {
    let mut all: Vec<(u64, u64, u32, &str)> = Vec::new();
    let names: Vec<String> = (0..17).map(|number| format!("user-{number}")).collect();
    for (number, name) in (0..).zip(&names) {
        all.push((number * 100, 10, 1, name));
    }
    all.push((2_000, 30, 1, "user-0"));
    let mut jobs = jobs(&all);
    jobs.jobs[17].expected_s = Some(60);
    let Run { foreseen: seen, .. } = run(POLICY, &jobs, &queues(&[("a", 1)]));
    let expected = [
        foreseen(RuntimeSource::Queue, 10, 10),
        foreseen(RuntimeSource::Said, 60, 30),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn gangs_and_evicted_runs_are_learned_from_once_they_end() {
    // The gang of two nodes is of the queue with the right to one of them, and is evicted for it.
    let mut all = jobs(&[
        (0, 100, 16, "gang"),
        (200, 100, 16, "gang"),
        (400, 100, 16, "gang"),
    ]);
    all.queues.push("b".to_owned());
    all.jobs.push(crate::trace::jobs::Job {
        row: 4,
        submit_s: 420,
        duration_s: 10,
        queue: 1,
        num_gpus: 8,
        ..all.jobs[0]
    });
    let queues = queues(&[("a", 1), ("b", 1)]);
    let policy = Policy::DrfEvictionsReservations(RESERVATIONS);
    let with = run(policy, &all, &queues);
    assert_eq!(with.evictions.len(), 1, "{:?}", with.evictions);
    assert_eq!(with.never, []);
    assert_eq!(with.foreseen, [foreseen(RuntimeSource::Owner, 100, 100)]);
}
