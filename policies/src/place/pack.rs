//! Members of several shapes: packed by size first, the largest first; if that fails, the exact
//! methods are asked.

use super::choices::two_choices;
use super::domains::{areas, room, scopes};
use super::exact::{Answer, exactly, not_together};
use super::fill::Load;
use super::memo::Memo;
use super::request::Request;
use super::{Area, Refusal};
use crate::place::Scope;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::{vec, vec::Vec};

/// How many areas of one scope are tried by packing. The exact methods try all areas.
const AREAS_PACKED: usize = 8;

/// Places the needed members of a gang whose members are of several classes.
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
        let (candidates, room_by_group) = candidates(state, request, scope, work);
        if candidates.is_empty() {
            refusal = counted(state, request, scope, &room_by_group);
            continue;
        }
        for area in candidates.iter().take(AREAS_PACKED) {
            let question = (signature ^ u64::from(request.plain_only), *area);
            if memo.packs_first(question) && in_area(state, txn, request, *area, work) {
                return Ok(());
            }
        }
        if request.plain_only {
            // To avoid nodes with GPUs is only a wish and not worth a search.
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

/// What counting alone says against a plain gang: nowhere in the scope is there room for enough of
/// the members, each class counted by itself. `None`: it says nothing.
pub(super) fn counting_refusal(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
) -> Option<Refusal> {
    let (candidates, room_by_group) = candidates(state, request, scope, &mut 0);
    let refused = candidates.is_empty();
    refused.then(|| counted(state, request, scope, &room_by_group))
}

/// How many pods of a class fit in the area that has most room for the class, and that area.
type MostRoom = (u64, Option<Area>);

/// The areas of a scope with room for enough members, each class counted alone, the tightest area
/// first; and the most room that an area has for each class of the request.
fn candidates(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
    work: &mut u64,
) -> (Vec<Area>, Vec<MostRoom>) {
    let groups = &request.root().pods;
    let mut candidates: Vec<(u64, Area)> = Vec::new();
    let mut room_by_group: Vec<MostRoom> = vec![(0, None); groups.len()];
    for area in areas(state, scope) {
        let (mut fits, mut size) = (0, 0);
        for (group, most) in groups.iter().zip(&mut room_by_group) {
            let room = room(state, request, group.class, area);
            fits += room.min(group.pods.len() as u64);
            size += room;
            // Of areas with equal room the first one is named.
            if most.1.is_none() || room > most.0 {
                *most = (room, Some(area));
            }
        }
        *work += groups.len() as u64;
        if fits >= request.root().need as u64 {
            candidates.push((size, area));
        }
    }
    candidates.sort_by_key(|(size, _)| *size);
    let candidates = candidates.into_iter().map(|(_, area)| area).collect();
    (candidates, room_by_group)
}

/// The room of an area: how many pods of each class fit there alone, summed over the classes.
pub(super) fn area_size(state: &mut ClusterState, request: &Request, area: Area) -> u64 {
    let groups = request.root().pods.iter();
    groups.map(|g| room(state, request, g.class, area)).sum()
}

/// The refusal that counting alone proves. It names the class with the most pods that lack room in
/// every area; but first a class that asks for what no node has, because it is refused whichever
/// pods end. If each class has room in some area, none is named: room for any of them may help.
fn counted(
    state: &ClusterState,
    request: &Request,
    scope: Scope,
    room_by_group: &[MostRoom],
) -> Refusal {
    // Only if every member is needed does room for one class alone decide when to try again.
    let root = request.root();
    let decides = root.pods.len() == 1 || root.need == request.members();
    let mut shortest: Option<((bool, u64), Refusal)> = None;
    for (group, (fits, best)) in root.pods.iter().zip(room_by_group) {
        let (class, fits, best) = (group.class, *fits, *best);
        let need = group.pods.len().min(root.need) as u64;
        let short = (!state.classes[class].is_offered, need.saturating_sub(fits));
        if short.1 > 0 && shortest.as_ref().is_none_or(|(most, _)| short > *most) {
            let too_few = Refusal::TooFew {
                class,
                scope,
                best,
                fits,
                need,
            };
            shortest = Some((short, too_few));
        }
    }
    let shortest = shortest.filter(|_| decides);
    shortest.map_or(not_together(true), |(_, too_few)| too_few)
}

/// Packs the needed members into one area. If that fails, places nothing and returns false.
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
            let load = Load {
                request,
                class: group.class,
                pods: &group.pods,
                area,
            };
            load.fill(state, txn, work);
        }
        if txn.placed().len() - before == request.root().need {
            return true;
        }
        txn.rollback(state, start);
    }
    false
}
