//! Sums of amounts that no machine has: they neither overflow nor forget.

use gpu_batch_policies::facts::{AMOUNT_MAX, Uid};
use gpu_batch_testing::{World, gang, names, node, pod, queue};

/// More of the largest amounts than 64 bits hold.
const MANY: usize = 600;

/// Pods that use more of a node than can be counted come and go.
fn check(ours: bool) {
    let mut world = World::new();
    world.apply((node("n1", 8), queue("q").limit(8)));
    let pods = pod(&names("p", MANY), AMOUNT_MAX).on("n1").queue("q");
    world.apply(if ours { pods } else { pods.foreign() });
    world.then(pod("waits", 8).queue("q"));
    assert_eq!(world.places("waits"), "-");
    world.delete(names("p", MANY).trim_start_matches("p0"));
    world.settle();
    assert_eq!(world.places("waits"), "-");
    world.delete("p0");
    world.settle();
    assert_eq!(world.places("waits"), "n1");
}

#[test]
fn foreign_pods_of_the_largest_amounts_leave_nothing_behind() {
    check(false);
}

#[test]
fn own_pods_of_the_largest_amounts_leave_nothing_behind() {
    check(true);
}

#[test]
fn a_gang_of_the_largest_amounts_waits_and_leaves_nothing_behind() {
    let mut world = World::new();
    world.apply((
        node("n1", 8),
        queue("q").limit(8),
        gang("g", 600).queue("q"),
    ));
    world.then(pod(&names("p", MANY), AMOUNT_MAX).of("g"));
    assert!(world.reason("g").is_some());
    world.delete(&names("p", MANY));
    world.then(pod("a", 8).queue("q"));
    assert_eq!(world.places("a"), "n1");
}

#[test]
fn nodes_of_the_largest_amounts_are_used_and_leave_nothing_behind() {
    let mut world = World::new();
    world.apply(queue("q"));
    let mut uids = (100..).map(Uid);
    let nodes = node(&names("n", MANY), AMOUNT_MAX);
    world.apply(nodes.with(|node| node.uid = uids.next().unwrap()));
    world.then(pod("a", AMOUNT_MAX).queue("q"));
    assert!(world.is_placed("a"));
}
