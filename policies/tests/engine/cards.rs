//! Cards that we choose, and placements by score.

use gpu_batch_policies::facts::{
    CardMemory, CardNeed, CardOrder, CardRule, CardTerms, ContainerCards, ContainerRole, Placement,
    PodFacts,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{Sketch, World, gang, names, node, pod};

const PLACEMENTS: [Placement; 8] = [
    Placement::Binpack,
    Placement::Spread,
    Placement::BestFit,
    Placement::Fragmentation,
    Placement::DotProduct,
    Placement::GpuPacking,
    Placement::GpuClustering,
    Placement::Random { seed: 7 },
];

fn with(placement: Placement) -> World {
    World::with(Settings {
        gpu_placement: placement,
        cpu_placement: placement,
        ..Settings::default()
    })
}

#[test]
fn parts_share_a_card_and_whole_ones_do_not() {
    let mut world = World::new();
    world.apply(node("n1", 0).cards(3, 100));
    for (name, cards) in [
        ("a", CardNeed::fraction(600, 0)),
        ("b", CardNeed::whole(1, 0)),
        ("c", CardNeed::fraction(400, 0)),
        ("d", CardNeed::fraction(500, 0)),
    ] {
        world.then(pod(name, 0).cards(cards));
    }
    let held = ["a", "b", "c", "d"].map(|name| world.cards_of(name));
    assert_eq!(held, [["0"], ["1"], ["0"], ["2"]]);

    world.then(pod("e", 0).cards(CardNeed::whole(2, 0)));
    assert_eq!(world.reason("pod/e"), Some(Reason::DoesNotFit));
    assert_eq!(
        world.message("pod/e"),
        "1 member with 2 cards does not fit in the cluster: of 1 node, 1 had too few cards with \
         enough free computing power"
    );
    world.end("b d");
    world.settle();
    assert_eq!(world.cards_of("e"), ["1", "2"]);
}

#[test]
fn memory_of_a_card_runs_out_before_its_thousandths() {
    let mut world = World::new();
    world.apply(node("n1", 0).cards(2, 100));
    for name in ["a", "b", "c"] {
        world.then(pod(name, 0).cards(CardNeed::fraction(100, 60)));
    }
    assert_eq!([world.cards_of("a"), world.cards_of("b")], [["0"], ["1"]]);
    assert_eq!(world.places("c"), "-");
}

#[test]
fn a_pod_that_waits_says_what_cards_have_too_little_of() {
    for (count, thousandths, memory, asked, lacking) in [
        (
            1,
            100,
            CardMemory::Mib(60),
            "100 thousandths and 60 MiB of a card",
            "enough free memory",
        ),
        (
            2,
            0,
            CardMemory::Percent(70),
            "70 % of the memory of each of 2 cards",
            "enough free memory",
        ),
        (
            1,
            700,
            CardMemory::Any,
            "700 thousandths of a card",
            "enough free computing power",
        ),
        (
            3,
            0,
            CardMemory::Any,
            "a slot of each of 3 cards",
            "enough room",
        ),
        (
            1,
            700,
            CardMemory::Mib(60),
            "700 thousandths and 60 MiB of a card",
            "enough room",
        ),
    ] {
        let mut world = World::of(node("n1", 0).cards(2, 100));
        let used = CardNeed::fraction(400, 50);
        world.then(pod("a", 0).cards(used).on("n1").holds(&["0"]));
        world.then(pod("b", 0).cards(used).on("n1").holds(&["1"]));
        world.then(pod("c", 0).cards(CardNeed::new(count, thousandths, memory)));
        assert_eq!(
            world.message("pod/c"),
            format!(
                "1 member with {asked} does not fit in the cluster: of 1 node, 1 had too few cards \
                 with {lacking}"
            )
        );
    }
    let mut world = World::of(
        node("n1", 0)
            .cards(1, 100)
            .with(|node| node.cards[0].slots = 1),
    );
    world.then(pod("a", 0).cards(CardNeed::fraction(1, 1)));
    world.then(pod("b", 0).cards(CardNeed::fraction(1, 1)));
    let message = world.message("pod/b");
    assert!(
        message.ends_with("1 had too few cards with a free slot"),
        "{message}"
    );
}

#[test]
fn cards_of_bound_pods_are_those_that_they_hold() {
    let mut world = World::new();
    world.apply(node("n1", 0).cards(2, 0));
    let part = CardNeed::fraction(700, 0);
    world.then((
        pod("a", 0).cards(part).on("n1").holds(&["1"]),
        pod("b", 0)
            .cards(CardNeed::whole(1, 0))
            .on("n1")
            .holds(&["0"])
            .foreign(),
        pod("c", 0).cards(CardNeed::fraction(300, 0)),
    ));
    assert_eq!(world.cards_of("c"), ["1"]);
}

#[test]
fn a_pod_may_get_other_cards_of_a_node_that_was_not_seen() {
    let part = CardNeed::fraction(700, 0);
    let mut world = World::of(pod("a", 0).cards(part).on("n1").holds(&["0"]));
    world.then(pod("a", 0).cards(part).on("n1").holds(&["1"]));
    world.then((node("n1", 0).cards(2, 0), pod("b", 0).cards(part)));
    assert_eq!(world.cards_of("b"), ["0"]);
}

#[test]
fn a_gang_of_parts_starts_whole_or_not_at_all() {
    for placement in PLACEMENTS {
        let mut world = with(placement);
        world.then((
            node("n1 n2", 0).cards(1, 0),
            gang("g", 5),
            pod("a b c d e", 0)
                .cards(CardNeed::fraction(400, 0))
                .of("g"),
        ));
        assert_eq!(world.binds, 0, "{placement:?}");
        world.then(node("n3", 0).cards(1, 0));
        assert_eq!(world.nodes_of("a b c d e").len(), 5, "{placement:?}");
    }
}

#[test]
fn best_fit_leaves_the_least_cpu_and_gpus() {
    let mut world = with(Placement::BestFit);
    world.then((node("n1", 8), node("n2", 4), node("n3", 6), pod("a", 1)));
    assert_eq!(world.places("a"), "n2");
}

/// Binpack breaks the last pair of GPUs, which is what most pods ask for.
#[test]
fn fragmentation_keeps_room_for_what_was_seen() {
    let place = |placement| {
        let mut world = World::new();
        world.apply((node("n1", 5), node("n2", 2)));
        // The pods that were seen ask for pairs of GPUs.
        world.apply(pod(&names("seen", 40), 2).gate("later"));
        world.then((gang("g", 1).placed(placement), pod("a", 1).of("g")));
        world.node_of("a")
    };
    assert_eq!(place(Placement::Binpack).as_deref(), Some("n2"));
    assert_eq!(place(Placement::Fragmentation).as_deref(), Some("n1"));
}

#[test]
fn the_fragmentation_of_the_cluster_is_that_of_its_nodes() {
    let mut world = World::of((node("n1", 5), node("n2", 1), pod("p", 2).gate("later")));
    world.then(pod("q", 0).gate("later"));
    // One kind needs no GPUs: all 6 are lost to it. To the other only the one of n2 is.
    let fragmentation = world.engine.fragmentation();
    assert_eq!((fragmentation.weighted, fragmentation.weight), (7_000, 2));
    assert_eq!(fragmentation.free_thousandths, 6_000);
    world.lose_node("n2");
    world.settle();
    assert_eq!(world.engine.fragmentation().weighted, 5_000);
}

fn ruled(name: &str, rules: Vec<CardRule>) -> Sketch<PodFacts> {
    pod(name, 0)
        .cards(CardNeed::fraction(300, 10))
        .card_terms(CardTerms {
            rules,
            ..CardTerms::default()
        })
}

#[test]
fn a_pod_gets_cards_that_its_rules_allow_and_is_told_the_annotation_that_allows_too_few() {
    let models = ["NVIDIA A100", "NVIDIA H100", "NVIDIA H100"];
    let node = node("n1", 0).cards(3, 100).with(|node| {
        for (card, model) in node.cards.iter_mut().zip(models) {
            card.model = model.into();
        }
    });
    let names = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
    let cases: [(Vec<CardRule>, Result<&str, &str>); 7] = [
        (vec![CardRule::Models(names(&["a100", "t4"]))], Ok("0")),
        (vec![CardRule::NotModels(names(&["a100"]))], Ok("1")),
        (vec![CardRule::Ids(names(&["2", "7"]))], Ok("2")),
        (vec![CardRule::NotIds(names(&["0", "1"]))], Ok("2")),
        (
            vec![CardRule::Models(names(&["t4"]))],
            Err("nvidia.com/use-gputype"),
        ),
        (
            vec![
                CardRule::Models(names(&["a100"])),
                CardRule::NotIds(names(&["0"])),
            ],
            Err("nvidia.com/nouse-gpuuuid"),
        ),
        (
            vec![CardRule::NotModels(names(&["nvidia"]))],
            Err("nvidia.com/nouse-gputype"),
        ),
    ];
    for (rules, expected) in cases {
        let mut world = World::of(node.clone());
        world.then(ruled("a", rules));
        match expected {
            Ok(card) => assert_eq!(world.cards_of("a"), [card]),
            Err(annotation) => assert_eq!(
                world.message("pod/a"),
                format!(
                    "1 member with 300 thousandths and 10 MiB of a card does not fit in the \
                     cluster: of 1 node, 1 had too few cards that {annotation} allows"
                )
            ),
        }
    }
    // A card of another model in the place of one that would not do.
    let mut world = World::of(node.clone());
    world.then(ruled("a", vec![CardRule::Models(names(&["t4"]))]));
    world.then(node.with(|node| node.cards[1].model = "Tesla T4".into()));
    assert_eq!(world.cards_of("a"), ["1"]);
}

#[test]
fn a_pod_that_says_so_packs_or_spreads_its_cards_whatever_the_placement() {
    for placement in PLACEMENTS {
        for (order, expected) in [(CardOrder::Binpack, "1"), (CardOrder::Spread, "0")] {
            let mut world = with(placement);
            world.apply(
                node("n1", 0)
                    .cards(3, 100)
                    .with(|node| node.cards.truncate(2)),
            );
            let part = CardNeed::fraction(300, 10);
            world.then(pod("a", 0).cards(part).on("n1").holds(&["1"]));
            world.then(ruled("b", vec![]).card_terms(CardTerms {
                order: vec![order],
                ..CardTerms::default()
            }));
            assert_eq!(world.cards_of("b"), [expected], "{placement:?}");
        }
    }
}

#[test]
fn cards_of_a_node_are_left_alone_while_hamis_own_scheduler_gives_them_away() {
    let part = CardNeed::fraction(100, 10);
    let of_hami = pod("theirs", 0)
        .foreign()
        .cards(part)
        .on("n1")
        .holds(&["0"])
        .with(|pod| pod.is_of_hami = true);
    let mut world = World::of((node("n1", 0).cards(2, 100), of_hami));
    world.then((pod("a", 0).cards(part), pod("cpu", 0)));
    assert_eq!(world.places("cpu"), "n1");
    assert_eq!(
        world.message("pod/a"),
        "1 member with 100 thousandths and 10 MiB of a card does not fit in the cluster: of 1 \
         node, 1 had pods of HAMi's own scheduler"
    );
    world.end("theirs");
    world.settle();
    assert_eq!(world.places("a"), "n1");
}

#[test]
fn several_containers_share_a_card_and_are_told_what_they_lack() {
    let several = |name: &str, needs: Vec<CardNeed>| {
        let container = |need: &CardNeed| ContainerCards {
            role: ContainerRole::Main,
            need: *need,
        };
        pod(name, 0)
            .cards(needs.first().copied())
            .card_terms(CardTerms {
                containers: needs.iter().map(container).collect(),
                ..CardTerms::default()
            })
    };
    let fraction = |thousandths, mib| CardNeed::fraction(thousandths, mib).unwrap();
    let whole = CardNeed::whole(1, 0).unwrap();
    let mut world = World::of(node("n1", 0).cards(2, 100));
    world.then(several("a", vec![fraction(400, 60), fraction(600, 40)]));
    assert_eq!(world.cards_of("a"), ["0"]);
    world.then(several("b", vec![whole, fraction(100, 10)]));
    assert_eq!(world.reason("pod/b"), Some(Reason::DoesNotFit));
    assert_eq!(
        world.message("pod/b"),
        "1 member with 1 card + 100 thousandths and 10 MiB of a card does not fit in the cluster: \
         of 1 node, 1 had too few cards with enough room"
    );
    world.then(several("c", vec![fraction(100, 200)]));
    let message = world.message("pod/c");
    assert!(message.ends_with("enough free memory"), "{message}");
    world.end("a");
    world.settle();
    assert_eq!(world.cards_of("b"), ["0", "1"]);
    // How many pods of a gang find cards is counted one after the other, so that is not proved.
    world.then((
        gang("g", 9),
        several(&names("g", 9), vec![whole, whole]).of("g"),
    ));
    assert_eq!(world.reason("g"), Some(Reason::NotFoundWithinBound));
}
