//! Sums of amounts that no machine has: they neither overflow nor forget.

use super::world::{World, gang, node, pod, queue};
use crate::facts::{AMOUNT_MAX, Uid};
use alloc::{format, vec::Vec};

/// More of the largest amounts than 64 bits hold.
const MANY: usize = 600;

/// Pods that use more of a node than can be counted come and go.
fn check(ours: bool) {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("q").limit(8));
    let names: Vec<_> = (0..MANY).map(|number| format!("p{number}")).collect();
    for name in &names {
        let pod = pod(name, AMOUNT_MAX).on("n1").queue("q");
        world.apply(if ours { pod } else { pod.foreign() });
    }
    world.apply(pod("waits", 8).queue("q"));
    world.settle();
    assert_eq!(world.node_of("waits"), None);
    for name in &names[1..] {
        world.delete(name);
    }
    world.settle();
    assert_eq!(world.node_of("waits"), None);
    world.delete(&names[0]);
    world.settle();
    assert_eq!(world.node_of("waits").as_deref(), Some("n1"));
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
    world.apply(node("n1", 8));
    world.apply(queue("q").limit(8));
    world.apply(gang("g", 600).queue("q"));
    let names: Vec<_> = (0..MANY).map(|number| format!("p{number}")).collect();
    for name in &names {
        world.apply(pod(name, AMOUNT_MAX).of("g"));
    }
    world.settle();
    assert!(world.reason("default/g").is_some());
    for name in &names {
        world.delete(name);
    }
    world.apply(pod("a", 8).queue("q"));
    world.settle();
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
}

#[test]
fn nodes_of_the_largest_amounts_are_used_and_leave_nothing_behind() {
    let mut world = World::new();
    world.apply(queue("q"));
    for number in 0..MANY {
        let mut node = node(&format!("n{number}"), AMOUNT_MAX);
        node.uid = Uid(100 + number as u128);
        world.apply(node);
    }
    world.apply(pod("a", AMOUNT_MAX).queue("q"));
    world.settle();
    assert!(world.node_of("a").is_some());
}
