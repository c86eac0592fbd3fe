//! Nodes come, change and go.

use super::ClusterState;
use super::node::{KnownNode, Node};
use crate::facts::{NodeFacts, UnixMs};
use crate::gpu::{GpuNode, gpus};
use crate::ids::{NodeId, PodId};
use crate::resources::Resources;
use smallvec::SmallVec;

impl ClusterState {
    /// The id of the node with this name. A node that was not seen yet is entered by its name,
    /// without room.
    pub(crate) fn node_id(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.node_ids.get(name) {
            return *id;
        }
        let id = self.nodes.insert(Node::new(name));
        self.node_ids.insert(name.into(), id);
        id
    }

    pub(crate) fn apply_node(&mut self, mut facts: NodeFacts, now_ms: UnixMs) {
        self.add_amounts(&mut facts);
        let id = self.node_id(&facts.name);
        let known = self.nodes[id].known.take();
        let before = known.as_ref().map(|known| &known.facts);
        if before == Some(&facts) {
            self.nodes[id].known = known;
            return;
        }
        let gpu = self.read_gpu(id, &facts, now_ms);
        let same_gpu = known.as_ref().is_some_and(|known| known.gpu == gpu);
        let same_rules = same_gpu && before.is_some_and(|before| same_rules(before, &facts));
        let same_labels = before.is_some_and(|before| before.labels == facts.labels);
        let same_charges = same_labels && before.is_some_and(|known| known.cards == facts.cards);
        // Rules about other pods read labels and taints alone.
        let same_domains =
            same_labels && before.is_some_and(|before| before.taints == facts.taints);
        let same_amounts = before.is_some_and(|before| same_amounts(before, &facts));
        let same_sort = before.is_some_and(|before| same_sort(before, &facts));
        let same_offer = same_labels
            && same_sort
            && same_gpu
            && before.is_some_and(|before| before.allocatable == facts.allocatable);
        let same_reach = same_rules && before.is_some_and(|before| same_reach(before, &facts));
        self.capacity.node_changed(id, before, &facts, now_ms);
        if let Some(known) = known.as_ref().filter(|_| !same_offer) {
            self.offered.remove(known);
        }
        let amounts = self.room_of(&facts, &gpu);
        if !same_charges {
            self.uncharge_node(id);
        }
        let labels = (!same_labels).then(|| facts.labels.clone());
        let images_before = before.map_or(&[][..], |before| &before.images);
        self.images.change(id, images_before, &facts.images);
        let model = self.model_entry(&gpu);
        let product = gpu.product.as_deref();
        let model_id = product.map(|product| self.kinds.model(product));
        let node = &mut self.nodes[id];
        let (cards, links) = (&facts.cards, &facts.card_links);
        let grew =
            node.set_allocatable(&amounts) | node.cards.set(cards, links, &mut self.mig_models);
        let known = node.known.insert(KnownNode {
            gpus: gpus(&facts),
            facts,
            gpu,
            model,
            model_id,
        });
        if !same_offer {
            self.offered.add(known);
        }
        if !same_charges {
            self.charge_node(id);
        }
        if !same_domains {
            self.relabel(id);
        }
        if let Some(labels) = labels {
            self.place_in_topologies(id, &labels);
            self.touch_gangs_on(id);
        }
        let realigned = !same_amounts && self.read_cells(id);
        if !same_rules || realigned {
            self.judge_node(id);
        }
        if !same_reach {
            self.judge_reach(id);
        }
        self.node_changed(id, grew || !same_rules || realigned);
    }

    /// The amounts of a node that pods may take.
    fn room_of(&mut self, facts: &NodeFacts, gpu: &GpuNode) -> Resources {
        let mut amounts = self.resource_names.vector(&facts.allocatable);
        // Where the cards are known, slots are room for the pods that ask for parts of cards.
        let has_cards = !facts.cards.is_empty();
        let counts = |name: &str| has_cards || gpu.offers(name);
        amounts.retain(|(resource, _)| counts(self.resource_names.name(*resource)));
        amounts
    }

    pub(crate) fn delete_node(&mut self, name: &str) {
        let Some(&id) = self.node_ids.get(name) else {
            return;
        };
        let Some(known) = self.nodes[id].known.take() else {
            return;
        };
        self.capacity.node_removed(id);
        self.ailments.forget(id);
        self.offered.remove(&known);
        self.images.change(id, &known.facts.images, &[]);
        self.nodes[id].known = Some(known);
        self.uncharge_node(id);
        self.nodes[id].known = None;
        self.charge_node(id);
        self.nodes[id].set_allocatable(&SmallVec::new());
        self.nodes[id].cards.set(&[], &[], &mut self.mig_models);
        self.read_cells(id);
        self.relabel(id);
        self.remove_from_topologies(id);
        self.unrank(id);
        self.judge_node(id);
        self.judge_reach(id);
        self.node_changed(id, false);
        self.touch_gangs_on(id);
        self.drop_node_if_unused(id);
    }

    /// Touches the gangs with members on a node.
    pub(super) fn touch_gangs_on(&mut self, id: NodeId) {
        let gang = |pod: &PodId| self.pods[*pod].gang();
        self.touched
            .extend(self.nodes[id].pods.iter().filter_map(gang));
    }

    /// Forgets a node that is not known and that no pod refers to.
    pub(crate) fn drop_node_if_unused(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(id) else {
            return;
        };
        if node.known.is_some() || !node.pods.is_empty() || node.is_held() {
            return;
        }
        self.node_ids.remove(&node.name);
        self.nodes.remove(id);
        self.holds.note_outgoing(id, false);
        self.freed.remove(&id);
    }

    /// Brings every index up to date after the room of a node has changed. `grew`: the node may
    /// have room for gangs that were refused.
    pub(crate) fn node_changed(&mut self, id: NodeId, grew: bool) {
        self.count_free(id);
        self.lanes.note(id);
        if self.nodes[id].is_held() {
            self.holds.stirred.insert(id);
        }
        let is_outgoing = self.nodes[id].leaves_more_than_is_held();
        self.holds.note_outgoing(id, is_outgoing);
        self.changes.push(id, self.nodes.len());
        if grew {
            self.freed.insert(id);
        }
    }
}

/// Whether a node has as much of everything as before.
fn same_amounts(before: &NodeFacts, after: &NodeFacts) -> bool {
    before.allocatable == after.allocatable && before.capacity == after.capacity
}

/// Whether both name cards, or neither does.
fn same_sort(before: &NodeFacts, after: &NodeFacts) -> bool {
    before.cards.is_empty() == after.cards.is_empty()
}

/// Whether a node suits the same pods, by what its rules leave open. A node that becomes ready
/// counts again, whatever its condition said before.
fn same_reach(before: &NodeFacts, after: &NodeFacts) -> bool {
    same_sort(before, after)
        && gpus(before) == gpus(after)
        && before.cards == after.cards
        && before.readiness.is_ready() == after.readiness.is_ready()
}

/// Whether filters judge two states of a node alike.
fn same_rules(before: &NodeFacts, after: &NodeFacts) -> bool {
    before.labels == after.labels
        && before.annotations == after.annotations
        && before.taints == after.taints
        && before.features == after.features
        && before.unschedulable == after.unschedulable
        && before.readiness.is_lost() == after.readiness.is_lost()
}
