//! What HAMi's device plugins do on the API server for pods that are bound.

use super::super::bound::each_bound;
use super::super::objects::{merge, pods_path};
use crate::kube::connection;
use crate::kube::convert::{CARD_LOCK, NODE_OF_CARDS};
use kube::Client;
use serde_json::json;
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

async fn serve_all(client: Client) -> anyhow::Result<()> {
    let mut serving = JoinSet::new();
    each_bound(client.clone(), "", |mut pod| {
        while let Some(served) = serving.try_join_next() {
            served??;
        }
        let node = pod.annotations.take().unwrap_or_default();
        if let Some(name) = pod.name
            && let Some(node) = node.get(NODE_OF_CARDS).cloned()
        {
            let client = client.clone();
            serving.spawn(async move { serve(&client, &name, &node).await });
        }
        Ok(())
    })
    .await
}

/// Says that a pod has its cards, and takes the lock of its node away.
pub(super) async fn serve(client: &Client, pod: &str, node: &str) -> anyhow::Result<()> {
    let served = json!({"metadata": {"annotations": {"hami.io/bind-phase": "success"}}});
    merge(client, &format!("{}/{pod}", pods_path()), &served).await?;
    let unlocked = json!({"metadata": {"annotations": {CARD_LOCK: null}}});
    merge(client, &format!("/api/v1/nodes/{node}"), &unlocked).await
}
