//! All plans of a small world, by trying every set of victims and every placement.

mod rules;

use crate::case::{Amounts, Case, Gang, Role};
use std::cmp::Reverse;

/// By what right victims leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Consolidate,
    Reclaim,
    Preempt,
    Mixed,
}

/// A pod: the number of its gang and its own.
pub(crate) type Pod = (usize, usize);

/// What a plan costs: the sums that decide, in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    pub(crate) broken_with_weight: u64,
    pub(crate) broken: u64,
    /// The priorities of broken gangs, the highest first.
    pub(crate) priorities: Vec<i32>,
    pub(crate) gpu_seconds: u64,
    pub(crate) cpu_seconds: u64,
    pub(crate) pods: u64,
    pub(crate) run_seconds: u64,
}

/// Amounts by entry: of GPUs, of CPUs, and of the GPUs of each model.
pub(crate) type Entries<T = u64> = [T; 4];

/// The entry of GPUs of all models.
const ALL_GPUS: usize = 0;
/// The entry of the first GPU model.
const FIRST_MODEL: usize = 2;

/// What a queue is guaranteed and what its fair share is, by entry; `None`: not divided.
pub(crate) type Bounds = Entries<Option<(u64, u64)>>;

pub(crate) struct Oracle<'a> {
    case: &'a Case,
    bounds: Vec<Bounds>,
    units: Vec<Unit>,
    /// Before anybody leaves.
    now: State,
}

/// What is free on each node, and what each queue holds.
#[derive(Debug, Clone)]
struct State {
    free: Vec<Amounts>,
    held: Vec<Entries>,
}

/// Pods that leave together: the minimum of a gang, one surplus pod, or the minimum of a role that
/// is not needed.
#[derive(Debug, Clone)]
struct Unit {
    number: usize,
    gang: usize,
    pods: Vec<usize>,
    is_core: bool,
    /// The units with which it leaves, the core first.
    leaders: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Quota,
    Share,
}

/// Where the claimant's pods are: how many of each role on each node.
type Places = Vec<Vec<u64>>;

impl<'a> Oracle<'a> {
    pub(crate) fn new(case: &'a Case, bounds: Vec<Bounds>) -> Self {
        let mut units = Vec::new();
        let running = &case.gangs[..case.gangs.len() - 1];
        let mut now = State {
            free: case.nodes.iter().map(|node| node.has).collect(),
            held: vec![[0; 4]; case.queues.len()],
        };
        for (number, gang) in running.iter().enumerate() {
            for (pod, at) in gang.at.iter().enumerate() {
                now.place(case, gang.queue, gang.asks_of(pod), at.node);
            }
            let core = units.len();
            units.push(Unit {
                number: core,
                gang: number,
                pods: gang.core(),
                is_core: true,
                leaders: Vec::new(),
            });
            for (pods, followers) in gang.surplus() {
                let own = units.len();
                for follower in followers {
                    let follower: &mut Unit = &mut units[core + 1 + follower];
                    follower.leaders.push(own);
                }
                units.push(Unit {
                    number: own,
                    gang: number,
                    pods,
                    is_core: false,
                    leaders: vec![core],
                });
            }
        }
        Self {
            case,
            bounds,
            units,
            now,
        }
    }

    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// Whether the claimant starts without any eviction.
    pub(crate) fn starts(&self) -> bool {
        self.has_room(&[])
    }

    /// The cheapest plan by a right; `None`: there is none.
    pub(crate) fn best(&self, right: Right) -> Option<Cost> {
        self.cheapest(right).map(|(cost, _)| cost)
    }

    fn cheapest(&self, right: Right) -> Option<(Cost, Vec<usize>)> {
        let may: Vec<usize> = (0..self.units.len())
            .filter(|unit| self.may_leave(&self.units[*unit], right))
            .collect();
        let mut sets: Vec<(Cost, Vec<usize>)> = (1..1usize << may.len())
            .map(|bits| (0..may.len()).filter(move |at| bits >> at & 1 == 1))
            .map(|set| set.map(|at| may[at]).collect::<Vec<usize>>())
            .filter(|set| self.is_closed(set))
            .map(|set| (self.cost(&self.pods_of(&set)), set))
            .collect();
        sets.sort();
        sets.into_iter().find(|(_, set)| self.is_plan(set, right))
    }

    /// Whether evicting exactly these pods is a plan by a right.
    pub(crate) fn allows(&self, pods: &[Pod], right: Right) -> bool {
        let leaves = |unit: &&usize| {
            let unit = &self.units[**unit];
            unit.pods
                .iter()
                .all(|pod| pods.contains(&(unit.gang, *pod)))
        };
        let all: Vec<usize> = (0..self.units.len()).collect();
        let set: Vec<usize> = all.iter().filter(leaves).copied().collect();
        let mut same = self.pods_of(&set);
        same.sort_unstable();
        let mut pods = pods.to_vec();
        pods.sort_unstable();
        let may = |unit: &usize| self.may_leave(&self.units[*unit], right);
        same == pods && self.is_closed(&set) && set.iter().all(may) && self.is_plan(&set, right)
    }

    fn pods_of(&self, set: &[usize]) -> Vec<Pod> {
        let units = set.iter().map(|unit| &self.units[*unit]);
        units
            .flat_map(|unit| unit.pods.iter().map(|pod| (unit.gang, *pod)))
            .collect()
    }

    pub(crate) fn cost(&self, pods: &[Pod]) -> Cost {
        let gang = |number: &usize| &self.case.gangs[*number];
        let broken: Vec<&Gang> = (0..self.case.gangs.len() - 1)
            .filter(|number| {
                let leaves = |pod: &usize| pods.contains(&(*number, *pod));
                gang(number).core().iter().any(leaves)
            })
            .map(|number| gang(&number))
            .collect();
        let has_weight = |gang: &&&Gang| {
            let path = self.case.path(gang.queue);
            !path.into_iter().any(|queue| {
                let one = &self.case.queues[queue];
                let has_gpus = gang.roles.iter().any(|role| role.asks[0] > 0);
                one.gpus.is_some() && one.weight == 0 && has_gpus
            })
        };
        let mut priorities: Vec<i32> = broken.iter().map(|gang| gang.priority).collect();
        priorities.sort_by_key(|priority| Reverse(*priority));
        let of = |amount: &dyn Fn(Amounts, u64) -> u64| {
            let pods = pods.iter().map(|(number, pod)| {
                let gang = gang(number);
                amount(gang.asks_of(*pod), gang.at[*pod].age_s)
            });
            pods.sum::<u64>()
        };
        Cost {
            broken_with_weight: broken.iter().filter(has_weight).count() as u64,
            broken: broken.len() as u64,
            priorities,
            gpu_seconds: of(&|asks, age_s| asks[0] * age_s),
            cpu_seconds: of(&|asks, age_s| asks[1] * age_s),
            pods: pods.len() as u64,
            run_seconds: of(&|_, age_s| age_s),
        }
    }

    /// A core leaves with the surplus of its gang, and the minimum of a role with that of the role.
    fn is_closed(&self, set: &[usize]) -> bool {
        let stays = self.units.iter().filter(|unit| !set.contains(&unit.number));
        let mut leaders = stays.flat_map(|unit| &unit.leaders);
        !leaders.any(|leader| set.contains(leader))
    }

    /// The rules on a unit alone.
    fn may_leave(&self, unit: &Unit, right: Right) -> bool {
        match right {
            Right::Consolidate => self.may_move(unit),
            Right::Reclaim => self.may_be_reclaimed(unit),
            Right::Preempt => self.may_be_preempted(unit),
            Right::Mixed => {
                self.may_move(unit) || self.may_be_reclaimed(unit) || self.may_be_preempted(unit)
            }
        }
    }

    /// Whether the minimum of a gang, if this is one, has run for so many seconds.
    fn has_run(&self, unit: &Unit, min_s: u64) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let ages = unit.pods.iter().map(|pod| gang.at[*pod].age_s);
        !unit.is_core || ages.min().unwrap_or(0) >= min_s
    }

    fn may_be_preempted(&self, unit: &Unit) -> bool {
        let (gang, claimant) = (&self.case.gangs[unit.gang], self.case.claimant());
        gang.preemptible
            && gang.queue == claimant.queue
            && gang.priority < claimant.priority
            && self.has_run(unit, self.case.queues[gang.queue].preempt_min_s)
    }

    fn may_be_reclaimed(&self, unit: &Unit) -> bool {
        let (gang, claimant) = (&self.case.gangs[unit.gang], self.case.claimant());
        gang.preemptible
            && gang.queue != claimant.queue
            && self.has_run(unit, self.case.queues[gang.queue].reclaim_min_s)
            && !self.is_protected(unit.number)
    }

    fn may_move(&self, unit: &Unit) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let queue = &self.case.queues[gang.queue];
        gang.preemptible
            && gang.has_controller
            && self.has_run(unit, queue.preempt_min_s.max(queue.reclaim_min_s))
    }

    fn is_plan(&self, set: &[usize], right: Right) -> bool {
        let pods = self.pods_of(set);
        let mut gangs = self.case.gangs.iter().enumerate();
        if gangs.any(|(number, gang)| {
            let leave = pods.iter().filter(|(of, _)| *of == number).count();
            gang.budget.is_some_and(|allowed| leave > allowed as usize)
        }) {
            return false;
        }
        let left = self.without(set);
        let placements = self.placements(&left.free);
        if !self.within_limits(&left.held) || placements.is_empty() {
            return false;
        }
        if right != Right::Consolidate && !self.is_minimal(set) {
            return false;
        }
        let kinds = [Kind::Quota, Kind::Share];
        placements.into_iter().any(|places| {
            kinds
                .iter()
                .any(|kind| self.ends_well(set, right, *kind, &places))
        })
    }

    /// Every unit is needed for room or a limit.
    fn is_minimal(&self, set: &[usize]) -> bool {
        let follows = |unit: usize| {
            let mut leaders = self.units[unit].leaders.iter();
            leaders.any(|leader| set.contains(leader))
        };
        set.iter().filter(|unit| !follows(**unit)).all(|unit| {
            let rest: Vec<usize> = set.iter().copied().filter(|one| one != unit).collect();
            !self.has_room(&rest)
        })
    }

    fn has_room(&self, set: &[usize]) -> bool {
        let left = self.without(set);
        self.within_limits(&left.held) && !self.placements(&left.free).is_empty()
    }

    fn without(&self, set: &[usize]) -> State {
        let mut left = self.now.clone();
        for (number, pod) in self.pods_of(set) {
            let gang = &self.case.gangs[number];
            left.remove(self.case, gang.queue, gang.asks_of(pod), gang.at[pod].node);
        }
        left
    }

    /// Whether the claimant exceeds no limit, and as one that is not preemptible no quota.
    fn within_limits(&self, held: &[Entries]) -> bool {
        let claimant = self.case.claimant();
        let asked = self.asked()[ALL_GPUS];
        self.case.path(claimant.queue).into_iter().all(|queue| {
            let limit = self.case.queues[queue].gpus.and_then(|(_, limit)| limit);
            asked == 0 || limit.is_none_or(|limit| held[queue][ALL_GPUS] + asked <= limit)
        }) && (claimant.preemptible || self.within_quota_of_fixed(claimant))
    }

    /// What the claimant asks for; of a GPU model only what cannot run on another one.
    fn asked(&self) -> Entries {
        let claimant = self.case.claimant();
        let mut asked = [0; 4];
        for role in &claimant.roles {
            let model = self.case.needs_model(claimant, role);
            for _ in 0..role.minimum {
                give(&mut asked, entries_of(role.asks, model));
            }
        }
        asked
    }

    /// Gangs that are not preemptible hold no more than the quotas: in a leaf of what is divided,
    /// above it where there is an entry.
    fn within_quota_of_fixed(&self, claimant: &Gang) -> bool {
        let asked = self.asked();
        let running = &self.case.gangs[..self.case.gangs.len() - 1];
        self.case.path(claimant.queue).into_iter().all(|queue| {
            let is_leaf = queue == claimant.queue;
            let mut fixed = [0; 4];
            let below =
                |gang: &&Gang| !gang.preemptible && self.case.path(gang.queue).contains(&queue);
            for gang in running.iter().filter(below) {
                for (pod, at) in gang.at.iter().enumerate() {
                    let model = self.case.nodes[at.node].model;
                    give(&mut fixed, entries_of(gang.asks_of(pod), model));
                }
            }
            (0..4).all(|entry| {
                let divided = self.bounds[queue][entry].is_some();
                let quota = self.written(queue, entry);
                let quota = quota.or((is_leaf && divided).then_some(0));
                let counts = asked[entry] > 0 && !self.is_excused(queue, entry);
                !counts || quota.is_none_or(|quota| fixed[entry] + asked[entry] <= quota)
            })
        })
    }

    /// The quota that a queue's definition has for an entry.
    fn written(&self, queue: usize, entry: usize) -> Option<u64> {
        let one = &self.case.queues[queue];
        let gpus = one.gpus.map(|(quota, _)| quota);
        [gpus, one.cpus, one.models[0], one.models[1]][entry]
    }

    /// Whether a queue was promised a model that the claimant needs, and no GPUs at large: then
    /// that promise alone counts.
    fn is_excused(&self, queue: usize, entry: usize) -> bool {
        let asked = self.asked();
        let mut models = FIRST_MODEL..4;
        entry == ALL_GPUS
            && self.written(queue, ALL_GPUS).is_none()
            && models.any(|model| asked[model] > 0 && self.written(queue, model).is_some())
    }

    /// All ways to place the claimant.
    fn placements(&self, free: &[Amounts]) -> Vec<Places> {
        let claimant = self.case.claimant();
        let racks: Vec<Option<usize>> = match claimant.in_one_rack {
            true => (0..4).map(Some).collect(),
            false => vec![None],
        };
        let mut found = Vec::new();
        for rack in racks {
            let suits = |node: usize| {
                let node = &self.case.nodes[node];
                rack.is_none_or(|rack| node.rack == rack)
                    && (claimant.model.is_none() || claimant.model == node.model)
            };
            place_roles(&claimant.roles, free, &suits, &mut Vec::new(), &mut found);
        }
        found
    }

    fn ends_well(&self, set: &[usize], right: Right, kind: Kind, places: &Places) -> bool {
        let claimant = self.case.claimant();
        let mut end = self.without(set);
        for (role, places) in claimant.roles.iter().zip(places) {
            for (node, pods) in places.iter().enumerate() {
                for _ in 0..*pods {
                    end.place(self.case, claimant.queue, role.asks, node);
                }
            }
        }
        let may_return = |unit: &usize| self.case.gangs[self.units[*unit].gang].has_controller;
        let may: Vec<usize> = set.iter().copied().filter(may_return).collect();
        let all = (1usize << may.len()) - 1;
        let ways = match right {
            Right::Consolidate => all..=all,
            // A victim that returns to the claimant's queue only makes it hold more.
            Right::Preempt => 0..=0,
            Right::Reclaim | Right::Mixed => 0..=all,
        };
        ways.into_iter().any(|bits| {
            let chosen = (0..may.len()).filter(|at| bits >> at & 1 == 1);
            let back: Vec<usize> = chosen.map(|at| may[at]).collect();
            let holds = |end: &State| self.rules_hold(set, &back, right, kind, end);
            self.is_open(set, &back)
                && self.fit_rest(&self.pods_of(&back), 0, &mut end.clone(), &holds)
        })
    }

    /// Surplus returns only to a gang that has its minimum, and to a role that has its own.
    fn is_open(&self, set: &[usize], back: &[usize]) -> bool {
        let mut leaders = back.iter().flat_map(|unit| &self.units[*unit].leaders);
        leaders.all(|leader| !set.contains(leader) || back.contains(leader))
    }

    /// Whether these pods all find places so that something holds in the end. Pods of one role are
    /// alike: no later one is on an earlier node than `from`.
    fn fit_rest(
        &self,
        pods: &[Pod],
        from: usize,
        end: &mut State,
        holds: &dyn Fn(&State) -> bool,
    ) -> bool {
        let Some(((gang, pod), rest)) = pods.split_first() else {
            return holds(end);
        };
        let one = &self.case.gangs[*gang];
        let asks = one.asks_of(*pod);
        (from..end.free.len()).any(|node| {
            let model = self.case.nodes[node].model;
            let suits = one.model.is_none() || one.model == model;
            if !suits || times(end.free[node], asks) == 0 {
                return false;
            }
            let is_alike = |(of, next): &Pod| of == gang && one.at[*next].role == one.at[*pod].role;
            let alike = rest.first().is_some_and(is_alike);
            end.place(self.case, one.queue, asks, node);
            let fits = self.fit_rest(rest, if alike { node } else { 0 }, end, holds);
            end.remove(self.case, one.queue, asks, node);
            fits
        })
    }
}

impl State {
    /// Books a pod of a queue on a node.
    fn place(&mut self, case: &Case, queue: usize, asks: Amounts, node: usize) {
        take(&mut self.free[node], asks);
        for queue in case.path(queue) {
            give(
                &mut self.held[queue],
                entries_of(asks, case.nodes[node].model),
            );
        }
    }

    /// Takes a pod of a queue from a node.
    fn remove(&mut self, case: &Case, queue: usize, asks: Amounts, node: usize) {
        give(&mut self.free[node], asks);
        for queue in case.path(queue) {
            take(
                &mut self.held[queue],
                entries_of(asks, case.nodes[node].model),
            );
        }
    }
}

/// What a pod counts for in each entry, on GPUs of a model.
fn entries_of(asks: Amounts, model: Option<usize>) -> Entries {
    let mut entries = [asks[0], asks[1], 0, 0];
    if let Some(model) = model {
        entries[FIRST_MODEL + model] = asks[0];
    }
    entries
}

fn take<const N: usize>(from: &mut [u64; N], amounts: [u64; N]) {
    for (from, amount) in from.iter_mut().zip(amounts) {
        *from -= amount;
    }
}

fn give<const N: usize>(to: &mut [u64; N], amounts: [u64; N]) {
    for (to, amount) in to.iter_mut().zip(amounts) {
        *to += amount;
    }
}

/// How many pods fit.
fn times(free: Amounts, asks: Amounts) -> u64 {
    let pairs = free.iter().zip(asks).filter(|(_, asks)| *asks > 0);
    pairs.map(|(free, asks)| free / asks).min().unwrap_or(99)
}

/// All ways to place these roles beside those before them.
fn place_roles(
    roles: &[Role],
    free: &[Amounts],
    suits: &dyn Fn(usize) -> bool,
    before: &mut Places,
    found: &mut Vec<Places>,
) {
    let Some((role, rest)) = roles.split_first() else {
        found.push(before.clone());
        return;
    };
    let fits = (0..free.len()).map(|node| match suits(node) {
        true => times(free[node], role.asks),
        false => 0,
    });
    let (mut ways, mut places) = (Vec::new(), vec![0; free.len()]);
    let fits: Vec<u64> = fits.collect();
    spread(role.minimum as u64, 0, &fits, &mut places, &mut ways);
    for way in ways {
        let mut left = free.to_vec();
        for (free, pods) in left.iter_mut().zip(&way) {
            (0..*pods).for_each(|_| take(free, role.asks));
        }
        before.push(way);
        place_roles(rest, &left, suits, before, found);
        before.pop();
    }
}

/// All ways to spread so many pods over nodes from one on.
fn spread(left: u64, node: usize, fits: &[u64], places: &mut Vec<u64>, found: &mut Places) {
    if left == 0 {
        found.push(places.clone());
        return;
    }
    if node == fits.len() {
        return;
    }
    for pods in 0..=fits[node].min(left) {
        places[node] = pods;
        spread(left - pods, node + 1, fits, places, found);
    }
    places[node] = 0;
}
