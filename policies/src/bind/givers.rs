//! The queues that give, looked at once more before the first victim is asked to leave.
//!
//! Between the plan and the first eviction lie the nominations, and the API server may take its
//! time for them. A queue whose pods have ended meanwhile, or whose bound has risen, may hold no
//! more than what is its own: then its gangs are protected now, and the plan ends (I9, R9).

use crate::ids::{GangId, PodId};
use crate::queues::{ClaimKind, Demand, QueueId, add_demand};
use crate::state::ClusterState;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

/// The queues from which a plan reclaims.
#[derive(Debug)]
pub(crate) struct Givers {
    kind: ClaimKind,
    /// The queue of the gang for which the plan is.
    to: Box<str>,
    /// The queues, by name, that were over their bounds when the plan was made.
    over: BTreeSet<Box<str>>,
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
        let queues = are_over(state, to, reclaimed, kind).into_iter();
        let over = queues.filter(|(_, is_over)| *is_over);
        Self {
            kind,
            to: state.queues.name(to).into(),
            over: over.map(|(id, _)| state.queues.name(id).into()).collect(),
        }
    }

    /// A queue, by name, that is over its bound no more. `reclaimed`: the victims that are there.
    pub(crate) fn one_within_bounds(
        &self,
        state: &ClusterState,
        reclaimed: impl Iterator<Item = PodId>,
    ) -> Option<&str> {
        let to = state.queues.find(&self.to)?;
        let queues = are_over(state, to, reclaimed, self.kind).into_iter();
        let within = queues.filter(|(_, is_over)| !is_over);
        let mut names = within.filter_map(|(id, _)| self.over.get(state.queues.name(id)));
        names.next().map(|name| &**name)
    }
}

/// For each queue that gives, whether it is over its bound in some key until the last victim
/// leaves: with the largest victim, and without all others (R1).
fn are_over(
    state: &ClusterState,
    to: QueueId,
    reclaimed: impl Iterator<Item = PodId>,
    kind: ClaimKind,
) -> BTreeMap<QueueId, bool> {
    let mut victims: BTreeMap<(QueueId, Option<GangId>), Demand> = BTreeMap::new();
    for pod in reclaimed.map(|id| &state.pods[id]) {
        if let Some(account) = pod.account() {
            let victim = victims.entry((account.queue, pod.gang())).or_default();
            add_demand(victim, &account.demand);
        }
    }
    let gives = |(leaf, _): &(QueueId, _)| state.queues.below_common(*leaf, to);
    let mut over: BTreeMap<QueueId, bool> = victims
        .keys()
        .flat_map(gives)
        .map(|queue| (queue, false))
        .collect();
    let holds = victims.iter().map(|((leaf, _), holds)| (*leaf, holds));
    for ((queue, key), last) in state.queues.largest_of(holds) {
        if let Some(is_over) = over.get_mut(&queue) {
            *is_over |= state.queues.stands_over(queue, key, last, kind);
        }
    }
    over
}
