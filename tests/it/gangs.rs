//! Gangs start whole, near each other, and wait whole.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{self, stays, until};
use crate::work::{condition, ensure};

#[tokio::test]
async fn a_gang_starts_whole_and_its_user_sees_it() {
    let Some(cluster) = cluster::shared("whole").await else {
        return;
    };
    let nodes = cluster.nodes(["r1", "r1"]).await;
    cluster.group("train", &json!({"minMember": 3})).await;
    let pods = cluster.members("train", 3, 4, &json!({})).await;
    let mut used = cluster.bound(&pods).await;
    used.sort();
    used.dedup();
    assert_eq!(used, nodes, "3 pods of 4 GPUs need both nodes");

    let first = cluster.get(&cluster.pod_path(&pods[0])).await.unwrap();
    let annotations = &first["metadata"]["annotations"];
    assert_eq!(annotations["gpu-batch.io/bound-queue"], "default");
    assert_eq!(annotations["gpu-batch.io/bound-podgroup"], "train");
    let event = cluster.event("Pod", &pods[0], "Scheduled").await;
    assert!(
        event.contains(&used[0]) || event.contains(&used[1]),
        "{event}"
    );

    let group = cluster
        .group_when("train", |status| status["members"]["running"] == 3)
        .await;
    let members = json!({
        "expected": 3, "created": 3, "bound": 3, "running": 3, "succeeded": 0, "failed": 0,
    });
    assert_eq!(group["status"]["members"], members);
    assert_eq!(group["status"]["phase"], "Running");
    assert_eq!(group["status"]["reason"], Value::Null);
    let scheduled = condition(&group, "PodGroupScheduled");
    assert_eq!(scheduled["status"], "True");
    assert!(scheduled["lastTransitionTime"].is_string());
    assert_eq!(scheduled["observedGeneration"], 1);

    let table = cluster.kubectl(&["get", "gpg", "-n", "whole"]).await;
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let lines: Vec<_> = table.lines().map(words).collect();
    assert_eq!(
        lines[0],
        [
            "NAME",
            "QUEUE",
            "PHASE",
            "MIN",
            "BOUND",
            "RUNNING",
            "REASON",
            "ESTIMATED",
            "START",
            "AGE"
        ]
    );
    assert_eq!(lines[1][..5], ["train", "Running", "3", "3", "3"]);
}

#[tokio::test]
async fn a_gang_that_does_not_fit_stays_unbound_until_a_node_is_added() {
    let Some(cluster) = cluster::shared("grows").await else {
        return;
    };
    cluster.nodes(["r1", "r1"]).await;
    cluster.group("train", &json!({"minMember": 3})).await;
    let pods = cluster.members("train", 3, 8, &json!({})).await;
    let group = cluster.group_waits("train", "DoesNotFit").await;
    let message = condition(&group, "PodGroupScheduled")["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.starts_with("3 members with 8 nvidia.com/gpu each do not fit"),
        "{message}"
    );
    assert!(message.contains("there is room for 2"), "{message}");
    // The column of the wide table.
    assert_eq!(group["status"]["message"], message);
    // Other tests add nodes of their own meanwhile, which the end of the message counts.
    let without_nodes = |message: &str| message.split("; of ").next().unwrap().to_owned();
    let message = without_nodes(message);
    for pod in &pods {
        let said = cluster.pod_waits(pod, "Unschedulable").await;
        assert_eq!(without_nodes(&said), format!("DoesNotFit: {message}"));
    }
    let event = cluster.event("PodGroup", "train", "DoesNotFit").await;
    assert_eq!(without_nodes(&event), message);
    cluster.none_bound(&pods).await.unwrap();

    cluster.add_node(cluster.node("n3", "r1")).await;
    cluster.bound(&pods).await;
    let running = cluster
        .group_when("train", |status| status["phase"] == "Running")
        .await;
    assert_eq!(running["status"]["reason"], Value::Null);
}

#[tokio::test]
async fn a_gang_stays_in_one_rack_if_it_must_and_packs_the_fuller_rack() {
    let Some(cluster) = cluster::shared("racks").await else {
        return;
    };
    let nodes = cluster.nodes(["a", "a", "b", "b", "b"]).await;
    cluster.racks("racks").await;
    let topology = json!({"name": "racks", "required": "rack"});
    let spec = |count: u32| json!({"minMember": count, "topology": topology});
    cluster.group("two", &spec(2)).await;
    let two = cluster.members("two", 2, 8, &json!({})).await;
    let mut used = cluster.bound(&two).await;
    used.sort();
    assert_eq!(
        used,
        nodes[..2],
        "the rack that it fills; the larger one stays whole"
    );

    cluster.group("four", &spec(4)).await;
    let four = cluster.members("four", 4, 8, &json!({})).await;
    let group = cluster.group_waits("four", "DoesNotFit").await;
    let message = condition(&group, "PodGroupScheduled")["message"].to_string();
    assert!(message.contains("in one rack"), "{message}");
    cluster.none_bound(&four).await.unwrap();

    cluster.group("three", &spec(3)).await;
    let three = cluster.members("three", 3, 8, &json!({})).await;
    let mut used = cluster.bound(&three).await;
    used.sort();
    assert_eq!(used, nodes[2..]);
}

#[tokio::test]
async fn small_pods_are_packed_and_surplus_members_follow_the_minimum() {
    let Some(cluster) = cluster::shared("packed").await else {
        return;
    };
    cluster.nodes(["a", "a", "a"]).await;
    cluster.group("elastic", &json!({"minMember": 2})).await;
    let pods = cluster.members("elastic", 8, 1, &json!({})).await;
    let mut used = cluster.bound(&pods).await;
    used.dedup();
    assert_eq!(used.len(), 1, "8 pods of 1 GPU fill one node: {used:?}");

    cluster.group("more", &json!({"minMember": 2})).await;
    let more = cluster.members("more", 4, 8, &json!({})).await;
    let group = cluster
        .group_when("more", |status| status["members"]["bound"] == 2)
        .await;
    assert_eq!(group["status"]["phase"], "Running");
    let mut waiting = Vec::new();
    for pod in &more {
        if cluster.node_of(pod).await.is_none() {
            waiting.push(pod.clone());
        }
    }
    assert_eq!(waiting.len(), 2);
    let message = cluster.pod_waits(&waiting[0], "Unschedulable").await;
    assert!(message.contains("1 more member"), "{message}");
}

#[tokio::test]
async fn a_replacement_joins_the_rack_of_its_gang() {
    let Some(cluster) = cluster::shared("replaces").await else {
        return;
    };
    cluster.nodes(["a", "a", "b", "b", "b"]).await;
    cluster.racks("replaces").await;
    let spec = json!({
        "minMember": 2,
        "topology": {"name": "replaces", "required": "rack"},
        "stalenessGracePeriod": "-1s",
    });
    cluster.group("train", &spec).await;
    let pods = cluster.members("train", 2, 8, &json!({})).await;
    cluster.bound(&pods).await;
    // The free nodes of the other rack tempt the replacement; a cordon keeps it waiting first.
    // Nodes and pods are watched apart, so the cordon comes long before the pod that it keeps.
    let free = cluster.node_of(&pods[0]).await.unwrap();
    let cordon = |on: bool| json!({"spec": {"unschedulable": on}});
    let path = format!("/api/v1/nodes/{free}");
    cluster.merge(&path, &cordon(true)).await;
    cluster.delete(&cluster.pod_path(&pods[0])).await;
    let group = cluster
        .group_when("train", |status| status["members"]["created"] == 1)
        .await;
    let stale = condition(&group, "Stale");
    assert_eq!(stale["status"], "True", "{group:#}");

    let replacement = vec!["train-new".to_owned()];
    let label = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "train"}}});
    cluster.create(&cluster.pod("train-new", 8, &label)).await;
    let message = cluster.pod_waits("train-new", "Unschedulable").await;
    assert!(
        message.contains("in the rack of the members that run"),
        "{message}"
    );
    cluster.none_bound(&replacement).await.unwrap();

    cluster.merge(&path, &cordon(false)).await;
    assert_eq!(cluster.bound(&replacement).await.concat(), free);
}

#[tokio::test]
async fn a_stale_gang_is_evicted_whole_and_respects_disruption_budgets() {
    let Some(cluster) = cluster::shared("stale").await else {
        return;
    };
    cluster.nodes(["a"]).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "train"}}},
    });
    cluster.create(&budget).await;
    let spec = json!({"minMember": 4, "stalenessGracePeriod": "1s"});
    cluster.group("train", &spec).await;
    let label = json!({"metadata": {"labels": {"app": "train"}}});
    let pods = cluster.members("train", 4, 1, &label).await;
    cluster.bound(&pods).await;
    cluster
        .group_when("train", |status| status["members"]["running"] == 4)
        .await;
    cluster.delete(&cluster.pod_path(&pods[0])).await;
    let budgets = "/apis/policy/v1/namespaces/stale/poddisruptionbudgets/all";
    // Three are left, which the budget wants.
    stays("the budget holds", Duration::from_secs(3), async || {
        for pod in &pods[1..] {
            cluster.get(&cluster.pod_path(pod)).await?;
        }
        Ok(())
    })
    .await;
    cluster.delete(budgets).await;
    for pod in &pods[1..] {
        until("eviction", async || {
            let pod = cluster.get(&cluster.pod_path(pod)).await;
            ensure(pod.is_err(), pod)
        })
        .await;
    }
    let group = cluster
        .group_when("train", |status| status["members"]["created"] == 0)
        .await;
    assert_eq!(group["status"]["reason"], "WaitingForMembers");
}
