//! Which gangs no other queue can reclaim: those within the quota of their queue.
//!
//! Of the gangs of a queue, taken in the order non-preemptible, priority, oldest bind, each whose
//! minimum still fits the quota beside those before it is *protected*. Surplus members come
//! after all minima, so they never push out a gang. Where quotas promise more than there is, a
//! quota is what the division of the cluster leaves of it.
//!
//! Each resource that is divided is looked at by itself: reclaim takes what is over the quota of
//! the resource that is short. A gang that is over in one of them can be reclaimed for that one.

use crate::facts::{Amount, UnixMs};
use crate::gangs::counts::{by_leaf, has_place};
use crate::ids::{GangId, PodId};
use crate::queues::{Demand, GovernedId, QueueId, add_demand};
use crate::state::ClusterState;
use crate::state::pod::Pod;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// What the minimum of a gang holds in a queue, and the gang's place in the order in which quota is
/// given.
struct Minimum<'a> {
    place: (bool, Reverse<i32>, UnixMs, &'a str, u128),
    gang: GangId,
    core: Vec<PodId>,
    holds: Demand,
}

/// A gang that holds something in a queue.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) gang: GangId,
    /// The members with a place that the gang cannot lose without going below its minimum.
    pub(crate) core: Vec<PodId>,
    /// Whether the minimum is protected from every other queue. A gang that is not preemptible is
    /// never evicted, so it is always protected.
    pub(crate) is_protected: bool,
}

/// The gangs that hold something in a queue, those first that get quota first.
///
/// Costs O(members of the queue's gangs). The trap: the division of over-committed quotas is the
/// one that was last worked out, see [`QueueTree::divide`](crate::queues::QueueTree::divide).
pub(crate) fn holdings(state: &ClusterState, queue: QueueId) -> Vec<Holding> {
    let gangs = state.submitted.to(state.queues.name(queue));
    let mut minima: Vec<Minimum<'_>> = gangs
        .filter_map(|gang| minimum(state, queue, gang))
        .collect();
    minima.sort_unstable_by(|one, other| one.place.cmp(&other.place));
    let mut left: BTreeMap<GovernedId, Amount> = BTreeMap::new();
    let mut fits_quota = |holds: &Demand| {
        let mut fits = true;
        for (key, amount) in holds {
            let left = left
                .entry(*key)
                .or_insert_with(|| state.queues.guaranteed(queue, *key));
            match left.checked_sub(*amount) {
                Some(rest) => *left = rest,
                None => fits = false,
            }
        }
        fits
    };
    let holdings = minima.into_iter().map(|minimum| {
        let fits = fits_quota(&minimum.holds);
        Holding {
            is_protected: fits || !state.gangs[minimum.gang].spec.preemptible,
            gang: minimum.gang,
            core: minimum.core,
        }
    });
    holdings.collect()
}

/// The gangs that hold something in a queue, each with whether its minimum is protected, see
/// [`holdings`].
pub(crate) fn protected(state: &ClusterState, queue: QueueId) -> BTreeMap<GangId, bool> {
    let holdings = holdings(state, queue).into_iter();
    holdings
        .map(|holding| (holding.gang, holding.is_protected))
        .collect()
}

/// What the minimum of a gang holds in a queue; `None`: the gang holds nothing there.
fn minimum(state: &ClusterState, queue: QueueId, id: GangId) -> Option<Minimum<'_>> {
    let gang = &state.gangs[id];
    let members = gang.members.iter().map(|pod| &state.pods[*pod]);
    let here = members.filter(|pod| holding(pod, queue).is_some());
    let oldest_ms = here.map(bound_ms).min()?;
    let core = core(state, id);
    let mut holds = Demand::new();
    for pod in &core {
        if let Some(demand) = holding(&state.pods[*pod], queue) {
            add_demand(&mut holds, demand);
        }
    }
    state.queues.keep_deciding(queue, &mut holds);
    Some(Minimum {
        place: (
            gang.spec.preemptible,
            Reverse(gang.spec.priority),
            oldest_ms,
            &gang.name,
            gang.key.namesake(),
        ),
        gang: id,
        core,
        holds,
    })
}

/// What a member holds in a queue; `None`: nothing.
fn holding(pod: &Pod, queue: QueueId) -> Option<&Demand> {
    let account = pod.account()?;
    (account.queue == queue && pod.stays()).then_some(&account.demand)
}

/// The members with a place that the gang cannot lose without going below its minimum. Of members
/// that could stand for each other the newest are surplus: they leave first.
fn core(state: &ClusterState, id: GangId) -> Vec<PodId> {
    let gang = &state.gangs[id];
    let mut members: Vec<PodId> = gang.members.to_vec();
    members.retain(|pod| state.pods[*pod].stays());
    if let ([_], None) = (&*gang.members, gang.tree())
        && gang.spec.minimum > 0
    {
        return members;
    }
    members.sort_unstable_by(|one, other| {
        let (one, other) = (&state.pods[*one], &state.pods[*other]);
        let by_age = bound_ms(one).cmp(&bound_ms(other));
        by_age.then_with(|| one.name.cmp(&other.name))
    });
    let stays = |pod: &Pod| has_place(pod) && !pod.leaving;
    let mut held = by_leaf(state, gang, &stays);
    let Some(tree) = gang.tree() else {
        let surplus = held[0].saturating_sub(gang.spec.minimum) as usize;
        members.truncate(members.len().saturating_sub(surplus));
        return members;
    };
    let mut core = Vec::new();
    while let Some(pod) = members.pop() {
        let Some(leaf) = gang.leaf_of(&state.pods[pod]) else {
            continue;
        };
        held[leaf] = held[leaf].saturating_sub(1);
        if !tree.is_met(&held) {
            held[leaf] += 1;
            core.push(pod);
        }
    }
    core
}

/// When a member was bound; a member that is being bound is the newest.
fn bound_ms(pod: &Pod) -> UnixMs {
    let bound_ms = pod.own.as_ref().and_then(|own| own.bound_ms);
    bound_ms.unwrap_or(UnixMs::MAX)
}
