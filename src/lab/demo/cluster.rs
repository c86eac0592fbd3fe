//! Where the demo runs: a local control plane of its own, or a cluster of the user's.

use super::seen::{self, Node};
use super::setting::{self, PART_OF};
use crate::kube::connection;
use crate::lab::local::nodes::{GpuNode, H100};
use crate::lab::local::{Binaries, CONTROLLERS, ControlPlane, Options};
use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt};
use kube::{Client, Config};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// The control plane that the demo needs.
pub(super) const CONTROL_PLANE: Options = Options {
    controllers: CONTROLLERS,
    kwok: true,
    kube_scheduler: false,
    native_gangs: false,
    audit: false,
};

/// How many objects are created or deleted at the same time.
const PARALLEL_REQUESTS: usize = 16;
/// How long kwok may take to make a node ready.
const KWOK_WITHIN: Duration = Duration::from_secs(15);
/// How long a namespace may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(120);

/// The cluster, and what was created in it.
pub(super) struct Cluster {
    pub(super) config: Config,
    pub(super) client: Client,
    /// `None`: the user's cluster.
    pub(super) control_plane: Option<ControlPlane>,
    /// The paths of the objects that were created before the first gang, oldest first.
    created: Vec<String>,
}

impl Cluster {
    /// Starts a control plane with nothing in it.
    pub(super) async fn local(binaries: &Binaries) -> anyhow::Result<Self> {
        let control_plane = ControlPlane::start(binaries, CONTROL_PLANE).await?;
        let mut config = connection::config(Some(control_plane.kubeconfig()), None).await?;
        // A proxy of the environment does not lead to our loopback interface.
        config.proxy_url = None;
        Ok(Self {
            client: connection::client(&config)?,
            config,
            control_plane: Some(control_plane),
            created: Vec::new(),
        })
    }

    /// Connects to the user's cluster.
    pub(super) async fn of_the_user(
        kubeconfig: &Path,
        context: Option<&str>,
    ) -> anyhow::Result<Self> {
        let config = connection::config(Some(kubeconfig), context).await?;
        Ok(Self {
            client: connection::client(&config)?,
            config,
            control_plane: None,
            created: Vec::new(),
        })
    }

    /// Whether the cluster may have other users.
    pub(super) fn is_shared(&self) -> bool {
        self.control_plane.is_none()
    }

    /// Pods with this scheduler name are the demo's: another gpu-batch may run in a shared cluster.
    pub(super) fn scheduler_name(&self) -> &'static str {
        if self.is_shared() {
            "gpu-batch-demo"
        } else {
            "gpu-batch"
        }
    }

    /// How many nodes there are that kwok does not play.
    pub(super) async fn real_nodes(&self) -> anyhow::Result<usize> {
        let nodes = seen::nodes(self.client.clone());
        let nodes = nodes.list(&Default::default()).await;
        let nodes = nodes.context("failed to list the nodes of the cluster")?;
        let is_real = |node: &&Node| {
            let annotations = node.metadata.annotations.as_ref();
            annotations.is_none_or(|annotations| !annotations.contains_key("kwok.x-k8s.io/node"))
        };
        Ok(nodes.items.iter().filter(is_real).count())
    }

    /// Creates the custom resources, and then these objects, each below the path of its collection.
    pub(super) async fn prepare(&mut self, objects: Vec<(String, Value)>) -> anyhow::Result<()> {
        if self.is_shared() {
            self.find_kwok().await?;
        }
        for (path, object) in setting::definitions()? {
            let name = name_of(&object).to_owned();
            match create(&self.client, &path, &object).await {
                Ok(()) => self.created.push(format!("{path}/{name}")),
                // A definition that the user has created already is as good as ours.
                Err(error) if is_conflict(&error) && self.is_shared() => {}
                Err(error) => return Err(error).context(format!("failed to create {name}")),
            }
            self.wait_for_definition(&path, &name).await?;
        }
        let client = &self.client;
        // In order, because objects are deleted in the opposite order.
        let mut results = futures::stream::iter(objects)
            .map(|(path, object)| async move {
                let name = name_of(&object).to_owned();
                let result = create(client, &path, &object).await;
                (format!("{path}/{name}"), result)
            })
            .buffered(PARALLEL_REQUESTS);
        let mut failure = None;
        while let Some((path, result)) = results.next().await {
            match result {
                Ok(()) => self.created.push(path),
                Err(error) => failure = failure.or(Some((path, error))),
            }
        }
        drop(results);
        match failure {
            None => Ok(()),
            Some((path, error)) if is_conflict(&error) => {
                bail!("{path} exists already; the demo touches nothing that is not its own")
            }
            Some((path, error)) => Err(error).context(format!("failed to create {path}")),
        }
    }

    /// Finds out whether the cluster has kwok: creates a node that is not ready, and waits for kwok
    /// to make it ready.
    async fn find_kwok(&mut self) -> anyhow::Result<()> {
        let mut node = GpuNode::new("gpu-batch-demo-probe", H100);
        node.labels.insert(PART_OF.0.into(), PART_OF.1.into());
        let mut object = node.object();
        object["status"]["conditions"] = Value::Array(Vec::new());
        object["spec"] = serde_json::json!({"unschedulable": true});
        create(&self.client, "/api/v1/nodes", &object).await?;
        let path = format!("/api/v1/nodes/{}", node.name);
        let start = Instant::now();
        let found = loop {
            let node: Value = self.client.request(get(&path)?).await?;
            let conditions = node["status"]["conditions"].as_array();
            let is_ready = |condition: &Value| {
                condition["type"] == "Ready"
                    && condition["status"] == "True"
                    && condition["reason"] == "KubeletReady"
            };
            if conditions.is_some_and(|conditions| conditions.iter().any(is_ready)) {
                break true;
            }
            if start.elapsed() > KWOK_WITHIN {
                break false;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        delete(&self.client, &path).await?;
        if !found {
            bail!(
                "no kwok plays nodes with the annotation kwok.x-k8s.io/node=fake in this cluster: \
                 install kwok, or run the demo without --kubeconfig"
            );
        }
        Ok(())
    }

    async fn wait_for_definition(&self, path: &str, name: &str) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let crd: Value = self.client.request(get(&format!("{path}/{name}"))?).await?;
            let conditions = crd["status"]["conditions"].as_array();
            let is_established = |condition: &Value| {
                condition["type"] == "Established" && condition["status"] == "True"
            };
            if conditions.is_some_and(|conditions| conditions.iter().any(is_established)) {
                return Ok(());
            }
            if start.elapsed() > GONE_WITHIN {
                bail!("the API server does not serve {name}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Deletes the objects that were created in a cluster of the user's, the youngest first. A
    /// local control plane needs no cleaning: it is removed as a whole.
    pub(super) async fn clean_up(&mut self) -> anyhow::Result<()> {
        let created = std::mem::take(&mut self.created);
        let is_namespace = |path: &&String| path.starts_with("/api/v1/namespaces/");
        let namespaces: Vec<&String> = created.iter().filter(is_namespace).collect();
        for path in &namespaces {
            // A namespace deletes its pods first, and the Job controller holds the pods of Jobs
            // with a backoffLimitPerIndex until it has made others, which it cannot do any more.
            let jobs = path.replacen("/api/v1", "/apis/batch/v1", 1) + "/jobs";
            delete(
                &self.client,
                &format!("{jobs}?propagationPolicy=Background"),
            )
            .await?;
            delete(&self.client, path).await?;
        }
        // First the namespaces: their pods need the nodes, because only a kubelet, here kwok, lets
        // a pod go.
        let start = Instant::now();
        for path in &namespaces {
            while !is_gone(self.client.request::<Value>(get(path)?).await) {
                if start.elapsed() > GONE_WITHIN {
                    bail!("{path} is not gone after {} s", GONE_WITHIN.as_secs());
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        let client = &self.client;
        let others = created.iter().rev().filter(|path| !is_namespace(path));
        futures::stream::iter(others)
            .map(|path| delete(client, path))
            .buffered(PARALLEL_REQUESTS)
            .try_collect()
            .await
    }
}

/// Creates one object; the API server's answer is not used.
pub(super) async fn create(client: &Client, path: &str, object: &Value) -> Result<(), kube::Error> {
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await.map(drop)
}

async fn delete(client: &Client, path: &str) -> anyhow::Result<()> {
    let request = http::Request::delete(path).body(Vec::new())?;
    match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result
            .map(drop)
            .with_context(|| format!("failed to delete {path}")),
    }
}

fn get(path: &str) -> anyhow::Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

fn is_gone(result: Result<Value, kube::Error>) -> bool {
    matches!(result, Err(kube::Error::Api(status)) if status.code == 404)
}
