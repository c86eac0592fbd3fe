//! Whose placement counts, what keeps away from GPU nodes, and what stays whole.

use super::world::{WithTopology, World, gang, node, pod, queue, topology};
use crate::facts::{NodeFacts, Placement, PlacementChoice};
use crate::settings::Settings;
use alloc::{boxed::Box, format, vec::Vec};

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
fn plain(name: &str, cpus: u64) -> NodeFacts {
    let mut plain = node(name, 0);
    for (resource, amount) in plain.allocatable.iter_mut() {
        if &**resource == "cpu" {
            *amount = cpus * 1_000;
        }
    }
    plain
}

/// Where a pod with so many GPUs is put by what gang, leaf, parent and configuration say; one node
/// of its sort is used a little already.
fn node_of(gpus: u64, says: [PlacementChoice; 4]) -> Box<str> {
    let [of_gang, of_leaf, of_parent, configured] = says;
    let mut world = World::with(Settings {
        gpu_placement: configured.gpu.unwrap(),
        cpu_placement: configured.cpu.unwrap(),
        ..Settings::default()
    });
    for name in ["used", "whole"] {
        world.apply(node(name, if gpus > 0 { 8 } else { 0 }));
    }
    world.apply(pod("there", gpus).foreign().on("used"));
    let mut parent = queue("parent");
    parent.placement = of_parent;
    world.apply(parent);
    let mut leaf = queue("leaf").parent("parent");
    leaf.placement = of_leaf;
    world.apply(leaf);
    let mut group = gang("g", 1).queue("leaf");
    group.placement = of_gang;
    world.apply(group);
    world.apply(pod("a", gpus).of("g"));
    world.settle();
    world.node_of("a").unwrap()
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
            assert_eq!(&*node_of(gpus, says), expected, "{gpus}: {says:?}");
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
        world.apply(topology("default", &["rack"]));
        // The rack of the GPU nodes is the only one that has room for all of a gang.
        for name in ["g1", "g2"] {
            world.apply(node(name, 8).label("rack", "r1"));
        }
        world.apply(plain("c1", 4).label("rack", "r2"));
        world.apply(plain("c2", 4).label("rack", "r3"));
        // Scores like full GPU nodes best.
        world.apply(pod("train", 8).foreign().on("g1"));
        world.apply(pod("single", 0));
        world.apply(gang("g", 6));
        let names: Vec<_> = (0..6).map(|number| format!("m{number}")).collect();
        for name in &names {
            world.apply(pod(name, 0).of("g"));
        }
        world.settle();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let nodes = world.nodes_of(&names);
        assert!(
            nodes.iter().all(|node| node.starts_with('c')),
            "{placement:?}: {nodes:?}"
        );
        let single = world.node_of("single").unwrap();
        assert!(single.starts_with('c'), "{placement:?}: {single}");
        // Where there is no other room, GPU nodes are better than waiting.
        world.apply(pod("last", 0));
        world.settle();
        world.apply(gang("h", 2));
        for name in ["h0", "h1"] {
            world.apply(pod(name, 0).of("h"));
        }
        world.settle();
        let nodes = world.nodes_of(&["h0", "h1"]);
        assert!(
            nodes.iter().all(|node| node.starts_with('g')),
            "{placement:?}: {nodes:?}"
        );
        assert!(world.node_of("last").is_some(), "{placement:?}");
    }
}

#[test]
fn free_nodes_and_domains_stay_whole_for_those_who_need_them() {
    for placement in [
        Placement::Binpack,
        Placement::BestFit,
        Placement::Fragmentation,
    ] {
        let mut world = World::with(Settings {
            gpu_placement: placement,
            ..Settings::default()
        });
        world.apply(topology("default", &["rack"]));
        for (name, rack) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
            world.apply(node(name, 8).label("rack", rack));
        }
        for number in 0..6 {
            world.apply(pod(&format!("small{number}"), 1));
            world.settle();
        }
        let names: Vec<_> = (0..6).map(|number| format!("small{number}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let mut nodes = world.nodes_of(&names);
        nodes.dedup();
        assert_eq!(nodes.len(), 1, "{placement:?}: {nodes:?}");
        // A pod of a whole node goes beside them, so that the other rack is left for a gang.
        world.apply(pod("large", 8));
        world.settle();
        world.apply(gang("g", 2).required("rack"));
        for name in ["m0", "m1"] {
            world.apply(pod(name, 8).of("g"));
        }
        world.settle();
        assert_eq!(world.nodes_of(&["m0", "m1"]).len(), 2, "{placement:?}");
    }
}

#[test]
fn of_equal_nodes_the_one_in_the_fullest_domain_is_taken() {
    for placement in [
        Placement::Binpack,
        Placement::BestFit,
        Placement::Fragmentation,
    ] {
        let mut world = World::with(Settings {
            gpu_placement: placement,
            ..Settings::default()
        });
        world.apply(topology("default", &["block", "rack"]));
        for rack in ["a", "b", "c"] {
            for number in 0..4 {
                let node = node(&format!("{rack}{number}"), 8);
                world.apply(node.label("block", "x").label("rack", rack));
            }
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
            world.apply(pod(&name, gpus));
            world.settle();
            assert_eq!(
                world.node_of(&name).as_deref(),
                Some(expected),
                "{placement:?}"
            );
        }
        // What ends makes its domain less full; a node that is cordoned counts as in use.
        for name in ["p4", "there-c0", "there-c1", "p2"] {
            world.delete(name);
        }
        let mut cordoned = node("c0", 8).label("block", "x").label("rack", "c");
        cordoned.unschedulable = true;
        world.apply(cordoned);
        for (name, expected) in [("q0", "b2"), ("q1", "c1")] {
            world.apply(pod(name, 8));
            world.settle();
            assert_eq!(
                world.node_of(name).as_deref(),
                Some(expected),
                "{placement:?}"
            );
        }
    }
}

#[test]
fn pods_go_past_nodes_of_a_model_that_a_limit_keeps_them_from() {
    let mut world = World::new();
    // Binpack would fill the smaller node first.
    world.apply(node("n1", 8).label("nvidia.com/gpu.product", "H100"));
    world.apply(node("n2", 16).label("nvidia.com/gpu.product", "A100"));
    let mut team = queue("team").limit(4);
    team.resources[0].product = Some("H100".into());
    world.apply(team);
    for name in ["a", "b"] {
        world.apply(pod(name, 2).queue("team"));
        world.settle();
        assert_eq!(world.node_of(name).as_deref(), Some("n1"));
    }
    // The limit is reached: single pods, and gangs of one shape.
    world.apply(pod("c", 1).queue("team"));
    world.settle();
    assert_eq!(world.node_of("c").as_deref(), Some("n2"));
    world.delete("b");
    world.settle();
    world.apply(gang("g", 2).queue("team"));
    world.apply(pod("d", 2).of("g"));
    world.apply(pod("e", 2).of("g"));
    world.settle();
    // Both fit on the first node, and one of them is allowed there.
    assert_eq!(world.nodes_of(&["d", "e"]), ["n1".into(), "n2".into()]);
}

#[test]
fn single_pods_go_past_such_nodes_with_every_placement() {
    for placement in OFFERED {
        let mut world = World::with(Settings {
            gpu_placement: placement,
            ..Settings::default()
        });
        for (name, product) in [("n1", "H100"), ("n2", "A100")] {
            world.apply(node(name, 8).label("nvidia.com/gpu.product", product));
        }
        let mut team = queue("team").limit(3);
        team.resources[0].product = Some("H100".into());
        world.apply(team);
        let names: Vec<_> = (0..6).map(|number| format!("p{number}")).collect();
        for name in &names {
            world.apply(pod(name, 2).queue("team"));
            world.settle();
        }
        let nodes: Vec<_> = names.iter().map(|name| world.node_of(name)).collect();
        let on = |node| {
            let nodes = nodes.iter().flatten();
            nodes.filter(|other| &***other == node).count()
        };
        // The limit allows one, and the other node has room for four.
        assert_eq!((on("n1"), on("n2")), (1, 4), "{placement:?}");
    }
}

#[test]
fn a_shape_that_comes_later_knows_what_has_become_of_the_nodes_since() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(node("n2", 8));
    world.apply(pod("a", 8));
    world.settle();
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
    let mut cordoned = node("n2", 8);
    cordoned.unschedulable = true;
    world.apply(cordoned);
    world.apply(node("n3", 2));
    world.apply(pod("b", 4));
    world.settle();
    assert_eq!(world.node_of("b"), None);
    let message = world.message("default/pod/b");
    assert!(message.contains("1 was unschedulable"), "{message}");
    world.apply(node("n2", 8));
    world.settle();
    assert_eq!(world.node_of("b").as_deref(), Some("n2"));
}
