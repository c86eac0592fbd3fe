//! Bindings as requests.

use super::exchange::Request;
use gpu_batch_policies::command::Bind;
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    namespace: &'a str,
    name: &'a str,
    /// A precondition: another pod under the same name is not bound.
    uid: String,
    annotations: Annotations<'a>,
}

/// The API server adds them to the pod in the same write.
#[derive(Serialize)]
struct Annotations<'a> {
    #[serde(rename = "gpu-batch.io/bound-queue")]
    queue: &'a str,
    #[serde(
        rename = "gpu-batch.io/bound-podgroup",
        skip_serializing_if = "Option::is_none"
    )]
    pod_group: Option<&'a str>,
    #[serde(
        rename = "gpu-batch.io/bound-minimum",
        skip_serializing_if = "Option::is_none"
    )]
    minimum: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
}

pub(super) fn request(bind: &Bind) -> Request {
    let (namespace, name) = (&*bind.pod.namespace, &*bind.pod.name);
    Request::post(
        format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"),
        &Binding {
            api_version: "v1",
            kind: "Binding",
            metadata: Metadata {
                namespace,
                name,
                uid: bind.pod.uid.to_string(),
                annotations: Annotations {
                    queue: &bind.queue,
                    pod_group: bind.pod_group.as_deref(),
                    minimum: minimum(&bind.minima),
                },
            },
            target: Target {
                api_version: "v1",
                kind: "Node",
                name: &bind.node,
            },
        },
    )
}

/// `3`, or with sub-groups `2/1/3`, from the gang's down to that of the leaf.
fn minimum(minima: &[u32]) -> Option<String> {
    let words: Vec<String> = minima.iter().map(u32::to_string).collect();
    (!words.is_empty()).then(|| words.join("/"))
}
