//! Gangs that wait behind promises, of which only the first of those alike is tried.

use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, node, pod};

/// A second in milliseconds.
const S: u64 = 1_000;
/// Pods that are sketched on a node have run for so long when a world begins.
const AGE: u64 = 30 * S;

/// One node of four GPUs with one free, and a head that is promised all four in 100 s.
fn world(reservations: u32) -> World {
    let mut world = World::with(Settings {
        reservations,
        ..Settings::default()
    });
    world.apply((node("n1", 4), pod("r", 3).on("n1").runtime(100 * S + AGE)));
    world.then(pod("a-head", 4).runtime(10 * S));
    world
}

/// Which of these gangs are told to wait behind promises.
fn behind(world: &World, names: &str) -> Vec<bool> {
    let reasons = names.split(' ').map(|name| world.reason(name));
    reasons.map(|it| it == Some(Reason::Reserved)).collect()
}

#[test]
fn one_that_ends_earlier_than_the_first_of_those_alike_starts_when_the_promise_moves() {
    let mut world = world(1);
    let longer = "b0 b1 b2 b3 b4 b5 b6 b7";
    for name in longer.split(' ') {
        world.then(pod(name, 1).runtime(500 * S));
    }
    for (name, seconds) in [("c", 150), ("d", 140)] {
        world.then(pod(name, 1).runtime(seconds * S));
    }
    assert_eq!(behind(&world, "pod/b0 pod/b7 pod/c pod/d"), [true; 4]);
    // The pod on the node overruns: it is expected after 160, 280 and 520 s.
    for seconds in [101, 60, 119] {
        world.pass(seconds * S);
        world.settle();
        assert_eq!(world.places("a-head c d"), "- - -");
    }
    world.pass(S);
    world.settle();
    assert_eq!(world.places("a-head c d"), "- n1 -");
    assert_eq!(world.places(longer), "- - - - - - - -");
}

#[test]
fn all_those_alike_that_have_room_start_when_the_promise_moves() {
    let mut world = World::with(Settings {
        reservations: 1,
        ..Settings::default()
    });
    // Nothing but the promise is in their way: eight GPUs are free, and the head needs all.
    world.apply((node("n1", 11), pod("r", 3).on("n1").runtime(100 * S + AGE)));
    world.then(pod("a-head", 11).runtime(10 * S));
    world.pass(60 * S);
    let alike = "b0 b1 b2 b3 b4 b5 b6 b7";
    for name in alike.split(' ') {
        world.then(pod(name, 1).runtime(55 * S));
    }
    assert_eq!(world.places(alike), "- - - - - - - -");
    // The pod on the node overruns, and is expected a minute later.
    world.pass(41 * S);
    world.settle();
    assert_eq!(world.places(alike), "n1 n1 n1 n1 n1 n1 n1 n1");
    assert_eq!(world.places("a-head"), "-");
}

/// Those that slept are told anew what they wait for.
#[test]
fn no_gang_is_told_to_wait_behind_one_that_is_promised_nothing() {
    let mut world = world(1);
    let others: Vec<String> = (0..24).map(|index| format!("c{index}")).collect();
    for name in &others {
        world.then(pod(name, 1).runtime(500 * S));
    }
    let head = "delay default/pod/a-head";
    let told = |world: &World, name: &str| world.message(&format!("pod/{name}"));
    assert!(others.iter().all(|name| told(&world, name).contains(head)));
    // One gang takes over the promise, and the other one the GPU that was free.
    world.apply(
        pod("a-first", 4)
            .runtime(10 * S)
            .with(|pod| pod.priority = 10),
    );
    world.then(
        pod("a-short", 1)
            .runtime(90 * S)
            .with(|pod| pod.priority = 10),
    );
    world.run(30 * S);
    assert_eq!(world.places("a-head a-first a-short"), "- - n1");
    for name in &others {
        let message = told(&world, name);
        assert!(!message.contains(head), "{message}");
    }
}
