//! Requests about one PersistentVolumeClaim.

use super::exchange::{MERGE_PATCH, Request};
use crate::kube::convert::SELECTED_NODE;
use gpu_batch_policies::command::SelectNode;
use serde_json::json;

/// The request that says where the volume of a claim is to be made. The UID is a precondition:
/// another claim of the same name is not changed.
pub(super) fn select_node(select: &SelectNode) -> Request {
    let (namespace, name) = (&*select.namespace, &*select.name);
    Request::patch(
        format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"),
        MERGE_PATCH,
        &json!({
            "metadata": {
                "uid": select.uid.to_string(),
                "annotations": {SELECTED_NODE: select.node},
            },
        }),
    )
}
