//! A replica of the scheduler, in which processes run one after the other, and the network between
//! it and the API server.
//!
//! ```text
//!   ApiServer --lists, watches--> process --commands--> under way --requests--> ApiServer
//!                                    ^                      |
//!                                    +------answers---------+
//! ```
//!
//! A process that is killed leaves its requests under way: they still arrive, and their answers are
//! dropped.

use crate::api_server::{Answer, ApiServer};
use crate::client::{self, Passage};
use crate::contender::Contender;
use crate::faults::Faults;
use crate::journal::Recorder;
use crate::random::Random;
use gpu_batch_policies::command::{Action, Command, CommandId};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::{Uid, UnixMs};
use gpu_batch_policies::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One replica of the scheduler, with the process that runs in it now, if any.
#[derive(Debug, Default)]
pub struct Shell {
    process: Option<Contender>,
    starts: u32,
    under_way: BTreeMap<(UnixMs, u64), Passing>,
    numbered: u64,
    /// Until this time flow control turns every request away except those for the lease.
    pub storm_until_ms: UnixMs,
    /// Until this time every request, except those for the lease, takes 0.5 to 3.5 s longer.
    pub slow_until_ms: UnixMs,
    binds: BTreeMap<Uid, u32>,
    binders: BTreeMap<Uid, u32>,
    strays: BTreeSet<Uid>,
    evictions: u32,
    /// The recordings of processes that have ended; `None`: processes are not recorded.
    recorded: Option<Vec<Vec<u8>>>,
}

/// The result of one turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// Whether the engine was stepped.
    pub stepped: bool,
    /// Whether the engine has taken in any event that does not only say that time has passed, or
    /// how a request for the lease has ended.
    pub heard: bool,
    /// The events that the engine took in, if they are to be logged.
    pub events: Vec<String>,
    /// The commands of the engine, which are under way now.
    pub commands: Vec<(CommandId, Action)>,
    /// The invariants that do not hold, a sentence each.
    pub violations: Vec<String>,
}

/// A request or an answer on its way.
#[derive(Debug, Clone)]
enum Passing {
    /// A request to the API server, and whether this is the copy whose answer the process hears.
    Request(Arc<Flight>, bool),
    Answer(Arc<Flight>, Outcome),
}

/// A command under way.
#[derive(Debug)]
struct Flight {
    /// The number of the process that sent it: how many had started then.
    start: u32,
    id: CommandId,
    action: Action,
    answer_ms: Option<u64>,
    instead: Option<Outcome>,
}

impl Shell {
    /// Starts a process, with a clock that is `clock_ahead_ms` ahead of the world's. A process that
    /// still runs is killed.
    pub fn start(&mut self, settings: Settings, clock_ahead_ms: i64, now_ms: UnixMs) {
        self.kill();
        self.starts += 1;
        let recorder = self.recorded.is_some().then(|| {
            let version = env!("CARGO_PKG_VERSION");
            Recorder::new(version, &settings)
        });
        let mut process = Contender::start(settings, clock_ahead_ms, now_ms);
        process.recorder = recorder;
        self.process = Some(process);
    }

    /// From now on every process that starts is recorded.
    pub fn record(&mut self) {
        self.recorded = Some(Vec::new());
    }

    /// The recordings of all processes, including one that still runs: for each the bytes of one
    /// block of a journal, not packed yet.
    #[must_use]
    pub fn into_recorded(mut self) -> Vec<Vec<u8>> {
        self.kill();
        self.recorded.unwrap_or_default()
    }

    /// Kills the process, if one runs.
    pub fn kill(&mut self) {
        let recorder = self.process.take().and_then(|process| process.recorder);
        if let (Some(mut recorder), Some(recorded)) = (recorder, &mut self.recorded) {
            recorded.push(recorder.seal());
        }
    }

    /// The engine of the process, if one runs.
    #[must_use]
    pub fn engine(&self) -> Option<&Engine> {
        self.process.as_ref().map(|process| &process.engine)
    }

    /// The engine of the process, if one runs, for reports that are worked out on demand.
    pub fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.process.as_mut().map(|process| &mut process.engine)
    }

    pub(crate) fn process(&self) -> Option<&Contender> {
        self.process.as_ref()
    }

    pub(crate) fn process_mut(&mut self) -> Option<&mut Contender> {
        self.process.as_mut()
    }

    /// Cuts all watches of the process. They go on at `again_ms` where they were.
    pub fn cut_watches(&mut self, again_ms: UnixMs) {
        for informer in self.process.iter_mut().flat_map(|it| &mut it.informers) {
            informer.cut(again_ms);
        }
    }

    /// How often each pod was bound by requests of this replica.
    #[must_use]
    pub fn binds(&self) -> &BTreeMap<Uid, u32> {
        &self.binds
    }

    /// For each pod that was bound, the number of the process that asked for it.
    pub(crate) fn binders(&self) -> &BTreeMap<Uid, u32> {
        &self.binders
    }

    /// Strays: pods that were bound by a request that its process had already given up, or whose
    /// process had ended.
    pub(crate) fn strays(&self) -> &BTreeSet<Uid> {
        &self.strays
    }

    /// How many evictions of this replica the API server accepted.
    #[must_use]
    pub fn evictions(&self) -> u32 {
        self.evictions
    }

    /// When the network or the process next has something to do; `UnixMs::MAX`: never.
    #[must_use]
    pub fn due_ms(&self) -> UnixMs {
        let network = self.under_way.keys().next().map(|(at_ms, _)| *at_ms);
        let process = self.process.as_ref().map(Contender::due_ms);
        network
            .into_iter()
            .chain(process)
            .min()
            .unwrap_or(UnixMs::MAX)
    }

    /// Delivers requests and answers that are due. Returns whether a request was among them that
    /// was not for the lease.
    pub fn carry(&mut self, server: &mut ApiServer, now_ms: UnixMs) -> bool {
        let mut busy = false;
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= now_ms
        {
            match entry.remove() {
                Passing::Request(flight, heard) => {
                    busy |= !matches!(flight.action, Action::Lease(_));
                    self.request(flight, heard, server, now_ms);
                }
                Passing::Answer(flight, outcome) => {
                    if let Some(process) = &mut self.process
                        && flight.start == self.starts
                    {
                        process.answered(flight.id, outcome);
                    }
                }
            }
        }
        busy
    }

    fn request(
        &mut self,
        flight: Arc<Flight>,
        heard: bool,
        server: &mut ApiServer,
        now_ms: UnixMs,
    ) {
        server.flow_control_s = (now_ms < self.storm_until_ms).then_some(1);
        let answer = server.handle(client::request(&flight.action), now_ms);
        server.flow_control_s = None;
        match (&flight.action, &answer) {
            (Action::Bind(bind), Answer::Done) => {
                *self.binds.entry(bind.pod.uid).or_insert(0) += 1;
                self.binders.insert(bind.pod.uid, flight.start);
                let process = self.process.as_ref();
                let waits = process.is_some_and(|process| process.waits_for(flight.id));
                if !waits || flight.start != self.starts {
                    self.strays.insert(bind.pod.uid);
                }
            }
            (Action::Evict(_), Answer::Done) => self.evictions += 1,
            _ => {}
        }
        if heard && let Some(answer_ms) = flight.answer_ms {
            let outcome = match &flight.instead {
                Some(instead) => instead.clone(),
                None => client::outcome(&flight.action, answer),
            };
            self.pass(now_ms + answer_ms, Passing::Answer(flight, outcome));
        }
    }

    /// Lets the process take its turn, if it has something to do: it takes in what has arrived,
    /// steps its engine once, and sends the commands.
    pub fn turn(
        &mut self,
        server: &mut ApiServer,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
        log: bool,
    ) -> Turn {
        let Some(process) = &mut self.process else {
            return Turn::default();
        };
        process.follow(server, faults, random, now_ms);
        let Some(stepped) = process.turn(now_ms, log) else {
            return Turn::default();
        };
        let events = std::mem::take(&mut process.last_events);
        if process.is_shut_down() {
            self.kill();
        }
        let commands = stepped.commands;
        let sent = commands
            .iter()
            .map(|command| (command.id, command.action.clone()))
            .collect();
        for command in commands {
            self.send(command, faults, random, now_ms);
        }
        Turn {
            stepped: true,
            heard: stepped.heard,
            events,
            commands: sent,
            violations: stepped.violations,
        }
    }

    fn send(&mut self, command: Command, faults: &mut Faults, random: &mut Random, now_ms: UnixMs) {
        let lease = matches!(command.action, Action::Lease(_));
        let slow = !lease && now_ms < self.slow_until_ms;
        let passage = Passage::draw(&command.action, slow, faults, random);
        let flight = Arc::new(Flight {
            start: self.starts,
            id: command.id,
            action: command.action,
            answer_ms: passage.answer_ms,
            instead: passage.instead.clone(),
        });
        for (index, way_ms) in passage.arrivals_ms.iter().enumerate() {
            let request = Passing::Request(Arc::clone(&flight), index == passage.heard);
            self.pass(now_ms + way_ms, request);
        }
        if passage.arrivals_ms.is_empty()
            && let (Some(outcome), Some(answer_ms)) = (passage.instead, passage.answer_ms)
        {
            self.pass(now_ms + answer_ms, Passing::Answer(flight, outcome));
        }
    }

    fn pass(&mut self, at_ms: UnixMs, passing: Passing) {
        self.numbered += 1;
        self.under_way.insert((at_ms, self.numbered), passing);
    }
}
