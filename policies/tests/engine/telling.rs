//! Conditions, events and statuses say what is true: to autoscalers, of gangs that have ended, and
//! of objects that were changed.

use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::MatchOperator;
use gpu_batch_policies::reason::Reason;
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
        "higher limits for these models",
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
                    start then; those that run go on in any case";
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
