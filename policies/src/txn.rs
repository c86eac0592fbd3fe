//! A tentative change of the state that can be undone exactly.
//!
//! Nothing is cloned to be tried: changes are made in place and noted in a journal; a rollback
//! walks the journal backwards.

use crate::facts::Placement;
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use crate::state::pod::Stage;
use alloc::{boxed::Box, vec::Vec};

/// The journal of one attempt. Dropping it keeps the changes, like [`Txn::commit`].
#[derive(Debug, Default)]
pub(crate) struct Txn {
    placed: Vec<(PodId, NodeId)>,
}

/// A point in the journal to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint(usize);

impl Txn {
    /// Puts a waiting pod on a node: chooses its cards, takes the room and charges the queue.
    pub(crate) fn place(
        &mut self,
        state: &mut ClusterState,
        pod: PodId,
        node: NodeId,
        placement: Placement,
    ) {
        debug_assert_eq!(
            state.pods[pod].stage,
            Stage::Waiting,
            "only waiting pods are placed"
        );
        debug_assert!(
            {
                let class = &state.classes[state.pods[pod].class];
                state.nodes[node].multiplicity(class) > 0
            },
            "I2: a node is never filled above its capacity"
        );
        state.pods[pod].cards = state.choose_cards(pod, node, placement);
        state.pods[pod].stage = Stage::Assumed(node);
        state.occupy(pod, node);
        self.placed.push((pod, node));
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.placed.len())
    }

    /// Undoes everything since the checkpoint. The state is as it was then.
    pub(crate) fn rollback(&mut self, state: &mut ClusterState, to: Checkpoint) {
        while self.placed.len() > to.0 {
            let Some((pod, node)) = self.placed.pop() else {
                return;
            };
            state.pods[pod].stage = Stage::Waiting;
            state.vacate(pod, node, false);
            state.pods[pod].cards = Box::default();
        }
    }

    /// The placements so far.
    pub(crate) fn placed(&self) -> &[(PodId, NodeId)] {
        &self.placed
    }

    /// Keeps everything, and says what was placed.
    pub(crate) fn commit(self) -> Vec<(PodId, NodeId)> {
        self.placed
    }
}
