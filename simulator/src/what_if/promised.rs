//! What gangs would have been promised in another course of a session. The record has no promises,
//! so there is nothing to put beside them.

use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::facts::UnixMs;
use std::collections::{BTreeMap, BTreeSet};

/// What gangs were promised in a course, by the names of the gangs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promised {
    /// The first promise to each gang.
    pub starts: BTreeMap<Box<str>, Promise>,
    /// The gangs that waited at some time because others were promised a start, although there was
    /// room for them.
    pub behind: BTreeSet<Box<str>>,
}

/// The first promise to a gang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// When the promise was made.
    pub made_ms: UnixMs,
    /// When the gang was to start.
    pub start_ms: UnixMs,
}

impl Promised {
    /// Takes in what the engine promises now.
    pub(super) fn follow(&mut self, engine: &Engine, now_ms: UnixMs) {
        for (gang, start_ms) in engine.promised_starts() {
            if !self.starts.contains_key(gang) {
                let made_ms = now_ms;
                let promise = Promise { made_ms, start_ms };
                self.starts.insert(gang.into(), promise);
            }
        }
        for gang in engine.gangs_behind_promises() {
            if !self.behind.contains(gang) {
                self.behind.insert(gang.into());
            }
        }
    }
}
