//! Promised starts as users see them, and runtimes that are learned from earlier runs.

use crate::needed::with_port;
use gpu_batch_policies::explain::{EndCause, StartStanding};
use gpu_batch_policies::facts::{Problem, RuntimeSource};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::Forecast;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, gang, leaf, node, pod, queue, quota};

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

#[test]
fn a_promised_start_stands_in_the_status_as_long_as_it_is_promised() {
    let mut world = world(1);
    world.apply((node("n1", 8), pod("r", 8).on("n1").runtime(100 * S + AGE)));
    world.apply((gang("g", 2), pod("g-0 g-1", 4).of("g")));
    world.then(pod("z", 1));
    assert_eq!(world.estimated_in_ms("g"), Some(100 * S));
    assert_eq!(
        world.estimated_in_ms("pod/z"),
        None,
        "there is one reservation"
    );
    world.pass(60 * S);
    world.end("r");
    world.settle();
    assert_eq!(world.places("g-0 g-1"), "n1 n1");
    assert_eq!(world.estimated_in_ms("g"), None);
    let errors = world.engine.take_forecasts().filter_map(|it| match it {
        Forecast::Start {
            promised_ms,
            started_ms,
        } => Some(promised_ms - started_ms),
        Forecast::Runtime { .. } | Forecast::Misaligned => None,
    });
    assert_eq!(errors.collect::<Vec<_>>(), [40 * S]);
}

#[test]
fn a_gang_that_waits_behind_a_promise_says_behind_which() {
    let mut world = world(1);
    world.apply((node("n1", 4), pod("r", 3).on("n1").runtime(100 * S + AGE)));
    world.apply(pod("a-head", 4).runtime(10 * S));
    world.then(pod("b", 1).runtime(101 * S));
    world.later(10 * S);
    assert_eq!(world.reason("pod/b"), Some(Reason::Reserved));
    let message = world.message("pod/b");
    let named = "its start would delay default/pod/a-head, which is promised to start at ";
    assert!(message.starts_with(named), "{message}");
    let explanation = world.explain("pod/b");
    assert_eq!((explanation.proof, explanation.eviction), (None, None));
    let [remedy] = explanation.remedies.as_slice() else {
        panic!("{:?}", explanation.remedies);
    };
    assert!(remedy.contains("`expectedRuntime`"), "{remedy}");
}

/// One more member of a sub-group would delay the head, and a whole further sub-group has no room.
#[test]
fn surplus_of_which_a_part_waits_behind_a_promise_says_behind_which() {
    let mut world = world(1);
    world.apply((node("n1", 4), pod("r", 2).on("n1").runtime(100 * S + AGE)));
    let groups = [leaf("one", "", 1), leaf("other", "", 1)];
    world.apply(gang("g", 1).sub_groups(groups).at_least(1));
    world.apply(pod("one-0", 1).of_leaf("g", "one").on("n1"));
    world.then(pod("a-head", 3).runtime(10 * S));
    world.then(pod("one-1", 1).of_leaf("g", "one"));
    world.then(pod("other-0", 4).of_leaf("g", "other"));
    world.later(10 * S);
    assert_eq!(world.places("one-1 other-0"), "- -");
    let message = world.message("g");
    let named = "its start would delay default/pod/a-head, which is promised to start at ";
    assert!(message.starts_with(named), "{message}");
}

/// `b-later` was promised the node that was fuller. The other node is fuller since `c-short` runs
/// there, and `a-wide` needs all of it before `b-later` ends.
#[test]
fn promises_are_laid_out_on_the_nodes_that_were_chosen_for_them() {
    let mut world = world(8);
    world.apply((node("n1 n2", 6), pod("endless", 2).on("n1")));
    world.apply(pod("r1", 4).on("n1").runtime(100 * S + AGE));
    world.apply(pod("r2", 1).on("n2").runtime(200 * S + AGE));
    world.then(pod("a-wide", 6).runtime(100 * S));
    world.then(pod("b-later", 3).runtime(1_000 * S));
    world.then(pod("c-short", 2).runtime(150 * S));
    assert_eq!(world.places("a-wide b-later c-short"), "- - n2");
    world.then(pod("d-wide", 6).runtime(10 * S));
    let estimates = ["a-wide", "b-later", "d-wide"].map(|pod| {
        let gang = format!("pod/{pod}");
        world.estimated_in_ms(&gang).map(|ms| ms / S)
    });
    assert_eq!(estimates, [Some(200), Some(100), Some(300)]);
}

/// Three GPUs are free as long as `r` runs, and more than `a-head` needs when it ends. So only the
/// port tells the two pods apart that could start at once.
#[test]
fn the_host_port_of_a_promised_gang_is_left_to_it() {
    let mut world = world(1);
    world.apply((node("n1", 8), pod("r", 5).on("n1").runtime(100 * S + AGE)));
    world.then(with_port(pod("a-head", 4), 80).runtime(10 * S));
    world.then(with_port(pod("b-same", 1), 80).runtime(500 * S));
    world.then(with_port(pod("c-other", 1), 81).runtime(500 * S));
    assert_eq!(world.places("b-same c-other"), "- n1");
    assert_eq!(world.reason("pod/b-same"), Some(Reason::Reserved));
    assert_eq!(world.estimated_in_ms("pod/a-head"), Some(100 * S));
    world.pass(100 * S);
    world.end("r");
    world.settle();
    assert_eq!(world.places("a-head b-same"), "n1 -");
}

#[test]
fn an_explanation_names_the_ends_that_make_room() {
    let mut world = world(1);
    world.apply(node("n1 n2", 8));
    world.apply(pod("r1", 8).on("n1").runtime(100 * S + AGE));
    world.apply(pod("r2", 8).on("n2").runtime(300 * S + AGE));
    world.apply(pod("a-head", 8).runtime(50 * S));
    world.then(pod("b-next", 8).runtime(50 * S));
    let start = world.explain("pod/a-head").expected_start.unwrap();
    assert_eq!(start.standing, StartStanding::Promised);
    assert_eq!(start.at_ms, Some(world.now_ms + 100 * S));
    let [end] = start.ends.as_slice() else {
        panic!("{start:?}");
    };
    assert_eq!((&*end.gang, end.cause), ("default/pod/r1", as_said()));
    // Beyond the reservations it is a guess, which rests on a promised start, too.
    let guess = world.explain("pod/b-next").expected_start.unwrap();
    assert_eq!(guess.standing, StartStanding::Guessed);
    assert_eq!(guess.at_ms, Some(world.now_ms + 150 * S));
    let ends = guess.ends.iter().map(|end| (&*end.gang, end.cause));
    let source = RuntimeSource::Said;
    let expected = [
        ("default/pod/r1", as_said()),
        ("default/pod/a-head", EndCause::WillRun { source }),
    ];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

/// The gang runs for as long as it says.
fn as_said() -> EndCause {
    EndCause::Runs {
        source: RuntimeSource::Said,
        is_overdue: false,
    }
}

#[test]
fn an_explanation_names_pods_that_are_leaving() {
    let mut world = world(1);
    world.apply((node("n1", 8), pod("r", 8).on("n1").runtime(100 * S + AGE)));
    world.then(pod("a", 8));
    let gone_ms = world.now_ms + 60 * S;
    world.change("r", |pod| pod.deletion_ms = Some(gone_ms));
    world.settle();
    let start = world.explain("pod/a").expected_start.unwrap();
    assert_eq!(start.standing, StartStanding::Promised);
    let [end] = start.ends.as_slice() else {
        panic!("{start:?}");
    };
    let leaves = (&*end.gang, end.at_ms, end.cause);
    assert_eq!(leaves, ("default/pod/r", gone_ms, EndCause::Leaves));
}

#[test]
fn room_that_is_held_for_a_gang_is_expected_when_the_evicted_pods_have_left() {
    let mut world = world(0);
    world.grace_ms = Some(60 * S);
    world.apply((node("n1", 8), quota("rich", 8), queue("poor")));
    world.apply(pod("r1 r2", 4).on("n1").queue("poor"));
    let evicted_ms = world.now_ms;
    world.then(pod("a", 8).queue("rich"));
    world.settle();
    assert_eq!(world.reason("pod/a"), Some(Reason::WaitingForEviction));
    let start = world.explain("pod/a").expected_start.unwrap();
    assert_eq!(start.standing, StartStanding::Held);
    let gone_ms = start.at_ms.unwrap();
    assert!(
        (evicted_ms..=evicted_ms + 61 * S).contains(&gone_ms),
        "{start:?}"
    );
    let ends = start.ends.iter().map(|end| (&*end.gang, end.cause));
    let leaves = ["default/pod/r1", "default/pod/r2"].map(|name| (name, EndCause::Leaves));
    assert_eq!(ends.collect::<Vec<_>>(), leaves);
}

#[test]
fn where_no_end_is_known_the_gangs_without_one_are_named() {
    let mut world = world(8);
    world.apply((node("n1", 8), pod("r", 8).on("n1")));
    world.then(pod("a", 8));
    let start = world.explain("pod/a").expected_start.unwrap();
    assert_eq!(start.at_ms, None);
    assert_eq!(start.endless, ["default/pod/r"]);
    assert_eq!(start.endless_count, 1);
    assert_eq!(world.estimated_in_ms("pod/a"), None);
}

#[test]
fn without_reservations_nothing_is_foreseen() {
    let mut world = world(0);
    world.apply((node("n1", 8), pod("r", 8).on("n1").runtime(100 * S + AGE)));
    world.then(pod("a", 8));
    let explanation = world.explain("pod/a");
    assert_eq!(explanation.expected_start, None);
    let [note] = explanation.notes.as_slice() else {
        panic!("{:?}", explanation.notes);
    };
    assert!(note.contains("`reservations: 0`"), "{note}");
    assert_eq!(world.estimated_in_ms("pod/a"), None);
}

/// A world in which two gangs of one owner have run for 60 and 50 seconds in the queue `q`.
fn after_two_runs() -> World {
    let mut world = world(1);
    world.apply((node("n1", 8), queue("q")));
    for (name, seconds) in [("nightly-1", 60), ("nightly-2", 50)] {
        world.then(pod(name, 8).queue("q"));
        world.pass(seconds * S);
        world.end(name);
        world.settle();
        world.delete(name);
        world.settle();
    }
    world.pass(60 * S);
    world.settle();
    world
}

#[test]
fn a_gang_is_expected_to_run_as_long_as_earlier_ones_of_its_owner() {
    let mut world = after_two_runs();
    world.then(pod("nightly-3", 8).queue("q"));
    world.then(pod("other", 8).queue("q"));
    assert_eq!(world.estimated_in_ms("pod/other"), Some(60 * S));
    let start = world.explain("pod/other").expected_start.unwrap();
    let cause = EndCause::Runs {
        source: RuntimeSource::Owner,
        is_overdue: false,
    };
    assert_eq!(start.ends[0].cause, cause);
    world.pass(30 * S);
    world.end("nightly-3");
    world.settle();
    let runs = world.engine.take_forecasts();
    let runs: Vec<Forecast> = runs.collect();
    let run = Forecast::Runtime {
        source: RuntimeSource::Owner,
        expected_ms: 60 * S,
        real_ms: 30 * S,
    };
    assert!(runs.contains(&run), "{runs:?}");
}

#[test]
fn what_was_learned_stands_in_the_queue_and_outlives_the_leader() {
    let mut world = after_two_runs();
    let told = world.queue("q").runtimes.unwrap();
    assert_eq!(told.seconds, [60, 50]);
    assert_eq!(told.owners.len(), 1);
    assert_eq!(&*told.owners[0].owner, "default/pod/nightly");
    world.take_over();
    world.then(pod("nightly-3", 8).queue("q"));
    world.then(pod("other", 8).queue("q"));
    assert_eq!(world.estimated_in_ms("pod/other"), Some(60 * S));
}

#[test]
fn failed_and_evicted_runs_teach_nothing() {
    let mut world = world(1);
    world.apply((node("n1", 8), queue("q")));
    for name in ["a-1", "a-2", "a-3"] {
        world.then(pod(name, 8).queue("q"));
        world.pass(10 * S);
        match name {
            "a-1" => world.fail(name),
            _ => world.delete(name),
        }
        world.settle();
        if name == "a-1" {
            world.delete(name);
            world.settle();
        }
    }
    world.pass(60 * S);
    world.settle();
    assert_eq!(world.queue("q").runtimes, None);
}

/// Surplus that joined later runs until the gang ends, and the gang ends once.
#[test]
fn a_gang_with_surplus_is_told_with_one_end() {
    let mut world = world(1);
    let elastic = gang("g", 1).with(|gang| gang.expected_runtime_ms = Some(100 * S + AGE));
    world.apply((node("n1", 2), elastic, pod("g-0", 1).of("g").on("n1")));
    world.later(20 * S);
    world.then(pod("g-1", 1).of("g"));
    assert_eq!(world.places("g-1"), "n1");
    world.then(pod("a", 2).runtime(10 * S));
    let explanation = world.explain("pod/a");
    let ends = explanation.expected_start.map(|start| start.ends[0].at_ms);
    let [occupant] = explanation.shortages[0].occupants.as_slice() else {
        panic!("{:?}", explanation.shortages);
    };
    assert_eq!(occupant.ends_ms, ends);
    assert_eq!(ends, Some(world.now_ms + 80 * S));
}

/// An unreadable `expectedRuntime` keeps no pod waiting where all members run, so only a note tells
/// the owner of the PodGroup that it is not read.
#[test]
fn an_unreadable_runtime_of_a_gang_that_runs_is_noted() {
    let unreadable = gang("g", 1).with(|gang| {
        gang.problems = vec![Problem {
            field: "spec.expectedRuntime".into(),
            message: "is wrong".into(),
        }];
    });
    let mut world = World::of((node("n1", 2), gang("g", 1)));
    world.apply(pod("g-0", 1).of("g").on("n1"));
    world.then(unreadable);
    let noted = ["PodGroup g: spec.expectedRuntime: is wrong"];
    assert_eq!(world.explain("g").notes, noted);
    world.then(pod("g-1", 1).of("g"));
    assert!(world.explain("g").notes.is_empty(), "it is why g-1 waits");
    assert!(world.message("g").contains("spec.expectedRuntime"));
}
