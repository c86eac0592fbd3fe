//! One plan, tried: its victims leave, the claimant is placed, and all rules are checked.

use super::rules::{self, Departure};
use super::units::{Claimant, Guard, May, Unit, add_guard, right_of};
use super::{Action, Others, Promised, Why};
use crate::facts::{Amount, Uid, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Refused;
use crate::gangs::{demand, wanted};
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::plan::attempt::{Asker, in_one_slice};
use crate::queues::{ClaimKind, Demand, GovernedId, QueueId, amount_in};
use crate::resources::ResourceNames;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::state::pod::Stage;
use crate::txn::{Checkpoint, Txn};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How much work it is to try a set, for each of its units, in units of about ten nanoseconds.
const DISPLACED_WORK: u64 = 200;
/// How much work is done at a time to see whether units are needed, in units of about ten
/// nanoseconds.
const NEEDED_WORK: u64 = 50_000;

/// The state, in which everything that is leaving has left, and a transaction for what is tried.
#[derive(Debug)]
pub(super) struct WhatIf<'a> {
    pub(super) state: &'a mut ClusterState,
    settings: &'a Settings,
    progress: &'a ById<GangId, Progress>,
    pub(super) claimant: Claimant,
    /// What the claimant asks for next; of a set that was tried, what was placed.
    pub(super) asked: Demand,
    pub(super) now_ms: UnixMs,
    /// The work done, in units of about ten nanoseconds.
    pub(super) work: u64,
    txn: Txn,
    /// Before anything was tried.
    began: Checkpoint,
    /// What the queues above the claimant held before anything was tried.
    before: BTreeMap<(QueueId, GovernedId), Amount>,
    /// What queues give for the takings of other gangs.
    promised: Vec<&'a Promised>,
    /// How many evictions other takings still need of each disruption budget: what the API server
    /// says that the budget allows does not know of them.
    used_up: BTreeMap<Uid, u32>,
}

/// Where pods would stand in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The members of the claimant.
    pub(super) places: Vec<(PodId, NodeId)>,
    /// Victims that have a place again.
    pub(super) moved: Vec<(PodId, NodeId)>,
}

/// Whether each unit of a set is needed, wherever the claimant is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// All units are needed.
    All,
    /// The units before this one are needed; the others have not been looked at yet.
    Before(usize),
    /// There is room without this unit.
    Not(usize),
}

/// Why a set of victims is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: Why,
    /// The claimant has room: a set of more victims would have one that is not needed.
    pub(super) has_room: bool,
    /// The set is no plan, whichever nodes are chosen.
    pub(super) is_proved: bool,
}

impl Failure {
    pub(super) fn of_rule(why: Why, is_proved: bool) -> Self {
        Self {
            why,
            has_room: true,
            is_proved,
        }
    }
}

impl<'a> WhatIf<'a> {
    /// Lets everything leave that is leaving. Takings of later gangs end, so victims of theirs that
    /// were not asked to leave stay.
    pub(super) fn begin(
        state: &'a mut ClusterState,
        settings: &'a Settings,
        progress: &'a ById<GangId, Progress>,
        claimant: Claimant,
        others: &'a Others,
        now_ms: UnixMs,
    ) -> Self {
        let mut txn = Txn::default();
        let began = txn.checkpoint();
        let (gang, queue) = (claimant.gang, claimant.queue);
        let used_up = used_up(state, others);
        for pod in leaving(state, gang, others) {
            txn.end(state, pod);
        }
        state.queues.let_leave(true);
        txn.give_up_own(state, gang);
        for holder in &others.later {
            txn.give_up(state, *holder);
        }
        let asked = wanted::demand_of(state, settings, progress, gang, queue, now_ms);
        let mut before = BTreeMap::new();
        for queue in state.queues.path(queue) {
            for (key, amount) in state.queues.allocated(queue) {
                before.insert((queue, key), amount);
            }
        }
        // A queue that is within its bound already, without the claimant, is not held against any
        // plan of the claimant.
        let promised = others.promised.iter();
        let promised = promised.filter(|promised| state.queues.is_over(&promised.giver));
        let promised = promised.collect();
        Self {
            state,
            settings,
            progress,
            claimant,
            asked,
            now_ms,
            work: 0,
            txn,
            began,
            before,
            promised,
            used_up,
        }
    }

    /// Whether a unit may be moved for any claimant: it is in the claimant's queue, or in one over
    /// its fair share (R11).
    pub(super) fn moves_for_more(&self, unit: &Unit) -> bool {
        let mut held = unit.holds.iter();
        unit.queue == self.claimant.queue || held.any(|(key, _)| self.is_over(unit.queue, *key))
    }

    /// Whether the claimant stands over its fair share.
    fn stands_over_share(&self) -> bool {
        let mut path = self.state.queues.path(self.claimant.queue);
        path.any(|queue| {
            let mut asked = self.asked.iter();
            asked.any(|(key, _)| self.is_over(queue, *key))
        })
    }

    /// Whether a queue stands over its fair share of a resource, of GPUs of all models together.
    fn is_over(&self, queue: QueueId, key: GovernedId) -> bool {
        let queues = &self.state.queues;
        queues.stands_over(queue, queues.plain_of(key), 0, ClaimKind::FairShare)
    }

    /// Whether the claimant's queue may claim room of others: it could be within its bound with the
    /// claimant. `least`: the least that the claimant adds to what the queue holds; `None`: that is
    /// not certain. `leaves`: what other gangs of the queue could give up.
    pub(super) fn may_claim(
        &self,
        kind: ClaimKind,
        least: Option<&Demand>,
        leaves: &Demand,
    ) -> bool {
        let Some(least) = least else { return true };
        let balance = |key| (amount_in(least, key), amount_in(leaves, key));
        let mut keys = least.iter().map(|(key, _)| balance(*key));
        let more = |key| {
            let (asked, left) = balance(key);
            asked.saturating_sub(left)
        };
        let queues = &self.state.queues;
        keys.any(|(asked, left)| left > asked)
            || queues
                .beyond(self.claimant.queue, least, kind, more)
                .is_none()
    }

    /// Whether the queues of a unit hold more than their bounds, in something that the unit holds.
    /// `known`: what was found out for other units, by queue and key.
    pub(super) fn may_give(
        &self,
        unit: &Unit,
        kind: ClaimKind,
        known: &mut BTreeMap<(QueueId, GovernedId), bool>,
    ) -> bool {
        let mut held = unit.holds.iter();
        held.any(|(key, _)| {
            let gives = known.entry((unit.queue, *key));
            *gives.or_insert_with(|| self.queue_gives(unit.queue, *key, kind))
        })
    }

    fn queue_gives(&self, queue: QueueId, key: GovernedId, kind: ClaimKind) -> bool {
        let queues = &self.state.queues;
        let levels = queues.below_common(queue, self.claimant.queue);
        levels.iter().all(|queue| {
            let key = queues.deciding(*queue, queues.plain_of(key), Some(key));
            queues.stands_over(*queue, key, 0, kind)
        })
    }

    /// Undoes everything that was tried. Returns the work done, in units of about ten nanoseconds.
    pub(super) fn finish(mut self) -> u64 {
        self.txn.rollback(self.state, self.began);
        self.state.queues.let_leave(false);
        self.work
    }

    /// Whether these units make a plan.
    ///
    /// # Errors
    /// The first rule that they break.
    pub(super) fn try_set(
        &mut self,
        units: &[Unit],
        set: &[usize],
        action: Action,
    ) -> Result<End, Failure> {
        let start = self.txn.checkpoint();
        let tried = self.attempt_set(units, set, action);
        self.txn.rollback(self.state, start);
        tried
    }

    /// The units of a set that still have to leave if the claimant takes the places that it is
    /// given when all of the set leave: the dearest units that need not leave stay.
    ///
    /// # Errors
    /// Why there is no room even if all of them leave, and whether that is proved.
    pub(super) fn trimmed(
        &mut self,
        units: &[Unit],
        set: &[usize],
    ) -> Result<Vec<usize>, (Refused, bool)> {
        let start = self.txn.checkpoint();
        self.displace(units, set);
        let placed = self.place(self.claimant.gang, self.claimant.queue);
        let left = placed.map(|()| {
            let mut by_cost: Vec<usize> = set.to_vec();
            // A unit comes after its leaders.
            by_cost.sort_by(|one, other| {
                let (one, other) = (&units[*one], &units[*other]);
                let by_depth = one.depth.cmp(&other.depth);
                by_depth.then_with(|| other.cost.cmp(&one.cost))
            });
            let mut kept = BTreeSet::new();
            for unit in by_cost {
                let follows = units[unit]
                    .leaders
                    .iter()
                    .any(|leader| kept.contains(leader));
                if follows || !rules::fits_back(self.state, &units[unit]) {
                    kept.insert(unit);
                    continue;
                }
                for (pod, node) in &units[unit].pods {
                    let placement = self.settings.cpu_placement;
                    self.txn.place(self.state, *pod, *node, placement);
                }
            }
            kept.into_iter().collect()
        });
        self.txn.rollback(self.state, start);
        left
    }

    /// Looks whether each unit of a set is needed, from the position `from` on, for a while.
    pub(super) fn needed(&mut self, units: &[Unit], set: &[usize], from: usize) -> Needed {
        let start = self.txn.checkpoint();
        let work_end = self.work + NEEDED_WORK + DISPLACED_WORK * set.len() as u64;
        self.displace(units, set);
        let mut needed = Needed::All;
        for (at, unit) in set.iter().enumerate().skip(from) {
            if self.work > work_end {
                needed = Needed::Before(at);
                break;
            }
            if !follows(units, set, *unit) && self.has_room_with(&units[*unit]) {
                needed = Needed::Not(at);
                break;
            }
        }
        self.txn.rollback(self.state, start);
        needed
    }

    /// Whether the claimant finds room while a displaced unit is back where it was. A unit that
    /// could not be placed there today, because its node has shrunk, say, is never back.
    fn has_room_with(&mut self, unit: &Unit) -> bool {
        if !rules::fits_back(self.state, unit) {
            return false;
        }
        let start = self.txn.checkpoint();
        for (pod, node) in &unit.pods {
            let placement = self.settings.cpu_placement;
            self.txn.place(self.state, *pod, *node, placement);
        }
        let has_room = self.place(self.claimant.gang, self.claimant.queue).is_ok();
        self.txn.rollback(self.state, start);
        has_room
    }

    /// What `look` sees where all units of a set have left.
    pub(super) fn without<T>(
        &mut self,
        units: &[Unit],
        set: &[usize],
        look: impl FnOnce(&mut ClusterState) -> T,
    ) -> T {
        let start = self.txn.checkpoint();
        self.displace(units, set);
        let seen = look(self.state);
        self.txn.rollback(self.state, start);
        seen
    }

    fn displace(&mut self, units: &[Unit], set: &[usize]) {
        for unit in set {
            for (pod, _) in &units[*unit].pods {
                self.txn.displace(self.state, *pod);
            }
        }
        self.work += DISPLACED_WORK * set.len() as u64;
    }

    fn attempt_set(
        &mut self,
        units: &[Unit],
        set: &[usize],
        action: Action,
    ) -> Result<End, Failure> {
        let mut guards: Vec<Guard> = Vec::new();
        for guard in set.iter().flat_map(|unit| &units[*unit].guards) {
            add_guard(&mut guards, *guard);
        }
        let exceeds = |guard: &&Guard| {
            let used_up = self.used_up.get(&guard.budget).copied().unwrap_or(0);
            guard.pods.saturating_add(used_up) > guard.allows
        };
        if let Some(guard) = guards.iter().find(exceeds) {
            return Err(Failure::of_rule(Why::Budget(guard.budget), true));
        }
        self.displace(units, set);
        let start = self.txn.checkpoint();
        if let Err((refused, is_proved)) = self.place(self.claimant.gang, self.claimant.queue) {
            return Err(Failure {
                why: Why::Room(refused),
                has_room: false,
                is_proved,
            });
        }
        let places = self.txn.placed_since(start).to_vec();
        // A gang with more members than it needs may have begun with other members than the
        // first.
        let placed = places.iter().map(|(pod, _)| pod);
        self.asked = demand::demand_of_pods(self.state, placed);
        if action.needs_all() && set.iter().any(|unit| self.is_unneeded(units, set, *unit)) {
            return Err(Failure::of_rule(Why::Unneeded, true));
        }
        let gpus: Amount = places.iter().map(|(pod, _)| self.gpus_of(*pod)).sum();
        // Until victims that move have been made anew, their queues hold less.
        self.keeps_promises()?;
        if action != Action::Consolidate {
            match self.check(units, set, action, gpus) {
                Ok(()) => {
                    let moved = Vec::new();
                    return Ok(End { places, moved });
                }
                // Victims that come back make queues hold more, never less.
                Err(failure) if matches!(failure.why, Why::Outgrows(_)) => return Err(failure),
                Err(failure)
                    if matches!(failure.why, Why::Claims(_))
                        && failure.is_proved
                        && matches!(action, Action::Reclaim(_)) =>
                {
                    return Err(failure);
                }
                // Victims that find another place count as held.
                Err(_) => {}
            }
        }
        let start = self.txn.checkpoint();
        let certain = !self.may_return(units, set);
        if !certain {
            self.place_again(units, set);
        }
        let moved = self.txn.placed_since(start).to_vec();
        self.check(units, set, action, gpus)
            .map_err(|mut failure| {
                failure.is_proved &= certain;
                failure
            })?;
        Ok(End { places, moved })
    }

    fn gpus_of(&self, pod: PodId) -> Amount {
        self.state.classes[self.state.pods[pod].class].gpus
    }

    /// Places what a gang wants next.
    ///
    /// # Errors
    /// Why there is no place, and whether that is proved.
    fn place(&mut self, gang: GangId, queue: QueueId) -> Result<(), (Refused, bool)> {
        let counts = count(self.state, gang, self.now_ms);
        if counts.short {
            // Members are missing that would have to start with the others.
            return Err((Refused::without_choice(), false));
        }
        let asker = Asker {
            settings: self.settings,
            progress: self.progress,
            gang,
            queue,
            counts,
            now_ms: self.now_ms,
        };
        let tried = in_one_slice(self.state, &mut self.txn, asker, &mut self.work);
        tried.map_err(|(refused, _)| {
            let by_nodes = refused.by_nodes.as_ref();
            let is_proved = by_nodes.is_none_or(|refusal| refusal.is_proved());
            (refused, is_proved)
        })
    }

    /// Whether the claimant would have its room, and stay under all limits, with this unit back
    /// where it was.
    fn is_unneeded(&self, units: &[Unit], set: &[usize], unit: usize) -> bool {
        !follows(units, set, unit) && rules::fits_back(self.state, &units[unit])
    }

    /// Whether any victim could find another place, if the claimant took other nodes: there are as
    /// many GPUs free in all as the victim needs.
    fn may_return(&self, units: &[Unit], set: &[usize]) -> bool {
        let nodes = self.state.nodes.iter();
        let free = nodes.map(|(_, node)| u128::from(node.free(ResourceNames::gpu())));
        let free: u128 = free.sum();
        set.iter().map(|unit| &units[*unit]).any(|unit| {
            let pods = unit.pods.iter();
            let gpus: u128 = pods.map(|(pod, _)| u128::from(self.gpus_of(*pod))).sum();
            unit.comes_back && gpus <= free
        })
    }

    /// Gives victims places again, the dearest gangs first, as far as there is room.
    fn place_again(&mut self, units: &[Unit], set: &[usize]) {
        let mut by_gang: BTreeMap<GangId, Vec<usize>> = BTreeMap::new();
        for unit in set {
            by_gang.entry(units[*unit].gang).or_default().push(*unit);
        }
        let mut gangs: Vec<Vec<usize>> = by_gang.into_values().collect();
        gangs.retain(|own| own.iter().all(|unit| units[*unit].comes_back));
        // Units are in the order of the names of gangs.
        gangs.sort_by(|one, other| {
            let by_cost = units[other[0]].cost.cmp(&units[one[0]].cost);
            by_cost.then(one[0].cmp(&other[0]))
        });
        for own in gangs {
            let first = &units[own[0]];
            while self.waits_again(units, &own) && self.place(first.gang, first.queue).is_ok() {}
        }
    }

    /// Whether a pod of these units has no place.
    fn waits_again(&self, units: &[Unit], own: &[usize]) -> bool {
        let mut pods = own.iter().flat_map(|unit| &units[*unit].pods);
        pods.any(|(pod, _)| self.state.pods[*pod].stage == Stage::Waiting)
    }

    fn check(
        &self,
        units: &[Unit],
        set: &[usize],
        action: Action,
        gpus: Amount,
    ) -> Result<(), Failure> {
        let waits = |(pod, _): &(PodId, NodeId)| self.state.pods[*pod].stage == Stage::Waiting;
        let has_left = |unit: &&usize| units[**unit].pods.iter().any(waits);
        let (gone, back): (Vec<usize>, Vec<usize>) =
            set.iter().copied().partition(|unit| has_left(&unit));
        let back = back.into_iter();
        let back = back.map(|unit| (&units[unit], right_of(units, set, unit)));
        let back: Vec<(&Unit, May)> = back.collect();
        let only_moves = |(_, may): &&(&Unit, May)| match action {
            Action::Consolidate => true,
            _ => !(may.be_preempted || may.be_reclaimed),
        };
        let moved = back.iter().filter(only_moves);
        let pods = moved.flat_map(|(unit, _)| &unit.pods);
        let moved_gpus: Amount = pods.map(|(pod, _)| self.gpus_of(*pod)).sum();
        if moved_gpus > gpus.saturating_mul(self.settings.moved_gpus_max) {
            return Err(Failure::of_rule(Why::MovesTooMuch, false));
        }
        let stands_over = self.stands_over_share();
        let moves = |may: &May| may.be_moved && (!stands_over || may.be_moved_for_more);
        let claimed_back = back.iter().filter(|(_, may)| match action {
            Action::Mixed(_) => !(may.be_preempted || moves(may)),
            _ => true,
        });
        let claims = |kind| {
            let back = claimed_back.map(|(unit, may)| (unit.queue, *may));
            let back: Vec<(QueueId, May)> = back.collect();
            let gone = Departure::of(units, &gone);
            rules::claims_are_met(
                self.state,
                self.claimant.queue,
                &self.asked,
                (&gone, &back),
                kind,
            )
            .map_err(|(why, is_proved)| Failure::of_rule(why, is_proved))
        };
        match action {
            Action::Free => Ok(()),
            Action::Consolidate if !gone.is_empty() => {
                Err(Failure::of_rule(Why::NoOtherPlace, true))
            }
            Action::Consolidate if back.iter().all(|(_, may)| moves(may)) => Ok(()),
            Action::Consolidate => Err(Failure::of_rule(Why::Claims(self.claimant.queue), true)),
            Action::Reclaim(kind) => claims(kind),
            Action::Mixed(kind) => {
                claims(kind)?;
                self.keeps_share()
            }
            Action::Preempt => self.keeps_share(),
        }
    }

    /// Whether every queue that gives for the taking of another gang stays over its bound, so that
    /// this plan does not end that taking.
    fn keeps_promises(&self) -> Result<(), Failure> {
        let queues = &self.state.queues;
        let mut promised = self.promised.iter();
        let Some(Promised { giver, to }) = promised.find(|it| !queues.is_over(&it.giver)) else {
            return Ok(());
        };
        // What a queue holds of a GPU model may depend on the nodes of the claimant.
        let mut keys = giver.largest.iter().map(|(key, _)| *key);
        let is_proved = keys.all(|key| queues.plain_of(key) == key);
        let why = Why::Promised(giver.queue, *to);
        Err(Failure::of_rule(why, is_proved))
    }

    /// Whether no queue above the claimant grows beyond its fair share (R15).
    fn keeps_share(&self) -> Result<(), Failure> {
        let queues = &self.state.queues;
        for queue in queues.path(self.claimant.queue) {
            let before = |key| self.before.get(&(queue, key)).copied().unwrap_or(0);
            // tests plant bugs here: fair-share-of-a-preemptor
            if queues
                .grown_beyond_share(queue, &self.asked, before)
                .is_some()
            {
                return Err(Failure::of_rule(Why::Outgrows(queue), true));
            }
        }
        Ok(())
    }
}

/// Whether a unit leaves because the minimum of its gang or sub-group does: it is surplus.
pub(super) fn follows(units: &[Unit], set: &[usize], unit: usize) -> bool {
    units[unit].leader_in(set).is_some()
}

/// How many pods of each disruption budget are to be evicted for takings that go on, as far as the
/// API server has not let them go yet.
fn used_up(state: &ClusterState, others: &Others) -> BTreeMap<Uid, u32> {
    let mut used_up = BTreeMap::new();
    if !state.has_budgets() {
        return used_up;
    }
    let to_come = state.holds.leaving().filter(|id| {
        let pod = &state.pods[*id];
        pod.running && !pod.deleting && !others.unsent.contains(id)
    });
    for budget in to_come.flat_map(|id| state.budgets_of(id)) {
        *used_up.entry(budget.uid).or_insert(0) += 1;
    }
    used_up
}

/// The leaving pods that have to end, so that all room is free that is coming. A pod that leaves
/// for a hold of others frees nothing for the claimant, so it may stay; there can be thousands of
/// such pods. All leaving pods have to end where holds are given up, or if the claimant itself
/// loses members.
fn leaving(state: &ClusterState, gang: GangId, others: &Others) -> Vec<PodId> {
    let priority = state.gangs[gang].spec.priority;
    let members = &state.gangs[gang].members;
    let owner_holds = |pod: &PodId| {
        let owner = state.pods[*pod].owner();
        owner.is_some_and(|owner| state.holds.get(Holder::Owner(owner.uid)).is_some())
    };
    let gives_up = !others.later.is_empty()
        || state.holds.get(Holder::Gang(gang)).is_some()
        || state.holds.foreign_below(priority).next().is_some()
        || members.iter().any(owner_holds);
    let mut leaving: Vec<PodId> =
        match gives_up || members.iter().any(|pod| state.pods[*pod].leaving) {
            true => {
                let stays = |pod: &PodId| others.unsent.contains(pod);
                state.holds.leaving().filter(|pod| !stays(pod)).collect()
            }
            false => {
                let nodes = state.holds.outgoing();
                let pods = nodes.flat_map(|node| &state.nodes[node].pods).copied();
                pods.filter(|pod| state.pods[*pod].leaving).collect()
            }
        };
    leaving.sort_unstable_by_key(|id| state.pods[*id].uid);
    leaving
}
