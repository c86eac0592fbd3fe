//! Kubernetes events as requests.

use super::exchange::Request;
use super::time::micros;
use gpu_batch_policies::command::{Announcement, CommandId};
use gpu_batch_policies::facts::UnixMs;
use serde_json::json;

/// The API server takes no longer notes.
const NOTE_MAX_BYTES: usize = 1_024;
/// Leaves room for the suffix in the 253 bytes of a name.
const NAME_MAX_BYTES: usize = 200;
/// Where events about objects without a namespace go.
const CLUSTER_NAMESPACE: &str = "default";

/// An event of `events.k8s.io/v1`. Its name is unique: time and command, and the object for people.
pub(super) fn request(
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
    let prefix = cut(&regarding.name, NAME_MAX_BYTES).trim_end_matches(['.', '-']);
    Request::post(
        format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"),
        &json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "namespace": namespace,
                "name": format!("{prefix}.{now_ms:x}.{:x}", id.0),
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

/// The longest beginning of whole characters that fits.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
