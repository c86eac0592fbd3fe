//! Gangs that wait for room only and for which no start was found: too little is known of when
//! others end, or too many times would have to be tried.
//!
//! They are asked once more when that may be otherwise: a gang begins or ends, is expected to end
//! at another time, or nodes or promises change. Each asking is work, so only some are asked at a
//! time, the one that was asked longest ago first.

use crate::facts::UnixMs;
use crate::ids::GangId;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How many gangs are asked at a time.
const ASKED_AT_ONCE: usize = 8;
/// How long after some gangs were asked others are: in a cluster of 5,000 nodes asking eight of
/// them takes up to 40 ms.
const PAUSE_MS: u64 = 500;

/// The gangs for which no start was found, and which of them are to be asked once more.
#[derive(Debug, Default)]
pub(super) struct Startless {
    gangs: VecDeque<GangId>,
    /// How many of the first gangs are to be asked.
    to_ask: usize,
    due_ms: UnixMs,
}

impl Startless {
    pub(super) fn is_empty(&self) -> bool {
        self.gangs.is_empty()
    }

    /// Adds a gang that was asked just now.
    pub(super) fn add(&mut self, id: GangId) {
        self.forget(id);
        self.gangs.push_back(id);
    }

    pub(super) fn forget(&mut self, id: GangId) {
        self.gangs.retain(|gang| *gang != id);
        self.to_ask = self.to_ask.min(self.gangs.len());
    }

    /// Notes that there may be starts for these gangs now.
    pub(super) fn ask_again(&mut self) {
        self.to_ask = self.gangs.len();
    }

    /// When the next gangs are to be asked; `None`: nothing has changed since all were.
    pub(super) fn due_ms(&self) -> Option<UnixMs> {
        (self.to_ask > 0).then_some(self.due_ms)
    }

    /// The gangs that are to be asked now. They are added again if no start is found for them.
    pub(super) fn take_due(&mut self, now_ms: UnixMs) -> Vec<GangId> {
        if self.due_ms().is_none_or(|due_ms| due_ms > now_ms) {
            return Vec::new();
        }
        self.due_ms = now_ms.saturating_add(PAUSE_MS);
        let asked = self.to_ask.min(ASKED_AT_ONCE);
        self.to_ask -= asked;
        self.gangs.drain(..asked).collect()
    }
}
