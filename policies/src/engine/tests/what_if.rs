//! A transaction that is rolled back leaves everything as it was.

use super::world::{World, node, pod, queue, topology};
use crate::audit;
use crate::engine::Engine;
use crate::facts::{CardRequest, Placement};
use crate::ids::PodId;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::{format, string::String, vec::Vec};
use core::hash::{Hash, Hasher};
use fastrand::Rng;

const SEEDS: u64 = 200;
const STEPS: usize = 60;
const PLACEMENTS: [Placement; 4] = [
    Placement::Binpack,
    Placement::Spread,
    Placement::BestFit,
    Placement::DotProduct,
];

/// Full and empty nodes in two racks, one with more pods than it has room for, one that has never
/// been seen, and pods that wait, of queues with limits on GPU models and of none.
fn settled(rng: &mut Rng) -> World {
    let mut world = World::new();
    world.apply(topology("default", &["rack"]));
    let gpu = "nvidia.com/gpu";
    world.apply(queue("all").entry(gpu, None, (4, Some(64)), 1));
    let model = queue("some").parent("all");
    world.apply(model.entry(gpu, Some("H100"), (2, Some(24)), 1));
    for number in 0..6 {
        let rack = ["r0", "r1"][number % 2];
        let node = match number {
            0 | 1 => node(&format!("n{number}"), 0).with_cards(4, 100),
            _ => node(&format!("n{number}"), 8).label("nvidia.com/gpu.product", "H100"),
        };
        world.apply(node.label("rack", rack));
    }
    for number in 0..40 {
        let name = format!("p{number}");
        let on = rng.usize(0..9);
        let sketch = match (rng.u8(0..3), on) {
            (0, _) => pod(&name, 0).cards(CardRequest::fraction(300, 20)),
            (1, 0 | 1) => pod(&name, 0).cards(CardRequest::whole(1, 0)),
            _ => pod(&name, rng.u64(0..5)),
        };
        let sketch = match on {
            0..2 => sketch.holds(&[rng.u8(0..4)]).on(&format!("n{on}")),
            2..5 => sketch.on(&format!("n{on}")),
            5 => sketch.on("stranger"),
            _ => sketch.gate("waits"),
        };
        world.apply(match rng.u8(0..4) {
            0 => sketch.foreign(),
            1 => sketch.queue("all"),
            _ => sketch.queue("some"),
        });
    }
    world.settle();
    world
}

/// A hash of everything that a decision may read.
fn hash(engine: &mut Engine) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    let reports = (engine.pod_reports(), engine.gang_reports());
    format!("{reports:?} {:?}", engine.queue_reports()).hash(&mut hasher);
    let state = &mut engine.state;
    state.order_domains();
    for (id, node) in state.nodes.iter() {
        let mut pods = node.pods.clone();
        pods.sort_unstable();
        let resources: Vec<_> = node.resources().collect();
        format!("{id:?} {resources:?} {:?} {pods:?}", node.cards).hash(&mut hasher);
        (node.standing(), node.is_whole()).hash(&mut hasher);
    }
    for (_, pod) in state.pods.iter() {
        let account = pod.own.as_ref().and_then(|own| own.account.as_ref());
        format!("{:?} {:?} {account:?}", pod.stage, pod.cards).hash(&mut hasher);
    }
    for class in state.classes.ids() {
        state.refresh(class);
        let (topologies, classes) = (&state.topologies, &mut state.classes);
        let table = classes[class].table.as_mut().unwrap();
        (table.total, &table.counts).hash(&mut hasher);
        for (id, topology) in topologies.iter() {
            table.sums(id, topology).hash(&mut hasher);
        }
    }
    format!("{:?}", state.lanes).hash(&mut hasher);
    (&state.freed, &state.released, &state.touched).hash(&mut hasher);
    state.rules_version.hash(&mut hasher);
    hasher.finish()
}

/// Places a pod that waits somewhere, or ends one that has a place.
fn change(state: &mut ClusterState, txn: &mut Txn, rng: &mut Rng) {
    let pods: Vec<PodId> = state.pods.ids();
    let pod = pods[rng.usize(..pods.len())];
    if state.node_of(pod).is_some() {
        txn.end(state, pod);
        return;
    }
    let class = &state.classes[state.pods[pod].class];
    let fits = |node: &_| state.nodes[*node].multiplicity(class) > 0;
    let nodes: Vec<_> = state.nodes.ids().into_iter().filter(fits).collect();
    let waits = state.pods[pod].stage == crate::state::pod::Stage::Waiting;
    if let Some(node) = rng.choice(nodes).filter(|_| waits) {
        txn.place(state, pod, node, *rng.choice(&PLACEMENTS).unwrap());
    }
}

#[test]
fn what_is_rolled_back_is_as_it_was_at_the_checkpoint() {
    let (mut placed, mut changed) = (0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let mut world = settled(&mut rng);
        let engine = world.engine();
        let mut txn = Txn::default();
        let mut marks = Vec::from([(txn.checkpoint(), hash(engine))]);
        for _ in 0..STEPS {
            match rng.u8(0..12) {
                0 => marks.push((txn.checkpoint(), hash(engine))),
                1 => {
                    let (mark, before) = marks[marks.len() - 1];
                    changed += u64::from(hash(engine) != before);
                    txn.rollback(&mut engine.state, mark);
                    assert_eq!(hash(engine), before, "seed {seed}");
                    marks.truncate(marks.len().max(2) - 1);
                }
                _ => change(&mut engine.state, &mut txn, &mut rng),
            }
        }
        placed += txn.placed().len();
        let (mark, before) = marks[0];
        txn.rollback(&mut engine.state, mark);
        assert_eq!(hash(engine), before, "seed {seed}");
        assert_eq!(audit::violations(&engine.state), Vec::<String>::new());
    }
    assert!(placed > 500 && changed > 500, "{placed} {changed}");
}
