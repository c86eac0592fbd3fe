//! The messages of refused gangs stay true.

use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{World, gang, names, node, pod, queue, topology};

#[test]
fn a_refusal_follows_the_nodes() {
    let mut world = World::of((node("n0 n1 n2", 8), pod("large", 16)));
    let says = |world: &World, nodes: &str| {
        let message = world.message("pod/large");
        assert!(message.ends_with(nodes), "{message}");
    };
    says(&world, "of 3 nodes, 3 had insufficient nvidia.com/gpu");
    world.apply(node("n1", 8).cordoned());
    world.lose_node("n2");
    world.settle();
    world.run(2_000);
    says(
        &world,
        "of 2 nodes, 1 was unschedulable, 1 had insufficient nvidia.com/gpu",
    );
}

#[test]
fn a_limit_that_falls_or_is_reached_becomes_the_reason() {
    let mut world = World::of((
        node("n0", 8),
        queue("team"),
        pod("large", 16).queue("team"),
        pod("larger", 24).queue("team"),
    ));
    assert_eq!(world.reason_of_pod("large"), Some(Reason::DoesNotFit));
    world.then(queue("team").limit(20));
    world.run(3_000);
    assert_eq!(world.reason_of_pod("large"), Some(Reason::DoesNotFit));
    assert_eq!(world.reason_of_pod("larger"), Some(Reason::OverLimit));
    world.then(pod("small", 6).queue("team"));
    world.run(3_000);
    assert_eq!(world.reason_of_pod("large"), Some(Reason::OverLimit));
    assert!(world.message("pod/large").contains("6 are held"));
    world.end("small");
    world.settle();
    world.run(3_000);
    assert_eq!(world.reason_of_pod("large"), Some(Reason::DoesNotFit));
}

/// A condition is written to each pod: large gangs are reviewed as slowly as many small ones.
#[test]
fn few_are_reviewed_at_a_time_and_none_where_nothing_happens() {
    let mut world = World::new();
    world.apply(node("n0", 1));
    for name in ["a", "b", "c"] {
        world.apply((gang(name, 12), pod(&names(name, 12), 1).of(name)));
    }
    world.settle();
    world.run(20_000);
    assert_eq!(world.engine.next_deadline(), None);
    world.then(node("n0", 2));
    let reviewed = |world: &World| {
        let new = |name: &&str| world.message(name).contains("room for 2");
        ["a", "b", "c"].iter().filter(|name| new(name)).count()
    };
    let mut counts = Vec::new();
    for _ in 0..5 {
        counts.push(reviewed(&world));
        world.run(1_000);
    }
    assert_eq!(counts, [0, 2, 2, 3, 3]);
}

#[test]
fn what_is_wrong_is_told_before_there_are_pods() {
    let mut world = World::new();
    world.apply(node("n0", 8));
    world.apply(topology("default", "rack"));
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
        assert_eq!(world.reason(name), Some(reason), "{name}");
    }
}

#[test]
fn what_cannot_start_as_it_stands_asks_for_nothing() {
    let mut world = World::of((
        node("n0", 8),
        topology("default", "rack"),
        queue("team"),
        gang("level", 2).queue("team").required("row"),
        pod("p0 p1", 4).of("level"),
    ));
    assert_eq!(world.requested("team"), 0);
    world.then(gang("level", 2).queue("team").required("node"));
    assert_eq!(world.reason("level"), None);
    assert_eq!(world.requested("team"), 8);
}

/// What counting says is counted again, also where limits on GPU models let nothing else wake the
/// gang.
#[test]
fn a_refusal_under_a_limit_on_a_model_follows_the_room() {
    let mut world = World::new();
    world.apply(node("n0 n1", 8));
    world.then((
        queue("team").limit_of("H100", 4),
        gang("large", 3).queue("team"),
        pod(&names("large", 3), 8).of("large"),
    ));
    let says = |world: &World, room: &str| {
        let message = world.message("large");
        assert!(message.contains(room), "{message}");
    };
    says(&world, "there is room for 2");
    world.then(pod("small", 8));
    world.run(3_000);
    says(&world, "there is room for 1");
}

/// What a search did not find is told anew when counting refuses it.
#[test]
fn what_a_search_has_refused_is_counted_again() {
    let mut world = World::new();
    world.apply((node("n0 n1", 8), gang("g", 3)));
    for (name, gpus) in [("a", 6), ("b", 6), ("c", 4)] {
        world.apply(pod(name, gpus).of("g"));
    }
    world.settle();
    let message = world.message("g");
    assert!(message.ends_with("do not fit together"), "{message}");
    world.then(node("n0 n1", 8).cordoned());
    world.run(3_000);
    let message = world.message("g");
    assert!(message.contains("2 were unschedulable"), "{message}");
}
