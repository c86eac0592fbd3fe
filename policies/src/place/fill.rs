//! Places members of one shape, for which counting is exact, and fills an area with pods of one
//! class.

use super::domains::{areas, nodes_of, parts, room, scopes_under};
use super::request::Request;
use super::{Area, Group, Refusal};
use crate::facts::{Amount, Placement};
use crate::ids::{ClassId, DomainId, NodeId, PodId};
use crate::place::Scope;
use crate::resources::ResourceNames;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::{
    collections::{BTreeMap, BinaryHeap},
    vec::Vec,
};
use core::cmp::Reverse;

/// Places the gang's needed members, all of one class.
pub(super) fn one_class(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    group: &Group,
    work: &mut u64,
) -> Result<(), Refusal> {
    let need = request.root().need as u64;
    let mut refusal = None;
    let spreads = request.placement_of(state, group.class) == Placement::Spread;
    for scope in scopes_under(state, request.root().near, request.root().anchor, spreads) {
        let best = best_area(state, request, group, scope, work);
        match best {
            Some((area, fits)) if fits >= need => {
                let pods = &group.pods[..request.root().need];
                let start = txn.checkpoint();
                let before = txn.placed().len();
                fill(state, txn, request, group.class, pods, area, work);
                if txn.placed().len() - before == request.root().need {
                    return Ok(());
                }
                // The area has enough room by its count, but the limits on GPU models left less on
                // the way.
                txn.rollback(state, start);
                refusal = Some(Refusal::NotTogether { proved: false });
            }
            _ => {
                let (best, fits) = best.map_or((None, 0), |(area, fits)| (Some(area), fits));
                refusal = Some(Refusal::TooFew {
                    class: group.class,
                    scope,
                    best,
                    fits,
                    need,
                });
            }
        }
    }
    Err(refusal.unwrap_or(Refusal::NotTogether { proved: false }))
}

/// The best area of a scope, and how many pods it has room for: the area with the least room that
/// holds all waiting pods, else the area with the most room.
fn best_area(
    state: &mut ClusterState,
    request: &Request,
    group: &Group,
    scope: Scope,
    work: &mut u64,
) -> Option<(Area, u64)> {
    let all = group.pods.len() as u64;
    let mut best: Option<(Area, u64)> = None;
    for area in areas(state, scope) {
        *work += 1;
        let fits = room(state, request, group.class, area);
        let better = match best {
            None => true,
            Some((_, most)) if fits >= all => most < all || fits < most,
            Some((_, most)) => most < all && fits > most,
        };
        if better {
            best = Some((area, fits));
        }
    }
    best
}

/// Puts the pods into an area: if their placement is not spread, into as few parts of it as
/// possible. Pods that do not fit are left without a place.
pub(super) fn fill(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    class: ClassId,
    pods: &[PodId],
    area: Area,
    work: &mut u64,
) {
    if request.placement_of(state, class) == Placement::Spread {
        spread(state, txn, request, class, pods, area, work);
        return;
    }
    // Areas still to be filled, each with its share of the pods. Parts are filled completely,
    // largest first, until the rest of the pods fits into one part; the tightest such part gets it.
    let mut left: Vec<(Area, &[PodId])> = Vec::from([(area, pods)]);
    while let Some((area, mut pods)) = left.pop() {
        let parts = parts(state, request.root().near, area);
        if parts.is_empty() {
            match request.placement_of(state, class) {
                Placement::Binpack | Placement::Consolidated => {
                    pack_nodes(state, txn, request, class, pods, area, work);
                }
                _ => pack_by_score(state, txn, request, class, pods, area, work),
            }
            continue;
        }
        *work += parts.len() as u64;
        let mut parts_by_room: Vec<(u64, Area)> = parts
            .iter()
            .map(|part| (room(state, request, class, *part), *part))
            .collect();
        parts_by_room.retain(|(fits, _)| *fits > 0);
        parts_by_room.sort_by_key(|(fits, _)| Reverse(*fits));
        let mut parts_by_room = parts_by_room.into_iter().peekable();
        while !pods.is_empty() {
            let Some((mut fits, mut part)) = parts_by_room.next() else {
                break;
            };
            while let Some(next) = parts_by_room.next_if(|(next, _)| *next >= pods.len() as u64) {
                // The tightest part, and of equals the first, so that neighbours stay neighbours.
                if next.0 < fits {
                    (fits, part) = next;
                }
            }
            let share = usize::try_from(fits).unwrap_or(usize::MAX).min(pods.len());
            let (here, rest) = pods.split_at(share);
            left.push((part, here));
            pods = rest;
        }
    }
}

/// Binpack: fills the nodes with the least free first, and puts the last pods where they fit
/// exactly. Consolidated: fills the emptiest nodes first; a single member is placed as by binpack.
fn pack_nodes(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    class: ClassId,
    mut pods: &[PodId],
    area: Area,
    work: &mut u64,
) {
    let mut nodes = keyed_nodes(state, request, class, area, work);
    let consolidated = request.placement_of(state, class) == Placement::Consolidated;
    let emptiest_first = consolidated && request.members() > 1;
    if emptiest_first {
        nodes
            .sort_unstable_by_key(|((beside, free, .., rank), _)| (*beside, Reverse(*free), *rank));
    } else {
        nodes.sort_unstable();
    }
    let largest = nodes
        .iter()
        .map(|((_, free, ..), _)| *free)
        .max()
        .unwrap_or(0);
    for position in 0..nodes.len() {
        if pods.is_empty() {
            return;
        }
        let amount = state.classes[class]
            .scarcest()
            .saturating_mul(pods.len() as u64);
        // The last pods go where they fit exactly. Until then the fullest node is the tightest.
        let all = pods.len() as u64;
        let exact = |((_, free, ..), node): &&(NodeKey, NodeId)| {
            *free == amount && fits_now(state, request, class, *node) >= all
        };
        let exact = (amount <= largest)
            .then(|| nodes[position..].iter().find(exact))
            .flatten();
        let exact = exact.filter(|_| !emptiest_first);
        let node = exact.unwrap_or(&nodes[position]).1;
        let fits = fits_now(state, request, class, node);
        let share = usize::try_from(fits.min(all)).unwrap_or(pods.len());
        let (here, rest) = pods.split_at(share);
        for pod in here {
            txn.place(state, *pod, node, Placement::Binpack);
        }
        *work += 60 * share as u64;
        pods = rest;
    }
}

/// Puts each pod on the node with the best score at that moment.
fn pack_by_score(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    class: ClassId,
    pods: &[PodId],
    area: Area,
    work: &mut u64,
) {
    let placement = request.placement_of(state, class);
    let Some(first) = pods.first() else { return };
    state.retarget();
    let nodes = open_nodes(state, request, class, area, work);
    *work += 20 * nodes.len() as u64;
    let scored = nodes
        .into_iter()
        .map(|node| Reverse((state.score_key(placement, class, node, *first), node)));
    let mut open: BinaryHeap<_> = scored.collect();
    let mut pods = pods.iter().peekable();
    while let Some(pod) = pods.peek() {
        let Some(Reverse((_, node))) = open.pop() else {
            return;
        };
        if fits_now(state, request, class, node) == 0 {
            continue;
        }
        txn.place(state, **pod, node, placement);
        *work += 80;
        let key = state.score_key(placement, class, node, **pod);
        open.push(Reverse((key, node)));
        pods.next();
    }
}

/// The order of nodes for binpack. For pods without GPUs, nodes without GPUs come first; then nodes
/// with the least free of the scarcest resource, of CPU, of memory; then the order of filling.
type NodeKey = (bool, Amount, Amount, Amount, u64);

fn keyed_nodes(
    state: &ClusterState,
    request: &Request,
    class: ClassId,
    area: Area,
    work: &mut u64,
) -> Vec<(NodeKey, NodeId)> {
    let open = open_nodes(state, request, class, area, work).into_iter();
    open.map(|node| (node_key(state, class, node), node))
        .collect()
}

/// The nodes of an area with room for the class.
fn open_nodes(
    state: &ClusterState,
    request: &Request,
    class: ClassId,
    area: Area,
    work: &mut u64,
) -> Vec<NodeId> {
    let Some(table) = state.table_as_of(class) else {
        return Vec::new();
    };
    let mut nodes = nodes_of(state, request, area);
    *work += nodes.len() as u64;
    nodes.retain(|node| table.count(*node) > 0 && !request.spares(state, *node));
    nodes
}

fn node_key(state: &ClusterState, class: ClassId, id: NodeId) -> NodeKey {
    let (node, class) = (&state.nodes[id], &state.classes[class]);
    (
        !class.accelerated && node.has_gpus(),
        node.free_scarcest(class),
        node.free(ResourceNames::cpu()),
        node.free(ResourceNames::memory()),
        node.rank,
    )
}

/// Spread: puts each pod into the domain with the fewest members, and there on the node with the
/// fewest.
fn spread(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    class: ClassId,
    pods: &[PodId],
    area: Area,
    work: &mut u64,
) {
    let mut members: BTreeMap<NodeId, u64> = BTreeMap::new();
    for node in &request.root().occupied {
        *members.entry(*node).or_insert(0) += 1;
    }
    // Domains are numbered in the order of their first nodes.
    let mut numbers: BTreeMap<Option<DomainId>, usize> = BTreeMap::new();
    let mut domains: Vec<(u64, BinaryHeap<Reverse<_>>)> = Vec::new();
    for (mut key, node) in keyed_nodes(state, request, class, area, work) {
        // The emptiest node comes first.
        key.1 = Amount::MAX - key.1;
        let held = members.get(&node).copied().unwrap_or(0);
        let domain = spread_domain(state, request, node);
        let number = *numbers.entry(domain).or_insert(domains.len());
        if number == domains.len() {
            domains.push((0, BinaryHeap::new()));
        }
        let (sum, heap) = &mut domains[number];
        *sum += held;
        heap.push(Reverse((held, key, node)));
    }
    let mut order: BinaryHeap<_> = domains
        .iter()
        .enumerate()
        .map(|(domain, (held, _))| Reverse((*held, domain)))
        .collect();
    let mut pods = pods.iter();
    let mut next = pods.next();
    while let Some(pod) = next {
        let Some(Reverse((held, domain))) = order.pop() else {
            return;
        };
        let (_, heap) = &mut domains[domain];
        let Some(Reverse((on_node, key, node))) = heap.pop() else {
            continue;
        };
        let mut held = held;
        if fits_now(state, request, class, node) > 0 {
            txn.place(state, *pod, node, Placement::Spread);
            *work += 80;
            heap.push(Reverse((on_node + 1, key, node)));
            held += 1;
            next = pods.next();
        }
        order.push(Reverse((held, domain)));
    }
}

/// How many pods of a class fit on a node, as the state is now in the transaction, and within the
/// limits on its GPU model.
fn fits_now(state: &ClusterState, request: &Request, class: ClassId, node: NodeId) -> u64 {
    let shape = &state.classes[class];
    let fits = state.nodes[node].multiplicity(shape);
    u64::from(fits).min(request.model_allows(state, class, node))
}

/// The domain in which spread counts members: of the last level of the request's topology.
fn spread_domain(state: &ClusterState, request: &Request, node: NodeId) -> Option<DomainId> {
    let near = request.root().near?;
    state.topologies[near.topology].path(node).last().copied()
}
