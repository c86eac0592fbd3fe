//! What a scheduler that starts anew makes of the gangs that run.

use std::time::{Duration, Instant};

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use crate::cluster::{self, stays, until};
use crate::work::{condition, ensure};

/// The grace period of the gang that loses a member, and how much of it passes before the restart.
const GRACE: Duration = Duration::from_secs(20);
const BEFORE: Duration = Duration::from_secs(14);

#[tokio::test]
async fn a_raised_minimum_evicts_nobody_after_a_restart_and_a_loss_counts_from_its_time() {
    let Some(cluster) = cluster::own("restarts", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster.nodes(["a", "a", "a"]).await;
    let scheduler = cluster.scheduler("").await;
    let spec = json!({"minMember": 3, "stalenessGracePeriod": "1s"});
    cluster.group("raised", &spec).await;
    let raised = cluster.members("raised", 3, 5, &json!({})).await;
    let spec = json!({"minMember": 2, "stalenessGracePeriod": format!("{}s", GRACE.as_secs())});
    cluster.group("bereaved", &spec).await;
    let bereaved = cluster.members("bereaved", 2, 3, &json!({})).await;
    cluster.bound(&raised).await;
    cluster.bound(&bereaved).await;
    let first = cluster.get(&cluster.pod_path(&raised[0])).await.unwrap();
    let annotations = &first["metadata"]["annotations"];
    assert_eq!(annotations["gpu-batch.io/bound-minimum"], "3");
    let sound = |status: &Value| status["phase"] == "Running";
    let group = cluster.group_when("raised", sound).await;
    assert_eq!(condition(&group, "Stale")["status"], "False");

    let lost = Instant::now();
    cluster.delete(&cluster.pod_path(&bereaved[0])).await;
    let group = cluster
        .group_when("bereaved", |status| status["phase"] == "Pending")
        .await;
    let stale = condition(&group, "Stale").clone();
    assert_eq!(stale["status"], "True");
    tokio::time::sleep(BEFORE).await;

    scheduler.stop().await.unwrap();
    let more = json!({"spec": {"minMember": 5}});
    cluster.merge(&cluster.group_path("raised"), &more).await;
    for name in ["raised-3", "raised-4"] {
        let label = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "raised"}}});
        cluster.create(&cluster.pod(name, 5, &label)).await;
    }
    let _successor = cluster.scheduler("").await;
    let restarted = Instant::now();
    let group = cluster
        .group_when("raised", |status| status["members"]["expected"] == 5)
        .await;
    assert_eq!(group["status"]["phase"], "Pending");
    assert_eq!(condition(&group, "Stale")["status"], "False");
    let group = cluster.get(&cluster.group_path("bereaved")).await.unwrap();
    assert_eq!(condition(&group, "Stale"), &stale);
    until("the eviction of what is left", async || {
        let pod = cluster.get(&cluster.pod_path(&bereaved[1])).await;
        ensure(pod.is_err(), pod)
    })
    .await;
    assert!(lost.elapsed() >= GRACE, "{:?}", lost.elapsed());
    assert!(restarted.elapsed() < BEFORE, "{:?}", restarted.elapsed());
    stays(
        "the raised gang runs on",
        Duration::from_secs(3),
        async || {
            for pod in &raised {
                cluster.get(&cluster.pod_path(pod)).await?;
            }
            Ok(())
        },
    )
    .await;
}
