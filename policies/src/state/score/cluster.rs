//! The fragmentation of the whole cluster, kept current from the log of changed nodes.

use super::view::View;
use crate::ids::{ById, NodeId};
use crate::report::Fragmentation;
use crate::state::ClusterState;
use crate::state::node::Node;

/// Sums over all nodes. The sums are exact, so the order of changes makes no difference.
#[derive(Debug, Default)]
pub(crate) struct ClusterSums {
    /// What each node adds: [`super::fragmentation::Fragmented::weighted`], and the free
    /// thousandths of its cards.
    nodes: ById<NodeId, (u128, u64)>,
    weighted: u128,
    free_thousandths: u64,
    cursor: Option<u64>,
    version: u64,
}

impl ClusterSums {
    fn set(&mut self, id: NodeId, now: (u128, u64)) {
        let before = core::mem::replace(&mut self.nodes[id], now);
        self.weighted = self.weighted + now.0 - before.0;
        self.free_thousandths = self.free_thousandths + now.1 - before.1;
    }
}

impl ClusterState {
    /// How much of all free GPUs is of no use for the target workload.
    pub(crate) fn fragmentation(&mut self) -> Fragmentation {
        self.retarget();
        let scores = &mut self.scores;
        let mut sums = core::mem::take(&mut scores.cluster);
        let known = sums.cursor.filter(|_| sums.version == scores.version);
        let mut update = |id: NodeId, node: Option<&Node>| {
            let view = node.map(View::of);
            let parts = view.map(|view| (scores.measure.of(&view).weighted, view.idle()));
            sums.set(id, parts.unwrap_or_default());
        };
        match known.and_then(|cursor| self.changes.since(cursor)) {
            Some(changed) => changed.for_each(|id| update(id, self.nodes.get(id))),
            None => {
                let all = self.nodes.numbers();
                all.for_each(|id| update(id, self.nodes.get(id)));
            }
        }
        (sums.cursor, sums.version) = (Some(self.changes.end()), scores.version);
        let fragmentation = Fragmentation {
            weighted: sums.weighted,
            weight: scores.measure.target.weight,
            free_thousandths: sums.free_thousandths,
        };
        scores.cluster = sums;
        fragmentation
    }
}
