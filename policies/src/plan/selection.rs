//! Which members a gang takes when its queue has no room for the first of them.
//!
//! A gang with more members than it needs may begin with any of them. Their order decides, unless
//! the queue's limits refuse that choice: then the others are tried, as counts by class, those of
//! few GPUs first.

use crate::gangs::progress::Progress;
use crate::gangs::wait::{Refused, Wake};
use crate::gangs::{demand, request};
use crate::ids::ById;
use crate::ids::{GangId, PodId};
use crate::place::{place, selections};
use crate::plan::attempt::Attempt;
use crate::plan::attempt::Attempted;
use crate::plan::{bounds, refusal};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::vec::Vec;

/// Places `need` of the pods, whichever both the queue and the nodes have room for.
///
/// # Errors
/// What the nodes say where the queue agrees to a choice, else what the queue says.
pub(crate) fn try_selections(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    attempt: &mut Attempt<'_>,
    (pods, need): (Vec<PodId>, usize),
) -> Attempted {
    let (id, queue) = (attempt.gang, attempt.queue);
    let mut groups = demand::by_class(state, pods);
    groups.sort_by_key(|group| state.classes[group.class].gpus);
    let sizes: Vec<usize> = groups.iter().map(|group| group.pods.len()).collect();
    let mut full = state.queues.highest_model_limit(queue);
    let (mut over, mut refused) = (None, None);
    for taken in selections(&sizes, need).0 {
        let chosen = groups.iter().zip(taken);
        let chosen = chosen.flat_map(|(group, taken)| group.pods.iter().take(taken).copied());
        let chosen: Vec<PodId> = chosen.collect();
        *attempt.work += 20 * chosen.len() as u64;
        let demand = demand::demand_of_pods(state, chosen.iter());
        if let Err(excess) = bounds::within_bounds(state, id, queue, &demand) {
            over.get_or_insert(excess.into());
            full = bounds::highest(state, queue, full, excess.queue);
            continue;
        }
        let mut request = request::request(state, settings, id, queue, chosen, need);
        let mut txn = Txn::default();
        match place(state, &mut txn, &mut request, attempt.memo, attempt.work) {
            Ok(()) => return Ok(txn.commit()),
            Err(refusal) => refused.get_or_insert_with(|| {
                refusal::refused(state, progress, attempt, &mut request, refusal).0
            }),
        };
    }
    let classes = groups.into_iter().map(|group| group.class).collect();
    Err(match (refused, over, full) {
        (None, Some(over), Some(full)) => (over, Wake::Queue(full)),
        (refused, over, full) => {
            let refused = refused.or(over);
            let refused = refused.unwrap_or_else(Refused::without_choice);
            (refused, Wake::AnyRoom(classes, full))
        }
    })
}
