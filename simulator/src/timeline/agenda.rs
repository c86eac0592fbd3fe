//! Events that are still to happen, in a total order: by time, and events of one time in the order
//! in which they were scheduled.

use gpu_batch_policies::event::Event;
use gpu_batch_policies::facts::UnixMs;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Events by time.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    /// How many events were ever scheduled.
    scheduled: u64,
}

#[derive(Debug)]
struct Entry {
    at_ms: UnixMs,
    number: u64,
    event: Event,
}

impl Agenda {
    pub(super) fn push(&mut self, at_ms: UnixMs, event: Event) {
        self.scheduled += 1;
        self.entries.push(Reverse(Entry {
            at_ms,
            number: self.scheduled,
            event,
        }));
    }

    /// When the next event is due.
    pub(super) fn next_ms(&self) -> Option<UnixMs> {
        self.entries.peek().map(|Reverse(entry)| entry.at_ms)
    }

    /// Takes the next event that is due at `now_ms`; `None`: there is none.
    pub(super) fn due(&mut self, now_ms: UnixMs) -> Option<Event> {
        if self.next_ms()? > now_ms {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry.event)
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
