//! The seeds are worth something only if they catch bugs: each of these is planted in a copy of the
//! sources, and the seeds of every test run must find it.
//!
//! `GPU_BATCH_BUGS=WORD` tries only the bugs whose names contain the word.

#[path = "planted_bugs/bugs.rs"]
mod bugs;
#[path = "planted_bugs/workshop.rs"]
mod workshop;

use bugs::{BUGS, Bug};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use workshop::{SEEDS, Verdict, Workshop};

#[test]
fn every_planted_bug_is_caught_by_the_seeds() {
    let word = std::env::var("GPU_BATCH_BUGS").unwrap_or_default();
    let bugs: Vec<&Bug> = BUGS.iter().filter(|bug| bug.name.contains(&word)).collect();
    let left = Mutex::new(bugs.iter());
    let survivors = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for number in 0..workers {
            let (left, survivors) = (&left, &survivors);
            scope.spawn(move || {
                let workshop = Workshop::new(number);
                assert_eq!(workshop.try_healthy(), Verdict::Survived, "without a bug");
                loop {
                    let Some(bug) = left.lock().expect("no panic").next() else {
                        return;
                    };
                    let start = Instant::now();
                    let verdict = workshop.try_bug(bug);
                    let seconds = start.elapsed().as_secs();
                    println!("{seconds:>4} s  {}: {verdict:?}", bug.name);
                    if verdict == Verdict::Survived {
                        survivors.lock().expect("no panic").push(bug.name);
                    }
                }
            });
        }
    });
    let survivors = survivors.into_inner().expect("no panic");
    assert_eq!(
        survivors,
        Vec::<&str>::new(),
        "not caught by the seeds {SEEDS}"
    );
}

/// Quick, so that who changes the code of a bug hears of it before the bugs are tried.
#[test]
fn the_code_that_a_bug_changes_is_there_once() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for bug in BUGS {
        let healthy = fs::read_to_string(sources.join(bug.file)).expect(bug.file);
        assert_ne!(bug.planted_in(&healthy), healthy, "{}", bug.name);
    }
}

#[test]
fn there_are_at_least_15_bugs_and_no_two_of_a_name() {
    let mut names: Vec<&str> = BUGS.iter().map(|bug| bug.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), BUGS.len());
    assert!(names.len() >= 15, "{names:?}");
}
