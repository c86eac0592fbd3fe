//! A world of nonsense around one engine.

use std::collections::{BTreeMap, BTreeSet};

use gpu_batch::kube::convert::Converter;
use gpu_batch_policies::command::{Action, Command};
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::report::PodState;
use gpu_batch_policies::status::Phase;
use gpu_batch_testing::World;

use crate::generator::{Generator, without_nulls};
use crate::shell::{self, Seen};

/// 2026-11-21T10:00:00Z
pub(crate) const START_MS: u64 = 1_795_255_200_000;
/// Facts that one world gets.
const OBJECTS: u64 = 202;
/// How often the world comes to rest.
const CHECK_EVERY: u64 = 101;
/// How long it takes to rest: queues say how they are every second.
const REST_MS: u64 = 2_500;
/// Steps until an engine must be at rest.
const STEPS_MAX: u32 = 2_000;

struct Nonsense {
    draw: Generator,
    converter: Converter,
    world: World,
    /// What there is, by kind, namespace and name.
    names: BTreeMap<(Kind, String), ObjectKey>,
    /// Facts so far.
    count: u64,
    /// Pods whose binding has been asked for.
    begun: BTreeSet<Uid>,
}

/// Runs the world of a seed; returns how many objects went through the engine.
pub(crate) fn check(seed: u64) -> u64 {
    let mut nonsense = Nonsense {
        draw: Generator::new(seed, ""),
        converter: Converter::new("gpu-batch", START_MS),
        world: World::new(),
        names: BTreeMap::new(),
        count: 0,
        begun: BTreeSet::new(),
    };
    nonsense.world.now_ms = START_MS;
    nonsense.step();
    let mut checked = 0;
    while nonsense.count < OBJECTS {
        for _ in 0..nonsense.draw.random.between(1, 6) {
            nonsense.happen();
        }
        nonsense.step();
        if nonsense.count / CHECK_EVERY > checked {
            checked = nonsense.count / CHECK_EVERY;
            nonsense.check_at_rest();
        }
    }
    nonsense.check_at_rest();
    nonsense.count
}

impl Nonsense {
    /// Something happens.
    fn happen(&mut self) {
        match self.draw.random.below(100) {
            0..10 => self.leave(),
            10..14 => {
                let kind = self.draw.kind();
                self.relist(kind);
            }
            14..17 => {
                let jumps = [0, 1, 500, 60_000, 400_000_000, u64::MAX / 2];
                let jump = *self.draw.random.pick(&jumps);
                if jump < 1_000_000 || self.draw.random.percent(1) {
                    self.world.now_ms = self.world.now_ms.saturating_add(jump);
                }
            }
            _ => self.come(),
        }
    }

    /// An object comes, or changes.
    fn come(&mut self) {
        let kind = self.draw.kind();
        let mut object = self.draw.nonsense(kind);
        if self.draw.random.percent(70) {
            without_nulls(&mut object);
        }
        let mut text = object.to_string();
        if self.draw.random.percent(1) {
            text = text.replacen("\"name\":", "\"name\":\"twice\",\"name\":", 1);
        }
        if self.draw.random.percent(10) {
            shell::check_file(kind, object, &mut self.converter);
        }
        self.converter.set_now(self.world.now_ms);
        match shell::see(kind, &text, &mut self.converter) {
            Seen::Unreadable => {}
            Seen::Ended(key) => {
                self.names.retain(|_, other| *other != key);
                self.world.forget(key);
            }
            Seen::Fact(key, fact) => {
                self.count += 1;
                self.name(&key, &fact);
                self.world.apply(*fact);
            }
        }
    }

    /// Where two objects share a name, a watch sees the first one go.
    fn name(&mut self, key: &ObjectKey, fact: &Object) {
        self.names.retain(|_, other| other != key);
        if let Some(before) = self.names.insert(place(fact), key.clone()) {
            self.world.forget(before);
        }
    }

    /// An object goes.
    fn leave(&mut self) {
        let names: Vec<_> = self.names.keys().cloned().collect();
        if !names.is_empty() {
            let name = self.draw.random.pick(&names);
            let key = self.names.remove(name);
            self.world.forget(key.unwrap());
        }
    }

    fn relist(&mut self, kind: Kind) {
        let objects = self.world.objects.values();
        let of_kind = objects.filter(|object| object.kind() == kind);
        let mut objects: Vec<Object> = of_kind.cloned().collect();
        if self.draw.random.percent(5) {
            objects.extend(objects.first().cloned());
        }
        self.world
            .events
            .push(Event::Listed(Listing { kind, objects }));
    }

    /// One step. The API server may answer anything.
    fn step(&mut self) {
        for command in self.world.commands() {
            let outcome = self.answer(&command);
            if let Action::Bind(bind) = &command.action
                && let Some(Object::Pod(pod)) =
                    self.world.objects.get(&ObjectKey::Pod(bind.pod.uid))
            {
                // A pod whose binding has begun is brought to its node, whatever it becomes.
                let wrong = &pod.problems;
                let begun = !self.begun.insert(bind.pod.uid);
                assert!(begun || wrong.is_empty(), "bound in spite of {wrong:?}");
            }
            self.world.carry_out(command, outcome);
        }
    }

    fn answer(&mut self, command: &Command) -> Outcome {
        if let Action::Observe(pod) = &command.action {
            return Outcome::Observed(self.world.seen(pod.uid));
        }
        match self.draw.random.below(20) {
            0 => Outcome::Conflict {
                message: "\u{0}".into(),
            },
            1 => Outcome::NotFound,
            2 => Outcome::Refused {
                message: "🦀".repeat(500).into(),
            },
            3 => Outcome::Throttled {
                retry_after_ms: u64::MAX,
            },
            4 => Outcome::Throttled { retry_after_ms: 0 },
            5 => Outcome::Unknown { message: "".into() },
            _ => Outcome::Done,
        }
    }

    /// Lets everything come to rest, and holds it to what must be true then.
    fn check_at_rest(&mut self) {
        for kind in Kind::ALL {
            self.relist(kind);
        }
        let rest_ms = self.world.now_ms.saturating_add(REST_MS);
        for _ in 0..STEPS_MAX {
            self.step();
            self.world.now_ms = self.world.now_ms.saturating_add(500);
            let quiet = self.world.events.is_empty() && self.world.engine.is_idle();
            if quiet && self.world.now_ms >= rest_ms {
                break;
            }
        }
        let engine = &self.world.engine;
        assert_eq!(engine.audit(), Vec::<String>::new());
        let _ = (engine.inventory(), engine.gang_counts());
        for pod in engine.pod_reports() {
            let waits = matches!(pod.state, PodState::Pending | PodState::Gated);
            let told = pod.reason.is_some() && says_why(&pod.message);
            assert!(told || !waits, "waits without a reason: {pod:?}");
        }
        for gang in engine.gang_reports() {
            let waits = gang.status.phase == Phase::Pending;
            let told = gang.status.reason.is_some() && says_why(&gang.status.message);
            assert!(told || !waits, "waits without a reason: {gang:?}");
        }
        self.check_complaints();
    }

    /// The author of a bad Queue, Topology, Node, Namespace or PodDisruptionBudget was told.
    fn check_complaints(&mut self) {
        let queues = self.world.engine.queue_reports();
        for fact in self.world.objects.values() {
            let Some(problem) = shell::problems(fact).first() else {
                continue;
            };
            let (kind, name) = match fact {
                Object::Node(facts) => ("Node", &facts.name),
                Object::Topology(facts) => ("Topology", &facts.name),
                Object::Namespace(facts) => ("Namespace", &facts.name),
                Object::DisruptionBudget(facts) => ("PodDisruptionBudget", &facts.name),
                Object::Queue(facts) => {
                    let report = queues.iter().find(|queue| queue.name == facts.name);
                    let fault = report.and_then(|report| report.status.fault.as_ref());
                    assert!(fault.is_some(), "{} is Ready: {problem:?}", facts.name);
                    ("Queue", &facts.name)
                }
                _ => continue,
            };
            let told = self.world.told_of(&format!("{kind} {name}: "));
            let says = |line: &&str| kind == "Queue" || line.contains(&*problem.field);
            let told = told.iter().any(says);
            assert!(told, "{kind} {name}: no event says {problem:?}");
        }
    }
}

/// Whether a message is more than what is told of a refused gang until it is told why.
fn says_why(message: &str) -> bool {
    let not_why = ["about to be tried again", "when it was last tried"];
    !message.is_empty() && !not_why.iter().any(|end| message.ends_with(end))
}

/// Kind, namespace and name.
fn place(fact: &Object) -> (Kind, String) {
    let name = match fact {
        Object::Node(facts) => facts.name.to_string(),
        Object::Pod(facts) => format!("{}/{}", facts.namespace, facts.name),
        Object::Queue(facts) => facts.name.to_string(),
        Object::PodGroup(facts) => format!("{}/{}", facts.namespace, facts.name),
        Object::Topology(facts) => facts.name.to_string(),
        Object::PriorityClass(facts) => facts.name.to_string(),
        Object::Namespace(facts) => facts.name.to_string(),
        Object::Job(facts) => format!("{}/{}", facts.namespace, facts.name),
        Object::DisruptionBudget(facts) => format!("{}/{}", facts.namespace, facts.name),
        Object::Numa(facts) => facts.name.to_string(),
        Object::Storage(facts) => {
            let (namespace, name) = facts.name();
            format!("{namespace}/{name}")
        }
    };
    (fact.kind(), name)
}
