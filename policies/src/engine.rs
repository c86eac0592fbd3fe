//! The engine: events in, commands out.
//!
//! One step goes through six phases, each a module of its own, and none calls back into an earlier
//! one:
//!
//! ```text
//! events -> 1 apply -> 2 lead -> 3 settle -> 4 plan -> 5 send -> 6 tell -> commands
//!              ^                                                              |
//!              +----------------------- outcomes are events ------------------+
//! ```
//!
//! What the phases read and change belongs to owners with fields of their own: the state, the
//! progress of gangs, the planner, the binder, the teller, the leader. The engine puts these owners
//! together.
//!
//! A step does a bounded amount of planning. What is left is continued at the next step, after new
//! events had their turn, so no plan holds up a lease or a watch. Equal events at equal times give
//! equal commands, on every machine.

mod apply;
mod chosen;
mod claim;
mod extender;
mod follow;
mod forecasts;
mod lead;
mod plan;
mod quarantine;
mod queues;
mod settle;
mod takings;
mod views;

#[cfg(test)]
mod tests;

use crate::audit;
use crate::bind::Binder;
use crate::command::Command;
use crate::event::{Event, Kind, Object};
use crate::facts::{Uid, UnixMs};
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId};
use crate::lease::Leader;
use crate::plan::Planner;
use crate::settings::{Leadership, Settings};
use crate::state::ClusterState;
use crate::tell::Teller;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use forecasts::Forecasts;
use quarantine::Quarantine;

/// Decides, from events and the time that it is given. It has one owner, no clock and no I/O.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    state: ClusterState,
    /// How far each gang has come.
    progress: ById<GangId, Progress>,
    planner: Planner,
    binder: Binder,
    teller: Teller,
    /// Kinds that have been listed.
    listed: BTreeSet<Kind>,
    leader: Leader,
    /// The last slice ended before everything was planned and reported.
    unfinished: bool,
    now_ms: UnixMs,
    quarantine: Quarantine,
    /// The forecasts that have come to pass, until a shell takes them.
    forecasts: Forecasts,
    /// Pods that kube-scheduler asks to bind in this step, each with its node.
    asked_binds: Vec<(Uid, Box<str>)>,
    /// The gang whose planning and explanation are to panic.
    #[cfg(feature = "planted-panic")]
    planted_panic: Option<Box<str>>,
}

impl Engine {
    /// An engine that knows nothing yet. It plans once every kind has been listed.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let lease = match &settings.leadership {
            Leadership::Assumed => None,
            Leadership::Elected(lease) => Some(lease.clone()),
        };
        let mut state = ClusterState::new();
        if let Some(target) = &settings.target_workload {
            state.set_target_workload(target);
        }
        state.queues.set_half_life(settings.use_half_life_ms);
        state.set_gpu_rules(&settings, 0);
        Self {
            state,
            progress: ById::default(),
            teller: Teller::new(),
            listed: BTreeSet::new(),
            planner: Planner::new(settings.queueing),
            binder: Binder::new(settings.in_flight),
            leader: Leader::new(lease),
            unfinished: false,
            now_ms: 0,
            quarantine: Quarantine::new(),
            forecasts: Forecasts::default(),
            asked_binds: Vec::new(),
            #[cfg(feature = "planted-panic")]
            planted_panic: None,
            settings,
        }
    }

    /// Applies all events, plans once, for at most a bounded slice of work, and returns the
    /// commands to carry out.
    ///
    /// `now_ms`: the Unix time in milliseconds. It never goes back: an earlier time counts as the
    /// latest one that was seen.
    pub fn step(&mut self, now_ms: UnixMs, events: Vec<Event>) -> Vec<Command> {
        self.now_ms = self.now_ms.max(now_ms);
        let now_ms = self.now_ms;
        // A bind that could not be looked at in the step before was answered as refused.
        self.asked_binds.clear();
        // 1. Apply: what has happened becomes what is known.
        for event in events {
            self.apply(event, now_ms);
        }
        // 2. Lead: the lease is kept; this process begins to act, or stops.
        self.lead(now_ms);
        if !self.is_synced() {
            return self.binder.outbox.take_sent();
        }
        // 3. Settle: queues, nodes and gangs follow what is known.
        self.settle(now_ms);
        if !self.binder.is_leading() {
            self.teller.stand_down();
            return self.binder.outbox.take_sent();
        }
        // 4. Plan: whose turn it is, and whether there is a place.
        self.unfinished = self.plan(now_ms);
        // 5. Send: observations, evictions, binds and nominations, as far as there is room for
        // requests.
        self.binder
            .send_actions(&mut self.state, &self.settings, &mut self.progress, now_ms);
        // 6. Tell: statuses, conditions and events, after everything that is more urgent.
        let is_stopping = self.leader.stopping;
        let (teller, mut scene, binder) = self.telling();
        if !is_stopping {
            teller.review(scene.view(), binder);
        }
        self.unfinished |= teller.tell(&mut scene, binder);
        // Room that this step has freed may let gangs start, and gangs of which this step lets pods
        // leave must be looked at: the next step, which does both, follows at once.
        self.unfinished |= !self.state.freed.is_empty() || !self.state.released.is_empty();
        self.unfinished |= !self.state.touched.is_empty();
        self.unfinished |= self.planner.is_related_anew(&self.state);
        self.unfinished |= self.state.storage.is_changed();
        // A plan that has come to nothing while it was sent is ended by the next step, too.
        self.unfinished |= self.binder.takings.have_failed();
        self.binder.outbox.take_sent()
    }

    /// When to call [`Engine::step`] with [`Event::Continue`] if nothing happens before, as Unix
    /// time in milliseconds; a time that has passed means at once. `None`: nothing is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<UnixMs> {
        let renewal = self.leader.deadline();
        if !self.is_synced() {
            return renewal;
        }
        if self.unfinished && self.binder.is_leading() && !self.leader.stopping {
            return Some(self.now_ms);
        }
        let next_use = self.state.queues.next_use_ms();
        [
            self.binder.timers.next(),
            renewal,
            self.state.capacity.deadline(),
            self.state.ailments.deadline(),
            self.state.holds.deadline(),
            self.claims_deadline(),
            self.planner.promises_deadline(self.now_ms),
            self.state.runtimes.deadline(),
            next_use,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn claims_deadline(&self) -> Option<UnixMs> {
        let may_evict = self.settings.evictions.in_flight > 0;
        let acts = self.binder.is_leading() && !self.leader.stopping;
        let deadline = self.planner.claims_deadline();
        deadline.filter(|_| may_evict && acts)
    }

    /// Whether every kind has been listed, so that decisions are made.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.listed.len() == Kind::ALL.len()
    }

    /// Whether this engine may act now.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leader.leads(self.now_ms)
    }

    /// Whether nothing is under way and nothing is left to be sent or planned.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.unfinished && self.binder.outbox.is_empty()
    }

    /// Every violation of an invariant, as sentences; empty is good.
    ///
    /// Looks at the whole state: for tests, simulations and `/debug/audit`, not for every step.
    #[must_use]
    pub fn audit(&self) -> Vec<String> {
        let mut found = audit::violations(&self.state);
        found.extend(self.binder.takings.violations(&self.state));
        if !self.unfinished {
            found.extend(self.planner.wrongly_behind(&self.state));
        }
        found
    }

    /// Stops planning, finishes the gangs of which a part is on its way, and then gives the lease
    /// back.
    pub fn shut_down(&mut self) {
        self.leader.stopping = true;
        self.binder.drop_takings(&mut self.state);
        self.binder.take_back_unbegun(&mut self.state);
    }

    /// Whether nothing that must not be lost is under way or left to be sent. The lease does not
    /// count: if it is not given back, it runs out. Without leadership, bindings with an unknown
    /// outcome do not count: the next leader sees what became of their pods.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.binder.is_drained()
    }

    /// Whether there is nothing left to do after [`Engine::shut_down`].
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.leader.stopping && self.is_drained() && self.leader.is_released()
    }
}

/// An object as an event.
impl From<Object> for Event {
    fn from(object: Object) -> Self {
        Self::Applied(Box::new(object))
    }
}
