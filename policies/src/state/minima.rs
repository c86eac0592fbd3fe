//! What the minimum of each gang holds in each queue, in the order in which quota is given.
//!
//! [`crate::gangs::protected`] works out the minima anew of the gangs that have changed.

use super::ClusterState;
use crate::facts::UnixMs;
use crate::ids::{ById, GangId, PodId};
use crate::queues::{Demand, QueueId};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use smallvec::SmallVec;

/// The order in which the gangs of a queue get its quota: not preemptible, priority, oldest bind,
/// name, namesake. The number of the gang comes last: a gang that has gone may have left its name
/// to another one.
pub(crate) type QuotaOrder = (bool, Reverse<i32>, UnixMs, Arc<str>, u128, GangId);

/// A gang that holds something in a queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Minimum {
    pub(crate) gang: GangId,
    pub(crate) queue: QueueId,
    pub(crate) order: QuotaOrder,
    /// The members with a place that the gang cannot lose without going below its minimum.
    pub(crate) core: SmallVec<[PodId; 2]>,
    /// What leaves together of the other members with a place, those that leave first before the
    /// others.
    pub(crate) surplus: Vec<Surplus>,
    /// The places in `surplus` in the order in which quota protects them: a minimum of a sub-group
    /// before what leaves with it, then the oldest first.
    pub(crate) surplus_order: SmallVec<[usize; 2]>,
    /// What the core holds in the queue.
    pub(crate) holds: Demand,
    /// When the last member of the core was bound; far in the future if one does not say when.
    pub(crate) since_ms: UnixMs,
    /// All members with a place are bound, and count in the queue.
    pub(crate) is_settled: bool,
}

/// Members that a gang does not need and that leave together: one, or the minimum of a sub-group
/// that the gang can go without.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Surplus {
    pub(crate) pods: SmallVec<[PodId; 1]>,
    /// The places in [`Minimum::surplus`] of the minima of sub-groups with which the members leave,
    /// the widest sub-group first.
    pub(crate) leaves_with: Vec<usize>,
}

impl Minimum {
    /// Whether others may take the gang's room.
    pub(crate) fn is_preemptible(&self) -> bool {
        self.order.0
    }
}

impl Surplus {
    /// One member, and with what it leaves.
    pub(crate) fn one(pod: PodId, leaves_with: &[usize]) -> Self {
        Self {
            pods: SmallVec::from([pod]),
            leaves_with: leaves_with.to_vec(),
        }
    }
}

/// The minima of all gangs, by queue and by gang.
#[derive(Debug, Default)]
pub(crate) struct Minima {
    by_queue: BTreeMap<QueueId, BTreeMap<QuotaOrder, Arc<Minimum>>>,
    of_gang: ById<GangId, SmallVec<[Arc<Minimum>; 1]>>,
    /// Gangs that hold something else than when their minima were last worked out, or may do so.
    changed: Vec<GangId>,
    is_changed: ById<GangId, bool>,
}

impl Minima {
    /// The gangs that hold something in a queue, in the order in which they get quota.
    pub(crate) fn of_queue(&self, queue: QueueId) -> impl Iterator<Item = &Arc<Minimum>> {
        let minima = self.by_queue.get(&queue).into_iter();
        minima.flat_map(BTreeMap::values)
    }

    /// All minima that are kept, by queue.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Minimum> {
        let queues = self.by_queue.values();
        queues.flat_map(|minima| minima.values().map(|minimum| &**minimum))
    }

    pub(crate) fn replace(&mut self, gang: GangId, now: SmallVec<[Arc<Minimum>; 1]>) {
        for before in &self.of_gang[gang] {
            if let Some(minima) = self.by_queue.get_mut(&before.queue) {
                minima.remove(&before.order);
                if minima.is_empty() {
                    self.by_queue.remove(&before.queue);
                }
            }
        }
        for minimum in &now {
            let minima = self.by_queue.entry(minimum.queue).or_default();
            minima.insert(minimum.order.clone(), Arc::clone(minimum));
        }
        self.of_gang[gang] = now;
    }

    /// Whether a gang held something when its minima were last worked out.
    pub(crate) fn holds(&self, gang: GangId) -> bool {
        !self.of_gang[gang].is_empty()
    }

    /// Whether the minima of a gang are to be worked out anew.
    pub(crate) fn is_changed(&self, gang: GangId) -> bool {
        self.is_changed[gang]
    }

    /// Takes at most so many of the gangs that have changed.
    pub(crate) fn take_changed(&mut self, gangs_max: usize) -> Vec<GangId> {
        let left = self.changed.len().saturating_sub(gangs_max);
        let changed = self.changed.split_off(left);
        for gang in &changed {
            self.is_changed.forget(*gang);
        }
        changed
    }
}

impl ClusterState {
    /// Notes that a gang may hold something else, or that its minimum is another one.
    pub(crate) fn note_minimum(&mut self, gang: GangId) {
        self.footprints.forget(gang);
        let minima = &mut self.minima;
        if !core::mem::replace(&mut minima.is_changed[gang], true) {
            minima.changed.push(gang);
        }
    }
}
