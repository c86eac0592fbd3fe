//! Which cards of a node a container gets together: of one NUMA node, and with good links.

use gpu_batch_policies::facts::{
    CardLink, CardMemory, CardNeed, CardOrder, CardTerms, ContainerCards, ContainerRole, NodeFacts,
    PodFacts,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, World, gang, names, node, pod};

/// Attaches the cards of a node to these NUMA nodes.
fn attach(node: &mut NodeFacts, cells: &[u32]) {
    for (card, cell) in node.cards.iter_mut().zip(cells) {
        card.numa = *cell;
    }
}

/// A node with cards in these NUMA nodes.
fn in_cells(name: &str, cells: &[u32]) -> Sketch<NodeFacts> {
    let node = node(name, 0).cards(cells.len(), 100);
    node.with(|node| attach(node, cells))
}

/// Pods that ask for cards, all of a container from one NUMA node.
fn bound(name: &str, need: Option<CardNeed>) -> Sketch<PodFacts> {
    pod(name, 0).cards(need).card_terms(CardTerms {
        in_one_cell: true,
        ..CardTerms::default()
    })
}

#[test]
fn all_cards_of_a_container_are_of_one_numa_node() {
    let mut world = World::of(in_cells("n1", &[0, 1, 0, 1, 1, 0, 1]));
    world.then(bound("a", CardNeed::whole(3, 0)));
    assert_eq!(world.cards_of("a"), ["0", "2", "5"]);
    world.then((
        bound("b", CardNeed::whole(2, 0)),
        pod("c", 0).cards(CardNeed::whole(1, 0)),
    ));
    assert_eq!(world.cards_of("b"), ["1", "3"]);
    world.end("a b c");
    world.settle();
    world.then(bound("d", CardNeed::whole(5, 0)));
    assert_eq!(world.reason("pod/d"), Some(Reason::DoesNotFit));
    assert_eq!(
        world.message("pod/d"),
        "1 member with 5 cards does not fit in the cluster: of 1 node, 1 had too few cards in a \
         single NUMA node"
    );
}

#[test]
fn a_pod_that_waits_for_room_in_one_numa_node_says_so_and_starts_when_there_is() {
    let mut world = World::of(in_cells("n1", &[0, 0, 1, 1]));
    let part = CardNeed::new(1, 600, CardMemory::Mib(10));
    for (name, card) in [("a", "0"), ("b", "2")] {
        world.then(pod(name, 0).cards(part).on("n1").holds(&[card]));
    }
    let two = CardNeed::new(2, 600, CardMemory::Mib(10));
    world.then(bound("c", two));
    assert_eq!(
        world.message("pod/c"),
        "1 member with 600 thousandths and 10 MiB of each of 2 cards does not fit in the cluster: \
         of 1 node, 1 had too few cards with enough room in a single NUMA node"
    );
    world.then(bound("d", CardNeed::new(2, 100, CardMemory::Mib(95))));
    let message = world.message("pod/d");
    assert!(
        message.ends_with("enough room in a single NUMA node"),
        "{message}"
    );
    world.then(bound("e", CardNeed::new(2, 100, CardMemory::Mib(101))));
    let message = world.message("pod/e");
    assert!(
        message.ends_with("too few cards with enough free memory"),
        "{message}"
    );
    world.end("b");
    world.settle();
    assert_eq!(world.cards_of("c"), ["2", "3"]);
}

#[test]
fn a_node_has_room_for_as_many_pods_as_its_numa_nodes_have() {
    let mut world = World::of(in_cells("n1", &[0, 0, 0, 1, 1, 1]));
    world.then((
        gang("g", 3),
        bound(&names("g", 3), CardNeed::whole(2, 0)).of("g"),
    ));
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    world.then(in_cells("n2", &[4, 7, 7]));
    assert_eq!(world.nodes_of(&names("g", 3)).len(), 3);
    for name in names("g", 3).split(' ') {
        let cards = world.cards_of(name);
        let is_low = |card: &&str| card.parse::<u32>().unwrap() < 3;
        assert!(
            cards.iter().all(is_low) || !cards.iter().any(is_low),
            "{name}: {cards:?}"
        );
    }
}

/// The fuller NUMA node is filled, and the other one is kept for pods that ask for more.
#[test]
fn the_numa_node_is_taken_that_the_placement_likes_best() {
    let mut world = World::of(in_cells("n1", &[0, 0, 0, 0, 1, 1, 1, 1]));
    let part = CardNeed::new(1, 300, CardMemory::Mib(10));
    world.then(pod("a", 0).cards(part).on("n1").holds(&["5"]));
    world.then(bound("b", CardNeed::whole(2, 0)));
    assert_eq!(world.cards_of("b"), ["4", "6"]);
    world.then(bound("c", CardNeed::new(2, 300, CardMemory::Mib(10))));
    assert_eq!(world.cards_of("c"), ["5", "7"]);
    world.then(bound("d", CardNeed::whole(4, 0)));
    assert_eq!(world.cards_of("d"), ["0", "1", "2", "3"]);
}

#[test]
fn each_container_has_a_numa_node_of_its_own() {
    let container = |role, count| ContainerCards {
        role,
        need: CardNeed::whole(count, 0).unwrap(),
    };
    let several = |name: &str, containers: Vec<ContainerCards>| {
        bound(name, CardNeed::whole(2, 0)).shape(move |shape| {
            let terms = shape.card_terms.as_mut().unwrap();
            terms.containers.clone_from(&containers);
        })
    };
    let main = ContainerRole::Main;
    let mut world = World::of(in_cells("n1", &[0, 1, 0, 1, 1]));
    // The first container may not take two of the three.
    world.then(several("a", vec![container(main, 2), container(main, 3)]));
    assert_eq!(world.cards_of("a"), ["0", "1", "2", "3", "4"]);
    world.end("a");
    world.settle();
    let init = container(ContainerRole::Init, 3);
    world.then(several(
        "b",
        vec![init, container(main, 2), container(main, 2)],
    ));
    assert_eq!(world.cards_of("b"), ["0", "1", "2", "3", "4"]);
    world.end("b");
    world.settle();
    world.then(several("c", vec![container(main, 2), container(main, 4)]));
    assert_eq!(
        world.message("pod/c"),
        "1 member with 2 cards + 4 cards does not fit in the cluster: of 1 node, 1 had too few \
         cards in a single NUMA node"
    );
}

/// A node with these cards and links between pairs of them.
fn linked(name: &str, cards: usize, links: &'static [(u16, u16, u32)]) -> Sketch<NodeFacts> {
    node(name, 0).cards(cards, 100).with(|node| {
        let link = |(one, other, score): &(u16, u16, u32)| CardLink {
            one: *one,
            other: *other,
            score: *score,
        };
        node.card_links = links.iter().map(link).collect();
    })
}

/// Pods whose cards are chosen by these words.
fn ordered(name: &str, need: Option<CardNeed>, order: &[CardOrder]) -> Sketch<PodFacts> {
    pod(name, 0).cards(need).card_terms(CardTerms {
        order: order.to_vec(),
        ..CardTerms::default()
    })
}

/// Pairs with two NVLinks each.
const PAIRS: &[(u16, u16, u32)] = &[
    (0, 3, 200),
    (1, 2, 200),
    (0, 1, 10),
    (0, 2, 10),
    (1, 3, 10),
    (2, 3, 10),
];

#[test]
fn several_cards_of_a_container_are_those_with_the_best_links() {
    let mut world = World::of(linked("n1", 4, PAIRS));
    world.then(pod("a", 0).cards(CardNeed::whole(2, 0)));
    assert_eq!(world.cards_of("a"), ["0", "3"]);
    world.end("a");
    world.settle();
    // A part of a card may stay beside others, and the pair may still be taken.
    let part = CardNeed::new(1, 300, CardMemory::Mib(10));
    world.then(pod("b", 0).cards(part).on("n1").holds(&["0"]));
    world.then(pod("c", 0).cards(CardNeed::whole(2, 0)));
    assert_eq!(world.cards_of("c"), ["1", "2"]);
    world.then(pod("d", 0).cards(CardNeed::new(2, 300, CardMemory::Mib(10))));
    assert_eq!(world.cards_of("d"), ["0", "3"]);
}

/// Two groups of four: of equally good pairs the one is taken that leaves a group whole.
#[test]
fn of_equal_links_those_are_taken_that_break_the_fewest() {
    const FOURS: &[(u16, u16, u32)] = &[
        (0, 1, 50),
        (0, 2, 50),
        (0, 3, 50),
        (1, 2, 50),
        (1, 3, 50),
        (2, 3, 50),
        (4, 5, 50),
        (4, 6, 50),
        (4, 7, 50),
        (5, 6, 50),
        (5, 7, 50),
        (6, 7, 50),
    ];
    let mut world = World::of(linked("n1", 8, FOURS));
    let whole = |count| CardNeed::whole(count, 0);
    world.then(pod("a", 0).cards(whole(2)).on("n1").holds(&["4", "6"]));
    world.then(pod("b", 0).cards(whole(2)));
    assert_eq!(world.cards_of("b"), ["5", "7"]);
    world.then(pod("c", 0).cards(whole(4)));
    assert_eq!(world.cards_of("c"), ["0", "1", "2", "3"]);
    world.end("a c");
    world.settle();
    world.then(ordered("d", whole(1), &[CardOrder::Links]));
    assert_eq!(world.cards_of("d"), ["4"]);
}

#[test]
fn one_card_is_one_without_good_links_if_the_pod_says_so() {
    for (order, expected) in [(&[CardOrder::Links][..], "3"), (&[], "0")] {
        let mut world = World::of(linked("n1", 4, &[(0, 1, 200), (1, 2, 100), (2, 3, 10)]));
        let part = CardNeed::new(1, 300, CardMemory::Mib(10));
        world.then(ordered("a", part, order));
        assert_eq!(world.cards_of("a"), [expected]);
        // Then the same card again: binpack decides among equals, and links come first.
        world.then(ordered("b", part, order));
        assert_eq!(world.cards_of("b"), [expected]);
    }
}

#[test]
fn words_about_the_choice_count_in_their_order() {
    use CardOrder::{Binpack, Links, Numa, Spread};
    let part = CardNeed::new(2, 300, CardMemory::Mib(10));
    for (order, expected) in [
        (&[][..], ["0", "3"]),
        (&[Links], ["0", "3"]),
        (&[Links, Binpack], ["0", "3"]),
        (&[Binpack], ["1", "3"]),
        (&[Binpack, Numa], ["1", "3"]),
        (&[Numa], ["0", "1"]),
        (&[Numa, Spread], ["0", "1"]),
        (&[Numa, Binpack], ["2", "3"]),
        (&[Spread], ["0", "2"]),
    ] {
        let node = linked("n1", 4, &[(0, 3, 200), (0, 1, 20), (0, 2, 10)]);
        let mut world = World::of(node.with(|node| attach(node, &[0, 0, 1, 1])));
        let used = |thousandths| CardNeed::new(1, thousandths, CardMemory::Mib(10));
        world.then(pod("x", 0).cards(used(300)).on("n1").holds(&["1"]));
        world.then(pod("y", 0).cards(used(400)).on("n1").holds(&["3"]));
        world.then(ordered("a", part, order));
        assert_eq!(world.cards_of("a"), expected, "{order:?}");
    }
}

#[test]
fn links_count_inside_a_numa_node_and_for_each_of_several_containers() {
    let node = linked("n1", 4, PAIRS).with(|node| attach(node, &[1, 0, 0, 0]));
    let mut world = World::of(node);
    world.then(bound("a", CardNeed::whole(2, 0)));
    assert_eq!(world.cards_of("a"), ["1", "2"]);
    // The first of two containers gets the pair, the second one of the rest.
    let main = |count| ContainerCards {
        role: ContainerRole::Main,
        need: CardNeed::whole(count, 0).unwrap(),
    };
    let mut world = World::of(linked("n1", 4, &[(2, 3, 200)]));
    world.then(
        pod("b", 0)
            .cards(CardNeed::whole(2, 0))
            .card_terms(CardTerms {
                containers: vec![main(2), main(1)],
                ..CardTerms::default()
            }),
    );
    assert_eq!(world.cards_of("b"), ["0", "2", "3"]);
}

/// Links never cost a gang a place.
#[test]
fn links_leave_room_for_as_many_further_pods() {
    // Both pods fit only if each has a slot of the first card.
    let node = linked("n1", 3, &[(1, 2, 900)]).with(|node| {
        for (card, slots) in node.cards.iter_mut().zip([2, 1, 1]) {
            card.slots = slots;
        }
    });
    let mut world = World::of(node);
    let need = CardNeed::new(2, 100, CardMemory::Mib(10));
    world.then((gang("g", 2), pod("g0 g1", 0).cards(need).of("g")));
    assert_eq!(world.nodes_of("g0 g1").len(), 2);
}

#[test]
fn a_pod_gets_cards_that_nobody_uses_and_others_may_share_them_later() {
    let idle = |name: &str, count: u64| {
        let need = CardNeed::new(count, 100, CardMemory::Mib(10));
        pod(name, 0).cards(need).card_terms(CardTerms {
            idle: true,
            ..CardTerms::default()
        })
    };
    let part = CardNeed::new(1, 100, CardMemory::Mib(10));
    let mut world = World::of(node("n1", 0).cards(3, 100));
    world.then(pod("a", 0).cards(part));
    world.then(idle("b", 1));
    assert_eq!([world.cards_of("a"), world.cards_of("b")], [["0"], ["1"]]);
    world.then(idle("c", 2));
    assert_eq!(
        world.message("pod/c"),
        "1 member with 100 thousandths and 10 MiB of each of 2 cards does not fit in the cluster: \
         of 1 node, 1 had too few cards that nobody uses"
    );
    world.then((gang("g", 3), idle("g0 g1 g2", 1).of("g")));
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    world.end("a");
    world.settle();
    assert_eq!(world.cards_of("c"), ["0", "2"]);
    world.then(pod("d", 0).cards(CardNeed::new(3, 100, CardMemory::Mib(10))));
    assert_eq!(world.cards_of("d"), ["0", "1", "2"]);
}
