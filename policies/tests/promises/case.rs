//! Nodes, queues and gangs, drawn from a seed.

use fastrand::Rng;
use gpu_batch_testing::{World, gang, node, pod, queue, quota, topology};

/// A second in milliseconds.
pub(crate) const S: u64 = 1_000;
/// How many racks there are.
const RACKS: usize = 3;

/// What decides the order of gangs, and what may stop them beside the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One queue: the gang that arrived first comes first.
    OneQueue,
    /// Queues one after the other, by their priorities.
    Queues,
    /// Such queues, some of them with limits.
    Limits,
    /// One queue, nodes of one GPU and members of one: counting alone says which gangs can run at a
    /// time.
    Counted,
    /// Queues with quotas, gangs of two priorities, and gangs take room from others.
    Evictions,
}

/// How well it is known when gangs end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// In the very second.
    True,
    /// No gang runs longer than it says, and some end earlier.
    Early,
    /// Gangs run for shorter or for longer than they say, and some say nothing.
    Wrong,
    /// No gang says anything.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Case {
    /// By node, its GPUs and its rack.
    pub(crate) nodes: Vec<(u64, usize)>,
    pub(crate) kind: Kind,
    /// By queue, the first one first in the order, its limit.
    pub(crate) queues: Vec<Option<u64>>,
    /// By queue, its quota.
    pub(crate) quotas: Vec<u64>,
    /// In the order in which they arrive.
    pub(crate) gangs: Vec<Gang>,
}

#[derive(Debug, Clone)]
pub(crate) struct Gang {
    pub(crate) arrives_ms: u64,
    pub(crate) queue: usize,
    pub(crate) members: u64,
    pub(crate) gpus: u64,
    /// All members must be in one rack.
    pub(crate) in_one_rack: bool,
    pub(crate) priority: i32,
    pub(crate) expected_ms: Option<u64>,
    pub(crate) runs_ms: u64,
}

impl Case {
    /// A world in which most gangs wait for a while; all of them fit when it is empty.
    pub(crate) fn draw(rng: &mut Rng, kind: Kind, ends: Ends) -> Self {
        let is_counted = kind == Kind::Counted;
        let (fewest, sizes) = match is_counted {
            true => (3, &[1][..]),
            false => (1, &[2, 4, 8][..]),
        };
        let nodes =
            (0..rng.usize(fewest..6)).map(|_| (*rng.choice(sizes).unwrap(), rng.usize(..RACKS)));
        let nodes = nodes.collect();
        let queues = match kind {
            Kind::OneQueue | Kind::Counted => vec![None],
            Kind::Queues => vec![None; 3],
            Kind::Limits => (0..3).map(|_| rng.bool().then(|| rng.u64(4..16))).collect(),
            Kind::Evictions => vec![None; 2],
        };
        let quotas = match kind {
            Kind::Evictions => queues.iter().map(|_| rng.u64(..16)).collect(),
            _ => vec![0; queues.len()],
        };
        let mut case = Self {
            nodes,
            kind,
            queues,
            quotas,
            gangs: Vec::new(),
        };
        let mut at_ms = 0;
        for _ in 0..rng.usize(5..16) {
            at_ms += S * rng.u64(0..20);
            let gang = case.draw_gang(rng, at_ms, ends);
            case.gangs.extend(gang);
        }
        case
    }

    /// `None`: the gang that was drawn would never start.
    fn draw_gang(&self, rng: &mut Rng, arrives_ms: u64, ends: Ends) -> Option<Gang> {
        let is_counted = self.kind == Kind::Counted;
        // Counting knows no gang that takes no time, and the seeds in which something was found
        // with evictions were drawn without one.
        let may_take_no_time = !matches!(self.kind, Kind::Counted | Kind::Evictions);
        let runs_ms = match may_take_no_time && rng.u32(..8) == 0 {
            true => 0,
            false => S * rng.u64(1..100),
        };
        let longer_ms = if rng.bool() { S * rng.u64(1..100) } else { 0 };
        let expected_ms = match ends {
            Ends::True => Some(runs_ms),
            Ends::Early => Some(runs_ms + longer_ms),
            Ends::Wrong => rng.bool().then(|| S * rng.u64(..100)),
            Ends::Unknown => None,
        };
        let gang = Gang {
            arrives_ms,
            queue: rng.usize(..self.queues.len()),
            members: rng.u64(1..5),
            gpus: match is_counted {
                true => 1,
                false => *rng.choice(&[1, 1, 2, 3, 4, 8]).unwrap(),
            },
            in_one_rack: !is_counted && rng.u32(..3) == 0,
            priority: match self.kind {
                Kind::Evictions => rng.i32(0..2),
                _ => 0,
            },
            expected_ms,
            runs_ms,
        };
        let gpus = |node: usize| self.nodes[node].0;
        let is_within = self.queues[gang.queue].is_none_or(|limit| gang.asks() <= limit);
        (is_within && self.most(&gang, gpus) >= gang.members).then_some(gang)
    }

    /// How many members of a gang fit in one place where they may be together, by the free GPUs of
    /// each node.
    pub(crate) fn most(&self, gang: &Gang, free: impl Fn(usize) -> u64) -> u64 {
        let mut all = 0;
        let mut racks = [0; RACKS];
        for (index, (_, rack)) in self.nodes.iter().enumerate() {
            let fit = free(index) / gang.gpus;
            racks[*rack] += fit;
            all += fit;
        }
        match gang.in_one_rack {
            true => racks.into_iter().max().unwrap_or(0),
            false => all,
        }
    }

    /// Whether a gang comes before another one.
    pub(crate) fn goes_before(&self, gang: usize, other: usize) -> bool {
        (self.gangs[gang].queue, gang) < (self.gangs[other].queue, other)
    }

    /// Creates all but the gangs.
    pub(crate) fn apply(&self, world: &mut World) {
        world.apply(topology("default", "rack"));
        for (index, (gpus, rack)) in self.nodes.iter().enumerate() {
            let sketch = node(&node_name(index), *gpus);
            world.apply(sketch.label("rack", &format!("r{rack}")));
        }
        for (index, limit) in self.queues.iter().enumerate() {
            let name = format!("q{index}");
            if self.kind == Kind::Evictions {
                world.apply(quota(&name, self.quotas[index]));
                continue;
            }
            let sketch = match limit {
                Some(limit) => queue(&name).limit(*limit),
                None => queue(&name),
            };
            let priority = -i32::try_from(index).unwrap();
            world.apply(sketch.with(|queue| queue.priority = priority));
        }
    }

    /// A gang arrives.
    pub(crate) fn arrive(&self, index: usize, world: &mut World) {
        let own = &self.gangs[index];
        let (name, now_ms) = (gang_name(index), world.now_ms);
        let mut sketch = gang(&name, u32::try_from(own.members).unwrap());
        if own.in_one_rack {
            sketch = sketch.required("rack");
        }
        let sketch = sketch.queue(&format!("q{}", own.queue));
        world.apply(sketch.with(|gang| {
            gang.expected_runtime_ms = own.expected_ms;
            gang.priority = Some(own.priority);
            gang.created_ms = now_ms;
        }));
        self.create(index, &self.members(index), world);
    }

    /// Pods of a gang are created, for the first time or after an eviction.
    pub(crate) fn create(&self, index: usize, names: &str, world: &mut World) {
        let now_ms = world.now_ms;
        let pods = pod(names, self.gangs[index].gpus).of(&gang_name(index));
        world.apply(pods.with(|pod| pod.created_ms = now_ms));
    }

    /// The names of the members of a gang.
    pub(crate) fn members(&self, index: usize) -> String {
        let members = (0..self.gangs[index].members).map(|member| member_name(index, member));
        members.collect::<Vec<_>>().join(" ")
    }
}

impl Gang {
    pub(crate) fn asks(&self) -> u64 {
        self.members * self.gpus
    }
}

/// Names in the order of arrivals.
pub(crate) fn gang_name(index: usize) -> String {
    format!("g{index:02}")
}

pub(crate) fn member_name(index: usize, member: u64) -> String {
    format!("{}-{member}", gang_name(index))
}

pub(crate) fn node_name(index: usize) -> String {
    format!("n{index}")
}
