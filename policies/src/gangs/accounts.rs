//! What the members of a gang count for in its queue: running members what they hold, waiting
//! members what they ask for.
//!
//! A member that cannot start as it stands asks for nothing, so that no share moves for its sake:
//! it has a gate, say, or asks for what no node has, or too few other members of its gang or
//! sub-group exist. When enough of them exist, all ask.

use crate::gangs::counts::{Counts, by_leaf, has_place};
use crate::gangs::wait::{Verdict, Wait};
use crate::ids::GangId;
use crate::state::ClusterState;
use crate::state::pod::Stage;
use smallvec::{SmallVec, smallvec};

/// Enters the members in the account of their gang's queue, if it exists; bound members in that of
/// the queue they were bound for.
pub(crate) fn settle_accounts(state: &mut ClusterState, id: GangId, wait: &Wait, counts: &Counts) {
    let asks_nothing = |verdict: &Verdict| verdict.reason.asks_for_nothing();
    let idle = matches!(wait, Wait::Barred(verdict) if asks_nothing(verdict));
    let complete = if idle || counts.waiting == 0 {
        SmallVec::new()
    } else {
        can_be_complete(state, id, counts)
    };
    let gang = &state.gangs[id];
    let preemptible = gang.spec.preemptible;
    let queue = state.queues.find(&gang.spec.queue);
    for index in 0..gang.members.len() {
        let gang = &state.gangs[id];
        let pod = gang.members[index];
        let record = &state.pods[pod];
        let bound = record
            .own
            .as_ref()
            .and_then(|own| own.bound_queue.as_deref());
        let queue = match bound.filter(|_| record.stage.is_bound()) {
            Some(name) => state.queues.find(name),
            None => queue,
        };
        let leaf = gang.leaf_of(record).unwrap_or(0);
        let asks = || {
            complete.get(leaf).is_some_and(|complete| *complete) && state.could_start(gang, record)
        };
        let queue = queue.filter(|_| record.stage != Stage::Waiting || asks());
        state.settle_account(pod, queue.map(|queue| (queue, preemptible)));
    }
}

/// Whether enough members exist that run or could start: by group of the gang's tree, for the group
/// and all groups above it; without a tree, for the whole gang.
fn can_be_complete(state: &ClusterState, id: GangId, counts: &Counts) -> SmallVec<[bool; 4]> {
    let gang = &state.gangs[id];
    let could_start = |pod: &_| state.could_start(gang, pod);
    let Some(tree) = gang.tree() else {
        let members = gang.members.iter().map(|pod| &state.pods[*pod]);
        let able = members.filter(|pod| could_start(pod)).count();
        return smallvec![able >= counts.needed as usize];
    };
    let able = |pod: &_| has_place(pod) || could_start(pod);
    let lacks = tree.needs(&by_leaf(state, gang, &able));
    let mut complete = smallvec![lacks[0] == 0; tree.len()];
    for (index, group) in tree.groups().skip(1) {
        complete[index] = complete[group.parent] && lacks[index] == 0;
    }
    complete
}
