//! Which gangs name which queue.

use super::{ClusterState, Lookup};
use crate::ids::GangId;
use alloc::{collections::BTreeSet, sync::Arc};
use smallvec::SmallVec;

/// The queues that a gang names, sorted: its own, and the queues that its members were bound for.
pub(crate) type QueueNames = SmallVec<[Arc<str>; 1]>;

/// Gangs by the names of queues, whether such queues exist or not, so that a change of one queue
/// costs a look at its gangs alone.
#[derive(Debug, Default)]
pub(crate) struct Submitted(Lookup<Arc<str>, BTreeSet<GangId>>);

impl Submitted {
    /// The gangs that name a queue.
    pub(crate) fn to(&self, queue: &str) -> impl Iterator<Item = GangId> {
        self.0.get(queue).into_iter().flatten().copied()
    }

    /// The name of a queue, shared with the gangs that name the queue already.
    pub(crate) fn name(&self, queue: &str) -> Arc<str> {
        let known = self.0.get_key_value(queue);
        known.map_or_else(|| queue.into(), |(name, _)| Arc::clone(name))
    }

    fn remove(&mut self, queue: &str, gang: GangId) {
        if let Some(gangs) = self.0.get_mut(queue) {
            gangs.remove(&gang);
            if gangs.is_empty() {
                self.0.remove(queue);
            }
        }
    }
}

impl ClusterState {
    /// Notes which queues a gang names now.
    pub(crate) fn note_submitted(&mut self, id: GangId) {
        let gang = &self.gangs[id];
        let is_noted = |name: &str| gang.named.iter().any(|noted| **noted == *name);
        let bound_for = gang.members.iter().filter_map(|pod| {
            let own = self.pods[*pod].own.as_ref()?;
            own.bound_queue.as_deref()
        });
        let own = &gang.spec.queue;
        let known = gang.named.len();
        if known == 1 && is_noted(own) && bound_for.clone().all(is_noted) {
            return;
        }
        let others = bound_for.filter(|name| *name != &**own);
        let others = others.map(|name| self.submitted.name(name));
        let mut now: QueueNames = core::iter::once(Arc::clone(own)).chain(others).collect();
        now.sort();
        now.dedup();
        let before = core::mem::replace(&mut self.gangs[id].named, now.clone());
        for name in before.iter().filter(|name| !now.contains(name)) {
            self.submitted.remove(name, id);
        }
        for name in now {
            self.submitted.0.entry(name).or_default().insert(id);
        }
    }

    /// Takes a gang that is gone out of the index.
    pub(crate) fn forget_submitted(&mut self, id: GangId) {
        self.note_minimum(id);
        for name in core::mem::take(&mut self.gangs[id].named) {
            self.submitted.remove(&name, id);
        }
    }
}
