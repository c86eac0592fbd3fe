//! What a gang asks for: from its PodGroup, else from its pods.

use crate::facts::PodGroupFacts;
use crate::state::ClusterState;
use crate::state::gang::{Gang, GangKey, GangSpec};
use crate::state::membership::{job_minimum, runs_at_once};
use crate::state::pod::{Own, Stage};

/// The queue of pods and PodGroups that name none.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// What the gang asks for: from its PodGroup, else from its pods.
pub(crate) fn spec_of(state: &ClusterState, gang: &Gang) -> GangSpec {
    let members = || gang.members.iter().map(|id| &state.pods[*id]);
    let first = members().min_by_key(|pod| (pod.created_ms, &pod.name));
    let oldest = first.and_then(|pod| pod.own.as_deref());
    let lowest = members().map(|pod| pod.priority).min().unwrap_or(0);
    // A gang ends with the last of its members, which end by their `activeDeadlineSeconds`.
    let latest = || {
        let mut latest = None;
        for pod in members() {
            // One member without an end leaves the gang without one, whatever the others say.
            latest = latest.max(Some(runtime_of(state, pod.own.as_ref()?)?));
        }
        latest
    };
    let mut spec = match &gang.object {
        Some(object) => GangSpec {
            expected_runtime_ms: smaller(object.expected_runtime_ms, latest()),
            ..spec_of_object(state, object, oldest, lowest)
        },
        None => spec_of_pods(state, gang, oldest, lowest),
    };
    if gang.object.is_none() {
        spec.created_ms = first.map_or(0, |pod| pod.created_ms);
    }
    let removed = removed_after_success(state, gang);
    if removed > 0 {
        spec.minimum = spec.minimum.saturating_sub(removed).max(1);
    }
    spec
}

/// How many members ended well and were removed since, by an eviction that came too late for
/// example: no Job makes them anew. Only of Jobs whose pods all run at once and have not all ended:
/// a PodGroup may have more Jobs after them.
fn removed_after_success(state: &ClusterState, gang: &Gang) -> u32 {
    let jobs = state.jobs_of(gang);
    let jobs =
        jobs.filter(|job| runs_at_once(job) && (1..job.parallelism).contains(&job.succeeded));
    let removed = jobs.map(|job| {
        let members = gang.members.iter().map(|pod| &state.pods[*pod]);
        let members = members.filter(|pod| pod.owner().is_some_and(|owner| owner.uid == job.uid));
        let (mut there, mut succeeded) = (0u32, 0u32);
        for pod in members {
            there += u32::from(pod.stage != Stage::Ended { succeeded: false });
            succeeded += u32::from(pod.stage == Stage::Ended { succeeded: true });
        }
        // The Job may be seen to have a pod more that ended before the pod is.
        let missing = job.parallelism.saturating_sub(there);
        job.succeeded.saturating_sub(succeeded).min(missing)
    });
    removed.sum()
}

fn spec_of_object(
    state: &ClusterState,
    object: &PodGroupFacts,
    oldest: Option<&Own>,
    lowest: i32,
) -> GangSpec {
    let class = object.priority_class.as_ref();
    let class = class.and_then(|name| state.priority_classes.get(name));
    // A group that names no queue follows its oldest pod.
    let queue = object.queue.as_deref();
    let queue = queue.or_else(|| oldest?.queue.as_deref());
    GangSpec {
        queue: state.submitted.name(queue.unwrap_or(DEFAULT_QUEUE)),
        minimum: object.minimum,
        priority: object
            .priority
            .or(class.map(|class| class.value))
            .unwrap_or(lowest),
        preemptible: object.preemptible.unwrap_or(true),
        topology: object.topology.clone().unwrap_or_default(),
        required_label: object.required_label.clone(),
        placement: object.placement,
        staleness_grace_ms: object.staleness_grace_ms,
        expected_runtime_ms: object.expected_runtime_ms,
        preemption_delay_ms: object.preemption_delay_ms,
        created_ms: object.created_ms,
    }
}

fn spec_of_pods(state: &ClusterState, gang: &Gang, oldest: Option<&Own>, lowest: i32) -> GangSpec {
    let Some(own) = oldest else {
        return GangSpec::default();
    };
    let minimum = match gang.key {
        GangKey::Owner(uid) => {
            let job = state.jobs.get(&uid).and_then(job_minimum);
            own.hints.min_member.or(job).unwrap_or(1)
        }
        GangKey::Deployment(..) => own.hints.min_member.unwrap_or(1),
        GangKey::Group(..) | GangKey::Pod(_) => 1,
    };
    // The bound members of a gang whose PodGroup is gone count in the queue for which they were
    // bound: the PodGroup named it.
    let bound = bound_queue(state, gang).filter(|_| gang.lacks_object());
    let queue = bound.or(own.queue.as_deref()).unwrap_or(DEFAULT_QUEUE);
    let mut spec = GangSpec {
        queue: state.submitted.name(queue),
        minimum,
        priority: lowest,
        preemptible: own.hints.preemptible.unwrap_or(true),
        placement: own.hints.placement,
        expected_runtime_ms: runtime_of(state, own),
        preemption_delay_ms: own.hints.preemption_delay_ms,
        ..GangSpec::default()
    };
    spec.topology.required = own.hints.topology_required.clone();
    spec.topology.preferred = own.hints.topology_preferred.clone();
    spec
}

/// How long a pod runs as it says, or until its Job is ended: a deadline of a Job counts from its
/// first pod, of which a gang knows no more than when it was bound.
fn runtime_of(state: &ClusterState, own: &Own) -> Option<u64> {
    let job = own.job().and_then(|job| state.jobs.get(&job));
    let deadline_ms = job.and_then(|job| job.active_deadline_ms);
    smaller(own.hints.expected_runtime_ms, deadline_ms)
}

/// The runtime that is expected of a gang that is ended at a deadline.
fn smaller(said_ms: Option<u64>, deadline_ms: Option<u64>) -> Option<u64> {
    [said_ms, deadline_ms].into_iter().flatten().min()
}

/// The queue for which the first of the members was bound, by name.
fn bound_queue<'a>(state: &'a ClusterState, gang: &Gang) -> Option<&'a str> {
    let members = gang.members.iter().map(|id| &state.pods[*id]);
    let bound = members.filter(|pod| pod.stage.is_bound());
    let queues =
        bound.filter_map(|pod| Some((&pod.name, pod.own.as_ref()?.bound_queue.as_deref()?)));
    queues.min().map(|(_, queue)| queue)
}
