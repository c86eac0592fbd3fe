//! Promised starts of gangs that may take room from others when their `preemptionDelay` ends: such
//! a gang needs a promise of an earlier start only.

use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, gang, node, pod, queue, quota};

/// A second in milliseconds.
const S: u64 = 1_000;
/// Pods that are sketched on a node have run for so long when a world begins.
const AGE: u64 = 30 * S;

/// One reservation, and a node full of a pod that ends in so many seconds and that the queue `rich`
/// may reclaim after 100 s.
fn reclaimable(ends_s: u64) -> World {
    let mut world = World::with(Settings {
        preemption_delay_ms: 100 * S,
        reservations: 1,
        ..Settings::default()
    });
    world.apply((node("n1", 8), quota("rich", 8), queue("poor")));
    let runs = pod("r", 8).on("n1").queue("poor");
    world.apply(runs.runtime(ends_s * S + AGE));
    world
}

#[test]
fn a_gang_that_takes_room_before_it_would_come_leaves_the_promise_to_another() {
    let mut world = reclaimable(1_000);
    world.then(pod("a", 8).queue("rich"));
    assert_eq!(world.reason("pod/a"), Some(Reason::PreemptionDelay));
    world.then(pod("b", 8).late().queue("poor").runtime(10 * S));
    assert_eq!(world.estimated_in_ms("pod/a"), None);
    assert_eq!(world.estimated_in_ms("pod/b"), Some(1_000 * S));
    world.later(100 * S);
    assert_eq!(world.evicted, ["r"]);
    world.settle();
    assert_eq!(world.places("a b"), "n1 -");
}

#[test]
fn a_gang_that_gets_room_before_it_may_take_any_is_promised_it() {
    let mut world = reclaimable(50);
    world.then(pod("a", 8).queue("rich").runtime(10 * S));
    assert_eq!(world.estimated_in_ms("pod/a"), Some(50 * S));
    world.then(pod("b", 8).late().queue("poor").runtime(10 * S));
    assert_eq!(
        world.estimated_in_ms("pod/b"),
        None,
        "there is one reservation"
    );
    // The pod runs longer than expected, and the next expectation is later than the delay's end.
    world.later(50 * S + 1);
    assert_eq!(world.estimated_in_ms("pod/a"), None);
    assert_eq!(world.estimated_in_ms("pod/b"), Some(60 * S - 1));
    world.later(50 * S);
    assert_eq!(world.evicted, ["r"]);
}

#[test]
fn a_gang_that_loses_its_right_to_take_room_is_promised_a_start() {
    let mut world = reclaimable(1_000);
    world.then(pod("a", 8).queue("rich"));
    assert_eq!(world.estimated_in_ms("pod/a"), None);
    world.then(quota("rich", 4));
    world.later(S);
    assert_eq!(world.reason("pod/a"), Some(Reason::DoesNotFit));
    assert_eq!(world.estimated_in_ms("pod/a"), Some(999 * S));
    world.then(quota("rich", 8));
    world.later(S);
    assert_eq!(world.reason("pod/a"), Some(Reason::PreemptionDelay));
    assert_eq!(world.estimated_in_ms("pod/a"), None);
}

/// The second of two gangs that are alike is not asked: the first finds no plan.
#[test]
fn gangs_that_are_alike_lose_their_right_together() {
    let mut world = reclaimable(1_000);
    world.apply(quota("rich", 16));
    world.then((pod("a", 8).queue("rich"), pod("c", 8).queue("rich")));
    world.later(S);
    assert_eq!(world.reason("pod/a"), Some(Reason::PreemptionDelay));
    world.then(quota("rich", 4));
    world.later(S);
    assert_eq!(world.reason("pod/a"), Some(Reason::DoesNotFit));
    assert_eq!(world.reason("pod/c"), Some(Reason::DoesNotFit));
}

#[test]
fn a_gang_that_waits_behind_a_promise_has_no_delay() {
    let mut world = reclaimable(1_000);
    world.apply((node("n2", 8), quota("own", 8)));
    world.apply(pod("kept", 8).on("n2").queue("own").runtime(500 * S));
    world.apply((
        gang("head", 2).queue("rich"),
        pod("head-0 head-1", 8).of("head"),
    ));
    world.then(pod("a", 8).late().queue("rich"));
    world.later(S);
    assert_eq!(world.estimated_in_ms("head"), Some(999 * S));
    assert_eq!(world.reason("pod/a"), Some(Reason::PreemptionDelay));
    world.end("kept");
    world.later(S);
    assert_eq!(world.reason("pod/a"), Some(Reason::Reserved));
    world.later(200 * S);
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_gang_that_may_take_nothing_any_more_is_promised_a_start() {
    let mut world = reclaimable(1_000);
    world.then(pod("a", 8).queue("rich"));
    assert_eq!(world.estimated_in_ms("pod/a"), None);
    let mut settings = Settings {
        preemption_delay_ms: 100 * S,
        reservations: 1,
        ..Settings::default()
    };
    settings.evictions.in_flight = 0;
    world.configure(settings);
    world.later(S);
    assert_eq!(world.estimated_in_ms("pod/a"), Some(999 * S));
}
