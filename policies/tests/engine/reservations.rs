//! Reservations, and gangs that start beside them.

use gpu_batch_policies::command::{Action, Command, StatusPatch};
use gpu_batch_policies::facts::PodShape;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, gang, node, pod, queue, quota, topology};

/// A second in milliseconds.
const S: u64 = 1_000;
/// Pods that are sketched on a node have run for so long when a world begins.
const AGE: u64 = 30 * S;

/// A world with so many reservations.
fn world(reservations: u32) -> World {
    World::with(Settings {
        reservations,
        ..Settings::default()
    })
}

/// Case B06.
#[test]
fn a_reservation_is_on_nodes_and_not_on_a_sum() {
    let mut world = world(1);
    world.apply((node("n1", 8).label("host", "n1"), node("n2", 8)));
    world.apply(pod("r1", 4).on("n1").runtime(100 * S + AGE));
    world.apply(pod("r2", 4).on("n2").runtime(200 * S + AGE));
    world.apply(pod("a-head", 8).runtime(50 * S));
    world.apply(pod("b-third", 4).runtime(150 * S));
    let on_n1 = pod("c-fourth", 4).runtime(150 * S);
    world.then(on_n1.shape(|shape| {
        shape.node_selector.push(("host".into(), "n1".into()));
    }));
    assert_eq!(world.places("a-head b-third c-fourth"), "- n2 -");
    assert_eq!(world.reason("pod/c-fourth"), Some(Reason::Reserved));
    world.pass(100 * S);
    world.end("r1");
    world.settle();
    assert_eq!(world.places("a-head b-third c-fourth"), "n1 n2 -");
    world.pass(50 * S);
    world.end("a-head b-third");
    world.settle();
    assert_eq!(world.places("c-fourth"), "n1");
}

/// Members without GPUs are tried on nodes without GPUs first. There are none here, so they are
/// tried on all nodes, where the room that is promised must still count as taken.
#[test]
fn members_without_gpus_leave_promised_room_on_nodes_with_gpus() {
    let mut world = world(1);
    let cpus = |cpu: u64| {
        move |shape: &mut PodShape| {
            let own = shape.requests.iter_mut();
            own.filter(|(name, _)| &**name == "cpu")
                .for_each(|(_, amount)| *amount = cpu);
        }
    };
    world.apply((node("n1", 8), pod("r", 8).on("n1").runtime(100 * S + AGE)));
    let head = pod("a-head", 8).runtime(10 * S).shape(cpus(90_000));
    world.then(head);
    assert_eq!(world.reason("pod/a-head"), Some(Reason::DoesNotFit));
    let members = pod("z0 z1", 0).of("z").shape(cpus(10_000));
    world.then((gang("z", 2), members));
    assert_eq!(world.places("a-head z0 z1"), "- - -");
    assert_eq!(world.reason("z"), Some(Reason::Reserved));
}

#[test]
fn what_would_end_a_second_too_late_does_not_start() {
    let mut world = world(1);
    world.apply((node("n1", 4), pod("r", 3).on("n1").runtime(100 * S + AGE)));
    world.apply(pod("a-head", 4).runtime(10 * S));
    world.then((pod("b", 1).runtime(101 * S), pod("c", 1).runtime(100 * S)));
    assert_eq!(world.places("a-head b c"), "- - n1");
}

#[test]
fn a_gang_of_unknown_runtime_starts_only_beside_reservations() {
    let mut world = world(1);
    world.apply((node("n1", 4), pod("r", 3).on("n1").runtime(100 * S + AGE)));
    world.apply(pod("a-head", 3).runtime(10 * S));
    world.then(pod("b c", 1));
    assert_eq!(world.places("a-head b c"), "- n1 -");
    world.pass(100 * S);
    world.end("r");
    world.settle();
    assert_eq!(world.places("a-head b c"), "n1 n1 -");
}

/// The eleven jobs of the tests of Flux: at the start 1, 6 and 11 run with one reservation, and 1,
/// 7 and 11 with three.
fn eleven(reservations: u32) -> World {
    let jobs = [
        (8, 60),
        (10, 60),
        (12, 60),
        (14, 60),
        (16, 60),
        (6, 121),
        (4, 179),
        (4, 239),
        (2, 239),
        (2, 299),
        (2, 59),
    ];
    let mut world = world(reservations);
    world.apply(node("n1", 16));
    for (number, (gpus, minutes)) in (1..).zip(jobs) {
        world.apply(pod(&format!("j{number:02}"), gpus).runtime(minutes * 60 * S));
    }
    world.settle();
    world
}

fn running(world: &World) -> Vec<u32> {
    let runs = |number: &u32| {
        world
            .find(&format!("j{number:02}"))
            .is_some_and(|pod| pod.node.is_some())
    };
    (1..12).filter(runs).collect()
}

/// Case B05.
#[test]
fn jobs_pass_one_three_or_all_reservations() {
    const MINUTE: u64 = 60 * S;
    let mut easy = eleven(1);
    assert_eq!(running(&easy), [1, 6, 11]);
    easy.pass(MINUTE);
    easy.delete("j06");
    easy.settle();
    assert_eq!(running(&easy), [1, 7, 9, 11]);

    let mut three = eleven(3);
    assert_eq!(running(&three), [1, 7, 11]);
    let begin_ms = three.now_ms;
    let reserved = [("j02", 60), ("j03", 120), ("j04", 180)];
    let expected =
        reserved.map(|(job, minute)| (format!("default/pod/{job}"), begin_ms + minute * MINUTE));
    assert_eq!(promised(&three), expected);
    three.pass(MINUTE);
    three.delete("j07");
    three.settle();
    assert_eq!(running(&three), [1, 9, 11]);

    // The case says nothing of unlimited reservations beyond its title: what is expected here was
    // worked out by hand, minute by minute.
    let mut all = eleven(u32::MAX);
    assert_eq!(running(&all), [1, 7, 11]);
    let begin_ms = all.now_ms;
    let minutes: Vec<u64> = promised(&all)
        .iter()
        .map(|(_, at_ms)| (at_ms - begin_ms) / MINUTE)
        .collect();
    // j02 to j05 one after the other, and then j06, j08, j09 and j10 together.
    assert_eq!(minutes, [60, 120, 180, 240, 300, 300, 300, 300]);
    all.pass(MINUTE);
    all.delete("j07");
    all.settle();
    assert_eq!(running(&all), [1, 9, 11]);
}

/// Case B08.
#[test]
fn a_reservation_on_a_lost_node_is_made_anew_and_blocks_nobody() {
    let mut world = world(1);
    let begin_ms = world.now_ms;
    world.apply(node("n1 n2", 8));
    world.apply(pod("r1", 8).on("n1").runtime(100 * S + AGE));
    world.apply(pod("r2", 8).on("n2").runtime(300 * S + AGE));
    world.then(pod("a-head", 8).runtime(50 * S));
    let at_ms = |seconds: u64| [("default/pod/a-head".to_owned(), begin_ms + seconds * S)];
    world.pass(10 * S);
    assert_eq!(promised(&world), at_ms(100));
    world.pass(40 * S);
    world.lose_node("n1");
    world.delete("r1");
    world.settle();
    assert_eq!(promised(&world), at_ms(300), "made anew at once");
    world.pass(S);
    assert_eq!(promised(&world), at_ms(300));
    // Room for as long as nobody else has a reservation there.
    world.then((node("n3", 4), pod("b", 4)));
    assert_eq!(world.places("a-head b"), "- n3");
    world.pass(249 * S);
    world.end("r2");
    world.settle();
    assert_eq!(world.places("a-head"), "n2");
}

/// Case B09.
#[test]
fn a_gang_that_waits_for_a_limit_reserves_nothing() {
    let mut world = world(1);
    world.apply((node("n1 n2", 8), queue("a").limit(8), queue("b")));
    let runs = pod("a1", 8).on("n1").queue("a");
    world.apply(runs.runtime(1_000 * S + AGE));
    world.apply(pod("a2", 8).queue("a").runtime(100 * S));
    world.then(pod("b1", 8).queue("b").runtime(5_000 * S));
    assert_eq!(world.places("a2 b1"), "- n2");
    assert_eq!(world.reason("pod/a2"), Some(Reason::OverLimit));
    assert_eq!(promised(&world), [], "no reservation");
    assert_eq!(world.gang("pod/a2").status.estimated_start_ms, None);
    assert_eq!(
        world.explain("pod/a2").expected_start,
        None,
        "and no estimate"
    );
    world.pass(1_000 * S);
    world.end("a1");
    world.settle();
    assert_eq!(world.places("a2 b1"), "n1 n2");
}

#[test]
fn what_would_use_up_the_limit_of_a_promised_gang_does_not_start() {
    let mut world = world(1);
    world.apply((node("n1 n2", 8), queue("a").limit(8), queue("b")));
    let runs = pod("b1", 4).on("n1").queue("b");
    world.apply(runs.runtime(100 * S + AGE));
    world.apply(pod("b2", 4).on("n2").queue("b"));
    world.apply(pod("a-head", 8).queue("a").runtime(50 * S));
    world.apply(pod("a-late", 4).queue("a").runtime(101 * S));
    world.then(pod("a-soon", 4).queue("a").runtime(100 * S));
    assert_eq!(world.places("a-head a-late a-soon"), "- - n1");
    assert_eq!(world.reason("pod/a-late"), Some(Reason::Reserved));
    world.pass(100 * S);
    world.end("b1 a-soon");
    world.settle();
    assert_eq!(world.places("a-head a-late"), "n1 -");
}

/// Case B10.
#[test]
fn gangs_that_never_fit_use_up_no_reservation() {
    let mut world = world(8);
    world.apply((node("n1", 8), pod("r", 4).on("n1").runtime(100 * S + AGE)));
    world.apply(pod("a0 a1 a2 a3 a4 a5 a6 a7", 16).runtime(10 * S));
    world.apply(pod("b-ninth", 8).runtime(10 * S));
    world.then(pod("c-small", 4).runtime(500 * S));
    assert_eq!(world.places("b-ninth c-small"), "- -");
    world.pass(100 * S);
    world.end("r");
    world.settle();
    assert_eq!(world.places("b-ninth c-small"), "n1 -");
    world.pass(10 * S);
    world.end("b-ninth");
    world.settle();
    assert_eq!(world.places("c-small"), "n1");
}

/// Case B11.
#[test]
fn a_gang_that_must_be_in_one_rack_waits_for_the_rack_that_is_empty_first() {
    let mut world = world(1);
    world.apply(topology("default", "rack"));
    for (name, rack) in [("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")] {
        world.apply(node(name, 8).label("rack", rack));
    }
    for (name, at, ends) in [("r1", "n1", 300), ("r3", "n3", 200), ("r4", "n4", 250)] {
        world.apply(pod(name, 8).on(at).runtime(ends * S + AGE));
    }
    let head = gang("a-head", 2).required("rack");
    world.apply(head.with(|gang| gang.expected_runtime_ms = Some(50 * S)));
    world.apply(pod("h0 h1", 8).of("a-head"));
    world.then(pod("s", 8).late().runtime(10_000 * S));
    assert_eq!(world.places("h0 h1 s"), "- - n2");
    world.pass(200 * S);
    world.end("r3");
    world.settle();
    assert_eq!(world.binds, 1);
    world.pass(50 * S);
    world.end("r4");
    world.settle();
    assert_eq!(world.nodes_of("h0 h1"), ["n3", "n4"]);
}

#[test]
fn a_gang_of_higher_priority_takes_the_place_of_a_reservation_in_the_order() {
    let mut world = world(1);
    world.apply((node("n1", 8), pod("r", 4).on("n1").runtime(100 * S + AGE)));
    world.then(pod("a-head", 8).runtime(50 * S));
    let high = pod("z-high", 4).late().runtime(500 * S);
    world.then(high.with(|pod| pod.priority = 10));
    assert_eq!(world.places("a-head z-high"), "- n1");
}

/// A promise to the queue that holds 4 GPUs, and then a gang of a queue that holds none.
fn promised_to_a_queue_that_holds_more() -> World {
    let mut world = world(1);
    world.apply((node("n1", 8), queue("a")));
    let runs = pod("r", 4).on("n1").queue("a");
    world.apply(runs.runtime(100 * S + AGE));
    world.then(pod("a-head", 8).queue("a").runtime(50 * S));
    world
}

/// Which of two queues uses less turns round with every start: no promise would be kept.
#[test]
fn a_queue_that_uses_less_ends_no_promise_to_another_queue() {
    let mut world = promised_to_a_queue_that_holds_more();
    world.apply(queue("b"));
    world.then(pod("z", 4).queue("b").runtime(500 * S));
    assert_eq!(world.reason("pod/z"), Some(Reason::Reserved));
    world.pass(100 * S);
    world.end("r");
    world.settle();
    assert_eq!(world.places("a-head z"), "n1 -");
}

#[test]
fn a_promise_gives_way_to_what_another_queue_is_owed() {
    let mut world = promised_to_a_queue_that_holds_more();
    world.apply(quota("b", 4));
    world.then(pod("z", 4).queue("b").runtime(500 * S));
    assert_eq!(world.places("a-head z"), "- n1");
}

#[test]
fn a_promise_gives_way_to_a_queue_of_higher_priority() {
    let mut world = promised_to_a_queue_that_holds_more();
    world.apply(queue("b").with(|queue| queue.priority = 1));
    world.then(pod("z", 4).queue("b").runtime(500 * S));
    assert_eq!(world.places("a-head z"), "- n1");
}

#[test]
fn a_reservation_evicts_nobody_and_waits_for_whoever_overstays() {
    let mut world = world(1);
    world.apply((node("n1", 4), pod("r", 3).on("n1").runtime(100 * S + AGE)));
    world.then((
        pod("a-head", 4).runtime(10 * S),
        pod("b", 1).runtime(98 * S),
    ));
    assert_eq!(world.places("a-head b"), "- n1");
    world.pass(100 * S);
    world.end("r");
    world.settle();
    assert_eq!(world.places("a-head"), "-");
    // b is expected to end after another minute now; a gang that ends before that may pass.
    world.then(pod("c", 1).late().runtime(50 * S));
    assert_eq!(world.places("a-head c"), "- n1");
    world.pass(200 * S);
    world.end("b c");
    world.settle();
    assert_eq!((world.places("a-head"), world.evictions), ("n1".into(), 0));
}

/// A gang without a PodGroup has no status, so the conditions of its pods say when it will start.
/// Of a gang with one, its status does.
#[test]
fn pods_without_a_podgroup_say_when_they_will_start() {
    let mut world = world(8);
    world.apply((node("n1", 8), gang("g", 1)));
    world.apply(pod("r", 8).on("n1").runtime(100 * S + AGE));
    world.apply(pod("a", 8).runtime(10 * S));
    world.then(pod("g-0", 8).of("g").runtime(10 * S).late());
    world.later(3_000);
    let (reason, message) = world.condition("a");
    assert_eq!(reason, "Unschedulable");
    let start = "; it is promised to start by 2027-01-15T08:01:50Z";
    assert!(message.starts_with("DoesNotFit: "), "{message}");
    assert!(message.ends_with(start), "{message}");
    let events = world.told_of("Pod a: DoesNotFit: ");
    assert!(
        events.len() == 1 && events[0].ends_with(start),
        "{events:?}"
    );
    assert!(world.gang("g").status.estimated_start_ms.is_some());
    let (_, message) = world.condition("g-0");
    assert!(!message.contains("promised"), "{message}");
    // Less than a second is not told, and nothing is written for it.
    for (later_ms, is_written) in [(400, false), (2_000, true)] {
        let before = promised(&world);
        world.change("r", |pod| {
            let said_ms = &mut pod.hints.expected_runtime_ms;
            *said_ms = said_ms.map(|said_ms| said_ms + later_ms);
        });
        world.pass(10_000);
        let commands = world.commands();
        assert_ne!(promised(&world), before, "the promises have moved");
        let writes = |command: &Command| {
            let is_condition = |patch| matches!(patch, &StatusPatch::Unscheduled { .. });
            matches!(&command.action, Action::PatchStatus(patch) if is_condition(patch))
        };
        assert_eq!(commands.iter().any(writes), is_written, "{commands:?}");
    }
}

/// The gangs with promises, and when each is to start.
fn promised(world: &World) -> Vec<(String, u64)> {
    let starts = world.engine.promised_starts();
    starts
        .map(|(gang, at_ms)| (gang.to_owned(), at_ms))
        .collect()
}

/// Nothing is known of when the first pod ends; when it has gone, all ends are known.
#[test]
fn a_gang_for_which_no_start_was_found_is_asked_again() {
    let mut world = world(8);
    world.apply((node("n1", 8), node("n2", 8)));
    world.apply(pod("endless", 4).on("n1"));
    world.apply(pod("r", 4).on("n2").runtime(100 * S + AGE));
    world.apply(gang("g", 2).with(|gang| gang.expected_runtime_ms = Some(10 * S)));
    world.then(pod("g-0 g-1", 8).of("g"));
    assert_eq!(world.engine.promised_starts().count(), 0);
    world.pass(10 * S);
    world.end("endless");
    world.settle();
    let promised: Vec<_> = world.engine.promised_starts().collect();
    assert_eq!(promised, [("default/g", world.now_ms + 90 * S)]);
}

/// It ends when it was expected to, so no promise changes.
#[test]
fn what_waits_behind_a_promise_is_tried_when_a_gang_ends_on_time() {
    let mut world = world(1);
    world.apply((node("n1", 8), node("n2", 8)));
    world.apply(pod("r", 4).on("n1").runtime(900 * S + AGE));
    world.apply(pod("s", 4).on("n1").runtime(50 * S + AGE));
    world.apply(pod("t", 4).on("n2").runtime(300 * S + AGE));
    world.apply(pod("a-head", 8).runtime(10 * S));
    world.then(pod("b", 4));
    assert_eq!(world.reason("pod/b"), Some(Reason::Reserved));
    world.pass(50 * S);
    world.end("s");
    world.settle();
    assert_eq!(world.places("a-head b"), "- n1");
}

#[test]
fn a_gang_behind_a_promise_that_says_a_shorter_runtime_starts() {
    let mut world = world(1);
    let group = |ms| gang("z", 1).with(|gang| gang.expected_runtime_ms = Some(ms));
    world.apply((node("n1", 8), pod("r", 4).on("n1").runtime(100 * S + AGE)));
    world.apply(pod("a-head", 8).runtime(10 * S));
    world.then((group(200 * S), pod("z-0", 4).of("z")));
    assert_eq!(world.reason("z"), Some(Reason::Reserved));
    world.then(group(50 * S).generation(2));
    assert_eq!(world.places("z-0"), "n1");
}

#[test]
fn a_promise_ends_when_a_lowered_limit_keeps_it_from_being_kept() {
    let mut world = world(1);
    world.apply((node("n1", 8), queue("q").limit(8), queue("p")));
    world.apply(pod("r", 8).on("n1").runtime(100 * S + AGE).queue("p"));
    world.then(pod("a-head", 8).runtime(1_000 * S).queue("q"));
    assert_eq!(world.engine.promised_starts().count(), 1);
    world.then(queue("q").limit(4).with(|queue| queue.generation = 2));
    assert_eq!(world.engine.promised_starts().count(), 0);
    world.then(queue("q").limit(8).with(|queue| queue.generation = 3));
    assert_eq!(world.engine.promised_starts().count(), 1);
}
