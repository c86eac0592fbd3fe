//! Evictions as requests.

use super::exchange::Request;
use gpu_batch_policies::command::{EvictionCause, PodReference};
use serde_json::json;

/// Why a pod was evicted, for the log; the event on its group says it with the numbers.
pub(super) fn why(cause: EvictionCause) -> &'static str {
    match cause {
        EvictionCause::Stale => {
            "its gang lost members and stayed below its minimum for its grace period"
        }
        EvictionCause::Unwind => {
            "its gang was bound in part, and the rest of its minimum has no place"
        }
    }
}

/// An Eviction, so that disruption budgets are respected by the API server.
pub(super) fn request(pod: &PodReference) -> Request {
    let (namespace, name) = (&*pod.namespace, &*pod.name);
    Request::post(
        format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"),
        &json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": pod.uid.to_string()}},
        }),
    )
}
