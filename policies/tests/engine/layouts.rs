//! Which idle nodes would hold members if their cards were cut in another way.

use gpu_batch_policies::facts::{NodeFacts, PodFacts};
use gpu_batch_testing::{GPU, Sketch, World, gang, names, node, pod};

const LARGE: &str = "nvidia.com/mig-3g.40gb";
const SMALL: &str = "nvidia.com/mig-1g.10gb";

/// A node of 8 H100 cards that offers this much of a resource, and whose cards the GPU operator
/// cuts.
fn cut(name: &str, config: &str, resource: &str, amount: u64) -> Sketch<NodeFacts> {
    node(name, 0)
        .has(resource, amount)
        .label("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3")
        .label("nvidia.com/gpu.count", "8")
        .label("nvidia.com/mig.strategy", "mixed")
        .label("nvidia.com/mig.config", config)
}

fn small(name: &str) -> Sketch<NodeFacts> {
    cut(name, "all-1g.10gb", SMALL, 56)
}

/// The node with another value of a label.
fn relabelled(node: Sketch<NodeFacts>, key: &str, value: &str) -> Sketch<NodeFacts> {
    let others = node.with(|node| node.labels.retain(|(known, _)| **known != *key));
    others.label(key, value)
}

/// Pods that ask for one device each.
fn device(names: &str, resource: &str) -> Sketch<PodFacts> {
    pod(names, 0).with_one(resource)
}

/// The remedies about MIG layouts in the explanation of a waiting pod.
fn advice(world: &mut World, pod: &str) -> Vec<String> {
    let remedies = world.explain(&format!("pod/{pod}")).remedies;
    let of_layouts = remedies.into_iter().filter(|it| it.contains("MIG layout"));
    of_layouts.collect()
}

#[test]
fn an_idle_node_is_named_with_the_layout_that_would_help() {
    let mut world = World::of((small("n"), device("p", LARGE)));
    assert_eq!(
        advice(&mut world, "p"),
        [
            "another MIG layout of node n, whose GPUs nobody uses or waits for: as all-3g.40gb it \
             would hold 16 members (kubectl label node n nvidia.com/mig.config=all-3g.40gb \
             --overwrite)"
        ]
    );
    // Once the label is followed, the pod runs.
    world.then(cut("n", "all-3g.40gb", LARGE, 16));
    assert_eq!(world.places("p"), "n");
}

#[test]
fn whole_cards_and_devices_are_offered_to_each_other() {
    let mut world = World::of((small("n"), pod("whole", 8)));
    let said = advice(&mut world, "whole");
    assert!(
        said[0].contains("as all-disabled it would hold 1 member "),
        "{said:?}"
    );
    let mut world = World::of((cut("n", "all-disabled", GPU, 8), device("p", SMALL)));
    let said = advice(&mut world, "p");
    assert!(
        said[0].contains("as all-1g.10gb it would hold 56 members"),
        "{said:?}"
    );
}

#[test]
fn no_node_is_named_that_is_used_or_waited_for() {
    // A pod runs on a device.
    let mut world = World::of((small("n"), device("small", SMALL)));
    world.then(device("p", LARGE));
    assert_eq!(world.places("small"), "n");
    assert!(advice(&mut world, "p").is_empty());
    // A pod waits for such a device that is more than a node has.
    let two = small("n").label("pool", "a");
    let elsewhere = device("small", SMALL).shape(|shape| {
        shape.node_selector = vec![("pool".into(), "b".into())];
    });
    let mut world = World::of((two, elsewhere, device("p", LARGE)));
    assert!(advice(&mut world, "p").is_empty());
    // A node that is cordoned, one that another layout does not let members use, and one whose
    // layout is that already, but whose devices are not offered yet.
    let nodes = (
        small("cordoned").cordoned(),
        relabelled(
            small("other"),
            "nvidia.com/gpu.product",
            "NVIDIA-A100-SXM4-40GB",
        ),
        cut("pending", "all-3g.40gb", SMALL, 56),
        relabelled(small("single"), "nvidia.com/mig.strategy", "single"),
        relabelled(small("uncounted"), "nvidia.com/gpu.count", "many"),
    );
    let mut world = World::of((nodes, device("p", LARGE)));
    assert!(advice(&mut world, "p").is_empty());
}

#[test]
fn no_more_nodes_are_named_than_are_needed() {
    let nodes = names("n", 5);
    let mut world = World::of((
        small(&nodes),
        gang("g", 20),
        device(&names("p", 20), LARGE).of("g"),
    ));
    let said = world.explain("g").remedies;
    let of_layouts = |said: &[String]| said.iter().filter(|it| it.contains("MIG layout")).count();
    assert_eq!(of_layouts(&said), 2, "16 devices on each: {said:?}");
    let mut world = World::of((
        small(&nodes),
        gang("g", 80),
        device(&names("p", 80), LARGE).of("g"),
    ));
    let said = world.explain("g").remedies;
    assert_eq!(of_layouts(&said), 3, "three are named: {said:?}");
}

#[test]
fn a_node_that_the_gpu_operator_does_not_cut_is_named_without_a_command() {
    let by_hand = small("n").with(|node| {
        node.labels
            .retain(|(key, _)| &**key != "nvidia.com/mig.config");
    });
    let mut world = World::of((by_hand, device("p", LARGE)));
    let said = advice(&mut world, "p");
    assert!(
        said[0].ends_with("as all-3g.40gb it would hold 16 members"),
        "{said:?}"
    );
}
