//! Whose placement counts, what keeps away from GPU nodes, and what stays whole.

use gpu_batch_policies::facts::{NodeFacts, Placement, PlacementChoice};
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{Sketch, World, gang, names, node, pod, queue, topology};

const OFFERED: [Placement; 4] = [
    Placement::Binpack,
    Placement::Spread,
    Placement::BestFit,
    Placement::Fragmentation,
];

fn choice(gpu: Option<Placement>, cpu: Option<Placement>) -> PlacementChoice {
    PlacementChoice { gpu, cpu }
}

/// A node of so many CPUs and no GPU.
fn plain(name: &str, cpus: u64) -> Sketch<NodeFacts> {
    node(name, 0).has("cpu", cpus * 1_000)
}

/// A world in which pods with GPUs are placed so, unless they say otherwise.
fn with(gpu_placement: Placement) -> World {
    World::with(Settings {
        gpu_placement,
        ..Settings::default()
    })
}

/// Where a pod with so many GPUs is put by what gang, leaf, parent and configuration say; one node
/// of its sort is used a little already.
fn node_of(gpus: u64, says: [PlacementChoice; 4]) -> String {
    let [of_gang, of_leaf, of_parent, configured] = says;
    let mut world = World::with(Settings {
        gpu_placement: configured.gpu.unwrap(),
        cpu_placement: configured.cpu.unwrap(),
        ..Settings::default()
    });
    world.then((
        node("used whole", if gpus > 0 { 8 } else { 0 }),
        pod("there", gpus).foreign().on("used"),
        queue("parent").with(|queue| queue.placement = of_parent),
        queue("leaf")
            .parent("parent")
            .with(|queue| queue.placement = of_leaf),
        gang("g", 1)
            .queue("leaf")
            .with(|gang| gang.placement = of_gang),
        pod("a", gpus).of("g"),
    ));
    world.places("a")
}

#[test]
fn the_gang_goes_before_its_queue_before_those_above_before_the_configuration() {
    let none = choice(None, None);
    for gpus in [0, 1] {
        // A placement for the other sort of pods counts for nothing.
        let said = |own, other| {
            if gpus > 0 {
                choice(own, other)
            } else {
                choice(other, own)
            }
        };
        let spread = said(Some(Placement::Spread), Some(Placement::Binpack));
        let pack = said(Some(Placement::Binpack), Some(Placement::Spread));
        let other = said(None, Some(Placement::Spread));
        let cases = [
            ([none, none, none, pack], "used"),
            ([none, none, none, spread], "whole"),
            ([none, none, spread, pack], "whole"),
            ([none, pack, spread, spread], "used"),
            ([spread, pack, pack, pack], "whole"),
            ([other, other, other, pack], "used"),
            ([other, other, spread, pack], "whole"),
        ];
        for (says, expected) in cases {
            assert_eq!(node_of(gpus, says), expected, "{gpus}: {says:?}");
        }
    }
}

#[test]
fn work_without_gpus_keeps_away_from_gpu_nodes_while_there_is_other_room() {
    for placement in OFFERED {
        let mut world = World::with(Settings {
            cpu_placement: placement,
            ..Settings::default()
        });
        world.apply(topology("default", "rack"));
        // The rack of the GPU nodes is the only one that has room for all of a gang.
        world.apply((
            node("g1 g2", 8).label("rack", "r1"),
            plain("c1", 4).label("rack", "r2"),
            plain("c2", 4).label("rack", "r3"),
        ));
        // Scores like full GPU nodes best.
        world.apply((
            pod("train", 8).foreign().on("g1"),
            pod("single", 0),
            gang("g", 6),
        ));
        world.then(pod(&names("m", 6), 0).of("g"));
        let nodes = world.nodes_of(&names("m", 6));
        assert!(
            nodes.iter().all(|node| node.starts_with('c')),
            "{placement:?}: {nodes:?}"
        );
        let single = world.places("single");
        assert!(single.starts_with('c'), "{placement:?}: {single}");
        // Where there is no other room, GPU nodes are better than waiting.
        world.then(pod("last", 0));
        world.then((gang("h", 2), pod("h0 h1", 0).of("h")));
        let nodes = world.nodes_of("h0 h1");
        assert!(
            nodes.iter().all(|node| node.starts_with('g')),
            "{placement:?}: {nodes:?}"
        );
        assert!(world.is_placed("last"), "{placement:?}");
    }
}

#[test]
fn free_nodes_and_domains_stay_whole_for_those_who_need_them() {
    for placement in [
        Placement::Binpack,
        Placement::BestFit,
        Placement::Fragmentation,
    ] {
        let mut world = with(placement);
        world.apply(topology("default", "rack"));
        for (name, rack) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
            world.apply(node(name, 8).label("rack", rack));
        }
        for number in 0..6 {
            world.then(pod(&format!("small{number}"), 1));
        }
        let mut nodes = world.nodes_of(&names("small", 6));
        nodes.dedup();
        assert_eq!(nodes.len(), 1, "{placement:?}: {nodes:?}");
        // A pod of a whole node goes beside them, so that the other rack is left for a gang.
        world.then(pod("large", 8));
        world.then((gang("g", 2).required("rack"), pod("m0 m1", 8).of("g")));
        assert_eq!(world.nodes_of("m0 m1").len(), 2, "{placement:?}");
    }
}

#[test]
fn of_equal_nodes_the_one_in_the_fullest_domain_is_taken() {
    for placement in [
        Placement::Binpack,
        Placement::BestFit,
        Placement::Fragmentation,
    ] {
        let mut world = with(placement);
        world.apply(topology("default", "block rack"));
        for rack in ["a", "b", "c"] {
            let nodes = node(&names(rack, 4), 8).label("block", "x");
            world.apply(nodes.label("rack", rack));
        }
        // Names alone would say a0. Three are free in the second rack, and one in the third.
        world.apply(pod("there-b", 8).foreign().on("b0"));
        for number in 0..3 {
            let name = format!("there-c{number}");
            world.apply(pod(&name, 8).foreign().on(&format!("c{number}")));
        }
        for (number, (gpus, expected)) in [(8, "c3"), (1, "b1"), (8, "b2"), (8, "b3"), (8, "a0")]
            .into_iter()
            .enumerate()
        {
            let name = format!("p{number}");
            world.then(pod(&name, gpus));
            assert_eq!(world.places(&name), expected, "{placement:?}");
        }
        // What ends makes its domain less full; a node that is cordoned counts as in use.
        world.delete("p4 there-c0 there-c1 p2");
        world.apply(
            node("c0", 8)
                .label("block", "x")
                .label("rack", "c")
                .cordoned(),
        );
        for (name, expected) in [("q0", "b2"), ("q1", "c1")] {
            world.then(pod(name, 8));
            assert_eq!(world.places(name), expected, "{placement:?}");
        }
    }
}

#[test]
fn pods_go_past_nodes_of_a_model_that_a_limit_keeps_them_from() {
    let mut world = World::new();
    // Binpack would fill the smaller node first.
    world.apply((
        node("n1", 8).model("H100"),
        node("n2", 16).model("A100"),
        queue("team").limit_of("H100", 4),
    ));
    for name in ["a", "b"] {
        world.then(pod(name, 2).queue("team"));
        assert_eq!(world.places(name), "n1");
    }
    // The limit is reached: single pods, and gangs of one shape.
    world.then(pod("c", 1).queue("team"));
    assert_eq!(world.places("c"), "n2");
    world.delete("b");
    world.settle();
    world.then((gang("g", 2).queue("team"), pod("d e", 2).of("g")));
    // Both fit on the first node, and one of them is allowed there.
    assert_eq!(world.nodes_of("d e"), ["n1", "n2"]);
}

#[test]
fn single_pods_go_past_such_nodes_with_every_placement() {
    for placement in OFFERED {
        let mut world = with(placement);
        for (name, product) in [("n1", "H100"), ("n2", "A100")] {
            world.apply(node(name, 8).model(product));
        }
        world.apply(queue("team").limit_of("H100", 3));
        let names = names("p", 6);
        for name in names.split(' ') {
            world.then(pod(name, 2).queue("team"));
        }
        let places = world.places(&names);
        let on = |node| places.split(' ').filter(|place| *place == node).count();
        // The limit allows one, and the other node has room for four.
        assert_eq!((on("n1"), on("n2")), (1, 4), "{placement:?}");
    }
}

#[test]
fn a_shape_that_comes_later_knows_what_has_become_of_the_nodes_since() {
    let mut world = World::of((node("n1 n2", 8), pod("a", 8)));
    assert_eq!(world.places("a"), "n1");
    world.then((node("n2", 8).cordoned(), node("n3", 2), pod("b", 4)));
    assert_eq!(world.places("b"), "-");
    let message = world.message("pod/b");
    assert!(message.contains("1 was unschedulable"), "{message}");
    world.then(node("n2", 8));
    assert_eq!(world.places("b"), "n2");
}
