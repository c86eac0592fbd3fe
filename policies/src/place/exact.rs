//! Exact answers: counting for two shapes, a search in all other cases.
//!
//! Both work on a copy of the numbers, so they stop at the end of a slice and go on in the next.

use super::memo::{Known, Memo, Question, Running};
use super::problem::Problem;
use super::search::{Progress, Search};
use super::tree::Tree;
use super::two_shapes::TwoShapes;
use super::{Refusal, Request};
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use crate::txn::Txn;

/// What a step is in units of work.
const WORK: u64 = 5;

/// The knowledge about an area so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// They have been placed.
    Placed,
    /// They do not fit.
    Impossible,
    /// Not settled yet, or the bound was hit, or numbers do not say all.
    Unknown,
}

/// An exact method and how far it has come.
#[derive(Debug)]
pub(super) enum Exact {
    Counting(TwoShapes),
    Search(Search),
}

impl Exact {
    pub(super) fn new(problem: Problem) -> Self {
        if TwoShapes::suits(&problem) {
            Self::Counting(TwoShapes::new(problem))
        } else {
            Self::Search(Search::new(problem))
        }
    }

    pub(super) fn run(&mut self, steps: &mut u64) -> Progress {
        match self {
            Self::Counting(counting) => counting.run(steps),
            Self::Search(search) => search.run(steps),
        }
    }
}

/// Looks for places in an area, as far as this slice goes; if there are places, takes them.
///
/// `patience`: how many steps the search may take in all; `None`: it is about a wish, which is
/// worth what is left of the first slice. Counting ends by itself and is not cut off before the
/// whole is.
pub(super) fn in_area(
    state: &mut ClusterState,
    txn: &mut Txn,
    tree: &Tree,
    question: Question,
    patience: Option<u64>,
    memo: &mut Memo,
    work: &mut u64,
) -> Answer {
    let known = match memo.recall(question) {
        Some(known) => known,
        None => match look(state, tree, question, patience, memo, work) {
            Some(known) => memo.remember(question, known),
            None => return Answer::Unknown,
        },
    };
    match known {
        Known::Found(placed) => take(state, txn, tree, placed),
        Known::Impossible => Answer::Impossible,
        Known::GivenUp => Answer::Unknown,
    }
}

/// Works on a question in this slice; `None`: the next slice goes on.
fn look(
    state: &mut ClusterState,
    tree: &Tree,
    question: Question,
    patience: Option<u64>,
    memo: &mut Memo,
    work: &mut u64,
) -> Option<Known> {
    if memo.slice == 0 && (patience.is_none() || memo.left == 0) {
        return Some(Known::GivenUp);
    }
    if memo.slice == 0 {
        memo.interrupted = true;
        return None;
    }
    let mut running = match memo.resume(question) {
        Some(running) => running,
        None => begin(state, tree, question, patience, memo, work),
    };
    let steps = memo.slice.min(running.left);
    let mut unused = steps;
    let progress = running.exact.run(&mut unused);
    let used = steps - unused;
    running.left -= used;
    memo.spend(used);
    *work += WORK * used;
    match progress {
        Progress::Found(placed) => Some(Known::Found(placed)),
        Progress::Impossible => Some(Known::Impossible),
        Progress::Unfinished if patience.is_some() && running.left > 0 && memo.left > 0 => {
            memo.suspend(question, running);
            None
        }
        Progress::Unfinished => Some(Known::GivenUp),
    }
}

/// Copies the numbers of an area.
fn begin(
    state: &mut ClusterState,
    tree: &Tree,
    question: Question,
    patience: Option<u64>,
    memo: &mut Memo,
    work: &mut u64,
) -> Running {
    let problem = Problem::of(state, tree, question.1);
    let steps = (problem.nodes.len() * (problem.dimensions + 4)) as u64;
    memo.spend(steps);
    *work += WORK * steps;
    let exact = Exact::new(problem);
    let left = match (&exact, patience) {
        (Exact::Search(_), Some(patience)) => patience,
        _ => u64::MAX,
    };
    Running { exact, left }
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
pub(crate) fn single(request: &Request) -> Tree {
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
