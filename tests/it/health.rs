//! Nodes whose conditions say that their GPUs have failed, on the real control plane.

use std::path::Path;
use std::time::Duration;

use gpu_batch::lab::local::SchedulerProcess;
use serde_json::json;

use crate::cluster::{self, Cluster, stays, until};
use crate::work::ensure;

const HEAD: &str = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
     serveAddress: 127.0.0.1:0\nleaderElection: {enabled: false}\n\
     log: {level: info}\n";

/// How long it is looked at whether something stays as it is.
const A_WHILE: Duration = Duration::from_secs(3);

/// Lets a node show a condition with a status, since now.
async fn show(cluster: &Cluster, node: &str, kind: &str, status: &str) {
    let path = format!("/api/v1/nodes/{node}");
    let object = cluster.get(&path).await.unwrap();
    let mut conditions = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions.retain(|condition| condition["type"] != kind);
    let now = jiff::Timestamp::now();
    conditions.push(json!({
        "type": kind, "status": status, "lastTransitionTime": format!("{now:.0}"),
    }));
    let status = json!({"status": {"conditions": conditions}});
    cluster.merge(&format!("{path}/status"), &status).await;
}

async fn gang(cluster: &Cluster, members: [&str; 2]) -> Vec<String> {
    let label = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "train"}}});
    for member in members {
        cluster.create(&cluster.pod(member, 8, &label)).await;
    }
    members.map(str::to_owned).to_vec()
}

#[tokio::test]
async fn a_gang_on_failed_cards_is_told_evicted_whole_and_starts_elsewhere() {
    let Some(cluster) = cluster::own("health", cluster::SHARED_OPTIONS).await else {
        return;
    };
    cluster.define_kinds().await;
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let scheduler = SchedulerProcess::start(executable, &cluster.kubeconfig, HEAD).unwrap();
    let [first, second] = cluster.nodes(["r1"; 2]).await;
    cluster.group("train", &json!({"minMember": 2})).await;
    let members = gang(&cluster, ["train-0", "train-1"]).await;
    cluster.bound(&members).await;

    // By default a bad condition closes its node, and the gang is told.
    show(&cluster, &first, "GpuMemWatch", "True").await;
    let told = cluster.event("PodGroup", "train", "CardFailed").await;
    let shows = format!("{first} has the condition GpuMemWatch");
    assert!(told.contains(&shows), "{told}");
    stays("the gang is left", A_WHILE, async || {
        cluster.bound(&members).await;
        Ok(())
    })
    .await;

    // A rule evicts, also for what was there before it.
    let rule = "health: {rules: [{condition: GpuMemWatch, action: evict, after: 1s}]}\n";
    scheduler.configure(&format!("{HEAD}{rule}")).unwrap();
    until("both members are evicted", async || {
        for member in &members {
            let pod = cluster.get(&cluster.pod_path(member)).await;
            let leaves = match &pod {
                Ok(pod) => pod["metadata"]["deletionTimestamp"].is_string(),
                Err(_) => true,
            };
            ensure(leaves, pod)?;
        }
        Ok(())
    })
    .await;
    let log = scheduler.log();
    assert!(
        log.contains("its gang runs on a node of which GPUs have failed"),
        "{log}"
    );

    // The owner makes the pods anew. They wait, and say for what, until there is another node.
    let members = gang(&cluster, ["train-2", "train-3"]).await;
    let waiting = cluster.group_waits("train", "DoesNotFit").await;
    let message = waiting["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("1 had the condition GpuMemWatch"),
        "{message}"
    );
    let third = cluster.node("third", "r1");
    let expected = [second, third.name.clone()];
    cluster.add_node(third).await;
    let mut nodes = cluster.bound(&members).await;
    nodes.sort();
    assert_eq!(nodes, expected);
}
