//! Sub-groups that the gang could do without, and of which only a part is bound.

use super::partial::pass;
use super::world::{World, gang, inner, leaf, node, pod, queue};
use crate::command::EvictionCause;
use crate::facts::PodGroupFacts;
use crate::status::Phase;
use alloc::format;

/// Two of three slices of two are enough.
fn slices() -> PodGroupFacts {
    let slices = ["a", "b", "c"].map(|name| leaf(name, "", 2));
    gang("g", 1).sub_groups(&slices).at_least(2)
}

/// Two slices run; of the third, one of two has a node, as an engine sees it that begins.
fn third_in_part(group: PodGroupFacts) -> World {
    let mut world = World::new();
    world.apply(node("n1", 5));
    world.apply(group);
    for slice in ["a", "b"] {
        for number in 0..2 {
            let name = format!("{slice}-{number}");
            world.apply(pod(&name, 1).of_leaf("g", slice).on("n1"));
        }
    }
    world.apply(pod("c-0", 1).of_leaf("g", "c").on("n1"));
    world
}

#[test]
fn a_slice_that_was_cut_off_is_completed_before_any_other_gang() {
    let mut world = third_in_part(slices());
    world.apply(queue("other"));
    world.apply(node("n2", 1));
    world.apply(pod("c-1", 1).of_leaf("g", "c"));
    world.apply(pod("rival", 1).queue("other"));
    world.settle();
    assert_eq!(world.node_of("c-1").as_deref(), Some("n2"));
    assert_eq!(world.node_of("rival"), None);
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_closed_queue_does_not_keep_it_from_being_completed() {
    let mut world = third_in_part(slices().queue("team"));
    let mut team = queue("team");
    team.closed = true;
    world.apply(team);
    world.apply(node("n2", 1));
    world.apply(pod("c-1", 1).of_leaf("g", "c"));
    world.settle();
    assert!(world.node_of("c-1").is_some());
}

#[test]
fn one_without_room_is_unwound_and_the_others_stay() {
    let mut world = third_in_part(slices());
    world.apply(pod("c-1", 1).of_leaf("g", "c"));
    world.settle();
    pass(&mut world, 1_900);
    assert_eq!(
        (world.evictions, world.cause),
        (1, Some(EvictionCause::Unwind))
    );
    assert!(world.find("c-0").is_none());
    pass(&mut world, 120_000);
    assert_eq!(world.evictions, 1);
    assert_eq!(world.gang("default/g").status.phase, Phase::Running);
}

#[test]
fn one_behind_a_gate_is_unwound_too() {
    let mut world = third_in_part(slices());
    world.apply(node("n2", 1));
    let gated = pod("c-1", 1).of_leaf("g", "c").gate("example.com/hold");
    world.apply(gated);
    world.settle();
    pass(&mut world, 1_900);
    assert_eq!(world.evictions, 1);
}

#[test]
fn of_slices_inside_each_other_the_outermost_is_unwound() {
    let inside = [
        inner("more", ""),
        leaf("b", "more", 2),
        leaf("c", "more", 2),
    ];
    let groups = [&[leaf("a", "", 2)], &inside[..]].concat();
    let mut world = third_in_part(gang("g", 1).sub_groups(&groups).at_least(1));
    world.apply(pod("c-1", 1).of_leaf("g", "c"));
    world.settle();
    pass(&mut world, 1_900);
    assert_eq!(world.evictions, 3);
    assert!(world.find("a-0").is_some() && world.find("b-0").is_none());
}

#[test]
fn one_that_ran_and_lost_a_member_goes_on() {
    let mut world = third_in_part(slices());
    // A replacement: it came after the others were bound.
    world.apply(pod("c-1", 1).of_leaf("g", "c").late());
    world.settle();
    pass(&mut world, 120_000);
    assert_eq!(world.evictions, 0);

    let mut world = third_in_part(slices());
    world.apply(node("n2", 1));
    world.apply(pod("c-1", 1).of_leaf("g", "c"));
    world.settle();
    world.delete("c-1");
    world.settle();
    pass(&mut world, 120_000);
    assert_eq!(world.evictions, 0);
}

#[test]
fn one_whose_binding_is_refused_is_unwound_and_tried_ever_more_rarely() {
    let mut world = World::new();
    world.refused = ["c-1"].into();
    world.apply(node("n1", 6));
    world.apply(slices());
    for slice in ["a", "b", "c"] {
        for number in 0..2 {
            let name = format!("{slice}-{number}");
            world.apply(pod(&name, 1).of_leaf("g", slice));
        }
    }
    world.settle();
    for _ in 0..3_000 {
        pass(&mut world, 100);
        if world.find("c-0").is_none() {
            world.apply(pod("c-0", 1).of_leaf("g", "c").late());
            world.settle();
        }
    }
    assert_eq!(world.gang("default/g").status.phase, Phase::Running);
    assert!(world.node_of("a-0").is_some() && world.node_of("c-1").is_none());
    // Four of the first two slices; then tries after 0, 1, 3, 7, ... seconds, of up to two each.
    assert!((14..=28).contains(&world.binds), "{} binds", world.binds);
}
