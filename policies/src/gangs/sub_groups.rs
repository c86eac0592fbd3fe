//! How far the sub-groups have come of a gang that could do without some of them.

use crate::facts::UnixMs;
use crate::gangs::counts::{by_leaf, has_place, has_started};
use crate::gangs::first_look;
use crate::gangs::progress::{Progress, Start};
use crate::ids::{ById, GangId};
use crate::state::ClusterState;
use crate::state::gang::GroupTree;
use crate::state::pod::{Pod, Stage};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Follows how far each sub-group has come. Returns whether a sub-group has just become complete.
pub(crate) fn follow(
    state: &ClusterState,
    progress: &mut Progress,
    id: GangId,
    now_ms: UnixMs,
) -> bool {
    let gang = &state.gangs[id];
    let Some(tree) = gang.tree().map(Arc::clone) else {
        progress.sub_groups.clear();
        return false;
    };
    let needs = first_look::lacks(state, id, &has_started);
    let mut members = gang.members.iter();
    let needs_then = match members.any(|pod| is_to_leave(&state.pods[*pod])) {
        true => first_look::lacks(state, id, &stays),
        false => needs.clone(),
    };
    let live = by_leaf(state, gang, &is_alive);
    let assumed = by_leaf(state, gang, &is_assumed);
    let mut completed = false;
    let mut followed: BTreeMap<Box<str>, Start> = BTreeMap::new();
    for (index, group) in tree.groups().skip(1) {
        if below(&tree, &live, index) == 0 {
            continue;
        }
        let known = progress.sub_groups.get(&group.name).copied();
        let complete = Start::Complete { since_ms: now_ms };
        let start = match known.unwrap_or(Start::NotBegun) {
            // Members are to leave for another gang. If only a part of them does, that cuts the
            // sub-group off.
            Start::Complete { .. } if needs[index] == 0 && needs_then[index] > 0 => {
                Start::Unfinished { stuck_ms: None }
            }
            Start::Complete { since_ms } => Start::Complete { since_ms },
            _ if needs_then[index] == 0 => {
                completed = true;
                complete
            }
            Start::Unfinished { stuck_ms } => Start::Unfinished { stuck_ms },
            Start::NotBegun
                if below(&tree, &assumed, index) > 0
                    || first_look::has_never_been_complete(state, id, index) =>
            {
                Start::Unfinished { stuck_ms: None }
            }
            // The sub-group is first seen with a part of its members bound, and the others are
            // younger: it ran.
            Start::NotBegun => complete,
        };
        followed.insert(group.name.clone(), start);
    }
    progress.sub_groups = followed;
    completed
}

/// The unfinished sub-groups of a gang that has its minimum, without those of which members are
/// still to be evicted for another gang; of sub-groups inside each other, the outermost.
pub(crate) fn unfinished_of(
    state: &ClusterState,
    progress: &ById<GangId, Progress>,
    id: GangId,
) -> Vec<usize> {
    let gang = &state.gangs[id];
    let begun = |start: &Start| matches!(start, Start::Unfinished { .. });
    let Some(tree) = gang
        .tree()
        .filter(|_| progress[id].sub_groups.values().any(begun))
    else {
        return Vec::new();
    };
    let needs = tree.needs(&by_leaf(state, gang, &has_place));
    if needs[0] > 0 {
        return Vec::new();
    }
    let to_leave = by_leaf(state, gang, &is_to_leave);
    let is_unfinished = |index: usize| {
        let start = progress[id].sub_groups.get(&tree.group(index).name);
        needs[index] > 0 && start.is_some_and(begun) && below(tree, &to_leave, index) == 0
    };
    let mut unfinished: Vec<usize> = Vec::new();
    for (index, _) in tree.groups().skip(1) {
        let inside = unfinished.iter().any(|above| tree.is_below(index, *above));
        if !inside && is_unfinished(index) {
            unfinished.push(index);
        }
    }
    unfinished
}

/// The sum of `by_leaf` over the leaves below a group; of a leaf, its own number.
pub(crate) fn below(tree: &GroupTree, by_leaf: &[u32], index: usize) -> u32 {
    let leaves = by_leaf.iter().enumerate();
    let leaves = leaves.filter(|(leaf, _)| tree.is_below(*leaf, index));
    leaves.map(|(_, pods)| pods).sum()
}

/// Whether a pod has a node or is on its way to one, and is not leaving.
fn is_alive(pod: &Pod) -> bool {
    matches!(pod.stage, Stage::Bound(_) | Stage::Assumed(_)) && !pod.deleting
}

/// Whether a pod is on a node and not to leave it, or has succeeded. A pod that has succeeded and
/// is cleaned away is not evicted.
fn stays(pod: &Pod) -> bool {
    has_started(pod) && !is_to_leave(pod)
}

/// Whether a pod is to be evicted for another gang, or was asked to leave and has not begun to.
fn is_to_leave(pod: &Pod) -> bool {
    pod.leaving && !pod.deleting
}

/// Whether a pod is on its way to a node, and is not leaving.
pub(crate) fn is_assumed(pod: &Pod) -> bool {
    matches!(pod.stage, Stage::Assumed(_)) && !pod.deleting
}
