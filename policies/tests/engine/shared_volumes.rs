//! Volumes that several pods use, on nodes that limit how many are attached.

use crate::takings::prio;
use gpu_batch_testing::{
    Thing, World, attachment, claim, csi_node, gang, node, pod, quota, storage_class, volume,
};

/// A node to which so many volumes can be attached, and claims for the volumes `v` and `w`.
fn limited(limit: u32) -> impl Thing {
    (
        node("n1", 8),
        csi_node("n1", limit),
        volume("v", 1).attached().of_claim("c"),
        volume("w", 1).attached().of_claim("d"),
        claim("c", "").bound_to("v"),
        claim("d", "").bound_to("w"),
    )
}

#[test]
fn a_volume_counts_once_on_a_node_until_its_last_pod_has_left() {
    let mut world = World::of((limited(1), pod("p", 1).claims("c")));
    world.then(pod("q r", 1).claims("c"));
    assert_eq!(world.places("p q r"), "n1 n1 n1");
    world.then(pod("s", 1).claims("d"));
    world.then(pod("t", 1).claims("c d"));
    assert_eq!(world.places("s t"), "- -");
    let message = world.pod("s").message;
    let missing = "insufficient attachable volumes of disks.example.com";
    assert!(message.contains(missing), "{message}");
    world.end("p q");
    world.settle();
    assert_eq!(world.places("s"), "-", "r has the volume still");
    world.end("r");
    world.settle();
    assert_eq!(world.places("s"), "n1");
}

#[test]
fn pods_of_other_schedulers_share_volumes_too() {
    let mut world = World::of((
        limited(1),
        attachment("a", "v", "n1"),
        pod("x y", 0).foreign().claims("c").on("n1"),
    ));
    world.then(pod("p", 1).claims("c"));
    world.then(pod("q", 1).claims("d"));
    assert_eq!(world.places("p q"), "n1 -");
}

#[test]
fn a_volume_that_is_there_against_the_limit_is_shared() {
    let mut world = World::of((limited(0), pod("x", 0).foreign().claims("c").on("n1")));
    world.then((pod("p", 1).claims("c"), pod("q", 1).claims("c d")));
    assert_eq!(world.places("p q"), "n1 -");
}

/// The PersistentVolume of a claim, which stands for the volume with this handle.
fn with_handle(name: &str, claim: &str, handle: &'static str) -> impl Thing {
    let volume = volume(name, 1).attached().of_claim(claim);
    volume.with(move |volume| {
        volume.csi.iter_mut().for_each(|csi| csi.1 = handle.into());
    })
}

#[test]
fn volumes_with_one_handle_are_one_volume() {
    let again = with_handle("again", "e", "v");
    let mut world = World::of((limited(1), pod("p", 1).claims("c")));
    world.then((again, claim("e", "").bound_to("again")));
    world.then(pod("q", 1).claims("e"));
    assert_eq!(world.places("p q"), "n1 n1");
    world.then(pod("r", 1).claims("c e"));
    assert_eq!(world.places("r"), "n1");
    // The volume of the first claim is another one now.
    world.end("p r");
    world.apply(with_handle("v", "c", "other"));
    world.then(pod("s", 1).claims("c"));
    assert_eq!(world.places("s"), "-");
}

#[test]
fn a_gang_may_share_the_only_volume_of_a_node() {
    let mut world = World::of((
        limited(1),
        gang("g", 4),
        pod("g-0 g-1 g-2 g-3", 1).of("g").claims("c"),
    ));
    assert_eq!(world.binds, 4);
    // Members of several shapes share it, too.
    world.end("g-0 g-1 g-2 g-3");
    world.then((
        gang("h", 3),
        pod("h-0", 2).of("h").claims("d"),
        pod("h-1 h-2", 1).of("h").claims("d"),
    ));
    assert_eq!(world.places("h-0 h-1 h-2"), "n1 n1 n1");
}

#[test]
fn a_volume_that_is_still_to_be_made_is_shared() {
    let mut world = World::of((
        node("n1", 8),
        csi_node("n1", 2),
        storage_class("fast"),
        claim("c d", "fast"),
        gang("g", 3),
        pod("g-0 g-1 g-2", 1).of("g").claims("c d"),
    ));
    assert_eq!((world.selections, world.binds), (2, 3));
    // Two volumes are too many for a node that takes one.
    world.end("g-0 g-1 g-2");
    world.apply(csi_node("n1", 1));
    world.then((claim("e f", "fast"), pod("p q", 1).claims("e f")));
    assert_eq!(world.places("p q"), "- -");
}

#[test]
fn all_pods_of_a_volume_are_evicted_where_its_attachment_is_needed() {
    let mut world = World::with_grace(30);
    world.then((
        limited(1),
        quota("a", 8),
        prio("x y", 1, 10).claims("c").on("n1"),
        prio("p", 1, 100).claims("d"),
    ));
    world.run(10_000);
    let mut evicted = world.evicted.clone();
    evicted.sort();
    assert_eq!(evicted, ["x", "y"]);
    // Meanwhile the place is held, and one of the two that leaves gives nothing back.
    world.then(prio("q", 1, 10).claims("c").late());
    world.delete("x");
    world.run(1_000);
    assert_eq!(world.places("p q"), "- -");
    world.delete("y");
    world.run(1_000);
    assert_eq!(world.places("p q"), "n1 -");
}

#[test]
fn a_victim_beside_which_its_volume_stays_is_enough_where_gpus_are_needed() {
    let mut world = World::with_grace(30);
    world.then((
        limited(1),
        quota("a", 8),
        prio("x y", 4, 10).claims("c").on("n1"),
        prio("p", 4, 100).claims("c"),
    ));
    world.run(1_000);
    let evicted = world.evicted.clone();
    assert_eq!(evicted.len(), 1);
    world.delete(&evicted[0]);
    world.run(1_000);
    assert_eq!(world.places("p"), "n1");
}
