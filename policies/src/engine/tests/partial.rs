//! Gangs of which only a part is bound.

use super::world::{World, gang, node, pod, queue};
use crate::command::EvictionCause;
use crate::facts::PodGroupFacts;
use crate::reason::Reason;
use alloc::vec::Vec;

/// A gang of two, of which `a` has a node; seen so by an engine that begins.
fn half_bound(group: PodGroupFacts) -> World {
    let mut world = World::new();
    world.apply(node("n1", 4));
    world.apply(group);
    world.apply(pod("a", 4).of("g").on("n1"));
    world
}

/// Lets so many milliseconds pass, in steps of 100.
pub(super) fn pass(world: &mut World, milliseconds: u64) {
    for _ in 0..milliseconds / 100 {
        world.pass(100);
        world.settle();
    }
}

/// The engine must evict the members that are bound within two seconds, and say why.
fn check_unwound(mut world: World, members: usize) {
    world.settle();
    pass(&mut world, 1_900);
    assert_eq!(world.evictions, members);
    assert_eq!(world.cause, Some(EvictionCause::Unwind));
}

#[test]
fn a_half_bound_gang_is_completed_before_any_other() {
    let mut world = half_bound(gang("g", 2));
    world.apply(node("n2", 4));
    world.apply(queue("other"));
    world.apply(pod("b", 4).of("g"));
    // The rival's queue holds nothing, so fairness would serve it first.
    world.apply(pod("rival", 4).queue("other"));
    world.settle();
    assert_eq!(world.node_of("b").as_deref(), Some("n2"));
    assert_eq!(world.node_of("rival"), None);
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_half_bound_gang_without_room_is_unwound() {
    let mut world = half_bound(gang("g", 2));
    world.apply(pod("b", 4).of("g"));
    check_unwound(world, 1);
}

#[test]
fn a_gang_that_may_stay_stale_for_ever_is_unwound_too() {
    let mut group = gang("g", 2);
    group.staleness_grace_ms = Some(-1);
    let mut world = half_bound(group);
    world.apply(pod("b", 4).of("g"));
    check_unwound(world, 1);
}

#[test]
fn a_half_bound_gang_behind_a_gate_is_unwound() {
    let mut world = half_bound(gang("g", 2));
    world.apply(node("n2", 4));
    world.apply(pod("b", 4).of("g").gate("example.com/hold"));
    check_unwound(world, 1);
}

#[test]
fn a_gang_over_its_limit_is_unwound() {
    let mut group = gang("g", 2);
    group.queue = Some("team".into());
    let mut world = half_bound(group);
    world.apply(queue("team").limit(6));
    world.apply(node("n2", 4));
    world.apply(pod("b", 4).of("g"));
    check_unwound(world, 1);
}

#[test]
fn a_closed_queue_does_not_keep_a_gang_from_being_completed() {
    let mut group = gang("g", 2);
    group.queue = Some("team".into());
    let mut world = half_bound(group);
    let mut team = queue("team");
    team.closed = true;
    world.apply(team);
    world.apply(node("n2", 4));
    world.apply(pod("b", 4).of("g"));
    world.settle();
    assert!(world.node_of("b").is_some());
}

#[test]
fn a_gang_that_lost_a_member_before_a_restart_keeps_its_grace_period() {
    let mut world = half_bound(gang("g", 2));
    world.apply(pod("b", 4).of("g").late());
    world.settle();
    assert_eq!(world.reason("default/g"), Some(Reason::MembersLost));
    pass(&mut world, 59_000);
    assert_eq!(world.evictions, 0);
    pass(&mut world, 2_000);
    assert_eq!(
        (world.evictions, world.cause),
        (1, Some(EvictionCause::Stale))
    );
}

/// A start may see pods before their group: of a list that is a little old.
#[test]
fn a_gang_whose_group_is_seen_after_its_pods_is_judged_by_its_minimum() {
    for (late, grace_ms) in [(false, 1_000), (true, 60_000)] {
        let mut world = World::new();
        world.apply(node("n1", 4));
        world.apply(pod("a", 4).of("g").on("n1"));
        let waiting = pod("b", 4).of("g");
        world.apply(if late { waiting.late() } else { waiting });
        world.settle();
        world.apply(gang("g", 2));
        world.settle();
        pass(&mut world, grace_ms - 1_000);
        assert_eq!(world.evictions, 0, "late: {late}");
        pass(&mut world, 2_000);
        assert_eq!(world.evictions, 1, "late: {late}");
    }
}

#[test]
fn a_member_that_is_gone_before_it_was_bound_unwinds_the_gang() {
    let mut world = World::new();
    world.refused = Vec::from(["b"]);
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.settle();
    assert!(world.node_of("a").is_some());
    world.delete("b");
    check_unwound(world, 1);
}

#[test]
fn a_gang_whose_minimum_was_raised_stays() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 1));
    world.apply(pod("a", 8).of("g"));
    world.settle();
    world.apply(gang("g", 2));
    world.apply(pod("b", 8).of("g"));
    world.settle();
    pass(&mut world, 120_000);
    assert_eq!(world.evictions, 0);
}

/// A replacement cannot start without its queue, so it is not the gang's fault that it stays below
/// its minimum.
#[test]
fn what_runs_in_a_queue_that_is_gone_is_not_evicted_as_stale() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("team"));
    let mut group = gang("g", 2);
    group.queue = Some("team".into());
    world.apply(group);
    for name in ["a", "b"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.settle();
    world.lose_queue("team");
    world.delete("b");
    world.apply(pod("c", 4).of("g"));
    pass(&mut world, 120_000);
    assert_eq!(world.reason("default/g"), Some(Reason::QueueNotFound));
    assert_eq!(world.evictions, 0);
    world.apply(node("n1", 4));
    world.apply(queue("team"));
    pass(&mut world, 59_000);
    assert_eq!(world.evictions, 0);
    pass(&mut world, 2_000);
    assert_eq!(world.evictions, 1);
    let told = "PodGroup g: Stale: 1 bound member is evicted: the gang lost members and stayed below its minimum for its grace period";
    assert!(
        world.told.iter().any(|line| line == told),
        "{:?}",
        world.told
    );
}

#[test]
fn a_gang_whose_binding_is_refused_is_unwound_and_tried_ever_more_rarely() {
    let mut world = World::new();
    world.refused = Vec::from(["b"]);
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.settle();
    let mut unwound_in_first_two_seconds = 0;
    for tenth in 0..3_000 {
        pass(&mut world, 100);
        if world.find("a").is_none() {
            world.apply(pod("a", 4).of("g").late());
            world.settle();
        }
        if tenth == 19 {
            unwound_in_first_two_seconds = world.evictions;
        }
    }
    assert_eq!(unwound_in_first_two_seconds, 1);
    assert_eq!(world.reason("default/g"), Some(Reason::BindingFailed));
    // Tries after 0, 1, 3, 7, 15, 31, 63, 127, 191 and 255 seconds, of up to two binds each.
    assert!((10..=20).contains(&world.binds), "{} binds", world.binds);
}
