//! An event tells the user who made a Queue, a Topology or a Node that it is wrong.

use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{DisruptionBudgetFacts, NodeFacts, Problem, QueueFacts, Uid};
use gpu_batch_testing::{GPU, Sketch, World, gang, names, node, pod, queue, topology};

fn problem(field: &str) -> Vec<Problem> {
    Vec::from([Problem {
        field: field.into(),
        message: "is wrong".into(),
    }])
}

#[test]
fn a_queue_that_is_not_ready_says_why_once_for_each_fault() {
    let mut world = World::of(queue("a").parent("b"));
    let orphan = "Queue a: ParentNotFound: the parent b does not exist";
    assert_eq!(world.told_of("Queue"), [orphan]);
    world.then(queue("z"));
    assert_eq!(world.told_of("Queue"), [orphan]);

    world.pass(2_000);
    world.then(queue("b").parent("a"));
    let cycle = "Cycle: the queue is its own ancestor";
    let told_now = world.told_of("Queue");
    assert_eq!(told_now.len(), 3, "{told_now:?}");
    assert!(
        told_now[1].contains(cycle) && told_now[2].contains(cycle),
        "{told_now:?}"
    );

    // Mended and broken again is news again.
    world.pass(2_000);
    world.then(queue("a"));
    world.pass(2_000);
    world.then(queue("a").parent("c"));
    assert_eq!(
        world.told_of("Queue").len(),
        5,
        "{:?}",
        world.told_of("Queue")
    );
}

#[test]
fn a_topology_and_a_node_that_cannot_be_read_say_why_once() {
    let mut world = World::new();
    for _ in 0..2 {
        world.then((
            topology("default", "rack").with(|bad| bad.problems = problem("spec.levels[0].name")),
            node("n1", 8).with(|bad| bad.problems = problem("metadata.labels")),
        ));
    }
    assert_eq!(
        world.told,
        [
            "Node n1: InvalidSpec: metadata.labels: is wrong",
            "Topology default: InvalidSpec: spec.levels[0].name: is wrong",
        ]
    );
}

#[test]
fn a_disruption_budget_that_cannot_be_read_says_why_once_and_holds_nothing_up() {
    let mut world = World::of((node("n1", 8), pod("a", 6)));
    for _ in 0..2 {
        world.apply(Object::DisruptionBudget(DisruptionBudgetFacts {
            uid: Uid(1 << 70),
            namespace: "vision".into(),
            name: "b".into(),
            selector: None,
            allowed: 0,
            problems: problem("spec.selector"),
        }));
        world.step();
    }
    let told = world.told_of("PodDisruptionBudget");
    assert_eq!(
        told,
        ["PodDisruptionBudget b: InvalidSpec: spec.selector: is wrong"]
    );
    assert_eq!(world.places("a"), "n1");
}

#[test]
fn a_node_that_loses_gpus_under_its_pods_says_so_and_gets_no_more() {
    let mut world = World::of((node("n1", 8), pod("a", 6).on("n1")));
    assert_eq!(world.told_of("Node"), Vec::<&str>::new());
    for _ in 0..2 {
        world.then((node("n1", 4), pod("b", 1)));
    }
    let message = "Node n1: Overcommitted: the pods here use 6 nvidia.com/gpu and 4 are \
                   allocatable; no more are placed here";
    assert_eq!(world.told_of("Node"), [message]);
    assert_eq!(world.places("b"), "-");
    world.then(node("n1", 8));
    assert_eq!(world.places("b"), "n1");
}

/// A queue with a quota of 8 of a resource, or of a model of it.
fn promised(name: &str, resource: &str, product: Option<&str>) -> Sketch<QueueFacts> {
    queue(name).entry(resource, product, (8, None), 1)
}

#[test]
fn a_queue_that_counts_what_no_node_has_says_so_until_a_node_has_it() {
    let mut world = World::of((
        promised("fpga", "example.com/fpga", None),
        promised("model", GPU, Some("H200")),
        promised("right", GPU, Some("H100")),
        queue("silent"),
    ));
    assert_eq!(world.told_of("Queue"), Vec::<&str>::new(), "without nodes");

    world.pass(2_000);
    world.then(node("n1", 8).model("H100"));
    let fpga =
        "Queue fpga: ResourceNotFound: no node has example.com/fpga; there is nvidia.com/gpu";
    let model = "Queue model: ResourceNotFound: no node has the model H200 of nvidia.com/gpu; did you \
                 mean H100?";
    assert_eq!(world.told_of("Queue"), [fpga, model]);
    // Nothing else is disturbed: what it names beside that is worth what it was.
    world.then(pod("a", 8).queue("model"));
    assert_eq!(world.places("a"), "n1");

    world.pass(2_000);
    world.then(node("n2", 8).model("H200"));
    world.pass(2_000);
    world.lose_node("n2");
    world.settle();
    // It was there meanwhile, so it is news again.
    assert_eq!(world.told_of("Queue"), [fpga, model, model]);
}

#[test]
fn a_topology_with_a_level_that_no_node_has_says_so_until_a_node_has_it() {
    let mut world = World::of(topology("default", "zone rack"));
    assert_eq!(world.told_of("Topology"), Vec::<&str>::new(), "no nodes");
    world.then(node("n1", 8).label("rack", "r1"));
    world.then(node("n2", 8).label("rack", "r1"));
    let zone = "Topology default: LabelNotFound: no node has the label zone of the level zone, so \
                every node is a domain of its own there and below";
    assert_eq!(world.told_of("Topology"), [zone]);
    world.then(node("n1", 8).label("rack", "r1").label("zone", "a"));
    world.then((
        node("n1", 8).label("zone", "a"),
        node("n2", 8).label("zone", "a"),
    ));
    let rack = zone.replace(
        "the label zone of the level zone",
        "the label rack of the level rack",
    );
    assert_eq!(world.told_of("Topology"), [zone, &rack]);
    // Where it is taken out there is nothing to say, and again something where it comes back.
    world.then(topology("default", "zone"));
    world.then(topology("default", "zone rack"));
    assert_eq!(world.told_of("Topology"), [zone, &rack, &rack]);
}

#[test]
fn a_quota_of_what_nobody_has_is_told_and_disturbs_nobody() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    let dreams = queue("a").entry("example.com/tpu", None, (4, None), 1);
    world.then((
        dreams.entry(GPU, Some("NVIDIA-Z9000"), (2, None), 1),
        queue("b").entry(GPU, None, (8, None), 1),
        gang("first", 1).queue("b"),
        pod("first-0", 4).of("first"),
        gang("second", 1).queue("a"),
        pod("second-0", 4).of("second"),
    ));
    assert!(world.is_placed("first-0") && world.is_placed("second-0"));
    let message = "Queue a: ResourceNotFound: no node has example.com/tpu; there is \
                   nvidia.com/gpu; no node has the model NVIDIA-Z9000 of nvidia.com/gpu";
    assert_eq!(world.told_of("Queue"), [message]);

    // A node that has some takes the word back.
    world.pass(2_000);
    world.then(node("n2", 8).model("NVIDIA-Z9000"));
    let of_tpus = "Queue a: ResourceNotFound: no node has example.com/tpu; there is \
                   nvidia.com/gpu";
    assert_eq!(world.told_of("Queue").last().copied(), Some(of_tpus));
}

#[test]
fn queues_of_no_weight_and_of_all_weight_are_served() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    for (name, weight) in [("none", 0), ("all", u16::MAX)] {
        world.apply(queue(name).entry(GPU, None, (0, None), weight));
        world.apply(pod(&names(&format!("{name}-"), 8), 1).queue(name));
    }
    world.settle();
    let bound = |world: &World, stem: &str| world.nodes_of(&names(stem, 8)).len();
    // A queue of weight 0 gets room that no other queue wants.
    assert_eq!((bound(&world, "none-"), bound(&world, "all-")), (0, 8));
    assert_eq!(world.told_of("Queue"), Vec::<&str>::new());
    world.end(&names("all-", 8));
    world.settle();
    assert_eq!(bound(&world, "none-"), 8);
}

#[test]
fn entries_for_several_models_of_a_resource_that_is_missing_say_so_once() {
    let mut world = World::new();
    world.apply(node("n0 n1", 0));
    let models = queue("models").entry("nvidia.com/gpu", Some("A"), (1, None), 1);
    world.then(models.entry("nvidia.com/gpu", Some("B"), (1, None), 1));
    let message = "Queue models: ResourceNotFound: no node has nvidia.com/gpu";
    assert_eq!(world.told_of("Queue"), [message]);
}

#[test]
fn a_label_of_zeros_is_told_as_what_it_is() {
    let clique = |node: Sketch<NodeFacts>, value| node.label("clique", value);
    let zeros = "00000000-0000-0000-0000-000000000000.0";
    let mut world = World::of((topology("default", "clique"), node("n1", 8)));
    let absent = "Topology default: LabelNotFound: no node has the label clique of the level \
                  clique, so every node is a domain of its own there and below";
    assert_eq!(world.told_of("Topology"), [absent]);
    world.then(clique(node("n1", 8), zeros));
    let void = absent.replace(
        "no node has the label clique of the level clique",
        "the label clique of the level clique is empty or all zeros on every node that has it, \
         which means no domain",
    );
    assert_eq!(world.told_of("Topology"), [absent, &void]);
    // A node that is gone says nothing any more.
    world.then((clique(node("n2", 8), ""), node("n1", 8)));
    world.lose_node("n2");
    world.settle();
    assert_eq!(world.told_of("Topology"), [absent, &void, absent]);
}
