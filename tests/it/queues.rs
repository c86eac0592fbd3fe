//! Queues divide the cluster, and their status says how.

use std::time::Duration;

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::{condition, ensure};

impl Cluster {
    /// Waits until the status of a queue is as wanted, and returns the queue.
    async fn queue_when(&self, name: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let path = format!("/apis/gpu-batch.io/v1alpha1/queues/{name}");
        until(name, async || {
            let queue = self.get(&path).await?;
            ensure(wanted(&queue), &queue["status"])?;
            Ok(queue)
        })
        .await
    }
}

#[tokio::test]
async fn sibling_queues_share_by_weight_and_their_status_says_so() {
    let Some(cluster) = cluster::own("queues", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster.nodes(["r1", "r1"]).await;
    let weight = |weight: u32| {
        let resources = json!([{"name": "nvidia.com/gpu", "weight": weight}]);
        json!({"parent": "research", "resources": resources})
    };
    cluster.queue("research", &json!({})).await;
    cluster.queue("vision", &weight(3)).await;
    cluster.queue("speech", &weight(1)).await;
    for queue in ["vision", "speech"] {
        let label = json!({"metadata": {"labels": {"gpu-batch.io/queue": queue}}});
        for number in 0..16 {
            let pod = cluster.pod(&format!("{queue}-{number}"), 1, &label);
            cluster.create(&pod).await;
        }
    }
    // All are there when the scheduler begins, so that the shares are what it decides by.
    let scheduler = cluster.scheduler("").await;
    for (queue, share, dominant) in [("vision", 12, "0.75"), ("speech", 4, "0.25")] {
        let found = cluster
            .queue_when(queue, |found| {
                found["status"]["podGroups"] == json!({"pending": 16 - share, "running": share})
            })
            .await;
        let status = &found["status"];
        let gpus = |field: &str| status[field]["nvidia.com/gpu"].clone();
        assert_eq!(gpus("allocated"), share.to_string(), "{status:#}");
        assert_eq!(gpus("fairShare"), share.to_string(), "{status:#}");
        assert_eq!(gpus("requested"), "16", "{status:#}");
        assert_eq!(status["dominantShare"], dominant, "{status:#}");
        let ready = condition(&found, "Ready");
        assert_eq!(
            (&ready["status"], &ready["reason"]),
            (&json!("True"), &json!("Ready"))
        );
    }
    let parent = cluster
        .queue_when("research", |found| {
            found["status"]["podGroups"] == json!({"pending": 16, "running": 16})
        })
        .await;
    assert_eq!(parent["status"]["allocated"]["nvidia.com/gpu"], "16");
    let table = cluster.kubectl(&["get", "gq"]).await;
    assert!(table.lines().count() == 4, "{table}");
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
    broken_queues(&cluster).await;
}

/// Queues that cannot be used say why, and their siblings do not mind.
async fn broken_queues(cluster: &Cluster) {
    cluster.queue("orphan", &json!({"parent": "nobody"})).await;
    cluster.queue("hen", &json!({"parent": "egg"})).await;
    cluster.queue("egg", &json!({"parent": "hen"})).await;
    for (queue, reason) in [
        ("orphan", "ParentNotFound"),
        ("hen", "Cycle"),
        ("egg", "Cycle"),
        ("speech", "Ready"),
    ] {
        let found = cluster
            .queue_when(queue, |found| condition(found, "Ready")["reason"] == reason)
            .await;
        let ready = if reason == "Ready" { "True" } else { "False" };
        assert_eq!(condition(&found, "Ready")["status"], ready);
    }
    // The share of a queue that works is free again and taken by the one that waits for it.
    for number in 0..16 {
        let path = cluster.pod_path(&format!("vision-{number}"));
        cluster.delete(&path).await;
    }
    let found = cluster
        .queue_when("speech", |found| {
            found["status"]["podGroups"]["running"] == 16
        })
        .await;
    assert_eq!(found["status"]["allocated"]["nvidia.com/gpu"], "16");
    assert_eq!(found["status"]["dominantShare"], "1");
}

/// Two schedulers of different names see all queues and groups, and each tells of those that pods
/// of its own use.
#[tokio::test]
async fn schedulers_of_two_names_leave_the_statuses_of_each_other_alone() {
    let Some(cluster) = cluster::own("names", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster.nodes(["r1", "r1"]).await;
    let _day = cluster.scheduler("").await;
    let _night = cluster.scheduler("schedulerName: night-shift\n").await;
    let sides = [("day", "gpu-batch"), ("night", "night-shift")];
    let mut watched = Vec::new();
    for (name, scheduler) in sides {
        cluster.queue(name, &json!({})).await;
        let spec = json!({"minMember": 2, "queue": name});
        cluster.group(name, &spec).await;
        let patch = json!({"spec": {"schedulerName": scheduler}});
        let pods = cluster.members(name, 2, 1, &patch).await;
        cluster.bound(&pods).await;
        watched.push(format!("/apis/gpu-batch.io/v1alpha1/queues/{name}"));
        watched.push(cluster.group_path(name));
    }
    for (number, path) in watched.iter().enumerate() {
        let (_, scheduler) = sides[number / 2];
        until(path, async || {
            let status = &cluster.get(path).await?["status"];
            let is_running = status["podGroups"]["running"] == 1 || status["phase"] == "Running";
            ensure(is_running && status["scheduler"] == scheduler, status)
        })
        .await;
    }
    let versions = async || {
        let mut versions = Vec::new();
        for path in &watched {
            let object = cluster.get(path).await?;
            versions.push(object["metadata"]["resourceVersion"].clone());
        }
        Ok::<_, String>(versions)
    };
    until("nobody writes any more", async || {
        let before = versions().await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let after = versions().await?;
        ensure(before == after, (before, after))
    })
    .await;
}
