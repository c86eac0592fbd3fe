//! How many nodes of each domain are free as a whole, so that among equal nodes the one in the
//! fullest domain is taken, and domains that are free as a whole stay so.
//!
//! Only the finest domains of the Topology `default` count, as for the order of filling. How many
//! nodes are free is told in powers of two, so the nodes of a domain change their places only when
//! half or twice as many are free as before. That moves less than two nodes for each node that is
//! taken, however large the domain is. Nodes move when an order of nodes is read next
//! ([`ClusterState::order_domains`]), not at each trial.
//!
//! The fullest domain first and then its fullest node, as for gangs, would break up whole nodes:
//! `docs/figures.md` has the numbers.

use super::ClusterState;
use super::topologies::DEFAULT_TOPOLOGY;
use crate::ids::{ById, DomainId, NodeId};
use alloc::collections::{BTreeMap, BTreeSet};

/// Domains with more free nodes than this are alike.
const COUNTED: usize = 64;

/// The nodes that are free as a whole, by domain.
#[derive(Debug, Default)]
pub(crate) struct FreeNodes {
    /// The domain in which each node is counted.
    counted_in: ById<NodeId, Option<DomainId>>,
    nodes: BTreeMap<DomainId, BTreeSet<NodeId>>,
    /// Domains whose openness has changed since [`ClusterState::order_domains`] last ran.
    stale: BTreeSet<DomainId>,
}

impl FreeNodes {
    /// How open a domain is: 0 without free nodes, 1 with one, and 1 more for each doubling.
    pub(crate) fn openness(&self, domain: DomainId) -> u8 {
        let free = self.nodes.get(&domain).map_or(0, BTreeSet::len);
        let power = free.min(COUNTED).checked_ilog2();
        power.map_or(0, |power| 1 + u8::try_from(power).unwrap_or(u8::MAX))
    }

    /// The domain in which a node is counted; `None`: the node is not free as a whole, or in no
    /// domain.
    pub(crate) fn counted_in(&self, node: NodeId) -> Option<DomainId> {
        self.counted_in[node]
    }

    /// Whether the openness of a domain has changed since [`ClusterState::order_domains`] last ran.
    pub(crate) fn is_stale(&self, domain: DomainId) -> bool {
        self.stale.contains(&domain)
    }

    /// All domains with free nodes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DomainId, &BTreeSet<NodeId>)> {
        self.nodes.iter().map(|(domain, nodes)| (*domain, nodes))
    }

    /// Counts a node in this domain and in no other; `None`: in none.
    fn set(&mut self, node: NodeId, domain: Option<DomainId>) {
        let before = core::mem::replace(&mut self.counted_in[node], domain);
        if before == domain {
            return;
        }
        for (domain, enters) in [(before, false), (domain, true)] {
            let Some(domain) = domain else { continue };
            let openness = self.openness(domain);
            let nodes = self.nodes.entry(domain).or_default();
            if enters {
                nodes.insert(node);
            } else {
                nodes.remove(&node);
            }
            if nodes.is_empty() {
                self.nodes.remove(&domain);
            }
            if self.openness(domain) != openness {
                self.stale.insert(domain);
            }
        }
    }
}

impl ClusterState {
    /// Counts a changed node in its domain, if it is free as a whole.
    pub(crate) fn count_free(&mut self, id: NodeId) {
        let domain = self.free_domain(id);
        self.free_nodes.set(id, domain);
        let openness = domain.map_or(0, |domain| self.free_nodes.openness(domain));
        if let Some(node) = self.nodes.get_mut(id) {
            node.openness = openness;
        }
    }

    /// Counts every node anew, after the Topology `default` was replaced.
    pub(crate) fn count_all_free(&mut self) {
        self.free_nodes = FreeNodes::default();
        for id in self.nodes.ids() {
            self.count_free(id);
        }
    }

    /// The domain in which a node is to be counted; `None`: the node is not free as a whole, or in
    /// no domain.
    pub(crate) fn free_domain(&self, id: NodeId) -> Option<DomainId> {
        if !self.nodes.get(id)?.is_whole() {
            return None;
        }
        let topology = self.topology_ids.get(DEFAULT_TOPOLOGY)?.as_ref().ok()?;
        self.topologies[*topology].path(id).last().copied()
    }

    /// Gives free nodes the openness that their domains have now, and with it their places among
    /// equals.
    pub(crate) fn order_domains(&mut self) {
        while let Some(domain) = self.free_nodes.stale.pop_first() {
            let openness = self.free_nodes.openness(domain);
            let nodes = self.free_nodes.nodes.get(&domain).into_iter().flatten();
            for id in nodes {
                let node = &mut self.nodes[*id];
                if node.openness != openness {
                    node.openness = openness;
                    self.lanes.note(*id);
                    self.reordered.push(*id, self.nodes.len());
                }
            }
        }
    }
}
