//! The cluster that is measured: a local control plane, or the user's.

use super::objects::{self, NAMESPACE, Post, node_name, pods_path, post_all, send};
use crate::kube::api;
use crate::kube::connection::{self, Named};
use crate::lab::local::{Binaries, ControlPlane, Options, Program};
use anyhow::Context;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use std::time::Duration;

/// How many objects are created or removed at once.
const AT_A_TIME: u32 = 64;

/// How many objects' requests are formed at once.
const BATCH: usize = 5_000;

/// How often to look whether an object has come or gone.
const POLL: Duration = Duration::from_millis(100);

/// A cluster with the fake nodes of one workload.
pub(super) struct Cluster {
    pub(super) config: kube::Config,
    /// How another process finds the cluster.
    pub(super) named: Named,
    client: Client,
    nodes: usize,
    /// `None`: the cluster is the user's.
    local: Option<Local>,
}

/// A control plane of this machine.
struct Local {
    control_plane: ControlPlane,
    binaries: Binaries,
}

impl Cluster {
    /// Starts a control plane, or takes the user's cluster, and makes the namespace and the nodes.
    pub(super) async fn start(named: Option<&Named>, nodes: usize) -> anyhow::Result<Self> {
        let local = match named {
            Some(_) => None,
            None => Some(start_control_plane(&[]).await?),
        };
        let mut cluster = Self::of(named, local).await?;
        cluster.add_nodes(nodes).await?;
        Ok(cluster)
    }

    /// Starts a control plane on which kube-scheduler can be started, without nodes.
    pub(super) async fn with_kube_scheduler() -> anyhow::Result<Self> {
        let local = start_control_plane(&[Program::KubeScheduler]).await?;
        Self::of(None, Some(local)).await
    }

    async fn of(named: Option<&Named>, local: Option<Local>) -> anyhow::Result<Self> {
        let kubeconfig = |local: &Local| local.control_plane.kubeconfig().to_owned();
        let named = named.cloned().unwrap_or_else(|| Named {
            kubeconfig: local.as_ref().map(kubeconfig),
            context: None,
        });
        let mut config = named.config().await?;
        if local.is_some() {
            // A proxy of the environment does not lead to our loopback interface.
            config.proxy_url = None;
        }
        let client = connection::client(&config)?;
        let cluster = Self {
            named,
            config,
            client,
            nodes: 0,
            local,
        };
        if cluster.local.is_some() {
            cluster.install().await?;
        }
        let namespace = Post {
            path: "/api/v1/namespaces".into(),
            body: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        };
        cluster.create(vec![namespace]).await?;
        Ok(cluster)
    }

    /// Starts kube-scheduler with its defaults, where the control plane was started for that.
    pub(super) fn start_kube_scheduler(&mut self) -> anyhow::Result<()> {
        let local = self.local.as_mut();
        let local = local.context("kube-scheduler is started on a local control plane only")?;
        let configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        });
        let control_plane = &mut local.control_plane;
        Ok(control_plane.start_kube_scheduler(&local.binaries, &configuration)?)
    }

    pub(super) fn stop_kube_scheduler(&mut self) {
        if let Some(local) = &mut self.local {
            local.control_plane.kill(Program::KubeScheduler);
        }
    }

    /// Makes `nodes` more nodes.
    pub(super) async fn add_nodes(&mut self, nodes: usize) -> anyhow::Result<()> {
        let numbers = self.nodes..self.nodes + nodes;
        self.nodes += nodes;
        self.create(numbers.map(objects::node).collect()).await
    }

    /// Makes the custom resources known; on a user's cluster they must exist already.
    async fn install(&self) -> anyhow::Result<()> {
        let definition = |crd| -> anyhow::Result<Post> {
            Ok(Post {
                path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(),
                body: serde_json::to_value(crd)?,
            })
        };
        let definitions = api::crds()
            .iter()
            .map(definition)
            .collect::<Result<_, _>>()?;
        self.create(definitions).await?;
        for kind in ["queues", "podgroups", "topologies"] {
            let path = format!("/apis/gpu-batch.io/v1alpha1/{kind}?limit=1");
            while self.get(&path).await.is_err() {
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(())
    }

    /// Creates objects.
    pub(super) async fn create(&self, posts: Vec<Post>) -> anyhow::Result<()> {
        post_all(&self.client, posts, AT_A_TIME).await
    }

    /// Creates so many objects by their numbers. Not all their requests are formed at once.
    pub(super) async fn create_many(
        &self,
        count: usize,
        post: impl Fn(usize) -> Post,
    ) -> anyhow::Result<()> {
        for first in (0..count).step_by(BATCH) {
            let end = count.min(first + BATCH);
            self.create((first..end).map(&post).collect()).await?;
            tracing::info!("{end} of {count} objects");
        }
        Ok(())
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let body = send(&self.client, Request::get(path), Vec::new()).await?;
        Ok(serde_json::from_slice(&body)?)
    }

    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        send(
            &self.client,
            Request::delete(path),
            serde_json::to_vec(&options)?,
        )
        .await?;
        Ok(())
    }

    /// Changes an object as far as `patch` says.
    pub(super) async fn merge(&self, path: &str, patch: &Value) -> anyhow::Result<()> {
        objects::merge(&self.client, path, patch).await
    }

    /// Deletes a pod and waits until it is gone.
    pub(super) async fn delete_pod(&self, name: &str) -> anyhow::Result<()> {
        self.delete(&format!("{}/{name}", pods_path())).await?;
        let named = format!("{}?fieldSelector=metadata.name={name}", pods_path());
        self.none_left(&named).await
    }

    /// Deletes the pods that a selector of labels names, and waits until they are gone.
    pub(super) async fn delete_pods(&self, labels: &str) -> anyhow::Result<()> {
        let selected = format!("{}?labelSelector={labels}", pods_path());
        self.delete(&selected).await?;
        self.none_left(&format!("{selected}&limit=1")).await
    }

    /// Waits until a list is empty.
    async fn none_left(&self, list: &str) -> anyhow::Result<()> {
        while self.get(list).await?["items"][0].is_object() {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Removes all pods and PodGroups of the measurement, and waits until they are gone.
    pub(super) async fn clear(&self) -> anyhow::Result<()> {
        let groups = format!("/apis/gpu-batch.io/v1alpha1/namespaces/{NAMESPACE}/podgroups");
        let pods = pods_path();
        let events = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
        for path in [&pods, &groups, &events] {
            self.delete(path).await?;
        }
        for path in [&pods, &groups] {
            self.none_left(&format!("{path}?limit=1")).await?;
        }
        Ok(())
    }

    /// Removes everything; a local control plane is removed as a whole when this is dropped.
    pub(super) async fn remove(&self) -> anyhow::Result<()> {
        if self.local.is_some() {
            return Ok(());
        }
        self.clear().await?;
        for number in 0..self.nodes {
            self.delete(&format!("/api/v1/nodes/{}", node_name(number)))
                .await?;
        }
        self.delete(&format!("/api/v1/namespaces/{NAMESPACE}"))
            .await
    }
}

/// Starts a control plane, and finds or builds `more` programs beside its own.
async fn start_control_plane(more: &[Program]) -> anyhow::Result<Local> {
    let options = Options::default();
    let programs = [&options.programs(), more].concat();
    let find = move || Binaries::find_or_build(&programs, |line| eprintln!("{line}"));
    let binaries = tokio::task::spawn_blocking(find)
        .await
        .context("the search for the local control plane was cut off")??;
    let control_plane = ControlPlane::start(&binaries, options).await?;
    Ok(Local {
        control_plane,
        binaries,
    })
}
