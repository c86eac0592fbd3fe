//! Whether this process may act, and whether it is about to stop.

use super::{Election, LeaseAnswer, LeaseCall, LeaseSettings};
use crate::facts::UnixMs;

/// The part of an engine that keeps the lease.
#[derive(Debug)]
pub(crate) struct Leader {
    /// `None`: this process may always act, because there is no other.
    election: Option<Election>,
    /// The process is about to stop: it begins nothing new, and gives the lease back as soon as
    /// nothing is under way.
    pub(crate) stopping: bool,
}

impl Leader {
    /// A process that has not looked at the lease yet. `lease`: `None` for a process that leads at
    /// once and always.
    pub(crate) fn new(lease: Option<LeaseSettings>) -> Self {
        Self {
            election: lease.map(Election::new),
            stopping: false,
        }
    }

    /// The next request for the lease, if one is due. `settled`: nothing is under way, and the
    /// outcome of every binding is known; before that, the lease keeps the next leader away.
    pub(crate) fn poll(&mut self, now_ms: UnixMs, settled: bool) -> Option<LeaseCall> {
        let election = self.election.as_mut()?;
        if self.stopping && settled {
            election.release();
        }
        election.poll(now_ms)
    }

    /// Takes in how a request for the lease has ended.
    pub(crate) fn answered(&mut self, now_ms: UnixMs, answer: LeaseAnswer) {
        if let Some(election) = &mut self.election {
            election.answered(now_ms, answer);
        }
    }

    /// Whether this process may act at this time.
    pub(crate) fn leads(&self, now_ms: UnixMs) -> bool {
        let election = self.election.as_ref();
        election.is_none_or(|election| election.is_leader(now_ms))
    }

    /// When [`Leader::poll`] is to be called again, if ever.
    pub(crate) fn deadline(&self) -> Option<UnixMs> {
        let deadline_ms = self.election.as_ref().map(Election::deadline);
        deadline_ms.filter(|deadline_ms| *deadline_ms < UnixMs::MAX)
    }

    /// Whether this process has nothing to give back: it has released the lease, or there is none.
    pub(crate) fn is_released(&self) -> bool {
        self.election.as_ref().is_none_or(Election::is_released)
    }
}
