//! One engine in virtual time, in a world that does what it is told.
//!
//! For replaying traces and recorded sessions, where nothing goes wrong: no API server and no
//! watches, so that a million pods are a matter of seconds. The caller says what happens and when;
//! the timeline puts it in order, lets time jump from one moment to the next, and carries out what
//! the engine commands:
//!
//! ```text
//!  schedule(at, event) ──> Agenda ──┐ first what was scheduled: ends
//!                                   v
//!  advance(at, arrivals) ────────> one batch ──> Engine::step ──> commands
//!                                                    ^                │ carried out at once
//!                                                    └── outcomes ────┘ until the engine rests
//!                                   │
//!                                   └──> Moment: who was bound, who was evicted
//! ```
//!
//! Everything of one moment is one batch: the engine decides when it knows all of it. Nothing here
//! decides, draws or reads a clock, so the same calls give the same moments on every machine.
//!
//! A pod does not end by itself: whoever knows how long it runs schedules its deletion when a
//! [`Moment`] says that it was bound. A deletion of a pod that is gone already changes nothing, so
//! what was scheduled for a pod that was evicted meanwhile needs not be taken back.

mod agenda;
#[cfg(test)]
mod tests;

use agenda::Agenda;
use gpu_batch_policies::command::{Action, Bind, Command, Evict};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::{InFlight, Settings};

/// No limit on binds under way, for the answers come at once; no statuses and no Kubernetes events,
/// for nobody reads them.
const IN_FLIGHT: InFlight = InFlight {
    actions: u32::MAX,
    statuses: 0,
    announcements: 0,
};

/// An engine, its world, and what is still to happen.
#[derive(Debug)]
pub struct Timeline {
    engine: Engine,
    agenda: Agenda,
    now_ms: UnixMs,
    steps: u64,
}

/// What the engine did at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moment {
    /// The pods that it bound, in its order. They are bound now.
    pub bound: Vec<Bind>,
    /// The pods that it evicted. They are gone now.
    pub evicted: Vec<Evict>,
}

impl Timeline {
    /// A world that begins with these objects. Nothing is decided before the first
    /// [`Timeline::advance`].
    ///
    /// Of the settings all count but those of requests under way: every request is answered at
    /// once, and neither statuses nor Kubernetes events are made.
    #[must_use]
    pub fn new(settings: Settings, start_ms: UnixMs, objects: Vec<Object>) -> Self {
        let mut timeline = Self {
            engine: Engine::new(Settings {
                in_flight: IN_FLIGHT,
                ..settings
            }),
            agenda: Agenda::default(),
            now_ms: start_ms,
            steps: 0,
        };
        for list in Event::lists(objects) {
            timeline.schedule(start_ms, list);
        }
        timeline
    }

    /// Lets this happen at that time, after what was scheduled for it before. What is scheduled for
    /// the present or the past happens with the next [`Timeline::advance`].
    pub fn schedule(&mut self, at_ms: UnixMs, event: Event) {
        self.agenda.push(at_ms, event);
    }

    /// The next time at which something happens by itself: something was scheduled, or the engine
    /// waits for that time. `None`: nothing ever happens again unless the caller lets it.
    #[must_use]
    pub fn next_ms(&self) -> Option<UnixMs> {
        let engine = self.engine.next_deadline();
        let next = self.agenda.next_ms().into_iter().chain(engine).min();
        next.map(|next| next.max(self.now_ms))
    }

    /// Lets time come to `at_ms`: what was scheduled until then and after it the events given here
    /// are one batch, and the engine goes on until it rests.
    ///
    /// The trap: whoever jumps over [`Timeline::next_ms`] gets what was due before at `at_ms`.
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
            let commands = self.engine.step(self.now_ms, batch);
            batch = Vec::new();
            for command in commands {
                carry_out(command, &mut batch, &mut moment);
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

/// Does what a command says, and adds what follows from it to the next batch.
fn carry_out(command: Command, batch: &mut Vec<Event>, moment: &mut Moment) {
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
        // Never asked: every bind is answered. If it were, the bind would be sent again.
        Action::Observe(_) => Outcome::Observed(PodSeen::Unbound),
        Action::PatchStatus(_) | Action::Publish(_) => Outcome::Done,
        // There is no lease: nobody else could hold it.
        Action::Lease(_) => Outcome::Unknown {
            message: "there is no lease".into(),
        },
    };
    batch.push(Event::Outcome(command.id, outcome));
}
