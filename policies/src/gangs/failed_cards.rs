//! Gangs that run on nodes of which the GPUs have failed.
//!
//! Such a gang is told, and stays, unless a rule of the settings evicts: then it is evicted as a
//! whole once the rule's delay has passed, for a job that has lost a card mostly fails or hangs as
//! a whole. It stays all the same where its queue would not take it back, and where disruption
//! budgets do not allow that all of its members leave.

use crate::facts::UnixMs;
use crate::ids::{GangId, NodeId, PodId};
use crate::state::ClusterState;
use crate::state::ailments::Ailment;
use crate::state::pod::Pod;
use alloc::collections::BTreeMap;

/// Whether a pod holds GPUs on a node that is ailing, also while it is leaving.
pub(crate) fn holds_failed(state: &ClusterState, pod: &Pod) -> bool {
    let node = pod.stage.node().filter(|_| pod.stage.is_bound());
    node.is_some_and(|node| {
        !state.ailments.of(node).is_empty() && state.classes[pod.class].accelerated
    })
}

/// The ailing nodes on which bound members of a gang hold GPUs, and how many members on each.
pub(crate) fn failed_nodes(state: &ClusterState, id: GangId) -> BTreeMap<NodeId, usize> {
    let mut nodes = BTreeMap::new();
    if state.ailments.are_none() {
        return nodes;
    }
    let members = state.gangs[id].members.iter().map(|pod| &state.pods[*pod]);
    let failed = members.filter(|pod| !pod.deleting && holds_failed(state, pod));
    for node in failed.filter_map(|pod| pod.stage.node()) {
        *nodes.entry(node).or_default() += 1;
    }
    nodes
}

/// When the gang is to be evicted, by the first rule that says so; `None`: it stays.
pub(crate) fn evicts_ms(state: &ClusterState, id: GangId) -> Option<UnixMs> {
    evicts_for(state, id, |_| true)
}

/// When the gang is to be evicted for one of some ailments.
fn evicts_for(
    state: &ClusterState,
    id: GangId,
    counts: impl Fn(&Ailment) -> bool,
) -> Option<UnixMs> {
    let nodes = failed_nodes(state, id);
    let ailments = nodes.keys().flat_map(|node| state.ailments.of(*node));
    let counting = ailments.filter(|ailment| counts(ailment));
    counting.filter_map(|ailment| ailment.evicts_ms).min()
}

/// When the gang is to be evicted for what its nodes show now.
pub(crate) fn evicts_as_shown_ms(state: &ClusterState, id: GangId) -> Option<UnixMs> {
    evicts_for(state, id, |ailment| ailment.gone_ms.is_none())
}

/// Whether an eviction that has begun goes on: a member, leaving or not, is still on a node for
/// which a rule evicts.
pub(crate) fn eviction_goes_on(state: &ClusterState, id: GangId, now_ms: UnixMs) -> bool {
    let members = state.gangs[id].members.iter().map(|pod| &state.pods[*pod]);
    let failed = members.filter(|pod| holds_failed(state, pod));
    let nodes = failed.filter_map(|pod| pod.stage.node());
    let ailments = nodes.flat_map(|node| state.ailments.of(node));
    let mut due = ailments.filter_map(|ailment| ailment.evicts_ms);
    due.any(|due_ms| due_ms <= now_ms)
}

/// The disruption budget that keeps the members of a gang from leaving all together, by its name;
/// `None`: they may leave.
pub(crate) fn kept_by(state: &ClusterState, id: GangId) -> Option<&str> {
    let leaves = |pod: &&PodId| {
        let pod = &state.pods[**pod];
        pod.stage.is_bound() && !pod.deleting && pod.running
    };
    let mut left = BTreeMap::new();
    for pod in state.gangs[id].members.iter().filter(leaves) {
        // The API server evicts no pod that two budgets select.
        let budgets = || state.budgets_of(*pod);
        let several = budgets().nth(1).is_some();
        for budget in budgets() {
            let left = left.entry(budget.uid).or_insert(budget.allowed);
            if several || *left == 0 {
                return Some(&budget.name);
            }
            *left -= 1;
        }
    }
    None
}

/// Whether the queue of a gang would take it back as a new one, so that it starts again elsewhere.
fn may_return(state: &ClusterState, id: GangId) -> bool {
    let gang = &state.gangs[id];
    let labels = state.namespaces.get(&gang.namespace);
    let admitted = state
        .queues
        .admit(&gang.spec.queue, &gang.namespace, labels);
    admitted.is_ok()
}

/// Whether all bound members of a gang are to be evicted now.
pub(crate) fn is_due(state: &ClusterState, id: GangId, now_ms: UnixMs) -> bool {
    evicts_as_shown_ms(state, id).is_some_and(|due_ms| due_ms <= now_ms)
        && kept_by(state, id).is_none()
        && may_return(state, id)
}
