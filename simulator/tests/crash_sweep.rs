//! A gang is never left half-bound, whatever crashes: every command, every fault, every successor.

use gpu_batch_simulator::crash_sweep::{Case, Ending, cases, run};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The fates of the gangs, counted.
#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    left_in_part: usize,
    completed: usize,
    unwound: usize,
    failures: Vec<String>,
}

impl Tally {
    fn count(&mut self, result: Result<Ending, String>) {
        self.cases += 1;
        match result {
            Ok(ending) => {
                self.left_in_part += usize::from(ending.left_in_part);
                self.completed += usize::from(ending.left_in_part && !ending.unwound);
                self.unwound += usize::from(ending.unwound);
            }
            Err(failure) => self.failures.push(failure),
        }
    }
}

/// Runs cases on all cores.
fn sweep(cases: &[Case]) -> Tally {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut tally = Tally::default();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            tally.count(run(*case));
        }
        tally
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().fold(Tally::default(), |sum, worker| {
            let tally = worker
                .join()
                .expect("a worker panics only when the engine does");
            Tally {
                cases: sum.cases + tally.cases,
                left_in_part: sum.left_in_part + tally.left_in_part,
                completed: sum.completed + tally.completed,
                unwound: sum.unwound + tally.unwound,
                failures: [sum.failures, tally.failures].concat(),
            }
        })
    })
}

fn check(members: usize) {
    let mut tally = sweep(&cases(members));
    println!(
        "gangs of {members}: {} cases, {} left in part ({} of them completed), {} unwound",
        tally.cases, tally.left_in_part, tally.completed, tally.unwound
    );
    tally.failures.sort();
    let shown: Vec<&String> = tally.failures.iter().take(10).collect();
    let failed = tally.failures.len();
    assert!(failed == 0, "{failed} of {} cases: {shown:#?}", tally.cases);
    if members > 1 {
        assert!(tally.completed > 0 && tally.unwound > 0, "{tally:?}");
    }
}

#[test]
fn a_gang_of_1_is_never_left_in_part() {
    check(1);
}

#[test]
fn a_gang_of_2_is_never_left_in_part() {
    check(2);
}

#[test]
fn a_gang_of_3_is_never_left_in_part() {
    check(3);
}

#[test]
fn a_gang_of_4_is_never_left_in_part() {
    check(4);
}
