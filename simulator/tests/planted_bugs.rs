//! The seeds are worth something only if they catch bugs: these are planted in a copy of the
//! sources, each behind a switch, and the seeds of every test run must find each. Some bugs in
//! eviction plans must be found by brute force instead.
//!
//! `GPU_BATCH_BUGS=WORDS,WORDS` tries only the bugs whose names contain one of these texts.

#[path = "planted_bugs/bugs.rs"]
mod bugs;
#[path = "planted_bugs/places.rs"]
mod places;
#[path = "planted_bugs/workshop.rs"]
mod workshop;

use bugs::{BUGS, Bug};
use places::Sources;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use workshop::{SEEDS, Verdict, Workshop};

#[test]
fn every_planted_bug_is_caught() {
    let words = std::env::var("GPU_BATCH_BUGS").unwrap_or_default();
    let is_meant = |bug: &&Bug| words.split(',').any(|word| bug.name.contains(word));
    let bugs: Vec<&Bug> = BUGS.iter().filter(is_meant).collect();
    assert!(!bugs.is_empty(), "no bug has {words:?} in its name");
    let left = Mutex::new(bugs.iter());
    let not_caught = Mutex::new(Vec::new());
    let workshop = Workshop::new();
    assert_eq!(workshop.try_healthy(), Verdict::Survived, "without a bug");
    let try_one = || {
        let bug = left.lock().expect("no panic").next()?;
        let start = Instant::now();
        let verdict = workshop.try_bug(bug);
        let seconds = start.elapsed().as_secs();
        println!("{seconds:>4} s  {}: {verdict:?}", bug.name);
        if verdict == Verdict::Survived {
            not_caught.lock().expect("no panic").push(bug.name);
        }
        Some(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| while try_one().is_some() {});
        }
    });
    let not_caught = not_caught.into_inner().expect("no panic");
    let message = format!("not caught by brute force or the seeds {SEEDS:?}: {not_caught:#?}");
    assert!(not_caught.is_empty(), "{message}");
}

/// Quick, so that whoever changes the code of a bug hears of it before the bugs are tried.
#[test]
fn every_bug_has_one_marker_and_every_marker_a_bug() {
    let sources = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let mut wanted: Vec<&str> = BUGS.iter().map(|bug| bug.marker).collect();
    wanted.sort_unstable();
    wanted.dedup();
    assert_eq!(sources.markers(), wanted);
    sources.with(BUGS).expect("a place for each bug");
}

#[test]
fn there_are_at_least_15_bugs_and_no_two_of_a_name() {
    let mut names: Vec<&str> = BUGS.iter().map(|bug| bug.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), BUGS.len());
    assert!(names.len() >= 15, "{names:?}");
}
