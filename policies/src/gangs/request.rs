//! Requests: what is to be placed for a gang, and where.

use crate::facts::{Placement, Uid, UnixMs};
use crate::gangs::counts::{Counts, by_leaf, has_place};
use crate::gangs::{demand, near, places};
use crate::ids::{ClassId, GangId, NodeId, PodId};
use crate::place::{Near, Request, RequestGroup};
use crate::queues::QueueId;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::gang::Gang;
use crate::state::pod::{Pod, Stage};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// A hash of what the waiting members of a gang ask for, of how many of them its minimum lacks, and
/// of the gang's priority and queue. An eviction plan is for this and nothing else: it ends when
/// the hash changes.
pub(crate) fn asks(state: &ClusterState, id: GangId) -> u64 {
    let gang = &state.gangs[id];
    let mut hasher = rustc_hash::FxHasher::default();
    (gang.spec.priority, gang.spec.preemptible, &gang.spec.queue).hash(&mut hasher);
    (&gang.spec.topology, &gang.spec.required_label).hash(&mut hasher);
    gang.spec.minimum.hash(&mut hasher);
    lacks_by_group(state, id).hash(&mut hasher);
    waiting_by_leaf(state, id).hash(&mut hasher);
    hasher.finish()
}

/// A hash of all by which the eviction plans for two gangs of one queue can differ, whichever their
/// pods are: what waits, what the minima lack, where members are already, and the gang's priority.
pub(crate) fn kind(state: &ClusterState, id: GangId) -> u64 {
    let gang = &state.gangs[id];
    let mut hasher = rustc_hash::FxHasher::default();
    (gang.spec.priority, gang.spec.preemptible).hash(&mut hasher);
    (&gang.spec.topology, &gang.spec.required_label).hash(&mut hasher);
    gang.spec.placement.hash(&mut hasher);
    gang.tree().hash(&mut hasher);
    lacks_by_group(state, id).hash(&mut hasher);
    places::anchor(state, id).hash(&mut hasher);
    let asked =
        waiting(state, gang).map(|pod| (pod.class, gang.leaf_of(pod), pod.never_preempts()));
    let mut asked: Vec<_> = asked.collect();
    asked.sort_unstable();
    asked.hash(&mut hasher);
    hasher.finish()
}

/// How many more members, or groups, the minimum of each group of a gang wants.
fn lacks_by_group(state: &ClusterState, id: GangId) -> Vec<u32> {
    let gang = &state.gangs[id];
    let placed = by_leaf(state, gang, &has_place);
    match gang.tree() {
        Some(tree) => tree.needs(&placed),
        None => placed
            .iter()
            .map(|placed| gang.spec.minimum.saturating_sub(*placed))
            .collect(),
    }
}

/// The members that wait and are not being deleted.
fn waiting<'a>(state: &'a ClusterState, gang: &'a Gang) -> impl Iterator<Item = &'a Pod> {
    let members = gang.members.iter().map(|pod| &state.pods[*pod]);
    members.filter(|pod| pod.stage == Stage::Waiting && !pod.deleting)
}

/// The members that wait and are not being deleted, each with its class and its leaf, in a fixed
/// order.
fn waiting_by_leaf(state: &ClusterState, id: GangId) -> Vec<(Uid, ClassId, Option<usize>)> {
    let gang = &state.gangs[id];
    let waiting = waiting(state, gang);
    let mut waiting: Vec<_> = waiting
        .map(|pod| (pod.uid, pod.class, gang.leaf_of(pod)))
        .collect();
    waiting.sort_unstable();
    waiting
}

/// A hash of all that an attempt depends on: while it is equal, another attempt gains nothing.
pub(crate) fn fingerprint(state: &ClusterState, id: GangId, counts: &Counts) -> u64 {
    let gang = &state.gangs[id];
    let mut hasher = rustc_hash::FxHasher::default();
    state.rules_version.hash(&mut hasher);
    let queue = state.queues.find(&gang.spec.queue);
    queue
        .map(|queue| state.queues.rules(queue))
        .hash(&mut hasher);
    (gang.spec.priority, gang.spec.preemptible, &gang.spec.queue).hash(&mut hasher);
    // A gang that ends earlier may start beside promises.
    gang.spec.expected_runtime_ms.hash(&mut hasher);
    (
        &gang.spec.topology,
        &gang.spec.required_label,
        gang.spec.placement,
    )
        .hash(&mut hasher);
    places::anchor(state, id).hash(&mut hasher);
    if let Some(tree) = gang.tree() {
        tree.hash(&mut hasher);
        by_leaf(state, gang, &has_place).hash(&mut hasher);
    }
    (
        counts.needed,
        counts.bound,
        counts.assumed,
        counts.placeable,
    )
        .hash(&mut hasher);
    let waiting = waiting_by_leaf(state, id);
    for (_, class, _) in &waiting {
        state.classes[*class].confined.counted.hash(&mut hasher);
    }
    waiting.hash(&mut hasher);
    hasher.finish()
}

/// The request for `need` of these pods of a gang without sub-groups.
pub(crate) fn request(
    state: &ClusterState,
    settings: &Settings,
    id: GangId,
    queue: QueueId,
    pods: Vec<PodId>,
    need: usize,
) -> Request {
    // The topology was checked when the gang was assessed. If the topology has gone since, the gang
    // is touched, and is assessed before it is tried again.
    let near = near::topology_of_gang(state, id);
    let leaf = RequestGroup {
        need,
        pods: demand::by_size(state, pods),
        ..group(state, near, places::occupied(state, id))
    };
    let placement = placement(state, settings, id, queue);
    Request::new(Vec::from([leaf]), model_limits(state, queue), placement)
}

/// A group of a request, before its members are chosen: near the members that occupy these nodes.
pub(crate) fn group(
    state: &ClusterState,
    near: Option<Near>,
    occupied: Vec<NodeId>,
) -> RequestGroup {
    RequestGroup {
        name: "".into(),
        parent: 0,
        children: Vec::new(),
        need: 0,
        pods: Vec::new(),
        near,
        // tests plant bugs here: returning-member
        anchor: near.and_then(|near| places::anchor_among(state, &occupied, Some(near))),
        occupied,
    }
}

/// The request for all waiting members of a gang without sub-groups, of which as many are needed as
/// the gang lacks.
pub(crate) fn request_of_waiting(
    state: &ClusterState,
    settings: &Settings,
    id: GangId,
    queue: QueueId,
    counts: &Counts,
    now_ms: UnixMs,
) -> Request {
    let pods = demand::waiting_pods(state, id, now_ms);
    request(
        state,
        settings,
        id,
        queue,
        pods,
        counts.needed.max(1) as usize,
    )
}

/// The placements for members with a GPU and for all other members: the gang's own, else its
/// queue's, else the configuration's.
pub(crate) fn placement(
    state: &ClusterState,
    settings: &Settings,
    id: GangId,
    queue: QueueId,
) -> (Placement, Placement) {
    let own = state.gangs[id].spec.placement;
    let inherited = state.queues.placement(queue);
    (
        own.gpu.or(inherited.gpu).unwrap_or(settings.gpu_placement),
        own.cpu.or(inherited.cpu).unwrap_or(settings.cpu_placement),
    )
}

/// The queue, if limits on GPU models hold in it.
pub(crate) fn model_limits(state: &ClusterState, queue: QueueId) -> Option<QueueId> {
    state.queues.has_model_limits(queue).then_some(queue)
}
