//! The definitions of the custom resources come and go while the scheduler runs.

use gpu_batch::lab::local::Options;
use serde_json::json;

use crate::cluster::{self, until};
use crate::work::ensure;

#[tokio::test]
async fn definitions_may_come_after_the_scheduler_and_go_while_it_runs() {
    let Some(cluster) = cluster::own("late", Options::default()).await else {
        return;
    };
    cluster.nodes(["r1", "r1"]).await;
    let scheduler = cluster.scheduler("").await;
    // Without any definition, pods without a group go to the queue `default`.
    cluster.create(&cluster.pod("single", 1, &json!({}))).await;
    cluster.bound(&["single".to_owned()]).await;
    let early = cluster.members("train", 2, 2, &json!({})).await;
    cluster.pod_waits(&early[0], "PodGroupNotFound").await;

    cluster.define_kinds().await;
    let limit = json!({"resources": [{"name": "nvidia.com/gpu", "limit": "6"}]});
    cluster.queue("team", &limit).await;
    let spec = json!({"minMember": 2, "queue": "team"});
    cluster.group("train", &spec).await;
    cluster.bound(&early).await;

    let definition = |plural: &str| {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.gpu-batch.io")
    };
    for plural in ["queues", "podgroups", "topologies"] {
        cluster.delete(&definition(plural)).await;
    }
    for plural in ["queues", "podgroups", "topologies"] {
        until("deletion", async || {
            let found = cluster.get(&definition(plural)).await;
            ensure(found.is_err(), found)
        })
        .await;
    }
    let label = json!({"metadata": {"labels": {"gpu-batch.io/queue": "team"}}});
    until("the queue is gone", async || {
        let reports = scheduler.reports().await.unwrap();
        ensure(
            reports.queues.iter().all(|queue| &*queue.name != "team"),
            &reports.queues,
        )
    })
    .await;
    cluster.create(&cluster.pod("orphan", 2, &label)).await;
    cluster.pod_waits("orphan", "QueueNotFound").await;
    // The bound pods run on and keep their room: 16 - 1 - 4.
    cluster.create(&cluster.pod("whole", 8, &json!({}))).await;
    cluster.bound(&["whole".to_owned()]).await;
    cluster.create(&cluster.pod("half", 4, &json!({}))).await;
    cluster.pod_waits("half", "Unschedulable").await;

    cluster.define_kinds().await;
    cluster.queue("team", &limit).await;
    cluster.group("train", &spec).await;
    cluster.bound(&["orphan".to_owned()]).await;
    // The pods that were bound for the queue count in it again: 4 + 2 of 6.
    cluster.create(&cluster.pod("over", 1, &label)).await;
    cluster.pod_waits("over", "OverLimit").await;
    cluster
        .group_when("train", |status| status["members"]["bound"] == 2)
        .await;
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
    scheduler.stop().await.unwrap();
}
