//! Small worlds with gangs that run, and one gang that waits.
//!
//! Some worlds have more: two GPU models with entries for them, a host port that some pods want,
//! gangs of two roles. What these add is drawn beside all else, so that a world without them is the
//! world of its seed.

use fastrand::Rng;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    DisruptionBudgetFacts, HostPort, LabelSelector, PodFacts, PodLabels, PodPhase, Protocol, Uid,
};
use gpu_batch_policies::settings::{Evictions, Settings};
use gpu_batch_testing::{START_MS, Sketch, World, gang, leaf, node, pod, queue, topology};
use std::ops::Range;

/// A world. Amounts of GPUs, of whole CPUs and of the host port stand together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Case {
    pub(crate) nodes: Vec<Node>,
    pub(crate) queues: Vec<Queue>,
    /// The last gang waits, all others run; in crowded worlds any may wait.
    pub(crate) gangs: Vec<Gang>,
}

pub(crate) type Amounts = [u64; 3];

/// Where GPUs stand among amounts.
const GPUS: usize = 0;
/// Where the host port stands among amounts: each node has it once.
const PORT: usize = 2;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) has: Amounts,
    pub(crate) rack: usize,
    /// The model of its GPUs; `None`: its label names none.
    pub(crate) model: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) parent: Option<usize>,
    /// Quota and limit of GPUs.
    pub(crate) gpus: Option<(u64, Option<u64>)>,
    /// Quota of CPUs; `None`: no entry.
    pub(crate) cpus: Option<u64>,
    /// Quotas of the GPU models; `None`: no entry.
    pub(crate) models: [Option<u64>; 2],
    pub(crate) weight: u16,
    pub(crate) preempt_min_s: u64,
    pub(crate) reclaim_min_s: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Gang {
    pub(crate) queue: usize,
    pub(crate) priority: i32,
    pub(crate) preemptible: bool,
    pub(crate) has_controller: bool,
    /// One role, or two, which are sub-groups.
    pub(crate) roles: Vec<Role>,
    /// The gang needs one of its roles only.
    pub(crate) needs_one_role: bool,
    /// The GPU model that its pods name.
    pub(crate) model: Option<usize>,
    /// The pods that run, the oldest first.
    pub(crate) at: Vec<At>,
    pub(crate) in_one_rack: bool,
    /// `preemptionPolicy: Never`.
    pub(crate) never: bool,
    /// How many evictions a disruption budget for its pods allows.
    pub(crate) budget: Option<u32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub(crate) minimum: usize,
    /// What one pod asks for.
    pub(crate) asks: Amounts,
    /// How many pods have no node.
    pub(crate) waiting: usize,
}

/// A pod that runs.
#[derive(Debug, Clone)]
pub(crate) struct At {
    pub(crate) node: usize,
    /// For how many seconds it has run.
    pub(crate) age_s: u64,
    pub(crate) role: usize,
}

impl Gang {
    /// What one of its running pods holds.
    pub(crate) fn asks_of(&self, pod: usize) -> Amounts {
        self.roles[self.at[pod].role].asks
    }

    /// The pods that run without which it would be below its minimum, if the newest leave first.
    pub(crate) fn core(&self) -> Vec<usize> {
        let mut stays: Vec<usize> = (0..self.at.len()).collect();
        for pod in (0..self.at.len()).rev() {
            let place = stays.iter().position(|other| *other == pod).unwrap();
            stays.remove(place);
            if !self.has_minimum(&stays) {
                stays.insert(place, pod);
            }
        }
        stays
    }

    /// What leaves together of the other pods that run: of a role of which nothing is needed the
    /// minimum, which takes the others of the role along. The places of those come last.
    pub(crate) fn surplus(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let core = self.core();
        let mut surplus = Vec::new();
        for (number, role) in self.roles.iter().enumerate() {
            let pods: Vec<usize> = self.of_role(number).collect();
            let is_needed = pods.iter().any(|pod| core.contains(pod));
            let together = match is_needed || pods.len() < role.minimum {
                true => &[],
                false => &pods[..role.minimum],
            };
            let others = pods.iter().filter(|pod| !together.contains(pod));
            let others = others.filter(|pod| !core.contains(pod)).copied();
            let mut followers = Vec::new();
            for pod in others {
                followers.extend((!together.is_empty()).then_some(surplus.len()));
                surplus.push((vec![pod], Vec::new()));
            }
            if !together.is_empty() {
                surplus.push((together.to_vec(), followers));
            }
        }
        surplus
    }

    fn of_role(&self, role: usize) -> impl Iterator<Item = usize> {
        (0..self.at.len()).filter(move |pod| self.at[*pod].role == role)
    }

    fn has_minimum(&self, pods: &[usize]) -> bool {
        let is_met = |role: &usize| {
            let held = pods.iter().filter(|pod| self.at[**pod].role == *role);
            held.count() >= self.roles[*role].minimum
        };
        let met = (0..self.roles.len()).filter(is_met).count();
        met >= if self.needs_one_role {
            1
        } else {
            self.roles.len()
        }
    }
}

/// What some worlds have, and what is drawn for it.
struct More {
    models: bool,
    port: bool,
    roles: bool,
    rng: Rng,
    /// Which gangs of two roles need one of them only.
    optional: Rng,
}

impl More {
    /// Nothing.
    fn none() -> Self {
        Self {
            models: false,
            port: false,
            roles: false,
            rng: Rng::with_seed(0),
            optional: Rng::with_seed(0),
        }
    }

    /// What the world of a seed has.
    fn draw(world: &Rng) -> Self {
        let mut rng = Rng::with_seed(!world.get_seed());
        Self {
            models: rng.u8(0..3) == 0,
            port: rng.u8(0..4) == 0,
            roles: rng.u8(0..4) == 0,
            rng,
            optional: Rng::with_seed(world.get_seed().rotate_left(32)),
        }
    }

    /// Whether something that comes true for one of so many does.
    fn one_of(&mut self, many: u8) -> bool {
        self.rng.u8(0..many) == 0
    }

    fn add_to_nodes(&mut self, nodes: &mut [Node]) {
        if self.models {
            for node in nodes {
                node.model = Some(self.rng.usize(0..2));
            }
        }
    }

    fn add_to_queues(&mut self, queues: &mut [Queue], total: u64) {
        if self.models {
            let mut quota = || (self.rng.u8(0..3) == 0).then(|| self.rng.u64(0..=total / 3 + 1));
            for queue in queues {
                queue.models = [quota(), quota()];
            }
        }
    }

    fn add_to_gang(&mut self, gang: &mut Gang, size: u64) {
        if self.models && self.one_of(3) {
            gang.model = Some(self.rng.usize(0..2));
        }
        if self.port && self.one_of(2) {
            gang.roles[0].asks[PORT] = 1;
        }
        if self.roles && self.one_of(2) {
            let minimum = self.rng.usize(1..3);
            let gpus = self.rng.choice([0, 1, 1, 2, size / 2]).unwrap();
            gang.roles.push(Role {
                minimum,
                asks: [gpus, 1, 0],
                waiting: minimum + usize::from(self.one_of(4)),
            });
            gang.needs_one_role = self.optional.bool();
        }
    }
}

impl Case {
    pub(crate) fn claimant(&self) -> &Gang {
        self.gangs.last().unwrap()
    }

    /// Two gangs of eight GPUs that can run on any model, one of which runs, and two queues with
    /// quotas of eight GPUs and of two of its model.
    pub(crate) fn of_one_model() -> Self {
        let node = |model| Node {
            has: [8, 96, 1],
            rack: 0,
            model: Some(model),
        };
        let queue = |gpus, model| Queue {
            parent: None,
            gpus: Some((gpus, None)),
            cpus: None,
            models: [model, None],
            weight: 1,
            preempt_min_s: 0,
            reclaim_min_s: 0,
        };
        let gang = |queue, at: Option<usize>| Gang {
            queue,
            priority: 0,
            preemptible: queue < 2,
            has_controller: true,
            roles: vec![Role {
                minimum: 1,
                asks: [8, 1, 0],
                waiting: usize::from(at.is_none()),
            }],
            needs_one_role: false,
            model: None,
            at: Vec::from_iter(at.map(|node| At {
                node,
                age_s: 1_000,
                role: 0,
            })),
            in_one_rack: false,
            never: false,
            budget: None,
        };
        Self {
            nodes: vec![node(0), node(1)],
            queues: vec![queue(8, Some(2)), queue(8, Some(2)), queue(0, None)],
            gangs: vec![gang(0, Some(0)), gang(2, Some(1)), gang(1, None)],
        }
    }

    /// Draws a world in which gangs run wherever there is room.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let more = More::draw(rng);
        Self::draw_with(rng, 1..6, 2..9, more)
    }

    /// Draws a world that has nothing that only some worlds have.
    pub(crate) fn draw_plain(rng: &mut Rng) -> Self {
        Self::draw_with(rng, 1..6, 2..9, More::none())
    }

    /// Draws a world with as many nodes and gangs as brute force can bear, which is seldom.
    pub(crate) fn draw_large(rng: &mut Rng) -> Self {
        let more = More::draw(rng);
        Self::draw_with(rng, 6..9, 8..13, more)
    }

    fn draw_with(rng: &mut Rng, nodes: Range<usize>, gangs: Range<usize>, mut more: More) -> Self {
        let (mut case, leaves, size) = Self::draw_cluster(rng, nodes, &mut more);
        let mut free: Vec<Amounts> = case.nodes.iter().map(|node| node.has).collect();
        for _ in 0..rng.usize(gangs) {
            let mut gang = draw_gang(rng, &leaves, size);
            more.add_to_gang(&mut gang, size);
            if let Ok(mut gang) = case.run(rng, gang, &mut free) {
                for role in &mut gang.roles {
                    role.waiting = 0;
                }
                case.gangs.push(gang);
            }
        }
        let mut claimant = draw_gang(rng, &leaves, size);
        claimant.roles[0].minimum = rng.usize(1..4);
        claimant.in_one_rack = rng.u8(0..4) == 0;
        claimant.never = rng.u8(0..20) == 0;
        claimant.preemptible = rng.u8(0..8) > 0;
        more.add_to_gang(&mut claimant, size);
        claimant.needs_one_role = false;
        for role in &mut claimant.roles {
            role.waiting = role.minimum;
        }
        case.gangs.push(claimant);
        case
    }

    /// Draws a world in which all gangs that find no room wait for it, and so do pods of gangs that
    /// run without them.
    pub(crate) fn draw_crowded(rng: &mut Rng) -> Self {
        let more = More::draw(rng);
        Self::draw_crowded_with(rng, more)
    }

    /// Draws such a world that has nothing that only some worlds have.
    pub(crate) fn draw_plain_crowded(rng: &mut Rng) -> Self {
        Self::draw_crowded_with(rng, More::none())
    }

    fn draw_crowded_with(rng: &mut Rng, mut more: More) -> Self {
        let (mut case, leaves, size) = Self::draw_cluster(rng, 1..6, &mut more);
        let mut free: Vec<Amounts> = case.nodes.iter().map(|node| node.has).collect();
        for _ in 0..rng.usize(4..13) {
            let mut gang = draw_gang(rng, &leaves, size);
            gang.in_one_rack = rng.u8(0..8) == 0;
            more.add_to_gang(&mut gang, size);
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
    fn draw_cluster(
        rng: &mut Rng,
        nodes: Range<usize>,
        more: &mut More,
    ) -> (Self, Vec<usize>, u64) {
        let size = rng.u64(2..9);
        let racks = rng.usize(1..4);
        let cpus = if rng.u8(0..4) == 0 { 2 * size } else { 96 };
        let nodes = (0..rng.usize(nodes)).map(|_| Node {
            has: [rng.choice([size, size, size / 2 + 1]).unwrap(), cpus, 1],
            rack: rng.usize(0..racks),
            model: None,
        });
        let mut nodes: Vec<Node> = nodes.collect();
        more.add_to_nodes(&mut nodes);
        let total: u64 = nodes.iter().map(|node| node.has[GPUS]).sum();
        let mut queues = draw_queues(rng, total);
        more.add_to_queues(&mut queues, total);
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
        for (number, role) in in_turn(&waiting.roles).into_iter().enumerate() {
            let asks = gang.roles[role].asks;
            let fits = |node: &usize| {
                let is_meant = gang.model.is_none() || gang.model == self.nodes[*node].model;
                is_meant
                    && free[*node]
                        .iter()
                        .zip(asks)
                        .all(|(free, asks)| *free >= asks)
            };
            let nodes: Vec<usize> = (0..free.len()).filter(fits).collect();
            let Some(node) = rng.choice(nodes) else {
                continue;
            };
            for (free, asks) in free[node].iter_mut().zip(asks) {
                *free -= asks;
            }
            gang.roles[role].waiting -= 1;
            // No two pods are equally old: the newest are surplus.
            let age_s = age_s - (number as u64).min(age_s - 1);
            gang.at.push(At { node, age_s, role });
        }
        let pods: Vec<usize> = (0..gang.at.len()).collect();
        if !gang.has_minimum(&pods) || self.exceeds_limit(&gang) {
            free.copy_from_slice(&before);
            return Err(waiting);
        }
        Ok(gang)
    }

    fn exceeds_limit(&self, gang: &Gang) -> bool {
        let gpus_of = |gang: &Gang| -> u64 {
            let pods = 0..gang.at.len();
            pods.map(|pod| gang.asks_of(pod)[GPUS]).sum()
        };
        self.path(gang.queue).into_iter().any(|queue| {
            let limit = self.queues[queue].gpus.and_then(|(_, limit)| limit);
            let below = |other: &&Gang| self.path(other.queue).contains(&queue);
            let held: u64 = self.gangs.iter().filter(below).map(gpus_of).sum();
            limit.is_some_and(|limit| held + gpus_of(gang) > limit)
        })
    }

    /// A queue and those above it.
    pub(crate) fn path(&self, queue: usize) -> Vec<usize> {
        let parent = |queue: &usize| self.queues[*queue].parent;
        std::iter::successors(Some(queue), parent).collect()
    }

    /// The GPU model without which pods of a role cannot run: the one that they name, or the only
    /// one of which a node is large enough.
    pub(crate) fn needs_model(&self, gang: &Gang, role: &Role) -> Option<usize> {
        let is_large = |node: &&Node| node.has[GPUS] >= role.asks[GPUS];
        let models = self.nodes.iter().filter(is_large).map(|node| node.model);
        let mut models: Vec<Option<usize>> = models.collect();
        models.sort_unstable();
        models.dedup();
        match models.as_slice() {
            [only] => gang.model.or(*only),
            _ => gang.model,
        }
    }

    /// The world as the engine sees it, at rest. No gang is evicted: what would be done is
    /// compared.
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
            let sketch = node(&format!("n{number}"), node_of.has[GPUS]);
            let sketch = match node_of.model {
                Some(model) => sketch.model(MODELS[model]),
                None => sketch,
            };
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
            for (quota, model) in one.models.iter().zip(MODELS) {
                if let Some(quota) = quota {
                    sketch = sketch.entry("nvidia.com/gpu", Some(model), (*quota, None), 1);
                }
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
        // Sub-groups have minima of their own.
        let minimum = match one.roles.as_slice() {
            [role] => u32::try_from(role.minimum).unwrap(),
            _ => 1,
        };
        let mut sketch = gang(&name, minimum).queue(&format!("q{}", one.queue));
        if one.roles.len() > 1 {
            let leaves = one.roles.iter().enumerate().map(|(number, role)| {
                let minimum = u32::try_from(role.minimum).unwrap();
                leaf(&format!("r{number}"), "", minimum)
            });
            sketch = sketch.sub_groups(leaves.collect::<Sketch<_>>());
            if one.needs_one_role {
                sketch = sketch.at_least(1);
            }
        }
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
        let running = one.at.iter().map(|at| (at.role, Some(at)));
        let waiting = in_turn(&one.roles).into_iter().map(|role| (role, None));
        for (index, (role, at)) in running.chain(waiting).enumerate() {
            let pod = pod_of(one, role, &name, index).with(|pod| {
                pod.phase = match at {
                    Some(_) => PodPhase::Running,
                    None => PodPhase::Pending,
                };
            });
            world.apply(match at {
                Some(at) => pod
                    .on(&format!("n{}", at.node))
                    .with(|pod| pod.bound_ms = Some(START_MS - at.age_s * 1_000)),
                None => pod,
            });
        }
    }
}

/// The names of the GPU models.
pub(crate) const MODELS: [&str; 2] = ["A100", "H100"];

/// The roles of all pods that wait, the roles in turn.
fn in_turn(roles: &[Role]) -> Vec<usize> {
    let most = roles.iter().map(|role| role.waiting).max().unwrap_or(0);
    let rounds = (0..most).map(|round| {
        let waits = move |role: &usize| roles[*role].waiting > round;
        (0..roles.len()).filter(waits)
    });
    rounds.flatten().collect()
}

/// A pod of a gang, nowhere yet.
fn pod_of(one: &Gang, role: usize, gang: &str, index: usize) -> Sketch<PodFacts> {
    let asks = one.roles[role].asks;
    let sketch = pod(&format!("{gang}-{index}"), asks[GPUS]);
    let mut sketch = match one.roles.len() {
        1 => sketch.of(gang),
        _ => sketch.of_leaf(gang, &format!("r{role}")),
    };
    if let Some(model) = one.model {
        sketch = sketch.model(MODELS[model]);
    }
    if one.has_controller {
        sketch = sketch.owned_by(gang);
    }
    let sketch = sketch.shape(|shape| {
        let cpu = shape.requests.iter_mut().find(|(name, _)| &**name == "cpu");
        cpu.unwrap().1 = asks[1] * 1_000;
        shape.host_ports = (0..asks[PORT])
            .map(|_| HostPort {
                port: 80,
                protocol: Protocol::Tcp,
                host_ip: "".into(),
            })
            .collect();
    });
    sketch.with(|pod| {
        pod.never_preempts = one.never;
        let labels = vec![("app".into(), gang.into())];
        pod.labels = PodLabels::new(&labels, &pod.name, None);
    })
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
            models: [None, None],
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
    let (queue, priority) = (rng.choice(leaves.iter().copied()).unwrap(), rng.i32(0..3));
    let (preemptible, has_controller) = (rng.u8(0..8) > 0, rng.u8(0..5) > 0);
    let role = Role {
        minimum,
        asks: [gpus, rng.choice([1, 1, 2, 4]).unwrap(), 0],
        waiting: minimum + rng.choice([0, 0, 0, 1, 2]).unwrap(),
    };
    Gang {
        queue,
        priority,
        preemptible,
        has_controller,
        roles: vec![role],
        needs_one_role: false,
        model: None,
        at: Vec::new(),
        in_one_rack: false,
        never: false,
        budget: (rng.u8(0..6) == 0).then(|| rng.u32(0..3)),
    }
}
