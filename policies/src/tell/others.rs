//! Which Queues another gpu-batch, with another `schedulerName`, tells of.
//!
//! Both see all Queues, and each knows only its own gangs. A status says in `status.scheduler` who
//! wrote it:
//!
//! ```text
//!                    another one writes
//! ours, or nobody's ---------------------> another one's
//!         ^                                      |
//!         |   we write: a gang of ours is in     |
//!         +---- the queue, and it was taken -----+
//!               from us three times at most
//! ```
//!
//! So a scheduler that was given another name tells of its queues again; of a new queue, which
//! both tell of before either has a gang there, the one tells that has one; and two that share a
//! queue do not write over each other for ever.

use crate::facts::QueueFacts;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// How often a queue with gangs of ours is taken back from another gpu-batch.
const TAKEN_BACK: u32 = 3;

/// The queues of which another gpu-batch tells, or has told.
#[derive(Debug, Default)]
pub(super) struct Others {
    queues: BTreeMap<Box<str>, Shared>,
}

/// A queue of which another gpu-batch tells, or has told.
#[derive(Debug, Default)]
struct Shared {
    /// The other one wrote the status.
    is_theirs: bool,
    /// How often the other one wrote over our status while gangs of ours were in the queue.
    taken: u32,
}

impl Others {
    /// Takes in a queue as it is now. `was_ours`: its status was not another one's before, and
    /// gangs of ours are in it. Returns whether another one has just begun to tell of it.
    pub(super) fn hear(&mut self, queue: &QueueFacts, was_ours: bool) -> bool {
        if !queue.is_told_by_other && !self.queues.contains_key(&queue.name) {
            return false;
        }
        let shared = self.queues.entry(queue.name.clone()).or_default();
        let begins = queue.is_told_by_other && !shared.is_theirs;
        shared.taken += u32::from(begins && was_ours);
        shared.is_theirs = queue.is_told_by_other;
        begins
    }

    /// Whether the status of a queue is left to another gpu-batch. `is_used`: gangs of ours are in
    /// the queue.
    pub(super) fn is_left_alone(&self, queue: &str, is_used: bool) -> bool {
        let shared = self.queues.get(queue).filter(|shared| shared.is_theirs);
        shared.is_some_and(|shared| !is_used || shared.taken > TAKEN_BACK)
    }

    /// Forgets a queue that was deleted.
    pub(super) fn forget(&mut self, queue: &str) {
        self.queues.remove(queue);
    }
}
