//! Domains made of labels: which nodes are near, and that gangs stay where they are.

use gpu_batch_policies::facts::{Placement, PodGroupFacts};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, World, gang, names, node, pod, topology};
use std::collections::BTreeSet;

/// Two racks of three nodes with 8 GPUs: `a0` to `a2` and `b0` to `b2`.
fn racks() -> World {
    let mut world = World::new();
    world.apply(topology("default", "rack"));
    for rack in ["a", "b"] {
        world.apply(node(&names(rack, 3), 8).label("rack", rack));
    }
    world
}

/// A gang of two whole nodes runs in rack b. Of the other nodes only `a0` and one of rack b are
/// free, and then a member is lost: rack a is the tighter fit for another, and the first.
fn one_is_lost(group: Sketch<PodGroupFacts>) -> World {
    let mut world = racks();
    for node in ["a0", "a1", "a2"] {
        world.apply(pod(&format!("on-{node}"), 8).foreign().on(node));
    }
    world.then((group, pod("first second", 8).of("g")));
    assert_eq!(world.nodes_of("first second"), ["b0", "b1"]);
    world.delete("on-a0 second");
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
        world.then(pod("third", 8).of("g").late());
        assert_eq!(world.places("third"), "b1");
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
        world.then(pod("third", 8).of("g").late());
        assert_eq!(world.node_of("third").as_deref(), goes_to);
        world.delete("on-b2");
        world.settle();
        let then = goes_to.unwrap_or("b2");
        assert_eq!(world.places("third"), then);
    }
}

#[test]
fn surplus_members_stay_in_the_domain_too() {
    let mut world = one_is_lost(gang("g", 1).required("rack"));
    world.then(pod("third fourth fifth", 8).of("g").late());
    assert_eq!(world.nodes_of("third fourth fifth"), ["b1", "b2"]);
}

#[test]
fn each_gang_has_the_topology_that_it_names() {
    let mut world = World::new();
    world.apply((topology("default", "rack"), topology("power", "feed")));
    for (name, rack, feed) in [("n1", "r1", "f1"), ("n2", "r1", "f2"), ("n3", "r2", "f2")] {
        world.apply(node(name, 8).label("rack", rack).label("feed", feed));
    }
    let together = |world: &mut World, group: Sketch<PodGroupFacts>| {
        world.then((group, pod("x y", 8).of("g")));
        let nodes = world.nodes_of("x y");
        world.delete("x y");
        world.settle();
        nodes
    };
    let by_rack = together(&mut world, gang("g", 2).required("rack"));
    assert_eq!(by_rack, ["n1", "n2"]);
    let by_feed = gang("g", 2).required("feed").in_topology("power");
    assert_eq!(together(&mut world, by_feed), ["n2", "n3"]);
    // A level is one of the Topology that is named.
    world.then((
        gang("g", 2).required("rack").in_topology("power"),
        pod("x y", 8).of("g"),
    ));
    assert_eq!(world.reason("g"), Some(Reason::TopologyNotFound));
}

#[test]
fn nodes_without_a_label_are_near_nobody() {
    let mut world = World::new();
    world.apply(topology("default", "zone rack"));
    // No rack; no zone above racks of one name; and two that have both.
    world.then((
        node("n1", 8).label("zone", "z1"),
        node("n2", 8).label("zone", "z1"),
        node("n3", 8).label("rack", "r1"),
        node("n4", 8).label("rack", "r1"),
        node("n5 n6", 4).label("zone", "z1").label("rack", "r1"),
        gang("g", 2).required("rack"),
        pod("x y", 8).of("g"),
    ));
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    world.then(gang("g", 2).required("zone"));
    assert_eq!(world.nodes_of("x y"), ["n1", "n2"]);
}

#[test]
fn the_level_node_is_there_without_a_topology() {
    let mut world = World::new();
    world.apply((
        node("n0", 4),
        node("n1", 8),
        gang("g", 2).required("node"),
        gang("both", 2).required("node").preferred("node"),
    ));
    world.then((pod("g0 g1", 4).of("g"), pod("both0 both1", 4).of("both")));
    let placed = [world.node_of("g0"), world.node_of("both0")];
    assert!(placed.contains(&Some("n1".to_owned())), "{placed:?}");
    assert_eq!(world.node_of("g0"), world.node_of("g1"));
    assert_eq!(world.node_of("both0"), world.node_of("both1"));
    // The gang that is left finds no node that holds both of its members.
    let left = if placed[0].is_some() { "both" } else { "g" };
    let refused = world.reason(left);
    assert_eq!(refused, Some(Reason::DoesNotFit));
    // A Topology that is named must exist, and so must any other level.
    world.apply((
        gang("named", 1).required("node").in_topology("default"),
        gang("rack", 1).required("node").preferred("rack"),
    ));
    for group in ["named", "rack"] {
        world.apply(pod(&format!("{group}0"), 1).of(group));
    }
    world.settle();
    for group in ["named", "rack"] {
        assert_eq!(world.reason(group), Some(Reason::TopologyNotFound));
    }
    world.then(topology("default", "rack"));
    assert!(world.is_placed("named0") && world.is_placed("rack0"));
}

#[test]
fn a_node_that_moves_takes_nobody_down_and_what_comes_next_finds_it_there() {
    let mut world = racks();
    world.then((
        gang("g", 2).required("rack"),
        pod("first second", 8).of("g"),
    ));
    assert_eq!(world.nodes_of("first second"), ["a0", "a1"]);
    // Cabled to the other rack, with a member on it.
    world.then(node("a1", 8).label("rack", "b"));
    world.later(120_000);
    assert_eq!(world.evictions, 0);
    assert_eq!(world.nodes_of("first second"), ["a0", "a1"]);
    // Four nodes are in rack b now, and one of them is taken; in rack a one is free.
    world.then((gang("h", 3).required("rack"), pod("h0 h1 h2", 8).of("h")));
    assert_eq!(world.nodes_of("h0 h1 h2"), ["b0", "b1", "b2"]);
    world.delete("second h0 h1 h2");
    world.then((gang("i", 4).required("rack"), pod("i0 i1 i2 i3", 8).of("i")));
    assert_eq!(world.places("i0"), "a1");
}

#[test]
fn another_definition_of_a_topology_counts_from_then_on() {
    let mut world = racks();
    for (name, row) in [("a2", "r"), ("b0", "r")] {
        let rack = &name[..1];
        world.apply(node(name, 8).label("rack", rack).label("row", row));
    }
    world.then((
        gang("g", 2).required("rack"),
        pod("first second", 8).of("g"),
    ));
    world.then((
        topology("default", "row"),
        gang("h", 2).required("row"),
        pod("h0 h1", 8).of("h"),
    ));
    assert_eq!(world.nodes_of("h0 h1"), ["a2", "b0"]);
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_topology_or_a_level_that_is_missing_is_told_with_those_that_exist() {
    let told = |topologies: &[(&str, &str)], name: &str, level: &str| {
        let mut world = World::new();
        world.apply(node("n1", 8));
        for (name, levels) in topologies {
            world.apply(topology(name, levels));
        }
        world.then((
            gang("g", 1).required(level).in_topology(name),
            pod("p", 1).of("g"),
        ));
        assert_eq!(world.reason("g"), Some(Reason::TopologyNotFound));
        world.message("g")
    };
    assert_eq!(
        told(&[], "x", "rack"),
        "there is no Topology \"x\", nor any other"
    );
    assert_eq!(
        told(&[("b", "rack"), ("a", "rack")], "x", "rack"),
        "there is no Topology \"x\"; those that exist: a, b"
    );
    assert_eq!(
        told(&[("flat", "")], "flat", "rack"),
        "Topology \"flat\" has no level \"rack\"; it has no level but node"
    );
}

/// Members that ask to be near are kept near, and spread inside the domain. The default preference
/// gives way to spreading.
#[test]
fn spreading_members_keep_to_the_domain_that_they_prefer() {
    for (asked, racks_used) in [(true, 1), (false, 2)] {
        let mut world = racks();
        let mut group = gang("g", 2).placed(Placement::Spread);
        if asked {
            group = group.preferred("rack");
        }
        world.then((group, pod("first second", 1).of("g")));
        let nodes = world.nodes_of("first second");
        assert_ne!(nodes[0], nodes[1], "they spread");
        let racks: BTreeSet<&str> = nodes.iter().map(|node| &node[..1]).collect();
        assert_eq!(racks.len(), racks_used, "{nodes:?}");
    }
}

/// Nodes were labelled anew under a gang that must be in one rack: most of it is in rack b.
#[test]
fn of_several_domains_the_one_with_most_members_counts() {
    let mut world = racks();
    world.then((gang("g", 3).required("rack"), pod("a b c", 8).of("g")));
    let nodes = world.nodes_of("a b c");
    world.then((
        node("x", 8).label("rack", &nodes[0][..1]),
        node(&nodes[0], 8).label("rack", "other"),
        pod("d", 8).of("g"),
    ));
    assert_eq!(world.nodes_of("d"), ["x"]);
}
