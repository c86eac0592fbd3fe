//! Where a sub-group may be: inside the domains of the groups above it.

use super::Area;
use super::domains::{areas, is_inside, nodes_in};
use crate::ids::TopologyId;
use crate::place::Scope;
use crate::state::ClusterState;
use alloc::{collections::BTreeSet, vec::Vec};

/// The nodes that are in all of these areas; without areas, the whole cluster. Of the domains of
/// one topology only the smallest is kept; a node stands alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Region {
    areas: Vec<Area>,
}

impl Region {
    /// The areas of a scope, each cut down to this region. The region itself if it lies in one
    /// domain of the level already.
    pub(super) fn parts(&self, state: &ClusterState, scope: Scope) -> Vec<Self> {
        let (Scope::Level(id, level) | Scope::DomainOf(id, level, _)) = scope else {
            let nodes = match scope {
                Scope::OneNode if !self.areas.is_empty() => nodes_in(state, &self.areas)
                    .into_iter()
                    .map(Area::Node)
                    .collect(),
                Scope::Cluster => return Vec::from([self.clone()]),
                _ => areas(state, scope),
            };
            return nodes
                .into_iter()
                .filter_map(|area| self.with(state, area))
                .collect();
        };
        let own = self.areas.iter().find_map(|area| match area {
            Area::Domain(topology, domain) if *topology == id => Some(*domain),
            _ => None,
        });
        let topology = &state.topologies[id];
        let fine_enough = own.is_some_and(|own| topology.domain(own).level >= level);
        if let Scope::DomainOf(..) = scope {
            let parts = areas(state, scope).into_iter();
            return parts.filter_map(|area| self.with(state, area)).collect();
        }
        if fine_enough {
            return Vec::from([self.clone()]);
        }
        let domains = match own {
            None if !self.areas.is_empty() => {
                // The domains come in the order of their first nodes.
                let mut known = BTreeSet::new();
                let nodes = nodes_in(state, &self.areas).into_iter();
                nodes
                    .filter_map(|node| topology.path(node).get(level).copied())
                    .filter(|domain| known.insert(*domain))
                    .collect()
            }
            own => topology.domains_at(level, own),
        };
        let parts = domains.into_iter().map(|domain| Area::Domain(id, domain));
        parts.filter_map(|area| self.with(state, area)).collect()
    }

    /// The part of the region that is also in an area; `None` if the two share nothing.
    fn with(&self, state: &ClusterState, area: Area) -> Option<Self> {
        let mut region = self.clone();
        match area {
            Area::Cluster => return Some(region),
            Area::Node(node) => {
                let inside = self
                    .areas
                    .iter()
                    .all(|known| is_inside(state, *known, node));
                region.areas = Vec::from([area]);
                return inside.then_some(region);
            }
            Area::Domain(id, domain) => {
                let topology = &state.topologies[id];
                let above = |mut domain, above| loop {
                    if domain == above {
                        return true;
                    }
                    match topology.domain(domain).parent {
                        Some(parent) => domain = parent,
                        None => return false,
                    }
                };
                for known in &mut region.areas {
                    match *known {
                        Area::Domain(other, own) if other == id => {
                            if above(domain, own) {
                                *known = area;
                            } else if !above(own, domain) {
                                return None;
                            }
                            return Some(region);
                        }
                        Area::Node(node) => {
                            return is_inside(state, area, node).then_some(region);
                        }
                        Area::Domain(..) | Area::Cluster => {}
                    }
                }
            }
        }
        region.areas.push(area);
        Some(region)
    }

    /// The domain of the region in this topology (or its node, or the cluster), and the other areas
    /// in which nodes must be, too.
    pub(super) fn seen_from(&self, topology: Option<TopologyId>) -> (Area, Vec<Area>) {
        let own = self.areas.iter().position(|area| match area {
            Area::Domain(id, _) => Some(*id) == topology,
            Area::Node(_) => true,
            Area::Cluster => false,
        });
        let mut inside = self.areas.clone();
        let area = own.map_or(Area::Cluster, |own| inside.remove(own));
        (area, inside)
    }
}
