//! What waiting gangs ask for in their queues, and whose shares that moves.

use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{GPU, World, gang, leaf, names, node, pod, queue};

/// The GPUs in the fair share of a queue.
fn share(world: &mut World, queue: &str) -> u64 {
    world.share_of(queue, GPU).1
}

/// 32 GPUs of the model `A`, and a queue `busy` that wants all of them.
fn busy_world() -> World {
    let mut world = World::new();
    world.apply((
        node("n0 n1 n2 n3", 8).model("A"),
        pod(&names("busy-", 4), 8).queue("busy"),
        queue("busy team"),
    ));
    world
}

#[test]
fn a_gang_asks_once_its_last_member_has_come() {
    let mut world = busy_world();
    world.then((gang("g", 3).queue("team"), pod("g0 g1", 8).of("g")));
    assert_eq!(world.reason("g"), Some(Reason::WaitingForMembers));
    assert_eq!(world.requested("team"), 0);
    assert_eq!(share(&mut world, "busy"), 32);
    world.then(pod("g2", 8).of("g"));
    assert_eq!(world.requested("team"), 24);
    assert_eq!(share(&mut world, "busy"), 16);
    world.delete("g0");
    world.settle();
    assert_eq!(world.requested("team"), 0);
    assert_eq!(share(&mut world, "busy"), 32);
}

#[test]
fn what_is_held_counts_while_a_member_is_missing() {
    let mut world = World::of((
        node("n0", 8),
        queue("team"),
        gang("g", 2).queue("team"),
        pod("g0 g1", 2).of("g"),
    ));
    world.delete("g0");
    world.settle();
    assert_eq!(world.requested("team"), 2);
    world.then(pod("g2", 2).of("g"));
    assert!(world.is_placed("g2"));
    assert_eq!(world.requested("team"), 4);
}

#[test]
fn a_gang_with_a_gate_asks_for_nothing() {
    let mut world = busy_world();
    world.then((
        gang("g", 2).queue("team"),
        pod("g0", 8).of("g"),
        pod("g1", 8).of("g").gate("quota"),
    ));
    assert_eq!(world.requested("team"), 0);
    world.then(pod("g1", 8).of("g"));
    assert_eq!(world.requested("team"), 16);
}

#[test]
fn nobody_asks_for_a_model_that_no_node_has() {
    for entry in [false, true] {
        let mut world = busy_world();
        if entry {
            world.apply(queue("team").entry(GPU, Some("B"), (8, None), 1));
        }
        world.then(pod("p", 8).queue("team").model("B"));
        assert_eq!(world.requested("team"), 0, "an entry names it: {entry}");
        assert_eq!(share(&mut world, "busy"), 32, "an entry names it: {entry}");
        // It is not free there, but it would fit one day.
        world.then((
            node("n4", 8).model("B"),
            pod("foreign", 8).foreign().on("n4"),
        ));
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
    world.then((
        queue("team").entry(GPU, Some("B"), (0, None), 1),
        pod("never", 8).queue("team").model("B"),
        pod("p0 p1", 8).queue("team"),
    ));
    assert_eq!(share(&mut world, "team"), 16);
}

#[test]
fn nobody_asks_for_a_resource_that_no_node_has() {
    let mut world = busy_world();
    let fpga = "example.com/fpga";
    world.then(pod("p", 8).queue("team").with_one(fpga));
    assert_eq!(world.requested("team"), 0);
    // The resource is on no node either while its only node says that it has none of it.
    for (offered, asked) in [(0, 0), (1, 8), (0, 0)] {
        world.then(node("n4", 0).has(fpga, offered));
        assert_eq!(world.requested("team"), asked, "{offered} offered");
    }
}

#[test]
fn a_member_that_can_never_start_keeps_the_others_from_asking_only_if_it_is_needed() {
    for (minimum, asked) in [(2, 0), (1, 16)] {
        let mut world = busy_world();
        world.then((
            gang("g", minimum).queue("team"),
            pod("g0", 16).of("g"),
            pod("g1", 8).of("g").model("B"),
        ));
        assert_eq!(world.requested("team"), asked, "a minimum of {minimum}");
    }
}

#[test]
fn a_sub_group_asks_once_it_can_be_complete() {
    let mut world = busy_world();
    let roles = [leaf("a", "", 1), leaf("b", "", 2)];
    world.then((
        gang("g", 1).queue("team").sub_groups(roles).at_least(1),
        pod("a0", 16).of_leaf("g", "a"),
        pod("b0", 16).of_leaf("g", "b"),
    ));
    assert_eq!(world.requested("team"), 16);
    world.then(pod("b1", 16).of_leaf("g", "b"));
    assert_eq!(world.requested("team"), 48);
}
