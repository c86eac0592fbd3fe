//! What the kubelets of nodes would align, and what pods have of NUMA nodes.
//!
//! A pod that comes to a node takes what its kubelet would give it; a new object says anew what is
//! in use, and which pods have what is worked out from that, see [`crate::numa`].

use super::ClusterState;
use crate::facts::{NodeFacts, NumaFacts, PodFacts, PodShape};
use crate::ids::{NodeId, PodId};
use crate::numa;
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

/// The objects about NUMA nodes, and what became of predictions.
#[derive(Debug, Default)]
pub(crate) struct Numa {
    /// By the name of the node.
    objects: BTreeMap<Box<str>, NumaFacts>,
    /// How many nodes reject pods that they cannot align.
    strict: usize,
    /// How many pods were rejected by their kubelets although they were to be aligned, since a
    /// shell last asked.
    misaligned: usize,
}

impl Numa {
    /// The names of all objects.
    pub(crate) fn names(&self) -> impl Iterator<Item = Box<str>> {
        self.objects.keys().cloned()
    }

    /// The object about a node.
    pub(crate) fn find(&self, node: &str) -> Option<&NumaFacts> {
        self.objects.get(node)
    }

    /// Whether any node rejects pods that it cannot align.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict > 0
    }

    /// How many pods were rejected by their kubelets although they were to be aligned, since the
    /// last call.
    pub(crate) fn take_misaligned(&mut self) -> usize {
        core::mem::take(&mut self.misaligned)
    }
}

impl ClusterState {
    pub(crate) fn apply_numa(&mut self, facts: NumaFacts) {
        if self.numa.objects.get(&facts.name) == Some(&facts) {
            return;
        }
        let name = facts.name.clone();
        self.numa.objects.insert(name.clone(), facts);
        self.cells_changed(&name);
    }

    pub(crate) fn delete_numa(&mut self, name: &str) {
        if self.numa.objects.remove(name).is_some() {
            self.cells_changed(name);
        }
    }

    fn cells_changed(&mut self, name: &str) {
        let Some(&id) = self.node_ids.get(name) else {
            return;
        };
        if self.read_cells(id) {
            self.judge_node(id);
            self.node_changed(id, true);
        }
    }

    /// Reads the object about a node anew. Returns whether the node rejects pods for it, or did.
    pub(super) fn read_cells(&mut self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        let object = self.numa.objects.get(&node.name);
        let known = node.known.as_ref().map(|known| &known.facts);
        let cells = object.zip(known);
        let cells = cells.and_then(|(object, facts)| numa::read(object, facts));
        let (before, after) = (node.cells.is_some(), cells.is_some());
        self.numa.strict = self.numa.strict + usize::from(after) - usize::from(before);
        self.nodes[id].cells = cells.map(Box::new);
        self.explain_cells_of(id);
        before || after
    }

    /// Works out anew what the pods on all nodes have of NUMA nodes, once all pods are known.
    pub(super) fn explain_cells(&mut self) {
        if !self.numa.is_strict() {
            return;
        }
        let strict = self.nodes.iter().filter(|(_, node)| node.cells.is_some());
        for id in strict.map(|(id, _)| id).collect::<Vec<_>>() {
            self.read_cells(id);
            self.node_changed(id, true);
        }
    }

    fn explain_cells_of(&mut self, id: NodeId) {
        let node = &mut self.nodes[id];
        let mut pods = node.pods.clone();
        let Some(cells) = &mut node.cells else {
            for pod in pods {
                self.pods[pod].cells = None;
            }
            return;
        };
        // A pod whose binding is not told yet came last.
        let age = |id: &PodId| {
            let pod = &self.pods[*id];
            let bound_ms = pod.own.as_ref().and_then(|own| own.bound_ms);
            let is_new = pod.own.is_some() && bound_ms.is_none();
            (is_new, bound_ms.unwrap_or(pod.created_ms), pod.uid)
        };
        pods.sort_by_key(age);
        let shape = |pod: &PodId| &*self.classes[self.pods[*pod].class].shape;
        let shapes: Vec<&PodShape> = pods.iter().map(shape).collect();
        let shares = cells.explain_all(&shapes);
        for (pod, shares) in pods.into_iter().zip(shares) {
            self.pods[pod].cells = Some(shares);
        }
    }

    /// Takes what a pod has of the NUMA nodes of its node. A pod that was bound before it was seen
    /// may be among those that the object counts.
    pub(super) fn take_cells(&mut self, pod: PodId, id: NodeId) {
        let Some(cells) = &mut self.nodes[id].cells else {
            return;
        };
        let record = &mut self.pods[pod];
        let shape = &self.classes[record.class].shape;
        let is_bound = record.stage.is_bound();
        let shares = record.cells.get_or_insert_with(|| {
            let explained = is_bound.then(|| cells.explained_by(shape)).flatten();
            explained.unwrap_or_else(|| cells.foreseen(shape))
        });
        cells.take(shares);
    }

    /// The exact reverse of [`ClusterState::take_cells`].
    pub(super) fn give_back_cells(&mut self, pod: PodId, id: NodeId) {
        if let Some(cells) = &mut self.nodes[id].cells
            && let Some(shares) = &self.pods[pod].cells
        {
            cells.give_back(shares);
        }
    }

    /// Counts a pod of ours that its kubelet has rejected although it was to be aligned. Returns
    /// its node, on which pods have other parts of NUMA nodes than was foreseen.
    pub(super) fn note_misaligned(&mut self, pod: &PodId, facts: &PodFacts) -> Option<NodeId> {
        let record = &self.pods[*pod];
        let node = record.stage.node().filter(|_| facts.is_misaligned);
        let node = node.filter(|node| self.nodes[*node].cells.is_some());
        let foreseen = node.filter(|_| record.own.is_some());
        self.numa.misaligned += usize::from(foreseen.is_some());
        foreseen
    }

    /// Works out anew what the pods on a node have of its NUMA nodes. An object that says what it
    /// said before is no news, but is true all the same.
    pub(super) fn explain_cells_anew(&mut self, id: NodeId) {
        self.read_cells(id);
        self.node_changed(id, false);
    }

    /// The facts of the node with this name; `None`: there is no such node.
    pub(crate) fn node_facts(&self, name: &str) -> Option<&NodeFacts> {
        let node = self.nodes[*self.node_ids.get(name)?].known.as_ref()?;
        Some(&node.facts)
    }

    /// The nodes that count other parts of their NUMA nodes as used than their pods have.
    pub(crate) fn nodes_with_wrong_cells(&self) -> impl Iterator<Item = &str> {
        let wrong = self.nodes.iter().filter(|(_, node)| {
            let Some(cells) = &node.cells else {
                return false;
            };
            let mut sums = cells.without_pods();
            for pod in &node.pods {
                sums.take(self.pods[*pod].cells.as_deref().unwrap_or_default());
            }
            sums != **cells
        });
        wrong.map(|(_, node)| &*node.name)
    }
}
