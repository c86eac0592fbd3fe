//! Pods with claims that get volumes which exist: local disks, and others that were made by hand.

use gpu_batch_policies::command::Action;
use gpu_batch_policies::event::{Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::{
    ClaimFacts, ClaimReference, LabelSelector, PodFacts, StorageFacts, StorageKind, VolumeFacts,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{
    Sketch, Thing, To, World, claim, conflict, gang, lost, node, pod, refused, storage_class,
    throttled, volume,
};

const HOST: &str = "kubernetes.io/hostname";

/// Two nodes, each with a label that names it.
fn nodes() -> impl Thing {
    (
        node("n1", 8).label(HOST, "n1"),
        node("n2", 8).label(HOST, "n2"),
        storage_class("local").by_hand(),
    )
}

/// Disks of a node, of so many GiB each.
fn disks(names: &str, gib: u64, node: &str) -> Sketch<VolumeFacts> {
    volume(names, gib)
        .of_class("local")
        .reached_from(HOST, node)
}

/// A pod of the gang `g` for each of these claims, with a GPU.
fn members(claims: &str) -> Vec<Sketch<PodFacts>> {
    let claims = claims.split_whitespace();
    let member = |claim: &str| pod(&format!("g-{claim}"), 1).of("g").claims(claim);
    claims.map(member).collect()
}

/// A gang of two with disks on two nodes, which only one disk of each node suits.
fn pair() -> impl Thing {
    (
        nodes(),
        disks("d1", 1, "n1"),
        disks("d2", 1, "n2"),
        claim("c-0 c-1", "local"),
        gang("g", 2),
        members("c-0 c-1"),
    )
}

fn claim_of(world: &World, name: &str) -> ClaimFacts {
    let key = ObjectKey::Storage(StorageKind::Claim, "default".into(), name.into());
    match world.objects.get(&key) {
        Some(Object::Storage(StorageFacts::Claim(claim))) => claim.clone(),
        _ => panic!("there is no claim {name}"),
    }
}

fn volume_of(world: &World, name: &str) -> VolumeFacts {
    let key = ObjectKey::Storage(StorageKind::Volume, "".into(), name.into());
    match world.objects.get(&key) {
        Some(Object::Storage(StorageFacts::Volume(volume))) => volume.clone(),
        _ => panic!("there is no volume {name}"),
    }
}

/// The volumes that claims have.
fn volumes_of(world: &World, claims: &str) -> String {
    let claims = claims.split_whitespace();
    let volume = |name| claim_of(world, name).volume;
    let volumes = claims.map(|name| volume(name).map_or("-".to_owned(), String::from));
    volumes.collect::<Vec<_>>().join(" ")
}

/// The name of the claim for which a volume is kept.
fn kept_for(world: &World, volume: &str) -> Option<String> {
    volume_of(world, volume)
        .claim
        .map(|claim| claim.name.into())
}

/// Binds a claim to the volume that is kept for it, as Kubernetes does.
fn bind(world: &mut World, name: &str, volume: &str) {
    let (mut claim, mut volume) = (claim_of(world, name), volume_of(world, volume));
    claim.bind_to(&mut volume);
    world.apply((volume, claim));
    world.settle();
}

/// Gives a volume to the claim of a pod of somebody else.
fn take_away(world: &mut World, name: &str) {
    let mut volume = volume_of(world, name);
    volume.claim = Some(ClaimReference {
        namespace: "others".into(),
        name: "theirs".into(),
        uid: None,
    });
    world.apply(volume);
}

#[test]
fn a_gang_of_four_gets_the_four_disks_of_two_nodes() {
    let mut world = World::of((
        nodes(),
        disks("d1 d2 d3", 1, "n1"),
        claim("c-0 c-1 c-2 c-3", "local"),
        gang("g", 4),
        members("c-0 c-1 c-2 c-3"),
    ));
    assert_eq!((world.keepings, world.binds), (0, 0));
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    let message = world.message("g");
    let words = "free volumes of class local with 1Gi";
    assert!(message.contains(words), "{message}");
    assert!(message.contains("there is room for 3"), "{message}");
    world.then(disks("d4", 1, "n2"));
    assert_eq!((world.keepings, world.selections, world.binds), (4, 0, 4));
    let places = world.places("g-c-0 g-c-1 g-c-2 g-c-3");
    assert_eq!(places.matches("n1").count(), 3, "{places}");
    let mut volumes: Vec<String> = volumes_of(&world, "c-0 c-1 c-2 c-3")
        .split(' ')
        .map(Into::into)
        .collect();
    volumes.sort();
    assert_eq!(volumes, ["d1", "d2", "d3", "d4"]);
}

#[test]
fn a_claim_gets_the_smallest_volume_that_suits_it() {
    let tier = |volume: &mut VolumeFacts| volume.labels.push(("tier".into(), "x".into()));
    let selects = |claim: &mut ClaimFacts| {
        claim.selector = Some(LabelSelector {
            match_labels: vec![("tier".into(), "x".into())],
            match_expressions: Vec::new(),
        });
    };
    let world = World::of((
        nodes(),
        (disks("small", 1, "n1"), disks("large", 9, "n1")),
        disks("middle", 5, "n1"),
        disks("other-node", 2, "n2").with(tier),
        claim("c", "local").of_gib(2),
        claim("d", "local").of_gib(2).with(selects),
        pod("p", 1).claims("c"),
        pod("q", 1).claims("d"),
    ));
    assert_eq!(volumes_of(&world, "c d"), "middle other-node");
    assert_eq!(world.places("p q"), "n1 n2");
}

#[test]
fn claims_of_one_pod_take_volumes_of_their_sizes() {
    let mut world = World::of((
        nodes(),
        disks("d1", 1, "n1"),
        disks("d2 d3", 5, "n2"),
        claim("little", "local").of_gib(1),
        claim("much", "local").of_gib(4),
        pod("p", 1).claims("much little"),
    ));
    assert_eq!(world.places("p"), "n2");
    assert_eq!(volumes_of(&world, "little much"), "d2 d3");
    world.then((
        claim("more", "local").of_gib(1),
        claim("most", "local").of_gib(9),
        pod("q", 1).claims("more most"),
    ));
    assert_eq!(world.places("q"), "-");
    let message = world.pod("q").message;
    assert!(message.contains("most is not bound yet"), "{message}");
    world.then(disks("d4", 9, "n1"));
    assert_eq!(
        (&*world.places("q"), &*volumes_of(&world, "more most")),
        ("n1", "d1 d4")
    );
}

#[test]
fn a_large_disk_is_left_for_the_claim_that_needs_it() {
    let world = World::of((
        nodes(),
        disks("d1", 9, "n1"),
        disks("d2", 1, "n2"),
        claim("c-0", "local").of_gib(1),
        claim("c-1", "local").of_gib(5),
        gang("g", 2),
        members("c-0 c-1"),
    ));
    assert_eq!(volumes_of(&world, "c-0 c-1"), "d2 d1");
    assert_eq!(world.binds, 2);
}

#[test]
fn nothing_is_bound_before_all_claims_of_the_gang_are() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then(pair());
    assert_eq!((world.keepings, world.binds), (2, 0));
    assert_eq!(world.reason("g"), Some(Reason::WaitingForVolumes));
    let first = kept_for(&world, "d1").unwrap();
    bind(&mut world, &first, "d1");
    assert_eq!(world.binds, 0);
    let second = kept_for(&world, "d2").unwrap();
    bind(&mut world, &second, "d2");
    assert_eq!((world.binds, world.reason("g")), (2, None));
}

#[test]
fn no_two_gangs_count_on_one_disk() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then((nodes(), disks("d1", 1, "n1"), claim("c-0 c-1", "local")));
    world.then((pod("p", 1).claims("c-0"), pod("q", 1).claims("c-1")));
    assert_eq!((world.keepings, &*world.places("p q")), (1, "n1 -"));
    assert_eq!(world.reason_of_pod("q"), Some(Reason::WaitingForVolumes));
    let message = world.pod("q").message;
    assert!(message.contains("no free one that exists"), "{message}");
    world.then(disks("d2", 1, "n2"));
    assert_eq!((world.keepings, &*world.places("p q")), (2, "n1 n2"));
}

#[test]
fn a_volume_that_every_node_reaches_is_used_once() {
    let mut world = World::of((
        nodes(),
        volume("v1 v2", 1).of_class("local"),
        claim("c-0 c-1 c-2", "local"),
        gang("g", 3),
        // One on each node, and none on the third.
        pod("g-0", 8).of("g").claims("c-0"),
        pod("g-1", 4).of("g").claims("c-1"),
        pod("g-2", 4).of("g").claims("c-2"),
    ));
    assert_eq!((world.keepings, world.binds), (0, 0));
    assert_eq!(world.reason("g"), Some(Reason::NotFoundWithinBound));
    world.then(volume("v3", 1).of_class("local"));
    assert_eq!((world.keepings, world.binds), (3, 3));
}

#[test]
fn a_gang_gives_up_when_another_takes_its_disk() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.answers(To::KeepingFor("c-1"), throttled());
    world.then(pair());
    let kept = if kept_for(&world, "d1").is_some() {
        "d1"
    } else {
        "d2"
    };
    let open = if kept == "d1" { "d2" } else { "d1" };
    assert_eq!(kept_for(&world, kept).as_deref(), Some("c-0"));
    take_away(&mut world, open);
    world.settle();
    assert_eq!(world.places("g-c-0 g-c-1"), "- -");
    assert_eq!(kept_for(&world, kept), None, "it is free again");
    assert_eq!(kept_for(&world, open).as_deref(), Some("theirs"));
    let message = world.message("g");
    assert!(message.contains("another claim has it"), "{message}");
    world.answers_again(&To::KeepingFor("c-1"));
    world.no_provisioner = false;
    world.then(disks("d3", 1, "n1"));
    world.later(60_000);
    assert_eq!(world.binds, 2);
}

#[test]
fn giving_up_frees_the_volumes() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then(pair());
    assert!(kept_for(&world, "d1").is_some() && kept_for(&world, "d2").is_some());
    world.later(600_000);
    let message = world.message("g");
    assert!(message.contains("within 10 min"), "{message}");
    assert_eq!(
        (kept_for(&world, "d1"), kept_for(&world, "d2")),
        (None, None)
    );
    world.no_provisioner = false;
    world.later(60_000);
    assert_eq!(world.binds, 2);
}

#[test]
fn a_claim_that_is_bound_keeps_its_volume_when_its_gang_gives_up() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then(pair());
    let first = kept_for(&world, "d1").unwrap();
    bind(&mut world, &first, "d1");
    world.later(600_000);
    assert_eq!(kept_for(&world, "d1"), Some(first.clone()));
    assert_eq!(kept_for(&world, "d2"), None);
    world.no_provisioner = false;
    world.later(60_000);
    assert_eq!((world.binds, &*volumes_of(&world, &first)), (2, "d1"));
}

#[test]
fn a_request_that_fails_is_made_again_or_told() {
    for answer in [lost(), conflict(), throttled()] {
        let mut world = World::new();
        world.answers(To::KeepingFor("c-0"), answer);
        world.then(pair());
        assert_eq!(world.binds, 0);
        world.answers_again(&To::KeepingFor("c-0"));
        world.later(10_000);
        assert_eq!(world.binds, 2);
    }
    let mut world = World::new();
    world.answers(To::KeepingFor("c-0"), refused());
    world.then(pair());
    assert_eq!(world.places("g-c-0 g-c-1"), "- -");
    assert_eq!(world.reason("g"), Some(Reason::BindingFailed));
    let message = world.message("g");
    assert!(message.contains("a webhook says no"), "{message}");
    assert!(message.contains("keep PersistentVolume"), "{message}");
    world.answers_again(&To::KeepingFor("c-0"));
    world.later(60_000);
    assert_eq!(world.binds, 2);
}

#[test]
fn the_end_of_a_pod_frees_its_volume() {
    for answer in [None, Some(lost()), Some(refused()), Some(conflict())] {
        let mut world = World::new();
        world.no_provisioner = true;
        world.apply((nodes(), disks("d1", 1, "n1"), claim("c", "local")));
        world.apply(pod("p", 8).claims("c"));
        let commands = world.commands();
        world.delete("p");
        for command in commands {
            let answer = answer.clone();
            world.carry_out(command, answer.unwrap_or(Outcome::Done));
        }
        world.settle();
        assert_eq!((world.keepings, kept_for(&world, "d1")), (1, None));
        world.no_provisioner = false;
        world.then((claim("d", "local"), pod("q", 8).claims("d")));
        world.later(10_000);
        assert_eq!(
            (&*world.places("q"), &*volumes_of(&world, "d")),
            ("n1", "d1")
        );
    }
}

#[test]
fn a_volume_that_was_changed_meanwhile_is_freed_as_it_is_then() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.apply((nodes(), disks("d1", 1, "n1"), claim("c", "local")));
    world.then(pod("p", 8).claims("c"));
    assert_eq!(kept_for(&world, "d1").as_deref(), Some("c"));
    world.delete("p");
    let mut freed = 0;
    for _ in 0..10 {
        for command in world.commands() {
            let frees = matches!(&command.action, Action::KeepVolume(it) if it.claim.is_none());
            freed += usize::from(frees);
            let answer = if frees { conflict() } else { Outcome::Done };
            world.carry_out(command, answer);
        }
    }
    assert_eq!(freed, 1, "it is not asked again of the same version");
    let key = ObjectKey::Storage(StorageKind::Volume, "".into(), "d1".into());
    let Some(Object::Storage(StorageFacts::Volume(volume))) = world.objects.get(&key) else {
        panic!("there is no volume");
    };
    let mut volume = volume.clone();
    volume.version = "later".into();
    world.apply(volume);
    world.settle();
    assert_eq!(kept_for(&world, "d1"), None);
}

#[test]
fn a_new_leader_goes_on_with_a_volume_that_is_kept() {
    let mut world = World::new();
    world.no_provisioner = true;
    world.then(pair());
    assert_eq!((world.keepings, world.binds), (2, 0));
    world.take_over();
    world.settle();
    assert_eq!(world.keepings, 2, "the volumes are kept already");
    for volume in ["d1", "d2"] {
        let claim = kept_for(&world, volume).unwrap();
        bind(&mut world, &claim, volume);
    }
    assert_eq!(world.binds, 2);
}

#[test]
fn a_volume_that_exists_comes_before_one_that_would_be_made() {
    let mut world = World::of((
        nodes(),
        storage_class("fast").made_in(HOST, "n2"),
        volume("v", 1).of_class("fast").reached_from(HOST, "n1"),
        claim("c d e", "fast"),
        pod("p", 8).claims("c"),
    ));
    assert_eq!(
        (&*world.places("p"), &*volumes_of(&world, "c")),
        ("n1", "v")
    );
    assert_eq!((world.keepings, world.selections), (1, 0));
    world.then(pod("q r", 8).claims("d"));
    assert_eq!(world.selections, 1, "another volume is made");
}

#[test]
fn members_that_share_a_claim_get_one_volume() {
    let world = World::of((
        nodes(),
        volume("v", 1).of_class("local"),
        claim("shared", "local"),
        gang("g", 3),
        pod("g-0 g-1 g-2", 4).of("g").claims("shared"),
    ));
    assert_eq!((world.keepings, world.binds), (1, 3));
}

/// What makes a volume another one.
type Change = fn(&mut VolumeFacts);

#[test]
fn a_disk_is_not_for_a_claim_of_another_sort() {
    let changes: [(&str, Change); 6] = [
        ("size", |volume| volume.size -= 1),
        ("class", |volume| volume.class = "other".into()),
        ("mode", |volume| volume.is_block = true),
        ("access", |volume| volume.access.0 = 2),
        ("attributes", |volume| {
            volume.attributes_class = "gold".into();
        }),
        ("phase", |volume| volume.is_available = false),
    ];
    for (what, change) in changes {
        let mut world = World::of((
            nodes(),
            disks("d1", 1, "n1").with(change),
            claim("c", "local"),
            pod("p", 1).claims("c"),
        ));
        assert_eq!(
            world.reason_of_pod("p"),
            Some(Reason::WaitingForVolumes),
            "{what}"
        );
        world.then(disks("d1", 1, "n1"));
        assert_eq!(world.places("p"), "n1", "{what}");
    }
}
