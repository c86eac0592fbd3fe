//! Jobs on one pool of GPUs, and the second in which each starts beside reservations, as others
//! have worked it out.

use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, node, pod};
use std::collections::BTreeMap;

/// A second in milliseconds.
const S: u64 = 1_000;

/// When a job arrives, its GPUs, how long it runs, and how long it is expected to run; all in
/// seconds.
type Job = (u64, u64, u64, Option<u64>);

/// Runs jobs on a pool, and returns the second in which each starts. `look` is told each second.
fn starts(
    (reservations, pool): (u32, u64),
    jobs: &[Job],
    mut look: impl FnMut(u64, &World),
) -> Vec<u64> {
    let mut world = World::with(Settings {
        reservations,
        ..Settings::default()
    });
    world.then(node("n1", pool));
    let mut starts: BTreeMap<usize, u64> = BTreeMap::new();
    for second in 0.. {
        for (index, (arrives, gpus, runs, expected)) in jobs.iter().enumerate() {
            let name = format!("j{index}");
            if *arrives == second {
                let (job, now_ms) = (pod(&name, *gpus), world.now_ms);
                world.apply(job.with(|job| {
                    job.created_ms = now_ms;
                    job.hints.expected_runtime_ms = expected.map(|expected| expected * S);
                }));
            }
            if starts
                .get(&index)
                .is_some_and(|start| start + runs == second)
            {
                world.end(&name);
            }
        }
        world.settle();
        for index in 0..jobs.len() {
            if world
                .find(&format!("j{index}"))
                .is_some_and(|job| job.node.is_some())
            {
                starts.entry(index).or_insert(second);
            }
        }
        look(second, &world);
        if starts.len() == jobs.len() {
            break;
        }
        world.pass(S);
    }
    starts.into_values().collect()
}

/// Holds the starts of jobs on a pool with one reservation, and with one for each, against what is
/// expected.
fn hold(pool: u64, jobs: &[Job], easy: &[u64], conservative: &[u64]) {
    let nothing = |_, _: &World| {};
    assert_eq!(starts((1, pool), jobs, nothing), easy, "EASY");
    let all = (u32::MAX, pool);
    assert_eq!(starts(all, jobs, nothing), conservative, "conservative");
}

/// Case B01.
#[test]
fn easy_backfilling_lets_pass_what_conservative_backfilling_does_not() {
    let jobs = [
        (0, 70, 100, Some(100)),
        (1, 80, 100, Some(100)),
        (2, 90, 100, Some(100)),
        (50, 20, 250, Some(250)),
    ];
    hold(100, &jobs, &[0, 100, 300, 50], &[0, 100, 200, 300]);
}

/// Case B02.
#[test]
fn an_early_end_pulls_promises_forward() {
    let jobs = [
        (0, 50, 600, Some(800)),
        (1, 100, 200, Some(400)),
        (2, 10, 100, Some(200)),
    ];
    hold(100, &jobs, &[0, 600, 2], &[0, 600, 2]);
}

/// Case B03.
#[test]
fn a_job_may_end_in_the_second_of_the_promised_start() {
    let jobs = [
        (0, 3, 100, Some(100)),
        (1, 4, 10, Some(10)),
        (2, 1, 98, Some(98)),
        (3, 1, 99, Some(99)),
    ];
    hold(4, &jobs, &[0, 100, 2, 110], &[0, 100, 2, 110]);
}

/// Case B04.
#[test]
fn a_job_of_unknown_runtime_starts_only_beside_the_reservation() {
    let jobs = [
        (0, 3, 100, Some(100)),
        (1, 3, 10, Some(10)),
        (2, 1, 500, None),
        (3, 1, 500, None),
    ];
    assert_eq!(starts((1, 4), &jobs, |_, _| {}), [0, 100, 2, 110]);
}

/// Case B07, with a last job of 10 s that ends when the first one is expected for the second time,
/// a minute after the first time. One of 20 s, as the case has it, would end 10 s too late for that
/// and starts when the first job is expected later still.
#[test]
fn a_job_that_runs_longer_than_expected_moves_the_promise_and_lets_short_jobs_pass() {
    let jobs = |last| {
        [
            (0, 3, 400, Some(100)),
            (1, 4, 10, Some(10)),
            (150, 1, last, Some(last)),
        ]
    };
    assert_eq!(starts((1, 4), &jobs(20), |_, _| {}), [0, 400, 161]);
    let mut begin_ms = 0;
    let mut promised = Vec::new();
    let found = starts((1, 4), &jobs(10), |second, world| {
        if second == 0 {
            begin_ms = world.now_ms;
        }
        let mut starts = world.engine.promised_starts();
        let start = starts.find(|(gang, _)| *gang == "default/pod/j1");
        promised.extend(start.map(|(_, at_ms)| (second, (at_ms - begin_ms) / S)));
    });
    assert_eq!(found, [0, 400, 150]);
    // From second 101 on the job is expected in 160, from 161 on in 280, and from 281 on in 520.
    let at = |second: u64| promised.iter().find(|(at, _)| *at == second).unwrap().1;
    let seconds = [50, 100, 101, 150, 160, 161, 280, 281, 399];
    let expected = [100, 100, 160, 160, 160, 280, 280, 520, 520];
    assert_eq!(seconds.map(at), expected);
}

/// Case B12.
#[test]
fn a_reservation_waits_for_a_job_that_overstays() {
    let jobs = [
        (0, 3, 100, Some(100)),
        (1, 4, 10, Some(10)),
        (2, 1, 300, Some(98)),
    ];
    assert_eq!(starts((1, 4), &jobs, |_, _| {}), [0, 302, 2]);
}
