//! NUMA nodes on the real control plane: the kind is defined while the scheduler runs, and pods go
//! where a kubelet could align them. No kubelet runs here; the tests are the exporter.

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::ensure;

const KINDS: &str = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

/// Defines the kind as exporters bring it, without a schema of what is in it.
pub(crate) async fn define(cluster: &Cluster) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    cluster
        .create(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": "noderesourcetopologies.topology.node.k8s.io",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": "topology.node.k8s.io", "scope": "Cluster",
                "names": {
                    "kind": "NodeResourceTopology", "listKind": "NodeResourceTopologyList",
                    "plural": "noderesourcetopologies", "singular": "noderesourcetopology",
                },
                "versions": [{"name": "v1alpha2", "served": true, "storage": true,
                              "schema": {"openAPIV3Schema": schema}}],
            },
        }))
        .await;
    until("the kind", async || cluster.list(KINDS).await.map(drop)).await;
}

/// What an exporter says of a node with two NUMA nodes of four GPUs, and so many free in each.
pub(crate) fn exported(node: &str, policy: &str, free: [u32; 2]) -> Value {
    let zone = |(number, free): (usize, u32)| {
        json!({"name": format!("node-{number}"), "type": "Node", "resources": [
            {"name": "nvidia.com/gpu", "capacity": "4", "allocatable": "4",
             "available": free.to_string()}]})
    };
    json!({
        "apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "attributes": [{"name": "topologyManagerPolicy", "value": policy},
                       {"name": "topologyManagerScope", "value": "container"}],
        "zones": free.into_iter().enumerate().map(zone).collect::<Vec<_>>(),
    })
}

#[tokio::test]
async fn a_gang_goes_to_the_node_whose_numa_nodes_have_room() {
    let Some(cluster) = cluster::own("numa", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    let [split, whole] = cluster.nodes(["r1"; 2]).await;
    let _scheduler = cluster.scheduler("").await;
    define(&cluster).await;
    let policy = "single-numa-node";
    cluster.create(&exported(&split, policy, [2, 2])).await;
    cluster.create(&exported(&whole, policy, [4, 4])).await;
    // Once this one is told of, the others are known.
    let wrong = format!("{split}-wrong");
    cluster.create(&exported(&wrong, "strict", [4, 4])).await;
    // Events about objects without a namespace are here.
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    until("the event", async || {
        let events = cluster.list(events).await?;
        let told = events.iter().find(|it| it["regarding"]["name"] == *wrong);
        let told = told.ok_or("no event")?;
        let note = told["note"].as_str().unwrap_or_default();
        ensure(
            told["reason"] == "InvalidSpec" && note.contains("attributes[0].value"),
            told,
        )
    })
    .await;

    cluster.group("train", &json!({"minMember": 2})).await;
    let members = cluster.members("train", 2, 4, &json!({})).await;
    assert_eq!(cluster.bound(&members).await, [whole.clone(), whole]);
    cluster.create(&cluster.pod("late", 4, &json!({}))).await;
    let message = cluster.pod_waits("late", "Unschedulable").await;
    let refusal = "didn't have 4 nvidia.com/gpu free in a single NUMA node";
    assert!(message.contains(refusal), "{message}");

    let path = format!("{KINDS}/{split}");
    cluster
        .merge(&path, &exported(&split, policy, [0, 4]))
        .await;
    assert_eq!(cluster.bound(&["late".to_owned()]).await, [split]);
}
