//! Disks that pods name themselves: who may have one beside others, and how many are attached.

use gpu_batch_policies::facts::{Disk, PodFacts};
use gpu_batch_testing::{Sketch, World, claim, csi_node, gang, node, pod, quota, volume};

/// Gives pods a disk, which they only read if `read_only`.
fn disk(pods: Sketch<PodFacts>, name: &'static str, read_only: bool) -> Sketch<PodFacts> {
    pods.shape(move |shape| {
        shape.disks = vec![Disk {
            name: name.into(),
            read_only,
        }];
    })
}

#[test]
fn several_pods_of_a_node_have_a_disk_only_if_all_read_it() {
    let mut world = World::of((node("n1", 8), disk(pod("p", 1), "a", true)));
    world.then(disk(pod("q", 1), "a", true));
    world.then(disk(pod("r", 1), "a", false));
    world.then(disk(pod("s", 1), "b", false));
    world.then(disk(pod("t", 1), "b", true));
    assert_eq!(world.places("p q r s t"), "n1 n1 - n1 -");
    let message = world.pod("r").message;
    assert!(message.contains("had no available disk"), "{message}");
    world.end("p");
    world.settle();
    assert_eq!(world.places("r"), "-", "q reads the disk still");
    world.end("q s");
    world.settle();
    assert_eq!(world.places("r t"), "n1 n1");
}

#[test]
fn a_gang_keeps_its_disk_apart_from_itself_and_from_others() {
    let mut world = World::of((
        node("n1 n2", 8),
        disk(pod("x", 0).foreign(), "a", true).on("n1"),
        gang("g", 2),
        disk(pod("g-0 g-1", 1).of("g"), "a", false),
    ));
    assert_eq!(world.binds, 0);
    world.then((
        gang("h", 4),
        disk(pod("h-0 h-1 h-2 h-3", 1).of("h"), "a", true),
    ));
    assert_eq!(world.binds, 4);
    world.end("h-0 h-1 h-2 h-3 x");
    world.settle();
    let mut places = [world.places("g-0"), world.places("g-1")];
    places.sort();
    assert_eq!(places, ["n1", "n2"]);
}

#[test]
fn a_pod_of_lower_priority_leaves_for_its_disk() {
    let mut world = World::with_grace(30);
    let prio = |name: &str, priority| {
        let pods = pod(name, 1).queue("a");
        pods.with(move |pod| pod.priority = priority)
    };
    world.then((
        node("n1", 8),
        quota("a", 8),
        disk(prio("x", 10), "a", false).on("n1"),
        disk(prio("y", 10), "b", false).on("n1"),
        disk(prio("p", 100), "a", false),
    ));
    world.run(10_000);
    assert_eq!(world.evicted, ["x"]);
}

/// One disk has one handle, whether pods name it or a claim has it.
#[test]
fn disks_count_for_the_driver_that_attaches_them() {
    const DISK: &str = "disks.example.com/v";
    let mut world = World::of((
        node("n1", 8),
        csi_node("n1", 1),
        volume("v", 1).attached().of_claim("c"),
        claim("c", "").bound_to("v"),
        pod("p", 1).claims(DISK),
    ));
    world.then((pod("q", 1).claims(DISK), pod("r", 1).claims("c")));
    world.then(pod("s", 1).claims("disks.example.com/w"));
    assert_eq!(world.places("p q r s"), "n1 n1 n1 -");
    world.end("p q r");
    world.settle();
    assert_eq!(world.places("s"), "n1");
    // Disks are nothing that a list of claims or volumes could lack.
    world.apply(csi_node("n1", 2));
    world.then(pod("t", 1).claims("disks.example.com/w c"));
    assert_eq!(world.places("t"), "n1");
}
