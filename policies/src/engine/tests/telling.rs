//! Conditions, events and statuses say what is true: to autoscalers, of gangs that have ended, and
//! of objects that were changed.

use super::world::{Thing, WithTopology, World, gang, leaf, node, pod, queue, topology};
use crate::event::Object;
use crate::explain::Subject;
use crate::facts::{MatchOperator, PodPhase};
use crate::reason::Reason;
use crate::status::Phase;
use alloc::{boxed::Box, format, string::String, vec::Vec};

/// The condition that a pod carries.
fn condition(world: &mut World, name: &str) -> (Box<str>, Box<str>) {
    let pods = world.engine().state.pods.iter();
    let mut pods = pods.filter(|(_, pod)| &*pod.name == name);
    let own = pods.next().unwrap().1.own.as_ref().unwrap();
    let condition = own.unscheduled.clone().expect("the pod has a condition");
    (condition.reason, condition.message)
}

fn remedies(world: &mut World, gang: &str) -> Vec<String> {
    let explained = world.engine().explain(Subject::Gang(gang));
    explained.unwrap().remedies
}

fn reason_of(world: &mut World, name: &str) -> String {
    String::from(condition(world, name).0)
}

#[test]
fn no_new_node_helps_members_that_must_be_where_others_run() {
    let mut world = World::new();
    world.apply(topology("default", &["rack"]));
    world.apply(node("n1", 8).label("rack", "r1"));
    world.apply(node("n2", 8));
    for (name, level, at) in [
        ("node", "node", "n1"),
        ("rack", "rack", "n1"),
        ("lone", "rack", "n2"),
    ] {
        world.apply(gang(name, 1).required(level));
        world.apply(pod(&format!("{name}-0"), 2).of(name).on(at));
        world.apply(pod(&format!("{name}-1"), 8).of(name).late());
    }
    world.settle();
    world.pass(3_000);
    world.settle();
    assert_eq!(world.reason_of_pod("node-1"), Some(Reason::DoesNotFit));
    assert_eq!(reason_of(&mut world, "node-1"), "DoesNotFit");
    assert_eq!(
        reason_of(&mut world, "rack-1"),
        "Unschedulable",
        "another node may join it"
    );
    assert_eq!(
        reason_of(&mut world, "lone-1"),
        "DoesNotFit",
        "none joins a node without the label"
    );
}

#[test]
fn nodes_of_other_models_help_where_the_limit_of_one_is_reached() {
    let mut world = World::new();
    world.apply(queue("team").entry("nvidia.com/gpu", Some("H100"), (0, Some(0)), 1));
    world.apply(node("n1", 8).label(crate::gpu::PRODUCT_LABEL, "H100"));
    world.apply(pod("any", 1).queue("team"));
    world.apply(pod("h100", 1).queue("team").model("H100"));
    world.settle();
    world.pass(3_000);
    world.settle();
    assert_eq!(world.reason_of_pod("any"), Some(Reason::OverLimit));
    let (reason, message) = condition(&mut world, "any");
    assert_eq!(&*reason, "Unschedulable");
    assert!(message.starts_with("OverLimit: "), "{message}");
    assert_eq!(reason_of(&mut world, "h100"), "OverLimit");
    let remedies = remedies(&mut world, "default/pod/any");
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
        world.apply(node(model, 8).label(crate::gpu::PRODUCT_LABEL, model));
        world.apply(pod(&format!("holds-{model}"), 2).queue("team").model(model));
    }
    world.settle();
    let (key, models) = (crate::gpu::PRODUCT_LABEL, ["H100", "B200"]);
    let either = pod("any", 1).queue("team");
    world.apply(either.needs(key, MatchOperator::In, &models));
    world.settle();
    world.pass(3_000);
    world.settle();
    assert_eq!(reason_of(&mut world, "any"), "OverLimit");
    let expected = [
        "gangs of the queue that release GPUs of the limited models",
        "higher limits for these models",
    ];
    assert_eq!(remedies(&mut world, "default/pod/any"), expected);
}

#[test]
fn a_failed_gang_waits_for_nobody() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b", "c", "d"] {
        world.apply(pod(name, 1).of("g"));
    }
    world.settle();
    for name in ["a", "b", "c", "d"] {
        world.end_as(name, PodPhase::Failed);
    }
    world.settle();
    let status = world.gang("default/g").status;
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
    let queues = world.engine().queue_reports();
    assert!(queues.iter().all(|queue| queue.status.pending == 0));

    world.apply(pod("e", 1).of("g").gate("example.com/later"));
    world.settle();
    assert_eq!(world.reason("default/g"), Some(Reason::SchedulingGated));
}

#[test]
fn members_that_failed_are_not_counted_among_those_that_exist() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 3));
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 1).of("g"));
    }
    world.settle();
    for name in ["a", "b"] {
        world.end_as(name, PodPhase::Failed);
    }
    world.settle();
    assert_eq!(
        world.message("default/g"),
        "1 of at least 3 members exist beside 2 that failed"
    );
}

#[test]
fn conditions_follow_a_lowered_minimum_at_once() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 4));
    for name in ["a", "b", "c", "d"] {
        world.apply(pod(name, 8).of("g"));
    }
    world.settle();
    let (_, message) = condition(&mut world, "a");
    assert!(message.contains("4 members with"), "{message}");
    world.pass(1_000);
    world.apply(gang("g", 2));
    world.settle();
    let (_, message) = condition(&mut world, "a");
    assert!(message.contains("2 members with"), "{message}");
}

#[test]
fn each_waiting_member_is_told_why_once() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 8).of("g"));
    }
    world.apply(pod("single", 16));
    world.settle();
    for name in ["a", "b", "single"] {
        let line = format!("Pod {name}: DoesNotFit: ");
        let told = world.told.iter().filter(|told| told.starts_with(&line));
        assert_eq!(told.count(), 1, "{:?}", world.told);
    }
    world.pass(60_000);
    world.apply(node("n2", 4));
    world.settle_and_review();
    let told = world.told.iter().filter(|told| told.starts_with("Pod "));
    assert_eq!(told.count(), 3, "{:?}", world.told);
}

#[test]
fn what_runs_of_a_deleted_pod_group_counts_in_its_queue_and_waits_for_nothing() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("team"));
    let facts = gang("g", 1).queue("team");
    world.apply(facts.clone());
    let Object::Pod(mut bound) = pod("a", 4).of("g").on("n1").object(&mut world) else {
        panic!("it is a pod");
    };
    bound.bound_queue = Some("team".into());
    world.apply(Object::Pod(bound));
    world.settle();
    world.forget(&Object::PodGroup(facts));
    world.settle();
    let report = world.gang("default/g");
    assert_eq!(
        (&*report.queue, report.status.phase),
        ("team", Phase::Running)
    );
    assert_eq!(world.reason_of_pod("a"), None);
    let explained = world.engine().explain(Subject::Gang("default/g"));
    let explained = explained.unwrap();
    assert_eq!((explained.reason, explained.remedies.len()), (None, 0));
    let queues = world.engine().queue_reports();
    let running = |name| {
        let mut queues = queues.iter().filter(|queue| &*queue.name == name);
        queues.next().map_or(0, |queue| queue.status.running)
    };
    assert_eq!((running("team"), running("default")), (1, 0));
}

#[test]
fn of_a_deleted_pod_group_the_members_that_wait_are_told_what_is_for_them() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    let facts = gang("g", 2);
    world.apply(facts.clone());
    for member in 0..6 {
        world.apply(pod(&format!("g-{member}"), 2).of("g"));
    }
    world.settle();
    world.forget(&Object::PodGroup(facts));
    world.settle();
    let report = world.gang("default/g");
    assert_eq!(
        (report.status.phase, report.status.members.bound),
        (Phase::Running, 4)
    );
    let expected = "create the PodGroup, or correct the pods' label: the members that wait can \
                    start then; those that run go on in any case";
    assert_eq!(remedies(&mut world, "default/g"), [expected]);
}

#[test]
fn the_sub_group_that_does_not_fit_alone_is_named() {
    let mut world = World::new();
    world.apply(topology("default", &["rack"]));
    world.apply(node("n1", 8).label("rack", "r1"));
    world.apply(node("n2", 8).label("rack", "r1"));
    let near = leaf("a", "", 1).required("rack");
    world.apply(gang("g", 1).sub_groups(&[near, leaf("b", "", 1)]));
    world.apply(pod("a-0", 1).of_leaf("g", "a"));
    world.apply(pod("b-0", 16).of_leaf("g", "b"));
    world.settle();
    let message = world.message("default/g");
    assert!(
        message.starts_with("sub-group b: 1 member with 16 nvidia.com/gpu does not fit"),
        "{message}"
    );
}

#[test]
fn a_queue_that_counts_gpu_is_told_the_whole_name() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("team").entry("gpu", None, (0, Some(8)), 1));
    world.settle();
    let told = "Queue team: ResourceNotFound: no node has gpu; did you mean nvidia.com/gpu?";
    assert!(
        world.told.iter().any(|line| line == told),
        "{:?}",
        world.told
    );
}
