//! Which domain is chosen: as near as preferred if possible, wider if not, never wider than
//! required; among the domains of a level the one that has the least room left afterwards (best
//! fit), so that the others keep theirs.

use super::request::Request;
use super::{Area, Near};
use crate::ids::{ClassId, Id, NodeId};
use crate::place::Scope;
use crate::state::ClusterState;
use crate::topology::Level;
use alloc::vec::Vec;

/// The scopes to try, nearest first. The last one is the widest that is allowed. `anchor`: the node
/// of a member that has a place.
pub(super) fn scopes(
    state: &ClusterState,
    near: Option<Near>,
    anchor: Option<NodeId>,
) -> Vec<Scope> {
    let Some(near) = near else {
        return Vec::from([Scope::Cluster]);
    };
    let levels = state.topologies[near.topology].levels.len();
    let widest = near.required.map(|level| depth(level, levels));
    let preferred = near.preferred.map(|level| depth(level, levels));
    let nearest = preferred.max(widest);
    let mut scopes: Vec<Scope> = nearest
        .into_iter()
        .flat_map(|nearest| (widest.unwrap_or(0)..=nearest).rev())
        .map(|depth| scope_at(near, depth, levels, anchor))
        .collect();
    if widest.is_none() {
        scopes.push(Scope::Cluster);
    }
    scopes
}

/// The scopes to try, as in [`scopes`], for members with the placement spread or another one. If
/// they spread, only the widest scope is tried, unless the request names a level.
pub(super) fn scopes_under(
    state: &ClusterState,
    near: Option<Near>,
    anchor: Option<NodeId>,
    spreads: bool,
) -> Vec<Scope> {
    let mut scopes = scopes(state, near, anchor);
    if spreads && near.is_some_and(|near| near.implied) {
        scopes.drain(..scopes.len().saturating_sub(1));
    }
    scopes
}

/// The number of a level, counted from the top; `node` is one below the last level of domains.
fn depth(level: Level, levels: usize) -> usize {
    match level {
        Level::Domain(number) => number,
        Level::Node => levels,
    }
}

/// How fine the required domain is: 0 if none is required, 1 for the top level, and so on.
pub(super) fn fineness(state: &ClusterState, near: Near) -> usize {
    let levels = state.topologies[near.topology].levels.len();
    near.required.map_or(0, |level| depth(level, levels) + 1)
}

fn scope_at(near: Near, depth: usize, levels: usize, anchor: Option<NodeId>) -> Scope {
    match (depth == levels, anchor) {
        (true, None) => Scope::OneNode,
        (true, Some(node)) => Scope::Node(node),
        (false, None) => Scope::Level(near.topology, depth),
        (false, Some(node)) => Scope::DomainOf(near.topology, depth, node),
    }
}

/// The areas of a scope, in the order in which they are filled.
pub(super) fn areas(state: &ClusterState, scope: Scope) -> Vec<Area> {
    match scope {
        Scope::Cluster => Vec::from([Area::Cluster]),
        Scope::Level(id, level) => state.topologies[id]
            .domains_at(level, None)
            .into_iter()
            .map(|domain| Area::Domain(id, domain))
            .collect(),
        Scope::DomainOf(id, level, node) => {
            let path = state.topologies[id].path(node);
            path.get(level)
                .map(|domain| Area::Domain(id, *domain))
                .into_iter()
                .collect()
        }
        Scope::OneNode => state.nodes_in_order().map(Area::Node).collect(),
        Scope::Node(node) => Vec::from([Area::Node(node)]),
    }
}

/// How many pods of a class the request can place in an area, as the state is now in the
/// transaction.
pub(super) fn room(state: &mut ClusterState, request: &Request, class: ClassId, area: Area) -> u64 {
    rooms(state, request, class)(area)
}

/// How many pods of a class the request can place in each area that is asked for, as the state is
/// now in the transaction.
pub(super) fn rooms<'a>(
    state: &'a mut ClusterState,
    request: &'a Request,
    class: ClassId,
) -> impl FnMut(Area) -> u64 + 'a {
    state.refresh(class);
    let by_node = request.plain_only || !request.inside.is_empty() || request.is_limited(state);
    move |area| match by_node {
        true => limited_room(state, request, class, area),
        false => counted_by_area(state, class, area),
    }
}

/// How many pods of a class fit in an area if limits on GPU models do not count.
pub(crate) fn counted(state: &mut ClusterState, class: ClassId, area: Area) -> u64 {
    state.refresh(class);
    counted_by_area(state, class, area)
}

/// How many pods of a class fit in an area by the table of the class, which is current.
fn counted_by_area(state: &mut ClusterState, class: ClassId, area: Area) -> u64 {
    let (topologies, classes) = (&state.topologies, &mut state.classes);
    let Some(table) = classes[class].table.as_mut() else {
        return 0;
    };
    match area {
        Area::Cluster => table.total,
        Area::Domain(id, domain) => {
            let sums = table.sums(id, &topologies[id]);
            sums.get(domain.index()).copied().unwrap_or(0)
        }
        Area::Node(node) => u64::from(table.count(node)),
    }
}

/// An upper bound of how many of the request's pods fit in an area: each class counted alone.
pub(super) fn fits_in(state: &mut ClusterState, request: &Request, area: Area) -> u64 {
    let groups = request.root().pods.iter();
    groups
        .map(|group| room(state, request, group.class, area).min(group.pods.len() as u64))
        .sum()
}

/// How many pods of a class the request can place in an area, counted node by node: without the
/// nodes that it leaves out, and under limits on GPU models. The nodes of one model together take
/// no more than the limit on that model leaves.
fn limited_room(state: &ClusterState, request: &Request, class: ClassId, area: Area) -> u64 {
    let Some(table) = state.table_as_of(class) else {
        return 0;
    };
    let is_measured = state.classes[class].is_measured();
    let mut by_model: Vec<(Option<crate::queues::GovernedId>, u64, u64)> = Vec::new();
    for node in nodes_of(state, request, area) {
        let count = u64::from(table.count(node));
        if count == 0 || request.spares(state, node) {
            continue;
        }
        let model = state.nodes[node]
            .known
            .as_ref()
            .and_then(|known| known.model);
        match by_model.iter_mut().find(|(known, _, _)| *known == model) {
            Some((_, sum, most)) => {
                *sum += count;
                if is_measured {
                    *most = (*most).max(request.model_allows(state, class, node));
                }
            }
            None => by_model.push((model, count, request.model_allows(state, class, node))),
        }
    }
    by_model
        .iter()
        .map(|(_, sum, allowed)| (*sum).min(*allowed))
        .sum()
}

/// All nodes of an area that the request may use.
pub(super) fn nodes_of(state: &ClusterState, request: &Request, area: Area) -> Vec<NodeId> {
    let own = Some(area).filter(|area| *area != Area::Cluster);
    let areas: Vec<Area> = own.into_iter().chain(request.inside.clone()).collect();
    nodes_in(state, &areas)
}

/// All nodes that are in each of these areas; without areas, all nodes of the cluster.
pub(super) fn nodes_in(state: &ClusterState, areas: &[Area]) -> Vec<NodeId> {
    let (first, others) = areas.split_first().unwrap_or((&Area::Cluster, &[]));
    let mut nodes = all_nodes_of(state, *first);
    if !others.is_empty() {
        nodes.retain(|node| others.iter().all(|area| is_inside(state, *area, *node)));
    }
    nodes
}

/// Whether a node is in an area.
pub(super) fn is_inside(state: &ClusterState, area: Area, node: NodeId) -> bool {
    match area {
        Area::Cluster => true,
        Area::Domain(id, domain) => state.topologies[id].path(node).contains(&domain),
        Area::Node(only) => only == node,
    }
}

/// All nodes of an area, in an order that depends only on the names of nodes and domains.
pub(crate) fn all_nodes_of(state: &ClusterState, area: Area) -> Vec<NodeId> {
    match area {
        Area::Cluster => state.nodes_in_order().collect(),
        Area::Domain(id, domain) => {
            let mut nodes = Vec::new();
            state.topologies[id].nodes_in(domain, &mut nodes);
            nodes
        }
        Area::Node(node) => Vec::from([node]),
    }
}

/// The domains one level below an area, down to the preferred level; empty if the area is to be
/// filled node by node.
pub(super) fn parts(state: &ClusterState, near: Option<Near>, area: Area) -> Vec<Area> {
    let Some(near) = near else { return Vec::new() };
    let topology = &state.topologies[near.topology];
    let finest = match near.preferred {
        Some(Level::Domain(level)) => level,
        Some(Level::Node) => topology.levels.len().saturating_sub(1),
        None => return Vec::new(),
    };
    let (level, inside) = match area {
        Area::Cluster => (0, None),
        Area::Domain(_, domain) => (topology.domain(domain).level + 1, Some(domain)),
        Area::Node(_) => return Vec::new(),
    };
    if level > finest || level >= topology.levels.len() {
        return Vec::new();
    }
    let domains = topology.domains_at(level, inside);
    domains
        .into_iter()
        .map(|domain| Area::Domain(near.topology, domain))
        .collect()
}
