//! What waiting gangs ask for in their queues, and whose shares that moves.

use super::world::{World, gang, leaf, node, pod, queue};
use crate::gpu::PRODUCT_LABEL;
use crate::reason::Reason;
use alloc::format;

/// The GPUs in the fair share of a queue.
fn share(world: &mut World, queue: &str) -> u64 {
    let reports = world.engine().queue_reports();
    let report = reports.iter().find(|report| &*report.name == queue);
    let shares = &report.expect("the queue").status.fair_share;
    let gpus = shares.iter().find(|(key, _)| &**key == "nvidia.com/gpu");
    gpus.map_or(0, |(_, amount)| *amount)
}

/// 32 GPUs of the model `A`, and a queue `busy` that wants all of them.
fn busy_world() -> World {
    let mut world = World::new();
    for name in ["n0", "n1", "n2", "n3"] {
        world.apply(node(name, 8).label(PRODUCT_LABEL, "A"));
        world.apply(pod(&format!("busy-{name}"), 8).queue("busy"));
    }
    for name in ["busy", "team"] {
        world.apply(queue(name));
    }
    world
}

#[test]
fn a_gang_asks_once_its_last_member_has_come() {
    let mut world = busy_world();
    world.apply(gang("g", 3).queue("team"));
    for name in ["g0", "g1"] {
        world.apply(pod(name, 8).of("g"));
    }
    world.settle();
    assert_eq!(world.reason("default/g"), Some(Reason::WaitingForMembers));
    assert_eq!(world.requested("team"), 0);
    assert_eq!(share(&mut world, "busy"), 32);
    world.apply(pod("g2", 8).of("g"));
    world.settle();
    assert_eq!(world.requested("team"), 24);
    assert_eq!(share(&mut world, "busy"), 16);
    world.delete("g0");
    world.settle();
    assert_eq!(world.requested("team"), 0);
    assert_eq!(share(&mut world, "busy"), 32);
}

#[test]
fn what_is_held_counts_while_a_member_is_missing() {
    let mut world = World::new();
    world.apply(node("n0", 8));
    world.apply(queue("team"));
    world.apply(gang("g", 2).queue("team"));
    for name in ["g0", "g1"] {
        world.apply(pod(name, 2).of("g"));
    }
    world.settle();
    world.delete("g0");
    world.settle();
    assert_eq!(world.requested("team"), 2);
    world.apply(pod("g2", 2).of("g"));
    world.settle();
    assert!(world.node_of("g2").is_some());
    assert_eq!(world.requested("team"), 4);
}

#[test]
fn a_gang_with_a_gate_asks_for_nothing() {
    let mut world = busy_world();
    world.apply(gang("g", 2).queue("team"));
    world.apply(pod("g0", 8).of("g"));
    world.apply(pod("g1", 8).of("g").gate("quota"));
    world.settle();
    assert_eq!(world.requested("team"), 0);
    world.apply(pod("g1", 8).of("g"));
    world.settle();
    assert_eq!(world.requested("team"), 16);
}

#[test]
fn nobody_asks_for_a_model_that_no_node_has() {
    for entry in [false, true] {
        let mut world = busy_world();
        if entry {
            let team = queue("team");
            world.apply(team.entry("nvidia.com/gpu", Some("B"), (8, None), 1));
        }
        world.apply(pod("p", 8).queue("team").model("B"));
        world.settle();
        assert_eq!(world.requested("team"), 0, "an entry names it: {entry}");
        assert_eq!(share(&mut world, "busy"), 32, "an entry names it: {entry}");
        // It is not free there, but it would fit one day.
        world.apply(node("n4", 8).label(PRODUCT_LABEL, "B"));
        world.apply(pod("foreign", 8).foreign().on("n4"));
        world.settle();
        assert_eq!(world.requested("team"), 8, "an entry names it: {entry}");
        world.delete("foreign");
        world.lose_node("n4");
        world.settle();
        assert_eq!(world.requested("team"), 0, "an entry names it: {entry}");
    }
}

#[test]
fn one_pod_for_an_unknown_model_takes_no_share_from_the_others_of_its_queue() {
    let mut world = busy_world();
    let team = queue("team");
    world.apply(team.entry("nvidia.com/gpu", Some("B"), (0, None), 1));
    world.apply(pod("never", 8).queue("team").model("B"));
    world.apply(pod("p0", 8).queue("team"));
    world.apply(pod("p1", 8).queue("team"));
    world.settle();
    assert_eq!(share(&mut world, "team"), 16);
}

#[test]
fn nobody_asks_for_a_resource_that_no_node_has() {
    let mut world = busy_world();
    let fpga = "example.com/fpga";
    world.apply(pod("p", 8).queue("team").with_one(fpga));
    world.settle();
    assert_eq!(world.requested("team"), 0);
    // The resource is on no node either while its only node says that it has none of it.
    for (offered, asked) in [(0, 0), (1, 8), (0, 0)] {
        let mut with_fpga = node("n4", 0);
        with_fpga.allocatable.push((fpga.into(), offered));
        with_fpga.allocatable.sort();
        world.apply(with_fpga);
        world.settle();
        assert_eq!(world.requested("team"), asked, "{offered} offered");
    }
}

#[test]
fn a_member_that_can_never_start_keeps_the_others_from_asking_only_if_it_is_needed() {
    for (minimum, asked) in [(2, 0), (1, 16)] {
        let mut world = busy_world();
        world.apply(gang("g", minimum).queue("team"));
        world.apply(pod("g0", 16).of("g"));
        world.apply(pod("g1", 8).of("g").model("B"));
        world.settle();
        assert_eq!(world.requested("team"), asked, "a minimum of {minimum}");
    }
}

#[test]
fn a_sub_group_asks_once_it_can_be_complete() {
    let mut world = busy_world();
    let roles = [leaf("a", "", 1), leaf("b", "", 2)];
    world.apply(gang("g", 1).queue("team").sub_groups(&roles).at_least(1));
    world.apply(pod("a0", 16).of_leaf("g", "a"));
    world.apply(pod("b0", 16).of_leaf("g", "b"));
    world.settle();
    assert_eq!(world.requested("team"), 16);
    world.apply(pod("b1", 16).of_leaf("g", "b"));
    world.settle();
    assert_eq!(world.requested("team"), 48);
}
