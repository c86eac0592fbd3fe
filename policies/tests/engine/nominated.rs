//! Foreign pods for which their own scheduler makes room on a node.

use gpu_batch_policies::facts::PodFacts;
use gpu_batch_testing::{Sketch, World, node, pod};

/// A foreign pod that waits and is nominated to a node.
fn nominated(name: &str, gpus: u64, to: &str, priority: i32) -> Sketch<PodFacts> {
    pod(name, gpus).foreign().with(|pod| {
        pod.node = None;
        pod.nominated = Some(to.into());
        pod.priority = priority;
    })
}

fn prio(name: &str, gpus: u64, priority: i32) -> Sketch<PodFacts> {
    pod(name, gpus).with(|pod| pod.priority = priority)
}

#[test]
fn a_foreign_pod_of_at_least_the_same_priority_keeps_its_room() {
    for (priority, place) in [(99, "-"), (100, "-"), (101, "n1")] {
        let mut world = World::of((node("n1", 8), nominated("f", 5, "n1", 100)));
        world.then(prio("a", 4, priority));
        assert_eq!(world.places("a"), place, "priority {priority}");
        if place == "-" {
            world.then(prio("b", 3, 0));
            assert_eq!(world.places("b"), "n1", "beside what is held");
        }
    }
}

#[test]
fn its_room_is_free_once_it_is_deleted_bound_elsewhere_or_nominated_no_more() {
    let ends: [fn(&mut World); 4] = [
        |world| world.delete("f"),
        |world| world.change("f", |pod| pod.node = Some("n2".into())),
        |world| world.change("f", |pod| pod.nominated = None),
        |world| world.change("f", |pod| pod.nominated = Some("n2".into())),
    ];
    for end in ends {
        let foreign = nominated("f", 5, "n1", 100);
        let mut world = World::of((node("n1 n2", 8), pod("full", 8).on("n2"), foreign));
        world.then(prio("a", 4, 0));
        assert_eq!(world.places("a"), "-");
        end(&mut world);
        world.settle();
        assert_eq!(world.places("a"), "n1");
    }
}

#[test]
fn a_gang_that_goes_before_it_leaves_the_rest_to_it() {
    let mut world = World::of((node("n1", 8), nominated("f", 5, "n1", 100)));
    world.then(prio("a", 2, 200));
    assert_eq!(world.places("a"), "n1");
    world.then(prio("b", 2, 0));
    assert_eq!(world.places("b"), "-", "6 are left, 5 of them are held");
    world.then(prio("c", 1, 0));
    assert_eq!(world.places("c"), "n1");
}
