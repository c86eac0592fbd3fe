//! Evictions as requests.

use super::exchange::Request;
use gpu_batch_policies::command::PodReference;
use serde_json::json;

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
