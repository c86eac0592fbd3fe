//! The messages of refused gangs stay true.

use super::world::{WithTopology, World, gang, node, pod, queue, topology};
use crate::facts::NodeFacts;
use crate::reason::Reason;
use alloc::format;

fn cordoned(node: NodeFacts) -> NodeFacts {
    NodeFacts {
        unschedulable: true,
        ..node
    }
}

fn seconds(world: &mut World, seconds: u64) {
    for _ in 0..seconds {
        world.pass(1_000);
        world.settle();
    }
}

#[test]
fn a_refusal_follows_the_nodes() {
    let mut world = World::new();
    for name in ["n0", "n1", "n2"] {
        world.apply(node(name, 8));
    }
    world.apply(pod("large", 16));
    world.settle();
    let says = |world: &World, nodes: &str| {
        let message = world.message("default/pod/large");
        assert!(message.ends_with(nodes), "{message}");
    };
    says(&world, "of 3 nodes, 3 had insufficient nvidia.com/gpu");
    world.apply(cordoned(node("n1", 8)));
    world.lose_node("n2");
    world.settle();
    seconds(&mut world, 2);
    says(
        &world,
        "of 2 nodes, 1 was unschedulable, 1 had insufficient nvidia.com/gpu",
    );
}

#[test]
fn a_limit_that_falls_or_is_reached_becomes_the_reason() {
    let mut world = World::new();
    world.apply(node("n0", 8));
    world.apply(queue("team"));
    world.apply(pod("large", 16).queue("team"));
    world.apply(pod("larger", 24).queue("team"));
    world.settle();
    assert_eq!(world.reason_of_pod("large"), Some(Reason::DoesNotFit));
    world.apply(queue("team").limit(20));
    world.settle();
    seconds(&mut world, 3);
    assert_eq!(world.reason_of_pod("large"), Some(Reason::DoesNotFit));
    assert_eq!(world.reason_of_pod("larger"), Some(Reason::OverLimit));
    world.apply(pod("small", 6).queue("team"));
    world.settle();
    seconds(&mut world, 3);
    assert_eq!(world.reason_of_pod("large"), Some(Reason::OverLimit));
    assert!(world.message("default/pod/large").contains("6 are held"));
    world.end("small");
    world.settle();
    seconds(&mut world, 3);
    assert_eq!(world.reason_of_pod("large"), Some(Reason::DoesNotFit));
}

/// A condition is written to each pod: large gangs are reviewed as slowly as many small ones.
#[test]
fn few_are_reviewed_at_a_time_and_none_where_nothing_happens() {
    let mut world = World::new();
    world.apply(node("n0", 1));
    for name in ["a", "b", "c"] {
        world.apply(gang(name, 12));
        for number in 0..12 {
            world.apply(pod(&format!("{name}{number}"), 1).of(name));
        }
    }
    world.settle();
    seconds(&mut world, 20);
    assert_eq!(world.deadline(), None);
    world.apply(node("n0", 2));
    world.settle();
    let reviewed = |world: &World| {
        let new = |name: &&str| {
            world
                .message(&format!("default/{name}"))
                .contains("room for 2")
        };
        ["a", "b", "c"].iter().filter(|name| new(name)).count()
    };
    let mut counts = alloc::vec::Vec::new();
    for _ in 0..5 {
        counts.push(reviewed(&world));
        seconds(&mut world, 1);
    }
    assert_eq!(counts, [0, 2, 2, 3, 3]);
}

#[test]
fn what_is_wrong_is_told_before_there_are_pods() {
    let mut world = World::new();
    world.apply(node("n0", 8));
    world.apply(topology("default", &["rack"]));
    world.apply(queue("team"));
    world.apply(queue("leaf").parent("inner"));
    world.apply(queue("inner"));
    world.apply(gang("good", 2));
    world.apply(gang("level", 2).required("row"));
    world.apply(gang("queue", 2).queue("nobody"));
    world.apply(gang("inner", 2).queue("inner"));
    world.settle();
    for (name, reason) in [
        ("good", Reason::WaitingForMembers),
        ("level", Reason::TopologyNotFound),
        ("queue", Reason::QueueNotFound),
        ("inner", Reason::QueueNotLeaf),
    ] {
        assert_eq!(
            world.reason(&format!("default/{name}")),
            Some(reason),
            "{name}"
        );
    }
}

#[test]
fn what_cannot_start_as_it_stands_asks_for_nothing() {
    let mut world = World::new();
    world.apply(node("n0", 8));
    world.apply(topology("default", &["rack"]));
    world.apply(queue("team"));
    world.apply(gang("level", 2).queue("team").required("row"));
    for name in ["p0", "p1"] {
        world.apply(pod(name, 4).of("level"));
    }
    world.settle();
    assert_eq!(world.requested("team"), 0);
    world.apply(gang("level", 2).queue("team").required("node"));
    world.settle();
    assert_eq!(world.reason("default/level"), None);
    assert_eq!(world.requested("team"), 8);
}

/// What counting says is counted again, also where limits on GPU models let nothing else wake the
/// gang.
#[test]
fn a_refusal_under_a_limit_on_a_model_follows_the_room() {
    let mut world = World::new();
    for name in ["n0", "n1"] {
        world.apply(node(name, 8));
    }
    let mut limited = queue("team").limit(4);
    for resource in &mut limited.resources {
        resource.product = Some("H100".into());
    }
    world.apply(limited);
    let mut group = gang("large", 3);
    group.queue = Some("team".into());
    world.apply(group);
    for number in 0..3 {
        world.apply(pod(&format!("large{number}"), 8).of("large"));
    }
    world.settle();
    let says = |world: &World, room: &str| {
        let message = world.message("default/large");
        assert!(message.contains(room), "{message}");
    };
    says(&world, "there is room for 2");
    world.apply(pod("small", 8));
    world.settle();
    seconds(&mut world, 3);
    says(&world, "there is room for 1");
}

/// What a search did not find is told anew when counting refuses it.
#[test]
fn what_a_search_has_refused_is_counted_again() {
    let mut world = World::new();
    for name in ["n0", "n1"] {
        world.apply(node(name, 8));
    }
    world.apply(gang("g", 3));
    for (name, gpus) in [("a", 6), ("b", 6), ("c", 4)] {
        world.apply(pod(name, gpus).of("g"));
    }
    world.settle();
    let message = world.message("default/g");
    assert!(message.ends_with("do not fit together"), "{message}");
    for name in ["n0", "n1"] {
        world.apply(cordoned(node(name, 8)));
    }
    world.settle();
    seconds(&mut world, 3);
    let message = world.message("default/g");
    assert!(message.contains("2 were unschedulable"), "{message}");
}
