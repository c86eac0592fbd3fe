//! Which Queues another gpu-batch, with another `schedulerName`, tells of.
//!
//! Both see all Queues, and each knows only its own gangs. A status says in `status.scheduler` who
//! wrote it:
//!
//! ```text
//!               another one writes, and
//!  +--> ours, or nobody's ------------------+------------------------+
//!  |      ^            | no gang of ours    | gangs of ours          |
//!  |      | we write   v is in the queue    v are in the queue       |
//!  |      |         another one's        taken from us: left alone   |
//!  |      |            |                    |                        |
//!  |      +------------+ a gang of ours     | our name is seen again |
//!  |                     is in the queue    |                        |
//!  +----------------------------------------+------------------------+
//! ```
//!
//! So a scheduler that was given another name tells of its queues again, and two that share a queue
//! do not write over each other for ever.

use crate::facts::QueueFacts;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// The queues of which another gpu-batch tells.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// By name of the queue, whether it was taken from us.
    queues: BTreeMap<Box<str>, bool>,
}

impl Others {
    /// Takes in a queue as it is now. `is_used`: gangs of ours are in it, and its status was not
    /// another one's before.
    pub(super) fn hear(&mut self, queue: &QueueFacts, is_used: bool) {
        if !queue.is_told_by_other {
            self.queues.remove(&queue.name);
        } else if !self.queues.contains_key(&queue.name) {
            self.queues.insert(queue.name.clone(), is_used);
        }
    }

    /// Whether the status of a queue is left to another gpu-batch. `is_used`: gangs of ours are in
    /// the queue.
    pub(super) fn is_left_alone(&self, queue: &str, is_used: bool) -> bool {
        let taken = self.queues.get(queue);
        taken.is_some_and(|is_taken| *is_taken || !is_used)
    }

    /// Forgets a queue that was deleted.
    pub(super) fn forget(&mut self, queue: &str) {
        self.queues.remove(queue);
    }
}
