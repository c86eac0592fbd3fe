//! What one scheduler did with the pods of a session.

use super::Promised;
use gpu_batch_policies::facts::{Uid, UnixMs};
use std::collections::BTreeMap;

/// Where and when pods were bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// The binding of each pod. A pod is bound at most once.
    pub starts: BTreeMap<Uid, Start>,
    /// How many pods were evicted.
    pub evictions: u64,
    /// What gangs were promised; `None`: nobody is to be promised anything, or it is the recorded
    /// course, of which it is not known.
    pub promised: Option<Promised>,
}

/// One binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// When the scheduler asked for the binding.
    pub at_ms: UnixMs,
    /// When the pod gave back its room; `None`: it held the room to the end of the session.
    pub until_ms: Option<UnixMs>,
    /// The node that the pod was bound to.
    pub node: Box<str>,
    /// The queue that the pod was bound for.
    pub queue: Box<str>,
}

impl Course {
    pub(super) fn ended(&mut self, pod: Uid, now_ms: UnixMs) {
        if let Some(start) = self.starts.get_mut(&pod) {
            start.until_ms.get_or_insert(now_ms);
        }
    }
}
