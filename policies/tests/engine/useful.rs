//! Room that comes earlier than expected: of use to promised gangs, or not.

use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, gang, node, pod};

/// A second in milliseconds.
const S: u64 = 1_000;
/// Pods that are sketched on a node have run for so long when a world begins.
const AGE: u64 = 30 * S;

/// A world with a small node `n9`, on which `w` runs.
fn world() -> World {
    let mut settings = Settings {
        reservations: 8,
        ..Settings::default()
    };
    // Plans for room that is being left would start gangs, too.
    settings.evictions.in_flight = 0;
    let mut world = World::with(settings);
    world.apply((node("n9", 2), pod("w", 2).on("n9").runtime(9_000 * S + AGE)));
    world
}

/// Lets a round of pulling promises forward find out that nothing can be: `w` ends.
fn look_once(world: &mut World) {
    world.end("w");
    world.settle();
}

/// A gang that keeps its own start on other nodes leaves its nodes to another gang.
#[test]
fn room_that_comes_by_a_promised_start_lets_another_gang_go_before() {
    let mut world = world();
    world.apply((node("n1", 12), node("n2 n5", 8), gang("y", 1)));
    world.apply(pod("y-0", 8).of("y").on("n2").runtime(100 * S + AGE));
    world.apply(pod("y-1", 4).of("y").on("n5").runtime(100 * S + AGE));
    world.apply(pod("z", 12).on("n1").runtime(50 * S + AGE));
    world.apply(pod("x", 4).on("n5").runtime(200 * S + AGE));
    world.apply(gang("q", 2));
    world.then(pod("q-0 q-1", 8).of("q").runtime(400 * S));
    world.then(pod("p", 12).late().runtime(1_000 * S));
    assert_eq!(world.places("q-0 q-1"), "- -");
    assert_eq!(world.estimated_in_ms("q"), Some(100 * S));
    assert_eq!(world.estimated_in_ms("pod/p"), Some(500 * S));
    look_once(&mut world);
    world.pass(10 * S);
    world.end("x");
    world.settle();
    assert_eq!(world.estimated_in_ms("q"), Some(90 * S));
    assert_eq!(world.estimated_in_ms("pod/p"), Some(40 * S));
}

#[test]
fn pods_that_leave_sooner_than_they_may_pull_a_promise_forward_later() {
    let mut world = world();
    world.apply(node("n1 n2 n3", 8));
    world.apply(pod("r", 8).on("n1").runtime(1_000 * S + AGE));
    world.apply(pod("s", 8).on("n2").runtime(30 * S + AGE));
    world.apply(pod("t u", 4).on("n3").runtime(1_000 * S + AGE));
    world.apply(gang("a", 2));
    world.then(pod("a-0 a-1", 8).of("a").runtime(10 * S));
    let gone_ms = world.now_ms + 60 * S;
    world.change("r", |pod| pod.deletion_ms = Some(gone_ms));
    world.settle();
    assert_eq!(world.estimated_in_ms("a"), Some(60 * S));
    look_once(&mut world);
    world.pass(2 * S);
    world.delete("r");
    world.settle();
    // Half of a node is of no use, and is looked at together with the room before.
    world.pass(2 * S);
    world.end("t");
    world.settle();
    assert_eq!(world.estimated_in_ms("a"), Some(26 * S));
}

#[test]
fn a_part_of_a_node_that_others_keep_pulls_nothing_forward() {
    let mut world = world();
    world.apply(node("n1 n2", 8));
    world.apply(pod("r", 8).on("n1").runtime(100 * S + AGE));
    world.apply(pod("s t", 4).on("n2").runtime(300 * S + AGE));
    world.then(pod("a", 8).runtime(10 * S));
    look_once(&mut world);
    world.pass(2 * S);
    world.end("s");
    world.settle();
    assert_eq!(world.estimated_in_ms("pod/a"), Some(98 * S));
    world.pass(2 * S);
    world.end("t");
    world.settle();
    assert_eq!(world.places("a"), "n2");
}
