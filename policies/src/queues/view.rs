//! What the engine looks up in the tree.

use super::{GovernedId, QueueId, QueueTree, View};
use crate::facts::{Amount, PastUse, QueueResource, Uid};
use alloc::{boxed::Box, vec::Vec};

impl QueueTree {
    pub(super) fn view(&self) -> View<'_> {
        View {
            structure: &self.structure,
            keys: &self.keys,
            ledger: &self.ledger,
        }
    }

    /// All queues, parents before children, siblings by name.
    pub(crate) fn ids(&self) -> Vec<QueueId> {
        self.structure.queues().to_vec()
    }

    /// The queue and its ancestors, from the queue upwards, without the root.
    pub(crate) fn path(&self, queue: QueueId) -> impl Iterator<Item = QueueId> {
        self.structure.path(queue)
    }

    /// The names of all queues that have an object.
    pub(crate) fn defined_names(&self) -> Vec<Box<str>> {
        self.definitions.keys().cloned().collect()
    }

    /// Name and UID of the queue's object; `None` for the queue `default` where it has no object.
    pub(crate) fn object(&self, queue: QueueId) -> Option<(Box<str>, Uid)> {
        let facts = self.definitions.get(self.name(queue))?;
        Some((facts.name.clone(), facts.uid))
    }

    /// The past use that the queue's status, as last read, tells; `None`: it tells none.
    pub(crate) fn told_past(&self, queue: QueueId) -> Option<&PastUse> {
        let facts = self.definitions.get(self.name(queue))?;
        facts.past_use.as_ref()
    }

    /// Whether another gpu-batch wrote the status of the queue of this name; `None`: no such queue
    /// was seen.
    pub(crate) fn is_told_by_other(&self, name: &str) -> Option<bool> {
        Some(self.definitions.get(name)?.is_told_by_other)
    }

    /// `spec.resources` of the queue, valid or not; empty for a queue without an object.
    pub(crate) fn entries(&self, queue: QueueId) -> &[QueueResource] {
        let facts = self.definitions.get(self.name(queue));
        facts.map_or(&[], |facts| &facts.resources)
    }

    /// The parent that the queue's definition names, whether it exists or not.
    pub(crate) fn parent_name(&self, queue: QueueId) -> Option<&str> {
        self.definitions.get(self.name(queue))?.parent.as_deref()
    }

    /// What the queue holds, by key, in base units; without zeros. What is leaving does not count,
    /// what is coming does.
    pub(crate) fn allocated(&self, queue: QueueId) -> impl Iterator<Item = (GovernedId, Amount)> {
        let row = self.ledger.allocated.row(queue);
        let cells = self.ledger.all_keys().map(|key| (key, row[key.index()]));
        cells.filter(|(_, amount)| *amount > 0)
    }

    /// What the members in the queue ask for, waiting or running, by key, in base units; without
    /// zeros.
    pub(crate) fn wanted(&self, queue: QueueId) -> impl Iterator<Item = (GovernedId, u128)> {
        let parts = &self.ledger.wanted[queue.index()];
        let sum = |key: GovernedId| parts.values().map(|part| part[key.index()]).sum();
        let cells = self.ledger.all_keys().map(move |key| (key, sum(key)));
        cells.filter(|(_, amount)| *amount > 0)
    }

    /// Whether the queue or an ancestor has a limit on a GPU model.
    pub(crate) fn has_model_limits(&self, queue: QueueId) -> bool {
        self.highest_model_limit(queue).is_some()
    }

    /// Of the queue and its ancestors, the one nearest to the root that has a limit on a GPU model.
    /// All that is held under such a limit of this queue or an ancestor is held in the queue
    /// returned, too.
    pub(crate) fn highest_model_limit(&self, queue: QueueId) -> Option<QueueId> {
        let has_limit = |id: &QueueId| {
            let mut terms = self.structure.node(*id).terms.iter();
            terms.any(|(key, terms)| terms.limit.is_some() && self.keys.plain(*key).is_some())
        };
        self.structure.path(queue).filter(has_limit).last()
    }

    /// The queues on the paths of both queues: what starts in one counts in the bounds of the other
    /// there.
    pub(crate) fn common(&self, queue: QueueId, other: QueueId) -> impl Iterator<Item = QueueId> {
        let path = self.structure.path(queue);
        path.filter(move |id| self.structure.path(other).any(|above| above == *id))
    }
}
