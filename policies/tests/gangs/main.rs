//! Gangs against methods that are slow and obviously right: no gang is refused as proved that fits,
//! and none is placed against its own rules.
//!
//! The share of the refusals that are bounded is printed:
//! `cargo test -p gpu-batch-policies --test gangs -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answer;
mod case;
mod exhaustive;
mod program;

use answer::{Answer, faults, schedule};
use case::{Case, Kind, Size};

/// What came out of many cases.
#[derive(Debug, Default)]
struct Tally {
    placed: usize,
    proved: usize,
    bounded: usize,
    /// Bounded ones that would have fitted.
    missed: usize,
}

impl Tally {
    /// Holds one case against the truth.
    fn count(&mut self, case: &Case, fits: bool) {
        match schedule(case) {
            Answer::Placed(places) => {
                let faults = faults(case, &places);
                assert!(faults.is_empty(), "{faults:?} in {places:?} of {case:#?}");
                assert!(fits, "placed what cannot fit: {places:?} of {case:#?}");
                self.placed += 1;
            }
            Answer::Proved(message) => {
                assert!(!fits, "refused as proved, and fits: {message}: {case:#?}");
                self.proved += 1;
            }
            Answer::Bounded => {
                self.bounded += 1;
                self.missed += usize::from(fits);
            }
        }
    }
}

fn print(name: &str, tally: &Tally) {
    let refused = tally.proved + tally.bounded;
    println!(
        "{name}: {} placed, {} refused as proved, {} refused within a bound ({:.2} % of the \
         refused), of which {} would fit",
        tally.placed,
        tally.proved,
        tally.bounded,
        100.0 * tally.bounded as f64 / refused.max(1) as f64,
        tally.missed,
    );
}

#[test]
fn small_clusters_agree_with_trying_everything() {
    let mut tally = Tally::default();
    for seed in 0..10_000 {
        let case = Case::draw(seed, Size::Small, Kind::Any);
        tally.count(&case, exhaustive::fits(&case));
    }
    print("10,000 gangs on small clusters", &tally);
    assert!(tally.placed > 2_000 && tally.proved > 2_000, "{tally:?}");
    assert!(tally.bounded * 100 < tally.proved, "{tally:?}");
}

#[test]
fn two_shapes_without_domains_of_sub_groups_are_always_proved() {
    let mut tally = Tally::default();
    for seed in 0..2_000 {
        let case = Case::draw(seed, Size::Small, Kind::TwoShapes);
        tally.count(&case, exhaustive::fits(&case));
    }
    print("2,000 gangs of two shapes", &tally);
    assert_eq!(tally.bounded, 0, "{tally:?}");
    assert!(tally.placed > 300 && tally.proved > 300, "{tally:?}");
}

#[test]
fn middle_clusters_agree_with_an_integer_program() {
    let mut tally = Tally::default();
    for seed in 0..270 {
        let case = Case::draw(seed, Size::Middle, Kind::Any);
        tally.count(&case, program::fits(&case));
    }
    print("270 gangs on middle clusters", &tally);
    assert!(tally.placed > 50 && tally.proved > 30, "{tally:?}");
}

#[test]
fn free_gpus_of_4_and_3_hold_members_of_2_3_and_2() {
    let case = Case::flat(&[4, 3], &[2, 3, 2]);
    let Answer::Placed(places) = schedule(&case) else {
        panic!("it fits");
    };
    assert_eq!(faults(&case, &places), Vec::<String>::new());
    assert_eq!(places[0], places[2]);
    let case = Case::flat(&[4, 3], &[2, 3, 3]);
    assert!(matches!(schedule(&case), Answer::Proved(_)));
}

#[test]
fn the_slow_methods_agree_with_each_other() {
    for seed in 0..100 {
        let case = Case::draw(seed, Size::Small, Kind::Any);
        assert_eq!(exhaustive::fits(&case), program::fits(&case), "{case:#?}");
    }
}
