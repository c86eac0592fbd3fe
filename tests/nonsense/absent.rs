//! Two engines see the same good objects, one of them bad ones too: both do the same with the good
//! ones.

use std::collections::BTreeSet;

use gpu_batch::kube::convert::Converter;
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::Uid;
use gpu_batch_testing::World;
use serde_json::Value;

use crate::generator::{Generator, without_nulls};
use crate::shell::{self, Seen};
use crate::world::START_MS;

/// Changes of the good world.
const ROUNDS: u64 = 12;
/// Longer than the interval in which queues say how they are.
const ROUND_MS: u64 = 1_500;

/// The reports of these pods and queues, a line each.
fn fate(world: &mut World, pods: &BTreeSet<Uid>, queues: &BTreeSet<Box<str>>) -> Vec<String> {
    let reports = world.engine.pod_reports();
    let pods = reports.iter().filter(|pod| pods.contains(&pod.uid));
    let mut fate: Vec<String> = pods
        .map(|pod| {
            let (uid, state, node) = (&pod.uid, pod.state, &pod.node);
            format!("{uid} {}: {state:?} {node:?} {:?}", pod.name, pod.reason)
        })
        .collect();
    fate.sort();
    for queue in world.engine.queue_reports() {
        if queues.contains(&queue.name) {
            let status = &queue.status;
            let (held, fair) = (&status.allocated, &status.fair_share);
            fate.push(format!(
                "{}: {:?} {held:?} {fair:?}",
                queue.name, status.fault
            ));
        }
    }
    fate
}

/// Runs the two worlds of a seed; returns how many bad objects one of them had.
pub(crate) fn check(seed: u64) -> u64 {
    let mut good = Generator::new(seed, "");
    let mut bad = Generator::new(!seed, "bad-");
    let mut converter = Converter::new("gpu-batch", START_MS);
    let (mut without, mut with) = (World::new(), World::new());
    let (mut pods, mut queues) = (BTreeSet::new(), BTreeSet::new());
    (without.now_ms, with.now_ms) = (START_MS, START_MS);
    let mut count = 0;
    for _ in 0..ROUNDS {
        for _ in 0..good.random.between(1, 12) {
            count += bad_ones(&mut bad, &mut converter, &mut with);
            let kind = good.kind();
            let mut object = good.sense(kind);
            without_nulls(&mut object);
            let Some((key, fact)) = fact_of(kind, &object, &mut converter) else {
                continue;
            };
            match &fact {
                Object::Pod(pod) => drop(pods.insert(pod.uid)),
                Object::Queue(queue) => drop(queues.insert(queue.name.clone())),
                _ => {}
            }
            let goes = good.random.percent(8);
            for world in [&mut without, &mut with] {
                if goes {
                    world.forget(key.clone());
                } else {
                    world.apply(fact.clone());
                }
            }
        }
        without.later(ROUND_MS);
        with.later(ROUND_MS);
        let [expected, found] = [&mut without, &mut with].map(|world| fate(world, &pods, &queues));
        assert_eq!(found, expected, "bad objects make a difference");
    }
    count
}

fn fact_of(kind: Kind, object: &Value, converter: &mut Converter) -> Option<(ObjectKey, Object)> {
    match shell::see(kind, &object.to_string(), converter) {
        Seen::Fact(key, fact) => Some((key, *fact)),
        Seen::Ended(_) | Seen::Unreadable => None,
    }
}

/// Lets some bad objects come; returns how many.
fn bad_ones(draw: &mut Generator, converter: &mut Converter, world: &mut World) -> u64 {
    let mut count = 0;
    for _ in 0..draw.random.below(8) {
        let kind = draw.kind();
        let mut object = draw.nonsense(kind);
        without_nulls(&mut object);
        if draw.random.percent(50) {
            among_the_good(&mut object);
        }
        let Some((_, fact)) = fact_of(kind, &object, converter) else {
            continue;
        };
        if is_bad(&fact) {
            count += 1;
            world.apply(fact);
        }
    }
    count
}

/// Lets an object name a queue of the good ones.
fn among_the_good(object: &mut Value) {
    let fields = [
        "/spec/queue",
        "/spec/parent",
        "/metadata/labels/gpu-batch.io~1queue",
    ];
    for field in fields {
        if let Some(Value::String(queue)) = object.pointer_mut(field) {
            *queue = queue.replacen("bad-", "", 1);
        }
    }
}

/// Whether the object is refused, and takes no room either.
fn is_bad(fact: &Object) -> bool {
    let wrong = !shell::problems(fact).is_empty();
    match fact {
        Object::Pod(pod) => wrong && pod.ours && pod.node.is_none(),
        Object::Node(node) => wrong && node.allocatable.is_empty(),
        Object::PodGroup(group) => wrong || !group.unsupported.is_empty(),
        _ => wrong,
    }
}
