//! One scheduler process: an engine, its watches and its clock. The process can be paused, killed
//! and stopped.
//!
//! ```text
//!            +--paused (SIGSTOP)--+
//!            v                    |
//! started -> running -------------+---> killed, or told to stop ---> started anew
//! ```
//!
//! The clock of a process is the wall clock at its start plus the time since, as in the live shell.

mod inbox;
mod informer;
mod neighbours;
mod takings;
mod watchdog;

pub(crate) use informer::{Informer, listed};

use crate::api_server::ApiServer;
use crate::faults::Faults;
use crate::journal::Recorder;
use crate::random::Random;
use gpu_batch_policies::command::{Action, Command, CommandId};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Outcome};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::Settings;
use inbox::Inbox;
use informer::News;
use neighbours::Neighbours;
use std::collections::BTreeMap;
use watchdog::Watchdog;

/// One scheduler process.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) engine: Engine,
    settings: Settings,
    pub(crate) informers: Vec<Informer>,
    inbox: Inbox,
    watchdog: Watchdog,
    neighbours: Neighbours,
    /// How far the clock of the process is ahead of the world's.
    clock_ahead_ms: i64,
    /// The process is paused until this time of the world.
    paused_until_ms: UnixMs,
    /// The commands under way, each with its deadline by the world's clock.
    deadlines: BTreeMap<CommandId, UnixMs>,
    stopping: bool,
    /// The events that the engine took in at the last step, if they are logged.
    pub(crate) last_events: Vec<String>,
    /// Records what the engine takes in and gives out; `None`: nothing is recorded.
    pub(crate) recorder: Option<Recorder>,
}

/// The results of a step.
pub(crate) struct Stepped {
    /// Whether the engine has taken in any event that is not routine ([`is_routine`]).
    pub(crate) heard: bool,
    pub(crate) commands: Vec<Command>,
    pub(crate) violations: Vec<String>,
}

impl Contender {
    /// A process that starts now, with a clock that is `clock_ahead_ms` ahead of the world's.
    pub(crate) fn start(settings: Settings, clock_ahead_ms: i64, now_ms: UnixMs) -> Self {
        Self {
            engine: Engine::new(settings.clone()),
            watchdog: Watchdog::new(&settings),
            neighbours: Neighbours::default(),
            settings,
            informers: Kind::ALL
                .into_iter()
                .map(|kind| Informer::new(kind, now_ms))
                .collect(),
            inbox: Inbox::default(),
            clock_ahead_ms,
            paused_until_ms: 0,
            deadlines: BTreeMap::new(),
            stopping: false,
            last_events: Vec::new(),
            recorder: None,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tells the engine that the configuration has another half-life of past use.
    pub(crate) fn set_half_life(&mut self, half_life_ms: Option<u64>) {
        self.settings.use_half_life_ms = half_life_ms;
        let settings = Box::new(self.settings.clone());
        self.inbox.other(Event::Configured(settings));
    }

    /// Puts an event into the inbox that no watch brings.
    pub(crate) fn hear(&mut self, event: Event) {
        self.inbox.other(event);
    }

    pub(crate) fn clock_ms(&self, now_ms: UnixMs) -> UnixMs {
        now_ms.saturating_add_signed(self.clock_ahead_ms)
    }

    fn world_ms(&self, clock_ms: UnixMs) -> UnixMs {
        clock_ms.saturating_add_signed(self.clock_ahead_ms.saturating_neg())
    }

    pub(crate) fn is_paused(&self, now_ms: UnixMs) -> bool {
        now_ms < self.paused_until_ms
    }

    /// Pauses the process until `until_ms`. If `clock_stalls`, its clock stands still meanwhile, as
    /// on a suspended machine.
    pub(crate) fn pause(&mut self, now_ms: UnixMs, until_ms: UnixMs, clock_stalls: bool) {
        self.paused_until_ms = until_ms;
        if clock_stalls {
            let stalled_ms = i64::try_from(until_ms - now_ms).unwrap_or(0);
            self.clock_ahead_ms -= stalled_ms;
            for deadline_ms in self.deadlines.values_mut() {
                *deadline_ms += until_ms - now_ms;
            }
        }
    }

    /// Tells the process to stop in good order.
    pub(crate) fn shut_down(&mut self) {
        self.engine.shut_down();
        if let Some(recorder) = &mut self.recorder {
            recorder.shut_down();
        }
        self.stopping = true;
        self.inbox.other(Event::Continue);
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.stopping && self.engine.is_shut_down()
    }

    /// Whether the process is not paused, its engine is idle, and no news is under way to it.
    pub(crate) fn is_settled(&self, now_ms: UnixMs) -> bool {
        self.inbox.is_empty()
            && self.engine.is_idle()
            && self.informers.iter().all(Informer::is_settled)
            && !self.is_paused(now_ms)
    }

    /// An answer to a command has arrived. Only the first one counts.
    pub(crate) fn answered(&mut self, id: CommandId, outcome: Outcome) {
        if self.deadlines.remove(&id).is_some() {
            self.inbox.other(Event::Outcome(id, outcome));
        }
    }

    /// Whether the answer to a command would still count.
    pub(crate) fn waits_for(&self, id: CommandId) -> bool {
        self.deadlines.contains_key(&id)
    }

    /// When the process next has something to do, by the world's clock.
    pub(crate) fn due_ms(&self) -> UnixMs {
        let informers = self.informers.iter().filter_map(Informer::due_ms);
        let deadlines = self.deadlines.values().copied();
        let engine = self
            .engine
            .next_deadline()
            .map(|at_ms| self.world_ms(at_ms));
        let due_ms = informers.chain(deadlines).chain(engine).min();
        let due_ms = if self.inbox.is_empty() {
            due_ms.unwrap_or(UnixMs::MAX)
        } else {
            0
        };
        due_ms.max(self.paused_until_ms)
    }

    /// Sends changes of the world on their way to the process, also while it is paused.
    pub(crate) fn follow(
        &mut self,
        server: &mut ApiServer,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) {
        for informer in &mut self.informers {
            informer.advance(server, faults, random, now_ms);
        }
    }

    /// Puts what the watches have brought by now into the inbox.
    fn take_news(&mut self, now_ms: UnixMs, clock_ms: UnixMs) {
        for informer in &mut self.informers {
            let kind = informer.kind();
            while let Some(news) = informer.arrived(now_ms) {
                match news {
                    News::Listed(_, objects) => {
                        let event = listed(kind, &objects, clock_ms);
                        self.inbox.listed(kind, event);
                    }
                    News::Changed(change) => {
                        let (key, event) = informer::changed(&change, clock_ms);
                        self.inbox.changed(kind, key, event);
                    }
                }
            }
        }
    }

    /// One turn of the driver's loop; `None`: the process is paused, or there is nothing to do.
    pub(crate) fn turn(&mut self, now_ms: UnixMs, log: bool) -> Option<Stepped> {
        if self.is_paused(now_ms) {
            return None;
        }
        let clock_ms = self.clock_ms(now_ms);
        self.take_news(now_ms, clock_ms);
        let inbox = &mut self.inbox;
        self.deadlines.retain(|id, at_ms| {
            let over = *at_ms <= now_ms;
            if over {
                let message = "there was no answer in time".into();
                inbox.other(Event::Outcome(*id, Outcome::Unknown { message }));
            }
            !over
        });
        if self
            .engine
            .next_deadline()
            .is_some_and(|at_ms| at_ms <= clock_ms)
        {
            self.inbox.other(Event::Continue);
        }
        if self.inbox.is_empty() {
            return None;
        }
        for informer in &mut self.informers {
            if let Some(event) = informer.idle_list() {
                self.inbox.listed(informer.kind(), event);
            }
        }
        let events = self.inbox.take();
        if log {
            self.last_events = events.iter().map(|event| format!("{event:?}")).collect();
        }
        let heard = !events.iter().all(is_routine);
        for event in &events {
            self.watchdog.told(event);
            self.neighbours.told(event);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.events(clock_ms, &events);
        }
        let commands = self.engine.step(clock_ms, events);
        if let Some(recorder) = &mut self.recorder {
            recorder.commands(&commands);
        }
        let leads = self.engine.is_leader();
        let mut violations = self.engine.audit();
        if commands.iter().any(evicts_for_others) && !self.engine.holds_room() {
            violations.push("I10: pods are evicted for a gang whose room is not held".to_owned());
        }
        let is_behind = self.clock_ahead_ms < 0;
        let sent = self.watchdog.sends(clock_ms, is_behind, &commands, leads);
        violations.extend(sent);
        violations.extend(self.neighbours.stepped(&self.engine, &commands));
        for command in &commands {
            let deadline_ms = self.world_ms(command.deadline_ms);
            self.deadlines.insert(command.id, deadline_ms);
        }
        Some(Stepped {
            heard,
            commands,
            violations,
        })
    }
}

fn evicts_for_others(command: &Command) -> bool {
    matches!(&command.action, Action::Evict(evict) if evict.beneficiary.is_some())
}

/// Whether an event only says that time has passed, or is the outcome of a request for the lease.
fn is_routine(event: &Event) -> bool {
    matches!(
        event,
        Event::Continue | Event::Outcome(_, Outcome::Lease(_))
    )
}
