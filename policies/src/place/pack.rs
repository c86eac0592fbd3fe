//! Members of several shapes: the largest first, then the exact methods.

use super::domains::{areas, room, scopes};
use super::exact::{self, Answer, not_together};
use super::fill::fill;
use super::memo::Memo;
use super::tree::Tree;
use super::{Area, Group, Refusal, Request};
use crate::ids::ClassId;
use crate::place::Scope;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// How many areas of one scope are packed; the exact methods look at the others, too.
const AREAS_PACKED: usize = 8;

/// Places the gang's needed members, of several classes.
pub(super) fn several_classes(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    memo: &mut Memo,
    work: &mut u64,
) -> Result<(), Refusal> {
    let mut refusal = not_together(false);
    let tree = exact::single(request);
    let signature = tree.signature();
    let scopes = scopes(state, request.near, request.anchor);
    let widest = scopes.len().saturating_sub(1);
    for (position, scope) in scopes.into_iter().enumerate() {
        let (candidates, best) = candidates(state, request, scope, work);
        if candidates.is_empty() {
            refusal = counted(state, request, scope, best);
            continue;
        }
        for area in candidates.iter().take(AREAS_PACKED) {
            let question = (signature ^ u64::from(request.plain_only), *area);
            if memo.packs_first(question) && in_area(state, txn, request, *area, work) {
                return Ok(());
            }
        }
        if request.plain_only {
            // A wish alone is not worth a search.
            continue;
        }
        let wish = position < widest;
        match exactly(state, txn, &tree, &candidates, wish, memo, work) {
            Answer::Placed => return Ok(()),
            answer => refusal = not_together(answer == Answer::Impossible),
        }
    }
    Err(refusal)
}

/// Asks the exact methods about one area after the other. Of a wish a refusal leaves other places.
pub(super) fn exactly(
    state: &mut ClusterState,
    txn: &mut Txn,
    tree: &Tree,
    areas: &[Area],
    wish: bool,
    memo: &mut Memo,
    work: &mut u64,
) -> Answer {
    let signature = tree.signature();
    let mut answer = Answer::Impossible;
    for (position, area) in areas.iter().enumerate() {
        let patience = (!wish).then(|| memo.share(areas.len() - position));
        let question = (signature, *area);
        match exact::in_area(state, txn, tree, question, patience, memo, work) {
            Answer::Placed => return Answer::Placed,
            Answer::Impossible => {}
            Answer::Unknown => answer = Answer::Unknown,
        }
    }
    answer
}

/// What counting alone says against a request: nowhere in the scope is there room for enough of the
/// members, each class counted alone. `None`: it says nothing.
pub(crate) fn counted_of(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
) -> Option<Refusal> {
    let (candidates, best) = candidates(state, request, scope, &mut 0);
    candidates
        .is_empty()
        .then(|| counted(state, request, scope, best))
}

/// The areas of a scope in which each class alone leaves room for enough members, the tightest
/// first; and the area that has room for most.
fn candidates(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
    work: &mut u64,
) -> (Vec<Area>, Option<Area>) {
    // Placements that were tried and taken back have left tables behind that are not current.
    for group in &request.groups {
        state.refresh(group.class);
    }
    let mut candidates: Vec<(u64, Area)> = Vec::new();
    let mut best: Option<(u64, Area)> = None;
    for area in areas(state, scope) {
        let fits = bound_of(state, request, area);
        *work += request.groups.len() as u64;
        if fits >= request.need as u64 {
            candidates.push((area_size(state, request, area), area));
        }
        if best.is_none_or(|(most, _)| fits > most) {
            best = Some((fits, area));
        }
    }
    candidates.sort_by_key(|(size, _)| *size);
    let candidates = candidates.into_iter().map(|(_, area)| area).collect();
    (candidates, best.map(|(_, area)| area))
}

/// An upper bound of how many members fit in an area: each class counted alone. 0 where a class of
/// which some are needed has no room for them.
fn bound_of(state: &mut ClusterState, request: &Request, area: Area) -> u64 {
    let groups = request.groups.iter();
    groups
        .map(|g| room(state, request, g.class, area).min(g.pods.len() as u64))
        .sum()
}

fn area_size(state: &mut ClusterState, request: &Request, area: Area) -> u64 {
    request
        .groups
        .iter()
        .map(|g| room(state, request, g.class, area))
        .sum()
}

/// The refusal where counting alone proves it: named after the class that is shortest of room; one
/// that asks for what no node has comes first, for whatever else ends, it stays.
fn counted(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
    best: Option<Area>,
) -> Refusal {
    // Only where every member is needed does one class alone decide when to look again.
    let decides = request.groups.len() == 1 || request.need == request.members();
    let mut shortest: Option<((bool, u64), ClassId, u64, u64)> = None;
    for group in &request.groups {
        let fits = best.map_or(0, |area| room(state, request, group.class, area));
        let wanted = group.pods.len().min(request.need) as u64;
        let short = (
            !state.classes[group.class].is_offered,
            wanted.saturating_sub(fits),
        );
        if short.1 > 0 && shortest.is_none_or(|(most, ..)| short > most) {
            shortest = Some((short, group.class, fits, wanted));
        }
    }
    match shortest {
        Some((_, class, fits, need)) if decides => Refusal::TooFew {
            class,
            scope,
            best,
            fits,
            need,
        },
        _ => not_together(true),
    }
}

/// Packs the members into one area.
pub(super) fn in_area(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    area: Area,
    work: &mut u64,
) -> bool {
    for groups in choices(request) {
        let start = txn.checkpoint();
        let before = txn.placed().len();
        for group in &groups {
            state.refresh(group.class);
            fill(state, txn, request, group.class, &group.pods, area, work);
        }
        if txn.placed().len() - before == request.need {
            return true;
        }
        txn.rollback(state, start);
    }
    false
}

/// Which members to take where not all are needed: first those of the largest classes, then those
/// of the smallest.
fn choices(request: &Request) -> SmallVec<[Vec<Group>; 2]> {
    let take = |groups: &mut dyn Iterator<Item = &Group>| -> Vec<Group> {
        let mut left = request.need;
        let mut taken: Vec<Group> = Vec::new();
        for group in groups {
            let share = left.min(group.pods.len());
            left -= share;
            let pods = group.pods[..share].to_vec();
            taken.push(Group {
                class: group.class,
                pods,
            });
        }
        taken
    };
    let largest = take(&mut request.groups.iter());
    if request.need == request.members() {
        return SmallVec::from_iter([largest]);
    }
    let mut smallest = take(&mut request.groups.iter().rev());
    smallest.reverse();
    SmallVec::from_iter([largest, smallest])
}
