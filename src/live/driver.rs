//! The one loop: events of watches and outcomes in, commands out.
//!
//! ```text
//!  watches ---Applied, Deleted, Listed---+
//!                                        v
//!  executor ------Outcome-----------> [inbox] --batch--> Engine::step --Commands--> executor
//!                                        ^                   |
//!  /metrics, the demo ---question--------+                   +--deadline: turn again
//! ```
//!
//! The loop is a thread of its own: a step computes and never waits, so it must not hold up the
//! tasks that talk to the API server. It is the only owner of the engine and decides nothing.

mod binds;
mod latency;
mod standing;

use super::recording::Recording;
use crate::handles::Handles;
use crate::handles::inbox::{Asked, Batch, Explained, Question, Reports};
use crate::kube::execute::Executor;
use binds::Binds;
use gpu_batch_policies::command::Command;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::Event;
use gpu_batch_policies::explain::Subject;
use gpu_batch_policies::settings::Settings;
use latency::Latency;
use standing::Standing;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tracing::{error, info, warn};

/// The longest wait for events, so that `/healthz` can tell a stuck loop from an idle one.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long a stopping driver waits for requests that are under way.
const DRAIN: Duration = Duration::from_secs(5);
/// This many panics within [`PANIC_WINDOW`] end the process.
const PANICS_MAX: usize = 3;
const PANIC_WINDOW: Duration = Duration::from_secs(600);
/// How old a copy for `/metrics` may be.
const REPORTS_MAX_AGE_MS: u64 = 1_000;

/// The state of the loop.
pub(super) struct Driver {
    engine: Engine,
    handles: Handles,
    executor: Arc<Executor>,
    /// Counted up to make every watcher list anew.
    relist: watch::Sender<u64>,
    latency: Latency,
    standing: Standing,
    /// The requests for binds whose outcomes are not known yet.
    binds: Binds,
    /// How many commands have no outcome yet.
    in_flight: usize,
    /// When the engine panicked, oldest first.
    panics: VecDeque<Instant>,
    /// When a stopping driver gives up waiting; `None`: it is not stopping.
    stop_by: Option<Instant>,
    reports: Arc<Reports>,
    recording: Option<Recording>,
    /// The settings that came last; `None`: they have not changed since the start.
    configured: Option<Settings>,
}

/// What the engine was asked to do is done. The error is a panic of the engine.
type Unpanicked = Result<(), Box<dyn Any + Send>>;

/// How the loop ended.
pub(super) enum Ended {
    /// The loop was asked to stop.
    Stopped,
    /// The engine panicked too often.
    Panicked,
}

impl Driver {
    /// A driver whose engine knows nothing. `server`: the address of the API server, for the log.
    pub(super) fn new(
        settings: Settings,
        server: String,
        handles: Handles,
        executor: Arc<Executor>,
        relist: watch::Sender<u64>,
        recording: Option<Recording>,
    ) -> Self {
        Self {
            standing: Standing::new(&settings, server),
            engine: Engine::new(settings),
            handles,
            executor,
            relist,
            latency: Latency::default(),
            binds: Binds::default(),
            in_flight: 0,
            panics: VecDeque::new(),
            stop_by: None,
            reports: Arc::new(Reports::default()),
            recording,
            configured: None,
        }
    }

    /// Turns until the driver is asked to stop, or the engine panics too often.
    pub(super) fn run(mut self) -> Ended {
        loop {
            let batch = self.handles.inbox.take(self.wait(), self.stop_by.is_some());
            let mut events = batch.events;
            if batch.stopping && self.stop_by.is_none() {
                if self.in_flight > 0 {
                    let requests = self.in_flight;
                    info!("stopping: waiting for {requests} requests under way");
                }
                self.stop_by = Some(Instant::now() + DRAIN);
                self.shut_down();
                events.push(Event::Continue);
            }
            let turned = self.turn(events);
            if !self.survives(turned) {
                return Ended::Panicked;
            }
            let answered = self.answer(batch.questions);
            if !self.survives(answered) {
                return Ended::Panicked;
            }
            self.follow_recording();
            if let Some(stop_by) = self.stop_by {
                if self.in_flight == 0 && self.engine.is_drained() && !self.is_due() {
                    // The Lease could not be given back; this is not tried again.
                    if !self.engine.is_shut_down() && self.standing.holds_lease() {
                        warn!("the Lease is not given back: it holds until it runs out");
                    }
                    return Ended::Stopped;
                }
                if Instant::now() >= stop_by {
                    warn!("stopped with {} requests under way", self.in_flight);
                    return Ended::Stopped;
                }
            }
        }
    }

    /// How long to wait for the next batch.
    fn wait(&self) -> Duration {
        let mut wait = LONGEST_WAIT;
        if let Some(deadline_ms) = self.engine.next_deadline() {
            wait = wait.min(self.handles.clock.until(deadline_ms));
        }
        if let Some(recording_wait) = self.recording.as_ref().and_then(Recording::wait) {
            wait = wait.min(recording_wait);
        }
        if let Some(stop_by) = self.stop_by {
            wait = wait.min(stop_by.saturating_duration_since(Instant::now()));
        }
        wait
    }

    /// Whether the engine wants to be called now.
    fn is_due(&self) -> bool {
        let now_ms = self.handles.clock.now_ms();
        let deadline_ms = self.engine.next_deadline();
        deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms)
    }

    /// Makes one step, if there is anything to do.
    fn turn(&mut self, mut events: Vec<Event>) -> Unpanicked {
        let now_ms = self.handles.clock.now_ms();
        if self.is_due() {
            events.push(Event::Continue);
        }
        self.handles
            .health
            .turned(now_ms, self.engine.is_synced(), self.engine.is_leader());
        if events.is_empty() {
            return Ok(());
        }
        self.in_flight = self.in_flight.saturating_sub(outcomes(&events));
        self.remember_settings(&events);
        self.standing.observe(&events);
        self.latency.observe(
            &events,
            now_ms,
            &self.handles.metrics.pod_scheduling_seconds,
        );
        self.handles
            .metrics
            .step_events
            .observe(count(events.len()));

        if let Some(recording) = &mut self.recording {
            recording.events(now_ms, &events);
        }
        let started = Instant::now();
        let engine = &mut self.engine;
        let commands = catch_unwind(AssertUnwindSafe(|| engine.step(now_ms, events)))?;
        self.handles
            .metrics
            .step_seconds
            .observe(started.elapsed().as_secs_f64());
        for forecast in self.engine.take_forecasts() {
            self.handles.metrics.foreseen(forecast);
        }

        if let Some(recording) = &mut self.recording {
            recording.commands(&commands);
        }
        self.issue(commands);
        let (synced, leads) = (self.engine.is_synced(), self.engine.is_leader());
        self.handles.health.turned(now_ms, synced, leads);
        let stopping = self.stop_by.is_some();
        self.standing
            .tell(leads, synced, stopping, &self.handles.health);
        Ok(())
    }

    fn issue(&mut self, commands: Vec<Command>) {
        self.in_flight = self.in_flight.saturating_add(commands.len());
        self.handles
            .metrics
            .in_flight
            .set(i64::try_from(self.in_flight).unwrap_or(i64::MAX));
        for command in commands {
            self.executor.start(command);
        }
    }

    /// Recovers if the engine has panicked. `false`: it has panicked too often.
    fn survives(&mut self, result: Unpanicked) -> bool {
        let panic = result.err();
        panic.is_none_or(|panic| self.recover(panic.as_ref()))
    }

    /// Throws the engine away and starts a new one from a new list of everything. The new engine
    /// leaves the gang alone that was in hand at the panic. `false`: the engine has panicked too
    /// often.
    fn recover(&mut self, panic: &(dyn Any + Send)) -> bool {
        let message = panic_message(panic);
        match self.engine.gang_in_hand() {
            Some(gang) => error!(
                "the engine panicked and is rebuilt; the gang {gang} is left alone: {message}"
            ),
            None => error!("the engine panicked and is rebuilt: {message}"),
        }
        self.handles.metrics.panics.inc();
        if let Some(recording) = &mut self.recording {
            recording.panicked(message);
        }
        let now = Instant::now();
        self.panics.push_back(now);
        self.panics
            .retain(|&at| now.duration_since(at) < PANIC_WINDOW);
        if self.panics.len() >= PANICS_MAX {
            error!("{PANICS_MAX} panics in {PANIC_WINDOW:?}: giving up");
            return false;
        }
        self.begin_anew(self.engine.after_panic(message));
        true
    }

    /// Puts an engine that knows nothing in the place of the old one, and has everything listed
    /// anew.
    fn begin_anew(&mut self, engine: Engine) {
        self.engine = engine;
        self.standing.begin_anew();
        self.latency = Latency::default();
        self.binds = Binds::default();
        // The new engine must not see a world that requests of the old one are still changing, nor
        // their outcomes. Every request has a deadline, so this ends.
        while self.in_flight > 0 {
            let Batch {
                events, questions, ..
            } = self.handles.inbox.take(LONGEST_WAIT, true);
            self.in_flight = self.in_flight.saturating_sub(outcomes(&events));
            self.remember_settings(&events);
            self.handles
                .health
                .turned(self.handles.clock.now_ms(), false, false);
            // An engine that knows nothing has nothing to panic over.
            drop(self.answer(questions));
        }
        if let Some(settings) = self.configured.clone() {
            self.handles.inbox.configured(settings);
        }
        self.relist.send_modify(|generation| *generation += 1);
        if self.stop_by.is_some() {
            self.shut_down();
        }
    }

    /// Remembers changed settings for a new engine, which must be given them, too.
    fn remember_settings(&mut self, events: &[Event]) {
        let configured = events.iter().rev().find_map(|event| match event {
            Event::Configured(settings) => Some(&**settings),
            _ => None,
        });
        if let Some(settings) = configured {
            self.configured = Some(settings.clone());
        }
    }

    fn shut_down(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.shut_down();
        }
        self.engine.shut_down();
    }

    /// Begins a new journal where the file is full: with a new engine, because a journal tells all
    /// that its engine knows. A driver that is stopping needs no new file.
    fn follow_recording(&mut self) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        recording.turned();
        if self.stop_by.is_none() && recording.is_file_full() {
            info!("the journal's file is full: a new engine begins from new lists");
            recording.begin_file();
            let settings = recording.settings().clone();
            self.begin_anew(Engine::new(settings));
        }
    }

    /// Answers questions, and who waits for binds. After a panic of the engine, the other ones are
    /// not answered either: their askers are told at once that there is no answer.
    fn answer(&mut self, questions: Vec<Question>) -> Unpanicked {
        for question in questions {
            catch_unwind(AssertUnwindSafe(|| self.answer_one(question)))?;
        }
        let (binds, engine) = (&mut self.binds, &mut self.engine);
        catch_unwind(AssertUnwindSafe(|| binds.answer(engine)))
    }

    fn answer_one(&mut self, question: Question) {
        match question {
            Question::Reports(asker) => {
                let now_ms = self.handles.clock.now_ms();
                if self.reports.taken_ms.saturating_add(REPORTS_MAX_AGE_MS) <= now_ms {
                    self.reports = Arc::new(Reports::take(&mut self.engine, now_ms));
                }
                // The asker may have gone away.
                let _ = asker.send(Arc::clone(&self.reports));
            }
            Question::Audit(asker) => {
                let _ = asker.send(self.engine.audit());
            }
            Question::Inventory(asker) => {
                let _ = asker.send(self.engine.inventory());
            }
            Question::Explain(asked, asker) => {
                let _ = asker.send(explain(&mut self.engine, &asked));
            }
            Question::Filter(asked, asker) => {
                let _ = asker.send(self.engine.filter_nodes(asked.pod, &asked.nodes));
            }
            Question::Score(asked, asker) => {
                let _ = asker.send(self.engine.score_nodes(asked.pod, &asked.nodes));
            }
            Question::Victims(asked, asker) => {
                let _ = asker.send(self.engine.allow_victims(asked.pod, &asked.groups));
            }
            Question::Bind(asker) => self.binds.add(asker),
        }
    }
}

fn explain(engine: &mut Engine, asked: &Asked) -> Explained {
    if !engine.is_synced() || !engine.is_leader() {
        return Explained::NotLeading;
    }
    let explained = engine.explain(match asked {
        Asked::Gang(name) => Subject::Gang(name),
        Asked::Pod(name) => Subject::Pod(name),
    });
    match explained {
        Ok(explanation) => Explained::Explanation(Box::new(explanation)),
        Err(error) => Explained::NotFound(error),
    }
}

fn outcomes(events: &[Event]) -> usize {
    events
        .iter()
        .filter(|event| matches!(event, Event::Outcome(..)))
        .count()
}

/// A count for a histogram; exact below 2^32.
fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
