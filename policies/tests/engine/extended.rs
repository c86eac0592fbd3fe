//! Pods whose nodes kube-scheduler chooses, with this scheduler as its extender.

use gpu_batch_policies::event::Event;
use gpu_batch_policies::extender::{BindAnswer, NodeAnswer, Unanswered};
use gpu_batch_policies::facts::{MatchOperator, Placement, PodFacts, Taint, TaintEffect, Uid};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, To, World, gang, node, pod, queue, quota, refused, topology};

/// Pods that name the queue `a` and are placed by kube-scheduler.
pub(super) fn extended(names: &str, gpus: u64) -> Sketch<PodFacts> {
    pod(names, gpus).queue("a").with(|pod| pod.extended = true)
}

/// What kube-scheduler does with a pod: it asks for nodes, takes the first one, and asks to bind.
pub(super) fn ask_to_bind(world: &mut World, pod: &str, node: &str) -> BindAnswer {
    let uid = uid(world, pod);
    let node: Box<str> = node.into();
    world.events.push(Event::BindAsked {
        pod: uid,
        node: node.clone(),
    });
    world.settle();
    world.engine.bind_answer(uid, &node).unwrap()
}

pub(super) fn uid(world: &World, pod: &str) -> Uid {
    world.stored(pod).uid
}

pub(super) fn filter(world: &mut World, pod: &str, nodes: &str) -> Vec<NodeAnswer> {
    let uid = uid(world, pod);
    let nodes: Vec<Box<str>> = nodes.split(' ').map(Into::into).collect();
    world.engine.filter_nodes(uid, &nodes).unwrap()
}

fn scores(world: &mut World, pod: &str, nodes: &str) -> Vec<u8> {
    let uid = uid(world, pod);
    let nodes: Vec<Box<str>> = nodes.split(' ').map(Into::into).collect();
    world.engine.score_nodes(uid, &nodes).unwrap()
}

pub(super) fn hopeless(why: &str) -> NodeAnswer {
    NodeAnswer::Hopeless(why.into())
}

#[test]
fn an_extended_pod_waits_for_kube_scheduler_and_counts_in_its_queue_once_it_is_bound() {
    let mut world = World::of((node("n1 n2", 8), quota("a", 8), extended("p", 4)));
    world.later(10_000);
    assert_eq!(world.places("p"), "-");
    assert_eq!(
        world.reason_of_pod("p"),
        Some(Reason::WaitingForKubeScheduler)
    );
    // kube-scheduler writes its conditions and events.
    assert_eq!(world.stored("p").unscheduled, None);
    assert_eq!(world.told, Vec::<String>::new());
    assert_eq!(
        filter(&mut world, "p", "n1 n2"),
        [NodeAnswer::Fits, NodeAnswer::Fits]
    );
    assert_eq!(ask_to_bind(&mut world, "p", "n2"), BindAnswer::Bound);
    assert_eq!(world.places("p"), "n2");
    assert_eq!(&*world.last_bind.as_ref().unwrap().queue, "a");
    let reports = world.engine.queue_reports();
    let queue = reports.iter().find(|queue| &*queue.name == "a").unwrap();
    assert!(
        queue
            .status
            .allocated
            .contains(&("nvidia.com/gpu".into(), 4_000))
    );
}

#[test]
fn a_queue_never_exceeds_its_limit_however_many_binds_are_asked_for_at_once() {
    let mut world = World::of((
        node("n1 n2", 8),
        queue("a").limit(4),
        extended("p-0 p-1 p-2 p-3", 2),
    ));
    let pods = ["p-0", "p-1", "p-2", "p-3"];
    for pod in pods {
        // Each alone would fit.
        assert_eq!(filter(&mut world, pod, "n1"), [NodeAnswer::Fits]);
        let (pod, node) = (uid(&world, pod), "n1".into());
        world.events.push(Event::BindAsked { pod, node });
    }
    world.settle();
    assert_eq!(world.binds, 2);
    let why = "the limit of the queue a is 4 of nvidia.com/gpu; 4 are held and 2 more asked for";
    let answers = pods.map(|pod| {
        let pod = uid(&world, pod);
        world.engine.bind_answer(pod, "n1").unwrap()
    });
    assert_eq!(answers[..2], [BindAnswer::Bound, BindAnswer::Bound]);
    assert_eq!(
        answers[2..],
        [
            BindAnswer::Refused(why.into()),
            BindAnswer::Refused(why.into())
        ]
    );
    assert_eq!(
        filter(&mut world, "p-3", "n1 n2"),
        [hopeless(why), hopeless(why)]
    );
    world.end("p-0");
    world.settle();
    assert_eq!(ask_to_bind(&mut world, "p-3", "n2"), BindAnswer::Bound);
}

#[test]
fn nodes_are_refused_for_room_models_and_what_a_pod_selects() {
    let mut world = World::of((
        node("n1 n2", 8).model("H100").label("zone", "z1"),
        node("n3", 2).model("H100").label("zone", "z1"),
        (
            node("n4", 8).label("zone", "z1"),
            node("n5", 8).model("H200").label("zone", "z1"),
        ),
        node("n6", 8),
        queue("a").limit_of("H200", 3),
        extended("p", 4).needs("zone", MatchOperator::In, &["z1"]),
        pod("f", 6).foreign().on("n4"),
    ));
    let answers = filter(&mut world, "p", "n1 n2 n3 n4 n5 n6 n7");
    assert_eq!(answers[..2], [NodeAnswer::Fits, NodeAnswer::Fits]);
    let refused = |why: &str| NodeAnswer::Refused(why.into());
    let too_little = refused("had insufficient nvidia.com/gpu");
    assert_eq!(answers[2..4], [too_little.clone(), too_little]);
    assert_eq!(
        answers[4..],
        [
            hopeless("a limit of its queue on the GPU model would be exceeded"),
            refused("didn't match the pod's node affinity/selector"),
            hopeless("gpu-batch has not seen the node"),
        ]
    );
}

#[test]
fn scores_follow_the_placement_of_the_queue() {
    for (placement, best) in [
        (Placement::Binpack, [1, 10, 0]),
        (Placement::Spread, [10, 1, 0]),
    ] {
        let mut world = World::of((
            node("n1 n2", 8),
            node("n3", 2),
            pod("k", 3).foreign().on("n2"),
            quota("a", 32).with(|queue| queue.placement.gpu = Some(placement)),
            extended("p", 4),
        ));
        let found = scores(&mut world, "p", "n1 n2 n3");
        let order = |scores: &[u8]| scores[0] > scores[1];
        assert_eq!(order(&found), order(&best), "{found:?}");
        assert_eq!((found.iter().max(), found[2]), (Some(&10), 0));
        assert!(found[0].min(found[1]) > 0);
    }
}

#[test]
fn a_pod_without_a_queue_is_kept_off_room_that_is_held_for_others_and_bound_as_it_asks() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8),
        quota("a", 8),
        quota("b", 0),
        pod("v", 8).queue("b").on("n1"),
        pod("x", 8).queue("a"),
        pod("f", 2).foreign(),
    ));
    // Queue a takes back its quota: the room of `v` is held for `x`.
    assert_eq!(world.evicted, ["v"]);
    world.delete("v");
    world.settle();
    assert_eq!(world.places("x"), "n1");
    world.then(node("n2", 8));
    assert_eq!(filter(&mut world, "f", "n2"), [NodeAnswer::Fits]);
    world.then(pod("g", 2).foreign());
    let answer = ask_to_bind(&mut world, "g", "n2");
    assert_eq!(answer, BindAnswer::Bound);
    assert_eq!(world.stored("g").node.as_deref(), Some("n2"));
}

/// What such a pod tolerates or selects is kube-scheduler's business.
#[test]
fn of_a_pod_without_a_queue_only_room_is_judged_and_no_node_is_better() {
    let taint = Taint {
        key: "nvidia.com/gpu".into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    };
    let mut world = World::of((
        node("n1", 8).with(|node| node.taints.push(taint.clone())),
        node("n2", 1),
        pod("f", 2).foreign(),
    ));
    let little = NodeAnswer::Refused("had insufficient nvidia.com/gpu".into());
    assert_eq!(filter(&mut world, "f", "n1 n2"), [NodeAnswer::Fits, little]);
    assert_eq!(scores(&mut world, "f", "n1 n2"), [0, 0]);
}

#[test]
fn a_bind_that_the_api_server_refuses_is_answered_with_its_words_and_may_be_asked_again() {
    let mut world = World::of((node("n1", 8), quota("a", 8), extended("p", 4)));
    world.answers(To::Bind, refused());
    let why = "the API server refused to bind pod p: a webhook says no";
    assert_eq!(
        ask_to_bind(&mut world, "p", "n1"),
        BindAnswer::Refused(why.into())
    );
    world.answers_again(&To::Bind);
    assert_eq!(ask_to_bind(&mut world, "p", "n1"), BindAnswer::Bound);
}

#[test]
fn members_of_a_gang_and_pods_of_bad_queues_have_no_node() {
    let mut world = World::of((
        node("n1", 8),
        quota("a", 8),
        gang("g", 2).queue("a"),
        extended("g-0 g-1", 1).of("g"),
        extended("q", 1).with(|pod| pod.queue = Some("nowhere".into())),
    ));
    let why = "gang default/g is placed whole, for which its pods need the scheduling gate \
               gpu-batch.io/gang or the schedulerName of gpu-batch";
    assert_eq!(filter(&mut world, "g-0", "n1"), [hopeless(why)]);
    assert_eq!(
        ask_to_bind(&mut world, "g-0", "n1"),
        BindAnswer::Refused(why.into())
    );
    let answers = filter(&mut world, "q", "n1");
    let [NodeAnswer::Hopeless(why)] = answers.as_slice() else {
        panic!("its queue does not exist, and {answers:?}");
    };
    assert!(why.contains("nowhere"), "{why}");
    assert_eq!(world.binds, 0);
}

/// A gang of one with more pods than it needs: those that come later join the first.
#[test]
fn surplus_of_a_gang_stays_in_its_domain() {
    let mut world = World::of((
        topology("default", "rack"),
        node("n1 n2", 2).label("rack", "r1"),
        node("n3", 2).label("rack", "r2"),
        quota("a", 8),
        gang("g", 1).queue("a").required("rack"),
        extended("g-0 g-1", 2).of("g"),
    ));
    assert_eq!(ask_to_bind(&mut world, "g-0", "n1"), BindAnswer::Bound);
    let why = "outside of the domain in which the other members of its gang are";
    assert_eq!(
        filter(&mut world, "g-1", "n2 n3"),
        [NodeAnswer::Fits, hopeless(why)]
    );
    assert_eq!(
        ask_to_bind(&mut world, "g-1", "n3"),
        BindAnswer::Refused(why.into())
    );
}

#[test]
fn kube_scheduler_may_evict_whole_gangs_and_surplus_of_the_pods_queue() {
    let world = World::of((
        node("n1 n2", 8),
        quota("a b", 16),
        gang("g", 2).queue("a"),
        pod("g-0 g-1 g-2", 1).of("g").on("n1"),
        pod("s", 1).queue("a").on("n1"),
        pod("t", 1).queue("b").on("n1"),
        pod("f", 1).foreign().on("n1"),
        (extended("p", 8), pod("h", 8).foreign()),
    ));
    let may = |pod: &str, victims: &str| {
        let victims: Vec<Uid> = victims.split(' ').map(|name| uid(&world, name)).collect();
        let pod = uid(&world, pod);
        world.engine.allow_victims(pod, &[victims]).unwrap()[0]
    };
    for (victims, by_p, by_h) in [
        ("g-0", true, true),
        ("g-0 g-1", false, false),
        ("g-0 g-1 g-2", true, true),
        ("s", true, true),
        ("t", false, true),
        ("f", true, true),
    ] {
        assert_eq!(
            (may("p", victims), may("h", victims)),
            (by_p, by_h),
            "{victims}"
        );
    }
}

#[test]
fn what_cannot_be_answered_is_said_so() {
    let mut world = World::of((node("n1", 8), quota("a", 8), extended("p", 4)));
    let nobody = Uid(77);
    assert_eq!(
        world.engine.filter_nodes(nobody, &[]),
        Err(Unanswered::PodNotSeen)
    );
    assert_eq!(
        world.engine.bind_answer(nobody, "n1"),
        Err(Unanswered::PodNotSeen)
    );
    assert_eq!(ask_to_bind(&mut world, "p", "nowhere"), {
        let why = "gpu-batch has not seen the node";
        BindAnswer::Refused(why.into())
    });
    world.events.push(Event::BindAsked {
        pod: nobody,
        node: "n1".into(),
    });
    world.settle();
    assert_eq!(world.binds, 0);
    let mut unsynced = World::new();
    let answer = unsynced.engine.filter_nodes(nobody, &[]);
    assert_eq!(answer, Err(Unanswered::NotLeading));
}

/// The room that kube-scheduler makes for a pod by its own preemption is for that pod.
#[test]
fn a_nomination_by_kube_scheduler_holds_room_for_an_extended_pod() {
    let mut world = World::of((
        node("n1", 8),
        quota("a", 16),
        extended("p", 8).with(|pod| {
            pod.nominated = Some("n1".into());
            pod.priority = 10;
        }),
        pod("q", 8).queue("a"),
    ));
    assert_eq!(world.places("q"), "-");
    assert_eq!(ask_to_bind(&mut world, "p", "n1"), BindAnswer::Bound);
    world.end("p");
    world.settle();
    assert_eq!(world.places("q"), "n1");
}
