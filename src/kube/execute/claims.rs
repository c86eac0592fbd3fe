//! Requests about one PersistentVolumeClaim or PersistentVolume.

use super::exchange::{MERGE_PATCH, Request};
use crate::kube::convert::SELECTED_NODE;
use gpu_batch_policies::command::{KeepVolume, SelectNode};
use serde_json::json;

/// On a volume: its claim was not chosen by a user, so Kubernetes may give the volume back.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

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

/// The request that keeps a volume for a claim, or frees it again, as kube-scheduler and the
/// controller of volumes write it. The version is a precondition.
pub(super) fn keep_volume(keep: &KeepVolume) -> Request {
    let claim = keep.claim.as_ref().map(|claim| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace,
            "name": claim.name, "uid": claim.uid.map(|uid| uid.to_string()),
        })
    });
    let by_controller = claim.as_ref().map(|_| "yes");
    Request::patch(
        format!("/api/v1/persistentvolumes/{}", keep.volume),
        MERGE_PATCH,
        &json!({
            "metadata": {
                "resourceVersion": keep.version,
                "annotations": {BOUND_BY_CONTROLLER: by_controller},
            },
            "spec": {"claimRef": claim},
        }),
    )
}
