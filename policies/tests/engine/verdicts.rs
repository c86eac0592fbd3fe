//! What keeps a pod off each node, one by one.

use gpu_batch_policies::facts::{NodeFeature, Uid};
use gpu_batch_policies::report::Verdicts;
use gpu_batch_testing::{World, node, pod};

fn verdicts(world: &mut World, pod: &str) -> Option<Verdicts> {
    let uid = world.stored(pod).uid;
    world.engine.verdicts(uid)
}

#[test]
fn every_node_says_whether_it_takes_the_pod_and_why_not() {
    let mut world = World::of((
        node("cordoned", 8).cordoned(),
        node("free", 8),
        node("full", 8),
        node("small", 2),
        pod("busy", 8).on("full"),
        pod("large", 16),
        pod("p", 4).gate("example.com/later"),
    ));
    let of = |world: &mut World, pod: &str| {
        let verdicts = verdicts(world, pod).unwrap().into_iter();
        let words = verdicts.map(|(node, why)| format!("{node}: {}", why.unwrap_or_default()));
        words.collect::<Vec<_>>()
    };
    let expected = [
        "cordoned: were unschedulable",
        "free: ",
        "full: had insufficient nvidia.com/gpu",
        "small: had insufficient nvidia.com/gpu",
    ];
    assert_eq!(of(&mut world, "p"), expected);
    // Asking has changed nothing, and the answer follows the nodes.
    world.end("busy");
    world.then(node("small", 4));
    assert_eq!(of(&mut world, "p")[2..], ["full: ", "small: "]);
    assert!(
        of(&mut world, "large")
            .iter()
            .all(|verdict| !verdict.ends_with(": "))
    );
    assert_eq!(world.engine.verdicts(Uid(42)), None);
}

#[test]
fn a_pod_waits_until_a_node_declares_the_feature_that_it_needs() {
    let needed = NodeFeature::RestartAllContainers;
    let pods = pod("p", 1).shape(|shape| shape.features.push(needed));
    let mut world = World::of((node("old", 8), pods));
    world.settle();
    let expected = "didn't declare the feature RestartAllContainersOnContainerExits";
    let why = verdicts(&mut world, "p").unwrap().remove("old").unwrap();
    assert_eq!(why.as_deref(), Some(expected));
    world.then(node("old", 8).with(|node| node.features.push(needed)));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("old"));
}
