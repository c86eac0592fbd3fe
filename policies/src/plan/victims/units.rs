//! What may be evicted: the minima of gangs, and surplus members one by one.

use super::cost::{Cost, Loss};
use super::{Action, NoPlan, Why};
use crate::facts::{Uid, UnixMs};
use crate::gangs::progress::Progress;
use crate::gangs::protected::{
    Holding, NEVER_MS, come_back, evictable_from, follow, holdings, may_lose_room,
};
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::queues::{Demand, QueueId, add_demand};
use crate::resources::{ResourceNames, Resources, amount_of};
use crate::state::ClusterState;
use crate::state::minima::Minimum;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Pods that are evicted together or not at all: the minimum of a gang, one surplus member, or
/// surplus members of which a part would be of no use.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) gang: GangId,
    /// The queue that holds the pods.
    pub(super) queue: QueueId,
    /// The pods, each with its node.
    pub(super) pods: Vec<(PodId, NodeId)>,
    /// The units that leave whenever this one does: the surplus of a core.
    pub(super) followers: Vec<usize>,
    /// The units with which this one leaves: the core of its gang first.
    pub(super) leaders: Vec<usize>,
    /// How many units stand above the unit: none above a core, and the core counts above surplus
    /// even where it may not leave and is no unit.
    pub(super) depth: usize,
    /// What the pods hold in their queue.
    pub(super) holds: Demand,
    /// What the pods give back on each node.
    pub(super) frees: Vec<(NodeId, Resources)>,
    pub(super) cost: Cost,
    /// For what the unit may be evicted by itself.
    pub(super) can: May,
    /// For what the unit may be evicted in the plans that are being looked for.
    pub(super) may: May,
    /// Whether the unit may leave in the plans that are being looked for.
    pub(super) goes: bool,
    /// Whether all pods of the unit have a controller, which makes them anew.
    pub(super) comes_back: bool,
    /// The disruption budgets of which the pods of the unit use up a part.
    pub(super) guards: Vec<Guard>,
    /// Whether disruption budgets alone keep the unit from being evicted.
    is_guarded: bool,
}

/// A disruption budget of which some pods use up a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) budget: Uid,
    pub(super) pods: u32,
    pub(super) allows: u32,
}

/// For what a unit may be evicted, as far as the unit alone decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct May {
    /// The claimant is of the queue of the unit, and of higher priority.
    pub(super) be_preempted: bool,
    /// The unit is of another queue, whose quota does not protect the unit.
    pub(super) be_reclaimed: bool,
    /// The unit may be placed again elsewhere.
    pub(super) be_moved: bool,
    /// The unit may be moved also for a claimant over its fair share: the unit is of the claimant's
    /// queue, or of a queue over its own fair share.
    pub(super) be_moved_for_more: bool,
}

/// Every unit that may be evicted for a claimant, and when the next one may be.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// The gangs of which the units are, by name.
    gangs: Vec<EvictableGang>,
    /// The priorities of these gangs, the highest first.
    priorities: Vec<Reverse<i32>>,
    /// The units themselves; empty until they are needed.
    pub(super) all: Vec<Unit>,
    /// When the next gang has run for long enough to be evicted; `None`: time changes nothing.
    pub(super) next_ms: Option<UnixMs>,
    /// The cost of evicting no unit.
    pub(super) zero: Cost,
}

/// The gang that claims room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimant {
    pub(super) gang: GangId,
    pub(super) queue: QueueId,
    /// The gang has its minimum, and claims room for one more member.
    pub(super) is_surplus: bool,
}

/// A gang that runs, of which pods may be evicted for the claimant.
#[derive(Debug)]
struct EvictableGang {
    holding: Holding,
    /// For what the minimum may be evicted.
    may: May,
    /// For what surplus may be evicted that its queue's quota does not protect.
    surplus_may: May,
}

impl Unit {
    /// Whether the unit counts in one key of its queue alone. Then, without the unit, no other gang
    /// of the queue becomes protected or loses its protection.
    pub(super) fn is_of_one_key(&self, state: &ClusterState) -> bool {
        let mut holds = self.holds.clone();
        state.queues.keep_deciding(self.queue, &mut holds);
        holds.len() <= 1
    }

    /// The first unit of a set, in rising order, with which the unit leaves.
    pub(super) fn leader_in(&self, set: &[usize]) -> Option<usize> {
        let mut leaders = self.leaders.iter().copied();
        leaders.find(|leader| set.binary_search(leader).is_ok())
    }
}

impl EvictableGang {
    fn minimum(&self) -> &Minimum {
        &self.holding.minimum
    }

    /// For what the surplus at a place may be evicted.
    fn surplus_may(&self, place: usize) -> May {
        // tests plant bugs here: surplus-of-a-protected-gang
        let is_protected = self.holding.protects(place);
        May {
            be_reclaimed: self.surplus_may.be_reclaimed && !is_protected,
            ..self.surplus_may
        }
    }

    fn could_leave_for_good(&self, action: Action) -> impl Iterator<Item = PodId> {
        let leaves = move |may: May| may.leave_for_good(action);
        let core = self.minimum().core.iter().filter(move |_| leaves(self.may));
        let surplus = self.minimum().surplus.iter().enumerate();
        let surplus = surplus.filter(move |(place, _)| leaves(self.surplus_may(*place)));
        core.chain(surplus.flat_map(|(_, one)| &one.pods)).copied()
    }
}

impl May {
    /// Whether a unit that may be evicted for this may leave in a plan of this action.
    pub(super) fn leave(self, action: Action) -> bool {
        match action {
            Action::Free => false,
            Action::Consolidate => self.be_moved,
            Action::Reclaim(_) => self.be_reclaimed,
            Action::Preempt => self.be_preempted,
            Action::Mixed(_) => self.be_preempted || self.be_reclaimed || self.be_moved,
        }
    }

    /// Whether a unit that may be evicted for this may leave in a plan of this action and have no
    /// other place.
    pub(super) fn leave_for_good(self, action: Action) -> bool {
        match action {
            Action::Consolidate => false,
            Action::Mixed(_) => self.be_preempted || self.be_reclaimed,
            _ => self.leave(action),
        }
    }
}

impl Units {
    /// Finds all gangs that rules on the gang alone do not keep from being evicted.
    pub(super) fn collect(
        state: &mut ClusterState,
        progress: &ById<GangId, Progress>,
        claimant: Claimant,
        now_ms: UnixMs,
    ) -> Self {
        follow(state);
        let state = &*state;
        let mut units = Self::default();
        for queue in state.queues.ids() {
            for holding in holdings(state, queue) {
                let gang = evictable_gang(state, progress, claimant, holding, now_ms);
                let Some((gang, next_ms)) = gang else {
                    continue;
                };
                units.next_ms = [units.next_ms, next_ms].into_iter().flatten().min();
                units.gangs.push(gang);
            }
        }
        units
    }

    /// The answer that there is no plan, as far as these units are known.
    pub(super) fn no_plan(&self, why: Why, is_proved: bool) -> NoPlan {
        let guarded = self.all.iter().find(|unit| unit.is_guarded);
        NoPlan {
            why,
            is_proved,
            next_ms: self.next_ms,
            guarded: guarded.map(|unit| unit.gang),
        }
    }

    /// How many gangs have pods that may be evicted.
    pub(super) fn gang_count(&self) -> usize {
        self.gangs.len()
    }

    /// Whether pods of any gang may leave in a plan of this action, as far as the gang alone
    /// decides.
    pub(super) fn could_leave(&self, action: Action) -> bool {
        let leave = |gang: &EvictableGang| gang.may.leave(action) || gang.surplus_may.leave(action);
        self.gangs.iter().any(leave)
    }

    /// The pods that could leave in a plan of this action and have no other place.
    pub(super) fn could_leave_for_good(&self, action: Action) -> impl Iterator<Item = PodId> {
        let gangs = self.gangs.iter();
        gangs.flat_map(move |gang| gang.could_leave_for_good(action))
    }

    /// What gangs of a queue hold there that could leave in a plan of this action and have no other
    /// place.
    pub(super) fn could_leave_of_queue(
        &self,
        state: &ClusterState,
        action: Action,
        queue: QueueId,
    ) -> Demand {
        let gangs = self
            .gangs
            .iter()
            .filter(|gang| gang.minimum().queue == queue);
        let pods = gangs.flat_map(move |gang| gang.could_leave_for_good(action));
        let mut sum = Demand::default();
        for pod in pods {
            if let Some(account) = state.pods[pod].account() {
                add_demand(&mut sum, &account.demand);
            }
        }
        sum
    }

    /// Looks at the pods of all gangs, unless that was done before. Returns how many units have
    /// been found.
    pub(super) fn build(&mut self, state: &ClusterState, now_ms: UnixMs) -> usize {
        if !self.all.is_empty() {
            return 0;
        }
        // With cached keys, comparing looks at names alone, and not at gangs all over the memory.
        self.gangs.sort_by_cached_key(|gang| {
            let id = gang.minimum().gang;
            (&*state.gangs[id].name, id)
        });
        let priorities = self.gangs.iter();
        self.priorities = priorities
            .map(|gang| Reverse(state.gangs[gang.minimum().gang].spec.priority))
            .collect();
        self.priorities.sort_unstable();
        self.priorities.dedup();
        self.zero = Cost::zero(self.priorities.len());
        let units = self
            .gangs
            .iter()
            .map(|gang| gang.minimum().surplus.len() + 1);
        self.all.reserve_exact(units.sum());
        for gang in &self.gangs {
            add(&mut self.all, state, gang, &self.priorities, now_ms);
        }
        self.all.len()
    }

    /// Marks the units that may leave for an action; `judge` says for what each may be evicted.
    /// Returns whether there are any.
    pub(super) fn choose(&mut self, action: Action, judge: impl FnMut(&Unit, May) -> May) -> bool {
        choose(&mut self.all, action, judge)
    }

    /// Whether any unit may leave for an action, without looking at the pods of all gangs.
    pub(super) fn any_goes(
        &self,
        state: &ClusterState,
        now_ms: UnixMs,
        action: Action,
        mut judge: impl FnMut(&Unit, May) -> May,
    ) -> bool {
        self.gangs.iter().any(|gang| {
            let mut own = Vec::new();
            let priority = Reverse(state.gangs[gang.minimum().gang].spec.priority);
            add(&mut own, state, gang, &[priority], now_ms);
            choose(&mut own, action, &mut judge)
        })
    }
}

fn choose(units: &mut [Unit], action: Action, mut judge: impl FnMut(&Unit, May) -> May) -> bool {
    for unit in units.iter_mut() {
        unit.may = judge(unit, unit.can);
    }
    for index in 0..units.len() {
        let unit = &units[index];
        // A core leaves with its surplus only, which then leaves by the right of the core. So does
        // the minimum of a sub-group.
        let stays = |follower: &usize| !units[*follower].can.leave(action);
        units[index].goes = unit.may.leave(action) && !unit.followers.iter().any(stays);
    }
    for index in 0..units.len() {
        let unit = &units[index];
        let follows = unit.leaders.iter().any(|leader| units[*leader].goes);
        units[index].goes |= follows;
    }
    units.iter().any(|unit| unit.goes)
}

/// For what a unit of a set may be evicted: surplus that leaves with its core for what the core
/// may be.
pub(super) fn right_of(units: &[Unit], set: &[usize], unit: usize) -> May {
    let leader = units[unit].leader_in(set);
    units[leader.unwrap_or(unit)].may
}

/// Adds the units of a gang.
fn add(
    all: &mut Vec<Unit>,
    state: &ClusterState,
    gang: &EvictableGang,
    priorities: &[Reverse<i32>],
    now_ms: UnixMs,
) {
    let first = all.len();
    let priority = Reverse(state.gangs[gang.minimum().gang].spec.priority);
    let place = priorities.binary_search(&priority).unwrap_or_default();
    let count = priorities.len();
    if gang.surplus_may != May::default() || gang.may != May::default() {
        for (place, one) in gang.minimum().surplus.iter().enumerate() {
            let what = What::Surplus(place);
            let mut unit = unit(state, gang, &one.pods, what, count, now_ms);
            unit.leaders = one.leaves_with.iter().map(|place| first + place).collect();
            unit.depth = 1 + unit.leaders.len();
            for leader in &unit.leaders {
                let follower = all.len();
                all[*leader].followers.push(follower);
            }
            all.push(unit);
        }
    }
    if gang.may == May::default() || gang.minimum().core.is_empty() {
        return;
    }
    let surplus: Vec<usize> = (first..all.len()).collect();
    let core = all.len();
    for unit in &surplus {
        all[*unit].leaders.insert(0, core);
    }
    let what = What::Core(place);
    let mut core = unit(state, gang, &gang.minimum().core, what, count, now_ms);
    core.followers = surplus;
    all.push(core);
}

/// A gang with what its pods may be evicted for, and when more of them may be. `None`: none of its
/// pods ever may.
fn evictable_gang(
    state: &ClusterState,
    progress: &ById<GangId, Progress>,
    claimant: Claimant,
    holding: Holding,
    now_ms: UnixMs,
) -> Option<(EvictableGang, Option<UnixMs>)> {
    let (minimum, is_protected) = (&holding.minimum, holding.is_protected);
    let gang = &state.gangs[minimum.gang];
    let runs = may_lose_room(state, progress, minimum.gang);
    // A gang of which a member is on its way to a node, or does not count in the gang's queue, is
    // left alone.
    if minimum.gang == claimant.gang || !gang.spec.preemptible || !runs || !minimum.is_settled {
        return None;
    }
    let queue = minimum.queue;
    let own_queue = queue == claimant.queue;
    let priority = state.gangs[claimant.gang].spec.priority;
    let lower = own_queue && gang.spec.priority < priority && !claimant.is_surplus;
    // Nothing is divided for a queue that is not Ready or has become an inner one, so nothing of
    // its quota would be left for what runs in it.
    let others = !own_queue && state.queues.takes_part(queue);
    let surplus_may = May {
        be_preempted: lower,
        be_reclaimed: others,
        be_moved: !claimant.is_surplus,
        be_moved_for_more: false,
    };
    let from = evictable_from(state, minimum, now_ms);
    let reclaimable = others && !is_protected && !claimant.is_surplus;
    let may = May {
        be_preempted: lower && from.preempt_ms <= now_ms,
        be_reclaimed: reclaimable && from.reclaim_ms <= now_ms,
        be_moved: !claimant.is_surplus && from.move_ms <= now_ms,
        be_moved_for_more: false,
    };
    let is_ahead = |at_ms: UnixMs| at_ms > now_ms && at_ms < NEVER_MS;
    // Pods of a gang that may be moved already are not looked at: there can be very many.
    let waits_to_move =
        is_ahead(from.move_ms) && !claimant.is_surplus && come_back(state, &minimum.core);
    let times_ms = [
        (lower && is_ahead(from.preempt_ms), from.preempt_ms),
        (reclaimable && is_ahead(from.reclaim_ms), from.reclaim_ms),
        (waits_to_move, from.move_ms),
    ];
    let ahead = times_ms.into_iter().filter(|(counts, _)| *counts);
    let next_ms = ahead.map(|(_, at_ms)| at_ms).min();
    let evictable = EvictableGang {
        holding,
        may,
        surplus_may,
    };
    Some((evictable, next_ms))
}

/// Which part of a gang is a unit.
#[derive(Debug, Clone, Copy)]
enum What {
    /// Its minimum; with the place of its priority in [`Units::priorities`].
    Core(usize),
    /// The surplus at a place of [`Minimum::surplus`].
    Surplus(usize),
}

/// The unit of these pods of a gang. `priorities`: how many priorities costs tell apart.
fn unit(
    state: &ClusterState,
    gang: &EvictableGang,
    pods: &[PodId],
    what: What,
    priorities: usize,
    now_ms: UnixMs,
) -> Unit {
    // Most units are one pod on one node, and there can be thousands of units: a vector that grows
    // by itself would begin with room for four nodes.
    let (mut holds, mut frees) = (Demand::new(), Vec::with_capacity(1));
    let mut loss = Loss::default();
    let mut placed = Vec::with_capacity(pods.len());
    for id in pods {
        let pod = &state.pods[*id];
        let class = &state.classes[pod.class];
        if let Some(account) = pod.account() {
            add_demand(&mut holds, &account.demand);
        }
        if let Some(node) = pod.stage.node() {
            // tests plant bugs here: room-of-a-victim
            add_on(&mut frees, node, &class.requests);
            placed.push((*id, node));
        }
        let lost_ms = pod.unsaved_ms(now_ms);
        let cpus = amount_of(&class.requests, ResourceNames::cpu());
        loss.gpu_seconds = loss
            .gpu_seconds
            .saturating_add(class.gpus.saturating_mul(lost_ms) / 1_000);
        loss.cpu_seconds = loss
            .cpu_seconds
            .saturating_add(cpus.saturating_mul(lost_ms) / 1_000_000);
        loss.pods += 1;
        loss.run_seconds += now_ms.saturating_sub(pod.bound_ms(now_ms)) / 1_000;
    }
    let has_weight = !state.queues.is_weightless(gang.minimum().queue, &holds);
    let comes_back = come_back(state, pods);
    let (mut may, broken) = match what {
        What::Core(priority) => (gang.may, Some((priority, has_weight))),
        What::Surplus(place) => (gang.surplus_may(place), None),
    };
    may.be_moved &= comes_back;
    let guards = guards(state, pods);
    let is_kept = |guards: &Vec<Guard>| guards.iter().any(|guard| guard.pods > guard.allows);
    let is_guarded = may != May::default() && guards.as_ref().is_none_or(is_kept);
    if is_guarded {
        may = May::default();
    }
    Unit {
        gang: gang.minimum().gang,
        queue: gang.minimum().queue,
        followers: Vec::new(),
        leaders: Vec::new(),
        depth: 0,
        holds,
        frees,
        cost: Cost::new(priorities, broken, loss),
        can: may,
        may,
        goes: false,
        comes_back,
        guards: guards.unwrap_or_default(),
        is_guarded,
        pods: placed,
    }
}

/// What evicting these pods uses up of disruption budgets. `None`: two budgets select one of the
/// pods, and the API server refuses to evict such a pod. Budgets guard running pods only.
fn guards(state: &ClusterState, pods: &[PodId]) -> Option<Vec<Guard>> {
    let mut guards = Vec::new();
    for pod in pods.iter().filter(|pod| state.pods[**pod].running) {
        let mut budgets = state.budgets_of(*pod);
        let Some(budget) = budgets.next() else {
            continue;
        };
        if budgets.next().is_some() {
            return None;
        }
        let guard = Guard {
            budget: budget.uid,
            pods: 1,
            allows: budget.allowed,
        };
        add_guard(&mut guards, guard);
    }
    Some(guards)
}

/// Counts more pods of a budget.
pub(super) fn add_guard(guards: &mut Vec<Guard>, more: Guard) {
    match guards.iter_mut().find(|guard| guard.budget == more.budget) {
        Some(guard) => guard.pods = guard.pods.saturating_add(more.pods),
        None => guards.push(more),
    }
}

/// What it costs if these units leave. `zero`: no cost, with as many sums.
pub(super) fn cost_of(units: &[Unit], set: &[usize], zero: Cost) -> Cost {
    let mut cost = zero;
    for unit in set {
        cost.add(&units[*unit].cost);
    }
    cost
}

/// Adds amounts to those of a node.
pub(super) fn add_on(sums: &mut Vec<(NodeId, Resources)>, node: NodeId, amounts: &Resources) {
    let Some((_, sum)) = sums.iter_mut().find(|(known, _)| *known == node) else {
        sums.push((node, amounts.clone()));
        return;
    };
    for (resource, amount) in amounts {
        match sum.iter_mut().find(|(known, _)| known == resource) {
            Some((_, total)) => *total = total.saturating_add(*amount),
            None => sum.push((*resource, *amount)),
        }
    }
    sum.sort_unstable_by_key(|(resource, _)| *resource);
}
