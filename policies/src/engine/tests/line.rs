//! The line of a leaf queue: who is tried, who waits behind whom, and who is woken.

use super::world::{PodSketch, START_MS, World, gang, node, pod, queue};
use crate::facts::PodGroupFacts;
use crate::reason::Reason;
use crate::settings::{LeafOrder, Queueing, Settings};
use alloc::{format, string::String, vec::Vec};

fn bound(world: &World, names: &[&str]) -> Vec<bool> {
    let bound = |name: &&str| world.node_of(name).is_some();
    names.iter().map(bound).collect()
}

/// A full node of 8 GPUs, one GPU a pod: `run-0` to `run-7`.
fn full(settings: Settings) -> World {
    let mut world = World::with(settings);
    world.apply(node("n1", 8));
    for name in RUNNING {
        world.apply(pod(name, 1).on("n1"));
    }
    world.settle();
    world
}

const RUNNING: [&str; 8] = [
    "run-0", "run-1", "run-2", "run-3", "run-4", "run-5", "run-6", "run-7",
];

/// The shortest first, each behind those who find no room.
fn shortest() -> Settings {
    Settings {
        leaf_order: LeafOrder::ShortestFirst,
        queueing: Queueing::Strict,
        ..Settings::default()
    }
}

fn strict() -> Settings {
    Settings {
        queueing: Queueing::Strict,
        ..Settings::default()
    }
}

fn lasting(name: &str, gpus: u64, runtime_ms: u64) -> PodSketch {
    pod(name, gpus).runtime(runtime_ms)
}

#[test]
fn those_that_lack_the_same_are_woken_in_line() {
    let mut world = full(Settings::default());
    let names = ["a", "b", "c", "d"];
    for name in names {
        world.apply(pod(name, 1));
    }
    world.settle();
    assert_eq!(bound(&world, &names), [false; 4]);
    for name in &RUNNING[..3] {
        world.end(name);
    }
    world.settle();
    assert_eq!(bound(&world, &names), [true, true, true, false]);
    world.end("a");
    world.settle();
    assert_eq!(bound(&world, &["d"]), [true]);
}

#[test]
fn who_is_woken_in_line_keeps_its_place_among_others() {
    let mut world = full(Settings::default());
    world.apply(pod("a", 1));
    world.apply(pod("b", 2));
    world.apply(pod("c", 1));
    world.settle();
    for name in &RUNNING[..3] {
        world.end(name);
    }
    world.settle();
    assert_eq!(bound(&world, &["a", "b", "c"]), [true, true, false]);
}

#[test]
fn who_leaves_the_line_lets_the_next_one_go() {
    // The first in line loses its turn in the very step in which it is woken.
    let mut world = full(Settings::default());
    world.apply(pod("a", 1));
    world.apply(pod("b", 1));
    world.settle();
    world.apply(pod("a", 1).gate("wait"));
    world.end("run-0");
    world.settle();
    assert_eq!(world.reason_of_pod("a"), Some(Reason::SchedulingGated));
    assert_eq!(bound(&world, &["b"]), [true]);

    let mut world = full(Settings::default());
    world.apply(pod("a", 1));
    world.apply(pod("b", 1));
    world.settle();
    world.end("run-0");
    world.delete("a");
    world.settle();
    assert_eq!(bound(&world, &["b"]), [true]);
}

#[test]
fn who_is_kept_by_its_queue_does_not_keep_others() {
    let mut world = full(Settings::default());
    world.apply(queue("team"));
    world.apply(pod("a", 1).queue("team"));
    world.apply(pod("b", 1).queue("team"));
    world.apply(pod("c", 1));
    world.settle();
    world.apply(queue("team").limit(0));
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, &["a", "b", "c"]), [false, false, true]);
    assert_eq!(world.reason_of_pod("b"), Some(Reason::OverLimit));
}

#[test]
fn in_a_strict_line_nobody_passes() {
    let mut world = full(strict());
    world.apply(pod("a", 2));
    world.apply(pod("b", 1));
    world.settle();
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, &["a", "b"]), [false, false]);
    world.end("run-1");
    world.settle();
    assert_eq!(bound(&world, &["a", "b"]), [true, false]);
    world.end("run-2");
    world.settle();
    assert_eq!(bound(&world, &["b"]), [true]);
}

#[test]
fn the_line_goes_on_when_its_first_goes_away() {
    let mut world = full(strict());
    world.apply(pod("a", 8));
    world.apply(pod("b", 1));
    world.settle();
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, &["b"]), [false]);
    world.delete("a");
    world.settle();
    assert_eq!(bound(&world, &["b"]), [true]);
}

#[test]
fn strict_lines_of_two_queues_do_not_wait_for_each_other() {
    let mut world = full(strict());
    world.apply(queue("left"));
    world.apply(queue("right"));
    world.apply(pod("a", 8).queue("left"));
    world.apply(pod("b", 1).queue("left"));
    world.apply(pod("c", 1).queue("right"));
    world.settle();
    world.end("run-0");
    world.settle();
    assert_eq!(bound(&world, &["a", "b", "c"]), [false, false, true]);
}

#[test]
fn the_shortest_goes_before_a_longer_one_that_waits() {
    let mut world = full(shortest());
    world.apply(lasting("long", 2, 9_000));
    world.apply(pod("unknown", 1));
    world.settle();
    world.apply(lasting("short", 2, 1_000));
    world.settle();
    for (end, expected) in [
        ("run-0", [false, false, false]),
        ("run-1", [true, false, false]),
        ("run-2", [true, false, false]),
        ("run-3", [true, true, false]),
        ("run-4", [true, true, true]),
    ] {
        world.end(end);
        world.settle();
        assert_eq!(bound(&world, &["short", "long", "unknown"]), expected);
    }
}

/// A gang of one pod with a priority, created so many seconds after the beginning of the test.
fn ranked(world: &mut World, name: &str, priority: i32, after_s: u64) {
    world.apply(PodGroupFacts {
        priority: Some(priority),
        created_ms: START_MS + after_s * 1_000,
        ..gang(name, 1)
    });
    world.apply(pod(&format!("{name}-0"), 8).of(name));
}

/// Which of the gangs start first as one after the other ends.
fn order(world: &mut World, names: &[&str]) -> Vec<String> {
    let mut order = Vec::new();
    for name in RUNNING {
        world.end(name);
    }
    while order.len() < names.len() {
        world.settle();
        let started = |name: &&&str| world.node_of(&format!("{name}-0")).is_some();
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
        ..Settings::default()
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
