//! Small worlds with gangs that run, and one gang that waits.

use fastrand::Rng;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{DisruptionBudgetFacts, LabelSelector, PodLabels, PodPhase, Uid};
use gpu_batch_policies::settings::{Evictions, Settings};
use gpu_batch_testing::{START_MS, World, gang, node, pod, queue, topology};
use std::ops::Range;

/// A world. Amounts of GPUs and of whole CPUs stand together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Case {
    pub(crate) nodes: Vec<Node>,
    pub(crate) queues: Vec<Queue>,
    /// The last gang waits, all others run; in crowded worlds any may wait.
    pub(crate) gangs: Vec<Gang>,
}

pub(crate) type Amounts = [u64; 2];

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) has: Amounts,
    pub(crate) rack: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) parent: Option<usize>,
    /// Quota and limit of GPUs.
    pub(crate) gpus: Option<(u64, Option<u64>)>,
    /// Quota of CPUs; `None`: no entry.
    pub(crate) cpus: Option<u64>,
    pub(crate) weight: u16,
    pub(crate) preempt_min_s: u64,
    pub(crate) reclaim_min_s: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Gang {
    pub(crate) queue: usize,
    pub(crate) priority: i32,
    pub(crate) minimum: usize,
    pub(crate) preemptible: bool,
    pub(crate) has_controller: bool,
    /// What one pod asks for.
    pub(crate) asks: Amounts,
    /// The node of each pod, and for how many seconds it has run; of the gang that waits, so many
    /// pods without a node.
    pub(crate) at: Vec<(usize, u64)>,
    pub(crate) waiting: usize,
    pub(crate) in_one_rack: bool,
    /// `preemptionPolicy: Never`.
    pub(crate) never: bool,
    /// How many evictions a disruption budget for its pods allows.
    pub(crate) budget: Option<u32>,
}

impl Case {
    pub(crate) fn claimant(&self) -> &Gang {
        self.gangs.last().unwrap()
    }

    /// Draws a world in which gangs run wherever there is room.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self::draw_with(rng, 1..6, 2..9)
    }

    /// Draws a world with as many nodes and gangs as brute force can bear, which is seldom.
    pub(crate) fn draw_large(rng: &mut Rng) -> Self {
        Self::draw_with(rng, 6..9, 8..13)
    }

    fn draw_with(rng: &mut Rng, nodes: Range<usize>, gangs: Range<usize>) -> Self {
        let (mut case, leaves, size) = Self::draw_cluster(rng, nodes);
        let mut free: Vec<Amounts> = case.nodes.iter().map(|node| node.has).collect();
        for _ in 0..rng.usize(gangs) {
            let gang = draw_gang(rng, &leaves, size);
            if let Ok(mut gang) = case.run(rng, gang, &mut free) {
                gang.waiting = 0;
                case.gangs.push(gang);
            }
        }
        let mut claimant = draw_gang(rng, &leaves, size);
        claimant.minimum = rng.usize(1..4);
        claimant.waiting = claimant.minimum;
        claimant.in_one_rack = rng.u8(0..4) == 0;
        claimant.never = rng.u8(0..20) == 0;
        claimant.preemptible = rng.u8(0..8) > 0;
        case.gangs.push(claimant);
        case
    }

    /// Draws a world in which all gangs that find no room wait for it, and so do pods of gangs that
    /// run without them.
    pub(crate) fn draw_crowded(rng: &mut Rng) -> Self {
        let (mut case, leaves, size) = Self::draw_cluster(rng, 1..6);
        let mut free: Vec<Amounts> = case.nodes.iter().map(|node| node.has).collect();
        for _ in 0..rng.usize(4..13) {
            let mut gang = draw_gang(rng, &leaves, size);
            gang.in_one_rack = rng.u8(0..8) == 0;
            let waits = rng.u8(0..4) == 0 || gang.in_one_rack;
            let gang = if waits {
                gang
            } else {
                case.run(rng, gang, &mut free).unwrap_or_else(|gang| gang)
            };
            case.gangs.push(gang);
        }
        case
    }

    /// Draws nodes and queues. Returns the leaves, too, and the GPUs of a large node.
    fn draw_cluster(rng: &mut Rng, nodes: Range<usize>) -> (Self, Vec<usize>, u64) {
        let size = rng.u64(2..9);
        let racks = rng.usize(1..4);
        let cpus = if rng.u8(0..4) == 0 { 2 * size } else { 96 };
        let nodes = (0..rng.usize(nodes)).map(|_| Node {
            has: [rng.choice([size, size, size / 2 + 1]).unwrap(), cpus],
            rack: rng.usize(0..racks),
        });
        let nodes: Vec<Node> = nodes.collect();
        let total: u64 = nodes.iter().map(|node| node.has[0]).sum();
        let queues = draw_queues(rng, total);
        let leaves: Vec<usize> = (0..queues.len())
            .filter(|queue| !queues.iter().any(|other| other.parent == Some(*queue)))
            .collect();
        let case = Self {
            nodes,
            queues,
            gangs: Vec::new(),
        };
        (case, leaves, size)
    }

    /// Lets a gang run where there is room.
    ///
    /// # Errors
    /// The gang as it was: there is no room for its minimum.
    fn run(&self, rng: &mut Rng, gang: Gang, free: &mut [Amounts]) -> Result<Gang, Gang> {
        let waiting = gang.clone();
        let mut gang = gang;
        let before = free.to_vec();
        let age_s = rng.u64(1..200_000);
        for number in 0..gang.waiting {
            let fits = |node: &usize| (0..2).all(|r| free[*node][r] >= gang.asks[r]);
            let nodes: Vec<usize> = (0..free.len()).filter(fits).collect();
            let Some(node) = rng.choice(nodes) else {
                continue;
            };
            for (free, asks) in free[node].iter_mut().zip(gang.asks) {
                *free -= asks;
            }
            // No two pods are equally old: the newest are surplus.
            gang.at.push((node, age_s - (number as u64).min(age_s - 1)));
        }
        let limited = self.exceeds_limit(&gang);
        if gang.at.len() < gang.minimum || limited {
            free.copy_from_slice(&before);
            return Err(waiting);
        }
        gang.waiting -= gang.at.len();
        Ok(gang)
    }

    fn exceeds_limit(&self, gang: &Gang) -> bool {
        let asked = gang.at.len() as u64 * gang.asks[0];
        self.path(gang.queue).into_iter().any(|queue| {
            let limit = self.queues[queue].gpus.and_then(|(_, limit)| limit);
            let below = |other: &&Gang| self.path(other.queue).contains(&queue);
            let held = self.gangs.iter().filter(below);
            let held: u64 = held.map(|gang| gang.at.len() as u64 * gang.asks[0]).sum();
            limit.is_some_and(|limit| held + asked > limit)
        })
    }

    /// A queue and those above it.
    pub(crate) fn path(&self, queue: usize) -> Vec<usize> {
        let parent = |queue: &usize| self.queues[*queue].parent;
        std::iter::successors(Some(queue), parent).collect()
    }

    /// The world as the engine sees it, at rest. Nobody is evicted: what would be done is compared.
    pub(crate) fn world(&self) -> World {
        let defaults = Settings::default();
        let mut world = self.world_with(Settings {
            evictions: Evictions {
                in_flight: 0,
                ..defaults.evictions
            },
            ..defaults
        });
        world.settle();
        world
    }

    /// The world under these settings, of which the engine has not heard.
    pub(crate) fn world_with(&self, settings: Settings) -> World {
        let mut world = World::with(settings);
        world.apply(topology("default", "rack"));
        for (number, node_of) in self.nodes.iter().enumerate() {
            let sketch = node(&format!("n{number}"), node_of.has[0]);
            world.apply(
                sketch
                    .has("cpu", node_of.has[1] * 1_000)
                    .label("rack", &format!("r{}", node_of.rack)),
            );
        }
        for (number, one) in self.queues.iter().enumerate() {
            let mut sketch = queue(&format!("q{number}"));
            if let Some(parent) = one.parent {
                sketch = sketch.parent(&format!("q{parent}"));
            }
            if let Some((quota, limit)) = one.gpus {
                sketch = sketch.entry("nvidia.com/gpu", None, (quota, limit), one.weight);
            }
            if let Some(quota) = one.cpus {
                sketch = sketch.entry("cpu", None, (quota * 1_000, None), 1);
            }
            world.apply(sketch.with(|facts| {
                facts.preempt_min_runtime_ms = Some(one.preempt_min_s * 1_000);
                facts.reclaim_min_runtime_ms = Some(one.reclaim_min_s * 1_000);
            }));
        }
        for (number, one) in self.gangs.iter().enumerate() {
            self.apply(&mut world, number, one);
        }
        world
    }

    fn apply(&self, world: &mut World, number: usize, one: &Gang) {
        let name = format!("g{number}");
        let minimum = u32::try_from(one.minimum).unwrap();
        let mut sketch = gang(&name, minimum).queue(&format!("q{}", one.queue));
        if one.in_one_rack {
            sketch = sketch.required("rack");
        }
        world.apply(sketch.with(|group| {
            group.priority = Some(one.priority);
            group.preemptible = Some(one.preemptible);
        }));
        if let Some(allowed) = one.budget {
            world.apply(Object::DisruptionBudget(DisruptionBudgetFacts {
                uid: Uid(6 << 64 | number as u128),
                namespace: "default".into(),
                name: name.as_str().into(),
                selector: Some(LabelSelector {
                    match_labels: vec![("app".into(), name.as_str().into())],
                    match_expressions: Vec::new(),
                }),
                allowed,
                problems: Vec::new(),
            }));
        }
        for index in 0..one.at.len() + one.waiting {
            let sketch = pod(&format!("{name}-{index}"), one.asks[0]).of(&name);
            let sketch = sketch.shape(|shape| {
                let cpu = shape.requests.iter_mut().find(|(name, _)| &**name == "cpu");
                cpu.unwrap().1 = one.asks[1] * 1_000;
            });
            let mut sketch = sketch.with(|pod| {
                pod.never_preempts = one.never;
                let labels = vec![("app".into(), name.as_str().into())];
                pod.labels = PodLabels::new(&labels, &pod.name, None);
                pod.phase = match index < one.at.len() {
                    true => PodPhase::Running,
                    false => PodPhase::Pending,
                };
            });
            if one.has_controller {
                sketch = sketch.owned_by(&name);
            }
            if let Some((node, age_s)) = one.at.get(index) {
                let bound_ms = START_MS - age_s * 1_000;
                sketch = sketch
                    .on(&format!("n{node}"))
                    .with(|pod| pod.bound_ms = Some(bound_ms));
            }
            world.apply(sketch);
        }
    }
}

fn draw_queues(rng: &mut Rng, total: u64) -> Vec<Queue> {
    let governs_cpus = rng.u8(0..4) == 0;
    let count = rng.usize(1..6);
    let mut queues: Vec<Queue> = Vec::new();
    for number in 0..count {
        let inner = number > 1 && rng.u8(0..3) == 0;
        let parent = inner.then(|| rng.usize(0..number.min(2)));
        let quota = rng.u64(0..=total / 2 + 1);
        let limit = (rng.u8(0..5) == 0).then(|| rng.u64(1..=total));
        queues.push(Queue {
            parent,
            gpus: (rng.u8(0..5) > 0).then_some((quota.min(limit.unwrap_or(quota)), limit)),
            cpus: (governs_cpus && rng.bool()).then(|| rng.u64(0..20)),
            weight: rng.choice([1, 1, 1, 2, 0]).unwrap(),
            preempt_min_s: rng.choice([0, 0, 0, 50_000]).unwrap(),
            reclaim_min_s: rng.choice([0, 0, 0, 80_000]).unwrap(),
        });
    }
    queues
}

fn draw_gang(rng: &mut Rng, leaves: &[usize], size: u64) -> Gang {
    let minimum = rng.choice([1, 1, 1, 2, 2, 3]).unwrap();
    let gpus = rng.choice([0, 1, 1, 2, size / 2, size]).unwrap();
    Gang {
        queue: rng.choice(leaves.iter().copied()).unwrap(),
        priority: rng.i32(0..3),
        minimum,
        preemptible: rng.u8(0..8) > 0,
        has_controller: rng.u8(0..5) > 0,
        asks: [gpus, rng.choice([1, 1, 2, 4]).unwrap()],
        at: Vec::new(),
        waiting: minimum + rng.choice([0, 0, 0, 1, 2]).unwrap(),
        in_one_rack: false,
        never: false,
        budget: (rng.u8(0..6) == 0).then(|| rng.u32(0..3)),
    }
}
