//! Topologies, and where nodes stand in them.

use super::ClusterState;
use crate::facts::{Labels, TopologyConstraint, TopologyFacts, TopologyLevel, Uid};
use crate::ids::{NodeId, TopologyId};
use crate::names::listed;
use crate::topology::{NODE_LEVEL, Topology, Unlabelled};
use alloc::{boxed::Box, format, string::String, vec::Vec};
use smallvec::SmallVec;

/// The Topology that gangs mean when they name none.
pub(crate) const DEFAULT_TOPOLOGY: &str = "default";

impl ClusterState {
    pub(crate) fn apply_topology(&mut self, facts: TopologyFacts) {
        if let Some(Ok(id)) = self.topology_ids.get(&facts.name)
            && facts.problems.is_empty()
            && self.topologies[*id].levels == facts.levels
        {
            self.topologies[*id].uid = facts.uid;
            return;
        }
        self.drop_topology(&facts.name);
        let entry = match facts.problems.first() {
            Some(problem) => Err(format!("{}: {}", problem.field, problem.message)),
            None => Ok(self.add_topology(facts.levels, facts.uid)),
        };
        self.topology_ids.insert(facts.name.clone(), entry);
        self.offered.changed = true;
        self.topology_replaced(&facts.name);
    }

    pub(crate) fn delete_topology(&mut self, name: &str) {
        if self.topology_ids.contains_key(name) {
            self.drop_topology(name);
            self.topology_replaced(name);
        }
    }

    /// The Topology with this name, or a sentence why there is none that can be used.
    pub(crate) fn topology(&self, name: &str) -> Result<TopologyId, String> {
        match self.topology_ids.get(name) {
            Some(Ok(id)) => Ok(*id),
            Some(Err(fault)) => Err(format!("Topology {name:?} cannot be used: {fault}")),
            None => {
                let known = listed(self.topology_ids.keys().map(|known| &**known));
                Err(match known.as_str() {
                    "" => format!("there is no Topology {name:?}, nor any other"),
                    known => format!("there is no Topology {name:?}; those that exist: {known}"),
                })
            }
        }
    }

    /// The Topology in which a constraint's levels are looked up, or a sentence why there is none.
    /// A constraint that names no Topology and only the level `node` needs no Topology object.
    pub(crate) fn topology_of(&self, request: &TopologyConstraint) -> Result<TopologyId, String> {
        if let Some(name) = &request.name {
            return self.topology(name);
        }
        let mut levels = request.levels().peekable();
        let found = self.topology(DEFAULT_TOPOLOGY);
        if levels.peek().is_some() && levels.all(|level| level == NODE_LEVEL) {
            return found.or(Ok(self.bare_topology));
        }
        found
    }

    /// Every Topology object that can be read, with the labels that nodes lack for it.
    pub(crate) fn topology_notes(&self) -> Vec<(Box<str>, Uid, Option<Unlabelled>)> {
        let readable = self.topology_ids.iter();
        let readable = readable.filter_map(|(name, id)| Some((name, *id.as_ref().ok()?)));
        let notes = readable.map(|(name, id)| {
            let topology = &self.topologies[id];
            (name.clone(), topology.uid, topology.unlabelled())
        });
        notes.collect()
    }

    /// The topology whose only level is this node label, for native groups; made when first named.
    pub(crate) fn label_topology(&mut self, label: &str) -> TopologyId {
        if let Some(id) = self.label_topologies.get(label) {
            return *id;
        }
        let level = TopologyLevel {
            name: label.into(),
            node_label: label.into(),
        };
        let id = self.add_topology(Vec::from([level]), Uid(0));
        self.label_topologies.insert(label.into(), id);
        id
    }

    /// The topology whose only level is this node label, if a native group has named the label.
    pub(crate) fn known_label_topology(&self, label: &str) -> Option<TopologyId> {
        self.label_topologies.get(label).copied()
    }

    fn add_topology(&mut self, levels: Vec<TopologyLevel>, uid: Uid) -> TopologyId {
        let mut topology = Topology::new(levels, uid);
        for (id, node) in self.nodes.iter() {
            if let Some(known) = &node.known {
                topology.place(id, &node.name, &known.facts.labels);
            }
        }
        self.topologies.insert(topology)
    }

    fn drop_topology(&mut self, name: &str) {
        let Some(Ok(id)) = self.topology_ids.remove(name) else {
            return;
        };
        self.topologies.remove(id);
        for class in self.classes.ids() {
            if let Some(table) = &mut self.classes[class].table {
                table.forget(id);
            }
        }
    }

    fn topology_replaced(&mut self, name: &str) {
        if name == DEFAULT_TOPOLOGY {
            self.count_all_free();
            self.rank_all();
        }
        self.rules_changed();
    }

    pub(crate) fn place_in_topologies(&mut self, id: NodeId, labels: &Labels) {
        let name = self.nodes[id].name.clone();
        for topology in self.topologies.ids() {
            self.topologies[topology].place(id, &name, labels);
        }
        self.rank(id, labels, name);
    }

    pub(crate) fn remove_from_topologies(&mut self, id: NodeId) {
        let name = self.nodes[id].name.clone();
        for topology in self.topologies.ids() {
            self.topologies[topology].remove(id, &name);
        }
    }

    /// Gives a node its place in the order of filling.
    fn rank(&mut self, id: NodeId, labels: &Labels, name: Box<str>) {
        let path = match self.topology_ids.get(DEFAULT_TOPOLOGY) {
            Some(Ok(topology)) => self.topologies[*topology].names(&name, labels),
            _ => SmallVec::new(),
        };
        self.unrank(id);
        let key = (path, name);
        self.nodes[id].order_key = key.clone();
        if let Some(rank) = self.order.insert(key, id) {
            self.nodes[id].rank = rank;
            return;
        }
        for (node, rank) in self.order.iter() {
            self.nodes[node].rank = rank;
        }
        self.scores.forget_lanes();
        for node in self.nodes.ids() {
            self.lanes.note(node);
        }
    }

    /// All known nodes in the order of filling. Which of equal nodes comes first does not depend on
    /// the order in which nodes came.
    pub(crate) fn nodes_in_order(&self) -> impl Iterator<Item = NodeId> {
        self.order.iter().map(|(node, _)| node)
    }

    pub(crate) fn unrank(&mut self, id: NodeId) {
        self.order.remove(&self.nodes[id].order_key);
    }

    fn rank_all(&mut self) {
        self.scores.forget_lanes();
        self.order.clear();
        for id in self.nodes.ids() {
            let Some(known) = &self.nodes[id].known else {
                continue;
            };
            let labels = known.facts.labels.clone();
            let name = self.nodes[id].name.clone();
            self.rank(id, &labels, name);
            self.lanes.note(id);
        }
    }
}
