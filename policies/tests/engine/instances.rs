//! Instances of MIG, cut as pods need them.

use gpu_batch_policies::facts::{
    CardEntries, CardFacts, CardMemory, CardModes, CardNeed, CardTerms, ContainerCards,
    ContainerRole, HAMI_REGISTER, MigInstance, MigPlacement, MigProfile, NodeFacts, PodFacts,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, World, gang, names, node, pod};

/// What HAMi's plugin lists of an H100.
fn profiles() -> Vec<MigProfile> {
    vec![
        MigProfile::new("1g.10gb", 9_984, 130, 1, &[0, 1, 2, 3, 4, 5, 6]),
        MigProfile::new("2g.20gb", 20_096, 250, 2, &[0, 2, 4]),
        MigProfile::new("3g.40gb", 40_448, 460, 4, &[0, 4]),
        MigProfile::new("7g.80gb", 81_152, 1_000, 8, &[0]),
    ]
}

/// A node of HAMi with so many cards in MIG mode, `0` and so on, and shared ones after them.
fn hami(name: &str, cut: usize, shared: usize) -> Sketch<NodeFacts> {
    let card = |number: usize| CardFacts {
        slots: if number < cut { 7 } else { 10 },
        profiles: if number < cut { profiles() } else { Vec::new() },
        ..CardFacts::new(number.to_string(), 81_559)
    };
    let cards: Vec<CardFacts> = (0..cut + shared).map(card).collect();
    node(name, 70).with(|node| {
        node.annotations = vec![(HAMI_REGISTER.into(), "".into())];
        node.cards.clone_from(&cards);
    })
}

/// A pod that asks for so many cards with so much memory each.
fn asking(name: &str, count: u64, mib: u64, modes: CardModes) -> Sketch<PodFacts> {
    let need = CardNeed::new(count, 0, CardMemory::Mib(mib));
    pod(name, count).cards(need).card_terms(CardTerms {
        modes,
        ..CardTerms::default()
    })
}

fn small(name: &str) -> Sketch<PodFacts> {
    asking(name, 1, 8_000, CardModes::Mig)
}

/// What a pod holds: `card: profile at start`.
fn held(world: &World, pod: &str) -> Vec<String> {
    let parts = world.stored(pod).cards.iter();
    let held = parts.flat_map(|part| {
        let instances = part.instances.iter();
        instances.map(|it| format!("{}: {} at {}", part.card, it.profile, it.placement.start))
    });
    held.collect()
}

#[test]
fn instances_are_taken_and_given_back() {
    let mut world = World::of(hami("n1", 1, 0));
    for name in ["a", "b", "c"] {
        world.then(small(name));
    }
    let places = ["a", "b", "c"].map(|name| held(&world, name).join(" "));
    assert_eq!(
        places,
        ["0: 1g.10gb at 6", "0: 1g.10gb at 5", "0: 1g.10gb at 4"]
    );
    world.then(asking("half", 1, 40_000, CardModes::Mig));
    assert_eq!(held(&world, "half"), ["0: 3g.40gb at 0"]);
    world.then(asking("next", 1, 20_000, CardModes::Mig));
    assert_eq!(
        world.message("pod/next"),
        "1 member with 20000 MiB of a card does not fit in the cluster: of 1 node, 1 had too few \
         free places on its cards for MIG instances that are large enough"
    );
    // Slices 4 and 5 are one place again.
    world.end("b");
    world.settle();
    assert_eq!(world.reason("pod/next"), Some(Reason::DoesNotFit));
    world.end("c");
    world.settle();
    assert_eq!(held(&world, "next"), ["0: 2g.20gb at 4"]);
}

#[test]
fn a_container_may_have_several_instances_of_a_card_and_is_told_each() {
    let mut world = World::of(hami("n1", 1, 0));
    world.then(asking("a", 3, 8_000, CardModes::Mig).with(|pod| {
        pod.card_entries = CardEntries {
            before: 1,
            ..CardEntries::default()
        };
    }));
    assert_eq!(
        held(&world, "a"),
        ["0: 1g.10gb at 4", "0: 1g.10gb at 5", "0: 1g.10gb at 6"]
    );
    let bind = world.last_bind.clone().unwrap();
    assert_eq!((bind.cards.len(), bind.cards[0].slots), (1, 3));
    let entries = bind.assignment.unwrap().entries;
    assert_eq!(
        (entries.len(), entries[0].len(), entries[1].len()),
        (2, 0, 3)
    );
    let told = entries[1].iter().map(|part| {
        assert_eq!(
            (part.slots, part.thousandths, part.memory_mib),
            (1, 130, 9_984)
        );
        part.instances[0].placement.start
    });
    assert_eq!(told.collect::<Vec<_>>(), [6, 5, 4]);
}

#[test]
fn each_container_has_instances_of_its_own() {
    let mut world = World::of(hami("n1", 1, 0));
    let need = CardNeed::new(1, 0, CardMemory::Mib(8_000)).unwrap();
    let container = |role| ContainerCards { role, need };
    world.then(small("a").card_terms(CardTerms {
        containers: vec![
            container(ContainerRole::Init),
            container(ContainerRole::Main),
            container(ContainerRole::Main),
        ],
        modes: CardModes::Mig,
        ..CardTerms::default()
    }));
    assert_eq!(
        held(&world, "a"),
        ["0: 1g.10gb at 4", "0: 1g.10gb at 5", "0: 1g.10gb at 6"]
    );
}

#[test]
fn a_pod_gets_the_kind_of_card_that_it_asks_for() {
    let mut world = World::of((hami("cut", 1, 0), hami("shared", 0, 1)));
    world.then(asking("a", 1, 8_000, CardModes::Mig));
    world.then(asking("b", 1, 8_000, CardModes::Shared));
    assert_eq!(world.places("a b"), "cut shared");
    // One that takes either goes on where the other has no room.
    let members = names("g", 8);
    world.then((
        gang("g", 8),
        asking(&members, 1, 8_000, CardModes::Any).of("g"),
    ));
    let on_cut = members
        .split(' ')
        .filter(|name| world.places(name) == "cut");
    assert!((1..=6).contains(&on_cut.count()));
    world.then(asking("two", 2, 30_000, CardModes::Shared));
    let message = world.message("pod/two");
    assert!(
        message.contains("1 had too few cards that are not in MIG mode"),
        "{message}"
    );
    world.then(asking("all", 1, 90_000, CardModes::Mig));
    let message = world.message("pod/all");
    for part in [
        "1 had too few cards in MIG mode",
        "1 had too few cards with a MIG profile that is large enough",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

/// A bound pod of another scheduler that holds so many slots of card 0, and these instances.
fn other(name: &str, slots: u32, starts: &[u8]) -> Sketch<PodFacts> {
    let instances: Vec<MigInstance> = starts
        .iter()
        .map(|start| MigInstance {
            placement: MigPlacement {
                start: *start,
                size: 1,
            },
            profile: "unheard-of".into(),
        })
        .collect();
    pod(name, 0).foreign().on("n1").holds(&["0"]).with(|pod| {
        pod.cards[0].slots = slots;
        pod.cards[0].instances.clone_from(&instances);
    })
}

#[test]
fn what_pods_of_others_hold_is_taken_and_all_of_the_card_where_nobody_knows_the_place() {
    let mut world = World::of((hami("n1", 1, 0), other("x", 2, &[6, 5])));
    world.then(small("a"));
    assert_eq!(held(&world, "a"), ["0: 1g.10gb at 4"]);
    world.apply(other("y", 1, &[]));
    world.then(small("b"));
    assert_eq!(world.reason("pod/b"), Some(Reason::DoesNotFit));
    world.end("y");
    world.settle();
    assert_eq!(held(&world, "b"), ["0: 1g.10gb at 3"]);
    // Two that overlap are counted apart: the place is free when both have ended.
    world.apply((other("z", 1, &[2]), other("w", 1, &[2])));
    world.end("z");
    world.settle();
    world.then(asking("half", 1, 20_000, CardModes::Mig));
    assert_eq!(held(&world, "half"), ["0: 2g.20gb at 0"]);
    world.end("w");
    world.settle();
    world.then(small("c"));
    assert_eq!(held(&world, "c"), ["0: 1g.10gb at 2"]);
}

#[test]
fn untouched_cards_stay_whole() {
    let mut world = World::of(hami("n1", 3, 0));
    for name in ["a", "b", "c", "d"] {
        world.then(small(name));
    }
    let cards = ["a", "b", "c", "d"].map(|name| world.cards_of(name).join(" "));
    assert!(cards.iter().all(|card| *card == cards[0]), "{cards:?}");
    world.then(asking("whole", 2, 80_000, CardModes::Mig));
    assert_eq!(world.cards_of("whole").len(), 2);
}
