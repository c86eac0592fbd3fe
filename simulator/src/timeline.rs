//! One engine in virtual time, in a world that carries out every command at once.
//!
//! It is for traces and recorded sessions, where nothing goes wrong: there are no API server and no
//! watches, so that a million pods are a matter of seconds. The caller says what happens and when;
//! the timeline puts the events in order, lets time jump from one moment to the next, and carries
//! out what the engine commands:
//!
//! ```text
//!  schedule(at, event) ──> Agenda ──┐ first what was scheduled: ends
//!                                   v
//!  advance(at, arrivals) ────────> one batch ──> Engine::step ──> commands
//!                                                    ^                │ carried out at once
//!                                                    └── outcomes ────┘ until the engine rests
//!                                   │
//!                                   └──> Moment: pods bound, pods evicted
//! ```
//!
//! All events of one moment are one batch: the engine decides when it knows all of them. Nothing
//! here decides, draws or reads a clock, so equal calls give equal moments on every machine.
//!
//! A pod does not end by itself: the caller schedules its deletion when a [`Moment`] says that it
//! was bound. A deletion of a pod that is gone already changes nothing, so the deletion of a pod
//! that was evicted meanwhile needs not be taken back.

mod agenda;
#[cfg(test)]
mod tests;

use crate::prompt_storage::PromptStorage;
use agenda::Agenda;
use gpu_batch_policies::command::{Action, Bind, Command, Evict};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::{Evictions, InFlight, Settings};

/// No limit on binds under way, because answers come at once. No statuses and no Kubernetes events,
/// because nobody reads them.
const IN_FLIGHT: InFlight = InFlight {
    actions: u32::MAX,
    statuses: 0,
    announcements: 0,
};

/// The default settings, but no pod is evicted so that others can start: all pods run to their end.
/// And nobody is promised a start.
#[must_use]
pub fn undisturbed() -> Settings {
    let defaults = Settings::default();
    Settings {
        evictions: Evictions {
            in_flight: 0,
            ..defaults.evictions
        },
        reservations: 0,
        ..defaults
    }
}

/// An engine, its world, and what is still to happen.
#[derive(Debug)]
pub struct Timeline {
    engine: Engine,
    agenda: Agenda,
    storage: PromptStorage,
    now_ms: UnixMs,
    steps: u64,
}

/// What the engine did at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moment {
    /// The binds of the engine, in its order. The pods are bound now.
    pub bound: Vec<Bind>,
    /// The evictions of the engine, in its order. The pods are gone now.
    pub evicted: Vec<Evict>,
}

impl Timeline {
    /// A world that begins with these objects. Nothing is decided before the first
    /// [`Timeline::advance`].
    ///
    /// Of the settings all count except [`Settings::in_flight`]: every request is answered at once,
    /// and neither statuses nor Kubernetes events are made.
    #[must_use]
    pub fn new(settings: Settings, start_ms: UnixMs, objects: Vec<Object>) -> Self {
        let mut timeline = Self {
            engine: Engine::new(Settings {
                in_flight: IN_FLIGHT,
                ..settings
            }),
            agenda: Agenda::default(),
            storage: PromptStorage::default(),
            now_ms: start_ms,
            steps: 0,
        };
        for list in Event::lists(objects) {
            timeline.schedule(start_ms, list);
        }
        timeline
    }

    /// Lets an event happen at `at_ms`, after the events that were scheduled for this time before.
    /// An event for the present or the past happens with the next [`Timeline::advance`].
    pub fn schedule(&mut self, at_ms: UnixMs, event: Event) {
        self.agenda.push(at_ms, event);
    }

    /// The next time at which something happens by itself: an event is scheduled, or the engine
    /// waits for this time. `None`: nothing ever happens again unless the caller lets it.
    #[must_use]
    pub fn next_ms(&self) -> Option<UnixMs> {
        let engine = self.engine.next_deadline();
        let next = self.agenda.next_ms().into_iter().chain(engine).min();
        next.map(|next| next.max(self.now_ms))
    }

    /// Lets time come to `at_ms`. The events that were scheduled until then and, after them, the
    /// events given here are one batch. The engine is stepped until it rests.
    ///
    /// The trap: if `at_ms` is later than [`Timeline::next_ms`], everything that was due before
    /// happens at `at_ms`.
    pub fn advance(&mut self, at_ms: UnixMs, events: impl IntoIterator<Item = Event>) -> Moment {
        self.now_ms = self.now_ms.max(at_ms);
        let mut batch = Vec::new();
        while let Some(event) = self.agenda.due(self.now_ms) {
            batch.push(event);
        }
        batch.extend(events);
        let mut moment = Moment::default();
        loop {
            self.steps += 1;
            for object in batch.iter().flat_map(Event::objects) {
                self.storage.note(object);
            }
            let commands = self.engine.step(self.now_ms, batch);
            batch = Vec::new();
            for command in commands {
                carry_out(command, &mut self.storage, &mut batch, &mut moment);
            }
            let waits = self.engine.next_deadline();
            if batch.is_empty() && waits.is_none_or(|at_ms| at_ms > self.now_ms) {
                return moment;
            }
            if batch.is_empty() {
                batch.push(Event::Continue);
            }
        }
    }

    /// The present.
    #[must_use]
    pub fn now_ms(&self) -> UnixMs {
        self.now_ms
    }

    /// How many steps the engine has made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The engine, for its reports.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, for reports that it has to work out.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

/// Adds objects that were changed to the next batch; `None`: what was asked for is not there.
fn told(changed: Option<Vec<Object>>, batch: &mut Vec<Event>) -> Outcome {
    match changed {
        Some(changed) => {
            batch.extend(changed.into_iter().map(Event::from));
            Outcome::Done
        }
        None => Outcome::NotFound,
    }
}

/// Carries out a command, and adds its outcome and what follows from it to the next batch.
fn carry_out(
    command: Command,
    storage: &mut PromptStorage,
    batch: &mut Vec<Event>,
    moment: &mut Moment,
) {
    let outcome = match command.action {
        Action::Bind(bind) => {
            moment.bound.push(bind);
            Outcome::Done
        }
        Action::Evict(evict) => {
            batch.push(Event::Deleted(ObjectKey::Pod(evict.pod.uid)));
            moment.evicted.push(evict);
            Outcome::Done
        }
        // The engine never asks, because every bind is answered. If it asked, it would send the
        // bind again.
        Action::Observe(_) => Outcome::Observed(PodSeen::Unbound),
        Action::SelectNode(select) => told(storage.select_node(select), batch),
        Action::KeepVolume(keep) => told(storage.keep_volume(keep), batch),
        Action::LockCards(_)
        | Action::UnlockCards(_)
        | Action::Lift(_)
        | Action::PatchStatus(_)
        | Action::Publish(_) => Outcome::Done,
        // There is no lease: no other scheduler could hold it.
        Action::Lease(_) => Outcome::Unknown {
            message: "there is no lease".into(),
        },
    };
    batch.push(Event::Outcome(command.id, outcome));
}
