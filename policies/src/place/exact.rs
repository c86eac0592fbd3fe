//! Exact answers, slice by slice: asks the exact methods whether members fit in an area, and
//! remembers their answers.

use super::memo::{Known, Memo, Question, Running};
use super::method::Method;
use super::problem::{Problem, SliceResult};
use super::request::Request;
use super::{Area, Refusal};
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use crate::txn::Txn;

/// How many units of work (10 ns each) one step counts.
const WORK: u64 = 5;

/// Whether the members fit in one area, or in any of several, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The members have been placed.
    Placed,
    /// It is proved that the members do not fit.
    Impossible,
    /// There is no answer yet, or the steps were used up, or the numbers do not say everything.
    Unknown,
}

/// Asks the exact methods about one area after the other, and places the members in the first that
/// fits. `wish`: the areas are only preferred; wider ones are tried after a refusal.
pub(super) fn exactly(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    areas: &[Area],
    wish: bool,
    memo: &mut Memo,
    work: &mut u64,
) -> Answer {
    let signature = request.signature();
    let mut answer = Answer::Impossible;
    for (position, area) in areas.iter().enumerate() {
        let inquiry = Inquiry {
            request,
            question: (signature, *area),
            patience: (!wish).then(|| memo.share(areas.len() - position)),
        };
        match inquiry.place(state, txn, memo, work) {
            Answer::Placed => return Answer::Placed,
            Answer::Impossible => {}
            Answer::Unknown => answer = Answer::Unknown,
        }
    }
    answer
}

/// Whether the members of a request fit in one area.
#[derive(Debug, Clone, Copy)]
struct Inquiry<'a> {
    request: &'a Request,
    question: Question,
    /// How many steps a search of the area may take in all slices; `None`: the area is only
    /// preferred and gets no more than what is left of the first slice. The counting of two shapes
    /// ends by itself, so this does not bound it.
    patience: Option<u64>,
}

impl Inquiry<'_> {
    /// Looks for places in the area, as far as this slice goes; if there are places, takes them.
    fn place(
        self,
        state: &mut ClusterState,
        txn: &mut Txn,
        memo: &mut Memo,
        work: &mut u64,
    ) -> Answer {
        let known = match memo.recall(self.question) {
            Some(known) => known,
            None => match self.look(state, memo, work) {
                Some(known) => memo.remember(self.question, known),
                None => return Answer::Unknown,
            },
        };
        match known {
            Known::Found(placed) => take(state, txn, self.request, placed),
            Known::Impossible => Answer::Impossible,
            Known::GivenUp => Answer::Unknown,
        }
    }

    /// Works on the question in this slice; `None`: there is no answer yet, and the next slice goes
    /// on.
    fn look(self, state: &mut ClusterState, memo: &mut Memo, work: &mut u64) -> Option<Known> {
        if memo.slice == 0 && (self.patience.is_none() || memo.left == 0) {
            return Some(Known::GivenUp);
        }
        if memo.slice == 0 {
            memo.interrupted = true;
            return None;
        }
        let mut running = match memo.resume(self.question) {
            Some(running) => running,
            None => self.begin(state, memo, work),
        };
        let steps = memo.slice.min(running.left);
        let mut unused = steps;
        let progress = running.method.run(&mut unused);
        let used = steps - unused;
        running.left -= used;
        memo.spend(used);
        *work += WORK * used;
        match progress {
            SliceResult::Found(placed) => Some(Known::Found(placed)),
            SliceResult::Impossible => Some(Known::Impossible),
            SliceResult::Unfinished
                if self.patience.is_some() && running.left > 0 && memo.left > 0 =>
            {
                memo.suspend(self.question, running);
                None
            }
            SliceResult::Unfinished => Some(Known::GivenUp),
        }
    }

    /// Copies the numbers of the area and chooses the method. The copying counts as steps, too.
    fn begin(self, state: &mut ClusterState, memo: &mut Memo, work: &mut u64) -> Running {
        let (_, area) = self.question;
        let problem = Problem::of(state, self.request, area);
        let steps = (problem.nodes.len() * (problem.dimensions + 4)) as u64;
        memo.spend(steps);
        *work += WORK * steps;
        let method = Method::new(problem);
        let left = match (&method, self.patience) {
            (Method::Search(_), Some(patience)) => patience,
            _ => u64::MAX,
        };
        Running { method, left }
    }
}

/// Takes the places that were found. If the numbers do not say everything, a pod may not fit: then
/// nothing is placed.
fn take(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    placed: &[(PodId, NodeId)],
) -> Answer {
    let start = txn.checkpoint();
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

/// The refusal [`Refusal::NotTogether`]. `proved`: it is certain that there is no place.
pub(super) fn not_together(proved: bool) -> Refusal {
    Refusal::NotTogether { proved }
}
