//! Phase 1: what has happened becomes what is known.

use crate::bind::outbox::Flight;
use crate::command::CommandId;
use crate::engine::Engine;
use crate::event::{Event, Kind, Object, ObjectKey, Outcome};
use crate::facts::UnixMs;
use crate::lease::LeaseAnswer;
use crate::settings::Settings;

impl Engine {
    /// Takes in one event.
    pub(super) fn apply(&mut self, event: Event, now_ms: UnixMs) {
        self.teller.hear(&self.state, &event);
        match event {
            Event::Applied(object) => {
                self.note_news(object.kind());
                if matches!(&*object, Object::Pod(pod) if !pod.ours) {
                    self.planner.note_foreign_pod();
                }
                // A queue may become Ready, or cease to be, without touching any gang.
                self.teller.note_queues(object.kind() == Kind::Queue);
                self.state.apply(*object, now_ms);
            }
            Event::Deleted(key) => {
                self.note_news(key.kind());
                if let ObjectKey::Pod(uid) = &key
                    && self.state.is_foreign(*uid)
                {
                    self.planner.note_foreign_pod();
                }
                self.state.delete(key);
            }
            Event::Listed(listing) => {
                self.note_news(listing.kind);
                self.planner.doubt_promises();
                self.listed.insert(listing.kind);
                self.teller.note_queues(listing.kind == Kind::Queue);
                self.state.apply_listing(listing, now_ms);
            }
            Event::Outcome(id, outcome) => self.ended(id, outcome, now_ms),
            Event::Configured(settings) => self.configure(*settings, now_ms),
            Event::BindAsked { pod, node } => self.asked_binds.push((pod, node)),
            Event::Continue => {}
        }
    }

    /// Notes that something may have made what is told of refused gangs untrue. No sentence tells
    /// of disruption budgets, whose statuses change with each eviction and each pod that is ready.
    pub(super) fn note_news(&mut self, kind: Kind) {
        if kind != Kind::DisruptionBudget {
            self.teller.doubt_sentences();
        }
        self.planner.note_objects(kind);
    }

    /// Goes on with other settings. Leadership, the order of leaves, queueing and the target
    /// workload stay as they are for the engine's whole life.
    fn configure(&mut self, settings: Settings, now_ms: UnixMs) {
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
        let is_same = |one: &Settings, other: &Settings| {
            one.health == other.health && one.time_slices_are_single == other.time_slices_are_single
        };
        if !is_same(&settings, &self.settings) {
            self.state.set_gpu_rules(&settings, now_ms);
        }
        self.binder.outbox.set_limits(settings.in_flight);
        self.settings = settings;
        self.teller.doubt_sentences();
        self.planner.disturb_claims();
        // Grace periods and placements are applied when a gang is assessed, so all gangs are.
        self.state.rules_changed();
    }

    /// Takes in the outcome of a command.
    fn ended(&mut self, id: CommandId, outcome: Outcome, now_ms: UnixMs) {
        let flight = self.binder.outbox.ended(id);
        if matches!(
            flight,
            Some(Flight::Bind(_) | Flight::Observe(_) | Flight::Evict(_))
        ) {
            self.teller.doubt_sentences();
        }
        if let Some(Flight::Bind(_) | Flight::Observe(_)) = flight {
            self.planner.disturb_claims();
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
            Some(Flight::Offer(uid)) => self.binder.offer_ended(
                &mut self.state,
                &self.settings,
                &mut self.progress,
                uid,
                outcome,
                now_ms,
            ),
            Some(Flight::Select(claim)) => self.binder.selection_ended(
                &mut self.state,
                &self.settings,
                &mut self.progress,
                claim,
                outcome,
                now_ms,
            ),
            Some(Flight::Lock) => self.binder.lock_ended(
                &mut self.state,
                &self.settings,
                &mut self.progress,
                (id, outcome),
                now_ms,
            ),
            Some(Flight::Unlock) => {
                self.binder
                    .release_ended(&self.settings, (id, &outcome), now_ms);
            }
            Some(Flight::Nominate(uid)) => {
                self.binder
                    .nomination_ended(&self.settings, uid, &outcome, now_ms);
                self.binder.go_on_offering(uid);
            }
            Some(Flight::Evict(uid)) => {
                self.binder
                    .eviction_ended(&mut self.state, &self.settings, uid, &outcome, now_ms);
            }
            Some(Flight::Status(key)) => {
                let (teller, mut scene, binder) = self.telling();
                teller.status_ended(&mut scene, &mut binder.timers, key, &outcome);
            }
            Some(Flight::Lease) => self.leader.answered(now_ms, lease_answer(outcome)),
            // Kubernetes events are news: a lost one is not sent again.
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
