//! What others do to the same pods and nodes.

use serde_json::{Value, json};

use crate::cluster::{self, until};
use crate::work::{condition, ensure};

#[tokio::test]
async fn pods_of_other_schedulers_take_room_and_give_it_back() {
    let Some(cluster) = cluster::shared("foreign").await else {
        return;
    };
    let [node] = cluster.nodes(["r1"]).await;
    let foreign = json!({"spec": {"schedulerName": "other", "nodeName": node}});
    cluster.create(&cluster.pod("foreign", 6, &foreign)).await;
    cluster.group("train", &json!({"minMember": 2})).await;
    let pods = cluster.members("train", 2, 2, &json!({})).await;
    let group = cluster.group_waits("train", "DoesNotFit").await;
    let message = condition(&group, "PodGroupScheduled")["message"].to_string();
    assert!(message.contains("there is room for 1"), "{message}");
    cluster.delete(&cluster.pod_path("foreign")).await;
    cluster.bound(&pods).await;
}

#[tokio::test]
async fn a_pod_that_somebody_else_binds_counts_where_it_is() {
    let Some(cluster) = cluster::shared("rival").await else {
        return;
    };
    let [node] = cluster.nodes(["r1"]).await;
    cluster.group("train", &json!({"minMember": 2})).await;
    let pods = cluster.members("train", 1, 4, &json!({})).await;
    cluster.group_waits("train", "WaitingForMembers").await;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pods[0]},
        "target": {"kind": "Node", "name": node},
    });
    let path = format!("{}/binding", cluster.pod_path(&pods[0]));
    let request = http::Request::post(path).body(serde_json::to_vec(&binding).unwrap());
    cluster.send(request.unwrap()).await.unwrap();
    let label = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "train"}}});
    // It takes the last room: the pod that was bound by another counts for the gang and the node.
    cluster.create(&cluster.pod("train-1", 4, &label)).await;
    cluster.bound(&["train-1".to_owned()]).await;
    cluster
        .group_when("train", |status| status["members"]["bound"] == 2)
        .await;
    cluster.create(&cluster.pod("late", 1, &json!({}))).await;
    cluster.pod_waits("late", "Unschedulable").await;
}

#[tokio::test]
async fn a_node_that_is_deleted_and_made_again_starts_with_all_its_room() {
    let Some(cluster) = cluster::shared("remade").await else {
        return;
    };
    let [node] = cluster.nodes(["r1"]).await;
    cluster.create(&cluster.pod("before", 8, &json!({}))).await;
    cluster.bound(&["before".to_owned()]).await;
    cluster.create(&cluster.pod("after", 8, &json!({}))).await;
    cluster.pod_waits("after", "Unschedulable").await;
    cluster.delete(&format!("/api/v1/nodes/{node}")).await;
    cluster.delete(&cluster.pod_path("before")).await;
    let message = until("no node", async || {
        let pod = cluster.get(&cluster.pod_path("after")).await?;
        let message = condition(&pod, "PodScheduled")["message"].clone();
        ensure(pod["spec"]["nodeName"].is_null(), &pod)?;
        Ok(message)
    })
    .await;
    assert!(message.is_string());
    cluster.add_node(cluster.node("n1", "r1")).await;
    assert_eq!(cluster.bound(&["after".to_owned()]).await, [node]);
}

#[tokio::test]
async fn a_pod_that_its_kubelet_refuses_gives_its_room_back_and_is_replaced() {
    let Some(cluster) = cluster::shared("refused").await else {
        return;
    };
    // Without the annotation for kwok: the test is the kubelet.
    let mut node = cluster.node("n1", "r1").object();
    node["metadata"]["annotations"] = json!({});
    cluster.create(&node).await;
    cluster.group("train", &json!({"minMember": 2})).await;
    let pods = cluster.members("train", 2, 4, &json!({})).await;
    cluster.bound(&pods).await;
    cluster.set_phase(&pods[0], "Failed").await;
    let group = cluster
        .group_when("train", |status| status["members"]["failed"] == 1)
        .await;
    assert_eq!(group["status"]["members"]["bound"], 1);
    let label = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "train"}}});
    cluster.create(&cluster.pod("train-2", 4, &label)).await;
    cluster.bound(&["train-2".to_owned()]).await;
    let group = cluster
        .group_when("train", |status| status["members"]["bound"] == 2)
        .await;
    assert_eq!(group["status"]["phase"], "Running");
    for pod in ["train-1", "train-2"] {
        cluster.set_phase(pod, "Succeeded").await;
    }
    let group = cluster
        .group_when("train", |status| status["members"]["succeeded"] == 2)
        .await;
    // All have ended and one of them failed.
    assert_eq!(group["status"]["phase"], "Failed");
    assert_eq!(group["status"]["reason"], Value::Null);
}
