//! Cards that we choose, and placements by score.

use super::world::{Thing, World, gang, node, pod};
use crate::audit;
use crate::facts::{CardRequest, Placement};
use crate::ids::PodId;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::node::Node;
use crate::txn::Txn;
use alloc::{format, string::String, vec::Vec};
use proptest::prelude::*;

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
    world.apply(node("n1", 0).with_cards(3, 100));
    for (name, cards) in [
        ("a", CardRequest::fraction(600, 0)),
        ("b", CardRequest::whole(1, 0)),
        ("c", CardRequest::fraction(400, 0)),
        ("d", CardRequest::fraction(500, 0)),
    ] {
        world.apply(pod(name, 0).cards(cards));
        world.settle();
    }
    let held = ["a", "b", "c", "d"].map(|name| world.cards_of(name));
    assert_eq!(held, [&[0], &[1], &[0], &[2]]);

    world.apply(pod("e", 0).cards(CardRequest::whole(2, 0)));
    world.settle();
    assert_eq!(world.reason("default/pod/e"), Some(Reason::DoesNotFit));
    assert_eq!(
        world.message("default/pod/e"),
        "1 member with 2 cards does not fit in the cluster: of 1 node, 1 had too few cards with \
         enough room"
    );
    world.end("b");
    world.end("d");
    world.settle();
    assert_eq!(world.cards_of("e"), [1, 2]);
}

#[test]
fn memory_of_a_card_runs_out_before_its_thousandths() {
    let mut world = World::new();
    world.apply(node("n1", 0).with_cards(2, 100));
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 0).cards(CardRequest::fraction(100, 60)));
        world.settle();
    }
    assert_eq!([world.cards_of("a"), world.cards_of("b")], [[0], [1]]);
    assert_eq!(world.node_of("c"), None);
}

#[test]
fn cards_of_bound_pods_are_those_that_they_hold() {
    let mut world = World::new();
    world.apply(node("n1", 0).with_cards(2, 0));
    let part = CardRequest::fraction(700, 0);
    world.apply(pod("a", 0).cards(part).on("n1").holds(&[1]));
    world.apply(
        pod("b", 0)
            .cards(CardRequest::whole(1, 0))
            .on("n1")
            .holds(&[0])
            .foreign(),
    );
    world.apply(pod("c", 0).cards(CardRequest::fraction(300, 0)));
    world.settle();
    assert_eq!(world.cards_of("c"), [1]);
}

#[test]
fn a_gang_of_parts_starts_whole_or_not_at_all() {
    for placement in PLACEMENTS {
        let mut world = with(placement);
        world.apply(node("n1", 0).with_cards(1, 0));
        world.apply(node("n2", 0).with_cards(1, 0));
        world.apply(gang("g", 5));
        let names = ["a", "b", "c", "d", "e"];
        for name in names {
            world.apply(pod(name, 0).cards(CardRequest::fraction(400, 0)).of("g"));
        }
        world.settle();
        assert_eq!(world.binds, 0, "{placement:?}");
        world.apply(node("n3", 0).with_cards(1, 0));
        world.settle();
        assert_eq!(world.nodes_of(&names).len(), 5, "{placement:?}");
    }
}

#[test]
fn best_fit_leaves_the_least_cpu_and_gpus() {
    let mut world = with(Placement::BestFit);
    for (name, gpus) in [("n1", 8), ("n2", 4), ("n3", 6)] {
        world.apply(node(name, gpus));
    }
    world.apply(pod("a", 1));
    world.settle();
    assert_eq!(world.node_of("a").as_deref(), Some("n2"));
}

/// Binpack breaks the last pair of GPUs, which is what most pods ask for.
#[test]
fn fragmentation_keeps_room_for_what_was_seen() {
    let place = |placement| {
        let mut world = World::new();
        world.apply(node("n1", 5));
        world.apply(node("n2", 2));
        // The pods that were seen ask for pairs of GPUs.
        for number in 0..40 {
            let name = format!("seen{number}");
            world.apply(pod(&name, 2).gate("later"));
        }
        world.apply(gang("g", 1).placed(placement));
        world.apply(pod("a", 1).of("g"));
        world.settle();
        world.node_of("a")
    };
    assert_eq!(place(Placement::Binpack).as_deref(), Some("n2"));
    assert_eq!(place(Placement::Fragmentation).as_deref(), Some("n1"));
}

#[test]
fn the_fragmentation_of_the_cluster_is_that_of_its_nodes() {
    let mut state = ClusterState::new();
    let mut world = World::new();
    let kinds = [pod("p", 2), pod("q", 0)].map(|pod| pod.object(&mut world));
    for object in kinds {
        state.apply(object, 0);
    }
    for (name, gpus) in [("n1", 5), ("n2", 1)] {
        state.apply(node(name, gpus).object(&mut world), 0);
    }
    // One kind needs no GPUs: all 6 are lost to it. To the other only the one of n2 is.
    let fragmentation = state.fragmentation();
    assert_eq!((fragmentation.weighted, fragmentation.weight), (7_000, 2));
    assert_eq!(fragmentation.free_thousandths, 6_000);
    state.delete_node("n2");
    assert_eq!(state.fragmentation().weighted, 5_000);
}

/// Everything that a rollback has to bring back.
fn snapshot(state: &ClusterState) -> String {
    let node = |node: &Node| {
        let mut pods = node.pods.clone();
        pods.sort_unstable();
        let resources: Vec<_> = node.resources().collect();
        format!("{} {resources:?} {:?} {pods:?}", node.name, node.cards)
    };
    let nodes: Vec<String> = state.nodes.iter().map(|(_, one)| node(one)).collect();
    let pods = state
        .pods
        .iter()
        .map(|(_, pod)| format!("{:?} {:?}", pod.stage, pod.cards));
    nodes.into_iter().chain(pods).collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Clone)]
enum Step {
    Place {
        pod: usize,
        node: usize,
        placement: usize,
    },
    Mark,
    RollBack,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = (0..24usize, 0..3usize, 0..PLACEMENTS.len()).prop_map(|(pod, node, placement)| {
        Step::Place {
            pod,
            node,
            placement,
        }
    });
    prop::collection::vec(
        prop_oneof![8 => place, 1 => Just(Step::Mark), 1 => Just(Step::RollBack)],
        1..60,
    )
}

fn requests() -> impl Strategy<Value = Vec<CardRequest>> {
    let memory = prop_oneof![Just(0u64), 1..60u64];
    let request = (any::<bool>(), 1..=1000u64, 1..=2u64, memory).prop_map(
        |(whole, thousandths, count, memory)| match whole {
            true => CardRequest::whole(count, memory),
            false => CardRequest::fraction(thousandths, memory),
        },
    );
    prop::collection::vec(request.prop_map(|request| request.unwrap()), 24)
}

fn state_of(objects: Vec<crate::event::Object>) -> ClusterState {
    let mut state = ClusterState::new();
    for object in objects {
        state.apply(object, 0);
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn cards_are_given_back_exactly_and_never_given_twice(requests in requests(), steps in steps()) {
        let mut world = World::new();
        let nodes = || (0..3).map(|n| node(&format!("n{n}"), 0).with_cards(n + 1, 100));
        let sketch = |n: usize| pod(&format!("p{n}"), 0).cards(Some(requests[n]));
        let pods: Vec<_> = (0..24).map(|n| sketch(n).object(&mut world)).collect();
        let mut objects: Vec<_> = nodes().map(|node| node.object(&mut world)).collect();
        objects.extend(pods);
        let mut state = state_of(objects);
        let ids: Vec<PodId> = state.pods.ids();
        let mut txn = Txn::default();
        let mut marks = Vec::from([(txn.checkpoint(), snapshot(&state))]);
        for step in steps {
            match step {
                Step::Place { pod, node, placement } => {
                    let node = state.node_ids[&*format!("n{node}")];
                    let class = &state.classes[state.pods[ids[pod]].class];
                    if state.pods[ids[pod]].stage.node().is_none()
                        && state.nodes[node].multiplicity(class) > 0
                    {
                        txn.place(&mut state, ids[pod], node, PLACEMENTS[placement]);
                    }
                }
                Step::Mark => marks.push((txn.checkpoint(), snapshot(&state))),
                Step::RollBack => {
                    let (mark, before) = marks.pop().unwrap();
                    txn.rollback(&mut state, mark);
                    prop_assert_eq!(&snapshot(&state), &before);
                    marks.push((mark, before));
                }
            }
            prop_assert_eq!(audit::violations(&state), Vec::<String>::new());
            prop_assert!(state.nodes.iter().all(|(_, node)| !node.cards.is_overfull()));
        }
        // A scheduler that begins with bound pods knows the same cards.
        let mut objects: Vec<_> = nodes().map(|node| node.object(&mut world)).collect();
        for (n, id) in ids.iter().enumerate() {
            let bound = &state.pods[*id];
            if let Some(node) = bound.stage.node() {
                let sketch = sketch(n).on(&state.nodes[node].name).holds(&bound.cards);
                objects.push(sketch.object(&mut world));
            }
        }
        let restarted = state_of(objects);
        for (_, node) in state.nodes.iter() {
            let same = &restarted.nodes[restarted.node_ids[&node.name]];
            prop_assert_eq!(&node.cards, &same.cards);
        }
    }
}
