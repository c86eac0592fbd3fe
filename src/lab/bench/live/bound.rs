//! The pods that are bound, as a watch tells it.

use super::objects::NAMESPACE;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client};
use std::collections::BTreeSet;

/// Hands over each pod of the measurement when it begins to have a node, once, until the watch is
/// refused. `labels` select the pods; empty: all. A watch that is cut off begins anew, and names
/// pods again that were handed over.
///
/// # Errors
/// If the watch is refused, or a pod is not taken.
pub(super) async fn each_bound(
    client: Client,
    labels: &str,
    mut take: impl FnMut(ObjectMeta) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    let bound = WatchParams::default()
        .labels(labels)
        .fields("spec.nodeName!=");
    let mut known = BTreeSet::new();
    loop {
        let mut events = pods.watch_metadata(&bound, "0").await?.boxed();
        while let Ok(Some(event)) = events.try_next().await {
            if let WatchEvent::Added(pod) = event
                && known.insert(pod.metadata.name.clone())
            {
                take(pod.metadata)?;
            }
        }
    }
}
