//! The pods that a gang wants to place next, and what they ask for.

use crate::facts::UnixMs;
use crate::ids::{ClassId, GangId, PodId};
use crate::place::Group;
use crate::queues::Demand;
use crate::state::ClusterState;
use alloc::vec::Vec;
use core::cmp::Reverse;
use smallvec::SmallVec;

/// What these pods ask for in all, by governed key in rising order, in base units.
pub(crate) fn demand_of_pods<'a>(
    state: &ClusterState,
    pods: impl Iterator<Item = &'a PodId>,
) -> Demand {
    let mut by_class: SmallVec<[(ClassId, u64); 2]> = SmallVec::new();
    for pod in pods {
        let class = state.pods[*pod].class;
        match by_class.iter_mut().find(|(known, _)| *known == class) {
            Some((_, pods)) => *pods += 1,
            None => by_class.push((class, 1)),
        }
    }
    let times = |(class, pods): (ClassId, u64)| {
        let mut demand = state.demand(class, None);
        for (_, amount) in &mut demand {
            *amount = amount.saturating_mul(pods);
        }
        demand
    };
    let mut by_class = by_class.into_iter().map(times);
    let mut sum = by_class.next().unwrap_or_default();
    for demand in by_class {
        for (entry, amount) in demand {
            match sum.iter_mut().find(|(known, _)| *known == entry) {
                Some((_, total)) => *total = total.saturating_add(amount),
                None => sum.push((entry, amount)),
            }
        }
    }
    sum.sort_unstable_by_key(|(entry, _)| *entry);
    sum
}

/// The pods of a gang that may be placed, in the order in which they are taken.
pub(crate) fn waiting_pods(state: &ClusterState, id: GangId, now_ms: UnixMs) -> Vec<PodId> {
    first_waiting(state, id, now_ms, 0)
}

/// The pods of a gang that may be placed, in the order in which they are taken; in no order if
/// there are no more than `all_max`: whoever takes all of them need not wait for names to be
/// compared.
pub(crate) fn first_waiting(
    state: &ClusterState,
    id: GangId,
    now_ms: UnixMs,
    all_max: usize,
) -> Vec<PodId> {
    let gang = &state.gangs[id];
    let placeable = |pod: &&PodId| state.may_be_placed(gang, &state.pods[**pod], now_ms);
    let mut pods: Vec<PodId> = gang.members.iter().filter(placeable).copied().collect();
    if pods.len() > all_max {
        pods.sort_by(|a, b| state.pods[*a].order_in_gang(&state.pods[*b]));
    }
    pods
}

/// The pods by class, the largest class first.
pub(crate) fn by_size(state: &ClusterState, pods: Vec<PodId>) -> Vec<Group> {
    let mut groups = by_class(state, pods);
    groups.sort_by_cached_key(|group| {
        let class = &state.classes[group.class];
        let amounts: Vec<_> = class
            .in_order
            .iter()
            .map(|(id, n)| (Reverse(state.resource_names.place(*id)), *n))
            .collect();
        (
            Reverse((class.gpus, class.cards)),
            Reverse(amounts),
            state.pods[group.pods[0]].name.clone(),
        )
    });
    groups
}

/// The pods by class, classes and pods in the order in which they come.
pub(crate) fn by_class(state: &ClusterState, pods: Vec<PodId>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for pod in pods {
        let class = state.pods[pod].class;
        match groups.iter_mut().find(|group| group.class == class) {
            Some(group) => group.pods.push(pod),
            None => groups.push(Group {
                class,
                pods: Vec::from([pod]),
            }),
        }
    }
    groups
}
