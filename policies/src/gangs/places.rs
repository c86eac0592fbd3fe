//! The nodes, and the domains, of the members of a gang that have a place.

use crate::gangs::near;
use crate::ids::{DomainId, GangId, NodeId, PodId};
use crate::place::Near;
use crate::state::ClusterState;
use crate::state::gang::GroupTree;
use crate::state::pod::{Pod, Stage};
use crate::topology::Level;
use alloc::vec::Vec;

/// The nodes of the members that run or are being bound, by member name.
pub(crate) fn occupied(state: &ClusterState, id: GangId) -> Vec<NodeId> {
    occupied_by(state, id, &|_| true)
}

/// The nodes of the members that run or are being bound, and that `member` picks, by member name.
fn occupied_by(state: &ClusterState, id: GangId, member: &dyn Fn(&Pod) -> bool) -> Vec<NodeId> {
    let is_meant = |pod: &&PodId| {
        let pod = &state.pods[**pod];
        let has_node = matches!(pod.stage, Stage::Bound(_) | Stage::Assumed(_)) && !pod.deleting;
        has_node && member(pod)
    };
    let members = state.gangs[id].members.iter();
    let mut members: Vec<&PodId> = members.filter(is_meant).collect();
    members.sort_by(|a, b| state.pods[**a].name.cmp(&state.pods[**b].name));
    // Members that another scheduler has bound count only if we have placed none.
    let stranger = |pod: &&PodId| {
        let pod = &state.pods[**pod];
        let own = pod.own.as_ref();
        pod.stage.is_bound() && own.is_none_or(|own| own.bound_queue.is_none())
    };
    if !members.iter().all(stranger) {
        members.retain(|pod| !stranger(pod));
    }
    let nodes = members.iter().map(|pod| state.node_of(**pod));
    nodes.flatten().collect()
}

/// The node in whose domains the members are that run, or are being bound; `None`: there are none.
pub(crate) fn anchor(state: &ClusterState, id: GangId) -> Option<NodeId> {
    let occupied = occupied(state, id);
    if occupied.is_empty() {
        return None;
    }
    anchor_among(state, &occupied, near::topology_of_gang(state, id))
}

/// The first of these nodes that exists. If one domain is required and the nodes are in several
/// (they were labelled anew, say), the first node in the domain with most of them.
pub(crate) fn anchor_among(
    state: &ClusterState,
    nodes: &[NodeId],
    near: Option<Near>,
) -> Option<NodeId> {
    let known = |node: &&NodeId| state.nodes[**node].known.is_some();
    let mut domains: Vec<(Option<DomainId>, NodeId, usize)> = Vec::new();
    for node in nodes.iter().filter(known) {
        let domain = near.and_then(|near| match near.required? {
            Level::Domain(level) => {
                let topology = &state.topologies[near.topology];
                topology.path(*node).get(level).copied()
            }
            Level::Node => None,
        });
        match domains.iter_mut().find(|(other, ..)| *other == domain) {
            Some((.., members)) => *members += 1,
            None => domains.push((domain, *node, 1)),
        }
    }
    domains.reverse();
    let most = domains.into_iter().max_by_key(|(.., members)| *members);
    most.map(|(_, node, _)| node)
}

/// The nodes of the members below a group that have places.
pub(crate) fn occupied_below(
    state: &ClusterState,
    id: GangId,
    tree: &GroupTree,
    index: usize,
) -> Vec<NodeId> {
    let gang = &state.gangs[id];
    let below = |pod: &Pod| {
        let leaf = gang.leaf_of(pod);
        index == 0 || leaf.is_some_and(|leaf| tree.is_below(leaf, index))
    };
    occupied_by(state, id, &below)
}
