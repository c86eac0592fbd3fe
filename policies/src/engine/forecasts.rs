//! Forecasts that have come to pass: promised starts and expected runtimes beside the real ones,
//! and pods that were not aligned although they were to be.

use crate::facts::UnixMs;
use crate::plan::reserve::ends::EndedRun;
use crate::report::Forecast;
use alloc::collections::VecDeque;

/// How many forecasts are kept for a shell that does not take them, a few MiB; of more, the oldest
/// are forgotten. More gangs than that end in no step.
const FORECASTS_MAX: usize = 100_000;

/// The forecasts that no shell has taken yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Forecasts(VecDeque<Forecast>);

impl Forecasts {
    /// Takes in that a gang has started that was first promised to start at a time.
    pub(super) fn note_start(&mut self, promised_ms: UnixMs, started_ms: UnixMs) {
        self.note(Forecast::Start {
            promised_ms,
            started_ms,
        });
    }

    /// Takes in that a gang has ended well. It is noted only if a runtime was expected of the gang.
    pub(super) fn note_run(&mut self, run: EndedRun) {
        if let Some(expectation) = run.expectation {
            self.note(Forecast::Runtime {
                source: expectation.source,
                expected_ms: expectation.runtime_ms,
                real_ms: run.runtime_ms,
            });
        }
    }

    /// Takes in that kubelets have rejected this many pods that they were to align.
    pub(super) fn note_misaligned(&mut self, pods: usize) {
        for _ in 0..pods.min(FORECASTS_MAX) {
            self.note(Forecast::Misaligned);
        }
    }

    fn note(&mut self, forecast: Forecast) {
        if self.0.len() == FORECASTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(forecast);
    }

    /// The forecasts that were noted since the last call.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Forecast> + use<> {
        core::mem::take(&mut self.0).into_iter()
    }
}
