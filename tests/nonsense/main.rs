//! Generated nonsense, all the way that an object goes: text, decoding, conversion, engine.
//!
//! A seed is a world of its own, with some two hundred objects that come, change and go. A failure
//! names its seed; `NONSENSE_SEED=7 cargo test --test nonsense` repeats that one alone.
//! `NONSENSE_OBJECTS=1000000` runs so many objects instead of 200,000.
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

mod absent;
mod generator;
mod nasty;
mod shell;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many seeds fail before the test gives up.
const FAILURES_MAX: usize = 3;

/// Runs a check on seeds from 0, on all cores, and returns the sum of what it counts.
fn check_seeds(seeds: u64, check: fn(u64) -> u64) -> u64 {
    if let Ok(seed) = std::env::var("NONSENSE_SEED") {
        return check(seed.parse().unwrap());
    }
    eprintln!("seeds 0..{seeds}; NONSENSE_SEED=N runs one");
    let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    let failures = Mutex::new(Vec::new());
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds || failures.lock().unwrap().len() >= FAILURES_MAX {
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| check(seed))) {
            Ok(count) => sum.fetch_add(count, Ordering::Relaxed),
            Err(_) => {
                failures.lock().unwrap().push(seed);
                0
            }
        };
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "seeds that fail: {failures:?}");
    sum.into_inner()
}

#[test]
fn no_objects_make_the_engine_panic_and_every_refused_one_has_a_reason() {
    let asked = std::env::var("NONSENSE_OBJECTS");
    let wanted: u64 = asked.map_or(200_000, |objects| objects.parse().unwrap());
    let start = std::time::Instant::now();
    let objects = check_seeds(wanted.div_ceil(200), world::check);
    let alone = std::env::var_os("NONSENSE_SEED").is_some();
    assert!(alone || objects >= wanted, "only {objects} objects");
    eprintln!("{objects} objects in {} s", start.elapsed().as_secs());
}

#[test]
fn good_objects_are_scheduled_as_if_bad_ones_were_absent() {
    // Objects about volumes have no problems, so they are never bad.
    let bad = check_seeds(600, absent::check);
    let alone = std::env::var_os("NONSENSE_SEED").is_some();
    assert!(alone || bad >= 10_000, "only {bad} bad objects");
    eprintln!("{bad} bad objects");
}
