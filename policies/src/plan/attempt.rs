//! One attempt to place a gang: its minimum, or one more of its surplus.

use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Refused, Wake};
use crate::gangs::{demand, request};
use crate::ids::ById;
use crate::ids::{GangId, NodeId, PodId};
use crate::place::{Memo, place};
use crate::plan::{bounds, refusal, selection, sub_groups};
use crate::queues::QueueId;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::vec::Vec;

/// One attempt to place a gang.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) gang: GangId,
    /// The queue in which it stands.
    pub(crate) queue: QueueId,
    /// Its members as they are now.
    pub(crate) counts: Counts,
    pub(crate) now_ms: UnixMs,
    /// What the search of this gang remembers from slice to slice.
    pub(crate) memo: &'a mut Memo,
    /// The work done, in units of about ten nanoseconds.
    pub(crate) work: &'a mut u64,
}

/// The places of the members that were placed; else why none was, and what must change before the
/// gang is tried again.
pub(crate) type Attempted = Result<Vec<(PodId, NodeId)>, (Refused, Wake)>;

/// Places what the gang wants next, with members that its queue has room for, or nothing.
///
/// # Errors
/// Why there is no place.
pub(crate) fn try_place(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    attempt: &mut Attempt<'_>,
) -> Attempted {
    let (id, queue, now_ms) = (attempt.gang, attempt.queue, attempt.now_ms);
    if state.gangs[id].tree().is_some() {
        return sub_groups::try_sub_groups(state, settings, progress, attempt);
    }
    let pods = demand::waiting_pods(state, id, now_ms);
    let need = attempt.counts.needed.max(1) as usize;
    *attempt.work += 20 * pods.len() as u64;
    let first = demand::demand_of_pods(state, pods.iter().take(need));
    if let Err(over) = bounds::within_bounds(state, id, queue, &first) {
        if pods.len() == need {
            return Err((over.into(), Wake::Over(over.into())));
        }
        return selection::try_selections(state, settings, progress, attempt, (pods, need));
    }
    let mut request = request::request(state, settings, id, queue, pods, need);
    let mut txn = Txn::default();
    let start = txn.checkpoint();
    match place(state, &mut txn, &mut request, attempt.memo, attempt.work) {
        Ok(()) => {}
        Err(refusal) => {
            let request = &mut request;
            return Err(refusal::refused(state, progress, attempt, request, refusal));
        }
    }
    // Of one shape, all ask for the same.
    let checked = request.groups.len() == 1;
    if checked || bounds::keeps_to_queue(state, (id, queue), &request, &first, start, &mut txn) {
        return Ok(txn.commit());
    }
    // Others than those that were checked found a place, and are too many for the queue.
    let pods = demand::waiting_pods(state, id, now_ms);
    selection::try_selections(state, settings, progress, attempt, (pods, need))
}
