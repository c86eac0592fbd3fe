//! Deadlines as data.

use crate::bind::outbox::StatusKey;
use crate::facts::{Uid, UnixMs};
use crate::ids::GangId;
use alloc::collections::BTreeSet;

/// The matters that come due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Look at a gang again. A timer of a gang that has gone does no harm: if another gang has its
    /// number now, that gang is looked at once for nothing.
    Gang(GangId),
    /// Go on with the binding of a pod.
    Binding(Uid),
    /// Write the status of queues.
    QueueStatus,
    /// Tell some refused gangs anew.
    Review,
    /// Search once more for a gang whose search ended early.
    Search,
    /// More evictions for gangs that wait may be sent.
    Pace,
    /// Write a status again: an older write may have arrived late.
    Rewrite(StatusKey),
}

/// All deadlines.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(UnixMs, Timer)>);

impl Timers {
    /// Lets a timer come due at a time.
    pub(crate) fn set(&mut self, at_ms: UnixMs, timer: Timer) {
        self.0.insert((at_ms, timer));
    }

    /// When the next timer comes due.
    pub(crate) fn next(&self) -> Option<UnixMs> {
        self.0.first().map(|(at_ms, _)| *at_ms)
    }

    /// Takes a timer that is due.
    pub(crate) fn due(&mut self, now_ms: UnixMs) -> Option<Timer> {
        if self.next()? > now_ms {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }
}
