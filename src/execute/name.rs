//! Names of actions.

use gpu_batch_policies::command::{Action, StatusPatch};
use gpu_batch_policies::facts::GroupSource;

/// The action's name in metrics and logs.
pub(super) fn of(action: &Action) -> &'static str {
    match action {
        Action::Bind(_) => "bind",
        Action::Evict(_) => "evict",
        Action::Observe(_) => "observe",
        Action::PatchStatus(StatusPatch::PodGroup { source, .. }) => match source {
            GroupSource::GpuBatch => "patch_pod_group_status",
            GroupSource::Native => "patch_native_pod_group_status",
        },
        Action::PatchStatus(StatusPatch::Queue { .. }) => "patch_queue_status",
        Action::PatchStatus(StatusPatch::Unscheduled { .. }) => "patch_pod_status",
        Action::Lease(_) => "lease",
        Action::Publish(_) => "publish",
    }
}

/// The action's name and the object that it is about.
pub(super) fn with_object(action: &Action) -> String {
    let action_name = of(action);
    let pod = match action {
        Action::Bind(bind) => {
            let (namespace, name) = (&bind.pod.namespace, &bind.pod.name);
            return format!("{action_name} of {namespace}/{name} to {}", bind.node);
        }
        Action::Evict(evict) => &evict.pod,
        Action::Observe(pod) | Action::PatchStatus(StatusPatch::Unscheduled { pod, .. }) => pod,
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
