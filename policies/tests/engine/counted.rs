//! What parts of cards count for in queues.

use gpu_batch_policies::facts::{
    CardFacts, CardMemory, CardModes, CardNeed, CardTerms, ContainerCards, ContainerRole, GPU,
    HAMI_REGISTER, MigProfile, NodeFacts, PodFacts,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, World, node, pod, queue, quota};

const H100: &str = "NVIDIA-H100-80GB-HBM3";

/// A node of HAMi with four cards of this memory; with `profiles`, in MIG mode.
fn hami(name: &str, memory_mib: u64, profiles: &[MigProfile]) -> Sketch<NodeFacts> {
    let card = |number: u8| CardFacts {
        slots: 10,
        profiles: profiles.to_vec(),
        ..CardFacts::new(number.to_string(), memory_mib)
    };
    let cards: Vec<CardFacts> = (0..4).map(card).collect();
    node(name, 40).model(H100).with(|node| {
        node.annotations = vec![(HAMI_REGISTER.into(), "".into())];
        node.cards.clone_from(&cards);
    })
}

fn need(count: u64, thousandths: u64, memory: CardMemory) -> CardNeed {
    CardNeed::new(count, thousandths, memory).unwrap()
}

/// Pods with one container that asks for parts of cards.
fn asking(names: &str, need: CardNeed) -> Sketch<PodFacts> {
    pod(names, need.count().into())
        .cards(Some(need))
        .queue("team")
}

/// Pods that ask for half a card.
fn half(names: &str) -> Sketch<PodFacts> {
    asking(names, need(1, 500, CardMemory::Percent(50)))
}

/// What a queue holds of a key, in thousandths of a card.
fn held(world: &mut World, key: &str) -> u64 {
    let status = world.queue("team");
    let held = status.allocated.iter().find(|(known, _)| **known == *key);
    held.map_or(0, |(_, amount)| *amount)
}

/// What a queue holds and asks for, in thousandths of a card.
fn requested(world: &mut World) -> u64 {
    let status = world.queue("team");
    let asked = status.requested.iter().find(|(key, _)| **key == *GPU);
    asked.map_or(0, |(_, amount)| *amount)
}

#[test]
fn two_halves_fit_into_a_limit_of_one_card_and_a_third_waits() {
    let mut world = World::new();
    world.apply((hami("n1", 80_000, &[]), queue("team").limit(1)));
    for name in ["a", "b", "c"] {
        world.then(half(name));
    }
    assert!(world.is_placed("a") && world.is_placed("b"));
    assert_eq!(world.places("c"), "-");
    assert_eq!(world.reason("pod/c"), Some(Reason::OverLimit));
    assert_eq!(
        world.message("pod/c"),
        "the limit of the queue team is 1 of nvidia.com/gpu; 1 are held and 500m more asked for"
    );
    assert_eq!(held(&mut world, GPU), 1_000);
    world.end("a");
    world.settle();
    assert!(world.is_placed("c"));
}

#[test]
fn gangs_that_are_not_preemptible_fill_a_quota_of_one_card_with_halves() {
    let mut world = World::new();
    world.apply((hami("n1", 80_000, &[]), quota("team", 1)));
    for name in ["a", "b", "c"] {
        world.then(half(name).with(|pod| pod.hints.preemptible = Some(false)));
    }
    assert!(world.is_placed("a") && world.is_placed("b"));
    assert_eq!(world.reason("pod/c"), Some(Reason::NonPreemptibleOverQuota));
}

#[test]
fn a_card_counts_by_the_larger_part_of_memory_and_power() {
    for (need, expected) in [
        (need(1, 500, CardMemory::Percent(50)), 500),
        (need(1, 0, CardMemory::Percent(25)), 250),
        (need(1, 300, CardMemory::Percent(10)), 300),
        (need(1, 0, CardMemory::Mib(20_000)), 250),
        (need(1, 400, CardMemory::Mib(20_000)), 400),
        (need(1, 0, CardMemory::Mib(1)), 1),
        (need(3, 500, CardMemory::Percent(50)), 1_500),
        (need(2, 0, CardMemory::Mib(60_001)), 2 * 751),
        (need(2, 1_000, CardMemory::Percent(100)), 2_000),
    ] {
        let mut world = World::new();
        world.apply((
            hami("n1", 80_000, &[]),
            queue("team").entry(GPU, Some(H100), (1, None), 1),
        ));
        world.then(asking("a", need));
        assert!(world.is_placed("a"), "{need:?}");
        assert_eq!(held(&mut world, GPU), expected, "{need:?}");
        let of_model = format!("{GPU}@{H100}");
        assert_eq!(held(&mut world, &of_model), expected, "{need:?}");
    }
}

#[test]
fn containers_count_by_what_they_use_at_a_time() {
    let part = |percent: u32| need(1, u64::from(percent) * 10, CardMemory::Percent(percent));
    let main = |percent| (ContainerRole::Main, part(percent));
    let init = |percent| (ContainerRole::Init, part(percent));
    for (containers, expected) in [
        (vec![main(50), main(25)], 750),
        (vec![init(90), main(50)], 900),
        (vec![init(30), main(50), main(20)], 700),
        (
            vec![(ContainerRole::Sidecar, part(20)), init(60), main(50)],
            800,
        ),
    ] {
        let mut world = World::new();
        world.apply((hami("n1", 80_000, &[]), queue("team")));
        let terms = CardTerms {
            containers: containers
                .iter()
                .map(|(role, need)| ContainerCards {
                    role: *role,
                    need: *need,
                })
                .collect(),
            ..CardTerms::default()
        };
        let largest = containers.iter().map(|(_, need)| *need);
        let largest = largest.max_by_key(CardNeed::thousandths).unwrap();
        let several = asking("a", largest);
        world.then(several.card_terms(terms));
        assert!(world.is_placed("a"), "{containers:?}");
        assert_eq!(held(&mut world, GPU), expected, "{containers:?}");
    }
}

#[test]
fn memory_in_mib_counts_by_the_card_and_at_most_while_there_is_none() {
    let mut world = World::new();
    let (small, large) = (hami("small", 40_000, &[]), hami("large", 80_000, &[]));
    world.apply((
        small.cordoned(),
        large.clone().cordoned(),
        queue("team").limit(1),
    ));
    world.then(asking("a", need(1, 0, CardMemory::Mib(20_000))));
    assert_eq!(requested(&mut world), 500);
    world.then(large);
    assert_eq!(world.places("a"), "large");
    assert_eq!((held(&mut world, GPU), requested(&mut world)), (250, 250));
    for name in ["b", "c", "d"] {
        world.then(asking(name, need(1, 0, CardMemory::Mib(20_000))));
    }
    // The next one might have counted half on the small node, and three quarters are held.
    assert!(world.is_placed("b") && world.is_placed("c"));
    assert_eq!(world.reason("pod/d"), Some(Reason::OverLimit));
    world.lose_node("small");
    world.settle();
    assert!(world.is_placed("d"));
    assert_eq!(held(&mut world, GPU), 1_000);
}

#[test]
fn what_runs_counts_anew_when_a_node_names_other_cards() {
    let mut world = World::new();
    world.apply((hami("n1", 80_000, &[]), queue("team")));
    world.then(asking("a", need(1, 0, CardMemory::Mib(20_000))));
    assert_eq!(held(&mut world, GPU), 250);
    world.then(hami("n1", 40_000, &[]));
    assert_eq!(held(&mut world, GPU), 500);
    world.then(hami("n1", 80_000, &[]));
    assert_eq!(held(&mut world, GPU), 250);
}

#[test]
fn a_limit_on_a_model_counts_parts() {
    let mut world = World::new();
    world.apply((hami("n1", 80_000, &[]), queue("team").limit_of(H100, 1)));
    for name in ["a", "b", "c", "d", "e"] {
        world.then(asking(name, need(1, 0, CardMemory::Mib(20_000))));
    }
    let placed = ["a", "b", "c", "d"].map(|name| world.is_placed(name));
    assert_eq!(placed, [true; 4]);
    assert_eq!(world.reason("pod/e"), Some(Reason::OverLimit));
}

#[test]
fn instances_of_mig_count_by_memory_slices() {
    let profiles = [
        MigProfile::new("1g.10gb", 9_984, 130, 1, &[0, 1, 2, 3, 4, 5, 6]),
        MigProfile::new("2g.20gb", 20_096, 250, 2, &[0, 2, 4]),
        MigProfile::new("3g.40gb", 40_448, 460, 4, &[0, 4]),
        MigProfile::new("7g.80gb", 81_152, 1_000, 8, &[0]),
    ];
    for (need, expected) in [
        (need(1, 0, CardMemory::Mib(8_000)), 125),
        (need(1, 0, CardMemory::Mib(15_000)), 250),
        (need(2, 0, CardMemory::Mib(40_000)), 1_000),
        (need(1, 500, CardMemory::Percent(50)), 1_000),
    ] {
        let mut world = World::new();
        world.apply((hami("n1", 81_559, &profiles), queue("team")));
        let terms = CardTerms {
            modes: CardModes::Mig,
            ..CardTerms::default()
        };
        world.then(asking("a", need).card_terms(terms));
        assert!(world.is_placed("a"), "{need:?}");
        assert_eq!(held(&mut world, GPU), expected, "{need:?}");
    }
}
