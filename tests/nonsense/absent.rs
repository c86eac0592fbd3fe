//! Two engines see the same good objects, one of them bad ones too: both do the same with the good
//! ones.

use std::collections::{BTreeMap, BTreeSet};

use gpu_batch::kube::convert::Converter;
use gpu_batch_policies::command::Action;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::{PodFacts, Uid};
use gpu_batch_policies::settings::Settings;
use serde_json::Value;

use crate::generator::{Generator, without_nulls};
use crate::shell::{self, Seen};
use crate::world::{START_MS, listing};

/// Changes of the good world.
const ROUNDS: u64 = 12;
/// Steps until an engine must be at rest.
const STEPS_MAX: u32 = 2_000;
/// Longer than the interval in which queues say how they are.
const ROUND_MS: u64 = 1_500;

/// An engine, and the pods that it sees.
struct Side {
    engine: Engine,
    pods: BTreeMap<Uid, PodFacts>,
    events: Vec<Event>,
}

impl Side {
    fn new() -> Self {
        Self {
            engine: Engine::new(Settings::default()),
            pods: BTreeMap::new(),
            events: Kind::ALL.map(|kind| listing(kind, Vec::new())).into(),
        }
    }

    fn come(&mut self, fact: Object) {
        if let Object::Pod(pod) = &fact {
            self.pods.insert(pod.uid, pod.clone());
        }
        self.events.push(fact.into());
    }

    fn go(&mut self, key: ObjectKey) {
        if let ObjectKey::Pod(uid) = key {
            self.pods.remove(&uid);
        }
        self.events.push(Event::Deleted(key));
    }

    /// Does all that the engine asks for until it asks for nothing more.
    fn settle(&mut self, now_ms: u64) {
        for _ in 0..STEPS_MAX {
            let mut events = std::mem::take(&mut self.events);
            events.push(Event::Continue);
            for command in self.engine.step(now_ms, events) {
                self.carry_out(command.action);
                let done = Event::Outcome(command.id, Outcome::Done);
                self.events.push(done);
            }
            if self.events.is_empty() && self.engine.is_idle() {
                assert_eq!(self.engine.audit(), Vec::<String>::new());
                return;
            }
        }
        panic!("the engine does not come to rest");
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Bind(bind) => {
                if let Some(pod) = self.pods.get_mut(&bind.pod.uid) {
                    pod.node = Some(bind.node);
                    pod.bound_queue = Some(bind.queue);
                    self.events.push(Object::Pod(pod.clone()).into());
                }
            }
            Action::Evict(evict) => self.go(ObjectKey::Pod(evict.pod.uid)),
            _ => {}
        }
    }

    /// The reports of these pods and queues, a line each.
    fn fate(&mut self, pods: &BTreeSet<Uid>, queues: &BTreeSet<Box<str>>) -> Vec<String> {
        let reports = self.engine.pod_reports();
        let pods = reports.iter().filter(|pod| pods.contains(&pod.uid));
        let mut fate: Vec<String> = pods
            .map(|pod| {
                let (uid, state, node) = (&pod.uid, pod.state, &pod.node);
                format!("{uid} {}: {state:?} {node:?} {:?}", pod.name, pod.reason)
            })
            .collect();
        fate.sort();
        for queue in self.engine.queue_reports() {
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
}

/// Runs the two worlds of a seed; returns how many bad objects one of them had.
pub(crate) fn check(seed: u64) -> u64 {
    let mut good = Generator::new(seed, "");
    let mut bad = Generator::new(!seed, "bad-");
    let mut converter = Converter::new("gpu-batch", START_MS);
    let (mut without, mut with) = (Side::new(), Side::new());
    let (mut pods, mut queues) = (BTreeSet::new(), BTreeSet::new());
    let (mut now_ms, mut count) = (START_MS, 0);
    for _ in 0..ROUNDS {
        now_ms += ROUND_MS;
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
            for side in [&mut without, &mut with] {
                if goes {
                    side.go(key.clone());
                } else {
                    side.come(fact.clone());
                }
            }
        }
        without.settle(now_ms);
        with.settle(now_ms);
        let (expected, found) = (without.fate(&pods, &queues), with.fate(&pods, &queues));
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
fn bad_ones(draw: &mut Generator, converter: &mut Converter, side: &mut Side) -> u64 {
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
            side.come(fact);
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
