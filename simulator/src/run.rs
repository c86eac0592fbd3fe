//! One run: a scenario and faults from a seed, the engine in the middle, checks all along.

use crate::faults::Faults;
use crate::random::Random;
use crate::rest;
use crate::scenario::{self, Arrival};
use crate::world::World;
use gpu_batch_policies::command::CommandId;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Object, Outcome};
use gpu_batch_policies::facts::{Amount, PodFacts, PodPhase, Uid, UnixMs};
use gpu_batch_policies::settings::Settings;
use std::collections::BTreeMap;
use std::fmt;

/// When every run begins.
pub const START_MS: UnixMs = 1_800_000_000_000;
/// A world that is not at rest after so many steps never will be.
const STEPS_MAX: u32 = 10_000;
/// After the last fault everything must be at rest within this time.
const REST_MS: u64 = 120_000;

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Steps of the engine.
    pub steps: u32,
    /// Bindings that the API server accepted.
    pub binds: u32,
    /// Evictions that it accepted.
    pub evictions: u32,
    /// A hash of every command: the same seed gives the same.
    pub trace: u64,
}

/// What went wrong, and the seed that shows it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// The faults that it had.
    pub faults: Faults,
    /// The step in which it was noticed.
    pub step: u32,
    /// What does not hold.
    pub violations: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            faults,
            step,
            violations,
        } = self;
        write!(
            formatter,
            "seed {seed}, step {step}, {faults:?}: {}",
            violations.join("; ")
        )
    }
}

/// Runs one seed, with faults or without.
///
/// # Errors
/// The first thing that does not hold.
pub fn run(seed: u64, with_faults: bool) -> Result<Summary, Failure> {
    let mut random = Random::new(seed);
    let faults = if with_faults {
        Faults::draw(&mut random)
    } else {
        Faults::default()
    };
    Run::new(seed, random, faults).until_rest()
}

struct Run {
    seed: u64,
    random: Random,
    faults: Faults,
    world: World,
    engine: Engine,
    now_ms: UnixMs,
    arrivals: std::iter::Peekable<std::vec::IntoIter<(UnixMs, Arrival)>>,
    outcomes: Vec<(UnixMs, CommandId, Outcome)>,
    /// Events that are there at the next step whatever the time.
    events: Vec<Event>,
    step: u32,
    trace: u64,
    nodes_replaced: bool,
    rejected: u32,
}

impl Run {
    fn new(seed: u64, mut random: Random, faults: Faults) -> Self {
        let mut world = World::default();
        scenario::build(&mut world, &mut random, START_MS);
        let arrivals = scenario::arrivals(&mut world, &mut random, START_MS);
        let mut run = Self {
            seed,
            random,
            faults,
            world,
            engine: Engine::new(Settings::default()),
            now_ms: START_MS,
            arrivals: arrivals.into_iter().peekable(),
            outcomes: Vec::new(),
            events: Vec::new(),
            step: 0,
            trace: 0,
            nodes_replaced: false,
            rejected: 0,
        };
        run.restart();
        run
    }

    /// The engine begins anew: whatever it knew is gone, the world stays.
    fn restart(&mut self) {
        self.engine = Engine::new(Settings::default());
        self.outcomes.clear();
        self.events = Kind::ALL
            .into_iter()
            .map(|kind| self.world.list(kind))
            .collect();
    }

    fn until_rest(mut self) -> Result<Summary, Failure> {
        let mut quiet_since_ms = self.now_ms;
        while self.step < STEPS_MAX {
            let busy = self.one_step()?;
            if self.arrivals.peek().is_none() {
                self.faults = Faults::default();
            } else {
                quiet_since_ms = self.now_ms;
            }
            let next = self.next_time();
            if !busy && next.is_none_or(|at_ms| at_ms > quiet_since_ms + REST_MS) {
                return self.at_rest();
            }
            self.now_ms = next
                .unwrap_or(self.now_ms)
                .max(self.now_ms + u64::from(!busy));
        }
        Err(self.failure(vec!["I18: the world does not come to rest".to_owned()]))
    }

    /// Whether there is more to do at this very time.
    fn one_step(&mut self) -> Result<bool, Failure> {
        self.step += 1;
        while let Some((_, arrival)) = self.arrivals.next_if(|(at_ms, _)| *at_ms <= self.now_ms) {
            self.arrive(arrival);
        }
        self.controllers();
        if self.random.percent(self.faults.crash) {
            self.restart();
        }
        if self.random.percent(self.faults.relist) {
            let kind = *self.random.pick(&Kind::ALL);
            let list = self.world.list(kind);
            self.events.push(list);
        }
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.world.arrived(self.now_ms));
        let now_ms = self.now_ms;
        for (_, id, outcome) in self
            .outcomes
            .extract_if(.., |(at_ms, _, _)| *at_ms <= now_ms)
        {
            events.push(Event::Outcome(id, outcome));
        }
        let commands = self.engine.step(now_ms, events);
        let violations = self.engine.audit();
        if !violations.is_empty() {
            return Err(self.failure(violations));
        }
        for command in &commands {
            self.trace = hash(self.trace, &format!("{command:?}"));
            let outcome =
                self.world
                    .request(&command.action, &self.faults, &mut self.random, now_ms);
            let at_ms = now_ms + self.random.below(self.faults.late_ms + 1);
            self.outcomes.push((at_ms, command.id, outcome));
        }
        Ok(!commands.is_empty())
    }

    fn next_time(&mut self) -> Option<UnixMs> {
        let arrival = self.arrivals.peek().map(|(at_ms, _)| *at_ms);
        let outcome = self.outcomes.iter().map(|(at_ms, _, _)| *at_ms).min();
        let engine = self.engine.next_deadline();
        [arrival, outcome, self.world.next_news(), engine]
            .into_iter()
            .flatten()
            .min()
    }

    fn arrive(&mut self, arrival: Arrival) {
        let news_ms = self.now_ms + self.random.below(self.faults.late_ms + 1);
        match arrival {
            Arrival::Objects(objects) => {
                for object in objects {
                    self.world.put(object, news_ms);
                }
            }
            Arrival::PodEnds(number) => {
                if let Some(mut facts) = self.pick_pod(number, |facts| facts.node.is_some()) {
                    facts.phase = PodPhase::Succeeded;
                    self.world.put(Object::Pod(facts), news_ms);
                }
            }
            Arrival::PodReplaced(number) => {
                if let Some(facts) = self.pick_pod(number, |_| true) {
                    self.replace_pod(&facts);
                }
            }
            Arrival::NodeReplaced(number) => self.replace_node(number),
        }
    }

    fn pick_pod(&self, number: u64, which: fn(&PodFacts) -> bool) -> Option<PodFacts> {
        let pods = self
            .world
            .pods
            .values()
            .filter(|facts| !facts.phase.ended() && which(facts));
        let pods: Vec<_> = pods.collect();
        let index = usize::try_from(number.checked_rem(pods.len() as u64)?).unwrap_or(0);
        Some(pods[index].clone())
    }

    /// The owner of a pod that is gone makes a new one.
    fn replace_pod(&mut self, old: &PodFacts) {
        let news_ms = self.now_ms + self.random.below(self.faults.late_ms + 1);
        self.world.delete_pod(old.uid, news_ms);
        let mut new = old.clone();
        new.uid = self.world.new_uid();
        new.created_ms = self.now_ms;
        new.node = None;
        new.bound_ms = None;
        new.phase = PodPhase::Pending;
        new.unscheduled = None;
        new.bound_queue = None;
        new.bound_pod_group = None;
        self.world.put(Object::Pod(new), news_ms);
    }

    fn replace_node(&mut self, number: u64) {
        let names: Vec<Box<str>> = self.world.nodes.keys().cloned().collect();
        let Some(index) = number.checked_rem(names.len() as u64) else {
            return;
        };
        let name = &names[usize::try_from(index).unwrap_or(0)];
        self.nodes_replaced = true;
        let mut facts = self.world.nodes[name].clone();
        self.world.delete_node(name, self.now_ms);
        for pod in self.pods_on(name) {
            self.replace_pod(&pod);
        }
        facts.uid = self.world.new_uid();
        facts
            .allocatable
            .retain(|(resource, _)| &**resource != "nvidia.com/gpu" || number.is_multiple_of(2));
        self.world.put(Object::Node(facts), self.now_ms);
    }

    fn pods_on(&self, node: &str) -> Vec<PodFacts> {
        let here = |facts: &&PodFacts| facts.node.as_deref() == Some(node) && !facts.phase.ended();
        self.world.pods.values().filter(here).cloned().collect()
    }

    /// Pod garbage collection, kubelets and owners do their part.
    fn controllers(&mut self) {
        let bound: Vec<PodFacts> = self
            .world
            .pods
            .values()
            .filter(|facts| facts.node.is_some() && !facts.phase.ended())
            .cloned()
            .collect();
        let mut used: BTreeMap<(Box<str>, Box<str>), Amount> = BTreeMap::new();
        for facts in bound {
            let Some(node) = facts.node.clone() else {
                continue;
            };
            let room = self.world.nodes.get(&node).cloned();
            let fits = room.is_some_and(|room| {
                facts.shape.requests.iter().all(|(resource, amount)| {
                    let taken = used
                        .get(&(node.clone(), resource.clone()))
                        .copied()
                        .unwrap_or(0);
                    let has = room.allocatable.iter().find(|(name, _)| name == resource);
                    taken + amount <= has.map_or(0, |(_, amount)| *amount)
                })
            });
            if fits {
                for (resource, amount) in &facts.shape.requests {
                    *used.entry((node.clone(), resource.clone())).or_insert(0) += amount;
                }
            } else {
                self.rejected += 1;
                self.replace_pod(&facts);
            }
        }
        let evicted: Vec<PodFacts> = self.world.take_evicted();
        for facts in evicted {
            self.replace_pod(&facts);
        }
    }

    fn at_rest(mut self) -> Result<Summary, Failure> {
        let mut violations = rest::violations(&self.world, &self.engine);
        if self.rejected > 0 && !self.nodes_replaced {
            violations.push(format!(
                "I2: kubelets refused {} pods for want of room",
                self.rejected
            ));
        }
        let rebuilt = self.rebuilt();
        if rebuilt
            != self
                .engine
                .pod_reports()
                .iter()
                .map(|pod| (pod.uid, pod.node.clone()))
                .collect()
        {
            violations.push("I14: a rebuilt engine sees other places".to_owned());
        }
        if !violations.is_empty() {
            return Err(self.failure(violations));
        }
        Ok(Summary {
            steps: self.step,
            binds: self.world.binds.values().sum(),
            evictions: self.world.evictions,
            trace: self.trace,
        })
    }

    /// Where an engine that begins anew sees the pods.
    fn rebuilt(&mut self) -> BTreeMap<Uid, Option<Box<str>>> {
        let mut engine = Engine::new(Settings::default());
        let lists = Kind::ALL
            .into_iter()
            .map(|kind| self.world.list(kind))
            .collect();
        let commands = engine.step(self.now_ms, lists);
        drop(commands);
        engine
            .pod_reports()
            .iter()
            .map(|pod| (pod.uid, pod.node.clone()))
            .collect()
    }

    fn failure(&self, violations: Vec<String>) -> Failure {
        Failure {
            seed: self.seed,
            faults: self.faults,
            step: self.step,
            violations,
        }
    }
}

/// FNV-1a, continued.
fn hash(state: u64, text: &str) -> u64 {
    text.bytes()
        .fold(state ^ 0xcbf2_9ce4_8422_2325, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
