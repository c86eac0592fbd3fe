//! Whoever made a Queue, a Topology or a Node that is wrong hears of it in an event.

use super::world::{World, gang, node, pod, queue, topology};
use crate::facts::{NodeFacts, Problem, QueueFacts, QueueResource};
use alloc::{borrow::ToOwned, format, string::String, vec::Vec};

fn problem(field: &str) -> Vec<Problem> {
    Vec::from([Problem {
        field: field.into(),
        message: "is wrong".into(),
    }])
}

/// What the events on objects of a kind said, in order.
fn told(world: &World, kind: &str) -> Vec<String> {
    let told = world.told.iter().filter(|told| told.starts_with(kind));
    told.cloned().collect()
}

#[test]
fn a_queue_that_is_not_ready_says_why_once_for_each_fault() {
    let mut world = World::new();
    world.apply(queue("a").parent("b"));
    world.settle();
    let orphan = "Queue a: ParentNotFound: the parent b does not exist";
    assert_eq!(told(&world, "Queue"), [orphan]);
    world.apply(queue("z"));
    world.settle();
    assert_eq!(told(&world, "Queue"), [orphan]);

    world.pass(2_000);
    world.apply(queue("b").parent("a"));
    world.settle();
    let cycle = "Cycle: the queue is its own ancestor";
    let told_now = told(&world, "Queue");
    assert_eq!(told_now.len(), 3, "{told_now:?}");
    assert!(
        told_now[1].contains(cycle) && told_now[2].contains(cycle),
        "{told_now:?}"
    );

    // Mended and broken again is news again.
    world.pass(2_000);
    world.apply(queue("a"));
    world.settle();
    world.pass(2_000);
    world.apply(queue("a").parent("c"));
    world.settle();
    assert_eq!(
        told(&world, "Queue").len(),
        5,
        "{:?}",
        told(&world, "Queue")
    );
}

#[test]
fn a_topology_and_a_node_that_cannot_be_read_say_why_once() {
    let mut world = World::new();
    for _ in 0..2 {
        let mut bad = topology("default", &["rack"]);
        bad.problems = problem("spec.levels[0].name");
        world.apply(bad);
        let mut bad = node("n1", 8);
        bad.problems = problem("metadata.labels");
        world.apply(bad);
        world.settle();
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
fn a_node_that_loses_gpus_under_its_pods_says_so_and_gets_no_more() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(pod("a", 6).on("n1"));
    world.settle();
    assert_eq!(told(&world, "Node"), Vec::<String>::new());
    for _ in 0..2 {
        world.apply(node("n1", 4));
        world.apply(pod("b", 1));
        world.settle();
    }
    let message = "Node n1: Overcommitted: the pods here use 6 nvidia.com/gpu and 4 are \
                   allocatable; no more are placed here";
    assert_eq!(told(&world, "Node"), [message]);
    assert_eq!(world.node_of("b"), None);
    world.apply(node("n1", 8));
    world.settle();
    assert_eq!(world.node_of("b").as_deref(), Some("n1"));
}

/// A queue with a quota of 8 of a resource, or of a model of it.
fn promised(name: &str, resource: &str, product: Option<&str>) -> QueueFacts {
    let mut facts = queue(name);
    facts.resources.push(QueueResource {
        name: resource.into(),
        product: product.map(Into::into),
        quota: 8,
        limit: None,
        weight: 1,
    });
    facts
}

#[test]
fn a_queue_that_counts_what_no_node_has_says_so_until_a_node_has_it() {
    const GPU: &str = "nvidia.com/gpu";
    let mut world = World::new();
    world.apply(promised("fpga", "example.com/fpga", None));
    world.apply(promised("model", GPU, Some("H200")));
    world.apply(promised("right", GPU, Some("H100")));
    world.apply(queue("silent"));
    world.settle();
    assert_eq!(told(&world, "Queue"), Vec::<String>::new(), "without nodes");

    world.pass(2_000);
    world.apply(node("n1", 8).label("nvidia.com/gpu.product", "H100"));
    world.settle();
    let fpga =
        "Queue fpga: ResourceNotFound: no node has example.com/fpga; there is nvidia.com/gpu";
    let model = "Queue model: ResourceNotFound: no node has the model H200 of nvidia.com/gpu; did you \
                 mean H100?";
    assert_eq!(told(&world, "Queue"), [fpga, model]);
    // Nothing else is disturbed: what it names beside that is worth what it was.
    world.apply(pod("a", 8).queue("model"));
    world.settle();
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));

    world.pass(2_000);
    world.apply(node("n2", 8).label("nvidia.com/gpu.product", "H200"));
    world.settle();
    world.pass(2_000);
    world.lose_node("n2");
    world.settle();
    // It was there meanwhile, so it is news again.
    assert_eq!(told(&world, "Queue"), [fpga, model, model]);
}

#[test]
fn a_topology_with_a_level_that_no_node_has_says_so_until_a_node_has_it() {
    let mut world = World::new();
    world.apply(topology("default", &["zone", "rack"]));
    world.settle();
    assert_eq!(told(&world, "Topology"), Vec::<String>::new(), "no nodes");
    world.apply(node("n1", 8).label("rack", "r1"));
    world.settle();
    world.apply(node("n2", 8).label("rack", "r1"));
    world.settle();
    let zone = "Topology default: LabelNotFound: no node has the label zone of the level zone, so \
                every node is a domain of its own there and below";
    assert_eq!(told(&world, "Topology"), [zone]);
    world.apply(node("n1", 8).label("rack", "r1").label("zone", "a"));
    world.settle();
    world.apply(node("n1", 8).label("zone", "a"));
    world.apply(node("n2", 8).label("zone", "a"));
    world.settle();
    let rack = zone.replace(
        "the label zone of the level zone",
        "the label rack of the level rack",
    );
    assert_eq!(told(&world, "Topology"), [zone.to_owned(), rack.clone()]);
    // Where it is taken out there is nothing to say, and again something where it comes back.
    world.apply(topology("default", &["zone"]));
    world.settle();
    world.apply(topology("default", &["zone", "rack"]));
    world.settle();
    assert_eq!(
        told(&world, "Topology"),
        [zone.to_owned(), rack.clone(), rack]
    );
}

#[test]
fn a_quota_of_what_nobody_has_is_told_and_disturbs_nobody() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    let gpu = "nvidia.com/gpu";
    let dreams = queue("a").entry("example.com/tpu", None, (4, None), 1);
    world.apply(dreams.entry(gpu, Some("NVIDIA-Z9000"), (2, None), 1));
    world.apply(queue("b").entry(gpu, None, (8, None), 1));
    world.apply(gang("first", 1).queue("b"));
    world.apply(pod("first-0", 4).of("first"));
    world.apply(gang("second", 1).queue("a"));
    world.apply(pod("second-0", 4).of("second"));
    world.settle();
    assert!(world.node_of("first-0").is_some() && world.node_of("second-0").is_some());
    let message = "Queue a: ResourceNotFound: no node has example.com/tpu; there is \
                   nvidia.com/gpu; no node has the model NVIDIA-Z9000 of nvidia.com/gpu";
    assert_eq!(told(&world, "Queue"), [message]);

    // A node that has some takes the word back.
    world.pass(2_000);
    let model = node("n2", 8).label("nvidia.com/gpu.product", "NVIDIA-Z9000");
    world.apply(model);
    world.settle();
    let of_tpus = "Queue a: ResourceNotFound: no node has example.com/tpu; there is \
                   nvidia.com/gpu";
    assert_eq!(
        told(&world, "Queue").last().map(String::as_str),
        Some(of_tpus)
    );
}

#[test]
fn queues_of_no_weight_and_of_all_weight_are_served() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    let gpu = "nvidia.com/gpu";
    for (name, weight) in [("none", 0), ("all", u16::MAX)] {
        world.apply(queue(name).entry(gpu, None, (0, None), weight));
        for number in 0..8 {
            let pod = pod(&format!("{name}-{number}"), 1).queue(name);
            world.apply(pod);
        }
    }
    world.settle();
    let bound = |name: &str| {
        let pods = (0..8).filter(|n| world.node_of(&format!("{name}-{n}")).is_some());
        pods.count()
    };
    // A queue of weight 0 gets room that no other queue wants.
    assert_eq!((bound("none"), bound("all")), (0, 8));
    assert_eq!(told(&world, "Queue"), Vec::<String>::new());
    for number in 0..8 {
        world.end(&format!("all-{number}"));
    }
    world.settle();
    let bound = (0..8).filter(|n| world.node_of(&format!("none-{n}")).is_some());
    assert_eq!(bound.count(), 8);
}

#[test]
fn entries_for_several_models_of_a_resource_that_is_missing_say_so_once() {
    let mut world = World::new();
    for (name, gpus) in [("n0", 0), ("n1", 0)] {
        world.apply(node(name, gpus));
    }
    let models = queue("models").entry("nvidia.com/gpu", Some("A"), (1, None), 1);
    world.apply(models.entry("nvidia.com/gpu", Some("B"), (1, None), 1));
    world.settle();
    let message = "Queue models: ResourceNotFound: no node has nvidia.com/gpu";
    assert_eq!(told(&world, "Queue"), [message]);
}

#[test]
fn a_label_of_zeros_is_told_as_what_it_is() {
    let clique = |node: NodeFacts, value| node.label("clique", value);
    let zeros = "00000000-0000-0000-0000-000000000000.0";
    let mut world = World::new();
    world.apply(topology("default", &["clique"]));
    world.apply(node("n1", 8));
    world.settle();
    let absent = "Topology default: LabelNotFound: no node has the label clique of the level \
                  clique, so every node is a domain of its own there and below";
    assert_eq!(told(&world, "Topology"), [absent]);
    world.apply(clique(node("n1", 8), zeros));
    world.settle();
    let void = absent.replace(
        "no node has the label clique of the level clique",
        "the label clique of the level clique is empty or all zeros on every node that has it, \
         which means no domain",
    );
    assert_eq!(told(&world, "Topology"), [absent.to_owned(), void.clone()]);
    // A node that is gone says nothing any more.
    world.apply(clique(node("n2", 8), ""));
    world.apply(node("n1", 8));
    world.settle();
    world.lose_node("n2");
    world.settle();
    let told = told(&world, "Topology");
    assert_eq!(told, [absent.to_owned(), void, absent.to_owned()]);
}
