//! An engine, a clock, and the time that steps take.

use super::facts::START_MS;
use super::policy;
use gpu_batch_policies::command::{Action, Command};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Listing, Object, Outcome};
use gpu_batch_policies::extender::NodeAnswer;
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::settings::Settings;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Drives one engine.
pub(super) struct Session {
    engine: Engine,
    pub(super) now_ms: u64,
    /// How many pods have been bound.
    pub(super) binds: usize,
}

/// What one step did.
pub(super) struct Stepped {
    pub(super) commands: Vec<Command>,
    pub(super) took: Duration,
}

impl Session {
    /// An engine that leads and knows these objects, and plans as soon as it gets the last list
    /// ([`Session::listed`]). `in_flight`: how many binds it may have under way.
    pub(super) fn new(in_flight: u32, world: impl IntoIterator<Item = Object>) -> Self {
        Self::begin(policy::settings(), in_flight, world)
    }

    /// A session as [`Session::new`] begins it, with the queues and the Topology of the full
    /// [`policy`].
    pub(super) fn with_policy(in_flight: u32, world: impl IntoIterator<Item = Object>) -> Self {
        Self::new(in_flight, policy::objects().chain(world))
    }

    /// A session as [`Session::new`] begins it, with other settings.
    pub(super) fn begin(
        mut settings: Settings,
        in_flight: u32,
        world: impl IntoIterator<Item = Object>,
    ) -> Self {
        settings.in_flight.actions = in_flight;
        let mut session = Self {
            engine: Engine::new(settings),
            now_ms: START_MS,
            binds: 0,
        };
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != LAST) {
            session.step(vec![nothing_of(kind)]);
        }
        // Handed in one by one, so that the facts do not all exist at once.
        for object in world {
            session.step(vec![object.into()]);
        }
        session
    }

    /// The last list: from now on the engine plans.
    pub(super) fn listed() -> Vec<Event> {
        vec![nothing_of(LAST)]
    }

    /// Makes one step and measures it.
    pub(super) fn step(&mut self, events: Vec<Event>) -> Stepped {
        let started = processor_time();
        let commands = self.engine.step(self.now_ms, events);
        let took = processor_time().saturating_sub(started);
        let binds = commands
            .iter()
            .filter(|command| matches!(command.action, Action::Bind(_)));
        self.binds += binds.count();
        Stepped { commands, took }
    }

    /// How many gangs are promised a start.
    pub(super) fn promised(&self) -> usize {
        self.engine.promised_starts().count()
    }

    /// Whether the last step left planning for another slice.
    pub(super) fn is_unfinished(&self) -> bool {
        self.engine.next_deadline() == Some(self.now_ms)
    }

    /// Turns the clock on to when the engine wants to go on. Returns `false` if that is not before
    /// a time.
    pub(super) fn advance(&mut self, until_ms: u64) -> bool {
        let next_ms = self.engine.next_deadline().unwrap_or(until_ms);
        self.now_ms = self.now_ms.max(next_ms).min(until_ms);
        next_ms < until_ms
    }

    /// Plans until nothing is left to be planned. The result has the commands and the time of all
    /// slices.
    pub(super) fn plan(&mut self, events: Vec<Event>) -> Stepped {
        let mut all = self.step(events);
        while self.is_unfinished() {
            let slice = self.step(vec![Event::Continue]);
            all.took += slice.took;
            all.commands.extend(slice.commands);
        }
        all
    }

    /// Asks which nodes a pod may have. Returns whether it may have the first, and the time.
    pub(super) fn filter(&mut self, pod: Uid, nodes: &[Box<str>]) -> (bool, Duration) {
        let started = processor_time();
        let answers = self.engine.filter_nodes(pod, nodes);
        let took = processor_time().saturating_sub(started);
        let first = answers.ok().and_then(|answers| answers.into_iter().next());
        (first == Some(NodeAnswer::Fits), took)
    }

    /// Asks for the order of nodes for a pod. Returns the position of the best one, and the time.
    pub(super) fn score(&mut self, pod: Uid, nodes: &[Box<str>]) -> (usize, Duration) {
        let started = processor_time();
        let scores = self.engine.score_nodes(pod, nodes).unwrap_or_default();
        let took = processor_time().saturating_sub(started);
        let best = scores.iter().zip(0..).max_by_key(|(score, _)| **score);
        (best.map_or(0, |(_, position)| position), took)
    }

    /// Answers commands until there are none. The result is the time of all steps.
    pub(super) fn settle(&mut self, mut commands: Vec<Command>) -> Duration {
        let mut took = Duration::ZERO;
        while !commands.is_empty() {
            let stepped = self.plan(done(&commands));
            took += stepped.took;
            commands = stepped.commands;
        }
        took
    }
}

/// The kind that is listed last; the engine plans nothing before that.
const LAST: Kind = Kind::Namespace;

fn nothing_of(kind: Kind) -> Event {
    Event::Listed(Listing {
        kind,
        objects: Vec::new(),
    })
}

/// An outcome for each command: it was done.
pub(super) fn done(commands: &[Command]) -> Vec<Event> {
    commands
        .iter()
        .map(|command| Event::Outcome(command.id, Outcome::Done))
        .collect()
}

/// The time that this thread has spent on a processor. A step computes and never waits, so on a
/// core of its own this is the time that the step takes; other work of the machine does not count.
pub(super) fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
