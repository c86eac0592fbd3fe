//! Upgrades as the documents describe them, with the real kubectl and the real Helm: nothing that
//! users were told to edit is lost.

use std::path::{Path, PathBuf};

use gpu_batch::lab::local::Options;
use serde_json::json;
use tempfile::TempDir;

use crate::chart::{Helm, root};
use crate::cluster::{self, Cluster};

const TOPOLOGY: &str = "/apis/gpu-batch.io/v1alpha1/topologies/default";
const QUEUE: &str = "/apis/gpu-batch.io/v1alpha1/queues/default";
const CONFIGURATION: &str = "/api/v1/namespaces/gpu-batch/configmaps/gpu-batch";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/gpu-batch/deployments/gpu-batch";

/// A checkout of its own, which can become a newer version.
struct Checkout {
    folder: TempDir,
}

impl Checkout {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(
            &root().join("deploy"),
            &folder.path().join("gpu-batch/deploy"),
        );
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    /// Another version, with other defaults of whatever users may edit.
    fn becomes_newer(&self) {
        for (file, from, to) in [
            ("deployment.yaml", "gpu-batch:0.1.0", "gpu-batch:0.2.0"),
            (
                "defaults/topology-default.yaml",
                "nvidia.com/gpu.clique",
                "example.com/new",
            ),
            (
                "defaults/queue-default.yaml",
                "spec: {}",
                "spec: {priority: 7}",
            ),
            (
                "defaults/configmap.yaml",
                "kind: Configuration",
                "kind: Configuration\n    aging: 9m",
            ),
            (
                "helm/gpu-batch/Chart.yaml",
                "ersion: 0.1.0",
                "ersion: 0.2.0",
            ),
            (
                "helm/gpu-batch/templates/topology-default.yaml",
                "nvidia.com/gpu.clique",
                "example.com/new",
            ),
        ] {
            let path = self.path(&format!("gpu-batch/deploy/{file}"));
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{file}");
            std::fs::write(&path, text.replace(from, to)).unwrap();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What docs/install.md tells users to write into the kustomization of their own.
fn own_kustomization() -> String {
    let page = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
    let (_, rest) = page
        .split_once("cat > ../my-gpu-batch/kustomization.yaml <<'END'\n")
        .unwrap();
    rest.split_once("END\n").unwrap().0.to_owned()
}

/// What users edit in the cluster.
async fn edits(cluster: &Cluster) {
    cluster
        .kubectl(&["apply", "-f", "deploy/topologies/gke.yaml"])
        .await;
    cluster
        .merge(QUEUE, &json!({"spec": {"closed": true}}))
        .await;
}

async fn edits_are_there(cluster: &Cluster) {
    let topology = cluster.get(TOPOLOGY).await.unwrap();
    let levels = topology["spec"]["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 4, "{topology:#}");
    let queue = cluster.get(QUEUE).await.unwrap();
    assert_eq!(queue["spec"]["closed"], true, "{queue:#}");
    assert_eq!(queue["spec"]["priority"], 0, "{queue:#}");
}

async fn image(cluster: &Cluster) -> String {
    let deployment = cluster.get(DEPLOYMENT).await.unwrap();
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    image.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_upgrade_with_kubectl_keeps_what_users_have_edited() {
    let Some(cluster) = cluster::own("upgraded", Options::default()).await else {
        return;
    };
    let checkout = Checkout::new();
    let own = checkout.path("my-gpu-batch");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(format!("{own}/kustomization.yaml"), own_kustomization()).unwrap();
    let crds = checkout.path("gpu-batch/deploy/crds");
    let defaults = checkout.path("gpu-batch/deploy/defaults");
    cluster.kubectl(&["apply", "-k", &crds]).await;
    cluster.kubectl(&["apply", "-k", &own]).await;
    cluster.kubectl(&["create", "-k", &defaults]).await;
    assert_eq!(image(&cluster).await, "REGISTRY/gpu-batch:0.1.0");
    edits(&cluster).await;
    let edited = json!({"data": {"configuration.yaml": "edited"}});
    cluster.merge(CONFIGURATION, &edited).await;

    checkout.becomes_newer();
    cluster
        .kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &crds])
        .await;
    cluster.kubectl(&["apply", "-k", &own]).await;
    assert_eq!(image(&cluster).await, "REGISTRY/gpu-batch:0.2.0");
    edits_are_there(&cluster).await;
    let map = cluster.get(CONFIGURATION).await.unwrap();
    assert_eq!(map["data"], edited["data"], "{map:#}");
}

#[tokio::test]
async fn an_upgrade_with_helm_keeps_what_users_have_edited() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    let Some(cluster) = cluster::own("released", Options::default()).await else {
        return;
    };
    let checkout = Checkout::new();
    let chart = checkout.path("gpu-batch/deploy/helm/gpu-batch");
    let values = "image.repository=registry.example.com/gpu-batch,configuration.placement=spread";
    let install = [
        "install",
        "gpu-batch",
        &chart,
        "--create-namespace",
        "--set",
        values,
    ];
    cluster.helm(&helm, &install);
    let topology = cluster.get(TOPOLOGY).await.unwrap();
    assert_eq!(topology["spec"]["levels"][0]["name"], "nvlink-domain");
    edits(&cluster).await;

    checkout.becomes_newer();
    for _ in 0..2 {
        let upgrade = ["upgrade", "gpu-batch", &chart, "--reset-then-reuse-values"];
        cluster.helm(&helm, &upgrade);
        let image = image(&cluster).await;
        assert_eq!(image, "registry.example.com/gpu-batch:0.2.0");
        edits_are_there(&cluster).await;
    }
    let map = cluster.get(CONFIGURATION).await.unwrap();
    let configuration = map["data"]["configuration.yaml"].as_str().unwrap();
    assert!(
        configuration.contains("placement: spread"),
        "{configuration}"
    );
}
