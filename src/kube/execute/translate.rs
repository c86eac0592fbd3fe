//! Commands as requests, and answers as outcomes. Nothing here sends anything, so that the very
//! same requests can be compared with the simulator's model of the API server.

use super::exchange::{Answer, ExchangeError, Request};
use super::lease::LeaseName;
use super::{claims, classify, lease, nodes, pods, telling};
use gpu_batch_policies::command::{Action, CommandId, LockCards, StatusPatch, UnlockCards};
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::{GroupSource, UnixMs};

/// What requests say beside their action.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// The lease that elects the leader.
    pub lease: &'a LeaseName,
    /// The `reportingInstance` of Kubernetes events.
    pub instance: &'a str,
    /// The `schedulerName` that statuses of our own kinds say.
    pub scheduler: &'a str,
    /// The command; it makes the names of events unique.
    pub id: CommandId,
    /// When the holder of the lease took it, in Unix milliseconds; 0: not known.
    pub acquired_ms: UnixMs,
    /// The time, in Unix milliseconds.
    pub now_ms: UnixMs,
}

/// The one request that an action is.
#[must_use]
pub fn request(action: &Action, stamp: &Stamp<'_>) -> Request {
    match action {
        Action::Bind(bind) => pods::bind(bind),
        Action::Evict(evict) => pods::evict(&evict.pod),
        Action::Lift(lift) => pods::lift(lift, stamp.now_ms),
        Action::SelectNode(select) => claims::select_node(select),
        Action::KeepVolume(keep) => claims::keep_volume(keep),
        Action::LockCards(lock) => nodes::lock_cards(lock),
        Action::UnlockCards(unlock) => nodes::unlock_cards(unlock),
        Action::Observe(pod) => pods::observe(pod),
        Action::PatchStatus(patch) => telling::patch(patch, stamp.scheduler),
        Action::Lease(request) => {
            lease::request(stamp.lease, request, stamp.acquired_ms, stamp.now_ms)
        }
        Action::Publish(announcement) => {
            telling::publish(announcement, stamp.id, stamp.instance, stamp.now_ms)
        }
    }
}

/// What the answer to an action's request means to the engine.
#[must_use]
pub fn outcome(action: &Action, answer: Result<Answer, ExchangeError>) -> Outcome {
    match action {
        Action::Observe(pod) => pods::observed(pod, answer),
        Action::Lease(request) => lease::outcome(request, answer),
        Action::LockCards(_) | Action::UnlockCards(_) => nodes::outcome(&answer),
        Action::Bind(_)
        | Action::Evict(_)
        | Action::Lift(_)
        | Action::SelectNode(_)
        | Action::KeepVolume(_)
        | Action::PatchStatus(_)
        | Action::Publish(_) => classify::classify(&answer),
    }
}

/// The action's name in metrics and logs.
pub(super) fn name_of(action: &Action) -> &'static str {
    match action {
        Action::Bind(_) => "bind",
        Action::Evict(_) => "evict",
        Action::Lift(_) => "lift",
        Action::SelectNode(_) => "select_node",
        Action::KeepVolume(_) => "keep_volume",
        Action::LockCards(_) => "lock_cards",
        Action::UnlockCards(_) => "unlock_cards",
        Action::Observe(_) => "observe",
        Action::PatchStatus(StatusPatch::PodGroup { source, .. }) => match source {
            GroupSource::GpuBatch => "patch_pod_group_status",
            GroupSource::Native => "patch_native_pod_group_status",
        },
        Action::PatchStatus(StatusPatch::Queue { .. }) => "patch_queue_status",
        Action::PatchStatus(StatusPatch::Unscheduled { .. }) => "patch_pod_status",
        Action::PatchStatus(StatusPatch::Nominated { .. }) => "nominate",
        Action::Lease(_) => "lease",
        Action::Publish(_) => "publish",
    }
}

/// The action's name and the object that it is about.
pub(super) fn name_with_object(action: &Action) -> String {
    let action_name = name_of(action);
    let pod = match action {
        Action::Bind(bind) => {
            let (namespace, name) = (&bind.pod.namespace, &bind.pod.name);
            return format!("{action_name} of {namespace}/{name} to {}", bind.node);
        }
        Action::Evict(evict) => &evict.pod,
        Action::Lift(lift) => &lift.pod,
        Action::SelectNode(select) => {
            return format!("{action_name} of {}/{}", select.namespace, select.name);
        }
        Action::KeepVolume(keep) => return format!("{action_name} of {}", keep.volume),
        Action::LockCards(LockCards { node, .. })
        | Action::UnlockCards(UnlockCards { node, .. }) => {
            return format!("{action_name} of {node}");
        }
        Action::Observe(pod)
        | Action::PatchStatus(
            StatusPatch::Unscheduled { pod, .. } | StatusPatch::Nominated { pod, .. },
        ) => pod,
        Action::PatchStatus(StatusPatch::PodGroup {
            namespace, name, ..
        }) => return format!("{action_name} of {namespace}/{name}"),
        Action::PatchStatus(StatusPatch::Queue { name, .. }) => {
            return format!("{action_name} of {name}");
        }
        Action::Publish(announcement) => {
            let about = &announcement.regarding;
            return format!("{action_name} about {} {}", about.kind, about.name);
        }
        Action::Lease(_) => return action_name.to_owned(),
    };
    format!("{action_name} of {}/{}", pod.namespace, pod.name)
}
