//! Within phase 4: refused gangs take room from others. What becomes of their plans is in
//! [`takings`](super::takings).

use crate::bind::givers::Givers;
use crate::bind::takings::{Taking, Victim};
use crate::command::EvictionCause;
use crate::engine::Engine;
use crate::facts::{Uid, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::request;
use crate::ids::{GangId, NodeId, PodId};
use crate::plan::turn::SLICE_WORK;
use crate::plan::victims::{Action, Asked, Others, Plan, Promised};
use crate::plan::waiting::Awaited;
use crate::queues::{ClaimKind, QueueId};
use crate::state::ClusterState;
use crate::state::holds::{Hold, Holder};
use crate::tell::taken;
use crate::txn::Txn;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

impl Engine {
    /// Lets refused gangs make eviction plans, until none is left or the slice is used up. Returns
    /// whether the slice was used up.
    pub(super) fn claim(&mut self, now_ms: UnixMs) -> bool {
        if self.settings.evictions.in_flight == 0 {
            return false;
        }
        let mut work = 0;
        while work < SLICE_WORK {
            let (state, settings, progress) = (&mut self.state, &self.settings, &self.progress);
            let next = self.planner.next_claim(state, settings, progress, now_ms);
            let Some((queue, gang)) = next else {
                return false;
            };
            let (mut searched, mut begun) = (100, 0);
            self.in_hand(gang, |engine| {
                begun = engine.consider(queue, gang, now_ms, &mut searched);
            });
            // A plan that was found is not put off: only searching makes the round pause.
            work += searched + begun;
            if self.planner.charge_claim(searched, now_ms) {
                continue;
            }
            let (state, settings, progress) = (&mut self.state, &self.settings, &self.progress);
            self.planner
                .advance_claims(state, settings, progress, queue, now_ms);
        }
        true
    }

    /// Looks for a plan for a gang, and begins to carry it out. `searched` grows by the work of
    /// looking; returns that of beginning.
    fn consider(
        &mut self,
        queue: QueueId,
        gang: GangId,
        now_ms: UnixMs,
        searched: &mut u64,
    ) -> u64 {
        let others = self.others(queue, gang);
        let asked = Asked {
            settings: &self.settings,
            progress: &self.progress,
            gang,
            queue,
            others: &others,
            now_ms,
            slice_work: SLICE_WORK,
        };
        let found = self.planner.find_victims(&mut self.state, &asked, searched);
        let Some(found) = found else {
            return 0;
        };
        let mut begun = 0;
        let was_delayed = self.planner.end_delay(gang);
        match found {
            Err(no_plan) => self
                .planner
                .note_no_plan(&self.state, queue, gang, &no_plan),
            Ok(plan) => {
                let (state, settings) = (&self.state, &self.settings);
                let planner = &mut self.planner;
                if !planner.delay_plan(state, settings, gang, &plan, now_ms) {
                    begun = TAKING_WORK * (plan.evict.len() + plan.places.len()) as u64;
                    self.begin_taking((queue, gang), &plan, &others.later, now_ms);
                }
            }
        }
        let claim = &self.planner.waiting()[gang].claim;
        if claim.delayed_until_ms != was_delayed || claim.awaited.is_some() {
            self.report_anew(gang, now_ms);
        }
        begun
    }

    /// The takings of other gangs than this one.
    pub(super) fn others(&mut self, queue: QueueId, gang: GangId) -> Others {
        let (state, settings) = (&mut self.state, &self.settings);
        self.binder.takings.renew_givers(state, false);
        let later = self
            .planner
            .holders_after(state, settings, &self.progress, (queue, gang));
        let unsent = later.iter().flat_map(|holder| self.unsent_victims(*holder));
        let unsent = unsent.collect();
        let ending: BTreeSet<Holder> = later.iter().copied().collect();
        let stays = |to| to != gang && !ending.contains(&Holder::Gang(to));
        let givers = self.binder.takings.givers(stays);
        let promised = givers.map(|(giver, to)| {
            let giver = giver.clone();
            Promised { giver, to }
        });
        Others {
            promised: promised.collect(),
            later,
            unsent,
        }
    }

    /// The victims of a taking that were not asked to leave yet.
    fn unsent_victims(&self, holder: Holder) -> impl Iterator<Item = PodId> {
        let taking = match holder {
            Holder::Gang(gang) => self.binder.takings.get(gang),
            Holder::Owner(_) | Holder::Foreign(..) => None,
        };
        let victims = taking.into_iter().flat_map(|taking| &taking.victims);
        victims.filter_map(|victim| self.state.pod_ids.get(&victim.uid).copied())
    }

    /// Begins to carry out a plan: its victims count as leaving, and its room is held. `later`: the
    /// gangs with takings that come after this one.
    fn begin_taking(
        &mut self,
        (queue, gang): (QueueId, GangId),
        plan: &Plan,
        later: &[Holder],
        now_ms: UnixMs,
    ) {
        self.displace_rivals(later, plan, now_ms);
        let state = &mut self.state;
        let victims: VecDeque<Victim> = victims_of(state, plan, queue, gang, now_ms);
        let mut awaited: Vec<PodId> = plan.evict.clone();
        let on_nodes: BTreeSet<NodeId> = plan.places.iter().map(|(_, node)| *node).collect();
        let on_nodes_now = on_nodes.iter().flat_map(|node| &state.nodes[*node].pods);
        awaited.extend(on_nodes_now.filter(|pod| state.pods[**pod].leaving));
        let name = |pod: &PodId| (&state.pods[*pod].namespace, &state.pods[*pod].name);
        awaited.sort_by(|one, other| name(one).cmp(&name(other)));
        let awaited = awaited.into_iter().map(|pod| state.pods[pod].uid);
        let awaited = awaited.collect();
        let mut losers: BTreeSet<GangId> = BTreeSet::new();
        for pod in &plan.evict {
            state.set_leaving(*pod, true);
            losers.extend(state.pods[*pod].gang());
        }
        let hold = hold_of(state, queue, gang, plan);
        for (pod, node) in &plan.places {
            state.take_place_of_owner(*pod, *node);
        }
        state.begin_hold(hold);
        let nominate = plan.places.iter().map(|(pod, node)| {
            let node = state.nodes[*node].name.clone();
            (state.pods[*pod].uid, node)
        });
        let givers = givers_of(state, plan, queue, gang);
        let taking = Taking {
            givers,
            asks: request::asks(state, gang),
            claim: plan.action.claims(),
            is_optimal: plan.is_optimal(),
            to_nominate: nominate.collect(),
            nominated: BTreeSet::new(),
            asked: BTreeMap::new(),
            victims,
            under_way: BTreeMap::new(),
            paused_until_ms: 0,
        };
        self.binder.begin_taking(gang, taking);
        for loser in losers {
            self.planner.note_loss(loser, now_ms);
            self.state.touched.insert(loser);
        }
        let awaited = Awaited {
            since_ms: now_ms,
            pods: awaited,
        };
        self.planner.note_begun_plan(gang, plan.action, awaited);
        self.hold_for_movers(queue, gang, plan, now_ms);
        self.displace_later(later, &on_nodes, now_ms);
        self.displace_unfounded(later, now_ms);
    }

    /// Keeps the places of gangs that only move for the pods that their controllers make anew.
    /// Victims of another right wait for their turn.
    fn hold_for_movers(&mut self, queue: QueueId, gang: GangId, plan: &Plan, now_ms: UnixMs) {
        let mut by_owner: BTreeMap<Uid, Hold> = BTreeMap::new();
        for (pod, node) in &plan.moved {
            let cause = cause_of(&self.state, plan, *pod, queue, gang);
            if cause != EvictionCause::Consolidate {
                continue;
            }
            let record = &self.state.pods[*pod];
            let (Some(owner), Some(account)) = (record.owner(), record.account()) else {
                continue;
            };
            let hold = by_owner.entry(owner.uid).or_insert_with(|| {
                let to = Some((account.queue, account.preemptible));
                Hold::new(Holder::Owner(owner.uid), to, Vec::new())
            });
            hold.places.push((record.class, *node));
        }
        for (owner, hold) in by_owner {
            self.state.end_hold(hold.holder);
            self.state.begin_hold(hold);
            self.state
                .holds
                .end_at(owner, now_ms.saturating_add(MOVERS_MS));
        }
    }

    /// Ends the takings of gangs that come later and whose room a plan has taken: they are planned
    /// anew at once.
    fn displace_later(&mut self, later: &[Holder], nodes: &BTreeSet<NodeId>, now_ms: UnixMs) {
        for node in nodes {
            while !self.state.nodes[*node].keeps_holds() {
                let on_node: Vec<Holder> = self.state.holds.on_node(*node).collect();
                let last = later.iter().find(|holder| on_node.contains(holder));
                let Some(Holder::Gang(last)) = last else {
                    break;
                };
                self.displace(*last, now_ms);
            }
        }
    }

    /// Ends the takings of gangs that come later and were to evict a victim of a plan, too: no pod
    /// is evicted for two gangs.
    fn displace_rivals(&mut self, later: &[Holder], plan: &Plan, now_ms: UnixMs) {
        if plan.evict.is_empty() {
            return;
        }
        for holder in later {
            let mut unsent = self.unsent_victims(*holder);
            if let Holder::Gang(rival) = holder
                && unsent.any(|victim| plan.evict.contains(&victim))
            {
                drop(unsent);
                self.displace(*rival, now_ms);
            }
        }
    }

    /// Ends the takings of gangs that come later and for which, after a plan, a queue would give
    /// what is its own.
    fn displace_unfounded(&mut self, later: &[Holder], now_ms: UnixMs) {
        for holder in later {
            if let Holder::Gang(gang) = holder
                && let Some(taking) = self.binder.takings.get(*gang)
                && let Some(givers) = &taking.givers
                && givers.gives_no_more(&self.state).is_some()
            {
                self.displace(*gang, now_ms);
            }
        }
    }

    /// Reads for whom the last leader was making room: the nominations of members that wait.
    pub(super) fn adopt_nominations(&mut self) {
        for gang in self.state.gangs.ids() {
            let Some((queue, _)) = self.planner.waiting()[gang].place else {
                continue;
            };
            let counts = count(&self.state, gang, self.now_ms);
            let places = nominations(&self.state, gang);
            if places.is_empty() || places.len() < counts.needed as usize {
                continue;
            }
            let plan = Plan::of_nominations(places);
            // If a victim was not evicted yet, the gang is planned anew.
            if self.is_coming(queue, gang, &plan) {
                let others = self.others(queue, gang);
                self.begin_taking((queue, gang), &plan, &others.later, self.now_ms);
            }
        }
        self.planner.note_chance_to_claim();
    }

    /// Whether the room of a plan is free, or is being left.
    fn is_coming(&mut self, queue: QueueId, gang: GangId, plan: &Plan) -> bool {
        let state = &mut self.state;
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        let hold = hold_of(state, queue, gang, plan);
        txn.hold(state, hold);
        let mut places = plan.places.iter();
        let is_coming = places.all(|(_, node)| state.nodes[*node].keeps_holds());
        txn.rollback(state, start);
        is_coming
    }
}

/// How much work it is to begin a taking, for each victim and each place, in units of about ten
/// nanoseconds.
const TAKING_WORK: u64 = 500;

/// How long the place of a pod that moves is kept for the pod that its controller makes anew.
const MOVERS_MS: u64 = 5 * 60_000;

/// The hold for the places of a plan.
fn hold_of(state: &ClusterState, queue: QueueId, gang: GangId, plan: &Plan) -> Hold {
    let rooms = plan.places.iter();
    let rooms = rooms.map(|(pod, node)| (state.pods[*pod].class, *node));
    let preemptible = state.gangs[gang].spec.preemptible;
    let victims = plan.evict.iter().map(|pod| state.pods[*pod].uid);
    Hold {
        victims: victims.collect(),
        ..Hold::new(
            Holder::Gang(gang),
            Some((queue, preemptible)),
            rooms.collect(),
        )
    }
}

/// The members that wait and are nominated to a node that exists.
fn nominations(state: &ClusterState, gang: GangId) -> Vec<(PodId, NodeId)> {
    let members = state.gangs[gang].members.iter();
    let nominated = members.filter_map(|pod| {
        let record = &state.pods[*pod];
        let node = record.own.as_ref()?.nominated.as_deref()?;
        let node = *state.node_ids.get(node)?;
        state.nodes[node].known.as_ref()?;
        record.could_be_placed().then_some((*pod, node))
    });
    nominated.collect()
}

/// By which right a pod is evicted for a gang of a queue.
fn cause_of(
    state: &ClusterState,
    plan: &Plan,
    id: PodId,
    queue: QueueId,
    gang: GangId,
) -> EvictionCause {
    let pod = &state.pods[id];
    let has_a_place = || plan.moved.iter().any(|(moved, _)| *moved == id);
    let own_queue = pod.account().is_some_and(|account| account.queue == queue);
    let priority = |gang: GangId| state.gangs[gang].spec.priority;
    let is_lower = || pod.gang().is_some_and(|of| priority(of) < priority(gang));
    match plan.action {
        Action::Consolidate | Action::Free => EvictionCause::Consolidate,
        Action::Reclaim(_) => EvictionCause::Reclaim,
        Action::Preempt => EvictionCause::Preempt,
        Action::Mixed(_) if !own_queue && has_a_place() => EvictionCause::Consolidate,
        Action::Mixed(_) if !own_queue => EvictionCause::Reclaim,
        Action::Mixed(_) if is_lower() => EvictionCause::Preempt,
        Action::Mixed(_) => EvictionCause::Consolidate,
    }
}

/// The queues from which a plan reclaims.
fn givers_of(state: &ClusterState, plan: &Plan, queue: QueueId, gang: GangId) -> Option<Givers> {
    let is_reclaimed =
        |pod: &PodId| cause_of(state, plan, *pod, queue, gang) == EvictionCause::Reclaim;
    let reclaimed = plan.evict.iter().copied().filter(is_reclaimed);
    Some(Givers::of(state, queue, reclaimed, plan.action.claims()?))
}

/// The victims of a plan, those under a disruption budget first: if one of them is refused, fewer
/// have left for nothing.
fn victims_of(
    state: &ClusterState,
    plan: &Plan,
    queue: QueueId,
    gang: GangId,
    now_ms: UnixMs,
) -> VecDeque<Victim> {
    let mut of_gangs: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
    for id in &plan.evict {
        if let Some(of) = state.pods[*id].gang() {
            of_gangs.entry(of).or_default().push(*id);
        }
    }
    let mut claims: BTreeMap<_, String> = BTreeMap::new();
    let mut victims: Vec<(bool, Victim)> = Vec::new();
    for id in &plan.evict {
        let pod = &state.pods[*id];
        let cause = cause_of(state, plan, *id, queue, gang);
        let kind = plan.action.claims().unwrap_or(ClaimKind::Quota);
        let from = pod.account().map(|account| account.queue);
        let claim = claims.entry((from, cause));
        let claim = claim.or_insert_with(|| taken::claim(state, from, gang, (cause, kind)));
        // The first of a gang's victims tells it of all.
        let of_gang = pod.gang().and_then(|of| {
            let pods = of_gangs.remove(&of)?;
            state.gangs[of].object.as_ref()?;
            let object = state.object_of(&state.gangs[of])?;
            Some((object, taken::why_all(state, &pods, claim, now_ms).into()))
        });
        let victim = Victim {
            uid: pod.uid,
            cause,
            message: taken::why(state, *id, claim, now_ms).into(),
            of_gang,
        };
        victims.push((state.budgets_of(*id).next().is_none(), victim));
    }
    victims.sort_by_key(|(is_free, _)| *is_free);
    victims.into_iter().map(|(_, victim)| victim).collect()
}
