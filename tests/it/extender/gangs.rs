//! Gangs of pods that the real kube-scheduler binds: gpu-batch plans them, and lifts their gate.

use gpu_batch::lab::local::Program;
use serde_json::{Value, json};

use super::{begin, is_refused, limited, pod, process};
use crate::cluster::{Cluster, stays, until};
use crate::work::{ensure, patched};

const GATE: &str = "gpu-batch.io/gang";

/// Creates a gang of so many pods of kube-scheduler, each of which needs a whole node.
async fn gang(cluster: &Cluster, name: &str, count: u32, patch: &Value) -> Vec<String> {
    let spec = json!({"minMember": count, "queue": cluster.namespace});
    cluster.group(name, &spec).await;
    let mut members = Vec::new();
    for number in 0..count {
        let label = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": name}}});
        let (name, patch) = (format!("{name}-{number}"), patched(label, patch));
        members.push(pod(cluster, &name, 8, &patch).await);
    }
    members
}

fn gated() -> Value {
    json!({"spec": {"schedulingGates": [{"name": GATE}]}})
}

fn has_gate(pod: &Value) -> bool {
    let gates = pod["spec"]["schedulingGates"].as_array();
    gates.is_some_and(|gates| gates.iter().any(|gate| gate["name"] == GATE))
}

/// The node that was chosen for a pod, once its gate is lifted.
async fn planned(cluster: &Cluster, name: &str) -> String {
    until(name, async || {
        let pod = cluster.get(&cluster.pod_path(name)).await?;
        ensure(!has_gate(&pod), &pod["metadata"])?;
        let node = &pod["metadata"]["annotations"]["gpu-batch.io/planned-node"];
        Ok(node.as_str().unwrap().to_owned())
    })
    .await
}

async fn cordon(cluster: &Cluster, node: &str, is_cordoned: bool) {
    let path = format!("/api/v1/nodes/{node}");
    let spec = json!({"spec": {"unschedulable": is_cordoned}});
    cluster.merge(&path, &spec).await;
}

/// Creates the policy that gives pods the gate, for those of this test, and waits until it holds.
async fn apply_gate_policy(cluster: &Cluster) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/gang-gate/policy.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    for object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
        cluster.create(&object).await;
    }
    until("the policy", async || {
        pod(cluster, "probe", 1, &json!({})).await;
        let probe = cluster.get(&cluster.pod_path("probe")).await?;
        cluster.delete(&cluster.pod_path("probe")).await;
        ensure(has_gate(&probe), &probe["spec"])
    })
    .await;
}

#[tokio::test]
async fn a_gated_gang_is_placed_together_or_not_at_all() {
    let Some((cluster, extender)) = begin("gated", false).await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    limited(&cluster, 64).await;
    apply_gate_policy(&cluster).await;
    let scheduler = cluster.scheduler(&extender).await;
    // The policy gives them the gate.
    let members = gang(&cluster, "train", 3, &json!({})).await;
    cluster.group_waits("train", "DoesNotFit").await;
    cluster.pod_waits("train-0", "Unschedulable").await;
    stays("all gates", super::A_WHILE, async || {
        for member in &members {
            let pod = cluster.get(&cluster.pod_path(member)).await?;
            ensure(has_gate(&pod) && pod["spec"]["nodeName"].is_null(), &pod)?;
        }
        Ok(())
    })
    .await;
    cluster.add_node(cluster.node("n3", "r1")).await;
    let mut nodes = cluster.bound(&members).await;
    for (member, node) in members.iter().zip(&nodes) {
        assert_eq!(planned(&cluster, member).await, *node);
    }
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 3);
    cluster
        .group_when("train", |status| status["phase"] == "Running")
        .await;
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// While kube-scheduler stands still, the gates are lifted and a node is cordoned: kube-scheduler
/// binds one member, and cannot bind the other.
#[tokio::test]
async fn a_gang_of_which_kube_scheduler_refuses_a_member_is_unwound() {
    let Some((mut cluster, extender)) = begin("unwound", false).await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    limited(&cluster, 64).await;
    let scheduler = cluster.scheduler(&extender).await;
    cluster.control_plane().pause(Program::KubeScheduler);
    let members = gang(&cluster, "train", 2, &gated()).await;
    planned(&cluster, &members[0]).await;
    let lost = planned(&cluster, &members[1]).await;
    cordon(&cluster, &lost, true).await;
    cluster.control_plane().resume(Program::KubeScheduler);
    cluster.bound(&members[..1]).await;
    is_refused(&cluster, &members[1], "were unschedulable").await;
    // For 30 s kube-scheduler may still ask, and the gang is unwound a second later.
    until("the eviction", async || {
        let pod = cluster.get(&cluster.pod_path(&members[0])).await;
        ensure(pod.is_err(), pod)
    })
    .await;
    cluster.none_bound(&members[1..]).await.unwrap();
    is_refused(&cluster, &members[1], "no place for the pod's gang now").await;
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// A new process knows by the annotation that it had planned the pod that is left, which
/// kube-scheduler looks at already.
#[tokio::test]
async fn a_gang_that_was_offered_and_bound_in_part_is_completed_after_a_restart() {
    let Some((mut cluster, extender)) = begin("restarted", false).await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    limited(&cluster, 64).await;
    let old = process(&cluster, &extender).await;
    cluster.control_plane().pause(Program::KubeScheduler);
    let members = gang(&cluster, "train", 2, &gated()).await;
    planned(&cluster, &members[0]).await;
    let left = planned(&cluster, &members[1]).await;
    cordon(&cluster, &left, true).await;
    cluster.control_plane().resume(Program::KubeScheduler);
    cluster.bound(&members[..1]).await;
    // The process is killed.
    drop(old);
    cluster.none_bound(&members[1..]).await.unwrap();
    cordon(&cluster, &left, false).await;
    cluster.add_node(cluster.node("n3", "r1")).await;
    let _new = process(&cluster, &extender).await;
    let node = cluster.bound(&members[1..]).await;
    assert_eq!(node, [planned(&cluster, &members[1]).await]);
    cluster
        .group_when("train", |status| status["phase"] == "Running")
        .await;
    let first = cluster.get(&cluster.pod_path(&members[0])).await;
    assert!(first.is_ok(), "the member that was bound is still there");
}
