//! Gangs of pods that the engine plans and kube-scheduler asks to bind.

use crate::extended::{ask_to_bind, extended, filter, hopeless, uid};
use gpu_batch_policies::extender::{BindAnswer, NodeAnswer};
use gpu_batch_policies::facts::{GANG_GATE, PodFacts};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{
    Sketch, Thing, To, World, gang, lost, node, pod, quota, refused, throttled,
};

/// Pods of kube-scheduler with the gate that the engine lifts.
fn gated(names: &str, gpus: u64) -> Sketch<PodFacts> {
    extended(names, gpus).gate(GANG_GATE)
}

/// A gang of two gated pods, each of which needs one of the two nodes.
fn pair() -> impl Thing {
    (
        node("n1 n2", 8),
        quota("a", 16),
        gang("g", 2).queue("a"),
        gated("g-0 g-1", 8).of("g"),
    )
}

/// The node that is planned for a pod which kube-scheduler looks at.
fn offered<'a>(world: &'a World, pod: &str) -> Option<&'a str> {
    let pod = world.stored(pod);
    pod.planned_node.as_deref().filter(|_| pod.gates.is_empty())
}

fn ask_for_all(world: &mut World, pods: &[&str]) {
    for pod in pods {
        let node = offered(world, pod).unwrap().to_owned();
        assert_eq!(ask_to_bind(world, pod, &node), BindAnswer::Bound, "{pod}");
    }
}

#[test]
fn a_gated_gang_gets_its_places_first_and_its_binds_when_kube_scheduler_asks() {
    let mut world = World::of(pair());
    assert_eq!((world.places("g-0"), world.binds), ("n1".into(), 0));
    for (pod, place, other) in [("g-0", "n1", "n2"), ("g-1", "n2", "n1")] {
        assert_eq!(offered(&world, pod), Some(place));
        assert_eq!(world.stored(pod).nominated.as_deref(), Some(place));
        let another = hopeless("gpu-batch has planned the pod for another node");
        assert_eq!(
            filter(&mut world, pod, &format!("{place} {other}")),
            [NodeAnswer::Fits, another]
        );
        let why = "the pod has another node";
        assert_eq!(
            ask_to_bind(&mut world, pod, other),
            BindAnswer::Refused(why.into())
        );
    }
    assert_eq!(world.binds, 0);
    ask_for_all(&mut world, &["g-0", "g-1"]);
    assert_eq!(world.places("g-0 g-1"), "n1 n2");
    assert_eq!(world.stored("g-0").bound_minima, [2]);
}

#[test]
fn no_gate_is_lifted_before_the_whole_gang_has_places() {
    let mut world = World::of((pair(), pod("k", 8).queue("a").on("n1")));
    assert_eq!(world.places("g-0 g-1"), "- -");
    assert!(world.stored("g-0").has_gang_gate() && world.stored("g-1").has_gang_gate());
    assert_eq!(world.reason_of_pod("g-0"), Some(Reason::DoesNotFit));
    // kube-scheduler does not look at the pod, so nobody else tells why it waits.
    assert!(world.stored("g-0").unscheduled.is_some());
    let none = hopeless("gpu-batch has no place for the pod's gang now");
    assert_eq!(filter(&mut world, "g-0", "n2"), [none]);
    world.end("k");
    world.settle();
    ask_for_all(&mut world, &["g-1", "g-0"]);
    assert_eq!(world.places("g-0 g-1"), "n1 n2");
}

#[test]
fn other_gates_hold_a_pod_back_and_a_gate_without_kube_scheduler_does_too() {
    let mut world = World::of((pair(), gated("s", 1).gate("example.com/wait")));
    world.then(pod("t", 1).queue("a").gate(GANG_GATE));
    assert_eq!(world.places("s t"), "- -");
    for pod in ["s", "t"] {
        assert_eq!(world.reason_of_pod(pod), Some(Reason::SchedulingGated));
    }
    assert!(world.stored("s").has_gang_gate());
}

#[test]
fn nobody_is_evicted_by_kube_scheduler_for_a_planned_pod() {
    let world = World::of((pair(), node("n3", 8), pod("f", 1).foreign().on("n3")));
    let victims = [vec![uid(&world, "f")], Vec::new()];
    let answer = world.engine.allow_victims(uid(&world, "g-0"), &victims);
    assert_eq!(answer.unwrap(), [false, false]);
}

#[test]
fn a_gang_that_kube_scheduler_never_asks_for_gives_its_places_back_and_is_offered_again() {
    let mut world = World::of(pair());
    world.later(29_000);
    assert_eq!(world.places("g-0 g-1"), "n1 n2");
    world.later(1_000);
    assert_eq!(
        (world.places("g-0 g-1"), world.evictions),
        ("- -".into(), 0)
    );
    assert_eq!(world.stored("g-0").nominated, None);
    assert_eq!(world.stored("g-1").nominated, None);
    let message = world.message("g");
    assert!(
        message.contains("has not asked to bind pod g-0 to node n1 within 30 s"),
        "{message}"
    );
    world.run(10_000);
    ask_for_all(&mut world, &["g-0", "g-1"]);
}

/// A plugin of kube-scheduler refuses the node, say, which the engine tries once more.
#[test]
fn a_gang_of_which_kube_scheduler_binds_a_part_is_unwound() {
    let mut world = World::of(pair());
    ask_for_all(&mut world, &["g-0"]);
    world.run(60_000);
    assert_eq!((world.evictions, world.places("g-1")), (0, "n2".into()));
    world.run(1_500);
    assert_eq!(world.evicted, ["g-0"]);
    assert_eq!(world.places("g-1"), "-");
    assert!(world.engine.audit().is_empty());
}

/// A node was cordoned after the gate was lifted: there is no other place for what is left.
#[test]
fn a_begun_gang_whose_offered_member_can_have_no_other_node_is_unwound_soon() {
    let mut world = World::of(pair());
    ask_for_all(&mut world, &["g-0"]);
    world.then(node("n2", 8).with(|node| node.unschedulable = true));
    world.run(33_000);
    assert_eq!(world.evicted, ["g-0"]);
}

/// A gang that has begun is not unwound if the member that loses its place finds another one.
#[test]
fn a_lost_place_is_replaced_before_the_gang_is_unwound_where_the_node_is_gone() {
    let mut world = World::of((pair(), node("n3", 8)));
    ask_for_all(&mut world, &["g-0"]);
    let lost = offered(&world, "g-1").unwrap().to_owned();
    world.lose_node(&lost);
    world.run(32_000);
    let now = offered(&world, "g-1").unwrap();
    assert_ne!(now, lost);
}

#[test]
fn a_request_without_a_certain_outcome_is_sent_again() {
    for to in [To::NominationOf("g-1"), To::LiftOf("g-1")] {
        for outcome in [lost(), throttled()] {
            let mut world = World::of(node("n1 n2", 8));
            world.answers(to.clone(), outcome);
            world.then(pair());
            assert_eq!(
                (offered(&world, "g-0"), offered(&world, "g-1")),
                (Some("n1"), None)
            );
            assert_eq!(world.places("g-0 g-1"), "n1 n2");
            world.answers_again(&to);
            world.run(5_000);
            ask_for_all(&mut world, &["g-0", "g-1"]);
        }
    }
}

#[test]
fn a_bind_may_be_asked_for_while_the_answer_to_the_lifting_is_lost() {
    let mut world = World::of(node("n1 n2", 8));
    world.answers(To::LiftOf("g-1"), lost());
    world.then(pair());
    world.change("g-1", |pod| {
        pod.gates.clear();
        pod.planned_node = Some("n2".into());
    });
    world.settle();
    ask_for_all(&mut world, &["g-0", "g-1"]);
}

#[test]
fn where_the_api_server_refuses_to_lift_a_gate_all_places_are_given_back() {
    for to in [To::NominationOf("g-1"), To::LiftOf("g-1")] {
        let mut world = World::of(node("n1 n2", 8));
        world.answers(to.clone(), refused());
        world.then(pair());
        assert_eq!(
            (world.places("g-0 g-1"), world.evictions),
            ("- -".into(), 0)
        );
        assert_eq!(world.reason("g"), Some(Reason::BindingFailed));
        assert_eq!(
            world.message("g"),
            "the API server refused to offer pod g-1: a webhook says no"
        );
        assert_eq!(world.stored("g-0").nominated, None);
        world.answers_again(&to);
        world.run(10_000);
        ask_for_all(&mut world, &["g-0", "g-1"]);
    }
}

/// The gates cannot be put back: the annotation tells a new engine what the pods are.
#[test]
fn a_new_engine_goes_on_with_a_gang_that_is_offered_or_bound_in_part() {
    for bound in [&[][..], &["g-0"], &["g-0", "g-1"]] {
        let mut world = World::of(pair());
        ask_for_all(&mut world, bound);
        world.take_over();
        world.settle();
        assert_eq!(world.places("g-0 g-1"), "n1 n2");
        let rest: Vec<_> = ["g-0", "g-1"]
            .into_iter()
            .filter(|pod| !bound.contains(pod))
            .collect();
        ask_for_all(&mut world, &rest);
        assert_eq!(
            (world.places("g-0 g-1"), world.evictions),
            ("n1 n2".into(), 0)
        );
    }
}

#[test]
fn a_new_engine_holds_back_what_is_offered_and_has_no_place_any_more() {
    let mut world = World::of(pair());
    world.take_over();
    world.apply(pod("k", 8).queue("a").on("n2"));
    world.settle();
    let none = hopeless("gpu-batch has no place for the pod's gang now");
    assert_eq!(filter(&mut world, "g-0", "n1"), [none]);
    let why = "gpu-batch has no place for the pod's gang now";
    assert_eq!(
        ask_to_bind(&mut world, "g-0", "n1"),
        BindAnswer::Refused(why.into())
    );
}

#[test]
fn an_engine_that_stops_gives_back_what_is_only_offered_and_finishes_what_has_begun() {
    let mut world = World::of(pair());
    world.engine.shut_down();
    world.settle();
    assert_eq!(world.places("g-0 g-1"), "- -");
    assert!(world.engine.is_drained());

    let mut world = World::of(pair());
    ask_for_all(&mut world, &["g-0"]);
    world.engine.shut_down();
    world.settle();
    assert!(!world.engine.is_drained());
    ask_for_all(&mut world, &["g-1"]);
    assert!(world.engine.is_drained());
}

/// Room is made for a gated gang as for any other, and the nomination comes before the eviction.
#[test]
fn a_gated_gang_takes_back_the_quota_of_its_queue() {
    let mut world = World::with(Settings::default());
    world.then((
        node("n1", 8),
        quota("a", 8),
        quota("b", 0),
        pod("v", 8).queue("b").on("n1"),
        gang("g", 2).queue("a"),
        gated("g-0 g-1", 4).of("g"),
    ));
    world.run(2_000);
    assert_eq!(world.evicted, ["v"]);
    ask_for_all(&mut world, &["g-0", "g-1"]);
    assert_eq!(world.places("g-0 g-1"), "n1 n1");
}
