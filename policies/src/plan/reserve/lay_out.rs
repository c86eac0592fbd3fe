//! Where gangs with promises will be, all laid out in the order of their starts.
//!
//! A promise is of a time, not of nodes, so the nodes of promised gangs are chosen anew each time.
//! Each gang takes the nodes that are best for itself, which may leave the last gangs without a
//! place. Then all gangs are left on the nodes where they were to be, as far as they fit there: as
//! long as no room is lost, the promises stay possible.

use super::future::{Basis, Future, Nodes, Places, Start};
use crate::facts::UnixMs;
use crate::ids::PodId;
use crate::reason::Reason;
use crate::state::ClusterState;
use alloc::vec::Vec;

/// Where gangs will be that start at these times, in the order given; `None`: not all have a place.
/// Of gangs that start at one time the first one given comes first, but for those that take no
/// time, see [`Start::in_order`]. `present`: pods that were placed now and leave at a time.
pub(super) fn lay_out(
    state: &mut ClusterState,
    basis: Basis<'_>,
    starts: &[Start],
    present: Option<(UnixMs, Vec<PodId>)>,
    work: &mut u64,
) -> Option<Vec<Places>> {
    match lay_out_on(Nodes::Anew, state, basis, starts, present.clone(), work) {
        Ok(places) => Some(places),
        Err(Failed { is_certain: true }) => None,
        Err(_) => lay_out_on(Nodes::Kept, state, basis, starts, present, work).ok(),
    }
}

/// Not all gangs have a place.
struct Failed {
    /// The first gang has none, which is proved: nodes that were chosen for others have no part in
    /// it.
    is_certain: bool,
}

/// Where gangs will be that start at these times, on nodes that are chosen anew or kept.
///
/// # Errors
/// Not all have a place.
fn lay_out_on(
    nodes: Nodes,
    state: &mut ClusterState,
    basis: Basis<'_>,
    starts: &[Start],
    present: Option<(UnixMs, Vec<PodId>)>,
    work: &mut u64,
) -> Result<Vec<Places>, Failed> {
    let mut in_order: Vec<&Start> = starts.iter().collect();
    in_order.sort_by_key(|start| start.in_order());
    let mut future = Future::begin(state, basis, nodes, starts.iter());
    if let Some((end_ms, pods)) = present {
        future.let_leave(end_ms, &pods);
    }
    let mut failed = None;
    for (before, start) in in_order.into_iter().enumerate() {
        future.advance(start.at_ms);
        if let Err(reason) = future.place(start) {
            let is_certain = before == 0 && reason == Reason::DoesNotFit;
            failed = Some(Failed { is_certain });
            break;
        }
    }
    let laid_out = match failed {
        None => Ok(future.places_of(starts.iter())),
        Some(failed) => Err(failed),
    };
    *work += future.finish();
    laid_out
}
