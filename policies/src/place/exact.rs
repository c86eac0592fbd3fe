//! Exact answers: counting for two shapes, a search in all other cases.

use super::problem::Problem;
use super::search::{Progress, Search};
use super::tree::Tree;
use super::two_shapes::TwoShapes;
use super::{Area, Refusal, Request};
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use crate::txn::Txn;

/// How many steps of about 50 ns the exact methods may take for one gang in one go.
pub(super) const STEPS: u64 = 40_000;
/// What a step is in units of work.
const WORK: u64 = 5;

/// What is known of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// They have been placed.
    Placed,
    /// They do not fit.
    Impossible,
    /// The bound was hit, or numbers do not say all.
    Unknown,
}

/// Looks for places in an area until it is certain, or the steps are used up; if there are places,
/// takes them.
pub(super) fn in_area(
    state: &mut ClusterState,
    txn: &mut Txn,
    tree: &Tree,
    area: Area,
    steps: &mut u64,
    work: &mut u64,
) -> Answer {
    if *steps == 0 {
        return Answer::Unknown;
    }
    let problem = Problem::of(state, tree, area);
    *work += 10 * (problem.nodes.len() * (problem.dimensions + 4)) as u64;
    let before = *steps;
    let progress = if TwoShapes::suits(&problem) {
        TwoShapes::new(problem).run(steps)
    } else {
        Search::new(problem).run(steps)
    };
    *work += WORK * (before - *steps);
    match progress {
        Progress::Found(placed) => take(state, txn, tree, &placed),
        Progress::Impossible => Answer::Impossible,
        Progress::Unfinished => Answer::Unknown,
    }
}

/// Takes the places that were found. Numbers that do not say all may have promised too much.
fn take(
    state: &mut ClusterState,
    txn: &mut Txn,
    tree: &Tree,
    placed: &[(PodId, NodeId)],
) -> Answer {
    let start = txn.checkpoint();
    let request = tree.flat(alloc::vec::Vec::new(), 0);
    for (pod, node) in placed {
        let class = state.pods[*pod].class;
        if state.nodes[*node].multiplicity(&state.classes[class]) == 0 {
            txn.rollback(state, start);
            return Answer::Unknown;
        }
        let placement = request.placement_of(state, class);
        txn.place(state, *pod, *node, placement);
    }
    Answer::Placed
}

/// The refusal of members that are too many to be proved in words.
pub(super) fn not_together(proved: bool) -> Refusal {
    Refusal::NotTogether { proved }
}

/// A gang without sub-groups as a tree of one leaf.
pub(super) fn single(request: &Request) -> Tree {
    let leaf = super::tree::TreeGroup {
        name: "".into(),
        parent: 0,
        children: alloc::vec::Vec::new(),
        need: request.need,
        pods: request.groups.clone(),
        near: request.near,
        anchor: request.anchor,
        occupied: request.occupied.clone(),
    };
    Tree {
        groups: alloc::vec::Vec::from([leaf]),
        model_limits: request.model_limits,
        placement: request.placement,
    }
}
