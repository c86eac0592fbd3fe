use super::{Choice, Nearness, Network, measure};
use crate::trace::jobs::{Job, Jobs};

/// Jobs of one queue: seconds of arrival, seconds of running, and GPUs.
fn jobs(of: &[(u64, u64, u32)]) -> Jobs {
    let job = |(row, (submit_s, duration_s, num_gpus)): (u64, &(u64, u64, u32))| Job {
        row,
        submit_s: *submit_s,
        duration_s: *duration_s,
        num_gpus: *num_gpus,
        queue: 0,
        checkpoint_s: None,
        expected_s: None,
        owner: None,
    };
    Jobs {
        jobs: (1..).zip(of).map(job).collect(),
        queues: vec!["all".to_owned()],
        owners: Vec::new(),
    }
}

/// Two racks of four hosts. The single ones fill a host each; when the first three have ended, a
/// gang of four comes.
const MONTH: [(u64, u64, u32); 6] = [
    (0, 10, 8),
    (0, 10, 8),
    (0, 10, 8),
    (0, 100, 8),
    (20, 50, 32),
    (30, 50, 8),
];

#[test]
fn a_month_is_added_up() {
    let network = Network::of_racks(1, 1, 2, 4);
    let found = measure(&jobs(&MONTH), &network, Choice::FirstFit);
    // The fourth holds the last host of the first rack; the gang takes the other three of it and
    // one of the second rack. For 20 s four hosts of the second rack are open, then three, and of
    // all hosts four for 10 s, seven for 10 s, and three for 10 s. The second rack is free as a
    // whole for 20 s.
    let expected = Nearness {
        started: 6,
        waited_ms: 0,
        gangs: 1,
        together: 0,
        together_at_best: 1,
        racks: 2,
        racks_at_best: 1,
        lasted_ms: 30_000,
        open_in_rack_ms: 4 * 20_000 + 3 * 10_000,
        open_ms: 4 * 10_000 + 7 * 10_000 + 3 * 10_000,
        free_racks_ms: 20_000,
    };
    assert_eq!(found, expected);
    let engine = measure(&jobs(&MONTH), &network, Choice::Engine);
    assert_eq!((engine.gangs, engine.together, engine.racks), (1, 1, 1));
}

#[test]
fn who_finds_no_room_waits_and_lets_others_pass() {
    let network = Network::of_racks(1, 1, 1, 2);
    // The second needs both hosts, and waits for the first one's end; the third fits beside it.
    let jobs = jobs(&[(0, 10, 8), (1, 10, 16), (2, 3, 8)]);
    for choice in [Choice::Engine, Choice::FirstFit, Choice::Random(1)] {
        let found = measure(&jobs, &network, choice);
        assert_eq!((found.started, found.waited_ms), (3, 9_000), "{choice:?}");
    }
}

#[test]
fn a_job_that_is_too_large_never_starts() {
    let network = Network::of_racks(1, 1, 1, 2);
    for choice in [Choice::Engine, Choice::FirstFit, Choice::Random(1)] {
        let found = measure(&jobs(&[(0, 10, 24), (1, 10, 12)]), &network, choice);
        assert_eq!((found.started, found.racks), (1, 1), "{choice:?}");
    }
}

#[test]
fn racks_of_the_same_name_in_other_blocks_are_others() {
    let network = Network::of_racks(2, 3, 4, 5);
    assert_eq!((network.hosts(), network.racks()), (120, 24));
    assert_eq!(network.path(119), ["zone-01", "block-02", "rack-03"]);
    assert_eq!(network.fewest_racks(5), 1);
    assert_eq!(network.fewest_racks(11), 3);
    assert_eq!(network.fewest_racks(1_000), 24);
}
