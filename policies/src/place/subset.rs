//! The largest subset of a gang's members that can be placed together: for explanations.
//!
//! A greedy packer begins. Then the exact methods are asked, within a bound of steps, whether fewer
//! members can be left out. For that the problem gets one more node, which does not exist: members
//! placed on it are left out.

use super::Area;
use super::domains::{areas, nodes_of, scopes};
use super::greedy::Greedy;
use super::method::Method;
use super::problem::{Problem, SliceResult, Step, nowhere};
use super::request::Request;
use crate::facts::Amount;
use crate::ids::{ClassId, NodeId, PodId};
use crate::state::ClusterState;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// How many areas are tried, those first that may hold the most members.
const AREAS_MAX: usize = 32;
/// How many steps of about 50 ns the exact methods may take in all.
const STEPS: u64 = 100_000;
/// How many steps of about 50 ns [`places`] may take, which asks whether all members have a place
/// after other pods have ended.
const TRIAL_STEPS: u64 = 20_000;

/// Members that can be placed together, and those that are left out.
#[derive(Debug)]
pub(crate) struct Subset {
    pub(crate) area: Area,
    pub(crate) placed: Vec<(PodId, NodeId)>,
    /// The needed members that have no place.
    pub(crate) left: Vec<PodId>,
    /// It is proved that no fewer members can be left out.
    pub(crate) proved: bool,
}

impl Subset {
    fn gpus_left(&self, state: &ClusterState) -> Amount {
        let gpus = self
            .left
            .iter()
            .map(|pod| &state.classes[state.pods[*pod].class]);
        gpus.map(|class| class.gpus).fold(0, Amount::saturating_add)
    }
}

/// The largest subset that can be placed of a gang that does not fit as a whole. `refused`: it is
/// proved that the gang does not fit. `None`: there is no area for it, or the numbers do not say
/// everything.
pub(crate) fn largest_subset(
    state: &mut ClusterState,
    tree: &Request,
    refused: bool,
) -> Option<Subset> {
    let (candidates, skipped) = candidates(state, tree);
    let problems: Vec<(Area, Problem)> = candidates
        .into_iter()
        .map(|area| (area, Problem::of(state, tree, area)))
        .collect();
    if problems.iter().any(|(_, problem)| !problem.exact) {
        return None;
    }
    let greedy = problems.iter().map(|(area, problem)| Subset {
        area: *area,
        proved: false,
        ..packed(problem)
    });
    let mut best = greedy.min_by_key(|subset| (subset.left.len(), subset.gpus_left(state)))?;
    let mut steps = STEPS;
    while let Some(fewer) = best.left.len().checked_sub(1) {
        match leaving_out(&problems, fewer, &mut steps) {
            Some(Some(found)) => best = found,
            Some(None) => {
                // The areas that were not tried hold no more than `skipped` members.
                best.proved = tree.fewest(0).saturating_sub(skipped) > fewer;
                break;
            }
            None => break,
        }
    }
    // If the whole gang is refused for certain, no fewer than one can be left out.
    best.proved |= refused && best.left.len() == 1;
    Some(best)
}

/// Places for all needed members but `pods` of them, in one of the areas. `Some(None)`: it is
/// proved that there are none; `None`: the steps are used up.
fn leaving_out(
    problems: &[(Area, Problem)],
    pods: usize,
    steps: &mut u64,
) -> Option<Option<Subset>> {
    let mut sure = true;
    for (area, problem) in problems {
        // Copying is work, too.
        *steps = steps.saturating_sub((problem.free.len() / 4) as u64);
        match Method::new(problem.leaving_out(pods)).run(steps) {
            SliceResult::Found(found) => {
                let (left, placed) = found.into_iter().partition(|(_, node)| *node == nowhere());
                let left: Vec<(PodId, NodeId)> = left;
                return Some(Some(Subset {
                    area: *area,
                    placed,
                    left: left.into_iter().map(|(pod, _)| pod).collect(),
                    proved: false,
                }));
            }
            SliceResult::Impossible => {}
            SliceResult::Unfinished => sure = false,
        }
    }
    sure.then_some(None)
}

/// What a greedy packer places. The area is set by the caller.
fn packed(problem: &Problem) -> Subset {
    let greedy = Greedy::of(problem);
    let pod = |step: usize| match problem.steps[step] {
        Step::Member { pod, .. } => Some(pod),
        Step::Enter { .. } => None,
    };
    let placed = greedy.placed.iter();
    Subset {
        area: Area::Cluster,
        placed: placed
            .filter_map(|(step, node)| Some((pod(*step)?, problem.nodes[*node])))
            .collect(),
        left: greedy.left.iter().filter_map(|step| pod(*step)).collect(),
        proved: false,
    }
}

/// Places for all needed members in an area. `None`: none were found within [`TRIAL_STEPS`], or the
/// numbers do not say everything.
pub(crate) fn places(
    state: &mut ClusterState,
    tree: &Request,
    area: Area,
) -> Option<Vec<(PodId, NodeId)>> {
    let problem = Problem::of(state, tree, area);
    if !problem.exact {
        return None;
    }
    let packed = packed(&problem);
    if packed.left.is_empty() {
        return Some(packed.placed);
    }
    let mut steps = TRIAL_STEPS;
    match Method::new(problem).run(&mut steps) {
        SliceResult::Found(placed) => Some(placed),
        SliceResult::Impossible | SliceResult::Unfinished => None,
    }
}

/// The areas to try, those first that may hold the most members, and how many members any other
/// area may hold at most.
fn candidates(state: &mut ClusterState, tree: &Request) -> (Vec<Area>, usize) {
    let root = &tree.groups[0];
    let Some(widest) = scopes(state, root.near, root.anchor).pop() else {
        return (Vec::new(), 0);
    };
    let classes: Vec<(ClassId, u64)> = tree
        .pods_below(0)
        .iter()
        .map(|group| (group.class, group.pods.len() as u64))
        .collect();
    tree.refresh(state);
    let holds = |area: Area| -> u64 {
        let nodes = nodes_of(state, tree, area);
        let of_class = classes.iter().map(|(class, pods)| {
            let counts = nodes
                .iter()
                .map(|node| u64::from(state.fits_on(*class, *node)));
            counts.fold(0, u64::saturating_add).min(*pods)
        });
        of_class.sum()
    };
    let mut all: Vec<(u64, Area)> = areas(state, widest)
        .into_iter()
        .map(|area| (holds(area), area))
        .collect();
    all.sort_by_key(|(holds, _)| Reverse(*holds));
    let skipped = all.get(AREAS_MAX).map_or(0, |(holds, _)| *holds);
    all.truncate(AREAS_MAX);
    let areas = all.into_iter().map(|(_, area)| area).collect();
    (areas, usize::try_from(skipped).unwrap_or(usize::MAX))
}
