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

/// An event of `events.k8s.io/v1`. Its name is that of the object, for people, and what makes it
/// unique: time and command. What is told once has a name that follows from what is told of which
/// object, so that the API server refuses it where it has it already.
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

/// A number that follows from the object and what is said of it (64-bit FNV-1a).
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

/// The longest beginning of whole characters that fits.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
