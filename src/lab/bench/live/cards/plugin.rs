//! What HAMi's device plugins do on the API server for pods that are bound.

use super::super::objects::{NAMESPACE, pods_path, send};
use crate::kube::connection;
use crate::kube::convert::{CARD_LOCK, NODE_OF_CARDS};
use futures::{StreamExt, TryStreamExt};
use http::Request;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::task::{JoinHandle, JoinSet};

/// The plugins of all nodes. Each serves pods of its node as they are bound.
pub(super) struct Plugin {
    serving: JoinHandle<anyhow::Result<()>>,
}

impl Plugin {
    /// Begins to watch for pods that are bound.
    pub(super) fn start(config: &kube::Config) -> anyhow::Result<Self> {
        let client = connection::client(config)?;
        Ok(Self {
            serving: tokio::spawn(serve_all(client)),
        })
    }

    /// Ends the plugins.
    ///
    /// # Errors
    /// If they have failed before.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.serving.abort();
        match self.serving.await {
            Ok(served) => served,
            Err(_) => Ok(()),
        }
    }
}

/// A watch that is cut off begins anew and names the pods again that were served.
async fn serve_all(client: Client) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let bound = WatchParams::default().fields("spec.nodeName!=");
    let mut known = BTreeSet::new();
    let mut serving = JoinSet::new();
    loop {
        let mut events = pods.watch_metadata(&bound, "0").await?.boxed();
        while let Ok(Some(event)) = events.try_next().await {
            while let Some(served) = serving.try_join_next() {
                served??;
            }
            let WatchEvent::Added(pod) = event else {
                continue;
            };
            let node = pod.metadata.annotations.unwrap_or_default();
            if let Some(name) = pod.metadata.name
                && let Some(node) = node.get(NODE_OF_CARDS)
                && known.insert(name.clone())
            {
                let (client, node) = (client.clone(), node.clone());
                serving.spawn(async move { serve(&client, &name, &node).await });
            }
        }
    }
}

/// Says that a pod has its cards, and takes the lock of its node away.
pub(super) async fn serve(client: &Client, pod: &str, node: &str) -> anyhow::Result<()> {
    let served = json!({"metadata": {"annotations": {"hami.io/bind-phase": "success"}}});
    merge(client, format!("{}/{pod}", pods_path()), &served).await?;
    let unlocked = json!({"metadata": {"annotations": {CARD_LOCK: null}}});
    merge(client, format!("/api/v1/nodes/{node}"), &unlocked).await
}

async fn merge(client: &Client, path: String, patch: &Value) -> anyhow::Result<()> {
    let request = Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json");
    send(client, request, serde_json::to_vec(patch)?).await?;
    Ok(())
}
