//! Domains made of labels: which nodes are near, and that gangs stay where they are.

use super::world::{WithTopology, World, gang, node, pod, topology};
use crate::facts::{Placement, PodGroupFacts};
use crate::reason::Reason;
use alloc::{boxed::Box, collections::BTreeSet, format, vec::Vec};

/// Two racks of three nodes with 8 GPUs: `a0` to `a2` and `b0` to `b2`.
fn racks() -> World {
    let mut world = World::new();
    world.apply(topology("default", &["rack"]));
    for rack in ["a", "b"] {
        for number in 0..3 {
            world.apply(node(&format!("{rack}{number}"), 8).label("rack", rack));
        }
    }
    world
}

/// A gang of two whole nodes runs in rack b. Of the other nodes only `a0` and one of rack b are
/// free, and then a member is lost: rack a is the tighter fit for another, and the first.
fn one_is_lost(group: PodGroupFacts) -> World {
    let mut world = racks();
    for node in ["a0", "a1", "a2"] {
        world.apply(pod(&format!("on-{node}"), 8).foreign().on(node));
    }
    world.apply(group);
    world.apply(pod("first", 8).of("g"));
    world.apply(pod("second", 8).of("g"));
    world.settle();
    assert_eq!(
        world.nodes_of(&["first", "second"]),
        ["b0".into(), "b1".into()]
    );
    world.delete("on-a0");
    world.delete("second");
    world
}

#[test]
fn replacements_stay_in_the_domain_though_another_is_the_tighter_fit() {
    for group in [
        gang("g", 2).required("rack"),
        gang("g", 2).preferred("rack"),
        // A gang without a request prefers the finest level.
        gang("g", 2),
    ] {
        let mut world = one_is_lost(group);
        world.apply(pod("third", 8).of("g").late());
        world.settle();
        assert_eq!(world.node_of("third").as_deref(), Some("b1"));
    }
}

#[test]
fn a_replacement_waits_for_a_domain_that_is_required_and_leaves_one_that_is_preferred() {
    for (group, goes_to) in [
        (gang("g", 2).required("rack"), None),
        (gang("g", 2).preferred("rack"), Some("a0")),
    ] {
        let mut world = one_is_lost(group);
        for node in ["b1", "b2"] {
            world.apply(pod(&format!("on-{node}"), 8).foreign().on(node));
        }
        world.apply(pod("third", 8).of("g").late());
        world.settle();
        assert_eq!(world.node_of("third").as_deref(), goes_to);
        world.delete("on-b2");
        world.settle();
        let then = goes_to.unwrap_or("b2");
        assert_eq!(world.node_of("third").as_deref(), Some(then));
    }
}

#[test]
fn surplus_members_stay_in_the_domain_too() {
    let mut world = one_is_lost(gang("g", 1).required("rack"));
    world.apply(pod("third", 8).of("g").late());
    world.apply(pod("fourth", 8).of("g").late());
    world.apply(pod("fifth", 8).of("g").late());
    world.settle();
    assert_eq!(
        world.nodes_of(&["third", "fourth", "fifth"]),
        ["b1".into(), "b2".into()]
    );
}

#[test]
fn each_gang_has_the_topology_that_it_names() {
    let mut world = World::new();
    world.apply(topology("default", &["rack"]));
    world.apply(topology("power", &["feed"]));
    for (name, rack, feed) in [("n1", "r1", "f1"), ("n2", "r1", "f2"), ("n3", "r2", "f2")] {
        world.apply(node(name, 8).label("rack", rack).label("feed", feed));
    }
    let together = |world: &mut World, group: PodGroupFacts| -> Vec<Box<str>> {
        world.apply(group);
        for name in ["x", "y"] {
            world.apply(pod(name, 8).of("g"));
        }
        world.settle();
        let nodes = ["x", "y"].map(|name| world.node_of(name));
        for name in ["x", "y"] {
            world.delete(name);
        }
        world.settle();
        nodes.into_iter().flatten().collect()
    };
    let by_rack = together(&mut world, gang("g", 2).required("rack"));
    assert_eq!(by_rack, ["n1".into(), "n2".into()]);
    let by_feed = gang("g", 2).required("feed").in_topology("power");
    assert_eq!(together(&mut world, by_feed), ["n2".into(), "n3".into()]);
    // A level is one of the Topology that is named.
    world.apply(gang("g", 2).required("rack").in_topology("power"));
    for name in ["x", "y"] {
        world.apply(pod(name, 8).of("g"));
    }
    world.settle();
    assert_eq!(world.reason("default/g"), Some(Reason::TopologyNotFound));
}

#[test]
fn nodes_without_a_label_are_near_nobody() {
    let mut world = World::new();
    world.apply(topology("default", &["zone", "rack"]));
    // No rack; no zone above racks of one name; and two that have both.
    world.apply(node("n1", 8).label("zone", "z1"));
    world.apply(node("n2", 8).label("zone", "z1"));
    world.apply(node("n3", 8).label("rack", "r1"));
    world.apply(node("n4", 8).label("rack", "r1"));
    for name in ["n5", "n6"] {
        world.apply(node(name, 4).label("zone", "z1").label("rack", "r1"));
    }
    world.apply(gang("g", 2).required("rack"));
    world.apply(pod("x", 8).of("g"));
    world.apply(pod("y", 8).of("g"));
    world.settle();
    assert_eq!(world.reason("default/g"), Some(Reason::DoesNotFit));
    world.apply(gang("g", 2).required("zone"));
    world.settle();
    assert_eq!(world.nodes_of(&["x", "y"]), ["n1".into(), "n2".into()]);
}

#[test]
fn the_level_node_is_there_without_a_topology() {
    let mut world = World::new();
    world.apply(node("n0", 4));
    world.apply(node("n1", 8));
    world.apply(gang("g", 2).required("node"));
    world.apply(gang("both", 2).required("node").preferred("node"));
    for group in ["g", "both"] {
        for number in 0..2 {
            world.apply(pod(&format!("{group}{number}"), 4).of(group));
        }
    }
    world.settle();
    let placed = [world.node_of("g0"), world.node_of("both0")];
    assert!(placed.contains(&Some("n1".into())), "{placed:?}");
    assert_eq!(world.node_of("g0"), world.node_of("g1"));
    assert_eq!(world.node_of("both0"), world.node_of("both1"));
    // Whoever is left finds no node that holds both.
    let left = if placed[0].is_some() { "both" } else { "g" };
    let refused = world.reason(&format!("default/{left}"));
    assert_eq!(refused, Some(Reason::DoesNotFit));
    // A Topology that is named must exist, and so must any other level.
    world.apply(gang("named", 1).required("node").in_topology("default"));
    world.apply(gang("rack", 1).required("node").preferred("rack"));
    for group in ["named", "rack"] {
        world.apply(pod(&format!("{group}0"), 1).of(group));
    }
    world.settle();
    for group in ["default/named", "default/rack"] {
        assert_eq!(world.reason(group), Some(Reason::TopologyNotFound));
    }
    world.apply(topology("default", &["rack"]));
    world.settle();
    assert!(world.node_of("named0").is_some() && world.node_of("rack0").is_some());
}

#[test]
fn a_node_that_moves_takes_nobody_down_and_what_comes_next_finds_it_there() {
    let mut world = racks();
    world.apply(gang("g", 2).required("rack"));
    world.apply(pod("first", 8).of("g"));
    world.apply(pod("second", 8).of("g"));
    world.settle();
    assert_eq!(
        world.nodes_of(&["first", "second"]),
        ["a0".into(), "a1".into()]
    );
    // Cabled to the other rack, with a member on it.
    world.apply(node("a1", 8).label("rack", "b"));
    world.settle();
    world.pass(120_000);
    world.settle();
    assert_eq!(world.evictions, 0);
    assert_eq!(
        world.nodes_of(&["first", "second"]),
        ["a0".into(), "a1".into()]
    );
    // Four nodes are in rack b now, and one of them is taken; in rack a one is free.
    world.apply(gang("h", 3).required("rack"));
    for name in ["h0", "h1", "h2"] {
        world.apply(pod(name, 8).of("h"));
    }
    world.settle();
    assert_eq!(
        world.nodes_of(&["h0", "h1", "h2"]),
        ["b0".into(), "b1".into(), "b2".into()]
    );
    world.delete("second");
    for name in ["h0", "h1", "h2"] {
        world.delete(name);
    }
    world.apply(gang("i", 4).required("rack"));
    for name in ["i0", "i1", "i2", "i3"] {
        world.apply(pod(name, 8).of("i"));
    }
    world.settle();
    assert_eq!(world.node_of("i0").as_deref(), Some("a1"));
}

#[test]
fn another_definition_of_a_topology_counts_from_then_on() {
    let mut world = racks();
    for (name, row) in [("a2", "r"), ("b0", "r")] {
        let rack = &name[..1];
        world.apply(node(name, 8).label("rack", rack).label("row", row));
    }
    world.apply(gang("g", 2).required("rack"));
    world.apply(pod("first", 8).of("g"));
    world.apply(pod("second", 8).of("g"));
    world.settle();
    world.apply(topology("default", &["row"]));
    world.apply(gang("h", 2).required("row"));
    for name in ["h0", "h1"] {
        world.apply(pod(name, 8).of("h"));
    }
    world.settle();
    assert_eq!(world.nodes_of(&["h0", "h1"]), ["a2".into(), "b0".into()]);
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_topology_or_a_level_that_is_missing_is_told_with_those_that_exist() {
    let told = |topologies: &[(&str, &[&str])], name: &str, level: &str| {
        let mut world = World::new();
        world.apply(node("n1", 8));
        for (name, levels) in topologies {
            world.apply(topology(name, levels));
        }
        world.apply(gang("g", 1).required(level).in_topology(name));
        world.apply(pod("p", 1).of("g"));
        world.settle();
        assert_eq!(world.reason("default/g"), Some(Reason::TopologyNotFound));
        world.message("default/g")
    };
    assert_eq!(
        told(&[], "x", "rack"),
        "there is no Topology \"x\", nor any other"
    );
    assert_eq!(
        told(&[("b", &["rack"]), ("a", &["rack"])], "x", "rack"),
        "there is no Topology \"x\"; those that exist: a, b"
    );
    assert_eq!(
        told(&[("flat", &[])], "flat", "rack"),
        "Topology \"flat\" has no level \"rack\"; it has no level but node"
    );
}

/// Members that ask to be near are kept near, and spread inside the domain. The default preference
/// gives way to spreading.
#[test]
fn spreading_members_keep_to_the_domain_that_they_prefer() {
    for (asked, racks_used) in [(true, 1), (false, 2)] {
        let mut world = racks();
        let mut group = gang("g", 2);
        group.placement.gpu = Some(Placement::Spread);
        if asked {
            group = group.preferred("rack");
        }
        world.apply(group);
        for name in ["first", "second"] {
            world.apply(pod(name, 1).of("g"));
        }
        world.settle();
        let nodes = world.nodes_of(&["first", "second"]);
        assert_ne!(nodes[0], nodes[1], "they spread");
        let racks: BTreeSet<&str> = nodes.iter().map(|node| &node[..1]).collect();
        assert_eq!(racks.len(), racks_used, "{nodes:?}");
    }
}

/// Nodes were labelled anew under a gang that must be in one rack: most of it is in rack b.
#[test]
fn of_several_domains_the_one_with_most_members_counts() {
    let mut world = racks();
    world.apply(gang("g", 3).required("rack"));
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 8).of("g"));
    }
    world.settle();
    let nodes = world.nodes_of(&["a", "b", "c"]);
    world.apply(node("x", 8).label("rack", &nodes[0][..1]));
    world.apply(node(&nodes[0], 8).label("rack", "other"));
    world.apply(pod("d", 8).of("g"));
    world.settle();
    assert_eq!(world.nodes_of(&["d"]), ["x".into()]);
}
