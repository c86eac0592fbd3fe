//! A transaction that is rolled back leaves everything as it was.

use super::{NOW_MS, asking, card, node, pod};
use crate::audit;
use crate::engine::Engine;
use crate::event::{Event, Object, Outcome};
use crate::facts::{
    CARD, CardNeed, CardPart, NodeFacts, Placement, PodFacts, PodGroupFacts, QueueFacts,
    QueueResource, TopologyFacts, TopologyLevel, Uid,
};
use crate::gangs::protected;
use crate::gpu::PRODUCT_LABEL;
use crate::ids::{GangId, PodId};
use crate::resources::ResourceNames;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::holds::{Hold, Holder};
use crate::state::lanes::Lane;
use crate::txn::Txn;
use alloc::{format, string::String, vec::Vec};
use core::hash::{Hash, Hasher};
use fastrand::Rng;

const SEEDS: u64 = 200;
const STEPS: usize = 60;
const GANGS: u32 = 6;
const PLACEMENTS: [Placement; 4] = [
    Placement::Binpack,
    Placement::Spread,
    Placement::BestFit,
    Placement::DotProduct,
];

fn topology() -> TopologyFacts {
    TopologyFacts {
        name: "default".into(),
        uid: Uid(1),
        levels: Vec::from([TopologyLevel {
            name: "rack".into(),
            node_label: "rack".into(),
        }]),
        problems: Vec::new(),
    }
}

fn queues() -> [QueueFacts; 2] {
    let queue = |name, parent: Option<&str>, product: Option<&str>, (quota, limit)| QueueFacts {
        parent: parent.map(Into::into),
        resources: Vec::from([QueueResource {
            name: "nvidia.com/gpu".into(),
            product: product.map(Into::into),
            quota: quota * CARD,
            limit: Some(limit * CARD),
            weight: 1,
        }]),
        ..QueueFacts::new(Uid(1), name)
    };
    let some = queue("some", Some("all"), Some("H100"), (2, 24));
    [queue("all", None, None, (4, 64)), some]
}

/// A node in one of two racks: the first two nodes have cards of their own, the others 8 H100.
fn racked(number: u32) -> NodeFacts {
    let with_cards = number < 2;
    let mut node = node(number, if with_cards { 0 } else { 8 });
    if with_cards {
        node.cards = (0..4).map(card).collect();
    } else {
        node.labels.push((PRODUCT_LABEL.into(), "H100".into()));
    }
    let rack = format!("r{}", number % 2);
    node.labels.push(("rack".into(), rack.into()));
    node
}

/// A pod on a node, which may be overfull or unknown, or one that waits.
fn drawn(number: u32, rng: &mut Rng) -> PodFacts {
    let on = rng.u8(0..9);
    let mut pod = match (rng.u8(0..3), on) {
        (0, _) => asking(number, CardNeed::fraction(300, 20).unwrap()),
        (1, 0 | 1) => asking(number, CardNeed::whole(1, 0).unwrap()),
        _ => pod(number, rng.u64(0..5)),
    };
    match on {
        0..5 => pod.node = Some(format!("n{on}").into()),
        5 => pod.node = Some("stranger".into()),
        _ => pod.gates.push("waits".into()),
    }
    if on < 2 {
        let need = pod.shape.cards;
        pod.cards.push(CardPart {
            instances: Vec::new(),
            card: format!("{}", rng.u8(0..4)).into(),
            slots: 1,
            thousandths: need.map_or(0, |need| need.thousandths().into()),
            memory_mib: need.map_or(0, |need| need.memory().of_card(100)),
        });
    }
    pod.deletion_ms = (rng.u8(0..6) == 0).then_some(NOW_MS + 30_000);
    pod.bound_ms = pod.node.as_ref().map(|_| NOW_MS - 30_000);
    match rng.u8(0..4) {
        0 => pod.ours = false,
        1 => pod.queue = Some("all".into()),
        _ => pod.queue = Some("some".into()),
    }
    pod
}

fn group(number: u32) -> String {
    format!("g{number}")
}

/// A pod of one of the gangs, or a foreign one.
fn drawn_in_gang(number: u32, rng: &mut Rng) -> PodFacts {
    let pod = drawn(number, rng);
    let group = rng.u32(0..GANGS);
    PodFacts {
        pod_group: pod.ours.then(|| self::group(group).into()),
        // Few gangs would be left that take amounts alone, and stay.
        deletion_ms: pod.deletion_ms.filter(|_| group == 0),
        shape: match group {
            0 | 1 => pod.shape,
            _ => super::pod(number, rng.u64(0..5)).shape,
        },
        cards: match group {
            0 | 1 => pod.cards,
            _ => Vec::new(),
        },
        ..pod
    }
}

/// Full and empty nodes in two racks, one with more pods than it has room for, one that has never
/// been seen, and pods that wait, of queues with limits on GPU models and of none.
fn settled(rng: &mut Rng) -> Engine {
    settled_with((0..40).map(|number| drawn(number, rng)).collect())
}

fn settled_with(pods: Vec<PodFacts>) -> Engine {
    let mut objects = Vec::from([Object::Topology(topology())]);
    objects.extend(queues().map(Object::Queue));
    objects.extend((0..6).map(racked).map(Object::Node));
    let groups = (0..GANGS).map(|number| PodGroupFacts::new(Uid(2), "default", &group(number), 1));
    objects.extend(groups.map(Object::PodGroup));
    objects.extend(pods.into_iter().map(Object::Pod));
    let mut engine = Engine::new(Settings::default());
    let mut events = Event::lists(objects);
    while !events.is_empty() || !engine.is_idle() {
        let commands = engine.step(NOW_MS, events).into_iter();
        let done = commands.map(|command| Event::Outcome(command.id, Outcome::Done));
        events = done.collect();
    }
    engine
}

/// A hash of everything that a decision may read. Left out are the log of changed nodes and the
/// nodes that are stirred, which say only where to look again, and what is worked out when it is
/// read.
fn hash(engine: &mut Engine) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    let reports = (engine.pod_reports(), engine.gang_reports());
    format!("{reports:?} {:?}", engine.queue_reports()).hash(&mut hasher);
    let state = &mut engine.state;
    state.order_domains();
    for (id, node) in state.nodes.iter() {
        let mut pods = node.pods.clone();
        pods.sort_unstable();
        // A node may list resources of which it has nothing.
        let resources = node.resources();
        let resources: Vec<_> = resources.filter(|(_, has, used)| has + used > 0).collect();
        let coming = node.coming().filter(|(_, leaves, held)| leaves + held > 0);
        let coming: Vec<_> = coming.collect();
        let room: Vec<_> = state
            .classes
            .ids()
            .into_iter()
            .map(|class| node.multiplicity(&state.classes[class]))
            .collect();
        format!(
            "{id:?} {resources:?} {coming:?} {room:?} {:?} {pods:?}",
            node.cards
        )
        .hash(&mut hasher);
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
    let gpus = Lane::Extended(ResourceNames::gpu());
    for lane in [gpus, Lane::Cards, Lane::Plain, Lane::Beside] {
        state.lanes.refresh(lane, &state.nodes);
        format!("{:?}", state.lanes.get(lane)).hash(&mut hasher);
    }
    let leaving: Vec<_> = state.holds.leaving().collect();
    let outgoing: Vec<_> = state.holds.outgoing().collect();
    let mut holds: Vec<String> = Vec::new();
    for hold in state.holds.iter() {
        let on: Vec<_> = hold.places.iter().map(|(_, node)| *node).collect();
        let on_them = on
            .iter()
            .map(|node| state.holds.on_node(*node).collect::<Vec<_>>());
        holds.push(format!("{hold:?} {:?}", on_them.collect::<Vec<_>>()));
    }
    format!("{leaving:?} {outgoing:?} {holds:?}").hash(&mut hasher);
    protected::follow(state);
    for queue in state.queues.ids() {
        let minima: Vec<_> = state.minima.of_queue(queue).collect();
        format!("{minima:?}").hash(&mut hasher);
    }
    (&state.freed, &state.released, &state.touched).hash(&mut hasher);
    state.rules_version.hash(&mut hasher);
    hasher.finish()
}

/// Places a pod that waits somewhere, ends or displaces one that has a place, withholds room, or
/// changes what is held.
fn change(state: &mut ClusterState, txn: &mut Txn, rng: &mut Rng) {
    match rng.u8(0..12) {
        0 | 1 => return change_hold(state, txn, rng),
        2 => return withhold(state, txn, rng),
        _ => {}
    }
    let pods: Vec<PodId> = state.pods.ids();
    let pod = pods[rng.usize(..pods.len())];
    if state.node_of(pod).is_some() {
        match rng.bool() {
            true => txn.end(state, pod),
            false => txn.displace(state, pod),
        }
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

/// Counts what a class asks for as taken on a node.
fn withhold(state: &mut ClusterState, txn: &mut Txn, rng: &mut Rng) {
    let class = *rng.choice(&state.classes.ids()).unwrap();
    let node = *rng.choice(&state.nodes.ids()).unwrap();
    let amounts = state.classes[class].requests.clone();
    txn.withhold(state, node, amounts);
}

fn change_hold(state: &mut ClusterState, txn: &mut Txn, rng: &mut Rng) {
    let gangs: Vec<GangId> = state.gangs.ids();
    let gang = gangs[rng.usize(..gangs.len())];
    let holder = match rng.u8(0..8) {
        0 => return txn.give_up_own(state, gang),
        1 => Holder::Owner(Uid(rng.u128(0..4))),
        2 => Holder::Foreign(rng.i32(-1..2), Uid(rng.u128(0..4))),
        _ => Holder::Gang(gang),
    };
    if state.holds.get(holder).is_some() {
        txn.give_up(state, holder);
        return;
    }
    let nodes = state.nodes.ids();
    let classes = state.classes.ids();
    let rooms = (0..rng.u8(1..4)).map(|_| {
        let class = classes[rng.usize(..classes.len())];
        (class, nodes[rng.usize(..nodes.len())])
    });
    let rooms = rooms.collect();
    let queues = state.queues.ids();
    let queue = queues[rng.usize(..queues.len())];
    let leavers = state.pods.iter().map(|(_, pod)| pod.uid);
    let leavers = leavers.filter(|_| rng.u8(0..8) == 0).collect();
    let to = (!matches!(holder, Holder::Foreign(..))).then(|| (queue, rng.bool()));
    let hold = Hold::new(holder, to, rooms);
    txn.hold(state, Hold { leavers, ..hold });
}

#[test]
fn what_is_rolled_back_is_as_it_was_at_the_checkpoint() {
    let (mut placed, mut changed) = (0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let mut engine = settled(&mut rng);
        let engine = &mut engine;
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

/// Ends pods in two equal worlds, at once and one after the other, and places others after that.
fn end_both(
    (together, apart): (&mut Engine, &mut Engine),
    (txn, other): (&mut Txn, &mut Txn),
    rng: &mut Rng,
) {
    let mut pods: Vec<PodId> = together.state.pods.ids();
    rng.shuffle(&mut pods);
    // Now and then all of them, so that queues hold nothing any more.
    pods.truncate(*rng.choice(&[1, 3, 8, 40]).unwrap());
    txn.end_together(&mut together.state, &pods);
    for pod in pods {
        other.end(&mut apart.state, pod);
    }
    for pod in together.state.pods.ids() {
        let state = &together.state;
        let class = &state.classes[state.pods[pod].class];
        let fits = |node: &_| state.nodes[*node].multiplicity(class) > 0;
        let node = state.nodes.ids().into_iter().find(fits);
        let waits = state.pods[pod].stage == crate::state::pod::Stage::Waiting;
        if let Some(node) = node.filter(|_| waits && rng.u8(0..4) == 0) {
            txn.place(&mut together.state, pod, node, Placement::Binpack);
            other.place(&mut apart.state, pod, node, Placement::Binpack);
        }
    }
}

#[test]
fn pods_that_end_together_leave_the_room_that_they_leave_one_after_the_other() {
    for seed in 0..SEEDS {
        let worlds = || settled(&mut Rng::with_seed(seed));
        let (mut together, mut apart) = (worlds(), worlds());
        let before = hash(&mut together);
        let (mut txn, mut other) = (Txn::default(), Txn::default());
        let begin = txn.checkpoint();
        let mut rng = Rng::with_seed(seed);
        for _ in 0..6 {
            let both = (&mut together, &mut apart);
            end_both(both, (&mut txn, &mut other), &mut rng);
            let (state, apart) = (&mut together.state, &mut apart.state);
            hold_against(state, apart, seed);
        }
        txn.rollback(&mut together.state, begin);
        assert_eq!(hash(&mut together), before, "seed {seed}");
        assert_eq!(audit::violations(&together.state), Vec::<String>::new());
    }
}

/// Holds what classes find on nodes, and what queues have, against another world.
fn hold_against(state: &mut ClusterState, other: &mut ClusterState, seed: u64) {
    for class in state.classes.ids() {
        let counts = [&mut *state, &mut *other].map(|state| {
            state.refresh(class);
            state.classes[class].table.as_ref().unwrap().counts.clone()
        });
        assert_eq!(counts[0], counts[1], "seed {seed}");
    }
    for queue in state.queues.ids() {
        let allocated = |state: &ClusterState| {
            let of_queue = state.queues.allocated(queue);
            of_queue.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(allocated(state), allocated(other), "seed {seed}");
    }
    let whole = |state: &ClusterState| {
        let nodes = state.nodes.iter().map(|(_, node)| node.is_whole());
        nodes.collect::<Vec<_>>()
    };
    assert_eq!(whole(state), whole(other), "seed {seed}");
}

#[test]
fn a_gang_that_ends_as_a_whole_leaves_the_room_that_its_pods_leave_one_after_the_other() {
    let mut summed = 0;
    for seed in 0..SEEDS {
        let pods = || {
            let mut rng = Rng::with_seed(seed);
            (0..40)
                .map(|number| drawn_in_gang(number, &mut rng))
                .collect()
        };
        let (mut whole, mut apart) = (settled_with(pods()), settled_with(pods()));
        let before = hash(&mut whole);
        let (mut txn, mut other) = (Txn::default(), Txn::default());
        let begin = txn.checkpoint();
        let mut gangs = whole.state.gangs.ids();
        Rng::with_seed(seed).shuffle(&mut gangs);
        for gang in gangs {
            summed += usize::from(whole.state.footprint(gang).is_some());
            txn.end_gang(&mut whole.state, gang);
            for pod in apart.state.gangs[gang].members.clone() {
                other.end(&mut apart.state, pod);
            }
            hold_against(&mut whole.state, &mut apart.state, seed);
        }
        txn.rollback(&mut whole.state, begin);
        assert_eq!(hash(&mut whole), before, "seed {seed}");
        assert_eq!(audit::violations(&whole.state), Vec::<String>::new());
    }
    assert!(summed > 500, "{summed}");
}
