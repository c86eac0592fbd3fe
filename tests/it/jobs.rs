//! Jobs of the real controller manager, without any PodGroup.

use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::{ensure, patched};

impl Cluster {
    /// A Job of so many pods with so many GPUs, changed by a merge patch.
    pub(crate) async fn job(&self, name: &str, pods: u32, gpus: u32, patch: &Value) {
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {
                "completions": pods,
                "parallelism": pods,
                "template": {"spec": self.pod_template(gpus)},
            },
        });
        self.create(&patched(job, patch)).await;
    }

    /// Waits until a Job has so many pods that `count`; returns them.
    pub(crate) async fn job_pods(
        &self,
        job: &str,
        wanted: usize,
        count: impl Fn(&Value) -> bool,
    ) -> Vec<Value> {
        let path = format!(
            "/api/v1/namespaces/{}/pods?labelSelector=job-name%3D{job}",
            self.namespace
        );
        until(&format!("{wanted} pods of Job {job}"), async || {
            let mut pods = self.list(&path).await?;
            pods.retain(&count);
            let statuses: Vec<_> = pods.iter().map(|pod| &pod["status"]).collect();
            ensure(pods.len() == wanted, statuses)?;
            Ok(pods)
        })
        .await
    }

    /// Waits until a Job has one pod on a node that is none of these; returns it.
    async fn replacement(&self, job: &str, before: &[Value]) -> Value {
        let new = |pod: &Value| {
            let mut before = before.iter().map(name_of);
            is_bound(pod) && before.all(|before| before != name_of(pod))
        };
        self.job_pods(job, 1, new).await.remove(0)
    }
}

fn is_bound(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string()
}

fn name_of(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap()
}

#[tokio::test]
async fn an_indexed_job_is_a_gang_and_its_pods_and_events_say_why_it_waits() {
    let Some(cluster) = cluster::shared("indexed").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    let indexed = json!({"spec": {"completionMode": "Indexed"}});
    cluster.job("train", 3, 4, &indexed).await;
    let pods = cluster.job_pods("train", 3, |_| true).await;
    for pod in &pods {
        let said = cluster.pod_waits(name_of(pod), "Unschedulable").await;
        assert!(
            said.starts_with("DoesNotFit: 3 members with 4 nvidia.com/gpu"),
            "{said}"
        );
    }
    let event = cluster.event("Job", "train", "DoesNotFit").await;
    assert!(event.starts_with("3 members"), "{event}");
    cluster.job_pods("train", 0, is_bound).await;
    cluster.add_node(cluster.node("n2", "r1")).await;
    let pods = cluster.job_pods("train", 3, is_bound).await;
    let annotations = &pods[0]["metadata"]["annotations"];
    assert_eq!(annotations["gpu-batch.io/bound-queue"], "default");
    assert_eq!(annotations["gpu-batch.io/bound-podgroup"], Value::Null);
}

#[tokio::test]
async fn the_pods_of_any_other_job_start_one_by_one() {
    let Some(cluster) = cluster::shared("singles").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    cluster.job("sweep", 3, 4, &json!({})).await;
    cluster.job_pods("sweep", 2, is_bound).await;
    let waiting = cluster.job_pods("sweep", 1, |pod| !is_bound(pod)).await;
    let said = cluster
        .pod_waits(name_of(&waiting[0]), "Unschedulable")
        .await;
    assert!(
        said.starts_with("DoesNotFit: 1 member with 4 nvidia.com/gpu"),
        "{said}"
    );
}

#[tokio::test]
async fn the_annotation_min_member_makes_a_gang_of_a_job() {
    let Some(cluster) = cluster::shared("annotated").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    let template = json!({"metadata": {"annotations": {"gpu-batch.io/min-member": "3"}}});
    let annotated = json!({"spec": {"template": template}});
    cluster.job("train", 4, 4, &annotated).await;
    let pods = cluster.job_pods("train", 4, |_| true).await;
    for pod in &pods {
        let said = cluster.pod_waits(name_of(pod), "Unschedulable").await;
        assert!(said.starts_with("DoesNotFit: 3 members"), "{said}");
    }
    cluster.add_node(cluster.node("n2", "r1")).await;
    cluster.job_pods("train", 4, is_bound).await;
}

#[tokio::test]
async fn a_lost_member_of_a_job_is_replaced_in_the_same_rack() {
    let Some(cluster) = cluster::shared("lost").await else {
        return;
    };
    let nodes = cluster.nodes(["a", "a", "b", "b", "b"]).await;
    cluster.racks("default").await;
    let annotations = json!({"gpu-batch.io/topology-required": "rack"});
    let template = json!({"metadata": {"annotations": annotations}});
    let indexed = json!({"spec": {"completionMode": "Indexed", "template": template}});
    cluster.job("train", 2, 8, &indexed).await;
    let pods = cluster.job_pods("train", 2, is_bound).await;
    cluster.delete(&cluster.pod_path(name_of(&pods[0]))).await;
    let replacement = cluster.replacement("train", &pods).await;
    let node = replacement["spec"]["nodeName"].as_str().unwrap();
    assert!(nodes[..2].iter().any(|near| near == node), "{node}");
}

#[tokio::test]
async fn a_gang_of_a_job_goes_on_without_members_that_ended_well_and_were_removed() {
    let Some(cluster) = cluster::shared("removed").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    let indexed = json!({"spec": {"completionMode": "Indexed"}});
    cluster.job("train", 3, 2, &indexed).await;
    let pods = cluster.job_pods("train", 3, is_bound).await;
    cluster.set_phase(name_of(&pods[0]), "Succeeded").await;
    until("the Job counts the pod", async || {
        let job = cluster
            .get("/apis/batch/v1/namespaces/removed/jobs/train")
            .await?;
        ensure(job["status"]["succeeded"] == 1, &job["status"])
    })
    .await;
    for pod in &pods[..2] {
        cluster.delete(&cluster.pod_path(name_of(pod))).await;
    }
    cluster.replacement("train", &pods).await;
}

#[tokio::test]
async fn a_job_runs_to_its_end_and_its_room_is_free_again() {
    let Some(cluster) = cluster::shared("ends").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    let run = json!({"metadata": {"annotations": {"gpu-batch.io/sim-run-seconds": "1"}}});
    let indexed = json!({"spec": {"completionMode": "Indexed", "template": run}});
    for name in ["first", "second", "third"] {
        cluster.job(name, 2, 4, &indexed).await;
    }
    for name in ["first", "second", "third"] {
        let path = format!("/apis/batch/v1/namespaces/ends/jobs/{name}");
        until(name, async || {
            let job = cluster.get(&path).await?;
            ensure(job["status"]["succeeded"] == 2, &job["status"])
        })
        .await;
    }
}
