//! Conditions, events and statuses say what is true: to autoscalers, of gangs that have ended, and
//! of objects that were changed.

use gpu_batch_policies::command::{Action, Command};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::MatchOperator;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_policies::status::Phase;
use gpu_batch_testing::{MODEL, World, gang, leaf, names, node, pod, queue, topology};

#[test]
fn no_new_node_helps_members_that_must_be_where_others_run() {
    let mut world = World::new();
    world.apply((
        topology("default", "rack"),
        node("n1", 8).label("rack", "r1"),
        node("n2", 8),
    ));
    for (name, level, at) in [
        ("node", "node", "n1"),
        ("rack", "rack", "n1"),
        ("lone", "rack", "n2"),
    ] {
        world.apply((
            gang(name, 1).required(level),
            pod(&format!("{name}-0"), 2).of(name).on(at),
            pod(&format!("{name}-1"), 8).of(name).late(),
        ));
    }
    world.settle();
    world.later(3_000);
    assert_eq!(world.reason_of_pod("node-1"), Some(Reason::DoesNotFit));
    assert_eq!(world.condition("node-1").0, "DoesNotFit");
    assert_eq!(
        world.condition("rack-1").0,
        "Unschedulable",
        "another node may join it"
    );
    assert_eq!(
        world.condition("lone-1").0,
        "DoesNotFit",
        "none joins a node without the label"
    );
    let mut offers_nodes = |gang: &str| {
        let remedies = world.explain(gang).remedies;
        assert!(!remedies.is_empty(), "{gang}");
        let nodes = |remedy: &String| remedy.starts_with("more nodes that take its members");
        remedies.iter().any(nodes)
    };
    assert!(offers_nodes("rack"), "another node may join it");
    for gang in ["node", "lone"] {
        assert!(!offers_nodes(gang), "{gang}: as the condition says");
    }
}

#[test]
fn no_new_node_is_offered_to_a_raised_minimum_that_must_be_on_one_node() {
    let pair = gang("pair", 2).required("node");
    let mut world = World::of((node("n1", 8), pair, pod("a b", 4).of("pair")));
    world.settle();
    world.then((
        gang("pair", 3).required("node").generation(2),
        pod("c", 4).of("pair"),
    ));
    world.later(3_000);
    assert_eq!(world.condition("c").0, "DoesNotFit");
    let expected = ["to be allowed on other nodes: new ones could not take its members"];
    assert_eq!(world.explain("pair").remedies, expected);
}

#[test]
fn a_release_is_offered_only_where_the_limit_as_a_whole_is_enough() {
    let (key, operator) = (MODEL, MatchOperator::NotIn);
    let mut world = World::of((
        queue("team").entry("nvidia.com/gpu", Some("H100"), (0, Some(4)), 1),
        node("n1 n2", 8).model("H100"),
        node("n3", 8).model("A100"),
        pod("holds", 2).queue("team").model("H100"),
    ));
    for (name, gpus) in [("small", 4), ("large", 8)] {
        let waiting = pod(name, gpus).queue("team");
        world.then(waiting.needs(key, operator, &["A100"]));
    }
    world.later(3_000);
    let others = "nodes of other models that its members may run on";
    let release = "gangs of the queue team that release 2 nvidia.com/gpu@H100";
    let smaller =
        "a smaller gang: alone it asks for more than the whole limit, 4 nvidia.com/gpu@H100";
    for (pod, remedy, limit) in [("small", release, 6), ("large", smaller, 10)] {
        assert_eq!(world.condition(pod).0, "Unschedulable");
        let remedies = world.explain(&format!("pod/{pod}")).remedies;
        let higher = format!("a limit of {limit} nvidia.com/gpu@H100 for the queue team");
        assert_eq!(remedies, [remedy, others, &higher], "{pod}");
    }
}

#[test]
fn nodes_of_other_models_help_where_the_limit_of_one_is_reached() {
    let mut world = World::of((
        queue("team").entry("nvidia.com/gpu", Some("H100"), (0, Some(0)), 1),
        node("n1", 8).model("H100"),
        pod("any", 1).queue("team"),
        pod("h100", 1).queue("team").model("H100"),
    ));
    world.later(3_000);
    assert_eq!(world.reason_of_pod("any"), Some(Reason::OverLimit));
    let (reason, message) = world.condition("any");
    assert_eq!(reason, "Unschedulable");
    assert!(message.starts_with("OverLimit: "), "{message}");
    assert_eq!(world.condition("h100").0, "OverLimit");
    let remedies = world.explain("pod/any").remedies;
    let expected = [
        "nodes of other models that its members may run on",
        "a limit of 1 nvidia.com/gpu@H100 for the queue team",
    ];
    assert_eq!(remedies, expected, "the queue holds nothing to release");
}

#[test]
fn members_of_limited_models_alone_are_offered_no_others() {
    let mut world = World::new();
    let limits = queue("team").entry("nvidia.com/gpu", Some("H100"), (0, Some(2)), 1);
    let limits = limits.entry("nvidia.com/gpu", Some("B200"), (0, Some(2)), 1);
    world.apply(limits);
    for model in ["H100", "B200"] {
        world.apply((
            node(model, 8).model(model),
            pod(&format!("holds-{model}"), 2).queue("team").model(model),
        ));
    }
    world.settle();
    let (key, models) = (MODEL, ["H100", "B200"]);
    let either = pod("any", 1).queue("team");
    world.then(either.needs(key, MatchOperator::In, &models));
    world.later(3_000);
    assert_eq!(world.condition("any").0, "OverLimit");
    let expected = [
        "gangs of the queue that release GPUs of the limited models",
        "higher limits for these models",
    ];
    assert_eq!(world.explain("pod/any").remedies, expected);

    let larger = pod("larger", 3).queue("team");
    world.then(larger.needs(key, MatchOperator::In, &models));
    world.later(3_000);
    assert_eq!(
        world.explain("pod/larger").remedies,
        expected[1..],
        "3 are more than each limit as a whole"
    );
}

#[test]
fn a_failed_gang_waits_for_nobody() {
    let mut world = World::of((node("n1", 8), gang("g", 2), pod("a b c d", 1).of("g")));
    world.fail("a b c d");
    world.settle();
    let status = world.gang("g").status;
    assert_eq!((status.phase, status.reason), (Phase::Failed, None));
    assert_eq!(
        &*status.message,
        "all 4 members have ended, 4 of them failed"
    );
    let told = world
        .told
        .iter()
        .filter(|line| line.contains("WaitingForMembers"));
    assert_eq!(told.count(), 0, "{:?}", world.told);
    let queues = world.engine.queue_reports();
    assert!(queues.iter().all(|queue| queue.status.pending == 0));

    world.then(pod("e", 1).of("g").gate("example.com/later"));
    assert_eq!(world.reason("g"), Some(Reason::SchedulingGated));
}

#[test]
fn members_that_failed_are_not_counted_among_those_that_exist() {
    let mut world = World::of((node("n1", 8), gang("g", 3), pod("a b c", 1).of("g")));
    world.fail("a b");
    world.settle();
    assert_eq!(
        world.message("g"),
        "1 of at least 3 members exist beside 2 that failed"
    );
}

#[test]
fn conditions_follow_a_lowered_minimum_at_once() {
    let mut world = World::of((node("n1", 8), gang("g", 4), pod("a b c d", 8).of("g")));
    let (_, message) = world.condition("a");
    assert!(message.contains("4 members with"), "{message}");
    world.pass(1_000);
    world.then(gang("g", 2));
    let (_, message) = world.condition("a");
    assert!(message.contains("2 members with"), "{message}");
}

#[test]
fn each_waiting_member_is_told_why_once() {
    let mut world = World::of((
        node("n1", 8),
        gang("g", 2),
        pod("a b", 8).of("g"),
        pod("single", 16),
    ));
    for name in ["a", "b", "single"] {
        let line = format!("Pod {name}: DoesNotFit: ");
        assert_eq!(world.told_of(&line).len(), 1, "{:?}", world.told);
    }
    world.pass(60_000);
    world.apply(node("n2", 4));
    world.settle_and_review();
    assert_eq!(world.told_of("Pod ").len(), 3, "{:?}", world.told);
}

#[test]
fn what_runs_of_a_deleted_pod_group_counts_in_its_queue_and_waits_for_nothing() {
    let group = gang("g", 1).queue("team");
    let bound = pod("a", 4).of("g").on("n1");
    let mut world = World::of((
        node("n1", 8),
        queue("team"),
        group.clone(),
        bound.with(|pod| pod.bound_queue = Some("team".into())),
    ));
    world.forget(Object::PodGroup(group.facts()).key());
    world.settle();
    let report = world.gang("g");
    assert_eq!(
        (&*report.queue, report.status.phase),
        ("team", Phase::Running)
    );
    assert_eq!(world.reason_of_pod("a"), None);
    let explained = world.explain("g");
    assert_eq!((explained.reason, explained.remedies.len()), (None, 0));
    let queues = world.engine.queue_reports();
    let running: Vec<_> = queues
        .iter()
        .filter(|queue| queue.status.running > 0)
        .collect();
    assert_eq!(running.len(), 1);
    assert_eq!((&*running[0].name, running[0].status.running), ("team", 1));
}

#[test]
fn of_a_deleted_pod_group_the_members_that_wait_are_told_what_is_for_them() {
    let group = gang("g", 2);
    let mut world = World::of((
        node("n1", 8),
        group.clone(),
        pod(&names("g-", 6), 2).of("g"),
    ));
    world.forget(Object::PodGroup(group.facts()).key());
    world.settle();
    let report = world.gang("g");
    assert_eq!(
        (report.status.phase, report.status.members.bound),
        (Phase::Running, 4)
    );
    let expected = "create the PodGroup, or correct the pods' label: the members that wait can \
                    start then; those that run go on meanwhile";
    assert_eq!(world.explain("g").remedies, [expected]);
}

#[test]
fn the_sub_group_that_does_not_fit_alone_is_named() {
    let mut world = World::new();
    world.apply((
        topology("default", "rack"),
        node("n1", 8).label("rack", "r1"),
        node("n2", 8).label("rack", "r1"),
    ));
    let near = leaf("a", "", 1).required("rack");
    world.then((
        gang("g", 1).sub_groups([near, leaf("b", "", 1)]),
        pod("a-0", 1).of_leaf("g", "a"),
        pod("b-0", 16).of_leaf("g", "b"),
    ));
    let message = world.message("g");
    assert!(
        message.starts_with("sub-group b: 1 member with 16 nvidia.com/gpu does not fit"),
        "{message}"
    );
}

#[test]
fn a_queue_that_counts_gpu_is_told_the_whole_name() {
    let world = World::of((
        node("n1", 8),
        queue("team").entry("gpu", None, (0, Some(8)), 1),
    ));
    let told = "Queue team: ResourceNotFound: no node has gpu; did you mean nvidia.com/gpu?";
    assert!(
        world.told.iter().any(|line| line == told),
        "{:?}",
        world.told
    );
}

/// Statuses for which nobody has time are not written, and questions are answered meanwhile.
fn nothing_is_written(world: &mut World) {
    let mut settings = Settings::default();
    settings.in_flight.statuses = 0;
    world.configure(settings);
}

/// Statuses wait while the API server has no time for them; questions are answered meanwhile.
#[test]
fn an_explanation_is_of_the_present_whatever_was_told_last() {
    let mut world = World::of((
        topology("default", "rack"),
        node("n1", 8).label("rack", "r1"),
        gang("g", 2).required("rack"),
        pod("a b", 8).of("g"),
    ));
    world.later(3_000);
    let expected = "2 members with 8 nvidia.com/gpu each do not fit in one rack: r1 comes nearest \
                    with room for 1";
    assert_eq!(world.explain("g").message, expected);
    nothing_is_written(&mut world);
    world.then((
        topology("default", "zone rack"),
        node("n1", 0).label("zone", "z").label("rack", "r1"),
        node("n2", 8).label("zone", "z").label("rack", "r2"),
    ));
    let expected = expected.replace("r1", "z/r2");
    assert_eq!(world.explain("g").message, expected);
}

/// The whole gang passes when it is counted, and the choice of members that was refused does not.
#[test]
fn what_keeps_the_only_choice_of_members_out_is_told() {
    let roles = gang("g", 1).sub_groups(leaf("a b", "", 1));
    let mut world = World::of((
        node("n1", 8),
        roles,
        pod("a0", 16).of_leaf("g", "a"),
        pod("b0 b1 b2", 1).of_leaf("g", "b"),
        queue("small").limit(4),
        gang("h", 1).queue("small"),
        pod("h0", 1).of("h").model("H100"),
        pod("h1", 8).of("h"),
    ));
    world.later(15_000);
    for (gang, says) in [
        (
            "g",
            "1 member with 16 nvidia.com/gpu does not fit in the cluster",
        ),
        (
            "h",
            "1 member with 1 nvidia.com/gpu does not fit in the cluster",
        ),
    ] {
        assert_eq!(world.reason(gang), Some(Reason::DoesNotFit), "{gang}");
        let message = world.message(gang);
        assert!(message.contains(says), "{gang}: {message}");
    }
}

#[test]
fn why_gangs_ahead_wait_is_of_the_present_whatever_they_were_told_last() {
    let explained = |is_told: bool| {
        let mut world = World::new();
        if !is_told {
            nothing_is_written(&mut world);
        }
        world.then((
            node("n1", 8),
            queue("team").limit(20),
            pod("ahead", 12).queue("team"),
            pod("behind", 16).queue("team"),
        ));
        world.later(3_000);
        nothing_is_written(&mut world);
        world.then(queue("team").limit(10));
        world.explain("pod/behind")
    };
    let (told, never_told) = (explained(true), explained(false));
    let before = &told.standing.as_ref().unwrap().before;
    assert_eq!(before[0].reason, Reason::OverLimit);
    assert_eq!(told, never_told);
}

#[test]
fn reports_say_why_before_a_sentence_is_made() {
    let mut world = World::new();
    nothing_is_written(&mut world);
    world.then((
        node("n1", 8),
        queue("team").limit(4),
        gang("large", 1),
        pod("large-0", 16).of("large"),
        gang("limited", 1).queue("team"),
        pod("limited-0", 8).of("limited"),
    ));
    for (gang, reason, says) in [
        ("large", Reason::DoesNotFit, "no place was found for it"),
        ("limited", Reason::OverLimit, "its queue had no room for it"),
    ] {
        let message = format!("{says} when it was last tried");
        assert_eq!(world.reason(gang), Some(reason));
        assert_eq!(world.message(gang), message);
        let pod = world.pod(&format!("{gang}-0"));
        assert_eq!((pod.reason, pod.message), (Some(reason), message));
    }
}

#[test]
fn no_sentence_is_made_of_gangs_that_are_too_young_to_be_told() {
    let mut world = World::new();
    let born_ms = world.now_ms;
    let young = pod("young", 16).with(|pod| pod.created_ms = born_ms);
    world.then((node("n1", 8), young, pod("old", 16)));
    let short = "no place was found for it when it was last tried";
    assert_ne!(world.message("pod/old"), short);
    assert_eq!(world.message("pod/young"), short);
    world.later(3_000);
    assert_eq!(world.message("pod/young"), world.message("pod/old"));

    world.then(pod("younger", 16).with(|pod| pod.created_ms = born_ms + 3_000));
    assert_eq!(world.message("pod/younger"), short);
    world.settle_and_review();
    assert_eq!(world.message("pod/younger"), world.message("pod/old"));
}

/// Every gang has a shape of its own, so all nodes are described for each.
#[test]
fn what_is_told_in_one_step_is_bounded_by_its_work() {
    let mut settings = Settings::default();
    settings.in_flight.statuses = 1_000;
    let mut world = World::with(settings);
    world.apply(node(&names("n", 2_000), 1));
    for number in 0..40 {
        world.apply(pod(&format!("p{number}"), 2 + number));
    }
    let writes = |one: &Command| matches!(one.action, Action::PatchStatus(_));
    let steps = (0..20).map(|_| world.commands());
    let written = steps.map(|commands| commands.iter().filter(|one| writes(one)).count());
    let written: Vec<usize> = written.collect();
    assert_eq!(written.iter().sum::<usize>(), 40, "{written:?}");
    assert!(written.iter().all(|one| *one <= 15), "{written:?}");
}
