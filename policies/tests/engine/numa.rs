//! Nodes whose kubelets reject pods that they cannot align on NUMA nodes.

use gpu_batch_policies::event::ObjectKey;
use gpu_batch_policies::facts::{
    AlignmentPolicy, ContainerRole, NodeFacts, NumaFacts, PodFacts, PodPhase, Problem,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::Forecast;
use gpu_batch_testing::{Sketch, World, gang, node, numa, pod, quota};

/// A node of eight GPUs in two NUMA nodes, of which so many are in use.
fn halves(name: &str, used: [u64; 2]) -> (Sketch<NodeFacts>, Sketch<NumaFacts>) {
    (node(name, 8), numa(name, &[(4, used[0]), (4, used[1])]))
}

/// Pods of one container with so many GPUs.
fn one(names: &str, gpus: u64) -> Sketch<PodFacts> {
    pod(names, gpus).aligned(&[gpus])
}

#[test]
fn a_gang_goes_to_the_node_whose_numa_node_has_room() {
    let mut world = World::of((
        halves("n1", [2, 2]),
        halves("n2", [0, 4]),
        // What the objects say is in use.
        one("x y", 2).on("n1"),
        one("z", 4).on("n2"),
        gang("g", 1),
        one("a", 4).of("g"),
    ));
    assert_eq!(world.places("a"), "n2");
    world.then(one("b", 4));
    assert_eq!(world.reason("pod/b"), Some(Reason::DoesNotFit));
    let message = world.message("pod/b");
    let refusal = "1 didn't have 4 nvidia.com/gpu free in a single NUMA node";
    assert!(message.contains(refusal), "{message}");
    let explained = world.explain("pod/b");
    assert!(format!("{explained:?}").contains("free in a single NUMA node"));
    assert_eq!(world.engine.audit(), Vec::<String>::new());
}

#[test]
fn members_on_one_node_share_its_numa_nodes() {
    let world = World::of((halves("n1", [0, 0]), gang("g", 2), one("a b", 4).of("g")));
    assert_eq!(world.places("a b"), "n1 n1");
    // Six of eight are enough for two pods of three, and not for a third one of two.
    let mut world = World::of((halves("n1", [0, 0]), gang("g", 3), one("a b", 3).of("g")));
    world.then(one("c", 2).of("g"));
    assert_eq!(world.places("a b c"), "- - -");
    // Of members that differ, counting does not prove it.
    assert_eq!(world.reason("g"), Some(Reason::NotFoundWithinBound));
    world.then(halves("n2", [0, 0]));
    assert_eq!(world.binds, 3);
    assert_eq!(world.engine.audit(), Vec::<String>::new());
}

#[test]
fn what_no_numa_node_could_ever_hold_goes_elsewhere() {
    let mut world = World::of((halves("n1", [0, 0]), one("a", 5)));
    let message = world.message("pod/a");
    let refusal = "didn't have 5 nvidia.com/gpu in a single NUMA node";
    assert!(message.contains(refusal), "{message}");
    // Two containers may be in two NUMA nodes, if the kubelet aligns each by itself.
    world.then(pod("b", 6).aligned(&[3, 3]));
    assert_eq!(world.places("b"), "n1");
    world.delete("b");
    world.then(numa("n1", &[(4, 0), (4, 0)]).whole_pods());
    world.then(pod("c", 6).aligned(&[3, 3]));
    assert_eq!(world.places("c"), "-");
    let message = world.message("pod/c");
    assert!(
        message.contains("6 nvidia.com/gpu in a single"),
        "{message}"
    );
}

#[test]
fn policies_reject_what_kubelets_reject() {
    let place = |policy: AlignmentPolicy, used: [u64; 2], gpus: u64| {
        let mut world = World::of((node("n1", 8), one("x", used[0]).on("n1")));
        world.apply(one("y", used[1]).on("n1"));
        let facts = numa("n1", &[(4, used[0]), (4, used[1])]).policy(policy);
        world.then(facts);
        world.then(one("a", gpus));
        world.places("a")
    };
    use AlignmentPolicy::{BestEffort, None, Restricted, SingleCell};
    for (policy, used, gpus, expected) in [
        (SingleCell, [0, 1], 4, "n1"),
        (SingleCell, [1, 1], 4, "-"),
        (SingleCell, [0, 0], 5, "-"),
        (Restricted, [1, 1], 4, "-"),
        (Restricted, [0, 0], 5, "n1"),
        (Restricted, [1, 1], 6, "n1"),
        (BestEffort, [1, 1], 4, "n1"),
        (None, [1, 1], 4, "n1"),
    ] {
        assert_eq!(
            place(policy, used, gpus),
            expected,
            "{policy:?} {used:?} {gpus}"
        );
    }
}

#[test]
fn containers_get_again_what_init_containers_had() {
    let with_init = |role| {
        let pods = pod("a", 4).aligned_as(role, &[4]).aligned(&[4]);
        World::of((halves("n1", [0, 1]), one("x", 1).on("n1"), pods)).places("a")
    };
    assert_eq!(with_init(ContainerRole::Init), "n1");
    // A sidecar keeps what it has.
    assert_eq!(with_init(ContainerRole::Sidecar), "-");
}

#[test]
fn resources_that_no_numa_node_lists_are_not_aligned() {
    let with_cpu = |pods: Sketch<PodFacts>, cpu_milli: u64| {
        pods.shape(move |shape| shape.aligned[0].amounts.push(("cpu".into(), cpu_milli)))
            .shape(|shape| shape.aligned[0].amounts.sort())
    };
    let mut world = World::of((halves("n1", [0, 0]), with_cpu(one("a", 1), 60_000)));
    assert_eq!(world.places("a"), "n1");
    world.then(numa("n1", &[(4, 1), (4, 0)]).each_has("cpu", 50_000));
    world.then(with_cpu(one("b", 1), 60_000));
    let message = world.message("pod/b");
    let refusal = "60 cpu and 1 nvidia.com/gpu in a single NUMA node";
    assert!(message.contains(refusal), "{message}");
}

#[test]
fn a_new_object_says_anew_what_is_free() {
    // Nobody knows who has what is in use.
    let mut world = World::of((halves("n1", [3, 3]), one("a", 2)));
    assert_eq!(world.places("a"), "-");
    world.then(numa("n1", &[(4, 3), (4, 2)]));
    assert_eq!(world.places("a"), "n1");
    // The next object counts the pod itself, which is not taken off twice.
    world.then(numa("n1", &[(4, 3), (4, 4)]));
    world.then(numa("n1", &[(4, 0), (4, 4)]));
    world.then(one("b", 4));
    assert_eq!(world.places("b"), "n1");
    world.forget(ObjectKey::Numa("n1".into()));
    world.delete("b");
    world.then(one("c", 6));
    assert_eq!(world.places("c"), "n1");
}

#[test]
fn an_object_may_come_before_its_node_and_its_pods() {
    let objects = (
        numa("n1", &[(4, 0), (4, 4)]),
        node("n1", 8),
        one("x", 4).on("n1"),
    );
    let mut world = World::of(objects);
    world.then(one("a", 4));
    assert_eq!(world.places("a"), "n1");
    // What ends is free again where it was, before the exporter looks.
    world.end("x");
    world.then(one("b", 4));
    assert_eq!(world.places("b"), "n1");
    world.take_over();
    assert_eq!(world.engine.audit(), Vec::<String>::new());
}

#[test]
fn victims_leave_room_in_the_numa_node_that_they_were_in() {
    let mut world = World::of((quota("left", 4), quota("right", 4), halves("n1", [0, 0])));
    for name in ["a", "b", "c", "d"] {
        world.then(one(name, 2).queue("left"));
    }
    assert_eq!(world.binds, 4);
    // One of each NUMA node would be as cheap, and not enough.
    world.then(one("e", 4).queue("right"));
    world.run(60_000);
    assert_eq!(world.places("e"), "n1");
    assert_eq!(world.engine.audit(), Vec::<String>::new());
}

#[test]
fn objects_that_contradict_the_node_are_told_and_ignored() {
    let mut world = World::of((node("n1", 6), numa("n1", &[(4, 4), (4, 4)]), one("a", 6)));
    assert_eq!(world.places("a"), "n1");
    assert_eq!(
        world.told_of("NodeResourceTopology"),
        [
            "NodeResourceTopology n1: InvalidSpec: zones: the zones have 8 nvidia.com/gpu and the \
          node has 6; the zones of the node are ignored"
        ]
    );
    // Once the node has as many, they count.
    world.then(node("n1", 8));
    world.then(one("b", 2));
    assert_eq!(world.places("b"), "-");
    let unread = numa("n1", &[(4, 4), (4, 4)]).with(|facts| {
        facts.problems = vec![Problem {
            field: "zones[0].name".into(),
            message: "is wrong".into(),
        }];
    });
    world.then(unread);
    assert_eq!(world.places("b"), "n1");
    let told = world.told_of("NodeResourceTopology");
    assert_eq!(
        told.last(),
        Some(&"NodeResourceTopology n1: InvalidSpec: zones[0].name: is wrong")
    );
}

#[test]
fn a_pod_that_its_kubelet_rejects_is_counted() {
    let mut world = World::of((halves("n1", [0, 0]), node("n2", 8), one("a", 4)));
    world.then(one("b", 5));
    assert_eq!(world.places("a b"), "n1 n2");
    let reject = |pod: &mut PodFacts| {
        pod.phase = PodPhase::Failed;
        pod.is_misaligned = true;
    };
    // Nothing was foreseen of n2.
    world.change("a b", reject);
    world.settle();
    let counted: Vec<Forecast> = world.engine.take_forecasts().collect();
    assert_eq!(counted, [Forecast::Misaligned]);
    assert_eq!(world.engine.take_forecasts().count(), 0);
    assert_eq!(world.engine.audit(), Vec::<String>::new());
}
