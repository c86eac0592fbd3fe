//! The nodes that an exact method copies: as they are, or as they would be if some pods had ended.

use crate::ids::{ClassId, Id, NodeId, PodId};
use crate::state::ClusterState;
use crate::state::node::Node;
use alloc::{collections::BTreeMap, vec::Vec};

/// The state, with nodes that differ from it.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(super) state: &'a ClusterState,
    changed: BTreeMap<NodeId, Node>,
    /// By class and node, what the static filters say. `None`: the tables are current.
    judged: Option<BTreeMap<ClassId, Vec<bool>>>,
}

impl<'a> World<'a> {
    /// Nodes as they are, for classes whose tables are current.
    pub(super) fn of_tables(state: &'a ClusterState) -> Self {
        Self {
            state,
            changed: BTreeMap::new(),
            judged: None,
        }
    }

    /// Nodes as they are, for classes whose tables may be old: each node is judged.
    pub(crate) fn judged(state: &'a ClusterState, classes: &[ClassId]) -> Self {
        let judge = |class: ClassId| {
            let ids = (0..state.nodes.bound()).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            let verdicts = ids.map(|id| state.static_verdict(class, NodeId::new(id)));
            verdicts
                .map(|verdict| verdict.is_some_and(|v| v.is_ok()))
                .collect()
        };
        Self {
            state,
            changed: BTreeMap::new(),
            judged: Some(
                classes
                    .iter()
                    .map(|class| (*class, judge(*class)))
                    .collect(),
            ),
        }
    }

    /// Lets these pods have ended in this world. A resource of which a node has less than its pods
    /// use stays lacking: there an end frees less.
    pub(crate) fn end(&mut self, pods: &[PodId]) {
        for pod in pods {
            let Some(on) = self.state.node_of(*pod) else {
                continue;
            };
            let state = self.state;
            let node = self.changed.entry(on);
            let node = node.or_insert_with(|| state.nodes[on].clone());
            let pod_state = &state.pods[*pod];
            node.give_back(*pod, &state.classes[pod_state.class], &pod_state.cards);
        }
    }

    /// Takes back all ends.
    pub(crate) fn restore(&mut self) {
        self.changed.clear();
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        self.changed.get(&id).unwrap_or(&self.state.nodes[id])
    }

    /// Whether a node takes pods of a class, as far as the static filters say.
    pub(crate) fn takes(&self, class: ClassId, id: NodeId) -> bool {
        match &self.judged {
            None => {
                let table = self.state.table_as_of(class);
                table.is_some_and(|table| table.is_eligible(id))
            }
            Some(judged) => {
                let of_class = judged.get(&class);
                of_class.is_some_and(|nodes| nodes.get(id.index()).is_some_and(|takes| *takes))
            }
        }
    }

    /// How many pods of a class a node has room for.
    pub(crate) fn count(&self, class: ClassId, id: NodeId) -> u32 {
        match &self.judged {
            None => {
                let table = self.state.table_as_of(class);
                table.map_or(0, |table| table.count(id))
            }
            Some(_) if self.takes(class, id) => {
                self.node(id).multiplicity(&self.state.classes[class])
            }
            Some(_) => 0,
        }
    }
}
