//! A world of nonsense around one engine.

use std::collections::{BTreeMap, BTreeSet};

use gpu_batch::kube::convert::Converter;
use gpu_batch_policies::command::{Action, Announcement, Command, PodReference};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::report::PodState;
use gpu_batch_policies::settings::Settings;
use gpu_batch_policies::status::Phase;

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

struct World {
    draw: Generator,
    converter: Converter,
    engine: Engine,
    now_ms: u64,
    /// What there is, by kind, namespace and name.
    facts: BTreeMap<(Kind, String), (ObjectKey, Object)>,
    /// Facts so far.
    count: u64,
    /// Pods whose binding has been asked for.
    begun: BTreeSet<Uid>,
    /// Answers on their way.
    outcomes: Vec<Event>,
    /// Every event and message so far: kind, name, message.
    said: BTreeSet<(String, String, String)>,
}

/// Runs the world of a seed; returns how many objects went through the engine.
pub(crate) fn check(seed: u64) -> u64 {
    let mut world = World {
        draw: Generator::new(seed, ""),
        converter: Converter::new("gpu-batch", START_MS),
        engine: Engine::new(Settings::default()),
        now_ms: START_MS,
        facts: BTreeMap::new(),
        count: 0,
        begun: BTreeSet::new(),
        outcomes: Vec::new(),
        said: BTreeSet::new(),
    };
    world.step(Event::lists([]));
    let mut checked = 0;
    while world.count < OBJECTS {
        let mut events = std::mem::take(&mut world.outcomes);
        for _ in 0..world.draw.random.between(1, 6) {
            world.happen(&mut events);
        }
        world.step(events);
        if world.count / CHECK_EVERY > checked {
            checked = world.count / CHECK_EVERY;
            world.check_at_rest();
        }
    }
    world.check_at_rest();
    world.count
}

fn listing(kind: Kind, objects: Vec<Object>) -> Event {
    Event::Listed(Listing { kind, objects })
}

impl World {
    /// Something happens.
    fn happen(&mut self, events: &mut Vec<Event>) {
        match self.draw.random.below(100) {
            0..10 => events.extend(self.leave()),
            10..14 => {
                let kind = self.draw.kind();
                events.push(self.relist(kind));
            }
            14..17 => {
                let jumps = [0, 1, 500, 60_000, 400_000_000, u64::MAX / 2];
                let jump = *self.draw.random.pick(&jumps);
                if jump < 1_000_000 || self.draw.random.percent(1) {
                    self.now_ms = self.now_ms.saturating_add(jump);
                }
            }
            _ => self.come(events),
        }
    }

    /// An object comes, or changes.
    fn come(&mut self, events: &mut Vec<Event>) {
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
        self.converter.set_now(self.now_ms);
        match shell::see(kind, &text, &mut self.converter) {
            Seen::Unreadable => {}
            Seen::Ended(key) => {
                self.facts.retain(|_, (other, _)| *other != key);
                events.push(Event::Deleted(key));
            }
            Seen::Fact(key, fact) => {
                self.count += 1;
                self.replace(&key, &fact, events);
                events.push(Event::Applied(fact));
            }
        }
    }

    /// Where two objects share a name, a watch sees the first one go.
    fn replace(&mut self, key: &ObjectKey, fact: &Object, events: &mut Vec<Event>) {
        self.facts.retain(|_, (other, _)| other != key);
        let before = self.facts.insert(place(fact), (key.clone(), fact.clone()));
        if let Some((before, _)) = before {
            events.push(Event::Deleted(before));
        }
    }

    /// An object goes.
    fn leave(&mut self) -> Option<Event> {
        let keys: Vec<_> = self.facts.keys().cloned().collect();
        if keys.is_empty() {
            return None;
        }
        let key = self.draw.random.pick(&keys).clone();
        let (key, _) = self.facts.remove(&key)?;
        Some(Event::Deleted(key))
    }

    fn relist(&mut self, kind: Kind) -> Event {
        let of_kind = self.facts.iter().filter(|((of, _), _)| *of == kind);
        let mut objects: Vec<Object> = of_kind.map(|(_, (_, fact))| fact.clone()).collect();
        if let Some(first) = objects
            .first()
            .cloned()
            .filter(|_| self.draw.random.percent(5))
        {
            objects.push(first);
        }
        listing(kind, objects)
    }

    fn step(&mut self, events: Vec<Event>) {
        let commands = self.engine.step(self.now_ms, events);
        for command in commands {
            let outcome = self.answer(&command);
            self.note(command, outcome);
        }
    }

    /// What the API server says, which may be anything.
    fn answer(&mut self, command: &Command) -> Outcome {
        if let Action::Observe(pod) = &command.action {
            return Outcome::Observed(self.seen(pod));
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

    fn seen(&self, pod: &PodReference) -> PodSeen {
        let found = self.facts.values().find_map(|(_, fact)| match fact {
            Object::Pod(facts) if facts.uid == pod.uid => Some(facts),
            _ => None,
        });
        match found {
            None => PodSeen::Gone,
            Some(facts) => facts.node.clone().map_or(PodSeen::Unbound, PodSeen::Bound),
        }
    }

    /// Takes note of what was asked for, and lets the answer and its effect come.
    fn note(&mut self, Command { id, action, .. }: Command, outcome: Outcome) {
        match action {
            Action::Bind(bind) => {
                let uid = bind.pod.uid;
                let facts = self.facts.values_mut().find_map(|(_, fact)| match fact {
                    Object::Pod(facts) if facts.uid == uid => Some(facts),
                    _ => None,
                });
                if let Some(facts) = facts {
                    // Whose binding has begun is brought to its node, whatever it becomes.
                    let wrong = &facts.problems;
                    let begun = !self.begun.insert(uid);
                    assert!(begun || wrong.is_empty(), "bound in spite of {wrong:?}");
                    if outcome == Outcome::Done {
                        facts.node = Some(bind.node);
                        facts.bound_queue = Some(bind.queue);
                        self.outcomes.push(Object::Pod(facts.clone()).into());
                    }
                }
            }
            Action::Publish(Announcement {
                regarding, message, ..
            }) => {
                let said = (regarding.kind.into(), regarding.name.into(), message.into());
                self.said.insert(said);
            }
            _ => {}
        }
        self.outcomes.push(Event::Outcome(id, outcome));
    }

    /// Lets everything come to rest, and holds it to what must be true then.
    fn check_at_rest(&mut self) {
        let mut events: Vec<Event> = Kind::ALL.map(|kind| self.relist(kind)).into();
        let rest_ms = self.now_ms.saturating_add(REST_MS);
        for _ in 0..STEPS_MAX {
            events.append(&mut self.outcomes);
            events.push(Event::Continue);
            self.step(std::mem::take(&mut events));
            self.now_ms = self.now_ms.saturating_add(500);
            let quiet = self.outcomes.is_empty() && self.engine.is_idle();
            if quiet && self.now_ms >= rest_ms {
                break;
            }
        }
        assert_eq!(self.engine.audit(), Vec::<String>::new());
        let _ = (self.engine.inventory(), self.engine.gang_counts());
        for pod in self.engine.pod_reports() {
            let waits = matches!(pod.state, PodState::Pending | PodState::Gated);
            let told = pod.reason.is_some() && !pod.message.is_empty();
            assert!(told || !waits, "waits without a reason: {pod:?}");
        }
        for gang in self.engine.gang_reports() {
            let waits = gang.status.phase == Phase::Pending;
            let told = gang.status.reason.is_some() && !gang.status.message.is_empty();
            assert!(told || !waits, "waits without a reason: {gang:?}");
        }
        self.check_complaints();
    }

    /// Whoever made a bad Queue, Topology or Node was told.
    fn check_complaints(&mut self) {
        let queues = self.engine.queue_reports();
        for (_, fact) in self.facts.values() {
            let Some(problem) = shell::problems(fact).first() else {
                continue;
            };
            let (kind, name) = match fact {
                Object::Node(facts) => ("Node", &facts.name),
                Object::Topology(facts) => ("Topology", &facts.name),
                Object::Namespace(facts) => ("Namespace", &facts.name),
                Object::Queue(facts) => {
                    let report = queues.iter().find(|queue| queue.name == facts.name);
                    let fault = report.and_then(|report| report.status.fault.as_ref());
                    assert!(fault.is_some(), "{} is Ready: {problem:?}", facts.name);
                    ("Queue", &facts.name)
                }
                _ => continue,
            };
            let told = self.said.iter().any(|(of, about, message)| {
                of == kind
                    && **about == **name
                    && (kind == "Queue" || message.contains(&*problem.field))
            });
            assert!(told, "{kind} {name}: no event says {problem:?}");
        }
    }
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
    };
    (fact.kind(), name)
}
