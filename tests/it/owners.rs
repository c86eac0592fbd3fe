//! Owners of the real controller manager that replace their pods: Jobs, for which evictions count
//! as failures, and Deployments, which are updated one pod after the other.

use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::{condition, ensure, patched};

impl Cluster {
    /// A Job of eight pods, which are more than the default `backoffLimit` of 6, changed by a merge
    /// patch. They are a gang that is stale after a second.
    fn eight(&self, name: &str, patch: &Value) -> Value {
        let pod = json!({"terminationGracePeriodSeconds": 30});
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {
                "completions": 8,
                "parallelism": 8,
                "completionMode": "Indexed",
                "template": {
                    "metadata": {"labels": {"gpu-batch.io/pod-group": "train"}},
                    "spec": patched(self.pod_template(1), &pod),
                },
            },
        });
        patched(job, patch)
    }

    /// Starts the Job on a node whose kubelet is the test, drains one pod, and waits until the
    /// gang is evicted whole. Returns the names of its pods.
    async fn is_evicted_whole(&self, patch: &Value) -> Vec<String> {
        let mut node = serde_json::to_value(self.node("n1", "a").object()).unwrap();
        node["metadata"]["annotations"] = json!({});
        self.create(&node).await;
        let grace = json!({"minMember": 8, "stalenessGracePeriod": "1s"});
        self.group("train", &grace).await;
        self.create(&self.eight("train", patch)).await;
        let pods = until("eight bound pods", async || self.bound_pods(&[]).await).await;
        for pod in &pods {
            self.set_phase(pod, "Running").await;
        }
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pods[0], "namespace": self.namespace},
        });
        let path = format!("{}/eviction", self.pod_path(&pods[0]));
        let request = http::Request::post(path).body(serde_json::to_vec(&eviction).unwrap());
        self.send(request.unwrap()).await.unwrap();
        let said = self.event("PodGroup", "train", "Stale").await;
        assert!(said.starts_with("7 bound members are evicted"), "{said}");
        until("all pods leave", async || {
            for pod in &pods {
                let pod = self.get(&self.pod_path(pod)).await;
                let leaves = pod.is_ok_and(|pod| pod["metadata"]["deletionTimestamp"].is_string());
                ensure(leaves, &pods)?;
            }
            Ok(())
        })
        .await;
        pods
    }

    /// The eight bound pods of the Job that are none of these.
    async fn bound_pods(&self, before: &[String]) -> Result<Vec<String>, String> {
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let pods = self.list(&path).await?;
        let names: Vec<String> = pods
            .iter()
            .filter(|pod| pod["spec"]["nodeName"].is_string())
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .filter(|name| !before.contains(name))
            .collect();
        let statuses: Vec<_> = pods.iter().map(|pod| &pod["status"]).collect();
        ensure(names.len() == 8, statuses)?;
        Ok(names)
    }

    /// Ends pods as their kubelet does: what was told to end has failed, then the pod goes.
    async fn end(&self, pods: &[String]) {
        for pod in pods {
            self.set_phase(pod, "Failed").await;
            self.delete(&self.pod_path(pod)).await;
        }
    }

    /// Creates the policy for Jobs, for those of this test.
    async fn apply_policy_for_jobs(&self) {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/deploy/pod-failure-policy/policy.yaml"
        );
        let text = std::fs::read_to_string(path).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for mut object in objects {
            if object["kind"] == "MutatingAdmissionPolicyBinding" {
                // Other tests have Jobs of their own.
                let selector = json!({"matchLabels": {"team": "mutated"}});
                object["spec"]["matchResources"] = json!({"namespaceSelector": selector});
            }
            self.create(&object).await;
        }
    }

    fn job_path(&self, name: &str) -> String {
        format!("/apis/batch/v1/namespaces/{}/jobs/{name}", self.namespace)
    }
}

#[tokio::test]
async fn a_job_that_counts_evictions_is_told_of_it_and_fails() {
    let Some(cluster) = cluster::shared("counted").await else {
        return;
    };
    let pods = cluster.is_evicted_whole(&json!({})).await;
    let said = cluster.event("Job", "train", "FailsWhenEvicted").await;
    assert!(said.contains("podFailurePolicy"), "{said}");
    for pod in &pods {
        // Pods that the failed Job has deleted itself may be gone.
        let path = format!("{}/status", cluster.pod_path(pod));
        let failed = json!({"status": {"phase": "Failed"}});
        cluster.try_merge(&path, &failed).await.ok();
    }
    until("the Job fails", async || {
        let job = cluster.get(&cluster.job_path("train")).await?;
        let failed = condition(&job, "Failed");
        ensure(failed["reason"] == "BackoffLimitExceeded", &job["status"])
    })
    .await;
}

#[tokio::test]
async fn a_job_that_ignores_evictions_comes_back_after_one_of_its_whole_gang() {
    let Some(cluster) = cluster::shared("ignored").await else {
        return;
    };
    let ignore = json!({
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    });
    // The controller waits 10 s, twice as long for each pod more, before it makes pods anew. So it
    // does for each index by itself.
    let policy = json!({"spec": {
        "podFailurePolicy": {"rules": [ignore]},
        "backoffLimitPerIndex": 6,
    }});
    let pods = cluster.is_evicted_whole(&policy).await;
    cluster.end(&pods).await;
    until("eight new pods", async || cluster.bound_pods(&pods).await).await;
    let job = cluster.get(&cluster.job_path("train")).await.unwrap();
    assert_eq!(job["status"]["failed"].as_u64().unwrap_or(0), 0, "{job:#}");
    let path = "/apis/events.k8s.io/v1/namespaces/ignored/events";
    let events = cluster.list(path).await.unwrap();
    let told = events
        .iter()
        .any(|event| event["reason"] == "FailsWhenEvicted");
    assert!(!told, "{events:#?}");
}

#[tokio::test]
async fn the_policy_for_jobs_gives_them_a_rule_where_they_have_none() {
    let Some(cluster) = cluster::shared("mutated").await else {
        return;
    };
    cluster.apply_policy_for_jobs().await;
    // A Job that is suspended makes no pods.
    let suspended = |patch: &Value| patched(json!({"spec": {"suspend": true}}), patch);
    let mut number = 0;
    let added = until("the policy is in force", async || {
        number += 1;
        let job = cluster.eight(&format!("try-{number}"), &suspended(&json!({})));
        let job = cluster.create(&job).await;
        ensure(job["spec"]["podFailurePolicy"].is_object(), number)?;
        Ok(job["spec"].clone())
    })
    .await;
    let rule = &added["podFailurePolicy"]["rules"][0];
    assert_eq!(rule["action"], "Ignore");
    assert_eq!(rule["onPodConditions"][0]["type"], "DisruptionTarget");
    assert_eq!(added["podReplacementPolicy"], "Failed");

    let spec = |spec: Value| json!({"spec": spec});
    for (name, patch, limits) in [
        ("as-it-is", json!({}), json!([6, 6, 0])),
        ("of-one", spec(json!({"backoffLimit": 1})), json!([1, 1, 0])),
        (
            "by-index",
            spec(json!({"backoffLimitPerIndex": 2, "maxFailedIndexes": 3})),
            json!([i32::MAX, 2, 3]),
        ),
        (
            "not-indexed",
            spec(json!({"completionMode": "NonIndexed"})),
            json!([6, null, null]),
        ),
    ] {
        let job = cluster
            .create(&cluster.eight(name, &suspended(&patch)))
            .await;
        let spec = &job["spec"];
        assert!(spec["podFailurePolicy"].is_object(), "{name}");
        let fields = ["backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes"];
        let found: Value = fields.iter().map(|field| spec[field].clone()).collect();
        assert_eq!(found, limits, "{name}");
    }

    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    for (name, patch) in [
        ("restarts", template(json!({"restartPolicy": "OnFailure"}))),
        ("of-another", template(json!({"schedulerName": "another"}))),
    ] {
        let job = cluster
            .create(&cluster.eight(name, &suspended(&patch)))
            .await;
        let spec = &job["spec"];
        assert_eq!(spec["podFailurePolicy"], Value::Null, "{name}");
        assert_eq!(spec["backoffLimitPerIndex"], Value::Null, "{name}");
    }
    let codes = json!({"operator": "In", "values": [42]});
    let own = json!({"rules": [{"action": "FailJob", "onExitCodes": codes}]});
    let patch = suspended(&json!({"spec": {"podFailurePolicy": own}}));
    let job = cluster.create(&cluster.eight("with-its-own", &patch)).await;
    assert_eq!(job["spec"]["podFailurePolicy"], own);

    // Its owner wrote nothing of all this, and its gang is back as soon as any.
    let pods = cluster.is_evicted_whole(&json!({})).await;
    cluster.end(&pods).await;
    until("eight new pods", async || cluster.bound_pods(&pods).await).await;
}

#[tokio::test]
async fn a_deployment_with_a_minimum_is_updated_one_pod_after_the_other() {
    let Some(cluster) = cluster::shared("updated").await else {
        return;
    };
    cluster.nodes(["a"]).await;
    let always = json!({"restartPolicy": "Always"});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {
                    "labels": {"app": "web"},
                    "annotations": {"gpu-batch.io/min-member": "3"},
                },
                "spec": patched(cluster.pod_template(2), &always),
            },
        },
    });
    cluster.create(&deployment).await;
    let path = "/apis/apps/v1/namespaces/updated/deployments/web";
    let complete = async |generation: u64| {
        until(&format!("generation {generation}"), async || {
            let status = cluster.get(path).await?["status"].clone();
            let as_wanted = ["replicas", "updatedReplicas", "availableReplicas"];
            let as_wanted = as_wanted.iter().all(|count| status[count] == 3);
            ensure(
                as_wanted && status["observedGeneration"] == generation,
                &status,
            )
        })
        .await;
    };
    complete(1).await;
    let template = json!({"metadata": {"annotations": {"example.com/version": "2"}}});
    cluster
        .merge(path, &json!({"spec": {"template": template}}))
        .await;
    complete(2).await;
}

#[tokio::test]
async fn a_key_that_means_nothing_is_told_on_the_object_that_has_it() {
    let Some(cluster) = cluster::shared("misspelt").await else {
        return;
    };
    cluster.nodes(["a"]).await;
    let keys = json!({"metadata": {
        "annotations": {"gpu-batch.io/queue": "team-vision"},
        "labels": {"gpu-batch.io/podgroup": "train", "gpu-batch.io/min-member": "2"},
    }});
    cluster.create(&cluster.pod("a", 1, &keys)).await;
    cluster.bound(&["a".to_owned()]).await;
    let said = cluster.event("Pod", "a", "UnknownKey").await;
    assert_eq!(
        said,
        "metadata.labels[gpu-batch.io/min-member]: is an annotation: as a label it means nothing; \
         metadata.labels[gpu-batch.io/podgroup]: means nothing; did you mean the label \
         gpu-batch.io/pod-group?; metadata.annotations[gpu-batch.io/queue]: is a label: as an \
         annotation it means nothing"
    );
    let queue = json!({"metadata": {"labels": {"gpu-batch.io/queue": "team-vision"}}});
    cluster.job("b", 1, 1, &queue).await;
    let said = cluster.event("Job", "b", "UnknownKey").await;
    let field = "metadata.labels[gpu-batch.io/queue]: means nothing here";
    assert_eq!(
        said,
        format!("{field}: write it in spec.template.metadata.labels")
    );
    let group = patched(
        queue,
        &json!({
            "apiVersion": "gpu-batch.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "c"},
            "spec": {"minMember": 1},
        }),
    );
    cluster.create(&group).await;
    let member = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "c"}}});
    cluster.create(&cluster.pod("c", 1, &member)).await;
    let said = cluster.event("PodGroup", "c", "UnknownKey").await;
    assert_eq!(said, format!("{field}: a PodGroup has spec.queue"));
}
