//! Gangs that are left alone because handling them has panicked.

use super::world::{World, gang, node, pod, queue};
use crate::reason::Reason;
use crate::status::Phase;

/// A running gang that loses a member while the engine panics over it.
fn quarantined() -> World {
    let mut world = World::new();
    world.apply(gang("g", 2).queue("team"));
    world.apply(pod("a", 4).of("g"));
    world.settle();
    world.panic_over("default/g", "broken");
    world.apply(node("n1", 8));
    world.apply(queue("team").limit(4));
    world.apply(gang("g", 2).queue("team"));
    world.apply(pod("a", 4).of("g").on("n1"));
    world.settle();
    world
}

#[test]
fn a_quarantined_gang_keeps_what_it_has_and_is_not_evicted() {
    let mut world = quarantined();
    world.pass(600_000);
    world.apply(pod("b", 4).queue("team"));
    world.settle();
    assert_eq!(world.evictions, 0);
    // It still counts in its queue and on its node.
    assert_eq!(world.reason("default/pod/b"), Some(Reason::OverLimit));
    assert_eq!(world.gang("default/g").status.phase, Phase::Pending);
    assert_eq!(world.reason("default/g"), Some(Reason::Unsupported));
    let message = world.message("default/g");
    assert!(message.contains("panic: broken;"), "{message}");
}

#[test]
fn a_quarantined_gang_is_tried_once_more_when_it_changes_and_then_never_again() {
    let mut world = quarantined();
    world.apply(gang("g", 1).queue("team").generation(2));
    world.settle();
    assert_eq!(world.gang("default/g").status.phase, Phase::Running);

    world.panic_over("default/g", "broken again");
    world.apply(node("n1", 8));
    for generation in [2, 3] {
        world.apply(gang("g", 1).generation(generation));
        world.apply(pod("a", 4).of("g"));
        world.settle();
        assert_eq!(world.reason("default/g"), Some(Reason::Unsupported));
        let message = world.message("default/g");
        assert!(message.ends_with("again; it is left alone until the scheduler restarts"));
    }
    assert_eq!(world.binds, 0);
}

#[test]
fn the_message_of_a_panic_is_cut() {
    let mut world = World::new();
    world.apply(gang("g", 1));
    world.settle();
    world.panic_over("default/g", &"é".repeat(1_000));
    world.apply(gang("g", 1));
    world.settle();
    let message = world.message("default/g");
    assert!(
        message.contains("é...; it is") && message.len() < 400,
        "{message}"
    );
}
