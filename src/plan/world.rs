//! A world in which every command succeeds at once.

use crate::views::gangs::Gangs;
use crate::views::plan::{EvictionView, Plan};
use gpu_batch_policies::command::{Action, Bind, Command, StatusPatch};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Object, ObjectKey, Outcome};
use gpu_batch_policies::explain::{Explanation, NotFound, Subject};
use gpu_batch_policies::facts::{
    CardPart, DisruptionBudgetFacts, PodFacts, PodPhase, QueueFacts, Uid, UnixMs,
};
use gpu_batch_policies::settings::{Evictions, InFlight, Leadership, Settings};
use gpu_batch_simulator::prompt_storage::PromptStorage;
use std::collections::{BTreeMap, BTreeSet};

/// What happens to a pod after its eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Evicted {
    /// It comes back Pending under the same name, as its controller would make it
    Recreate,
    /// It is gone
    Remove,
}

/// How the world goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// What the engine decides by. Leadership and the bounds of requests are not used here.
    pub settings: Settings,
    /// The time of the first cycle in Unix milliseconds; each further cycle is 1 s later.
    pub now_ms: UnixMs,
    /// How many cycles there are, at least 1.
    pub cycles: u32,
    /// What happens to evicted pods.
    pub evicted: Evicted,
}

/// The engine did not come to rest, which is a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the engine did not come to rest in cycle {cycle}; please report this with the files")]
pub(crate) struct NotQuiet {
    /// The cycle in which it happened.
    pub cycle: u32,
}

/// How many steps a cycle may take. A cycle with 140,000 pods takes some hundreds.
const STEPS_MAX: u32 = 100_000;
/// The length of a cycle.
const CYCLE_MS: UnixMs = 1_000;
/// Requests need no bound: there is no API server that must be spared.
const UNBOUNDED: u32 = u32::MAX;

/// Lets the engine plan: each cycle hands in all changes as one batch and steps until the engine is
/// quiet. Room of evicted and leaving pods is free in the next cycle; between cycles bound pods
/// begin to run.
///
/// # Errors
/// [`NotQuiet`] if a cycle does not end.
pub(crate) fn run(objects: Vec<Object>, options: Options) -> Result<Plan, NotQuiet> {
    let cycles = options.cycles.max(1);
    let World {
        mut engine,
        evicted,
        evictions,
        queues,
        entries,
        ..
    } = World::after(objects, options)?;
    Ok(Plan::of(
        cycles,
        (engine.pod_reports(), &entries),
        engine.gang_reports(),
        engine.queue_reports(),
        &evicted,
        evictions,
        &queues,
    ))
}

/// Why a gang, or the gang of a pod, waits after the last cycle.
///
/// # Errors
/// [`NotQuiet`] if a cycle does not end; in the inner result [`NotFound`] if there is no such gang
/// or pod.
pub(crate) fn explain(
    objects: Vec<Object>,
    options: Options,
    subject: Subject<'_>,
) -> Result<Result<Explanation, NotFound>, NotQuiet> {
    let evictions = options.settings.evictions;
    let mut world = World::after(objects, without_evictions(options))?;
    world.engine.set_evictions(evictions);
    Ok(world.engine.explain(subject))
}

/// All gangs after the last cycle, and the time of that cycle.
///
/// # Errors
/// [`NotQuiet`] if a cycle does not end.
pub(crate) fn gangs(objects: Vec<Object>, options: Options) -> Result<Gangs, NotQuiet> {
    let world = World::after(objects, without_evictions(options))?;
    Ok(Gangs::of(&world.engine.gang_reports(), world.now_ms))
}

/// Whose room a gang could take is told, and taken in a plan only.
fn without_evictions(mut options: Options) -> Options {
    options.settings.evictions.in_flight = 0;
    options
}

struct World {
    engine: Engine,
    now_ms: UnixMs,
    after_eviction: Evicted,
    pods: BTreeMap<Uid, PodFacts>,
    queues: BTreeMap<Box<str>, QueueFacts>,
    budgets: Vec<DisruptionBudgetFacts>,
    /// A provisioner makes volumes at once, and claims are bound at once to volumes that exist.
    storage: PromptStorage,
    /// The pods that were evicted in this cycle.
    evicted: BTreeSet<Uid>,
    /// The evictions of all cycles, in their order.
    evictions: Vec<EvictionView>,
    /// What the containers of pods got that were bound to cards, init containers first.
    entries: BTreeMap<Uid, Vec<Vec<CardPart>>>,
    /// The present cycle, from 1.
    cycle: u32,
    /// How many evicted pods came back.
    recreated: u128,
}

impl World {
    /// The world after all cycles.
    fn after(objects: Vec<Object>, options: Options) -> Result<Self, NotQuiet> {
        let cycles = options.cycles.max(1);
        let mut world = Self::new(&objects, options);
        let mut events = Event::lists(objects);
        for cycle in 1..=cycles {
            world.settle(events).ok_or(NotQuiet { cycle })?;
            while world.engine.search_on() {
                let quiet = world.settle(Vec::from([Event::Continue]));
                quiet.ok_or(NotQuiet { cycle })?;
            }
            if cycle == cycles {
                break;
            }
            events = world.pass();
        }
        // The messages of waiting gangs are made anew, so that they are true at the end.
        world.engine.review();
        let quiet = world.settle(Vec::from([Event::Continue]));
        quiet.ok_or(NotQuiet { cycle: cycles })?;
        Ok(world)
    }

    fn new(objects: &[Object], options: Options) -> Self {
        let settings = Settings {
            leadership: Leadership::Assumed,
            in_flight: InFlight {
                actions: UNBOUNDED,
                statuses: UNBOUNDED,
                announcements: UNBOUNDED,
            },
            // Time stands still within a cycle, so there is no pace.
            evictions: Evictions {
                in_flight: options
                    .settings
                    .evictions
                    .in_flight
                    .saturating_mul(UNBOUNDED),
                per_second: UNBOUNDED,
            },
            ..options.settings
        };
        let pods = objects.iter().filter_map(|object| match object {
            Object::Pod(pod) => Some((pod.uid, pod.clone())),
            _ => None,
        });
        let queues = objects.iter().filter_map(|object| match object {
            Object::Queue(queue) => Some((queue.name.clone(), queue.clone())),
            _ => None,
        });
        let budgets = objects.iter().filter_map(|object| match object {
            Object::DisruptionBudget(budget) => Some(budget.clone()),
            _ => None,
        });
        let mut storage = PromptStorage::default();
        objects.iter().for_each(|object| storage.note(object));
        Self {
            budgets: budgets.collect(),
            storage,
            engine: Engine::new(settings),
            now_ms: options.now_ms,
            after_eviction: options.evicted,
            pods: pods.collect(),
            queues: queues.collect(),
            evicted: BTreeSet::new(),
            evictions: Vec::new(),
            entries: BTreeMap::new(),
            cycle: 1,
            recreated: 0,
        }
    }

    /// Steps until the engine has nothing left to do; `None` if that takes more than [`STEPS_MAX`]
    /// steps.
    fn settle(&mut self, mut events: Vec<Event>) -> Option<()> {
        for _ in 0..STEPS_MAX {
            let commands = self.engine.step(self.now_ms, events);
            events = Vec::new();
            for command in commands {
                self.carry_out(command, &mut events);
            }
            if events.is_empty() {
                if self.engine.is_idle() {
                    return Some(());
                }
                events.push(Event::Continue);
            }
        }
        None
    }

    fn carry_out(&mut self, command: Command, events: &mut Vec<Event>) {
        match command.action {
            Action::Bind(bind) => self.bind(bind),
            Action::Evict(evict) => {
                self.evicted.insert(evict.pod.uid);
                self.use_up_budgets(evict.pod.uid, events);
                if let Some(pod) = self.pods.get_mut(&evict.pod.uid) {
                    // In the next cycle it is gone.
                    let gone_ms = self.now_ms.saturating_add(CYCLE_MS);
                    pod.deletion_ms.get_or_insert(gone_ms);
                    events.push(Object::Pod(pod.clone()).into());
                }
                self.evictions.push(EvictionView::of(self.cycle, evict));
            }
            Action::PatchStatus(StatusPatch::Nominated { pod, node }) => {
                if let Some(pod) = self.pods.get_mut(&pod.uid) {
                    pod.nominated = node;
                    events.push(Object::Pod(pod.clone()).into());
                }
            }
            // kube-scheduler takes the node at once.
            Action::Lift(lift) => events.push(Event::BindAsked {
                pod: lift.pod.uid,
                node: lift.node,
            }),
            Action::SelectNode(select) => {
                let changed = self.storage.select_node(select).into_iter().flatten();
                events.extend(changed.map(Event::from));
            }
            Action::KeepVolume(keep) => {
                let changed = self.storage.keep_volume(keep).into_iter().flatten();
                events.extend(changed.map(Event::from));
            }
            // No device plugin reads the lock here, so nobody else can have it.
            Action::LockCards(_)
            | Action::UnlockCards(_)
            | Action::PatchStatus(_)
            | Action::Publish(_)
            | Action::Observe(_)
            | Action::Lease(_) => {}
        }
        events.push(Event::Outcome(command.id, Outcome::Done));
    }

    /// Takes one eviction off the disruption budgets of a pod, as the API server does. No
    /// controller gives it back: whether the pod that comes back is healthy is not known here.
    fn use_up_budgets(&mut self, pod: Uid, events: &mut Vec<Event>) {
        let running = |pod: &&PodFacts| pod.phase == PodPhase::Running && pod.deletion_ms.is_none();
        let Some(pod) = self.pods.get(&pod).filter(running) else {
            return;
        };
        for budget in self.budgets.iter_mut().filter(|budget| budget.selects(pod)) {
            budget.allowed = budget.allowed.saturating_sub(1);
            events.push(Object::DisruptionBudget(budget.clone()).into());
        }
    }

    fn bind(&mut self, bind: Bind) {
        if let Some(assignment) = bind.assignment {
            self.entries.insert(bind.pod.uid, assignment.entries);
        }
        if let Some(pod) = self.pods.get_mut(&bind.pod.uid) {
            pod.node = Some(bind.node);
            pod.nominated = None;
            pod.bound_ms = Some(self.now_ms);
            pod.bound_queue = Some(bind.queue);
            pod.bound_pod_group = bind.pod_group;
            pod.bound_minima = bind.minima;
        }
    }

    /// From one cycle to the next: leaving pods are gone, bound pods run.
    fn pass(&mut self) -> Vec<Event> {
        self.cycle += 1;
        self.now_ms = self.now_ms.saturating_add(CYCLE_MS);
        let now_ms = self.now_ms;
        let evicted = std::mem::take(&mut self.evicted);
        let mut events = Vec::new();
        for (uid, mut pod) in std::mem::take(&mut self.pods) {
            if pod.deletion_ms.is_some() {
                events.push(Event::Deleted(ObjectKey::Pod(uid)));
                if !evicted.contains(&uid) || self.after_eviction == Evicted::Remove {
                    continue;
                }
                self.recreated += 1;
                pod = reborn(pod, Uid(u128::MAX - self.recreated), now_ms);
                events.push(Object::Pod(pod.clone()).into());
            } else if pod.node.is_some() && pod.phase == PodPhase::Pending {
                pod.phase = PodPhase::Running;
                pod.started_ms.get_or_insert(now_ms);
                events.push(Object::Pod(pod.clone()).into());
            }
            self.pods.insert(pod.uid, pod);
        }
        events
    }
}

/// The pod that a controller makes in the place of an evicted one, with the same name.
fn reborn(pod: PodFacts, uid: Uid, now_ms: UnixMs) -> PodFacts {
    PodFacts {
        uid,
        node: None,
        planned_node: None,
        nominated: None,
        cards: Vec::new(),
        phase: PodPhase::Pending,
        deletion_ms: None,
        created_ms: now_ms,
        bound_ms: None,
        started_ms: None,
        bound_queue: None,
        bound_pod_group: None,
        bound_minima: Vec::new(),
        unscheduled: None,
        ..pod
    }
}

#[cfg(test)]
mod tests;
