//! Sub-groups that the gang could do without, and of which only a part is bound.

use gpu_batch_policies::command::EvictionCause;
use gpu_batch_policies::facts::PodGroupFacts;
use gpu_batch_policies::status::Phase;
use gpu_batch_testing::{Sketch, To, World, gang, inner, leaf, node, pod, queue, refused};

/// Two of three slices of two are enough.
fn slices() -> Sketch<PodGroupFacts> {
    let slices = leaf("a b c", "", 2);
    gang("g", 1).sub_groups(slices).at_least(2)
}

/// Two slices run; of the third, one of two has a node, as an engine sees it that begins.
fn third_in_part(group: Sketch<PodGroupFacts>) -> World {
    let mut world = World::new();
    world.apply((node("n1", 5), group));
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
    world.then((
        queue("other"),
        node("n2", 1),
        pod("c-1", 1).of_leaf("g", "c"),
        pod("rival", 1).queue("other"),
    ));
    assert_eq!(world.places("c-1"), "n2");
    assert_eq!(world.places("rival"), "-");
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_closed_queue_does_not_keep_it_from_being_completed() {
    let mut world = third_in_part(slices().queue("team"));
    world.then((
        queue("team").closed(),
        node("n2", 1),
        pod("c-1", 1).of_leaf("g", "c"),
    ));
    assert!(world.is_placed("c-1"));
}

#[test]
fn one_without_room_is_unwound_and_the_others_stay() {
    let mut world = third_in_part(slices());
    world.then(pod("c-1", 1).of_leaf("g", "c"));
    world.run(1_900);
    assert_eq!(
        (world.evictions, world.cause),
        (1, Some(EvictionCause::Unwind))
    );
    assert!(world.find("c-0").is_none());
    world.run(120_000);
    assert_eq!(world.evictions, 1);
    assert_eq!(world.phase("g"), Phase::Running);
}

#[test]
fn one_behind_a_gate_is_unwound_too() {
    let mut world = third_in_part(slices());
    world.apply(node("n2", 1));
    let gated = pod("c-1", 1).of_leaf("g", "c").gate("example.com/hold");
    world.then(gated);
    world.run(1_900);
    assert_eq!(world.evictions, 1);
}

#[test]
fn of_slices_inside_each_other_the_outermost_is_unwound() {
    let groups = [leaf("a", "", 2), inner("more", ""), leaf("b c", "more", 2)];
    let mut world = third_in_part(gang("g", 1).sub_groups(groups).at_least(1));
    world.then(pod("c-1", 1).of_leaf("g", "c"));
    world.run(1_900);
    assert_eq!(world.evictions, 3);
    assert!(world.find("a-0").is_some() && world.find("b-0").is_none());
}

#[test]
fn one_that_ran_and_lost_a_member_goes_on() {
    let mut world = third_in_part(slices());
    // A replacement: it came after the others were bound.
    world.then(pod("c-1", 1).of_leaf("g", "c").late());
    world.run(120_000);
    assert_eq!(world.evictions, 0);

    let mut world = third_in_part(slices());
    world.then((node("n2", 1), pod("c-1", 1).of_leaf("g", "c")));
    world.delete("c-1");
    world.settle();
    world.run(120_000);
    assert_eq!(world.evictions, 0);
}

#[test]
fn one_whose_binding_is_refused_is_unwound_and_tried_ever_more_rarely() {
    let mut world = World::new();
    world.answers(To::BindOf("c-1"), refused());
    world.apply((node("n1", 6), slices()));
    for slice in ["a", "b", "c"] {
        for number in 0..2 {
            let name = format!("{slice}-{number}");
            world.apply(pod(&name, 1).of_leaf("g", slice));
        }
    }
    world.settle();
    for _ in 0..3_000 {
        world.run(100);
        if world.find("c-0").is_none() {
            world.then(pod("c-0", 1).of_leaf("g", "c").late());
        }
    }
    assert_eq!(world.phase("g"), Phase::Running);
    assert!(world.is_placed("a-0") && !world.is_placed("c-1"));
    // Four of the first two slices; then tries after 0, 1, 3, 7, ... seconds, of up to two each.
    assert!((14..=28).contains(&world.binds), "{} binds", world.binds);
}
