//! Statuses and conditions as requests.

use super::exchange::{JSON_PATCH, Request, STRATEGIC_MERGE_PATCH};
use super::quantity;
use super::time::seconds;
use gpu_batch_policies::command::StatusPatch;
use gpu_batch_policies::facts::{GroupSource, Uid, quantity as quantity_of};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{GovernedAmounts, PodGroupStatus, QueueStatus, Staleness};
use serde_json::{Map, Value, json};

/// The status of our own kinds is replaced as a whole, because a merge would keep resources and
/// reasons that no longer exist. Of others' objects only one condition is merged in. All of them
/// fail if the object's UID is another one.
pub(super) fn request(patch: &StatusPatch) -> Request {
    match patch {
        StatusPatch::PodGroup {
            source: GroupSource::GpuBatch,
            namespace,
            name,
            uid,
            status,
        } => replace(
            format!("/apis/gpu-batch.io/v1alpha1/namespaces/{namespace}/podgroups/{name}/status"),
            *uid,
            pod_group(status),
        ),
        StatusPatch::PodGroup {
            source: GroupSource::Native,
            namespace,
            name,
            uid,
            status,
        } => merge_condition(
            format!(
                "/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups/{name}/status"
            ),
            *uid,
            scheduled(status),
        ),
        StatusPatch::Queue { name, uid, status } => replace(
            format!("/apis/gpu-batch.io/v1alpha1/queues/{name}/status"),
            *uid,
            queue(status),
        ),
        StatusPatch::Unscheduled {
            pod,
            reason,
            message,
            since_ms,
        } => merge_condition(
            format!(
                "/api/v1/namespaces/{}/pods/{}/status",
                pod.namespace, pod.name
            ),
            pod.uid,
            json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastTransitionTime": seconds(*since_ms),
            }),
        ),
    }
}

fn replace(path: String, uid: Uid, status: Value) -> Request {
    Request::patch(
        path,
        JSON_PATCH,
        &json!([
            {"op": "test", "path": "/metadata/uid", "value": uid.to_string()},
            {"op": "add", "path": "/status", "value": status},
        ]),
    )
}

fn merge_condition(path: String, uid: Uid, condition: Value) -> Request {
    Request::patch(
        path,
        STRATEGIC_MERGE_PATCH,
        &json!({"metadata": {"uid": uid.to_string()}, "status": {"conditions": [condition]}}),
    )
}

pub(crate) fn pod_group(status: &PodGroupStatus) -> Value {
    let members = &status.members;
    let mut conditions = vec![scheduled(status)];
    if let Some(Staleness { stale, since_ms }) = status.staleness {
        let (word, reason, message) = if stale {
            let message = "the gang has lost members and is below its minimum";
            ("True", "BelowMinimum", message)
        } else {
            let message = "no loss of members keeps the gang below its minimum";
            ("False", "NoLoss", message)
        };
        conditions.push(json!({
            "type": "Stale",
            "status": word,
            "observedGeneration": status.observed_generation,
            "lastTransitionTime": seconds(since_ms),
            "reason": reason,
            "message": message,
        }));
    }
    let mut value = json!({
        "observedGeneration": status.observed_generation,
        "phase": status.phase.as_str(),
        "members": {
            "expected": members.expected,
            "created": members.created,
            "bound": members.bound,
            "running": members.running,
            "succeeded": members.succeeded,
            "failed": members.failed,
        },
        "conditions": conditions,
        "message": status.message,
    });
    if let Some(reason) = status.reason {
        value["reason"] = json!(reason.as_str());
    }
    value
}

/// The condition `PodGroupScheduled`.
fn scheduled(status: &PodGroupStatus) -> Value {
    let (word, reason) = if status.scheduled {
        ("True", "Scheduled")
    } else {
        ("False", status.reason.map_or("Pending", Reason::as_str))
    };
    json!({
        "type": "PodGroupScheduled",
        "status": word,
        "observedGeneration": status.observed_generation,
        "lastTransitionTime": seconds(status.scheduled_since_ms),
        "reason": reason,
        "message": status.message,
    })
}

pub(crate) fn queue(status: &QueueStatus) -> Value {
    let (word, reason, message) = match &status.fault {
        None => ("True", "Ready", status.note.as_deref().unwrap_or_default()),
        Some((fault, message)) => ("False", fault.as_str(), &**message),
    };
    let mut value = json!({
        "observedGeneration": status.observed_generation,
        "conditions": [{
            "type": "Ready",
            "status": word,
            "observedGeneration": status.observed_generation,
            "lastTransitionTime": seconds(status.ready_since_ms),
            "reason": reason,
            "message": message,
        }],
        "allocated": amounts(&status.allocated),
        "requested": amounts(&status.requested),
        "fairShare": amounts(&status.fair_share),
        "dominantShare": quantity::share(status.dominant_share_millionths),
        "podGroups": {"pending": status.pending, "running": status.running},
    });
    if let Some(past) = &status.past_use {
        let average = past.averages.iter().map(|(key, thousandths)| {
            let quantity = quantity::average(key, *thousandths);
            (key.to_string(), Value::String(quantity))
        });
        let average: Map<String, Value> = average.collect();
        value["pastUse"] = json!({"until": seconds(past.at_ms), "average": average});
    }
    value
}

fn amounts(amounts: &GovernedAmounts) -> Map<String, Value> {
    amounts
        .iter()
        .map(|(resource, value)| {
            let quantity = quantity_of(resource, *value);
            (resource.to_string(), Value::String(quantity))
        })
        .collect()
}
