//! Members on the nodes that they prefer, inside the domains that were chosen for them.
//!
//! The other methods say whether members fit and in which domains. Then those with preferences are
//! placed once more, each pod on the nodes that it prefers to all others by then, and among equals
//! by its placement. Where that leaves a member without a place, the first places are kept.

use super::domains::{is_inside, nodes_of, scopes};
use super::fill::{Load, best_of};
use super::order::tightest;
use super::request::{Request, RequestGroup};
use super::{Area, Scope};
use crate::facts::Placement;
use crate::ids::{ClassId, DomainId, Id, NodeId, PodId};
use crate::state::ClusterState;
use crate::topology::Level;
use crate::txn::{Checkpoint, Txn};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How many nodes are looked at for one gang before pods of one class are placed together, as if
/// none of them changed what the others prefer: some milliseconds.
const LOOKS: u64 = 500_000;

/// The node that a single pod prefers; `None`: it prefers none that fits to the others.
pub(super) fn of_only_pod(
    state: &mut ClusterState,
    request: &Request,
    pod: PodId,
    work: &mut u64,
) -> Option<NodeId> {
    if !state.has_preferences(pod) {
        return None;
    }
    *work += state.nodes.len() as u64;
    let class = state.pods[pod].class;
    let placement = match request.placement_of(state, class) {
        Placement::Consolidated => Placement::Binpack,
        other => other,
    };
    if state.prefers_by_pods_alone(pod) {
        return by_pods(state, request, pod, placement);
    }
    let open: Vec<NodeId> = state.nodes.numbers().collect();
    let open = open_among(state, request, class, &open);
    let all = open.len();
    let best = state.preferred(pod, open);
    if best.len() == all {
        return None;
    }
    best_of(state, pod, placement, &BTreeMap::new(), best)
}

/// The node that a single pod prefers which prefers nodes by the pods on them alone: one to which
/// it is drawn most. Normalised or not, these sums give one order. `None`: it prefers none.
fn by_pods(
    state: &mut ClusterState,
    request: &Request,
    pod: PodId,
    placement: Placement,
) -> Option<NodeId> {
    let class = state.pods[pod].class;
    let drawn = state.drawn_everywhere(pod);
    let limited = request.is_limited(state);
    let is_open = |state: &ClusterState, node: NodeId| {
        state.fits_on(class, node) > 0
            && !(limited && request.model_allows(state, class, node) == 0)
    };
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for node in state.nodes.numbers().filter(|node| is_open(state, *node)) {
        let drawn = drawn[node.index()];
        (least, most) = (least.min(drawn), most.max(drawn));
    }
    if least >= most {
        return None;
    }
    let is_best =
        |state: &ClusterState, node: NodeId| drawn[node.index()] == most && is_open(state, node);
    if placement == Placement::Binpack
        && let Some(node) = tightest(state, class, is_best)
    {
        return Some(node);
    }
    let best = state.nodes.numbers().filter(|node| is_best(state, *node));
    let best = best.collect();
    best_of(state, pod, placement, &BTreeMap::new(), best)
}

/// Places members that were placed since a checkpoint once more, where they prefer to be.
pub(super) fn follow(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    since: Checkpoint,
    work: &mut u64,
) {
    let placed = txn.placed_since(since).to_vec();
    if !placed.iter().any(|(pod, _)| state.has_preferences(*pod)) {
        return;
    }
    let shares: Vec<Share> = request
        .leaves(0)
        .into_iter()
        .map(|leaf| Share::of(state, request, leaf, &placed))
        .collect();
    txn.rollback(state, since);
    let mut looks = 0;
    let matters = shares.iter().any(|share| share.matters(state));
    let mut all = shares.iter();
    let are_placed = matters && all.all(|share| share.place(state, txn, &mut looks));
    *work += looks;
    if are_placed {
        return;
    }
    txn.rollback(state, since);
    for (pod, node) in placed {
        let placement = request.placement_of(state, state.pods[pod].class);
        txn.place(state, pod, node, placement);
    }
}

/// The nodes that fit one more pod of a class now.
fn open_among(
    state: &mut ClusterState,
    request: &Request,
    class: ClassId,
    nodes: &[NodeId],
) -> Vec<NodeId> {
    state.refresh(class);
    let fits = |node: &NodeId| {
        state.fits_on(class, *node) > 0 && request.model_allows(state, class, *node) > 0
    };
    nodes.iter().copied().filter(fits).collect()
}

/// The members of one leaf that are to be placed, and where.
struct Share {
    /// The leaf, as a request of its own, as near as the groups above it want it.
    request: Request,
    /// The pods of each class, in the order in which they were placed.
    pods: Vec<(ClassId, Vec<PodId>)>,
    /// The nodes of the domains that were chosen.
    nodes: Vec<NodeId>,
}

impl Share {
    fn of(
        state: &ClusterState,
        request: &Request,
        leaf: usize,
        placed: &[(PodId, NodeId)],
    ) -> Self {
        let mut areas: Vec<Area> = Vec::new();
        for group in request.above(leaf) {
            areas.extend(chosen_area(state, request, group, placed));
        }
        let mut nodes = nodes_of(state, request, Area::Cluster);
        nodes.retain(|node| areas.iter().all(|area| is_inside(state, *area, *node)));
        let group = &request.groups[leaf];
        let mine: BTreeSet<PodId> = group.pods.iter().flat_map(|it| &it.pods).copied().collect();
        let mut pods: Vec<(ClassId, Vec<PodId>)> = Vec::new();
        for (pod, _) in placed.iter().filter(|(pod, _)| mine.contains(pod)) {
            let class = state.pods[*pod].class;
            match pods.iter_mut().find(|(known, _)| *known == class) {
                Some((_, pods)) => pods.push(*pod),
                None => pods.push((class, Vec::from([*pod]))),
            }
        }
        let alone = RequestGroup {
            parent: 0,
            near: request
                .above(leaf)
                .find_map(|group| request.groups[group].near),
            ..group.clone()
        };
        let request = Request {
            groups: Vec::from([alone]),
            ..request.clone()
        };
        Self {
            request,
            pods,
            nodes,
        }
    }

    /// Whether the preferences of any pod tell nodes apart, or may do so after others have places.
    fn matters(&self, state: &mut ClusterState) -> bool {
        self.pods.iter().any(|(class, pods)| {
            pods.iter().any(|pod| state.prefers_by_pods(*pod)) || {
                let open = open_among(state, &self.request, *class, &self.nodes);
                let all = open.len();
                pods.first()
                    .is_some_and(|pod| state.preferred(*pod, open).len() < all)
            }
        })
    }

    /// Places all pods. Returns whether it could.
    fn place(&self, state: &mut ClusterState, txn: &mut Txn, looks: &mut u64) -> bool {
        self.pods.iter().all(|(class, pods)| {
            let mut pods = pods.as_slice();
            while let [first, ..] = pods {
                let open = open_among(state, &self.request, *class, &self.nodes);
                *looks += self.nodes.len() as u64;
                let best = state.preferred(*first, open);
                let best = self.neighbours(state, *class, best, pods.len() as u64);
                let share = match state.prefers_by_pods(*first) && *looks < LOOKS {
                    true => 1,
                    false => pods.len(),
                };
                let load = Load {
                    request: &self.request,
                    class: *class,
                    pods: &pods[..share],
                    area: Area::Cluster,
                };
                let before = txn.placed().len();
                load.put(state, txn, best, looks);
                match txn.placed().len() - before {
                    0 => return false,
                    placed => pods = &pods[placed..],
                }
            }
            true
        })
    }

    /// Of nodes that are equally preferred, those of the domain that has the least room for all of
    /// the pods, else the most.
    fn neighbours(
        &self,
        state: &ClusterState,
        class: ClassId,
        nodes: Vec<NodeId>,
        pods: u64,
    ) -> Vec<NodeId> {
        let spreads = self.request.placement_of(state, class) == Placement::Spread;
        let (Some(near), false) = (self.request.root().near, spreads) else {
            return nodes;
        };
        let topology = &state.topologies[near.topology];
        let level = match near.preferred {
            Some(Level::Domain(level)) => level,
            Some(Level::Node) => topology.levels.len().saturating_sub(1),
            None => return nodes,
        };
        let domain = |node: NodeId| topology.path(node).get(level).copied();
        let mut rooms: BTreeMap<Option<DomainId>, u64> = BTreeMap::new();
        for node in &nodes {
            *rooms.entry(domain(*node)).or_insert(0) += u64::from(state.fits_on(class, *node));
        }
        let of_first = |of: Option<DomainId>| nodes.iter().position(|node| domain(*node) == of);
        let best = rooms
            .into_iter()
            .min_by_key(|(of, room)| match *room >= pods {
                true => (false, *room, of_first(*of)),
                false => (true, u64::MAX - *room, of_first(*of)),
            });
        let best = best.and_then(|(of, _)| of);
        nodes
            .into_iter()
            .filter(|node| domain(*node) == best)
            .collect()
    }
}

/// The area in which the members of a group have been placed together, as near as they should be.
/// `None`: anywhere, because the group names no level.
fn chosen_area(
    state: &ClusterState,
    request: &Request,
    group: usize,
    placed: &[(PodId, NodeId)],
) -> Option<Area> {
    let (near, anchor) = (request.groups[group].near, request.groups[group].anchor);
    let near = near.filter(|near| !near.implied)?;
    let groups = request.pods_below(group);
    let below: BTreeSet<PodId> = groups.iter().flat_map(|it| &it.pods).copied().collect();
    let placed = placed.iter().filter(|(pod, _)| below.contains(pod));
    let nodes: Vec<NodeId> = placed.map(|(_, node)| *node).chain(anchor).collect();
    let first = *nodes.first()?;
    let areas = scopes(state, Some(near), anchor)
        .into_iter()
        .map(|scope| match scope {
            Scope::Cluster => Some(Area::Cluster),
            Scope::OneNode | Scope::Node(_) => Some(Area::Node(first)),
            Scope::Level(topology, level) | Scope::DomainOf(topology, level, _) => {
                let path = state.topologies[topology].path(first);
                path.get(level)
                    .map(|domain| Area::Domain(topology, *domain))
            }
        });
    let mut areas = areas.flatten();
    areas.find(|area| nodes.iter().all(|node| is_inside(state, *area, *node)))
}
