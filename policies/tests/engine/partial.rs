//! Gangs of which only a part is bound.

use crate::takings::{one_a_second, prio};
use gpu_batch_policies::command::EvictionCause;
use gpu_batch_policies::facts::PodGroupFacts;
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, To, World, gang, leaf, node, pod, queue, quota, refused};

/// A gang of two, of which `a` has a node; seen so by an engine that begins.
fn half_bound(group: Sketch<PodGroupFacts>) -> World {
    let mut world = World::new();
    world.apply((node("n1", 4), group, pod("a", 4).of("g").on("n1")));
    world
}

/// The engine must evict the members that are bound within two seconds, and say why.
fn check_unwound(mut world: World, members: usize) {
    world.settle();
    world.run(1_900);
    assert_eq!(world.evictions, members);
    assert_eq!(world.cause, Some(EvictionCause::Unwind));
}

#[test]
fn a_half_bound_gang_is_completed_before_any_other() {
    let mut world = half_bound(gang("g", 2));
    world.apply((node("n2", 4), queue("other"), pod("b", 4).of("g")));
    // The rival's queue holds nothing, so fairness would serve it first.
    world.then(pod("rival", 4).queue("other"));
    assert_eq!(world.places("b"), "n2");
    assert_eq!(world.places("rival"), "-");
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
    let mut world = half_bound(gang("g", 2).grace(-1));
    world.apply(pod("b", 4).of("g"));
    check_unwound(world, 1);
}

#[test]
fn a_half_bound_gang_behind_a_gate_is_unwound() {
    let mut world = half_bound(gang("g", 2));
    world.apply((node("n2", 4), pod("b", 4).of("g").gate("example.com/hold")));
    check_unwound(world, 1);
}

#[test]
fn a_gang_over_its_limit_is_unwound() {
    let mut world = half_bound(gang("g", 2).queue("team"));
    world.apply((queue("team").limit(6), node("n2", 4), pod("b", 4).of("g")));
    check_unwound(world, 1);
}

#[test]
fn a_closed_queue_does_not_keep_a_gang_from_being_completed() {
    let mut world = half_bound(gang("g", 2).queue("team"));
    world.then((queue("team").closed(), node("n2", 4), pod("b", 4).of("g")));
    assert!(world.is_placed("b"));
}

#[test]
fn a_gang_that_lost_a_member_before_a_restart_keeps_its_grace_period() {
    let mut world = half_bound(gang("g", 2));
    world.then(pod("b", 4).of("g").late());
    assert_eq!(world.reason("g"), Some(Reason::MembersLost));
    world.run(59_000);
    assert_eq!(world.evictions, 0);
    world.run(2_000);
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
        world.apply((node("n1", 4), pod("a", 4).of("g").on("n1")));
        let waiting = pod("b", 4).of("g");
        world.then(if late { waiting.late() } else { waiting });
        world.then(gang("g", 2));
        world.run(grace_ms - 1_000);
        assert_eq!(world.evictions, 0, "late: {late}");
        world.run(2_000);
        assert_eq!(world.evictions, 1, "late: {late}");
    }
}

#[test]
fn a_member_that_is_gone_before_it_was_bound_unwinds_the_gang() {
    let mut world = World::new();
    world.answers(To::BindOf("b"), refused());
    world.then((node("n1", 8), gang("g", 2), pod("a b", 4).of("g")));
    assert!(world.is_placed("a"));
    world.delete("b");
    check_unwound(world, 1);
}

#[test]
fn a_gang_whose_minimum_was_raised_stays() {
    let mut world = World::of((node("n1", 8), gang("g", 1), pod("a", 8).of("g")));
    world.then((gang("g", 2), pod("b", 8).of("g")));
    world.run(120_000);
    assert_eq!(world.evictions, 0);
}

/// A replacement cannot start without its queue, so it is not the gang's fault that it stays below
/// its minimum.
#[test]
fn what_runs_in_a_queue_that_is_gone_is_not_evicted_as_stale() {
    let mut world = World::of((
        node("n1", 8),
        queue("team"),
        gang("g", 2).queue("team"),
        pod("a b", 4).of("g"),
    ));
    world.lose_queue("team");
    world.delete("b");
    world.apply(pod("c", 4).of("g"));
    world.run(120_000);
    assert_eq!(world.reason("g"), Some(Reason::QueueNotFound));
    assert_eq!(world.evictions, 0);
    world.apply((node("n1", 4), queue("team")));
    world.run(59_000);
    assert_eq!(world.evictions, 0);
    world.run(2_000);
    assert_eq!(world.evictions, 1);
    let told = "PodGroup g: Stale: 1 bound member is evicted: the gang lost members and stayed below its minimum for its grace period";
    assert_eq!(world.told_of("PodGroup g: Stale"), [told]);
}

#[test]
fn a_gang_whose_binding_is_refused_is_unwound_and_tried_ever_more_rarely() {
    let mut world = World::new();
    world.answers(To::BindOf("b"), refused());
    world.then((node("n1", 8), gang("g", 2), pod("a b", 4).of("g")));
    let mut unwound_in_first_two_seconds = 0;
    for tenth in 0..3_000 {
        world.run(100);
        if world.find("a").is_none() {
            world.then(pod("a", 4).of("g").late());
        }
        if tenth == 19 {
            unwound_in_first_two_seconds = world.evictions;
        }
    }
    assert_eq!(unwound_in_first_two_seconds, 1);
    assert_eq!(world.reason("g"), Some(Reason::BindingFailed));
    // Tries after 0, 1, 3, 7, 15, 31, 63, 127, 191 and 255 seconds, of up to two binds each.
    assert!((10..=20).contains(&world.binds), "{} binds", world.binds);
}

/// The gang `v` can do without its sub-group `aa`, whose two members are to leave for `p`. When the
/// first one was asked to leave, `p` is deleted: the second member alone is of no use.
#[test]
fn a_sub_group_of_which_a_plan_took_a_part_is_not_left_so() {
    let mut world = one_a_second();
    world.then((
        node("n1 n2 n3", 8),
        quota("a", 24),
        gang("v", 1)
            .queue("a")
            .sub_groups([leaf("aa", "", 2), leaf("ab", "", 1)])
            .at_least(1),
        pod("v-0", 8).of_leaf("v", "aa").on("n1"),
        pod("v-1", 8).of_leaf("v", "aa").on("n2"),
        pod("v-2", 8).of_leaf("v", "ab").on("n3"),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    world.run(500);
    assert_eq!(world.evicted, ["v-0"]);
    assert_eq!(world.cause, Some(EvictionCause::Preempt));
    world.delete("p-0 p-1");
    world.delete("v-0");
    world.run(3_000);
    assert_eq!(world.evicted, ["v-0", "v-1"]);
    assert_eq!(world.cause, Some(EvictionCause::Unwind));
    assert_eq!(world.places("v-2"), "n3");
}

/// A member of the sub-group `aa` ends well and is cleaned away, which takes a while.
#[test]
fn a_member_that_has_succeeded_and_is_cleaned_away_cuts_no_sub_group_off() {
    let mut world = World::new();
    world.then((
        node("n1", 8),
        gang("v", 1)
            .sub_groups([leaf("aa", "", 2), leaf("ab", "", 1)])
            .at_least(1),
        pod("v-0 v-1", 1).of_leaf("v", "aa").on("n1"),
        pod("v-2", 1).of_leaf("v", "ab").on("n1"),
    ));
    world.end("v-0");
    world.settle();
    let gone_ms = world.now_ms + 1_000;
    world.change("v-0", |pod| pod.deletion_ms = Some(gone_ms));
    world.settle();
    world.delete("v-0");
    world.run(5_000);
    assert_eq!(world.evictions, 0);
}
