//! Members of several shapes: the largest first, then the exact methods.

use super::choices::two_choices;
use super::domains::{areas, fits_in, room, scopes};
use super::exact::{Answer, exactly, not_together};
use super::fill::fill;
use super::memo::Memo;
use super::request::Request;
use super::{Area, Refusal, widest_scope};
use crate::ids::ClassId;
use crate::place::Scope;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::vec::Vec;

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
    let signature = request.signature();
    let root = request.root();
    let scopes = scopes(state, root.near, root.anchor);
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
        match exactly(state, txn, request, &candidates, wish, memo, work) {
            Answer::Placed => return Ok(()),
            answer => refusal = not_together(answer == Answer::Impossible),
        }
    }
    Err(refusal)
}

/// Whether members of several classes are refused without a search: nowhere in the widest scope is
/// there room for enough of them, each class counted alone.
pub(crate) fn counting_refuses(state: &mut ClusterState, request: &Request) -> bool {
    let flat = request.flat(request.pods_below(0), request.fewest(0));
    let widest = widest_scope(state, flat.root().near, flat.root().anchor);
    let (candidates, _) = candidates(state, &flat, widest, &mut 0);
    candidates.is_empty()
}

/// The areas of a scope in which each class alone leaves room for enough members, the tightest
/// first; and the area that has room for most.
fn candidates(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
    work: &mut u64,
) -> (Vec<Area>, Option<Area>) {
    let mut candidates: Vec<(u64, Area)> = Vec::new();
    let mut best: Option<(u64, Area)> = None;
    for area in areas(state, scope) {
        let fits = fits_in(state, request, area);
        *work += request.root().pods.len() as u64;
        if fits >= request.root().need as u64 {
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

/// How many pods of all classes an area has room for, each class counted alone.
pub(super) fn area_size(state: &mut ClusterState, request: &Request, area: Area) -> u64 {
    let groups = request.root().pods.iter();
    groups.map(|g| room(state, request, g.class, area)).sum()
}

/// The refusal where counting alone proves it: named after the class that is shortest of room; one
/// that asks for what no node has comes first, for whatever else ends, it stays.
fn counted(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
    best: Option<Area>,
) -> Refusal {
    let mut shortest: Option<((bool, u64), ClassId, u64, u64)> = None;
    for group in &request.root().pods {
        let fits = best.map_or(0, |area| room(state, request, group.class, area));
        let wanted = group.pods.len() as u64;
        let short = (
            !state.classes[group.class].is_offered,
            wanted.saturating_sub(fits),
        );
        if short.1 > 0 && shortest.is_none_or(|(most, ..)| short > most) {
            shortest = Some((short, group.class, fits, wanted));
        }
    }
    match shortest {
        // Only where every member is needed does one class alone decide when to look again.
        Some((_, class, fits, need)) if request.root().need == request.members() => {
            Refusal::TooFew {
                class,
                scope,
                best,
                fits,
                need,
            }
        }
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
    for groups in two_choices(request) {
        let start = txn.checkpoint();
        let before = txn.placed().len();
        for group in &groups {
            state.refresh(group.class);
            fill(state, txn, request, group.class, &group.pods, area, work);
        }
        if txn.placed().len() - before == request.root().need {
            return true;
        }
        txn.rollback(state, start);
    }
    false
}
