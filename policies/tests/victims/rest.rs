//! Decisions end, whatever comes back: from random worlds, in which every pod that is evicted is
//! made anew at once, the engine comes to rest, and leaves no gang waiting for which there is an
//! eviction plan. Gangs have priorities, quotas, surplus, min-runtimes and disruption budgets, and
//! may be moved.
//!
//! `REST_SEEDS=100000` looks at more worlds, from the seed `REST_FIRST` on:
//! `cargo test -p gpu-batch-policies --test victims rest -- --nocapture`.

use crate::case::Case;
use fastrand::Rng;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::explain::Subject;
use gpu_batch_policies::facts::{PodFacts, PodPhase, Uid};
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, node};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// How many worlds a run looks at.
const SEEDS: u64 = 20_000;
/// A world with more evictions than this for each pod does not come to rest.
const EVICTIONS_A_POD: usize = 10;
/// So long a world is followed: longer than every min-runtime, in milliseconds.
const SPAN_MS: u64 = 2 * 24 * 3_600_000;
/// A world that wakes so often never comes to rest.
const WAKES_MAX: usize = 20_000;

/// A world whose evicted pods come back.
struct Restless {
    world: World,
    /// The pods by name, as their owners make them.
    recipes: BTreeMap<String, PodFacts>,
    /// How many of the evicted pods were made anew.
    made: usize,
}

impl Restless {
    fn of(case: &Case) -> Self {
        let world = case.world_with(Settings::default());
        let pods = world.objects.values().filter_map(|object| match object {
            Object::Pod(facts) => Some((facts.name.to_string(), recipe(facts))),
            _ => None,
        });
        let recipes = pods.collect();
        Self {
            world,
            recipes,
            made: 0,
        }
    }

    /// Follows the world until nothing happens any more.
    ///
    /// # Errors
    /// Why it does not come to rest.
    fn rest(&mut self) -> Result<(), String> {
        let end_ms = self.world.now_ms + SPAN_MS;
        let evictions_max = EVICTIONS_A_POD * self.recipes.len();
        for _ in 0..WAKES_MAX {
            self.world.settle();
            if self.world.evictions > evictions_max {
                return Err(format!("evictions go on: {:#?}", self.last_evictions()));
            }
            if self.make_anew() {
                continue;
            }
            match self.world.engine.next_deadline() {
                Some(at_ms) if at_ms <= end_ms => self.world.now_ms = at_ms.max(self.world.now_ms),
                _ => return Ok(()),
            }
        }
        Err("it never stops waking".to_owned())
    }

    /// The gangs that wait in a world at rest although `explain` has an eviction plan for each.
    /// None in a world in which gangs that take room from each other make a pause.
    fn overlooked(&mut self) -> Vec<String> {
        if self.world.engine.next_deadline().is_some() {
            return Vec::new();
        }
        let waiting = self.world.engine.gang_reports().into_iter();
        let waiting = waiting.filter(|report| report.status.reason.is_some());
        let mut names: Vec<String> = waiting.map(|report| report.name.to_string()).collect();
        names.retain(|name| {
            let explained = self.world.engine.explain(Subject::Gang(name));
            let explained = explained.expect("a gang of that name");
            explained.eviction.is_some_and(|eviction| eviction.is_ok())
        });
        names
    }

    /// The last events that name evictions: of pods that were evicted for a gang, and of eviction
    /// plans that came to nothing.
    fn last_evictions(&self) -> Vec<&String> {
        let reasons = ["Reclaimed", "Preempted", "Moved", "EvictionPlanFailed"];
        let is_eviction = |told: &&String| reasons.iter().any(|reason| told.contains(reason));
        let told = self.world.told.iter().filter(is_eviction);
        let first = told.clone().count().saturating_sub(12);
        told.skip(first).collect()
    }

    /// Makes the pods anew that were evicted, under other names. Returns whether there were any.
    fn make_anew(&mut self) -> bool {
        let evicted = self.world.evicted[self.made..].to_vec();
        for name in &evicted {
            self.made += 1;
            let first = name.split('.').next().unwrap_or(name);
            let mut facts = self.recipes[first].clone();
            facts.name = format!("{first}.{}", self.made).into();
            facts.created_ms = self.world.now_ms;
            self.world.apply(facts);
        }
        !evicted.is_empty()
    }
}

/// A pod as its owner makes it.
fn recipe(facts: &PodFacts) -> PodFacts {
    PodFacts {
        uid: Uid(0),
        node: None,
        bound_ms: None,
        bound_queue: None,
        bound_pod_group: None,
        bound_minima: Vec::new(),
        phase: PodPhase::Pending,
        ..facts.clone()
    }
}

/// What came out of some worlds.
#[derive(Debug, Default)]
struct Findings {
    evictions: usize,
    /// The most evictions in one world.
    most: usize,
    restless: Vec<u64>,
    /// Worlds in which plans have brought a queue within its bound that was to give for another
    /// plan, and how many such plans were spoilt.
    spoilt: Vec<(u64, usize)>,
    /// Worlds at rest in which gangs wait that could have victims leave.
    overlooked: Vec<u64>,
}

impl Findings {
    fn look_at(&mut self, seed: u64, draw: fn(&mut Rng) -> Case) {
        let case = draw(&mut Rng::with_seed(seed));
        let mut world = Restless::of(&case);
        if let Err(why) = world.rest() {
            println!("seed {seed}: {why}\n{case:#?}");
            self.restless.push(seed);
        }
        let mut overlooked = world.overlooked();
        if !overlooked.is_empty() {
            // A search may have ended without an answer, and in a new round another one finds it.
            world.world.apply(node("idle", 0).cordoned());
            overlooked = match world.rest() {
                Ok(()) => world.overlooked(),
                Err(_) => overlooked,
            };
        }
        if !overlooked.is_empty() {
            println!("seed {seed}: {overlooked:?} could start\n{case:#?}");
            self.overlooked.push(seed);
        }
        let spoilt = world.world.told.iter();
        let spoilt = spoilt
            .filter(|told| told.contains("does not hold more than its own"))
            .count();
        if spoilt > 0 {
            println!("seed {seed}: {:#?}\n{case:#?}", world.last_evictions());
            self.spoilt.push((seed, spoilt));
        }
        let evictions = world.world.evictions;
        self.evictions += evictions;
        self.most = self.most.max(evictions);
    }

    fn add(&mut self, other: Self) {
        self.evictions += other.evictions;
        self.most = self.most.max(other.most);
        self.restless.extend(other.restless);
        self.spoilt.extend(other.spoilt);
        self.overlooked.extend(other.overlooked);
    }
}

/// It did not come to rest once: a gang that must stay in one rack was moved to another, the pod
/// that replaced its first member was placed beside those that were still to leave, and the gang
/// preempted to have them back.
#[test]
fn a_gang_that_moves_to_another_rack_comes_to_rest() {
    let mut findings = Findings::default();
    findings.look_at(60_588, Case::draw_plain_crowded);
    assert!(findings.restless.is_empty());
}

#[test]
fn decisions_end_whatever_comes_back() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().unwrap())
    };
    let first = number("REST_FIRST", 0);
    let end = first + number("REST_SEEDS", SEEDS);
    let next = AtomicU64::new(first);
    let work = || {
        let mut findings = Findings::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return findings;
            }
            findings.look_at(seed, Case::draw_crowded);
        }
    };
    let mut all = Findings::default();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            all.add(worker.join().unwrap());
        }
    });
    println!("{all:?}");
    all.restless.sort_unstable();
    assert!(all.restless.is_empty(), "worlds that do not come to rest");
    assert!(all.spoilt.is_empty(), "plans that other plans have spoilt");
    assert!(all.overlooked.is_empty(), "gangs that wait beside a plan");
    assert!(all.evictions > 0, "nobody was ever evicted");
}
