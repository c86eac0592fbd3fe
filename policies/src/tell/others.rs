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
//!               from us five times at most
//! ```
//!
//! So a scheduler that was given another name tells of its queues again; of a new queue, which
//! both tell of before either has a gang there, the one tells that has one; and two that share a
//! queue do not write over each other for ever. Without a gang there, a scheduler answers no write:
//! two that write when the same second is over would take the queue from each other each second.

use crate::facts::QueueFacts;
use crate::queues::QueueId;
use crate::state::ClusterState;
use crate::tell::Teller;

/// How often a queue with gangs of ours is taken back from another gpu-batch: one that shares no
/// queue with us may write a few times before it hears whose a new queue is.
const TAKEN_BACK: u32 = 5;

impl Teller {
    /// Takes in that another gpu-batch begins to tell of a queue that this one told of.
    pub(super) fn hear_of_queue(&mut self, state: &ClusterState, facts: &QueueFacts) {
        let Some(queue) = state.queues.find(&facts.name) else {
            return;
        };
        // Of two writes soon after each other, the watch may show the last one alone.
        let was_ours = state.queues.is_told_by_other(&facts.name) == Some(false)
            || self.reported_queues.contains_key(&queue);
        if !was_ours || !facts.is_told_by_other || !self.is_used(queue) {
            return;
        }
        *self.taken_queues.entry(facts.name.clone()).or_default() += 1;
        self.dirty_queues = true;
        self.reported_queues.remove(&queue);
    }

    /// Whether gangs are in a queue, or below it.
    fn is_used(&self, queue: QueueId) -> bool {
        let gangs = self.gangs_by_queue.get(&queue);
        gangs.is_some_and(|(pending, running)| pending + running > 0)
    }

    /// Whether the status of a queue is left to another gpu-batch.
    pub(super) fn is_left_alone(&self, state: &ClusterState, queue: QueueId) -> bool {
        let name = state.queues.name(queue);
        let taken = self.taken_queues.get(name).copied().unwrap_or_default();
        state.queues.is_told_by_other(name) == Some(true)
            && (!self.is_used(queue) || taken > TAKEN_BACK)
    }
}
