//! A cluster and its work, drawn from a seed: small, so that every corner is met often.

use crate::objects::{node, pod, pod_group, queue, topology};
use crate::random::Random;
use crate::world::World;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{Placement, PodFacts, QueueResource, TopologyRequest, UnixMs};

/// The labels of nodes that make domains.
pub const LEVELS: [&str; 2] = ["zone", "rack"];

/// One thing that happens to the world from outside.
#[derive(Debug, Clone)]
pub enum Arrival {
    /// Objects are created or changed.
    Objects(Vec<Object>),
    /// A pod that runs, if there is one, ends well: the one with this number, counted round.
    PodEnds(u64),
    /// A pod, if there is one, is deleted and created anew by its owner.
    PodReplaced(u64),
    /// A node is drained of its name and comes back as another machine.
    NodeReplaced(u64),
}

/// Fills a world with nodes, queues and a topology.
pub fn build(world: &mut World, random: &mut Random, now_ms: UnixMs) {
    let uid = world.new_uid();
    world.put(Object::Topology(topology("default", uid, &LEVELS)), now_ms);
    for number in 0..random.between(1, 8) {
        let zone = format!("z{}", random.below(2));
        let rack = format!("r{}", random.below(3));
        let mut labels = vec![("zone", zone.as_str()), ("rack", rack.as_str())];
        labels.truncate(usize::try_from(random.between(0, 4)).unwrap_or(2));
        let uid = world.new_uid();
        let gpus = *random.pick(&[0, 2, 4, 8]);
        let facts = node(
            &format!("n{number}"),
            uid,
            random.between(2, 16),
            gpus,
            &labels,
        );
        world.put(Object::Node(facts), now_ms);
    }
    for name in ["red", "blue"] {
        let uid = world.new_uid();
        let mut facts = queue(name, uid);
        if random.percent(50) {
            facts.resources.push(QueueResource {
                name: "nvidia.com/gpu".into(),
                product: None,
                quota: random.below(8),
                limit: random.percent(50).then(|| random.between(8, 24)),
                weight: u16::try_from(random.below(4)).unwrap_or(1),
            });
        }
        world.put(Object::Queue(facts), now_ms);
    }
}

/// What arrives over time, in order.
pub fn arrivals(
    world: &mut World,
    random: &mut Random,
    start_ms: UnixMs,
) -> Vec<(UnixMs, Arrival)> {
    let mut arrivals = Vec::new();
    let mut at_ms = start_ms;
    for number in 0..random.between(3, 12) {
        at_ms += random.below(4_000);
        let arrival = match random.below(10) {
            0..=5 => Arrival::Objects(gang(world, random, number, at_ms)),
            6 => Arrival::Objects(vec![Object::Pod(single(world, random, number, at_ms))]),
            7 => Arrival::PodEnds(random.next_u64()),
            8 => Arrival::PodReplaced(random.next_u64()),
            _ => Arrival::NodeReplaced(random.next_u64()),
        };
        arrivals.push((at_ms, arrival));
    }
    arrivals
}

fn gang(world: &mut World, random: &mut Random, number: u64, now_ms: UnixMs) -> Vec<Object> {
    let name = format!("g{number}");
    let pods = random.between(1, 4);
    let minimum = u32::try_from(random.between(1, pods)).unwrap_or(1);
    let uid = world.new_uid();
    let mut group = pod_group(&name, uid, now_ms, minimum);
    group.queue = Some((*random.pick(&["red", "blue"])).into());
    if random.percent(40) {
        let required = Some((*random.pick(&["zone", "rack", "node"])).into());
        group.topology = Some(TopologyRequest {
            required,
            ..TopologyRequest::default()
        });
    }
    if random.percent(20) {
        group.placement.gpu = Some(Placement::Spread);
    }
    group.staleness_grace_ms = Some(5_000);
    let shape = size(random);
    let mut objects = vec![Object::PodGroup(group)];
    for member in 0..pods {
        let (cpus, gpus) = if random.percent(30) {
            size(random)
        } else {
            shape
        };
        let uid = world.new_uid();
        let mut facts = pod(&format!("{name}-{member}"), uid, now_ms, cpus, gpus);
        facts.pod_group = Some(name.as_str().into());
        objects.push(Object::Pod(facts));
    }
    objects
}

fn single(world: &mut World, random: &mut Random, number: u64, now_ms: UnixMs) -> PodFacts {
    let uid = world.new_uid();
    let (cpus, gpus) = size(random);
    let mut facts = pod(&format!("p{number}"), uid, now_ms, cpus, gpus);
    facts.queue = Some((*random.pick(&["red", "blue"])).into());
    facts
}

fn size(random: &mut Random) -> (u64, u64) {
    (random.between(1, 4), *random.pick(&[0, 1, 1, 2, 3, 4, 8]))
}
