//! The limits and quotas of queues that a placement must keep.

use crate::facts::{Amount, UnixMs};
use crate::gangs::progress::Progress;
use crate::gangs::{demand, wanted};
use crate::ids::ById;
use crate::ids::GangId;
use crate::place::Request;
use crate::queues::{Demand, Excess, GovernedId, QueueId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::{Checkpoint, Txn};

/// The bound that the gang would exceed now.
pub(crate) fn excess(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    id: GangId,
    queue: QueueId,
    now_ms: UnixMs,
) -> Option<Excess> {
    let demand = wanted::demand_of(state, settings, progress, id, queue, now_ms);
    within_bounds(state, id, queue, &demand).err()
}

/// Whether the queue has room for the members that were placed, which may be other members than the
/// checked ones. If not, the placement is undone.
pub(crate) fn keeps_to_queue(
    state: &mut ClusterState,
    (id, queue): (GangId, QueueId),
    request: &Request,
    checked: &Demand,
    start: Checkpoint,
    txn: &mut Txn,
) -> bool {
    let placed = txn.placed_since(start).to_vec();
    let demand = demand::demand_of_pods(state, placed.iter().map(|(pod, _)| pod));
    if demand == *checked {
        return true;
    }
    // The members that are placed are charged already: the queue is checked without them.
    txn.rollback(state, start);
    if within_bounds(state, id, queue, &demand).is_err() {
        return false;
    }
    for (pod, node) in placed {
        let placement = request.placement_of(state, state.pods[pod].class);
        txn.place(state, pod, node, placement);
    }
    true
}

/// Checks that so much more demand of the gang exceeds no bound of the queue, nor of a queue above
/// it.
///
/// # Errors
/// The bound that would be exceeded.
pub(crate) fn within_bounds(
    state: &ClusterState,
    id: GangId,
    queue: QueueId,
    demand: &Demand,
) -> Result<(), Excess> {
    state.queues.room(queue, &under_limits(state, id, demand))?;
    if state.gangs[id].spec.preemptible {
        return Ok(());
    }
    state.queues.quota_room(queue, demand)
}

/// The part of a demand for which limits are checked before nodes are looked at. A model that
/// the gang demands only because there are no other nodes for it is not part of it: limits on
/// that model filter nodes, and new nodes help.
fn under_limits(state: &ClusterState, id: GangId, demand: &Demand) -> Demand {
    let queues = &state.queues;
    let names = |key: GovernedId| {
        let members = state.gangs[id].members.iter();
        let mut classes = members.map(|pod| &state.classes[state.pods[*pod].class]);
        classes.any(|class| class.only_model().is_some() && class.confined.model == Some(key))
    };
    let counts = |(key, _): &&(GovernedId, Amount)| !queues.is_model(*key) || names(*key);
    demand.iter().filter(counts).copied().collect()
}

/// Which of two queues on the path is nearer to the root: what is released in the lower queue is
/// released in the higher one, too.
pub(crate) fn highest(
    state: &ClusterState,
    leaf: QueueId,
    known: Option<QueueId>,
    other: QueueId,
) -> Option<QueueId> {
    let path = state.queues.path(leaf);
    let mut both = path.filter(|queue| Some(*queue) == known || *queue == other);
    let first = both.next();
    both.last().or(first)
}
