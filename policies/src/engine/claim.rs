//! Within phase 4: refused gangs take room from others. What becomes of the plans of these gangs is
//! in [`takings`](super::takings).

use crate::bind::takings::Taking;
use crate::engine::Engine;
use crate::engine::chosen::{Chosen, nominated};
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::request;
use crate::ids::{GangId, PodId};
use crate::plan::SLICE_WORK;
use crate::plan::victims::{Asked, Others, Plan, Promised};
use crate::plan::waiting::Awaited;
use crate::queues::QueueId;
use crate::state::holds::Holder;
use crate::txn::Txn;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

impl Engine {
    /// Lets refused gangs make eviction plans, until none is left or the slice is used up. Returns
    /// whether the slice was used up.
    pub(super) fn take_claims(&mut self, now_ms: UnixMs) -> bool {
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
    /// looking. Returns the work of beginning. Both in units of about ten nanoseconds.
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
            Err(no_plan) => {
                self.planner
                    .note_no_plan(&self.state, queue, gang, &no_plan);
                if was_delayed.is_some() {
                    let (state, settings) = (&mut self.state, &self.settings);
                    self.planner
                        .offer_promise(state, settings, &self.progress, gang);
                }
            }
            Ok(plan) => {
                let plan = &plan;
                let chosen = Chosen { plan, queue, gang };
                begun = self.take_up(chosen, &others.later, now_ms);
            }
        }
        let claim = &self.planner.waiting()[gang].claim;
        if claim.delayed_until_ms != was_delayed || claim.awaited.is_some() {
            let counts = count(&self.state, gang, now_ms);
            self.report_anew(gang, &counts);
        }
        begun
    }

    /// Begins to carry out a plan that was found, or puts it off. Returns the work of beginning, in
    /// units of about ten nanoseconds.
    fn take_up(&mut self, chosen: Chosen<'_>, later: &[Holder], now_ms: UnixMs) -> u64 {
        let Chosen { plan, gang, .. } = chosen;
        let needs_nobody = self.is_room_there_already(chosen);
        let (state, settings) = (&mut self.state, &self.settings);
        let planner = &mut self.planner;
        if needs_nobody {
            // If promises keep the gang from starting on free room, a hold would end the gang's own
            // promise for nothing.
            planner.pause_claim(gang, settings.retry_after_ms, now_ms);
            planner.wake(state, settings, &self.progress, gang);
            return 0;
        }
        if planner.delay_plan(state, settings, gang, plan, now_ms) {
            planner.end_promise_in_vain(state, settings, &self.progress, gang);
            return 0;
        }
        self.begin_taking(chosen, later, now_ms);
        TAKING_WORK * (plan.evict.len() + plan.places.len()) as u64
    }

    /// What the takings of other gangs mean for a gang of a queue.
    pub(super) fn others(&mut self, queue: QueueId, gang: GangId) -> Others {
        let (state, settings) = (&mut self.state, &self.settings);
        self.binder.renew_givers(state, false);
        let later = self
            .planner
            .holders_after(state, settings, &self.progress, (queue, gang));
        let unsent = later.iter().flat_map(|holder| self.unsent(*holder));
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

    /// The pods that were not asked to leave yet for the taking of a holder.
    fn unsent(&self, holder: Holder) -> impl Iterator<Item = PodId> {
        let taking = match holder {
            Holder::Gang(gang) => self.binder.takings.get(gang),
            Holder::Owner(_) | Holder::Foreign(..) => None,
        };
        let evictions = taking.into_iter().flat_map(|taking| &taking.to_evict);
        evictions.filter_map(|eviction| self.state.pod_ids.get(&eviction.uid).copied())
    }

    /// Begins to carry out a plan: its pods count as leaving, and its room is held. `later`: the
    /// gangs with takings that come after the plan's gang.
    fn begin_taking(&mut self, chosen: Chosen<'_>, later: &[Holder], now_ms: UnixMs) {
        let Chosen { plan, gang, .. } = chosen;
        self.displace_rivals(later, chosen, now_ms);
        let state = &mut self.state;
        let to_evict = chosen.evictions(state, now_ms);
        let awaited = chosen.awaited(state);
        let mut losers: BTreeSet<GangId> = BTreeSet::new();
        for pod in &plan.evict {
            state.set_leaving(*pod, true);
            losers.extend(state.pods[*pod].gang());
        }
        let hold = chosen.hold(state);
        for (pod, node) in &plan.places {
            state.take_place_of_owner(*pod, *node);
        }
        state.begin_hold(hold);
        for (pod, node) in &plan.places {
            state.yield_place_of_owner(*pod, *node);
        }
        let taking = Taking {
            givers: chosen.givers(state),
            asks: request::asks(state, gang),
            claim: plan.action.claims(),
            is_optimal: plan.is_optimal(),
            to_nominate: chosen.nominations(state),
            nominated: BTreeSet::new(),
            asked: BTreeMap::new(),
            to_evict,
            under_way: BTreeMap::new(),
            has_evicted: false,
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
        let (state, settings) = (&mut self.state, &self.settings);
        self.planner
            .end_promise(state, settings, &self.progress, gang);
        self.hold_for_movers(chosen, now_ms);
        self.displace_later(later, chosen, now_ms);
        self.displace_unfounded(later, gang, now_ms);
    }

    /// Holds the places of gangs that only move for the pods that their controllers make anew.
    fn hold_for_movers(&mut self, chosen: Chosen<'_>, now_ms: UnixMs) {
        for (owner, hold) in chosen.holds_for_movers(&self.state) {
            self.state.end_hold(hold.holder);
            self.state.begin_hold(hold);
            self.state
                .holds
                .end_at(owner, now_ms.saturating_add(MOVERS_MS));
        }
    }

    /// Ends the takings of gangs that come later and whose room a plan has taken: these gangs are
    /// planned anew at once.
    fn displace_later(&mut self, later: &[Holder], chosen: Chosen<'_>, now_ms: UnixMs) {
        for node in chosen.nodes() {
            while !self.state.nodes[node].keeps_holds() {
                let on_node: Vec<Holder> = self.state.holds.on_node(node).collect();
                let last = later.iter().find(|holder| on_node.contains(holder));
                let Some(Holder::Gang(last)) = last else {
                    break;
                };
                self.displace(*last, chosen.gang, now_ms);
            }
        }
    }

    /// Ends the takings of gangs that come later and were to evict a pod that a plan evicts, too:
    /// no pod is evicted for two gangs.
    fn displace_rivals(&mut self, later: &[Holder], chosen: Chosen<'_>, now_ms: UnixMs) {
        let Chosen { plan, gang, .. } = chosen;
        if plan.evict.is_empty() {
            return;
        }
        for holder in later {
            let mut unsent = self.unsent(*holder);
            if let Holder::Gang(rival) = holder
                && unsent.any(|pod| plan.evict.contains(&pod))
            {
                drop(unsent);
                self.displace(*rival, gang, now_ms);
            }
        }
    }

    /// Ends the takings of gangs that come later and for which a queue would give what is its own,
    /// now that a plan takes from that queue.
    fn displace_unfounded(&mut self, later: &[Holder], first: GangId, now_ms: UnixMs) {
        for holder in later {
            if let Holder::Gang(gang) = holder
                && let Some(taking) = self.binder.takings.get(*gang)
                && let Some(givers) = &taking.givers
                && givers.gives_no_more(&self.state).is_some()
            {
                self.displace(*gang, first, now_ms);
            }
        }
    }

    /// Adopts the nominations of members that wait: the last leader was making room for their
    /// gangs. No pod is evicted for these plans any more.
    pub(super) fn adopt_nominations(&mut self) {
        for gang in self.state.gangs.ids() {
            let Some((queue, _)) = self.planner.waiting()[gang].place else {
                continue;
            };
            let counts = count(&self.state, gang, self.now_ms);
            let places = nominated(&self.state, gang);
            if places.is_empty() || places.len() < counts.needed as usize {
                continue;
            }
            let plan = &Plan::without_evictions(places);
            let chosen = Chosen { plan, queue, gang };
            // If a pod was not evicted yet, the room is not coming, and the gang is planned anew.
            if self.is_coming(chosen) {
                let others = self.others(queue, gang);
                self.begin_taking(chosen, &others.later, self.now_ms);
            }
        }
        self.planner.note_chance_to_claim();
    }

    /// Whether the room of a plan is free beside all holds, before any pod leaves.
    fn is_room_there_already(&mut self, chosen: Chosen<'_>) -> bool {
        // tests plant bugs here: room-that-is-there-already
        chosen.awaited(&self.state).is_empty() && self.is_coming(chosen)
    }

    /// Whether the room of a plan is free, or is being left.
    fn is_coming(&mut self, chosen: Chosen<'_>) -> bool {
        let state = &mut self.state;
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        let hold = chosen.hold(state);
        txn.hold(state, hold);
        let mut places = chosen.plan.places.iter();
        let is_coming = places.all(|(_, node)| state.nodes[*node].keeps_holds());
        txn.rollback(state, start);
        is_coming
    }
}

/// How much work it is to begin a taking, for each pod to evict and each place, in units of about
/// ten nanoseconds.
const TAKING_WORK: u64 = 500;

/// How long, in ms, the place of a pod that moves is held for the pod that its controller makes
/// anew.
const MOVERS_MS: u64 = 5 * 60_000;
