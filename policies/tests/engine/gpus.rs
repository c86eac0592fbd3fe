//! How the GPUs of the cluster are counted, by model, resource and state.

use gpu_batch_policies::facts::{CardClosed, CardMemory, CardNeed, HAMI_REGISTER, NodeFacts};
use gpu_batch_policies::report::GpuReport;
use gpu_batch_testing::{GPU, Sketch, World, node, pod};

const SMALL: &str = "nvidia.com/mig-1g.10gb";

/// The node with what it offers as its capacity.
fn whole(node: Sketch<NodeFacts>) -> Sketch<NodeFacts> {
    node.with(|node| node.capacity = node.allocatable.clone())
}

/// Used, free, fragmented, closed and unhealthy GPUs of one model and resource.
fn counted(world: &World, model: &str, resource: &str) -> Option<[u64; 5]> {
    let reports = world.engine.gpu_reports();
    let of = |it: &&GpuReport| &*it.model == model && &*it.resource == resource;
    let it = reports.iter().find(of)?;
    Some([it.used, it.free, it.fragmented, it.closed, it.unhealthy])
}

#[test]
fn every_gpu_is_in_one_state() {
    let mut world = World::of((
        whole(node("a", 8).model("H100")),
        whole(node("b", 8).model("H100")).cordoned(),
        whole(node("c", 8).model("H100")).has(GPU, 7),
        whole(node("d", 0).model("A100").has(SMALL, 7)),
        pod("p", 3).model("H100"),
    ));
    assert_eq!(counted(&world, "H100", GPU), Some([3, 12, 0, 8, 1]));
    assert_eq!(counted(&world, "A100", SMALL), Some([0, 7, 0, 0, 0]));
    assert_eq!(counted(&world, "A100", GPU), None);
    // A pod waits for more than any open node has.
    world.then(pod("large", 9).model("H100"));
    assert_eq!(counted(&world, "H100", GPU), Some([3, 0, 12, 8, 1]));
    // Another one waits for less, of whichever model: one open node has that.
    world.then(pod("small", 5).model("B200"));
    assert_eq!(counted(&world, "H100", GPU), Some([3, 8, 4, 8, 1]));
}

/// How many cards of HAMi are used, shared, free, fragmented, closed and unhealthy.
fn cards(world: &World, model: &str) -> [u64; 6] {
    let reports = world.engine.gpu_reports();
    let it = reports.iter().find(|it| &*it.model == model).unwrap();
    assert_eq!(&*it.resource, GPU);
    let (usable, others) = ([it.used, it.shared, it.free], [it.closed, it.unhealthy]);
    [
        usable[0],
        usable[1],
        usable[2],
        it.fragmented,
        others[0],
        others[1],
    ]
}

#[test]
fn each_card_that_hami_divides_is_in_one_state() {
    let of_hami = |names, count| {
        let node = node(names, 10 * count as u64).cards(count, 10_000);
        node.with(|node| {
            node.annotations = vec![(HAMI_REGISTER.into(), "".into())];
            for card in &mut node.cards {
                card.model = "NVIDIA T4".into();
            }
        })
    };
    let asks = |name, mib| pod(name, 1).cards(CardNeed::new(1, 100, CardMemory::Mib(mib)));
    let mut world = World::of((
        of_hami("a", 4),
        of_hami("b", 1).cordoned(),
        of_hami("c", 2).with(|node| {
            node.cards[0].closed = Some(CardClosed::Unhealthy);
            node.cards[1].closed = Some(CardClosed::Cordoned);
        }),
    ));
    assert_eq!(cards(&world, "NVIDIA T4"), [0, 0, 4, 0, 2, 1]);
    world.then((asks("whole", 10_000), asks("most", 8_000)));
    assert_eq!(cards(&world, "NVIDIA T4"), [1, 1, 2, 0, 2, 1]);
    // Of two cards too little is left for a pod that waits, and then not for one that waits, too.
    world.then(asks("large", 10_001));
    assert_eq!(cards(&world, "NVIDIA T4"), [1, 0, 0, 3, 2, 1]);
    world.then(asks("three", 9_000).with(|pod| pod.gates = vec!["later".into()]));
    assert_eq!(cards(&world, "NVIDIA T4"), [1, 0, 2, 1, 2, 1]);
}

#[test]
fn nodes_without_a_model_count_and_slots_of_hami_do_not() {
    let register = vec![(HAMI_REGISTER.into(), "".into())];
    let slots = node("slots", 80).with(|node| node.annotations.clone_from(&register));
    let world = World::of((whole(node("a", 4)), slots));
    assert_eq!(counted(&world, "", GPU), Some([0, 4, 0, 0, 0]));
}
