//! A single pod that can go anywhere: the first node that fits is the best one, in its lane or in
//! the order of scores.

use super::order::lanes;
use super::request::Request;
use super::{Area, Refusal, preferred};
use crate::facts::Placement;
use crate::ids::{ClassId, NodeId, PodId};
use crate::place::Scope;
use crate::resources::amount_of;
use crate::state::ClusterState;
use crate::state::lanes::{Bucket, FreeKey, HIGHEST, Lane};
use alloc::vec::Vec;

/// The place of a gang's only pod, or why it has none. `None`: the general way must answer, because
/// there are more pods, a member that has a place, or a random order, or because limits on GPU
/// models leave no node.
pub(super) fn only_pod(
    state: &mut ClusterState,
    request: &Request,
    work: &mut u64,
) -> Option<Result<(PodId, NodeId), Refusal>> {
    let [group] = request.root().pods.as_slice() else {
        return None;
    };
    let [pod] = group.pods.as_slice() else {
        return None;
    };
    if request.root().anchor.is_some() {
        return None;
    }
    let class = group.class;
    state.refresh(class);
    state.order_domains();
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
    if let Some(node) = preferred::of_only_pod(state, request, *pod, work) {
        return Some(Ok((*pod, node)));
    }
    let node = match request.placement_of(state, class) {
        placement @ (Placement::Binpack | Placement::Spread | Placement::Consolidated) => {
            lanes(&state.classes[class])
                .iter()
                .find_map(|lane| first_fit(state, request, *lane, class, placement, work))?
        }
        // The order of nodes differs from pod to pod.
        Placement::Random { .. } => return None,
        placement => best_score(state, request, class, placement, work)?,
    };
    Some(Ok((*pod, node)))
}

/// The nodes on which a pod of a class fits, the best one by a placement first. By the placement
/// `Random` no node is better than another.
pub(crate) fn in_order(
    state: &mut ClusterState,
    class: ClassId,
    placement: Placement,
) -> Vec<NodeId> {
    state.refresh(class);
    let lane_of = |state: &ClusterState| lanes(&state.classes[class]);
    let mut order: Vec<NodeId> = match placement {
        Placement::Random { .. } => state.nodes.numbers().collect(),
        Placement::Binpack | Placement::Spread | Placement::Consolidated => {
            let mut order = Vec::new();
            for lane in lane_of(state) {
                state.lanes.refresh(lane, &state.nodes);
                let buckets = state.lanes.get(lane).into_iter().flat_map(|it| it.values());
                let nodes = buckets.map(|bucket| bucket.iter().map(|(_, node)| *node));
                match placement {
                    Placement::Spread => order.extend(nodes.rev().flatten()),
                    _ => order.extend(nodes.flatten()),
                }
            }
            order
        }
        _ => {
            let (kind, mut work) = (state.classes[class].kind, 0);
            state.refresh_scores(placement, kind, &mut work);
            let mut order: Vec<NodeId> = state
                .by_score(placement, kind)
                .flatten()
                .map(|(_, node)| *node)
                .collect();
            if !state.classes[class].accelerated {
                // Pods without GPUs take nodes with GPUs only if no other node fits.
                order.sort_by_key(|node| state.nodes[*node].has_gpus());
            }
            order
        }
    };
    order.retain(|node| state.fits_on(class, *node) > 0);
    order
}

/// The node with the best score that fits and that limits on GPU models allow.
fn best_score(
    state: &mut ClusterState,
    request: &Request,
    class: ClassId,
    placement: Placement,
    work: &mut u64,
) -> Option<NodeId> {
    let kind = state.classes[class].kind;
    state.refresh_scores(placement, kind, work);
    // Pods without GPUs take nodes with GPUs only if no other node fits.
    let keeps_away = !state.classes[class].accelerated
        && first_fit(state, request, Lane::Plain, class, Placement::Binpack, work).is_some();
    let table = state.table_as_of(class)?;
    let limited = request.is_limited(state);
    let mut nodes = state.by_score(placement, kind).flatten();
    let best = nodes.find(|(_, node)| {
        *work += 1;
        table.count(*node) > 0
            && !(keeps_away && state.nodes[*node].has_gpus())
            && !(limited && request.model_allows(state, class, *node) == 0)
    });
    best.map(|(_, node)| *node)
}

/// The first node of a lane that fits and that limits on GPU models allow. Spread reads the lane
/// backwards.
fn first_fit(
    state: &mut ClusterState,
    request: &Request,
    lane: Lane,
    class: ClassId,
    placement: Placement,
    work: &mut u64,
) -> Option<NodeId> {
    state.lanes.refresh(lane, &state.nodes);
    let buckets = state.lanes.get(lane)?;
    let table = state.table_as_of(class)?;
    let limited = request.is_limited(state);
    let (mut visited, mut first_open) = (0u64, None);
    let mut fits = |(key, bucket): (&FreeKey, &Bucket)| {
        bucket.iter().map(|(_, node)| *node).find(|node| {
            visited += 1;
            if table.count(*node) == 0 {
                return false;
            }
            first_open.get_or_insert(*key);
            !(limited && request.model_allows(state, class, *node) == 0)
        })
    };
    let least = match lane {
        Lane::Extended(_) | Lane::Plain => {
            let class = &state.classes[class];
            [amount_of(&class.requests, class.primary), 0, 0]
        }
        Lane::Cards | Lane::Beside => FreeKey::default(),
    };
    let mut open = buckets.range(least.max(state.lanes.searched(class).start(lane))..);
    let found = match placement {
        Placement::Spread => open.rev().find_map(&mut fits),
        _ => open.find_map(&mut fits),
    };
    *work += visited;
    if placement != Placement::Spread {
        let from = first_open.unwrap_or(HIGHEST);
        state.lanes.searched_mut(class).note(lane, from);
    }
    found
}
