//! The read set of a search: what its answers depend on. When that has changed, the search begins
//! anew.
//!
//! Changes outside the read set (room on a node where no member fits, a status, the clock) do not
//! matter.

use crate::facts::Amount;
use crate::ids::{ClassId, Id, NodeId, TopologyId};
use crate::queues::{GovernedId, QueueId};
use crate::state::ClusterState;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// The room of all nodes for some classes, the domains, and the limits on GPU models.
#[derive(Debug)]
pub(crate) struct ReadSet {
    classes: Vec<ClassId>,
    /// The queue whose limits on GPU models hold, if it has any.
    limits: Option<QueueId>,
    /// The end of the log of changed nodes at the last look.
    cursor: u64,
    /// By node, a hash of its room for the classes, see [`room`].
    nodes: Vec<u64>,
    /// The version of each topology.
    domains: Vec<(TopologyId, u64)>,
    /// What the limits leave of each GPU model.
    budgets: Vec<(GovernedId, Option<Amount>)>,
}

impl ReadSet {
    /// Reads the state as it is now.
    pub(crate) fn read(
        state: &mut ClusterState,
        classes: Vec<ClassId>,
        limits: Option<QueueId>,
    ) -> Self {
        for class in &classes {
            state.refresh(*class);
        }
        let nodes = (0..state.nodes.bound()).map(|index| room(state, &classes, node_at(index)));
        Self {
            cursor: state.changes.end(),
            nodes: nodes.collect(),
            domains: domains(state),
            budgets: budgets(state, limits),
            classes,
            limits,
        }
    }

    /// Whether everything is as it was read. Room that was taken and given back since counts as
    /// unchanged.
    pub(crate) fn is_as_read(&mut self, state: &mut ClusterState, limits: Option<QueueId>) -> bool {
        if self.limits != limits
            || self.classes.iter().any(|c| state.classes.get(*c).is_none())
            || self.domains != domains(state)
            || self.budgets != budgets(state, self.limits)
        {
            return false;
        }
        for class in &self.classes {
            state.refresh(*class);
        }
        let as_read = |node: NodeId| {
            let read = self.nodes.get(node.index()).copied().unwrap_or(0);
            read == room(state, &self.classes, node)
        };
        let same = match state.changes.since(self.cursor) {
            Some(mut changed) => changed.all(as_read),
            None => (0..state.nodes.bound()).map(node_at).all(as_read),
        };
        self.cursor = state.changes.end();
        same
    }
}

fn node_at(index: usize) -> NodeId {
    NodeId::new(u32::try_from(index).unwrap_or(u32::MAX))
}

/// A hash of the room of a node for the classes; 0 if no pod of any of them fits.
fn room(state: &ClusterState, classes: &[ClassId], id: NodeId) -> u64 {
    let count = |class: &ClassId| state.fits_on(*class, id);
    let Some(node) = state.nodes.get(id) else {
        return 0;
    };
    if classes.iter().all(|class| count(class) == 0) {
        return 0;
    }
    let mut hasher = rustc_hash::FxHasher::default();
    for class in classes {
        count(class).hash(&mut hasher);
        let class = &state.classes[*class];
        for (resource, _) in &class.requests {
            node.free(*resource).hash(&mut hasher);
            // With a volume that is there already, a pod takes less of what is free.
            if class.shared.is_some() {
                node.takes_now(class, *resource).hash(&mut hasher);
            }
        }
        if class.cards.is_some() {
            node.cards.hash_room(&mut hasher);
        }
    }
    if let Some(cells) = &node.cells {
        cells.free_now().hash(&mut hasher);
    }
    hasher.finish()
}

fn domains(state: &ClusterState) -> Vec<(TopologyId, u64)> {
    let topologies = state.topologies.iter();
    topologies
        .map(|(id, topology)| (id, topology.version))
        .collect()
}

/// What the limits leave of each GPU model that nodes have.
fn budgets(state: &ClusterState, limits: Option<QueueId>) -> Vec<(GovernedId, Option<Amount>)> {
    let Some(queue) = limits else {
        return Vec::new();
    };
    let nodes = state.nodes.iter();
    let models = nodes.filter_map(|(_, node)| node.known.as_ref()?.model);
    let mut models: Vec<GovernedId> = models.collect();
    models.sort_unstable();
    models.dedup();
    let budget = |model| (model, state.queues.budget(queue, model));
    models.into_iter().map(budget).collect()
}
