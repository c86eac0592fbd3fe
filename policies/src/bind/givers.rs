//! The queues that give, looked at once more before the first victim is asked to leave.
//!
//! Between the plan and the first eviction lie the nominations, and the API server may take its
//! time for them. A queue whose pods have ended meanwhile, or whose bound has risen, may hold no
//! more than what is its own: then its gangs are protected now, and the plan ends (I9, R9). Other
//! plans do not bring that about: until the first victim of this one is asked to leave, they leave
//! its queues over their bounds, or they end it at once.

use crate::ids::{GangId, PodId};
use crate::queues::{ClaimKind, Demand, Giver, QueueId, add_demand};
use crate::state::ClusterState;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The queues from which a plan reclaims.
#[derive(Debug)]
pub(crate) struct Givers {
    kind: ClaimKind,
    /// The queue of the gang for which the plan is.
    to: Box<str>,
    /// The queues, by name, that were over their bounds when the plan was made.
    above_bounds: BTreeSet<Box<str>>,
}

impl Givers {
    /// The queues from which these pods, which count as leaving, are reclaimed for a gang of the
    /// queue `to`.
    pub(crate) fn of(
        state: &ClusterState,
        to: QueueId,
        reclaimed: impl Iterator<Item = PodId>,
        kind: ClaimKind,
    ) -> Self {
        let givers = givers(state, to, reclaimed, kind).into_values();
        let above = givers.filter(|giver| state.queues.is_over(giver));
        Self {
            kind,
            to: state.queues.name(to).into(),
            above_bounds: above
                .map(|giver| state.queues.name(giver.queue).into())
                .collect(),
        }
    }

    /// The queues that were over their bounds, as they are now. `reclaimed`: the victims that are
    /// there.
    pub(crate) fn now(
        &self,
        state: &ClusterState,
        reclaimed: impl Iterator<Item = PodId>,
    ) -> Vec<Giver> {
        let Some(to) = state.queues.find(&self.to) else {
            return Vec::new();
        };
        let givers = givers(state, to, reclaimed, self.kind).into_values();
        let was_over = |giver: &Giver| self.above_bounds.contains(state.queues.name(giver.queue));
        givers.filter(was_over).collect()
    }
}

/// The queues that give, each with the largest of its victims.
fn givers(
    state: &ClusterState,
    to: QueueId,
    reclaimed: impl Iterator<Item = PodId>,
    kind: ClaimKind,
) -> BTreeMap<QueueId, Giver> {
    let mut victims: BTreeMap<(QueueId, Option<GangId>), Demand> = BTreeMap::new();
    for pod in reclaimed.map(|id| &state.pods[id]) {
        if let Some(account) = pod.account() {
            let victim = victims.entry((account.queue, pod.gang())).or_default();
            add_demand(victim, &account.demand);
        }
    }
    let gives = |(leaf, _): &(QueueId, _)| state.queues.below_common(*leaf, to);
    let giver = |queue| Giver {
        queue,
        kind,
        largest: Demand::new(),
    };
    let mut givers: BTreeMap<QueueId, Giver> = victims
        .keys()
        .flat_map(gives)
        .map(|queue| (queue, giver(queue)))
        .collect();
    let holds = victims.iter().map(|((leaf, _), holds)| (*leaf, holds));
    for ((queue, key), amount) in state.queues.largest_of(holds) {
        if let Some(giver) = givers.get_mut(&queue) {
            giver.largest.push((key, amount));
        }
    }
    givers
}
