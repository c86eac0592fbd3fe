//! What `gpu-batch replay` prints.

mod what_if;

pub(crate) use what_if::{WhatIfReport, draw as draw_what_if};

use gpu_batch_policies::facts::UnixMs;
use gpu_batch_simulator::journal::{Difference, Replayed};
use gpu_batch_simulator::what_if::Session;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// How a journal was run again, as `-o json` prints it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplayReport {
    /// The version of the scheduler that was recorded.
    pub version: String,
    /// The time of the first step.
    pub from: String,
    /// The time of the last step.
    pub to: String,
    /// Steps that were run again.
    pub steps: u64,
    /// Events that the steps were given.
    pub events: u64,
    /// Commands that the steps returned.
    pub commands: u64,
    /// How long the replay took, in seconds.
    pub seconds: f64,
    /// The first difference; `null`: there is none.
    pub difference: Option<DifferenceReport>,
}

/// Where the replay went another way than the record.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DifferenceReport {
    /// The step, from 1.
    pub step: u64,
    /// The time of the step.
    pub at: String,
    /// Which command of the step, from 1.
    pub command: usize,
    /// The recorded result.
    pub recorded: String,
    /// The result of the replay.
    pub replayed: String,
}

impl ReplayReport {
    /// The report of a replay, and of how long it took.
    #[must_use]
    pub(crate) fn new(replayed: &Replayed, took: Duration) -> Self {
        Self {
            version: replayed.version.to_string(),
            from: time(replayed.first_ms),
            to: time(replayed.last_ms),
            steps: replayed.steps,
            events: replayed.events,
            commands: replayed.commands,
            seconds: took.as_secs_f64(),
            difference: replayed.difference.as_ref().map(DifferenceReport::new),
        }
    }
}

impl DifferenceReport {
    fn new(difference: &Difference) -> Self {
        Self {
            step: difference.step,
            at: time(difference.now_ms),
            command: difference.position,
            recorded: difference.recorded.to_string(),
            replayed: difference.replayed.to_string(),
        }
    }
}

/// The report for people.
#[must_use]
pub(crate) fn draw(report: &ReplayReport) -> String {
    let ReplayReport {
        version,
        from,
        to,
        steps,
        events,
        commands,
        seconds,
        difference,
    } = report;
    if *steps == 0 {
        return "The journal holds no whole step.\n".to_owned();
    }
    let mut text = format!(
        "Recorded from {from} to {to} by version {version}\n\
         {steps} steps, {events} events, {commands} commands in {seconds:.2} s: "
    );
    match difference {
        None => text += "no difference\n",
        Some(difference) => {
            let DifferenceReport {
                step,
                at,
                command,
                recorded,
                replayed,
            } = difference;
            // Writing into a text cannot fail.
            let _ = write!(
                text,
                "the first difference is command {command} of step {step}, at {at}\n  \
                 recorded: {recorded}\n  replayed: {replayed}\n"
            );
        }
    }
    text
}

/// When the recorded scheduler began to decide, and the end of the record.
#[must_use]
pub(crate) fn span(session: &Session) -> (String, String) {
    (time(session.start_ms), time(session.end_ms))
}

fn time(at_ms: UnixMs) -> String {
    let at_ms = i64::try_from(at_ms).ok();
    let at = at_ms.and_then(|at_ms| jiff::Timestamp::from_millisecond(at_ms).ok());
    at.map_or_else(|| "never".to_owned(), |at| format!("{at:.3}"))
}
