//! What users are told, as requests: statuses, conditions and Kubernetes events.

use super::exchange::{JSON_PATCH, Request, STRATEGIC_MERGE_PATCH};
use crate::kube::format::{average, micros, seconds, share};
use gpu_batch_policies::command::{Announcement, CommandId, PodReference, StatusPatch};
use gpu_batch_policies::facts::{GroupSource, Uid, UnixMs, queue_quantity};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{GovernedAmounts, PodGroupStatus, QueueStatus, Staleness};
use serde_json::{Map, Value, json};

/// The longest note of a Kubernetes event that the API server takes.
const NOTE_MAX_BYTES: usize = 1_024;
/// The longest part of an object's name in the name of an event: the suffix must fit into 253
/// bytes, too.
const NAME_MAX_BYTES: usize = 200;
/// Where events about objects without a namespace go.
const CLUSTER_NAMESPACE: &str = "default";

/// The request that writes a status. The status of our own kinds is replaced as a whole, because a
/// merge would keep resources and reasons that no longer exist. Into objects of other kinds only
/// one condition or one field is merged. The request fails if the object's UID is another one.
pub(super) fn patch(patch: &StatusPatch, scheduler: &str) -> Request {
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
            written_by(scheduler, pod_group(status)),
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
            written_by(scheduler, queue(status)),
        ),
        StatusPatch::Nominated { pod, node } => merge(
            pod_status(pod),
            pod.uid,
            // `null` takes the field away.
            json!({"nominatedNodeName": node}),
        ),
        StatusPatch::Unscheduled {
            pod,
            reason,
            message,
            since_ms,
        } => merge_condition(
            pod_status(pod),
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

/// A status that says which scheduler wrote it: one of another name then leaves it alone.
fn written_by(scheduler: &str, mut status: Value) -> Value {
    status["scheduler"] = json!(scheduler);
    status
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

fn pod_status(pod: &PodReference) -> String {
    let PodReference {
        namespace, name, ..
    } = pod;
    format!("/api/v1/namespaces/{namespace}/pods/{name}/status")
}

fn merge_condition(path: String, uid: Uid, condition: Value) -> Request {
    merge(path, uid, json!({"conditions": [condition]}))
}

fn merge(path: String, uid: Uid, status: Value) -> Request {
    Request::patch(
        path,
        STRATEGIC_MERGE_PATCH,
        &json!({"metadata": {"uid": uid.to_string()}, "status": status}),
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
    if let Some(protected) = status.protected {
        value["protected"] = json!(protected);
    }
    if let Some(start_ms) = status.estimated_start_ms {
        value["estimatedStart"] = json!(seconds(start_ms));
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
        "dominantShare": share(status.dominant_share_millionths),
        "podGroups": {"pending": status.pending, "running": status.running},
    });
    if let Some(past) = &status.past_use {
        let averages = past.averages.iter().map(|(key, thousandths)| {
            let quantity = average(key, *thousandths);
            (key.to_string(), Value::String(quantity))
        });
        let averages: Map<String, Value> = averages.collect();
        value["pastUse"] = json!({"until": seconds(past.at_ms), "average": averages});
    }
    if let Some(runtimes) = &status.runtimes {
        let owners = runtimes.owners.iter();
        let owners = owners.map(|own| json!({"owner": own.owner, "seconds": own.seconds}));
        let owners: Vec<Value> = owners.collect();
        value["runtimes"] = json!({"seconds": runtimes.seconds, "owners": owners});
    }
    value
}

fn amounts(amounts: &GovernedAmounts) -> Map<String, Value> {
    amounts
        .iter()
        .map(|(resource, value)| {
            let quantity = queue_quantity(resource, *value);
            (resource.to_string(), Value::String(quantity))
        })
        .collect()
}

/// The request that makes an event of `events.k8s.io/v1`. Its name is the name of the object, for
/// people, and what makes it unique: time and command. An event that is told only once has a name
/// that follows from its object and its text, so that the API server refuses it the second time.
pub(super) fn publish(
    announcement: &Announcement,
    id: CommandId,
    instance: &str,
    now_ms: UnixMs,
) -> Request {
    let regarding = &announcement.regarding;
    let namespace = match &*regarding.namespace {
        "" => CLUSTER_NAMESPACE,
        namespace => namespace,
    };
    let unique = if announcement.once {
        format!("{:x}", digest(announcement))
    } else {
        format!("{now_ms:x}.{:x}", id.0)
    };
    let prefix = cut(&regarding.name, NAME_MAX_BYTES).trim_end_matches(['.', '-']);
    Request::post(
        format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"),
        &json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "namespace": namespace,
                "name": format!("{prefix}.{unique}"),
            },
            "eventTime": micros(now_ms),
            "reportingController": "gpu-batch.io/gpu-batch",
            "reportingInstance": instance,
            "action": "Scheduling",
            "reason": announcement.reason,
            "type": if announcement.warning { "Warning" } else { "Normal" },
            "note": cut(&announcement.message, NOTE_MAX_BYTES),
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid.to_string(),
            },
        }),
    )
}

/// A number that follows from the object, the reason and the message (64-bit FNV-1a).
fn digest(announcement: &Announcement) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let uid = announcement.regarding.uid.0.to_le_bytes();
    let reason = announcement.reason.bytes();
    let bytes = uid
        .into_iter()
        .chain(reason)
        .chain(announcement.message.bytes());
    bytes.fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

/// The longest beginning of a text that has at most `bytes_max` bytes and cuts no character.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
