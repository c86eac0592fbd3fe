//! The engine: events in, commands out.
//!
//! One step applies a batch of events, looks at what they touched, plans for at most a slice, and
//! says what is to be sent:
//!
//! ```text
//! events -> state (fold) -> wake and assess -> plan (in a Txn) -> bindings -> outbox -> commands
//!              ^                                                                 |
//!              +------------------------- outcomes are events -------------------+
//! ```
//!
//! A step does a bounded amount of planning. What is left is continued at the next step, after new
//! events had their turn, so no plan holds up a lease or a watch. The same events at the same times
//! give the same commands, on every machine.

mod assess;
mod partial;
mod parts;
mod plan;
mod quarantine;
mod queues;
mod views;

#[cfg(test)]
mod tests;

use crate::audit;
use crate::bind::Binder;

use crate::plan::Planner;

use crate::command::{Action, Command, CommandId};

use crate::event::{Event, Kind, Object, Outcome};

use crate::facts::UnixMs;

use crate::gangs::progress::Progress;

use crate::ids::{ById, GangId};

use crate::lease::{Election, LeaseAnswer};

use crate::settings::{Leadership, Settings};

use crate::state::ClusterState;

use crate::tell::Teller;

use crate::tell::review::Review;

use alloc::{collections::BTreeSet, string::String, vec::Vec};

use crate::bind::outbox::Flight;

use quarantine::Quarantine;

use crate::bind::timers::Timer;

/// Decides. One owner, no clock, no I/O.
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
    election: Option<Election>,
    stopping: bool,
    /// The last slice ended before everything was planned and reported.
    unfinished: bool,
    now_ms: UnixMs,
    quarantine: Quarantine,
    /// The gang whose planning is to panic.
    #[cfg(feature = "planted-panic")]
    planted_panic: Option<alloc::boxed::Box<str>>,
}

impl Engine {
    /// An engine that knows nothing yet. It plans once every kind has been listed.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let election = match &settings.leadership {
            Leadership::Assumed => None,
            Leadership::Elected(lease) => Some(Election::new(lease.clone())),
        };
        let mut state = ClusterState::new();
        if let Some(target) = &settings.target_workload {
            state.set_target_workload(target);
        }
        state.queues.set_half_life(settings.use_half_life_ms);
        Self {
            state,
            progress: ById::default(),
            teller: Teller::new(),
            listed: BTreeSet::new(),
            planner: Planner::new(settings.queueing),
            binder: Binder::new(settings.in_flight),
            election,
            stopping: false,
            unfinished: false,
            now_ms: 0,
            quarantine: Quarantine::new(),
            #[cfg(feature = "planted-panic")]
            planted_panic: None,
            settings,
        }
    }

    /// Applies all events, then plans once, for at most a bounded slice of work.
    ///
    /// `now_ms` never goes back; an earlier time counts as the latest one that was seen.
    pub fn step(&mut self, now_ms: UnixMs, events: Vec<Event>) -> Vec<Command> {
        self.now_ms = self.now_ms.max(now_ms);
        let now_ms = self.now_ms;
        for event in events {
            self.apply(event, now_ms);
        }
        self.run_election(now_ms);
        if self.is_synced() {
            self.follow(now_ms);
        }
        self.binder.outbox.take_sent()
    }

    fn apply(&mut self, event: Event, now_ms: UnixMs) {
        self.teller.faults.hear(&self.state, &event);
        match event {
            Event::Applied(object) => {
                self.teller.review.note();
                // A queue may become Ready, or not, without a gang that notices.
                self.teller.dirty_queues |= object.kind() == Kind::Queue;
                self.state.apply(*object, now_ms);
            }
            Event::Deleted(key) => {
                self.teller.review.note();
                self.state.delete(key);
            }
            Event::Listed(listing) => {
                self.teller.review.note();
                self.listed.insert(listing.kind);
                self.teller.dirty_queues |= listing.kind == Kind::Queue;
                self.state.apply_listing(listing, now_ms);
            }
            Event::Outcome(id, outcome) => self.ended(id, outcome, now_ms),
            Event::Configured(settings) => self.configure(*settings),
            Event::Continue => {}
        }
    }

    /// Goes on with other settings. What the engine was built around stays.
    fn configure(&mut self, settings: Settings) {
        let settings = Settings {
            leadership: self.settings.leadership.clone(),
            leaf_order: self.settings.leaf_order,
            queueing: self.settings.queueing,
            target_workload: self.settings.target_workload.clone(),
            ..settings
        };
        if settings == self.settings {
            return;
        }
        // tests plant bugs here: half-life
        if settings.use_half_life_ms != self.settings.use_half_life_ms {
            self.state.queues.set_half_life(settings.use_half_life_ms);
        }
        self.binder.outbox.limits = settings.in_flight;
        self.settings = settings;
        self.teller.review.note();
        // Grace periods and placements are looked at with each gang.
        self.state.rules_changed();
    }

    fn ended(&mut self, id: CommandId, outcome: Outcome, now_ms: UnixMs) {
        let flight = self.binder.outbox.ended(id);
        if matches!(
            flight,
            Some(Flight::Bind(_) | Flight::Observe(_) | Flight::Evict(_))
        ) {
            self.teller.review.note();
        }
        match flight {
            Some(Flight::Bind(uid)) => self.binder.bind_ended(
                &mut self.state,
                &self.settings,
                &mut self.progress,
                uid,
                outcome,
                now_ms,
            ),
            Some(Flight::Observe(uid)) => {
                self.binder
                    .observation_ended(&mut self.state, uid, outcome, now_ms);
            }
            Some(Flight::Evict(uid)) => {
                self.binder
                    .eviction_ended(&mut self.state, &self.settings, uid, &outcome, now_ms);
            }
            Some(Flight::Status(key)) => self.teller.status_ended(
                &mut self.state,
                &self.settings,
                &mut self.binder.timers,
                key,
                &outcome,
                now_ms,
            ),
            Some(Flight::Lease) => self.lease_answered(outcome, now_ms),
            // Events are news: one that is lost is not sent again.
            Some(Flight::Announcement) | None => {}
        }
    }

    fn lease_answered(&mut self, outcome: Outcome, now_ms: UnixMs) {
        let Some(election) = &mut self.election else {
            return;
        };
        let answer = match outcome {
            Outcome::Lease(seen) => LeaseAnswer::Seen(seen),
            Outcome::Conflict { .. } => LeaseAnswer::Conflict,
            _ => LeaseAnswer::Failed,
        };
        election.answered(now_ms, answer);
    }

    /// Keeps the lease, and notices when leadership comes or goes.
    fn run_election(&mut self, now_ms: UnixMs) {
        // While it is uncertain what is bound, the lease keeps the next leader away for a while.
        if self.stopping
            && self.is_settled()
            && let Some(election) = &mut self.election
        {
            election.release();
        }
        if let Some(election) = &mut self.election
            && let Some(request) = election.poll(now_ms)
        {
            let deadline_ms = now_ms.saturating_add(self.settings.request_deadline_ms);
            let action = Action::Lease(request);
            self.binder.outbox.send(Flight::Lease, deadline_ms, action);
        }
        let leads = self.is_leader();
        if leads != self.binder.leading {
            self.binder.leading = leads;
            if leads {
                // Another may have led meanwhile, and written what it saw.
                for gang in self.state.gangs.ids() {
                    self.teller.told[gang].reported = None;
                    self.teller.told[gang].scheduled = (false, 0);
                }
                self.teller.reported_queues.clear();
                self.teller.dirty_queues = true;
                self.state.rules_changed();
                self.binder.ask_about_uncertain();
            } else {
                self.planner.search = None;
                self.binder.stand_down_all(&mut self.state);
            }
        }
    }

    /// Follows the world, and acts on it if we lead.
    fn follow(&mut self, now_ms: UnixMs) {
        self.refresh_queues(now_ms);
        let (mut reviewed, mut searched) = (false, false);
        while let Some(timer) = self.binder.timers.due(now_ms) {
            match timer {
                Timer::Gang(gang) => {
                    if self.state.gangs.get(gang).is_some() {
                        self.state.touched.insert(gang);
                    }
                }
                Timer::Binding(uid) => self.binder.binding_due(uid),
                Timer::QueueStatus => {}
                Timer::Review => reviewed = true,
                Timer::Search => searched = self.planner.cut.is_due(),
                // tests plant bugs here: overwritten-status
                Timer::Rewrite(key) => {
                    self.teller
                        .rewrite(&self.state, &mut self.binder.outbox, key);
                }
            }
        }
        self.planner
            .follow_freed(&mut self.state, &self.settings, &self.progress);
        self.state.give_up_lost(now_ms);
        self.state.follow_offered();
        self.state.follow_reaches();
        self.assess_touched(now_ms);
        self.state.settle_capacity();
        if core::mem::take(&mut self.state.offered.changed) {
            self.teller.dirty_queues = true;
            self.teller.faults.note_topologies(&self.state);
        }
        self.count_use(now_ms);
        if !self.binder.leading {
            self.teller.review = Review::default();
            return;
        }
        if reviewed && !self.stopping {
            let (teller, view, binder) = self.telling();
            teller.review_some(view, binder);
        }
        if searched && !self.stopping {
            self.planner
                .try_next_cut(&mut self.state, &self.settings, &self.progress);
        }
        self.unfinished = !self.stopping && self.plan(now_ms);
        self.binder
            .send_actions(&mut self.state, &self.settings, &mut self.progress, now_ms);
        self.teller.faults.announce(&mut self.binder.outbox);
        let (state, settings) = (&mut self.state, &self.settings);
        self.unfinished |= self
            .teller
            .divide_queues(state, settings, &mut self.binder, now_ms);
        self.unfinished |= self.teller.send(
            state,
            settings,
            &self.progress,
            &mut self.planner,
            &mut self.binder,
            now_ms,
        );
        if !self.stopping {
            let Binder { outbox, timers, .. } = &mut self.binder;
            self.teller.review.plan(outbox, timers, now_ms);
        }
        self.planner
            .plan_cut(&mut self.binder.timers, now_ms, self.stopping);
        // What this step itself has freed may let others start: they are woken at once.
        self.unfinished |= !self.state.freed.is_empty() || !self.state.released.is_empty();
    }

    /// When [`Engine::step`] wants to be called with [`Event::Continue`] if nothing happens before;
    /// a time that has passed: at once.
    #[must_use]
    pub fn next_deadline(&self) -> Option<UnixMs> {
        let election = self.election.as_ref().map(Election::deadline);
        let renewal = election.filter(|deadline| *deadline < UnixMs::MAX);
        if !self.is_synced() {
            return renewal;
        }
        if self.unfinished && self.binder.leading && !self.stopping {
            return Some(self.now_ms);
        }
        let next_use = self.state.queues.next_use_ms();
        [
            self.binder.timers.next(),
            renewal,
            self.state.capacity.deadline(),
            next_use,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether every kind has been listed, so that decisions are made.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.listed.len() == Kind::ALL.len()
    }

    /// The kinds that have not been listed yet.
    #[must_use]
    pub fn missing_kinds(&self) -> Vec<Kind> {
        Kind::ALL
            .into_iter()
            .filter(|kind| !self.listed.contains(kind))
            .collect()
    }

    /// Whether this engine may act now.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        match &self.election {
            Some(election) => election.is_leader(self.now_ms),
            None => true,
        }
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
        audit::violations(&self.state)
    }

    /// Stops planning, finishes the gangs of which a part is on its way, and then gives the lease
    /// back.
    pub fn shut_down(&mut self) {
        self.stopping = true;
        self.binder.take_back_unbegun(&mut self.state);
    }

    /// Whether nothing that must not be lost is under way or left to be sent. The lease does not
    /// count: one that is not given back runs out. Nor do, without leadership, bindings with an
    /// unknown outcome: the next leader sees what became of them.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.binder.outbox.is_quiet() && (self.binder.bindings.is_empty() || !self.binder.leading)
    }

    /// Whether nothing is under way or left to be sent, and the outcome of every binding is known.
    fn is_settled(&self) -> bool {
        self.binder.outbox.is_quiet() && self.binder.bindings.is_empty()
    }

    /// Whether there is nothing left to do after [`Engine::shut_down`].
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        let released = self.election.as_ref().is_none_or(Election::is_released);
        self.stopping && self.is_drained() && released
    }
}

/// An object as an event.
impl From<Object> for Event {
    fn from(object: Object) -> Self {
        Self::Applied(alloc::boxed::Box::new(object))
    }
}
