//! Pods with claims: where their volumes are, can be made, and are made before anything is bound.

use gpu_batch_policies::event::{Object, ObjectKey};
use gpu_batch_policies::facts::{
    ClaimFacts, MatchOperator, MatchRequirement, NodeSelectorTerm, StorageFacts, StorageKind,
    VolumeFacts, migrated_label,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{
    Thing, To, World, attachment, capacity, claim, csi_driver, csi_node, gang, lost, node, pod,
    quota, refused, storage_class, throttled, volume,
};

const ZONE: &str = "topology.kubernetes.io/zone";

/// Two nodes of 8 GPUs in each of two zones.
fn zones() -> impl Thing {
    (
        node("a1 a2", 8).label(ZONE, "a"),
        node("b1 b2", 8).label(ZONE, "b"),
    )
}

/// A gang of two, each with a claim of its own of the class `fast`.
fn pair() -> impl Thing {
    (
        storage_class("fast"),
        claim("c-0 c-1", "fast"),
        gang("g", 2),
        pod("g-0", 8).of("g").claims("c-0"),
        pod("g-1", 8).of("g").claims("c-1"),
    )
}

/// Changes a claim, as a provisioner or its owner does.
fn change_claim(world: &mut World, name: &str, change: impl FnOnce(&mut ClaimFacts)) {
    let key = ObjectKey::Storage(StorageKind::Claim, "default".into(), name.into());
    let Some(Object::Storage(StorageFacts::Claim(claim))) = world.objects.get(&key) else {
        panic!("there is no claim {name}");
    };
    let mut claim = claim.clone();
    change(&mut claim);
    world.apply(claim);
}

fn claim_of(world: &World, name: &str) -> ClaimFacts {
    let key = ObjectKey::Storage(StorageKind::Claim, "default".into(), name.into());
    match world.objects.get(&key) {
        Some(Object::Storage(StorageFacts::Claim(claim))) => claim.clone(),
        _ => panic!("there is no claim {name}"),
    }
}

#[test]
fn a_pod_goes_where_its_volume_is() {
    let mut world = World::of((
        zones(),
        volume("v", 1).reached_from(ZONE, "b").of_claim("data"),
        claim("data", "").bound_to("v"),
        pod("p", 1).claims("data"),
    ));
    assert_eq!(world.places("p"), "b1");
    assert_eq!(world.selections, 0, "the claim has its volume");
    world.then(pod("q r s", 8));
    world.then(pod("x", 8).claims("data"));
    assert_eq!(world.reason_of_pod("x"), Some(Reason::DoesNotFit));
    let message = world.pod("x").message;
    assert!(
        message.contains("volume node affinity conflict"),
        "{message}"
    );
}

#[test]
fn remedies_are_volumes_that_nodes_with_room_reach() {
    let mut world = World::of((
        zones(),
        volume("v", 1).reached_from(ZONE, "b").of_claim("data"),
        claim("data", "").bound_to("v"),
        pod("f", 8).on("b1"),
        pod("g", 8).on("b2"),
        pod("p", 8).claims("data"),
    ));
    let remedies = world.explain("pod/p").remedies;
    let remedy = "volumes that other nodes in the cluster reach: 2 nodes that had volume node \
        affinity conflict have free room for 2 members";
    assert!(remedies.iter().any(|one| one == remedy), "{remedies:?}");
}

#[test]
fn a_pod_stays_in_the_zone_that_a_volume_has_as_a_label() {
    let of_zone = |zones: &str| {
        let labelled =
            volume("v", 1).with(|volume| volume.labels.push((ZONE.into(), zones.into())));
        labelled.of_claim("data")
    };
    for (labels, place) in [("b", "b1"), ("a__b", "a1"), ("c", "-")] {
        let world = World::of((
            zones(),
            of_zone(labels),
            claim("data", "").bound_to("v"),
            pod("p", 1).claims("data"),
        ));
        assert_eq!(world.places("p"), place, "{labels}");
    }
}

#[test]
fn what_is_missing_is_told_and_the_pod_starts_when_it_is_there() {
    let mut world = World::of((zones(), pod("p", 1).claims("data")));
    let told = |world: &mut World, words: &str| {
        world.settle();
        assert_eq!(world.reason_of_pod("p"), Some(Reason::WaitingForVolumes));
        let message = world.pod("p").message;
        assert!(message.contains(words), "{message}");
        assert_eq!(world.binds, 0);
    };
    told(&mut world, "data does not exist in namespace default");
    world.apply(claim("data", "slow"));
    told(
        &mut world,
        "names the StorageClass slow, which does not exist",
    );
    world.apply(storage_class("slow").at_once());
    told(&mut world, "its StorageClass slow does not wait for a pod");
    change_claim(&mut world, "data", |claim| claim.volume = Some("v".into()));
    told(&mut world, "is not bound to its volume v yet");
    change_claim(&mut world, "data", |claim| claim.bind_completed = true);
    told(&mut world, "has the volume v, which does not exist");
    world.then(volume("v", 1).of_claim("data"));
    assert_eq!(world.places("p"), "a1");
}

#[test]
fn volumes_of_a_whole_gang_are_made_before_any_member_is_bound() {
    let mut world = World::new();
    world.answers(To::SelectionOf("c-1"), throttled());
    world.then((zones(), pair()));
    assert_eq!(world.binds, 0, "c-0 has its volume, c-1 has none");
    assert!(claim_of(&world, "c-0").is_bound());
    assert_eq!(world.places("g-0 g-1"), "a1 a2", "the places are kept");
    assert_eq!(world.reason("g"), Some(Reason::WaitingForVolumes));
    let message = world.message("g");
    assert!(message.contains("waits for the volume"), "{message}");
    world.answers_again(&To::SelectionOf("c-1"));
    world.later(10_000);
    assert_eq!(world.binds, 2);
    assert_eq!(world.reason("g"), None);
    for (pod, claim) in [("g-0", "c-0"), ("g-1", "c-1")] {
        let node = world.stored(pod).node.clone();
        assert_eq!(claim_of(&world, claim).selected_node, node);
    }
}

#[test]
fn a_request_whose_answer_is_lost_is_made_again() {
    let mut world = World::new();
    world.answers(To::SelectionOf("c-0"), lost());
    world.then((zones(), pair()));
    assert_eq!(world.binds, 0);
    world.answers_again(&To::SelectionOf("c-0"));
    world.later(10_000);
    assert_eq!(world.binds, 2);
}

#[test]
fn a_gang_gives_back_its_places_if_one_volume_cannot_be_made() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then((zones(), pair()));
    assert_eq!((world.selections, world.binds), (2, 0));
    // The provisioner cannot make the volume there, and says so.
    change_claim(&mut world, "c-1", |claim| claim.selected_node = None);
    world.settle();
    assert_eq!(world.places("g-0 g-1"), "- -");
    assert_eq!(world.reason("g"), Some(Reason::BindingFailed));
    let message = world.message("g");
    assert!(message.contains("no volume could be made"), "{message}");
    assert_eq!(claim_of(&world, "c-0").selected_node, None, "taken back");
    world.no_provisioner = false;
    world.later(60_000);
    assert_eq!(world.binds, 2, "it is tried again after a pause");
}

#[test]
fn a_gang_does_not_wait_for_ever_for_a_volume() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then((zones(), pair()));
    world.then(pod("other-0 other-1 other-2", 8));
    assert_eq!(world.binds, 2, "the room of the pair is taken");
    world.later(600_000);
    assert_eq!(world.places("g-0 g-1"), "- -");
    let message = world.message("g");
    assert!(message.contains("within 10 min"), "{message}");
    assert_eq!(world.binds, 3, "others get the room");
}

#[test]
fn a_refused_selection_gives_the_places_back() {
    let mut world = World::new();
    world.answers(To::SelectionOf("c-0"), refused());
    world.then((zones(), pair()));
    assert_eq!(world.places("g-0 g-1"), "- -");
    assert_eq!(world.reason("g"), Some(Reason::BindingFailed));
    world.answers_again(&To::SelectionOf("c-0"));
    world.later(60_000);
    assert_eq!(world.binds, 2);
}

#[test]
fn an_answer_that_comes_with_the_end_of_its_pod_does_no_harm() {
    for answer in [refused(), lost(), throttled()] {
        let mut world = World::new();
        world.apply((
            zones(),
            storage_class("fast"),
            claim("c", "fast"),
            pod("p", 8).claims("c"),
        ));
        let commands = world.commands();
        world.delete("p");
        for command in commands {
            world.carry_out(command, answer.clone());
        }
        assert_eq!(world.selections, 1);
        world.settle();
        world.then(pod("others-0 others-1 others-2 others-3", 8));
        assert_eq!(world.binds, 4);
    }
}

#[test]
fn a_gang_gives_back_its_places_if_a_node_goes_while_its_volumes_are_made() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then((zones(), pair()));
    assert_eq!(world.places("g-0 g-1"), "a1 a2");
    world.lose_node("a2");
    world.no_provisioner = false;
    world.settle();
    world.later(60_000);
    assert_eq!((world.binds, world.is_placed("g-1")), (2, true));
}

#[test]
fn a_pod_that_is_deleted_while_its_volume_is_made_leaves_nothing_behind() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then((
        zones(),
        storage_class("fast"),
        claim("c", "fast"),
        pod("p", 8).claims("c"),
    ));
    assert!(claim_of(&world, "c").selected_node.is_some());
    world.delete("p");
    world.settle();
    assert_eq!(claim_of(&world, "c").selected_node, None);
    world.then(pod("others-0 others-1 others-2 others-3", 8));
    assert_eq!(world.binds, 4);
}

#[test]
fn a_new_leader_goes_on_where_a_volume_was_made() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then((zones(), pair()));
    assert_eq!(world.binds, 0);
    world.take_over();
    world.settle();
    assert_eq!(
        world.selections, 2,
        "the claims were told their nodes already"
    );
    for name in ["c-0", "c-1"] {
        assert_eq!(world.binds, 0);
        let volume_name = format!("v-{name}");
        world.apply(volume(&volume_name, 1).of_claim(name));
        change_claim(&mut world, name, |claim| {
            claim.volume = Some(volume_name.into());
            claim.bind_completed = true;
        });
        world.settle();
    }
    assert_eq!(world.binds, 2);
}

#[test]
fn a_volume_is_made_only_where_its_class_and_its_driver_can() {
    let mut world = World::of((
        zones(),
        storage_class("in-b").made_in(ZONE, "b"),
        claim("c d", "in-b"),
        pod("p", 1).claims("c"),
    ));
    assert_eq!(world.places("p"), "b1");
    world.apply((csi_driver(), capacity("little", "in-b", 4)));
    change_claim(&mut world, "d", |claim| claim.size = Some(5 << 30));
    world.then(pod("q", 1).claims("d"));
    assert_eq!(world.reason_of_pod("q"), Some(Reason::DoesNotFit));
    let message = world.pod("q").message;
    assert!(message.contains("persistent volumes"), "{message}");
    world.then(capacity("much", "in-b", 5).reached_from("host", "b2"));
    assert_eq!(world.places("q"), "-", "no node has the label");
    world.then(capacity("much", "in-b", 5));
    assert_eq!(world.places("q"), "b1");
}

#[test]
fn no_more_volumes_are_attached_than_a_node_takes() {
    let mut world = World::of((
        node("n1 n2", 8),
        csi_node("n1", 2),
        storage_class("fast"),
        claim("c-0 c-1 c-2 c-3", "fast"),
        gang("g", 4),
        (
            pod("g-0", 1).of("g").claims("c-0"),
            pod("g-1", 1).of("g").claims("c-1"),
            pod("g-2", 1).of("g").claims("c-2"),
            pod("g-3", 1).of("g").claims("c-3"),
        ),
    ));
    let places = world.nodes_of("g-0 g-1 g-2 g-3");
    let on_n1 = places.iter().filter(|node| *node == "n1").count();
    assert!(on_n1 <= 2, "{places:?}");
    assert_eq!(world.binds, 4, "the other node is not limited");
    world.apply((csi_node("n1", on_n1.try_into().unwrap()), csi_node("n2", 4)));
    world.then((claim("c-4", "fast"), pod("k", 1).claims("c-4")));
    assert_eq!(world.is_placed("k"), on_n1 > 0, "{places:?}");
}

#[test]
fn what_is_still_attached_to_a_node_takes_room_until_it_is_detached() {
    let mut world = World::of((
        node("n1", 8),
        csi_node("n1", 1),
        volume("v", 1).attached().of_claim("c"),
        volume("w", 1).attached().of_claim("d"),
        claim("c", "").bound_to("v"),
        claim("d", "").bound_to("w"),
        attachment("a", "v", "n1"),
        pod("p", 1).claims("c").on("n1"),
    ));
    // The volume of a pod counts once, attached or not.
    world.apply(csi_node("n1", 2));
    world.then(pod("q", 1).claims("d"));
    assert_eq!(world.places("q"), "n1");
    world.end("q");
    world.settle();
    // The pod goes, and its volume is still there.
    world.apply(csi_node("n1", 1));
    world.end("p");
    world.then(pod("r", 1).claims("d"));
    assert_eq!(world.places("r"), "-");
    let message = world.pod("r").message;
    let missing = "insufficient attachable volumes of disks.example.com";
    assert!(message.contains(missing), "{message}");
    // Attached elsewhere, or by a volume that there is not, it takes nothing here.
    world.then(attachment("a", "v", "n2"));
    assert_eq!(world.places("r"), "n1");
    world.end("r");
    world.apply(attachment("a", "v", "n1"));
    world.then(pod("s", 1).claims("d"));
    assert_eq!(world.places("s"), "-");
    let key = ObjectKey::Storage(StorageKind::Attachment, "".into(), "a".into());
    world.forget(key);
    world.settle();
    assert_eq!(world.places("s"), "n1");
}

#[test]
fn a_disk_that_no_driver_understands_keeps_volumes_off_its_node() {
    let mut world = World::of((
        node("n1", 8),
        csi_node("n1", 9),
        // Its driver is limited nowhere.
        storage_class("other").with(|class| class.provisioner = "other.example.com".into()),
        claim("c-0 c-1 c-2", "other"),
        pod("strange", 1).claims("/").foreign().on("n1"),
        pod("p", 1).claims("c-0"),
        pod("plain", 1),
    ));
    assert_eq!(world.places("p plain"), "- n1");
    let message = world.pod("p").message;
    let missing = "insufficient attachable volumes of any driver";
    assert!(message.contains(missing), "{message}");
    // A node that limits nothing takes it.
    world.then(csi_node("n1", 9).with(|node| node.drivers[0].1 = None));
    assert_eq!(world.places("p"), "n1");
    world.apply(csi_node("n1", 9));
    world.then(pod("q", 1).claims("c-1"));
    assert_eq!(world.places("p q"), "n1 -");
    // Another such pod that ends changes nothing, and the last does.
    world.apply(pod("too", 1).claims("/").foreign().on("n1"));
    world.end("strange");
    world.settle();
    assert_eq!(world.places("q"), "-");
    world.end("too");
    world.settle();
    assert_eq!(world.places("q"), "n1");
    world.then(pod("r", 1).claims("c-2"));
    assert_eq!(world.places("r"), "n1");
}

#[test]
fn a_bound_volume_from_before_csi_is_where_its_driver_looks_for_it() {
    const KIND: &str = "kubernetes.io/gce-pd";
    let only_migrated = |volume: &mut VolumeFacts| {
        let requirement = MatchRequirement {
            key: migrated_label(KIND),
            operator: MatchOperator::Exists,
            values: Vec::new(),
        };
        let term = NodeSelectorTerm {
            match_expressions: vec![requirement],
            match_fields: Vec::new(),
        };
        volume.affinity_once_bound = Some(vec![term]);
    };
    let leaves = |names: &str| csi_node(names, 9).with(|node| node.migrated = vec![KIND.into()]);
    let mut world = World::of((
        node("n1 n2", 8),
        (csi_node("n1", 9), leaves("n2")),
        volume("v", 1).of_claim("data").with(only_migrated),
        claim("data", "").bound_to("v"),
        pod("p", 1).claims("data"),
    ));
    assert_eq!(world.places("p"), "n2");
    world.apply((leaves("n1"), csi_node("n2", 9)));
    world.then(pod("q", 1).claims("data"));
    assert_eq!(world.places("q"), "n1");
    world.apply(csi_node("n1", 9));
    world.then(pod("r", 1).claims("data"));
    assert_eq!(world.reason_of_pod("r"), Some(Reason::DoesNotFit));
}

#[test]
fn a_claim_for_one_pod_is_used_by_one_pod() {
    let mut world = World::of((
        zones(),
        volume("v", 1).of_claim("data"),
        claim("data", "").bound_to("v").for_one_pod(),
        pod("p", 1).claims("data"),
    ));
    world.then(pod("q", 1).claims("data"));
    assert_eq!(world.places("p q"), "a1 -");
    assert_eq!(world.reason_of_pod("q"), Some(Reason::WaitingForVolumes));
    let message = world.pod("q").message;
    assert!(message.contains("pod p uses it"), "{message}");
    world.end("p");
    world.settle();
    assert_eq!(world.places("q"), "a1");
}

#[test]
fn an_ephemeral_volume_waits_for_the_claim_that_is_made_for_the_pod() {
    let mut world = World::of((
        zones(),
        storage_class("fast"),
        pod("p", 1).ephemeral("scratch"),
    ));
    assert_eq!(world.reason_of_pod("p"), Some(Reason::WaitingForVolumes));
    world.then(claim("p-scratch", "fast"));
    let message = world.pod("p").message;
    assert!(message.contains("was not made for the pod"), "{message}");
    let uid = world.stored("p").uid;
    change_claim(&mut world, "p-scratch", |claim| claim.pod = Some(uid));
    world.settle();
    assert_eq!(world.places("p"), "a1");
}

#[test]
fn members_that_share_a_claim_have_its_volume_made_once() {
    let world = World::of((
        zones(),
        storage_class("fast"),
        claim("shared", "fast"),
        gang("g", 3),
        pod("g-0 g-1 g-2", 8).of("g").claims("shared"),
    ));
    assert_eq!((world.selections, world.binds), (1, 3));
}

#[test]
fn a_bind_is_not_sent_again_when_the_volume_of_its_pod_is_lost() {
    let mut world = World::new();
    world.answers(To::Bind, throttled());
    world.then((
        zones(),
        volume("v", 1).of_claim("data"),
        claim("data", "").bound_to("v"),
        pod("p", 1).claims("data"),
    ));
    assert_eq!((world.binds, &*world.places("p")), (1, "a1"));
    change_claim(&mut world, "data", |claim| claim.is_lost = true);
    world.answers_again(&To::Bind);
    world.later(10_000);
    assert_eq!((world.binds, &*world.places("p")), (1, "-"));
    assert_eq!(world.reason_of_pod("p"), Some(Reason::WaitingForVolumes));
}

#[test]
fn surplus_without_claims_waits_for_the_volumes_of_the_minimum() {
    let mut world = World::new();
    world.answers(To::SelectionOf("c-1"), throttled());
    world.then((zones(), pair(), pod("g-2", 1).of("g")));
    assert_eq!(world.binds, 0);
    world.answers_again(&To::SelectionOf("c-1"));
    world.later(10_000);
    assert_eq!(world.binds, 3);
}

/// The gang may never begin: then pods would have been evicted in vain.
#[test]
fn surplus_takes_no_room_from_others_while_its_gang_waits_for_volumes() {
    let mut world = World::new();
    world.answers(To::SelectionOf("c-1"), throttled());
    world.apply((
        zones(),
        quota("a", 24),
        quota("b", 8),
        storage_class("fast"),
    ));
    world.apply((gang("h", 1).queue("b"), pod("h-0", 8).of("h").on("b1")));
    world.apply(pod("h-1", 8).of("h").on("b2"));
    world.apply((claim("c-0 c-1", "fast"), gang("g", 2).queue("a")));
    world.then((
        pod("g-0", 8).of("g").claims("c-0"),
        pod("g-1", 8).of("g").claims("c-1"),
        pod("g-2", 8).of("g"),
    ));
    world.later(5_000);
    assert_eq!((world.binds, world.evictions), (0, 0));
    world.answers_again(&To::SelectionOf("c-1"));
    world.later(10_000);
    assert_eq!((world.binds, world.evictions), (3, 1));
}
