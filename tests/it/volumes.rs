//! Gangs whose pods have claims, on the real control plane: Kubernetes' own controllers bind claims
//! to volumes and make the claims of ephemeral volumes. The tests are the provisioner.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{self, Cluster, TEST_LABEL, stays, until};
use crate::work::ensure;

const SELECTED: &str = "volume.kubernetes.io/selected-node";

/// How long it is looked at whether something stays as it is.
const A_WHILE: Duration = Duration::from_secs(2);

/// The test's StorageClass, whose volumes wait for a pod.
pub(crate) async fn storage_class(cluster: &Cluster) {
    cluster
        .create(&json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": cluster.namespace},
            "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer",
        }))
        .await;
}

fn claim_spec(class: &str) -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "1Gi"}},
    })
}

pub(crate) async fn claims(cluster: &Cluster, names: &[&str]) {
    for name in names {
        cluster
            .create(&json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": name}, "spec": claim_spec(&cluster.namespace),
            }))
            .await;
    }
}

fn claim_path(cluster: &Cluster, name: &str) -> String {
    let namespace = &cluster.namespace;
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
}

pub(crate) fn with_claim(name: &str) -> Value {
    json!({"spec": {"volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": name}},
    ]}})
}

/// Creates a gang of as many pods as there are claims, each of which uses one and needs a node.
async fn gang(cluster: &Cluster, name: &str, claims: &[&str]) -> Vec<String> {
    cluster
        .group(name, &json!({"minMember": claims.len()}))
        .await;
    let mut members = Vec::new();
    for (number, claim) in claims.iter().enumerate() {
        let mut patch = with_claim(claim);
        patch["metadata"]["labels"]["gpu-batch.io/pod-group"] = name.into();
        let member = format!("{name}-{number}");
        cluster.create(&cluster.pod(&member, 8, &patch)).await;
        members.push(member);
    }
    members
}

/// The node where a volume is to be made for a claim, once one is selected.
pub(crate) async fn selected(cluster: &Cluster, claim: &str) -> String {
    until(claim, async || {
        let claim = cluster.get(&claim_path(cluster, claim)).await?;
        let node = &claim["metadata"]["annotations"][SELECTED];
        ensure(node.is_string(), &claim["metadata"])?;
        Ok(node.as_str().unwrap().to_owned())
    })
    .await
}

/// Makes the volume of a claim, on nodes with this value of the test's label.
async fn provision(cluster: &Cluster, claim: &str, nodes: &str) {
    let claim = cluster.get(&claim_path(cluster, claim)).await.unwrap();
    let metadata = &claim["metadata"];
    let name = format!(
        "{}-{}",
        cluster.namespace,
        metadata["name"].as_str().unwrap()
    );
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": metadata["uid"],
        "namespace": metadata["namespace"], "name": metadata["name"],
    });
    let terms = json!([{"matchExpressions": [
        {"key": TEST_LABEL, "operator": "In", "values": [nodes]},
    ]}]);
    cluster
        .create(&json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": cluster.namespace, "claimRef": reference,
                "csi": {"driver": "csi.example.com", "volumeHandle": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
        }))
        .await;
}

#[tokio::test]
async fn volumes_of_a_whole_gang_are_made_before_any_member_is_bound() {
    let Some(cluster) = cluster::shared("volumes").await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    storage_class(&cluster).await;
    let members = gang(&cluster, "train", &["data-0", "data-1"]).await;
    cluster.group_waits("train", "WaitingForVolumes").await;
    claims(&cluster, &["data-0", "data-1"]).await;
    let mut nodes = Vec::new();
    for claim in ["data-0", "data-1"] {
        nodes.push(selected(&cluster, claim).await);
    }
    provision(&cluster, "data-0", &cluster.namespace).await;
    stays("no member bound", A_WHILE, async || {
        cluster.none_bound(&members).await
    })
    .await;
    let waiting = cluster.group_waits("train", "WaitingForVolumes").await;
    let message = waiting["status"]["message"].as_str().unwrap();
    assert!(message.contains("waits for"), "{message}");
    provision(&cluster, "data-1", &cluster.namespace).await;
    assert_eq!(cluster.bound(&members).await, nodes);
}

#[tokio::test]
async fn a_gang_gives_its_nodes_back_if_a_volume_cannot_be_made() {
    let Some(cluster) = cluster::shared("no-volumes").await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    storage_class(&cluster).await;
    claims(&cluster, &["data-0", "data-1"]).await;
    let members = gang(&cluster, "train", &["data-0", "data-1"]).await;
    for claim in ["data-0", "data-1"] {
        selected(&cluster, claim).await;
    }
    // The provisioner says that it can make no volume there.
    let none = json!({"metadata": {"annotations": {SELECTED: null}}});
    cluster.merge(&claim_path(&cluster, "data-1"), &none).await;
    // The status may say it for a moment only: the gang is tried once more.
    let message = cluster.event("PodGroup", "train", "BindingFailed").await;
    assert!(message.contains("no volume could be made"), "{message}");
    for claim in ["data-0", "data-1"] {
        selected(&cluster, claim).await;
        provision(&cluster, claim, &cluster.namespace).await;
    }
    cluster.bound(&members).await;
}

#[tokio::test]
async fn an_ephemeral_volume_is_made_for_its_pod_and_bound_claims_choose_the_node() {
    let Some(cluster) = cluster::shared("ephemeral").await else {
        return;
    };
    cluster.nodes(["r1"; 1]).await;
    storage_class(&cluster).await;
    let template = json!({"spec": claim_spec(&cluster.namespace)});
    let patch = json!({"spec": {"volumes": [
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
    ]}});
    cluster.create(&cluster.pod("alone", 1, &patch)).await;
    let node = selected(&cluster, "alone-scratch").await;
    provision(&cluster, "alone-scratch", &cluster.namespace).await;
    assert_eq!(cluster.bound(&["alone".to_owned()]).await, [node]);
    // A claim that is bound to a volume which no node of this test reaches.
    claims(&cluster, &["far"]).await;
    provision(&cluster, "far", "elsewhere").await;
    cluster
        .create(&cluster.pod("other", 1, &with_claim("far")))
        .await;
    let message = cluster.pod_waits("other", "Unschedulable").await;
    assert!(
        message.contains("volume node affinity conflict"),
        "{message}"
    );
}

/// A disk of a node, made by hand, of the test's class.
pub(crate) async fn disk(cluster: &Cluster, node: &str, number: usize) -> String {
    let name = format!("{node}-disk-{number}");
    let terms = json!([{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
    ]}]);
    cluster
        .create(&json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": cluster.namespace, "local": {"path": "/disks"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
        }))
        .await;
    name
}

#[tokio::test]
async fn a_gang_gets_local_disks_that_nobody_else_has() {
    let Some(cluster) = cluster::shared("disks").await else {
        return;
    };
    let [first, second] = cluster.nodes(["r1"; 2]).await;
    cluster
        .create(&json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": cluster.namespace},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }))
        .await;
    claims(&cluster, &["data-0", "data-1", "data-2"]).await;
    let mut disks = vec![
        disk(&cluster, &first, 0).await,
        disk(&cluster, &first, 1).await,
    ];
    cluster.group("train", &json!({"minMember": 3})).await;
    let mut members = Vec::new();
    for number in 0..3 {
        let mut patch = with_claim(&format!("data-{number}"));
        patch["metadata"]["labels"]["gpu-batch.io/pod-group"] = "train".into();
        let member = format!("train-{number}");
        cluster.create(&cluster.pod(&member, 1, &patch)).await;
        members.push(member);
    }
    let waiting = cluster.group_waits("train", "DoesNotFit").await;
    let message = waiting["status"]["message"].as_str().unwrap();
    assert!(message.contains("free volumes of class"), "{message}");
    for disk in &disks {
        let volume = cluster
            .get(&format!("/api/v1/persistentvolumes/{disk}"))
            .await
            .unwrap();
        assert_eq!(volume["spec"].get("claimRef"), None, "{volume:#}");
    }
    disks.push(disk(&cluster, &second, 0).await);
    let mut nodes = cluster.bound(&members).await;
    for (number, node) in nodes.iter().enumerate() {
        let claim = cluster
            .get(&claim_path(&cluster, &format!("data-{number}")))
            .await
            .unwrap();
        let volume = claim["spec"]["volumeName"].as_str().unwrap();
        assert!(
            volume.starts_with(&format!("{node}-disk-")),
            "{volume} on {node}"
        );
        let before = disks.len();
        disks.retain(|disk| disk != volume);
        assert_eq!(disks.len(), before - 1, "{volume} is used once");
    }
    nodes.sort();
    assert_eq!(nodes, [first.clone(), first, second]);
}
