//! Gangs that move so that others can start.

use crate::needed::with_port;
use crate::takings::one_a_second;
use gpu_batch_policies::command::EvictionCause;
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{World, gang, node, pod, quota, topology};

#[test]
fn a_place_in_the_room_of_a_victim_that_is_still_to_leave_ends_no_plan() {
    let mut world = one_a_second();
    world.then((
        node("n1 n2", 8),
        quota("a", 16),
        pod("k-0", 3).queue("a").on("n1"),
        pod("k-1", 7).queue("a").on("n2"),
        gang("x", 2).queue("a"),
        pod("x-0 x-1", 1).owned_by("x").of("x").on("n1"),
        pod("p", 4).queue("a"),
    ));
    world.run(300);
    assert_eq!(world.evicted, ["x-0"]);
    // One member of `x` is to come back to n1: until the other has left, there is room for 4 GPUs,
    // but for no more.
    world.delete("x-0");
    world.run(300);
    assert_eq!(world.reason_of_pod("p"), Some(Reason::WaitingForEviction));
    world.run(1_000);
    assert_eq!(world.evicted, ["x-0", "x-1"]);
    world.delete("x-1");
    world.run(300);
    assert_eq!(world.places("p"), "n1");
}

/// The rack `r1` has room for one member beside those that move, `r2` for both members. The pod
/// that replaces the first member comes while the second one is still in `r1`.
#[test]
fn a_gang_that_must_stay_in_one_rack_moves_to_another_as_a_whole() {
    let mut world = one_a_second();
    world.grace_ms = None;
    world.then((
        (topology("default", "rack"), quota("a", 8)),
        node("n1 n2 n3", 2).label("rack", "r1"),
        node("n4 n5", 1).label("rack", "r2"),
        gang("m p", 2).queue("a").required("rack"),
        pod("m-0 m-1", 1).owned_by("m").of("m").on("n1"),
        pod("k", 1).queue("a").on("n3"),
        pod("p-0 p-1", 2).of("p"),
    ));
    world.run(300);
    assert_eq!(world.evicted, ["m-0"]);
    assert_eq!(world.cause, Some(EvictionCause::Consolidate));
    world.then(pod("m-2", 1).owned_by("m").of("m").late());
    world.run(300);
    assert_eq!(world.places("m-2"), "-");
    let why = "new members wait until all members that make room for another gang have been \
               asked to leave";
    assert_eq!(world.reason_of_pod("m-2"), Some(Reason::MembersLost));
    assert_eq!(world.message("m"), why);
    world.run(1_000);
    assert_eq!(world.evicted, ["m-0", "m-1"]);
    assert_eq!(world.places("p-0 p-1"), "n1 n2");
    world.then(pod("m-3", 1).owned_by("m").of("m").late());
    world.run(1_000);
    assert_eq!(world.places("m-2 m-3"), "n4 n5");
    assert_eq!(world.evictions, 2);
}

/// The victim comes back before `p` is bound, and goes before it: of the node it finds everything
/// but its port.
#[test]
fn the_host_port_of_a_victim_is_held_for_the_gang_that_waits_for_it() {
    let mut world = World::with_grace(30);
    let victim = |name: &str| {
        let pod = with_port(pod(name, 1), 80).queue("a").owned_by("v");
        pod.with(|pod| {
            let owner = pod.owner.as_mut().unwrap();
            (owner.api_version, owner.kind) = ("apps/v1".into(), "ReplicaSet".into());
            pod.created_ms -= 60_000;
        })
    };
    world.then((
        node("n1", 8),
        node("n2", 2),
        quota("a", 10),
        victim("v").on("n1"),
        pod("w", 2).queue("a").on("n1"),
        with_port(pod("p", 4), 80).queue("a"),
    ));
    world.run(1_000);
    assert_eq!(world.evicted, ["v"]);
    assert_eq!(world.cause, Some(EvictionCause::Consolidate));
    world.apply(victim("v-2"));
    world.delete("v");
    world.run(1_000);
    assert_eq!(world.places("p v-2"), "n1 n2");
    assert_eq!(world.evictions, 1);
}
