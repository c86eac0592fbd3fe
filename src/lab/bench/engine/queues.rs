//! Many queues and very many pending gangs in a full cluster: one arrival, one end, one queue
//! change.

use super::facts::{group_name, node, pod, pod_group, queue, running, shape};
use super::session::{Session, done};
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Row, milliseconds, quantile};
use gpu_batch_policies::command::{Action, Command};
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{
    CARD, NodeFacts, PodFacts, PodPhase, PodShape, QueueFacts, QueueResource,
};
use std::sync::Arc;
use std::time::Duration;

/// Leaves below each of the 125 queues of the third level: 250, 500 and 1,000 leaves, 4 levels
/// deep.
const LEAVES: [usize; 3] = [2, 4, 8];
/// Children of the root, and of each queue of the first two levels.
const BRANCHES: usize = 5;
/// Gangs that wait in each leaf.
const GANGS_PER_LEAF: usize = 50;
const NODES: usize = 500;
const GPUS: usize = 8;
/// How far the clock advances between two events.
const PAUSE_MS: u64 = 2;
/// Events of each sort.
const EVENTS: usize = 1_000;

pub(super) fn measure() -> Vec<Row> {
    over_sizes(LEAVES, at_size)
}

fn at_size(leaves: usize) -> Vec<Row> {
    let mut world = World::new(leaves);
    let scenario = format!(
        "{} leaves of depth 4, {} pending gangs",
        world.leaves.len(),
        world.leaves.len() * GANGS_PER_LEAF
    );
    let mut session = Session::new(128, world.objects());
    let planned = session.plan(Session::listed());
    world.carry_out(&planned.commands);
    let mut commands = planned.commands;
    while !commands.is_empty() {
        let stepped = session.plan(done(&commands));
        world.carry_out(&stepped.commands);
        commands = stepped.commands;
    }
    let mut slices = Vec::new();
    let mut rows = Vec::new();
    for (median, p99, event) in [
        (
            "one arrival, median",
            "one arrival, p99",
            World::arrival as fn(&mut World) -> Event,
        ),
        ("one end, median", "one end, p99", World::end),
        (
            "one queue change, median",
            "one queue change, p99",
            World::queue_change,
        ),
    ] {
        let mut steps = Vec::new();
        for _ in 0..EVENTS {
            session.now_ms += PAUSE_MS;
            let stepped = session.step(vec![event(&mut world)]);
            steps.push(milliseconds(stepped.took));
            settle(&mut session, &mut world, stepped.commands, &mut slices);
        }
        for (name, part) in [(median, 0.5), (p99, 0.99)] {
            let value = quantile(&mut steps, part) * 1e3;
            rows.push(Row::new(name, scenario.clone(), value, "us"));
        }
    }
    let longest = quantile(&mut slices, 1.0) * 1e3;
    rows.push(Row::new("one slice, longest", scenario, longest, "us"));
    rows
}

/// Answers all commands until the engine has nothing left to do.
fn settle(session: &mut Session, world: &mut World, commands: Vec<Command>, slices: &mut Vec<f64>) {
    let mut outcomes = done(&commands);
    world.carry_out(&commands);
    while session.is_unfinished() || !outcomes.is_empty() {
        let stepped = session.step(outcomes);
        if stepped.took > Duration::ZERO {
            slices.push(milliseconds(stepped.took));
        }
        world.carry_out(&stepped.commands);
        outcomes = done(&stepped.commands);
    }
}

/// A full cluster. Every second waiting gang is a single pod.
struct World {
    nodes: Vec<NodeFacts>,
    inner: Vec<QueueFacts>,
    leaves: Vec<QueueFacts>,
    running: Vec<PodFacts>,
    shapes: Vec<Arc<PodShape>>,
    created: usize,
    changes: usize,
    random: fastrand::Rng,
}

impl World {
    fn new(leaves: usize) -> Self {
        let mut inner: Vec<QueueFacts> = Vec::new();
        let mut parents: Vec<Option<Box<str>>> = vec![None];
        for level in 0..4 {
            let branches = if level < 3 { BRANCHES } else { leaves };
            let mut next = Vec::new();
            for parent in &parents {
                for _ in 0..branches {
                    let mut facts = team(inner.len());
                    facts.parent.clone_from(parent);
                    next.push(Some(facts.name.clone()));
                    inner.push(facts);
                }
            }
            parents = next;
        }
        let leaves = inner.split_off(inner.len() - parents.len());
        let shapes: Vec<_> = [1, 2, 4, 8]
            .map(|gpus| Arc::new(shape(4_000 * gpus, 32 * gpus, gpus)))
            .into();
        Self {
            nodes: (0..NODES)
                .map(|number| node(number, GPUS as u64, [0; 3]))
                .collect(),
            inner,
            leaves,
            running: Vec::new(),
            shapes,
            created: 10_000_000,
            changes: 0,
            random: fastrand::Rng::with_seed(7),
        }
    }

    /// All objects that exist at the beginning; so many pods wait that they fill the cluster at
    /// once.
    fn objects(&mut self) -> Vec<Object> {
        let queues = self.inner.iter().chain(&self.leaves).cloned();
        let mut objects: Vec<Object> = queues.map(Object::Queue).collect();
        objects.extend(self.nodes.iter().cloned().map(Object::Node));
        for gang in 0..self.leaves.len() * GANGS_PER_LEAF {
            let leaf = self.leaves[gang % self.leaves.len()].name.clone();
            if (gang / self.leaves.len()).is_multiple_of(2) {
                let single = self.waiting(leaf);
                objects.push(Object::Pod(single));
                continue;
            }
            let mut group = pod_group(gang, 2, None);
            group.queue = Some(leaf.clone());
            objects.push(Object::PodGroup(group));
            for _ in 0..2 {
                let mut member = self.waiting(leaf.clone());
                member.pod_group = Some(group_name(gang));
                objects.push(Object::Pod(member));
            }
        }
        objects
    }

    fn waiting(&mut self, queue: Box<str>) -> PodFacts {
        self.created += 1;
        let mut pod = pod(self.created, self.shape_of(self.created));
        pod.queue = Some(queue);
        pod
    }

    fn shape_of(&self, pod: usize) -> &Arc<PodShape> {
        &self.shapes[pod * 7 % 11 % self.shapes.len()]
    }

    fn arrival(&mut self) -> Event {
        let leaf = self.random.usize(0..self.leaves.len());
        let pod = self.waiting(self.leaves[leaf].name.clone());
        Object::Pod(pod).into()
    }

    /// A pod ends, so that waiting ones may start.
    fn end(&mut self) -> Event {
        let number = self.random.usize(0..self.running.len());
        let mut ended = self.running.swap_remove(number);
        ended.phase = PodPhase::Succeeded;
        Object::Pod(ended).into()
    }

    /// A leaf gets another weight or another quota, or is created, or is deleted.
    fn queue_change(&mut self) -> Event {
        self.changes += 1;
        let number = self.random.usize(0..self.leaves.len());
        let leaf = &mut self.leaves[number];
        match self.changes % 4 {
            0 => leaf.resources[0].weight = 1 + self.random.u16(0..9),
            1 => leaf.resources[0].quota = self.random.u64(0..9) * CARD,
            2 => {
                let mut new = team(1_000_000);
                new.parent.clone_from(&leaf.parent);
                return Object::Queue(new).into();
            }
            _ => return Event::Deleted(ObjectKey::Queue(team(1_000_000).name)),
        }
        leaf.generation += 1;
        Object::Queue(leaf.clone()).into()
    }

    /// Lets pods run for which there is a bind.
    fn carry_out(&mut self, commands: &[Command]) {
        for command in commands {
            let Action::Bind(bind) = &command.action else {
                continue;
            };
            let number = usize::try_from(bind.pod.uid.0 & u128::from(u64::MAX)).unwrap_or(0);
            let mut pod = pod(number, self.shape_of(number));
            pod.pod_group = bind.pod_group.clone();
            pod.queue = Some(bind.queue.clone());
            let on = self.nodes.iter().find(|node| node.name == bind.node);
            if let Some(node) = on {
                self.running.push(running(pod, node));
            }
        }
    }
}

/// A queue with a quota of 2 GPUs and 16 CPUs.
fn team(number: usize) -> QueueFacts {
    let entry = |name: &str, quota| QueueResource {
        name: name.into(),
        product: None,
        quota,
        limit: None,
        weight: 1,
    };
    let mut facts = queue(number);
    facts.resources = vec![entry("nvidia.com/gpu", 2 * CARD), entry("cpu", 16_000)];
    facts
}
