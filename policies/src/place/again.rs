//! Members on the nodes that were chosen for them before.

use super::domains::is_inside;
use super::{Near, Request, widest_areas};
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::collections::BTreeSet;

/// Places waiting members on the nodes that were chosen for them when the same was requested, if
/// they still fit there. Returns whether they do; else nothing is placed.
pub(crate) fn place_again(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    places: &[(PodId, NodeId)],
) -> bool {
    let begin = txn.checkpoint();
    let are_placed = places.iter().all(|(pod, node)| {
        let class = state.pods[*pod].class;
        state.refresh(class);
        let table = state.table_as_of(class);
        let fits = table.is_some_and(|table| table.count(*node) > 0)
            && request.model_allows(state, class, *node) > 0;
        if fits {
            let placement = request.placement_of(state, class);
            txn.place(state, *pod, *node, placement);
        }
        fits
    });
    let are_kept = are_placed && are_together(state, request, places);
    if !are_kept {
        txn.rollback(state, begin);
    }
    are_kept
}

/// Whether the members of each group that must be together are.
fn are_together(state: &ClusterState, request: &Request, places: &[(PodId, NodeId)]) -> bool {
    request.groups.iter().enumerate().all(|(index, group)| {
        let Some(near) = group.near else {
            return true;
        };
        let groups = request.pods_below(index);
        let below: BTreeSet<PodId> = groups
            .iter()
            .flat_map(|group| &group.pods)
            .copied()
            .collect();
        let placed = places.iter().filter(|(pod, _)| below.contains(pod));
        let nodes = placed.map(|(_, node)| *node).chain(group.anchor);
        share_domain(state, near, nodes)
    })
}

/// Whether nodes are in one domain of the required level, if a level is required.
fn share_domain(state: &ClusterState, near: Near, mut nodes: impl Iterator<Item = NodeId>) -> bool {
    let Some(first) = nodes.next() else {
        return true;
    };
    let mut areas = widest_areas(state, Some(near), Some(first)).into_iter();
    let area = areas.next();
    area.is_some_and(|area| nodes.all(|node| is_inside(state, area, node)))
}
