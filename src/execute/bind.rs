//! Bindings as requests.

use super::exchange::Request;
use crate::convert::OF_BINDINGS;
use gpu_batch_policies::command::Bind;
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// The API server adds them to the pod in the same write.
    annotations: BTreeMap<&'static str, String>,
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
                annotations: annotations(bind),
            },
            target: Target {
                api_version: "v1",
                kind: "Node",
                name: &bind.node,
            },
        },
    )
}

fn annotations(bind: &Bind) -> BTreeMap<&'static str, String> {
    let queue = bind.queue.to_string();
    let pod_group = bind.pod_group.as_deref().map(str::to_owned);
    let written: [_; OF_BINDINGS.len()] = [Some(queue), pod_group, minimum(&bind.minima)];
    let named = OF_BINDINGS.into_iter().zip(written);
    named
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// `3`, or with sub-groups `2/1/3`, from the gang's down to that of the leaf.
fn minimum(minima: &[u32]) -> Option<String> {
    let words: Vec<String> = minima.iter().map(u32::to_string).collect();
    (!words.is_empty()).then(|| words.join("/"))
}
