//! Gangs that are left alone because handling them has panicked.

use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::Phase;
use gpu_batch_testing::{World, gang, node, pod, queue};

/// A running gang that has lost a member, in a world whose engine has panicked over it.
fn quarantined() -> World {
    let mut world = World::new();
    world.apply((
        node("n1", 8),
        queue("team"),
        gang("g", 2).queue("team"),
        pod("a b", 4).of("g"),
    ));
    world.panic_over("g", "broken");
    world.then((
        node("n1", 8),
        queue("team").limit(4),
        gang("g", 2).queue("team"),
        pod("a", 4).of("g").on("n1"),
    ));
    world
}

#[test]
fn a_quarantined_gang_keeps_what_it_has_and_is_not_evicted() {
    let mut world = quarantined();
    world.pass(600_000);
    world.then(pod("b", 4).queue("team"));
    assert_eq!(world.evictions, 0);
    // It still counts in its queue and on its node.
    assert_eq!(world.reason("pod/b"), Some(Reason::OverLimit));
    assert_eq!(world.phase("g"), Phase::Pending);
    assert_eq!(world.reason("g"), Some(Reason::Unsupported));
    let message = world.message("g");
    assert!(message.contains("panic: broken;"), "{message}");
}

#[test]
fn a_quarantined_gang_is_tried_once_more_when_it_changes_and_then_never_again() {
    let mut world = quarantined();
    world.then(gang("g", 1).queue("team").generation(2));
    assert_eq!(world.phase("g"), Phase::Running);

    world.apply((queue("team").limit(8), pod("b", 1).of("g")));
    world.panic_over("g", "broken again");
    world.apply(node("n1", 8));
    for generation in [2, 3] {
        world.then((gang("g", 1).generation(generation), pod("a", 4).of("g")));
        assert_eq!(world.reason("g"), Some(Reason::Unsupported));
        let message = world.message("g");
        assert!(message.ends_with("again; it is left alone until the scheduler restarts"));
    }
    assert_eq!(world.binds, 0);
}

#[test]
fn the_message_of_a_panic_is_cut() {
    let mut world = World::new();
    world.apply((node("n1", 8), gang("g", 1), pod("a", 1).of("g")));
    world.panic_over("g", &"é".repeat(1_000));
    world.then(gang("g", 1));
    let message = world.message("g");
    assert!(
        message.contains("é...; it is") && message.len() < 400,
        "{message}"
    );
}
