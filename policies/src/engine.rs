//! The engine: events in, commands out.

use crate::command::Command;
use crate::event::Event;
use crate::facts::UnixMs;
use crate::report::{GangReport, PodReport, QueueReport};
use crate::settings::Settings;
use alloc::vec::Vec;

/// Decides. One owner, no clock, no I/O.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
}

impl Engine {
    /// An engine that knows nothing yet. It plans once every kind has been listed.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Applies all events, then plans once, for at most a bounded slice of work.
    pub fn step(&mut self, _now_ms: UnixMs, _events: Vec<Event>) -> Vec<Command> {
        let _ = &self.settings;
        Vec::new()
    }

    /// When [`Engine::step`] wants to be called with [`Event::Continue`] if nothing happens before;
    /// a time that has passed: at once.
    #[must_use]
    pub fn next_deadline(&self) -> Option<UnixMs> {
        None
    }

    /// Whether every kind has been listed, so that decisions are made.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        false
    }

    /// Whether this engine may act now.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        false
    }

    /// All pods of ours, in the order of namespace and name.
    #[must_use]
    pub fn pod_reports(&self) -> Vec<PodReport> {
        Vec::new()
    }

    /// All gangs, in the order of their names.
    #[must_use]
    pub fn gang_reports(&self) -> Vec<GangReport> {
        Vec::new()
    }

    /// All queues, parents before children, siblings by name.
    #[must_use]
    pub fn queue_reports(&self) -> Vec<QueueReport> {
        Vec::new()
    }

    /// Every violation of an invariant, as sentences; empty is good.
    #[must_use]
    pub fn audit(&self) -> Vec<alloc::string::String> {
        Vec::new()
    }

    /// Stops planning and, once nothing is under way, gives the lease back.
    pub fn shut_down(&mut self) {}
}
