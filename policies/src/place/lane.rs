//! A single pod that can go anywhere: the first node of its lane that fits is the best one.

use super::{Area, Refusal, Request};
use crate::facts::Placement;
use crate::ids::{ClassId, NodeId, PodId};
use crate::resources::{ResourceNames, amount_of};
use crate::state::ClusterState;
use crate::state::gang::Scope;
use crate::state::lanes::{Bucket, Lane};

/// The place of a gang that is one pod without ties, or why there is none. `None`: the request is
/// not of this kind.
pub(super) fn only_pod(
    state: &mut ClusterState,
    request: &Request,
    work: &mut u64,
) -> Option<Result<(PodId, NodeId), Refusal>> {
    let [group] = request.groups.as_slice() else {
        return None;
    };
    let [pod] = group.pods.as_slice() else {
        return None;
    };
    if request.anchor.is_some() || request.model_limits.is_some() {
        return None;
    }
    let class = group.class;
    state.refresh(class);
    *work += 64;
    let table = state.table_as_of(class)?;
    if table.total == 0 {
        return Some(Err(Refusal::TooFew {
            class,
            scope: Scope::Cluster,
            best: Some(Area::Cluster),
            fits: 0,
            need: 1,
        }));
    }
    let placement = request.placement_of(state, class);
    let primary = state.classes[class].primary;
    let lanes: &[Lane] = if primary == ResourceNames::cpu() {
        // Work without GPUs keeps away from nodes with GPUs while there is other room.
        &[Lane::Plain, Lane::Beside]
    } else {
        &[Lane::Extended(primary)]
    };
    let node = lanes
        .iter()
        .find_map(|lane| first_fit(state, *lane, class, placement, work))?;
    Some(Ok((*pod, node)))
}

fn first_fit(
    state: &mut ClusterState,
    lane: Lane,
    class: ClassId,
    placement: Placement,
    work: &mut u64,
) -> Option<NodeId> {
    if state.lanes.get(lane).is_none() {
        state.lanes.open(lane, state.nodes.iter());
    }
    let buckets = state.lanes.get(lane)?;
    let table = state.table_as_of(class)?;
    let mut visited = 0u64;
    let mut fits = |bucket: &Bucket| {
        bucket.iter().map(|(_, node)| *node).find(|node| {
            visited += 1;
            table.count(*node) > 0
        })
    };
    let least = match lane {
        Lane::Extended(_) | Lane::Plain => {
            let class = &state.classes[class];
            [amount_of(&class.requests, class.primary), 0, 0]
        }
        Lane::Beside => [0, 0, 0],
    };
    let found = match placement {
        Placement::Binpack | Placement::Consolidated => {
            buckets.range(least..).find_map(|(_, bucket)| fits(bucket))
        }
        Placement::Spread => buckets
            .range(least..)
            .rev()
            .find_map(|(_, bucket)| fits(bucket)),
    };
    *work += visited;
    found
}
