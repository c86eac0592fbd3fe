//! How a scheduler that has just begun judges the gangs that run already.
//!
//! | what tells | of what |
//! |---|---|
//! | annotation `bound-minimum` of members on nodes | minima that the gang had |
//! | condition `Stale` of the PodGroup | that it was complete, and what it lost when |
//! | times that the API server sets | a member waits since before the first binding, or a loss |
//!
//! A gang that has the minima that its members were bound for was complete, however far the minima
//! were raised since.
//!
//! Each binding records the minima that the pod was placed for, so that it does not matter whether
//! a scheduler ran while they were raised. The condition `Stale` is written after the first member
//! was bound, and says since when members are lacking: the grace period goes on from there.
//!
//! Where neither the annotation nor the condition says so, times do. A member that replaces a lost
//! one is younger than the first binding. If a member has waited since before the first binding,
//! and the bound and the younger members together are fewer than the minimum, the gang was never
//! complete; otherwise it has lost members.
//!
//! Implicit and native gangs have no condition `Stale`. An Indexed Job has one pod for each index,
//! and all of them make its minimum: a pod that was created after the first binding and waits
//! replaces a lost one, so the loss was before its creation, and the grace period runs from there.
//! Of other such gangs the waiting pod may be surplus that was there before the loss: their grace
//! period begins anew. A member that has done its part and was cleaned away counts as lost.

use crate::facts::UnixMs;
use crate::gangs::counts::{Counts, by_leaf, has_started};
use crate::ids::{GangId, PodId};
use crate::state::ClusterState;
use crate::state::gang::{Gang, GangKey, GroupTree};
use crate::state::membership::job_minimum;
use crate::state::pod::{Pod, Stage};
use crate::status::Staleness;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How far a gang had come that has members on nodes when it is first seen.
pub(crate) enum FirstLook {
    /// The gang's minimum was never bound.
    Unfinished,
    /// The gang's minimum was bound.
    Complete {
        /// When the gang lost the members that it lacks; `None`: the gang lacks none.
        lost_ms: Option<UnixMs>,
        /// The condition `Stale` of its PodGroup, if it tells of the present members.
        shown: Option<Staleness>,
    },
}

/// Judges a gang that is first seen with members on nodes.
pub(crate) fn first_look(
    state: &ClusterState,
    id: GangId,
    counts: &Counts,
    now_ms: UnixMs,
) -> FirstLook {
    let gang = &state.gangs[id];
    let shown = shown_staleness(state, gang, now_ms);
    let complete = |lost_ms| FirstLook::Complete { lost_ms, shown };
    // Times of the API server have whole seconds: no pod is evicted early because of the rounding.
    let at_the_latest = |ms: UnixMs| ms.saturating_add(999).min(now_ms);
    let whole = counts.met || lacks(state, id, &has_started)[0] == 0;
    match shown {
        Some(shown) if shown.stale => complete(Some(at_the_latest(shown.since_ms))),
        Some(_) => {
            let lost = has_lost_since(gang, counts.bound + counts.succeeded, whole);
            complete(lost.then_some(now_ms))
        }
        None if whole => complete(None),
        None if has_never_been_complete(state, id, 0) => FirstLook::Unfinished,
        // The members that wait may be replacements of lost ones: the gang ran.
        None => complete(Some(
            replaced_since(state, gang).map_or(now_ms, at_the_latest),
        )),
    }
}

/// Since when pods wait that replace lost ones, if it is certain that they do: all pods of an
/// Indexed Job are needed, and the pods that run were bound for the minimum of now.
fn replaced_since(state: &ClusterState, gang: &Gang) -> Option<UnixMs> {
    let GangKey::Owner(owner) = gang.key else {
        return None;
    };
    let pods = state.jobs.get(&owner).and_then(job_minimum)?;
    if gang.spec.minimum != pods || !minima_begun_with(state, gang).is_empty() {
        return None;
    }
    let first_bound_ms = bound_times(state, gang).min()?;
    let members = gang.members.iter().map(|member| &state.pods[*member]);
    let waiting = members.filter(|pod| pod.stage == Stage::Waiting && !pod.deleting);
    let created = waiting.map(|pod| pod.created_ms);
    created.filter(|ms| *ms > first_bound_ms).min()
}

/// The condition `Stale` of the gang's PodGroup, unless it was written before any present member
/// was bound: then it tells of members that ran earlier. A status is at least as young as the
/// changes that it tells.
///
/// Pods that another scheduler bound may lack the time of their binding, where a late write to
/// their status replaced the condition. Where no member has that time, the creation of the first
/// one counts.
fn shown_staleness(state: &ClusterState, gang: &Gang, now_ms: UnixMs) -> Option<Staleness> {
    let shown = gang.shown()?;
    let told = shown.staleness?;
    let created = || members_on_nodes(state, gang).map(|pod| pod.created_ms);
    let first_bound_ms = bound_times(state, gang).min();
    let first_ms = first_bound_ms.or_else(|| created().min())?;
    let written_ms = told.since_ms.max(shown.scheduled_since_ms);
    let since_first = written_ms >= first_ms - first_ms % 1_000;
    (since_first && written_ms <= now_ms).then_some(told)
}

/// When members that are on nodes were bound, as the API server says.
fn bound_times<'a>(state: &'a ClusterState, gang: &'a Gang) -> impl Iterator<Item = UnixMs> + 'a {
    members_on_nodes(state, gang).filter_map(told_bound_ms)
}

/// When a pod was bound, if the API server says so. The time at which a pod started may be much
/// later.
fn told_bound_ms(pod: &Pod) -> Option<UnixMs> {
    let own = pod.own.as_ref().filter(|own| own.is_binding_told)?;
    own.bound_ms
}

/// The members that are bound.
fn members_on_nodes<'a>(
    state: &'a ClusterState,
    gang: &'a Gang,
) -> impl Iterator<Item = &'a Pod> + 'a {
    let members = gang.members.iter().map(|member| &state.pods[*member]);
    members.filter(|pod| pod.stage.is_bound())
}

/// Whether the gang, or a sub-group of it, can never have had its minimum, by what the API server
/// says: a member has waited since before the first bound member was bound, and even if all younger
/// members replace lost ones, the members that ever had a node are fewer than the minimum. Times
/// are known to the second. A member of which nobody says when it was bound may have been bound as
/// soon as it was created, and members of that second may be younger.
pub(crate) fn has_never_been_complete(state: &ClusterState, id: GangId, group: usize) -> bool {
    let gang = &state.gangs[id];
    let tree = gang.tree();
    let counts = |pod: &Pod| {
        let below = |tree: &GroupTree| {
            let leaf = gang.leaf_of(pod);
            leaf.is_some_and(|leaf| tree.is_below(leaf, group))
        };
        group == 0 || tree.is_some_and(|tree| below(tree))
    };
    let on_nodes = members_on_nodes(state, gang).filter(|pod| counts(pod));
    let Some(first_ms) = on_nodes
        .map(|pod| told_bound_ms(pod).unwrap_or(pod.created_ms.saturating_sub(1)))
        .min()
    else {
        return false;
    };
    let waits = |pod: &Pod| pod.stage == Stage::Waiting && !pod.deleting;
    let members = gang.members.iter().map(|member| &state.pods[*member]);
    let mut waiting = members.filter(|pod| counts(pod) && waits(pod));
    if !waiting.any(|pod| pod.created_ms <= first_ms) {
        return false;
    }
    let is_younger = |pod: &Pod| waits(pod) && pod.created_ms > first_ms;
    let had_node = had_nodes(state, gang, &is_younger);
    lacks_of(gang, &lowest_minima(state, gang), &had_node)[group] > 0
}

/// How many members of each leaf have or had a node: those that run or have succeeded, and those
/// that are lost. Members that failed after they were bound are lost, whether they are replaced or
/// not; of others that are lost only the younger members tell that replace them.
fn had_nodes(state: &ClusterState, gang: &Gang, is_younger: &dyn Fn(&Pod) -> bool) -> Vec<u32> {
    let younger = by_leaf(state, gang, is_younger);
    let failed = by_leaf(state, gang, &has_failed_on_node);
    let lost = younger
        .iter()
        .zip(&failed)
        .map(|(one, other)| one.max(other));
    let started = by_leaf(state, gang, &has_started);
    started
        .iter()
        .zip(lost)
        .map(|(one, other)| one + other)
        .collect()
}

/// Whether a pod has failed after the engine bound it.
fn has_failed_on_node(pod: &Pod) -> bool {
    let was_bound = || {
        pod.own
            .as_ref()
            .is_some_and(|own| !own.bound_minima.is_empty())
    };
    pod.stage == (Stage::Ended { succeeded: false }) && was_bound()
}

/// How many more pods each group lacks beside the pods that `counts` picks, the gang itself first.
/// A group needs the minimum that its members were bound for where that is lower than the minimum
/// that is asked for now: a minimum that was raised is for the next decision.
pub(crate) fn lacks(state: &ClusterState, id: GangId, counts: &dyn Fn(&Pod) -> bool) -> Vec<u32> {
    let gang = &state.gangs[id];
    lacks_of(
        gang,
        &minima_begun_with(state, gang),
        &by_leaf(state, gang, counts),
    )
}

/// How many more pods each group lacks beside those that are counted, where groups have these
/// minima, and those of the gang's spec where none is given.
fn lacks_of(gang: &Gang, minima: &BTreeMap<usize, u32>, counted: &[u32]) -> Vec<u32> {
    match gang.tree() {
        None => {
            let minimum = minima.get(&0).copied().unwrap_or(gang.spec.minimum);
            Vec::from([minimum.saturating_sub(counted[0])])
        }
        Some(tree) if minima.is_empty() => tree.needs(counted),
        Some(tree) => tree.with_minima(minima).needs(counted),
    }
}

/// The lowest minima with which the groups of a gang may have begun. No pod tells of a group that
/// has lost all its members: where the PodGroup has changed since it was created, that group's
/// minimum may have been raised.
fn lowest_minima(state: &ClusterState, gang: &Gang) -> BTreeMap<usize, u32> {
    let mut minima = minima_begun_with(state, gang);
    let has_changed = gang
        .object
        .as_ref()
        .is_some_and(|object| object.generation > 1);
    let Some(tree) = gang.tree().filter(|_| has_changed) else {
        return minima;
    };
    let members = gang.members.iter().map(|member| &state.pods[*member]);
    let started = members.filter(|pod| has_started(pod));
    let told: BTreeSet<usize> = started.flat_map(|pod| path_of(gang, pod)).collect();
    for (group, _) in tree.groups().filter(|(group, _)| !told.contains(group)) {
        minima.insert(group, minimum_of(gang, group).min(1));
    }
    minima
}

/// The minima that members were bound for, by group, where they are lower than now. Members that
/// have succeeded count only for groups in which no member runs: their gang may have begun anew
/// since.
fn minima_begun_with(state: &ClusterState, gang: &Gang) -> BTreeMap<usize, u32> {
    let mut minima = recorded_minima(state, gang, &|pod| pod.stage.is_bound());
    let ended = recorded_minima(state, gang, &|pod| !pod.stage.is_bound());
    for (group, minimum) in ended {
        minima.entry(group).or_insert(minimum);
    }
    minima.retain(|group, minimum| *minimum < minimum_of(gang, *group));
    minima
}

/// The lowest minimum of each group for which members were bound that run or have succeeded, and
/// that `which` picks.
fn recorded_minima(
    state: &ClusterState,
    gang: &Gang,
    which: &dyn Fn(&Pod) -> bool,
) -> BTreeMap<usize, u32> {
    let mut minima: BTreeMap<usize, u32> = BTreeMap::new();
    for pod in gang.members.iter().map(|member| &state.pods[*member]) {
        let Some(own) = pod.own.as_ref().filter(|_| has_started(pod) && which(pod)) else {
            continue;
        };
        if own.bound_minima.is_empty() {
            continue;
        }
        let path = path_of(gang, pod);
        if path.len() != own.bound_minima.len() {
            // The sub-groups have changed since the pod was bound.
            continue;
        }
        for (group, minimum) in path.into_iter().zip(own.bound_minima.iter().copied()) {
            let lowest = minima.entry(group).or_insert(minimum);
            *lowest = minimum.min(*lowest);
        }
    }
    minima
}

/// The minima that a pod is bound for: its gang's, and where there are sub-groups that of each
/// group on the way to its leaf. Empty for a gang of one pod, which always has its minimum.
pub(crate) fn minima_for(state: &ClusterState, pod: PodId) -> Box<[u32]> {
    let pod = &state.pods[pod];
    let gang = pod.own.as_ref().and_then(|own| own.gang);
    let gang = gang.map(|gang| &state.gangs[gang]);
    let Some(gang) = gang.filter(|gang| gang.may_have_others()) else {
        return Box::default();
    };
    let path = path_of(gang, pod).into_iter();
    path.map(|group| minimum_of(gang, group)).collect()
}

/// Whether members are lacking that the gang had when its PodGroup told that it was complete.
/// `whole`: the members that have started meet the minimum that they were bound for.
///
/// Either fewer members (`started`) are bound or have succeeded than were told, and too few for the
/// minimum that was told or for the minima that they were bound for. Or as many are, but in other
/// sub-groups: by its present spec the gang had its minimum, and does not have it any more.
fn has_lost_since(gang: &Gang, started: u32, whole: bool) -> bool {
    let (Some(shown), Some(object)) = (gang.shown(), &gang.object) else {
        return false;
    };
    let members = &shown.members;
    let fewer = started < members.bound + members.succeeded;
    let had_minimum = shown.scheduled && shown.observed_generation == object.generation;
    (fewer && started < members.expected) || (!whole && (fewer || had_minimum))
}

/// The groups that a member is in, from the gang itself down to its leaf.
fn path_of(gang: &Gang, pod: &Pod) -> Vec<usize> {
    let mut path = gang.groups_of(pod);
    path.push(0);
    path.reverse();
    path
}

/// The minimum that a group is asked to have now.
fn minimum_of(gang: &Gang, group: usize) -> u32 {
    gang.tree()
        .map_or(gang.spec.minimum, |tree| tree.group(group).minimum)
}
