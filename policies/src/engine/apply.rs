//! Phase 1: what has happened becomes what is known.

use crate::bind::outbox::Flight;
use crate::command::CommandId;
use crate::engine::Engine;
use crate::event::{Event, Kind, Outcome};
use crate::facts::UnixMs;
use crate::lease::LeaseAnswer;
use crate::settings::Settings;

impl Engine {
    /// Takes in one event.
    pub(super) fn apply(&mut self, event: Event, now_ms: UnixMs) {
        self.teller.faults.hear(&self.state, &event);
        match event {
            Event::Applied(object) => {
                self.planner.review.note();
                // A queue may become Ready, or not, without a gang that notices.
                self.teller.dirty_queues |= object.kind() == Kind::Queue;
                self.state.apply(*object, now_ms);
            }
            Event::Deleted(key) => {
                self.planner.review.note();
                self.state.delete(key);
            }
            Event::Listed(listing) => {
                self.planner.review.note();
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
        self.planner.review.note();
        // Grace periods and placements are looked at with each gang.
        self.state.rules_changed();
    }

    fn ended(&mut self, id: CommandId, outcome: Outcome, now_ms: UnixMs) {
        let flight = self.binder.outbox.ended(id);
        if matches!(
            flight,
            Some(Flight::Bind(_) | Flight::Observe(_) | Flight::Evict(_))
        ) {
            self.planner.review.note();
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
            Some(Flight::Lease) => self.leader.answered(now_ms, lease_answer(outcome)),
            // Events are news: one that is lost is not sent again.
            Some(Flight::Announcement) | None => {}
        }
    }
}

/// What the outcome of a request says of the lease.
fn lease_answer(outcome: Outcome) -> LeaseAnswer {
    match outcome {
        Outcome::Lease(seen) => LeaseAnswer::Seen(seen),
        // A lease that was to be replaced and is gone is a conflict, too.
        Outcome::Conflict { .. } | Outcome::NotFound => LeaseAnswer::Conflict,
        Outcome::Done
        | Outcome::Refused { .. }
        | Outcome::Throttled { .. }
        | Outcome::Unknown { .. }
        | Outcome::Observed(_) => LeaseAnswer::Failed,
    }
}
