//! A tentative change of the state that can be undone exactly.
//!
//! Nothing is cloned to be tried: changes are made in place and noted in a journal; a rollback
//! walks the journal backwards.

use crate::facts::{CardIndex, Placement};
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use crate::state::pod::Stage;
use alloc::{boxed::Box, vec::Vec};

/// The journal of one attempt. Dropping it keeps the changes, like [`Txn::commit`].
#[derive(Debug, Default)]
pub(crate) struct Txn {
    placed: Vec<(PodId, NodeId)>,
    ended: Vec<Ended>,
}

/// A pod that has ended in a transaction, as it was before.
#[derive(Debug)]
struct Ended {
    pod: PodId,
    node: NodeId,
    stage: Stage,
    cards: Box<[CardIndex]>,
}

/// A point in the journal to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    placed: usize,
    ended: usize,
}

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

    /// Lets a pod end that has a place: its node and its queue get back what it holds. Of a
    /// resource of which a node has less than its pods use, an end frees less, or nothing.
    ///
    /// What the queue wants for the pod stays: fair shares are not divided anew for a what-if.
    pub(crate) fn end(&mut self, state: &mut ClusterState, pod: PodId) {
        let stage = state.pods[pod].stage;
        let Some(node) = stage.node() else { return };
        state.pods[pod].stage = Stage::Ended { succeeded: false };
        state.vacate(pod, node, false);
        let cards = core::mem::take(&mut state.pods[pod].cards);
        self.ended.push(Ended {
            pod,
            node,
            stage,
            cards,
        });
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            placed: self.placed.len(),
            ended: self.ended.len(),
        }
    }

    /// Undoes everything since the checkpoint. The state is as it was then.
    pub(crate) fn rollback(&mut self, state: &mut ClusterState, to: Checkpoint) {
        // Ends go first: a pod may end after it was placed, and is never placed after its end.
        while self.ended.len() > to.ended
            && let Some(ended) = self.ended.pop()
        {
            state.pods[ended.pod].stage = ended.stage;
            state.pods[ended.pod].cards = ended.cards;
            state.occupy(ended.pod, ended.node);
        }
        while self.placed.len() > to.placed
            && let Some((pod, node)) = self.placed.pop()
        {
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
