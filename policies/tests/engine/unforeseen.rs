//! Promised starts where nothing comes as expected: absurd runtimes, clocks that jump, nodes that
//! change, and promised gangs that ask for something else. Each step is audited.

use gpu_batch_policies::event::ObjectKey;
use gpu_batch_policies::facts::GroupSource;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{To, World, gang, node, pod, queue, quota, refused, topology};

/// A second in milliseconds.
const S: u64 = 1_000;
const YEAR: u64 = 365 * 24 * 3_600 * S;
/// Pods that are sketched on a node have run for so long when a world begins.
const AGE: u64 = 30 * S;

fn reserving(reservations: u32) -> Settings {
    Settings {
        reservations,
        ..Settings::default()
    }
}

/// Two nodes that are used until 100 s and 300 s from now, and a gang that is promised the first.
fn promised() -> World {
    let mut world = World::with(reserving(8));
    world.apply(node("n1 n2", 8));
    world.apply(pod("r1", 8).on("n1").runtime(100 * S + AGE));
    world.apply(pod("r2", 8).on("n2").runtime(300 * S + AGE));
    world.apply((gang("a", 2), pod("a-0 a-1", 4).of("a")));
    world.settle();
    assert_eq!(due(&world, "a"), Some(100 * S));
    world
}

/// When a gang is promised to start, from now.
fn due(world: &World, gang: &str) -> Option<u64> {
    let name = format!("default/{gang}");
    let mut promised = world.engine.promised_starts();
    let at_ms = promised.find_map(|(known, at_ms)| (*known == *name).then_some(at_ms));
    let told_ms = world.gang(gang).status.estimated_start_ms;
    assert_eq!(
        told_ms.map(|ms| ms / S),
        at_ms.map(|ms| ms / S),
        "in whole seconds"
    );
    at_ms.map(|at_ms| at_ms - world.now_ms)
}

/// Takes each deadline of the next seconds, and returns how many there were.
fn pass_deadlines(world: &mut World, seconds: u64) -> u32 {
    let (mut count, until_ms) = (0, world.now_ms + seconds * S);
    while let Some(at_ms) = world
        .engine
        .next_deadline()
        .filter(|at_ms| *at_ms < until_ms)
    {
        world.now_ms = at_ms.max(world.now_ms + 1);
        world.settle();
        count += 1;
    }
    world.now_ms = until_ms;
    world.settle();
    count
}

#[test]
fn a_runtime_of_zero_is_overrun_at_once() {
    let mut world = World::with(reserving(8));
    world.apply((node("n1", 8), pod("r", 8).on("n1").runtime(0)));
    world.apply(pod("a", 8).runtime(0));
    world.then(pod("b", 8).runtime(0));
    // The run is 30 s old, and is expected a minute after its beginning now.
    assert_eq!(due(&world, "pod/a"), Some(30 * S));
    assert_eq!(due(&world, "pod/b"), Some(30 * S), "a takes no time");
    world.end("r");
    world.settle();
    assert_eq!(world.places("a b"), "n1 -");
    assert_eq!(due(&world, "pod/b"), Some(0), "a may end at once");
    pass_deadlines(&mut world, 1_000);
    world.end("a");
    world.settle();
    assert_eq!(world.places("b"), "n1");
}

/// Two promises of gangs that take no time are both overdue when the room comes a second late.
#[test]
fn promises_that_are_overdue_do_not_wait_for_each_other() {
    let mut world = World::with(reserving(8));
    world.apply(node("n1", 8));
    world.apply(pod("r", 8).on("n1").runtime(100 * S + AGE));
    world.apply(pod("a", 8).runtime(0));
    world.then(pod("b", 8).runtime(0));
    assert_eq!(due(&world, "pod/a"), Some(100 * S));
    assert_eq!(due(&world, "pod/b"), Some(100 * S));
    // No step is made at the promised times.
    world.now_ms += 101 * S;
    world.end("r");
    world.settle();
    let places = world.places("a b");
    assert!(["n1 -", "- n1"].contains(&&*places), "{places}");
    let (first, second) = if places == "n1 -" {
        ("a", "b")
    } else {
        ("b", "a")
    };
    world.end(first);
    world.settle();
    assert_eq!(world.places(second), "n1");
}

/// A gang has lost a member before this process sees it, and the others run on.
#[test]
fn members_that_run_are_expected_to_end_also_by_a_process_that_has_not_seen_them_begin() {
    let mut world = World::with(reserving(8));
    world.apply((node("n1", 8), node("n2", 8)));
    let group = gang("g", 2).with(|gang| gang.expected_runtime_ms = Some(100 * S + AGE));
    world.apply(group);
    world.apply((
        pod("g-0", 8).of("g").on("n1"),
        pod("g-1", 8).of("g").on("n2"),
    ));
    world.then(pod("w", 8).runtime(10 * S));
    assert_eq!(due(&world, "pod/w"), Some(100 * S));
    world.delete("g-1");
    world.lose_node("n2");
    world.then(pod("g-1", 8).of("g").late());
    assert_eq!(due(&world, "pod/w"), Some(100 * S));
    world.take_over();
    world.settle();
    assert_eq!(due(&world, "pod/w"), Some(100 * S));
}

#[test]
fn runtimes_of_a_thousand_years_are_waited_for_and_do_not_overflow() {
    let mut world = World::with(reserving(8));
    world.apply(node("n1 n2", 8));
    world.apply(pod("r1", 8).on("n1").runtime(1_000 * YEAR + AGE));
    world.apply(pod("r2", 8).on("n2").runtime(u64::MAX));
    world.apply(pod("a", 8).runtime(1_000 * YEAR));
    world.then(pod("b c", 8).runtime(u64::MAX));
    assert_eq!(due(&world, "pod/a"), Some(1_000 * YEAR));
    assert_eq!(due(&world, "pod/b"), Some(2_000 * YEAR));
    world.end("r2");
    world.settle();
    assert_eq!(world.places("a b c"), "n2 - -");
    assert_eq!(due(&world, "pod/b"), Some(1_000 * YEAR), "both end then");
}

#[test]
fn a_runtime_that_changes_while_a_gang_runs_moves_what_was_promised() {
    let mut world = World::with(reserving(8));
    let says = |seconds: u64| {
        let group = gang("r", 1).generation(i64::try_from(seconds).unwrap());
        group.with(move |gang| gang.expected_runtime_ms = Some(seconds * S))
    };
    world.apply((node("n1", 8), says(100 + 30)));
    world.apply(pod("r-0", 8).of("r").on("n1"));
    world.then(pod("a", 8).runtime(10 * S));
    assert_eq!(due(&world, "pod/a"), Some(100 * S));
    world.then(says(500 + 30));
    assert_eq!(due(&world, "pod/a"), Some(500 * S));
    world.then(says(40 + 30));
    assert_eq!(due(&world, "pod/a"), Some(40 * S));
    // It has run for longer already.
    world.then(says(10));
    assert_eq!(due(&world, "pod/a"), Some((10 + 60 - 30) * S));
    world.then(says(0).with(|gang| gang.expected_runtime_ms = None));
    assert_eq!(
        due(&world, "pod/a"),
        None,
        "nobody knows when there is room"
    );
    world.end("r-0");
    world.settle();
    assert_eq!(world.places("a"), "n1");
}

/// A gang runs a thousand times as long as it says.
#[test]
fn what_is_always_too_short_is_expected_ever_later() {
    let mut world = World::with(reserving(8));
    world.apply((node("n1", 8), pod("r", 8).on("n1").runtime(AGE + S)));
    world.then(pod("a", 8).runtime(S));
    let begin_ms = world.now_ms;
    let mut promises = vec![world.now_ms + due(&world, "pod/a").unwrap()];
    while world.now_ms < begin_ms + 1_000 * S {
        world.later(S);
        let due = due(&world, "pod/a").unwrap();
        promises.extend((due > 0).then_some(world.now_ms + due));
    }
    promises.dedup();
    let since: Vec<u64> = promises
        .iter()
        .map(|at_ms| (at_ms - begin_ms) / S)
        .collect();
    assert_eq!(
        since,
        [1, 61, 181, 421, 901, 1_861],
        "1, 2, 4, 8, 16 minutes later"
    );
    world.end("r");
    world.settle();
    assert_eq!(world.places("a"), "n1");
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_clock_that_jumps_moves_promises_and_starts_nothing() {
    let mut world = promised();
    world.later(10 * YEAR);
    assert_eq!(world.places("a-0 a-1"), "- -");
    let next = due(&world, "a").unwrap();
    assert!(next > 0 && next < YEAR, "{next}");
    assert!(pass_deadlines(&mut world, 600) < 20);
    // And back to the time at which the gangs began.
    world.now_ms -= 10 * YEAR;
    world.settle();
    assert!(pass_deadlines(&mut world, 50) < 20);
    world.end("r2");
    world.settle();
    assert_eq!(world.places("a-0 a-1"), "n2 n2");
    assert_eq!(due(&world, "a"), None);
}

#[test]
fn promises_end_when_reservations_are_switched_off_and_begin_when_they_are_switched_on() {
    let mut world = promised();
    world.apply((node("n3", 4), pod("b", 8).late().runtime(100 * S)));
    world.then(pod("r3", 4).on("n3").runtime(50 * S + AGE));
    world.then(pod("c", 4).late().runtime(1_000 * S));
    world.configure(reserving(0));
    world.settle();
    assert_eq!((due(&world, "a"), due(&world, "pod/b")), (None, None));
    world.end("r3");
    world.settle();
    assert_eq!(world.places("c"), "n3", "room for anybody");
    world.configure(reserving(1));
    world.settle();
    assert_eq!(due(&world, "a"), Some(100 * S));
    assert_eq!(due(&world, "pod/b"), None);
}

#[test]
fn fewer_reservations_leave_those_of_the_first_gangs() {
    let mut world = promised();
    world.then(pod("b", 8).late().runtime(100 * S));
    assert_eq!(due(&world, "pod/b"), Some(300 * S));
    world.configure(reserving(1));
    world.settle();
    assert_eq!(
        (due(&world, "a"), due(&world, "pod/b")),
        (Some(100 * S), None)
    );
}

/// The promised node changes, and another one is promised: the first one is free for others.
fn moves_to_the_other_node(change: impl Fn(&mut World)) {
    let mut world = promised();
    change(&mut world);
    world.settle();
    assert_eq!(due(&world, "a"), Some(300 * S));
    assert!(world.gang("a").status.message.len() > 10);
    world.pass(300 * S);
    world.end("r2");
    world.settle();
    assert_eq!(world.places("a-0 a-1"), "n2 n2");
}

#[test]
fn a_promised_node_that_goes_is_made_good_elsewhere() {
    moves_to_the_other_node(|world| {
        world.lose_node("n1");
        world.delete("r1");
    });
}

#[test]
fn a_promised_node_that_is_cordoned_is_made_good_elsewhere() {
    moves_to_the_other_node(|world| world.apply(node("n1", 8).cordoned()));
}

#[test]
fn a_promised_node_that_loses_gpus_is_made_good_elsewhere() {
    moves_to_the_other_node(|world| {
        world.apply(node("n1", 4));
        world.end("r1");
    });
}

#[test]
fn a_node_that_comes_back_pulls_the_promise_forward() {
    let mut world = promised();
    world.then(node("n1", 8).cordoned());
    assert_eq!(due(&world, "a"), Some(300 * S));
    world.then(node("n1", 8));
    assert_eq!(due(&world, "a"), Some(100 * S));
}

#[test]
fn a_promised_node_that_leaves_its_rack_is_made_good_in_another() {
    let mut world = World::with(reserving(8));
    world.apply(topology("default", "rack"));
    for (name, rack, ends) in [("n1", "r1", 100), ("n2", "r1", 50), ("n3", "r2", 300)] {
        world.apply(node(name, 8).label("rack", rack));
        let runs = pod(&format!("on-{name}"), 8).on(name);
        world.apply(runs.runtime(ends * S + AGE));
    }
    world.apply((
        node("n4", 8).label("rack", "r2"),
        pod("late", 8).on("n4").runtime(400 * S),
    ));
    world.apply((gang("a", 2).required("rack"), pod("a-0 a-1", 8).of("a")));
    world.settle();
    assert_eq!(due(&world, "a"), Some(100 * S));
    world.then(node("n2", 8).label("rack", "r3"));
    assert_eq!(due(&world, "a"), Some(400 * S - AGE));
    world.end("on-n2");
    world.then(pod("b", 8).late());
    assert_eq!(
        world.places("a-0 a-1 b"),
        "- - n2",
        "the room is nobody's any more"
    );
    world.then(node("n2", 8).label("rack", "r1"));
    assert_eq!(due(&world, "a"), Some(400 * S - AGE), "b never ends");
}

#[test]
fn a_promised_gang_that_shrinks_starts_where_it_fits() {
    let mut world = promised();
    world.then(node("n3", 4));
    assert_eq!(due(&world, "a"), Some(100 * S));
    world.then(gang("a", 1).generation(2));
    assert_eq!(world.nodes_of("a-0 a-1"), ["n3"], "one of them is enough");
    assert_eq!(due(&world, "a"), None);
}

#[test]
fn a_promised_gang_that_grows_is_promised_a_later_start() {
    let mut world = promised();
    world.then((gang("a", 3).generation(2), pod("a-2", 4).of("a")));
    assert_eq!(due(&world, "a"), Some(300 * S));
    // More than there will ever be.
    world.then((gang("a", 5).generation(3), pod("a-3 a-4", 4).of("a")));
    assert_eq!(due(&world, "a"), None);
    world.end("r1");
    world.then(pod("b", 8).late());
    assert_eq!(world.places("b"), "n1", "room for others");
}

#[test]
fn a_promised_gang_that_waits_for_a_member_gives_up_its_promise() {
    let mut world = promised();
    world.then(gang("a", 3).generation(2));
    assert_eq!(
        (world.reason("a"), due(&world, "a")),
        (Some(Reason::WaitingForMembers), None)
    );
}

#[test]
fn a_promised_gang_takes_its_promise_to_another_queue_and_loses_it_at_a_limit() {
    let mut world = promised();
    world.apply((
        queue("free"),
        queue("full").limit(4),
        queue("missing").closed(),
    ));
    let of = |queue: &str, generation| gang("a", 2).queue(queue).generation(generation);
    world.then(of("free", 2));
    assert_eq!(due(&world, "a"), Some(100 * S));
    world.then(of("full", 3));
    assert_eq!(
        (world.reason("a"), due(&world, "a")),
        (Some(Reason::OverLimit), None)
    );
    world.then(of("missing", 4));
    assert_eq!(
        (world.reason("a"), due(&world, "a")),
        (Some(Reason::QueueClosed), None)
    );
    world.end("r1");
    world.then(pod("b", 8).late());
    assert_eq!(world.places("b"), "n1");
}

#[test]
fn a_promised_gang_that_is_deleted_leaves_its_room_to_the_next() {
    let mut world = promised();
    world.then(pod("b", 8).late().runtime(10 * S));
    assert_eq!(due(&world, "pod/b"), Some(300 * S));
    world.delete("a-0 a-1");
    world.forget(ObjectKey::PodGroup(
        GroupSource::GpuBatch,
        "default".into(),
        "a".into(),
    ));
    world.settle();
    assert_eq!(due(&world, "pod/b"), Some(100 * S));
    world.pass(100 * S);
    world.end("r1");
    world.settle();
    assert_eq!(world.places("b"), "n1");
}

/// A gang that waits for something else than room reserves nothing: others start in its room.
fn reserves_nothing(gang: impl Fn(&mut World), reason: Reason) {
    let mut world = World::with(reserving(8));
    world.apply((node("n1", 8), queue("full").limit(4)));
    world.apply(pod("r", 4).on("n1").runtime(100 * S + AGE));
    gang(&mut world);
    world.settle();
    assert_eq!((world.reason("a"), due(&world, "a")), (Some(reason), None));
    world.then(pod("b", 4).late().runtime(1_000 * S));
    assert_eq!(world.places("b"), "n1");
}

#[test]
fn a_gang_that_lacks_a_member_reserves_nothing() {
    let lacks = |world: &mut World| world.apply((gang("a", 2), pod("a-0", 4).of("a")));
    reserves_nothing(lacks, Reason::WaitingForMembers);
}

#[test]
fn a_gang_behind_a_gate_reserves_nothing() {
    let member = || pod("a-0", 8).of("a").gate("example.com/hold");
    let gated = |world: &mut World| world.apply((gang("a", 1), member()));
    reserves_nothing(gated, Reason::SchedulingGated);
}

#[test]
fn a_gang_beyond_a_limit_reserves_nothing() {
    let beyond = |world: &mut World| {
        world.apply((gang("a", 1).queue("full"), pod("a-0", 8).of("a")));
    };
    reserves_nothing(beyond, Reason::OverLimit);
}

/// A node full of a pod that the queue `rich` may reclaim, 10 s after it has begun to wait.
fn reclaimable() -> World {
    let mut world = World::with(Settings {
        preemption_delay_ms: 10 * S,
        ..reserving(8)
    });
    world.grace_ms = Some(60 * S);
    world.apply((node("n1", 8), quota("rich", 8), queue("poor")));
    let runs = pod("r", 8).on("n1").queue("poor");
    world.apply(runs.runtime(1_000 * S + AGE));
    world
}

#[test]
fn a_gang_whose_evictions_come_to_nothing_is_promised_a_start_again() {
    let mut world = reclaimable();
    world.then((gang("a", 1).queue("rich"), pod("a-0", 5).of("a")));
    world.answers(To::EvictionOf("r"), refused());
    world.later(10 * S);
    assert_eq!(world.evictions, 1);
    world.later(S);
    assert_eq!(due(&world, "a"), Some(989 * S));
}

/// A gang for which others are evicted needs no promise any more: its room is held.
#[test]
fn evictions_end_the_promises_of_the_gangs_that_get_the_room() {
    let mut world = reclaimable();
    world.apply((gang("a", 1).queue("rich"), pod("a-0", 5).of("a")));
    world.then(pod("b", 3).late().queue("poor").runtime(10 * S));
    assert_eq!(due(&world, "a"), None, "it takes the room before");
    assert_eq!(due(&world, "pod/b"), Some(1_000 * S));
    world.later(10 * S);
    assert_eq!(world.evicted, ["r"]);
    assert_eq!(world.reason("a"), Some(Reason::WaitingForEviction));
    assert_eq!(due(&world, "a"), None);
    // What a's eviction leaves over is held for b, which needs no promise either.
    assert_eq!(world.reason("pod/b"), Some(Reason::WaitingForEviction));
    assert_eq!(due(&world, "pod/b"), None);
    // Nobody passes into the room of either.
    world.then(pod("c", 3).late().queue("poor").runtime(1_000 * S));
    world.pass(60 * S);
    world.delete("r");
    world.settle();
    assert_eq!(world.places("a-0 b c"), "n1 n1 -");
}

#[test]
fn room_of_pods_that_are_leaving_is_promised_for_the_end_of_their_grace_periods() {
    let mut settings = reserving(8);
    settings.evictions.in_flight = 0;
    let mut world = World::with(settings);
    world.apply((node("n1", 8), pod("r", 8).on("n1").runtime(1_000 * S + AGE)));
    world.then((gang("a", 1), pod("a-0", 8).of("a")));
    assert_eq!(due(&world, "a"), Some(1_000 * S));
    let gone_ms = world.now_ms + 60 * S;
    world.change("r", |pod| pod.deletion_ms = Some(gone_ms));
    world.settle();
    assert_eq!(due(&world, "a"), Some(60 * S));
}

#[test]
fn a_gang_starts_when_leaving_pods_are_gone_before_their_grace_periods_end() {
    let mut world = World::with(reserving(8));
    world.apply(node("n1 n2", 8));
    world.apply(pod("r", 8).on("n1").runtime(1_000 * S + AGE));
    world.apply(pod("s", 8).on("n2").runtime(500 * S + AGE));
    world.then((gang("a", 1), pod("a-0", 8).of("a")));
    let gone_ms = world.now_ms + 60 * S;
    world.change("r", |pod| pod.deletion_ms = Some(gone_ms));
    world.settle();
    assert_eq!(due(&world, "a"), Some(60 * S));
    world.pass(2 * S);
    world.delete("r");
    world.settle();
    assert_eq!(world.places("a-0"), "n1");
}
