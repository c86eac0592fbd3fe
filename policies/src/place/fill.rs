//! Places members of one shape, for which counting is exact, and fills an area with pods of one
//! class.

use super::domains::{areas, nodes_of, parts, rooms, scopes_under};
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
                let load = Load {
                    request,
                    class: group.class,
                    pods: &group.pods[..request.root().need],
                    area,
                };
                let start = txn.checkpoint();
                let before = txn.placed().len();
                load.fill(state, txn, work);
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
    let areas = areas(state, scope);
    let mut room = rooms(state, request, group.class);
    for area in areas {
        *work += 1;
        let fits = room(area);
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

/// Pods of one class, and the area into which they are put.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) request: &'a Request,
    pub(super) class: ClassId,
    pub(super) pods: &'a [PodId],
    pub(super) area: Area,
}

impl Load<'_> {
    /// The rule that chooses among the nodes.
    fn placement(self, state: &ClusterState) -> Placement {
        self.request.placement_of(state, self.class)
    }

    /// Puts the pods into the area: if their placement is not spread, into as few parts of it as
    /// possible. Pods that do not fit are left without a place.
    pub(super) fn fill(self, state: &mut ClusterState, txn: &mut Txn, work: &mut u64) {
        if self.placement(state) == Placement::Spread {
            let nodes = self.open_nodes(state, work);
            self.spread(state, txn, nodes, work);
            return;
        }
        // Loads still to be put somewhere, each with its share of the pods. Parts are filled
        // completely, largest first, until the rest of the pods fits into one part; the tightest
        // such part gets it.
        let mut left: Vec<Self> = Vec::from([self]);
        while let Some(load) = left.pop() {
            let parts = parts(state, self.request.root().near, load.area);
            if parts.is_empty() {
                let nodes = load.open_nodes(state, work);
                load.put(state, txn, nodes, work);
                continue;
            }
            let mut pods = load.pods;
            *work += parts.len() as u64;
            let mut parts_by_room: Vec<(u64, Area)> = {
                let mut room = rooms(state, self.request, self.class);
                parts.iter().map(|part| (room(*part), *part)).collect()
            };
            parts_by_room.retain(|(fits, _)| *fits > 0);
            parts_by_room.sort_by_key(|(fits, _)| Reverse(*fits));
            let mut parts_by_room = parts_by_room.into_iter().peekable();
            while !pods.is_empty() {
                let Some((mut fits, mut part)) = parts_by_room.next() else {
                    break;
                };
                while let Some(next) = parts_by_room.next_if(|(next, _)| *next >= pods.len() as u64)
                {
                    // The tightest part, and of equals the first: neighbours stay neighbours.
                    if next.0 < fits {
                        (fits, part) = next;
                    }
                }
                let share = usize::try_from(fits).unwrap_or(usize::MAX).min(pods.len());
                let (here, rest) = pods.split_at(share);
                left.push(Self {
                    pods: here,
                    area: part,
                    ..self
                });
                pods = rest;
            }
        }
    }

    /// Puts the pods on nodes with room for the class, as their placement says. Pods that do not
    /// fit are left without a place.
    pub(super) fn put(
        self,
        state: &mut ClusterState,
        txn: &mut Txn,
        nodes: Vec<NodeId>,
        work: &mut u64,
    ) {
        match self.placement(state) {
            Placement::Binpack | Placement::Consolidated => {
                self.pack_nodes(state, txn, nodes, work);
            }
            Placement::Spread => self.spread(state, txn, nodes, work),
            _ => self.pack_by_score(state, txn, nodes, work),
        }
    }

    /// Binpack: fills the nodes with the least free first, and puts the last pods where they fit
    /// exactly. Consolidated: fills the emptiest nodes first; a single member is placed as by
    /// binpack.
    fn pack_nodes(
        self,
        state: &mut ClusterState,
        txn: &mut Txn,
        nodes: Vec<NodeId>,
        work: &mut u64,
    ) {
        let mut nodes = self.keyed(state, nodes);
        let mut pods = self.pods;
        let consolidated = self.placement(state) == Placement::Consolidated;
        let emptiest_first = consolidated && self.request.members() > 1;
        if emptiest_first {
            nodes.sort_unstable_by_key(|((beside, free, .., rank), _)| {
                (*beside, Reverse(*free), *rank)
            });
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
            let amount = state.classes[self.class]
                .scarcest()
                .saturating_mul(pods.len() as u64);
            // The last pods go where they fit exactly. Until then the fullest node is the tightest.
            let all = pods.len() as u64;
            let exact = |((_, free, ..), node): &&(NodeKey, NodeId)| {
                *free == amount && self.fits_now(state, *node) >= all
            };
            let exact = (amount <= largest)
                .then(|| nodes[position..].iter().find(exact))
                .flatten();
            let exact = exact.filter(|_| !emptiest_first);
            let node = exact.unwrap_or(&nodes[position]).1;
            let fits = self.fits_now(state, node);
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
        self,
        state: &mut ClusterState,
        txn: &mut Txn,
        nodes: Vec<NodeId>,
        work: &mut u64,
    ) {
        let placement = self.placement(state);
        let Some(first) = self.pods.first() else {
            return;
        };
        state.retarget();
        *work += 20 * nodes.len() as u64;
        let scored = nodes
            .into_iter()
            .map(|node| Reverse((state.score_key(placement, self.class, node, *first), node)));
        let mut open: BinaryHeap<_> = scored.collect();
        let mut pods = self.pods.iter().peekable();
        while let Some(pod) = pods.peek() {
            let Some(Reverse((_, node))) = open.pop() else {
                return;
            };
            if self.fits_now(state, node) == 0 {
                continue;
            }
            txn.place(state, **pod, node, placement);
            *work += 80;
            let key = state.score_key(placement, self.class, node, **pod);
            open.push(Reverse((key, node)));
            pods.next();
        }
    }

    /// Spread: puts each pod into the domain with the fewest members, and there on the node with
    /// the fewest.
    fn spread(self, state: &mut ClusterState, txn: &mut Txn, nodes: Vec<NodeId>, work: &mut u64) {
        let mut members: BTreeMap<NodeId, u64> = BTreeMap::new();
        for node in &self.request.root().occupied {
            *members.entry(*node).or_insert(0) += 1;
        }
        // Domains are numbered in the order of their first nodes.
        let mut numbers: BTreeMap<Option<DomainId>, usize> = BTreeMap::new();
        let mut domains: Vec<(u64, BinaryHeap<Reverse<_>>)> = Vec::new();
        for (mut key, node) in self.keyed(state, nodes) {
            // The emptiest node comes first.
            key.1 = Amount::MAX - key.1;
            let held = members.get(&node).copied().unwrap_or(0);
            let domain = spread_domain(state, self.request, node);
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
        let mut pods = self.pods.iter();
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
            if self.fits_now(state, node) > 0 {
                txn.place(state, *pod, node, Placement::Spread);
                *work += 80;
                heap.push(Reverse((on_node + 1, key, node)));
                held += 1;
                next = pods.next();
            }
            order.push(Reverse((held, domain)));
        }
    }

    fn keyed(self, state: &ClusterState, nodes: Vec<NodeId>) -> Vec<(NodeKey, NodeId)> {
        let nodes = nodes.into_iter();
        nodes
            .map(|node| (node_key(state, self.class, node), node))
            .collect()
    }

    /// The nodes of the area with room for the class.
    fn open_nodes(self, state: &ClusterState, work: &mut u64) -> Vec<NodeId> {
        let Some(table) = state.table_as_of(self.class) else {
            return Vec::new();
        };
        let mut nodes = nodes_of(state, self.request, self.area);
        *work += nodes.len() as u64;
        nodes.retain(|node| table.count(*node) > 0 && !self.request.spares(state, *node));
        nodes
    }

    /// How many pods of the class fit on a node, as the state is now in the transaction, and within
    /// the limits on its GPU model.
    fn fits_now(self, state: &ClusterState, node: NodeId) -> u64 {
        let shape = &state.classes[self.class];
        let fits = state.nodes[node].multiplicity(shape);
        u64::from(fits).min(self.request.model_allows(state, self.class, node))
    }
}

/// The order of nodes for binpack. For pods without GPUs, nodes without GPUs come first; then nodes
/// with the least free of the scarcest resource, of CPU, of memory; then the order of filling.
pub(super) type NodeKey = (bool, Amount, Amount, Amount, u64);

pub(super) fn node_key(state: &ClusterState, class: ClassId, id: NodeId) -> NodeKey {
    let (node, class) = (&state.nodes[id], &state.classes[class]);
    (
        !class.accelerated && node.has_gpus(),
        node.free_scarcest(class),
        node.free(ResourceNames::cpu()),
        node.free(ResourceNames::memory()),
        node.rank,
    )
}

/// The node that a pod takes by a placement, among nodes that fit it. `members`: how many members
/// of its gang are on each node.
pub(super) fn best_of(
    state: &mut ClusterState,
    pod: PodId,
    placement: Placement,
    members: &BTreeMap<NodeId, u32>,
    nodes: Vec<NodeId>,
) -> Option<NodeId> {
    let class = state.pods[pod].class;
    state.retarget();
    let nodes = nodes.into_iter();
    match placement {
        Placement::Binpack => nodes.min_by_key(|node| node_key(state, class, *node)),
        Placement::Consolidated => nodes.min_by_key(|node| {
            let (beside, free, .., rank) = node_key(state, class, *node);
            (beside, Reverse(free), rank)
        }),
        Placement::Spread => nodes.min_by_key(|node| {
            let (beside, free, .., rank) = node_key(state, class, *node);
            let members = members.get(node).copied().unwrap_or(0);
            (members, beside, Reverse(free), rank)
        }),
        _ => nodes.min_by_key(|node| (state.score_key(placement, class, *node, pod), *node)),
    }
}

/// The domain in which spread counts members: of the last level of the request's topology.
fn spread_domain(state: &ClusterState, request: &Request, node: NodeId) -> Option<DomainId> {
    let near = request.root().near?;
    state.topologies[near.topology].path(node).last().copied()
}
