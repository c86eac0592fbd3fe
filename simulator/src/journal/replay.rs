//! Runs a journal again: an engine of this program is given the recorded events at their times.

use super::{Damage, Reader, Record};
use crate::panics::caught;
use gpu_batch_policies::command::{
    Action, Beneficiary, Bind, ClaimKind, Command, Evict, PodReference,
};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::Event;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::Settings;
use std::fmt;
use std::io::Read;

/// The result of a replay.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The version of the scheduler that was recorded.
    pub version: Box<str>,
    /// Steps that were run again.
    pub steps: u64,
    /// Events that these steps were given.
    pub events: u64,
    /// Commands of these steps. All are as recorded, up to the difference.
    pub commands: u64,
    /// The time of the first step.
    pub first_ms: UnixMs,
    /// The time of the last step.
    pub last_ms: UnixMs,
    /// The first difference; no later step was run.
    pub difference: Option<Difference>,
    /// Why the journal could not be read to its end; the steps before the damage were run.
    pub damage: Option<Damage>,
}

/// Where a replay differs from the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The number of the step, from 1.
    pub step: u64,
    /// The time of the step.
    pub now_ms: UnixMs,
    /// The number of the command in the step, from 1.
    pub position: usize,
    /// The record at this position of the journal.
    pub recorded: Step,
    /// What the replay gave at this position.
    pub replayed: Step,
}

/// What a step gave at one position.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A command.
    Command(Box<Command>),
    /// No command: the step had fewer.
    End,
    /// The engine panicked, with this message.
    Panic(Box<str>),
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => words(command, formatter),
            Self::End => formatter.write_str("no further command"),
            Self::Panic(message) => write!(formatter, "a panic: {message}"),
        }
    }
}

/// Writes what a command does: binds and evictions in words, other commands as Rust prints them.
fn words(command: &Command, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Command {
        id,
        deadline_ms,
        action,
    } = command;
    match action {
        Action::Bind(Bind {
            pod,
            node,
            cards,
            assignment,
            queue,
            pod_group,
            minima,
        }) => {
            let PodReference {
                namespace,
                name,
                uid,
            } = pod;
            let gang = pod_group.as_deref().unwrap_or("none");
            write!(
                formatter,
                "bind pod {namespace}/{name} ({uid}) to node {node} for queue {queue}, PodGroup \
                 {gang}"
            )?;
            if !minima.is_empty() {
                write!(formatter, ", minimum {minima:?}")?;
            }
            if !cards.is_empty() {
                write!(formatter, ", on cards {cards:?}")?;
            }
            if let Some(assignment) = assignment {
                write!(formatter, ", assigned as {assignment:?}")?;
            }
        }
        Action::Evict(Evict {
            pod,
            cause,
            beneficiary,
        }) => {
            let PodReference {
                namespace,
                name,
                uid,
            } = pod;
            write!(formatter, "evict pod {namespace}/{name} ({uid}): {cause:?}")?;
            if let Some(Beneficiary {
                gang,
                claim,
                is_optimal,
            }) = beneficiary
            {
                let claim = match claim {
                    Some(ClaimKind::Quota) => ", to its quota",
                    Some(ClaimKind::FairShare) => ", to its fair share",
                    None => "",
                };
                let verdict = if *is_optimal { "optimal" } else { "feasible" };
                write!(formatter, " for {gang}{claim}, {verdict}")?;
            }
        }
        other => write!(formatter, "{other:?}")?,
    }
    write!(formatter, " (command {}, until {deadline_ms})", id.0)
}

/// Runs a journal again, to its end, to the first damage or to the first difference.
pub fn replay<R: Read>(reader: &mut Reader<R>) -> Replayed {
    let mut replayed = Replayed::default();
    let mut session: Option<Session> = None;
    loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(damage) => {
                replayed.damage = Some(damage);
                break;
            }
        };
        match (&mut session, record) {
            (_, Record::Begun { version, settings }) => {
                replayed.version = version;
                session = Some(Session::new(*settings));
            }
            (Some(session), record) => session.go_on(record, &mut replayed),
            // The reader refuses a journal that begins with anything else.
            (None, _) => {}
        }
        if replayed.difference.is_some() {
            break;
        }
    }
    replayed
}

/// An engine that is given what the recorded engine was given.
struct Session {
    engine: Engine,
    /// The commands or the panic of the last step, until they are compared with the record.
    outcome: Result<Vec<Command>, Box<str>>,
}

impl Session {
    fn new(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings),
            outcome: Ok(Vec::new()),
        }
    }

    fn go_on(&mut self, record: Record, replayed: &mut Replayed) {
        match record {
            Record::Begun { .. } => {}
            Record::Events { now_ms, events } => {
                if replayed.steps == 0 {
                    replayed.first_ms = now_ms;
                }
                replayed.last_ms = now_ms;
                replayed.steps += 1;
                replayed.events += events.len() as u64;
                self.outcome = step(&mut self.engine, now_ms, events);
            }
            Record::Commands(recorded) => {
                let outcome = std::mem::replace(&mut self.outcome, Ok(Vec::new()));
                replayed.commands += outcome.as_ref().map_or(0, Vec::len) as u64;
                let difference = compare(recorded, outcome);
                replayed.difference = difference.map(|found| found.at(replayed));
            }
            Record::Panicked { message } => match &self.outcome {
                Err(_) => self.engine = self.engine.after_panic(&message),
                Ok(commands) => {
                    let replayed_now = commands.first().map_or(Step::End, |command| {
                        Step::Command(Box::new(command.clone()))
                    });
                    let found = Found {
                        index: 0,
                        recorded: Step::Panic(message),
                        replayed: replayed_now,
                    };
                    replayed.difference = Some(found.at(replayed));
                }
            },
            Record::ShutDown => self.engine.shut_down(),
        }
    }
}

/// One step of the engine; the error is the message of its panic.
fn step(engine: &mut Engine, now_ms: UnixMs, events: Vec<Event>) -> Result<Vec<Command>, Box<str>> {
    caught(|| engine.step(now_ms, events))
}

/// A difference within a step.
struct Found {
    index: usize,
    recorded: Step,
    replayed: Step,
}

impl Found {
    fn at(self, replayed: &Replayed) -> Difference {
        Difference {
            step: replayed.steps,
            now_ms: replayed.last_ms,
            position: self.index + 1,
            recorded: self.recorded,
            replayed: self.replayed,
        }
    }
}

fn compare(recorded: Vec<Command>, outcome: Result<Vec<Command>, Box<str>>) -> Option<Found> {
    let as_step = |command: Option<&Command>| {
        command.map_or(Step::End, |command| {
            Step::Command(Box::new(command.clone()))
        })
    };
    match outcome {
        Err(message) => Some(Found {
            index: 0,
            recorded: as_step(recorded.first()),
            replayed: Step::Panic(message),
        }),
        Ok(replayed) => {
            let longer = recorded.len().max(replayed.len());
            let index = (0..longer).find(|&index| recorded.get(index) != replayed.get(index))?;
            Some(Found {
                index,
                recorded: as_step(recorded.get(index)),
                replayed: as_step(replayed.get(index)),
            })
        }
    }
}
