use super::*;
use crate::facts::Uid;

/// Runtimes of a queue after runs of these owners, each with its seconds.
fn after(runs: &[(&str, u32)]) -> Runtimes {
    let mut runtimes = Runtimes::default();
    for (owner, seconds) in runs {
        runtimes.learn("q", owner, *seconds, 0);
    }
    runtimes
}

fn seconds(runtimes: &Runtimes, owner: &str) -> Option<(u64, RuntimeSource)> {
    let expectation = runtimes.expect("q", owner)?;
    Some((expectation.runtime_ms / 1_000, expectation.source))
}

#[test]
fn two_runs_of_an_owner_say_how_long_the_next_one_takes() {
    let runtimes = after(&[("a", 100), ("b", 7), ("a", 90)]);
    assert_eq!(seconds(&runtimes, "a"), Some((100, RuntimeSource::Owner)));
    assert_eq!(seconds(&runtimes, "b"), None, "one run is too few");
    assert_eq!(seconds(&runtimes, "c"), None);
    assert!(runtimes.expect("other", "a").is_none());
}

#[test]
fn the_longest_of_ten_runs_and_more_is_left_aside() {
    let runs: Vec<(&str, u32)> = (1..=10).map(|run| ("a", run)).collect();
    assert_eq!(seconds(&after(&runs), "a"), Some((9, RuntimeSource::Owner)));
}

#[test]
fn the_runs_of_a_queue_speak_for_unknown_owners() {
    let owners: Vec<String> = (0..16).map(|owner| format!("o{owner}")).collect();
    let runs: Vec<(&str, u32)> = owners.iter().map(|owner| (&**owner, 60)).collect();
    assert_eq!(seconds(&after(&runs[..15]), "new"), None);
    assert_eq!(
        seconds(&after(&runs), "new"),
        Some((60, RuntimeSource::Queue))
    );
}

#[test]
fn old_runs_and_idle_owners_are_forgotten() {
    let mut runs: Vec<(&str, u32)> = alloc::vec![("a", 1_000_000)];
    runs.extend((0..100).map(|_| ("a", 10)));
    assert_eq!(
        seconds(&after(&runs), "a"),
        Some((10, RuntimeSource::Owner))
    );
    let owners: Vec<String> = (0..40).map(|owner| format!("o{owner}")).collect();
    let runs: Vec<(&str, u32)> = owners.iter().map(|owner| (&**owner, 60)).collect();
    let mut runtimes = after(&runs);
    assert!(runtimes.follow(60_000));
    let told = runtimes.published("q").expect("runs were learned");
    assert_eq!((told.seconds.len(), told.owners.len()), (40, OWNERS_MAX));
    assert_eq!(&*told.owners[0].owner, "o8");
}

#[test]
fn names_that_ran_once_displace_no_more_than_half_of_the_owners() {
    let known: Vec<String> = (0..20).map(|owner| format!("known{owner}")).collect();
    let once: Vec<String> = (0..100).map(|owner| format!("once{owner}")).collect();
    let twice = known.iter().flat_map(|owner| [(&**owner, 60); 2]);
    let runs: Vec<(&str, u32)> = twice.chain(once.iter().map(|it| (&**it, 5))).collect();
    let runtimes = after(&runs);
    let remembered = known.iter().map(|owner| seconds(&runtimes, owner));
    let remembered: Vec<bool> = remembered
        .map(|it| it.is_some_and(|(_, source)| source == RuntimeSource::Owner))
        .collect();
    let places = OWNERS_MAX - NEW_OWNERS_MAX;
    assert_eq!(remembered.iter().filter(|it| **it).count(), places);
    assert!(remembered[4..].iter().all(|it| *it), "the last ones");
}

#[test]
fn what_is_told_changes_once_a_minute() {
    let mut runtimes = Runtimes::default();
    runtimes.learn("q", "a", 5, 1_000);
    assert_eq!(runtimes.deadline(), Some(60_000));
    assert!(!runtimes.follow(59_999) && runtimes.published("q").is_none());
    assert!(runtimes.follow(60_000) && runtimes.deadline().is_none());
    runtimes.learn("q", "a", 6, 61_000);
    assert_eq!(runtimes.deadline(), Some(120_000));
    assert_eq!(
        runtimes.published("q").map(|told| told.seconds.len()),
        Some(1)
    );
}

#[test]
fn a_new_leader_reads_what_the_last_one_has_learned() {
    let mut runtimes = after(&[("a", 100), ("a", 90)]);
    runtimes.follow(60_000);
    let mut facts = QueueFacts::new(Uid(1), "q");
    facts.runtimes = runtimes.published("q").cloned();
    let mut next = Runtimes::default();
    next.adopt(&mut facts.clone());
    assert_eq!(seconds(&next, "a"), Some((100, RuntimeSource::Owner)));
    next.learn("q", "a", 300, 0);
    next.adopt(&mut facts);
    assert_eq!(seconds(&next, "a"), Some((300, RuntimeSource::Owner)));
}

#[test]
fn names_lose_what_is_counted_or_generated() {
    for (name, owner) in [
        ("vision/job/nightly-29012345", "vision/job/nightly"),
        ("vision/sweep-7", "vision/sweep"),
        ("vision/sweep-3-x7k2p", "vision/sweep"),
        ("vision/sweep-x3k2p", "vision/sweep-x3k2p"),
        ("vision/llama-70b", "vision/llama-70b"),
        ("vision/job/5", "vision/job/5"),
        ("vision/-5", "vision/-5"),
        ("vision/train-small", "vision/train-small"),
    ] {
        assert_eq!(without_generated(name), owner, "{name}");
    }
}
