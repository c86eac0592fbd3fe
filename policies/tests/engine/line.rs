//! The line of a leaf queue: who is tried, who waits behind whom, and who is woken.

use gpu_batch_policies::facts::PodFacts;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::{Evictions, LeafOrder, Queueing, Settings};
use gpu_batch_testing::{START_MS, Sketch, World, gang, names, node, pod, queue};

/// `x` for each pod that has a node, `-` for each that has none.
fn bound(world: &World, pods: &str) -> String {
    let places = world.places(pods);
    places
        .split(' ')
        .map(|node| if node == "-" { '-' } else { 'x' })
        .collect()
}

/// A full node of 8 GPUs, one GPU a pod: `run-0` to `run-7`.
fn full(settings: Settings) -> World {
    let mut world = World::with(settings);
    world.apply(node("n1", 8));
    world.then(pod(&names("run-", 8), 1).on("n1"));
    world
}

/// No gang is evicted: these tests are about which gang starts in room that comes free.
fn without_evictions() -> Settings {
    Settings {
        evictions: Evictions {
            in_flight: 0,
            ..Settings::default().evictions
        },
        ..Settings::default()
    }
}

/// The shortest first, each behind those who find no room.
fn shortest() -> Settings {
    Settings {
        leaf_order: LeafOrder::ShortestFirst,
        queueing: Queueing::Strict,
        ..without_evictions()
    }
}

fn strict() -> Settings {
    Settings {
        queueing: Queueing::Strict,
        ..without_evictions()
    }
}

fn lasting(name: &str, gpus: u64, runtime_ms: u64) -> Sketch<PodFacts> {
    pod(name, gpus).runtime(runtime_ms)
}

#[test]
fn those_that_lack_the_same_are_woken_in_line() {
    let mut world = full(without_evictions());
    world.then(pod("a b c d", 1));
    assert_eq!(bound(&world, "a b c d"), "----");
    world.end(&names("run-", 3));
    world.settle();
    assert_eq!(bound(&world, "a b c d"), "xxx-");
    world.end("a");
    world.settle();
    assert_eq!(bound(&world, "d"), "x");
}

#[test]
fn who_is_woken_in_line_keeps_its_place_among_others() {
    let mut world = full(without_evictions());
    world.then((pod("a", 1), pod("b", 2), pod("c", 1)));
    world.end(&names("run-", 3));
    world.settle();
    assert_eq!(bound(&world, "a b c"), "xx-");
}

#[test]
fn who_leaves_the_line_lets_the_next_one_go() {
    // The first in line loses its turn in the very step in which it is woken.
    let mut world = full(without_evictions());
    world.then(pod("a b", 1));
    world.apply(pod("a", 1).gate("wait"));
    world.end("run-0");
    world.settle();
    assert_eq!(world.reason_of_pod("a"), Some(Reason::SchedulingGated));
    assert_eq!(bound(&world, "b"), "x");

    let mut world = full(without_evictions());
    world.then(pod("a b", 1));
    world.end("run-0");
    world.delete("a");
    world.settle();
    assert_eq!(bound(&world, "b"), "x");
}

#[test]
fn who_is_kept_by_its_queue_does_not_keep_others() {
    let mut world = full(without_evictions());
    world.then((queue("team"), pod("a b", 1).queue("team"), pod("c", 1)));
    world.apply(queue("team").limit(0));
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, "a b c"), "--x");
    assert_eq!(world.reason_of_pod("b"), Some(Reason::OverLimit));
}

#[test]
fn in_a_strict_line_nobody_passes() {
    let mut world = full(strict());
    world.then((pod("a", 2), pod("b", 1)));
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, "a b"), "--");
    world.end("run-1");
    world.settle();
    assert_eq!(bound(&world, "a b"), "x-");
    world.end("run-2");
    world.settle();
    assert_eq!(bound(&world, "b"), "x");
}

#[test]
fn the_line_goes_on_when_its_first_goes_away() {
    let mut world = full(strict());
    world.then((pod("a", 8), pod("b", 1)));
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, "b"), "-");
    world.delete("a");
    world.settle();
    assert_eq!(bound(&world, "b"), "x");
}

#[test]
fn strict_lines_of_two_queues_do_not_wait_for_each_other() {
    let mut world = full(strict());
    world.then((
        queue("left right"),
        pod("a", 8).queue("left"),
        pod("b", 1).queue("left"),
        pod("c", 1).queue("right"),
    ));
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, "a b c"), "--x");
}

#[test]
fn the_shortest_goes_before_a_longer_one_that_waits() {
    let mut world = full(shortest());
    world.then((lasting("long", 2, 9_000), pod("unknown", 1)));
    world.then(lasting("short", 2, 1_000));
    for (end, expected) in [
        ("run-0", "---"),
        ("run-1", "x--"),
        ("run-2", "x--"),
        ("run-3", "xx-"),
        ("run-4", "xxx"),
    ] {
        world.end(end);
        world.settle();
        assert_eq!(bound(&world, "short long unknown"), expected);
    }
}

/// A gang of one pod with a priority, created so many seconds after the beginning of the test.
fn ranked(world: &mut World, name: &str, priority: i32, after_s: u64) {
    let gang = gang(name, 1).with(|gang| {
        gang.priority = Some(priority);
        gang.created_ms = START_MS + after_s * 1_000;
    });
    world.apply((gang, pod(&format!("{name}-0"), 8).of(name)));
}

/// Which of the gangs start first as one after the other ends.
fn order(world: &mut World, names: &[&str]) -> Vec<String> {
    let mut order = Vec::new();
    world.end(&self::names("run-", 8));
    while order.len() < names.len() {
        world.settle();
        let started = |name: &&&str| world.is_placed(&format!("{name}-0"));
        let next = names
            .iter()
            .filter(|name| !order.contains(&String::from(**name)));
        let next = next.clone().find(|name| started(name)).expect("one starts");
        order.push(String::from(*next));
        world.end(&format!("{next}-0"));
    }
    order
}

#[test]
fn each_minute_of_waiting_counts_as_a_priority() {
    let aging = |aging_ms| Settings {
        aging_ms,
        ..without_evictions()
    };
    let names = ["a", "b", "c"];
    let wait = |world: &mut World| {
        ranked(world, "a", 0, 0);
        ranked(world, "b", 3, 120);
        ranked(world, "c", 3, 240);
        world.settle();
    };
    let mut world = full(aging(None));
    wait(&mut world);
    assert_eq!(order(&mut world, &names), ["b", "c", "a"]);
    let mut world = full(aging(Some(60_000)));
    wait(&mut world);
    assert_eq!(order(&mut world, &names), ["b", "a", "c"]);
    let mut world = full(aging(None));
    wait(&mut world);
    world.configure(aging(Some(1_000_000)));
    world.settle();
    assert_eq!(order(&mut world, &names), ["b", "c", "a"]);
    let mut world = full(aging(Some(1_000_000)));
    wait(&mut world);
    world.configure(aging(Some(30_000)));
    world.settle();
    assert_eq!(order(&mut world, &names), ["a", "b", "c"]);
}
