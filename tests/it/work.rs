//! Pods, gangs and what users see of them.

use serde_json::{Value, json};

use crate::cluster::{Cluster, TEST_LABEL, until};

/// `value` with everything that `patch` says, as in a JSON merge patch.
pub(crate) fn patched(mut value: Value, patch: &Value) -> Value {
    merge(&mut value, patch);
    value
}

fn merge(value: &mut Value, patch: &Value) {
    let (Value::Object(fields), Value::Object(changes)) = (&mut *value, patch) else {
        *value = patch.clone();
        return;
    };
    for (name, change) in changes {
        merge(fields.entry(name).or_insert(Value::Null), change);
    }
}

/// What must hold, or else the whole value as the complaint.
pub(crate) fn ensure(holds: bool, seen: impl std::fmt::Debug) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("{seen:#?}"))
    }
}

/// The condition of an object's status.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> &'v Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions
        .find(|condition| condition["type"] == kind)
        .unwrap_or(&Value::Null)
}

impl Cluster {
    /// A pod with so many GPUs, for the nodes of this test, changed by a merge patch.
    pub(crate) fn pod(&self, name: &str, gpus: u32, patch: &Value) -> Value {
        let template = self.pod_template(gpus);
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": template,
        });
        patched(pod, patch)
    }

    /// The `spec` of such a pod.
    pub(crate) fn pod_template(&self, gpus: u32) -> Value {
        json!({
            "schedulerName": "gpu-batch",
            "restartPolicy": "Never",
            "nodeSelector": {TEST_LABEL: self.namespace},
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "c",
                "image": "none",
                "resources": {"limits": {"nvidia.com/gpu": gpus.to_string()}},
            }],
        })
    }

    pub(crate) async fn group(&self, name: &str, spec: &Value) {
        self.create(&json!({
            "apiVersion": "gpu-batch.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": spec,
        }))
        .await;
    }

    pub(crate) async fn queue(&self, name: &str, spec: &Value) {
        self.create(&json!({
            "apiVersion": "gpu-batch.io/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
        }))
        .await;
    }

    /// A topology with the levels `zone` and `rack`.
    pub(crate) async fn racks(&self, name: &str) {
        self.create(&json!({
            "apiVersion": "gpu-batch.io/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": [
                {"name": "zone", "nodeLabel": "topology.kubernetes.io/zone"},
                {"name": "rack", "nodeLabel": "example.com/rack"},
            ]},
        }))
        .await;
    }

    /// Creates the pods `NAME-0`, `NAME-1`, ... of a group and returns their names.
    pub(crate) async fn members(
        &self,
        group: &str,
        count: usize,
        gpus: u32,
        patch: &Value,
    ) -> Vec<String> {
        let names: Vec<String> = (0..count).map(|i| format!("{group}-{i}")).collect();
        for name in &names {
            let label = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": group}}});
            self.create(&self.pod(name, gpus, &patched(label, patch)))
                .await;
        }
        names
    }

    /// The node of a pod, if it has one.
    pub(crate) async fn node_of(&self, pod: &str) -> Option<String> {
        let pod = self.get(&self.pod_path(pod)).await.unwrap();
        pod["spec"]["nodeName"].as_str().map(str::to_owned)
    }

    /// Waits until all these pods have nodes, and returns the nodes in the same order.
    pub(crate) async fn bound(&self, pods: &[String]) -> Vec<String> {
        let mut nodes = Vec::new();
        for pod in pods {
            let node = until(pod, async || {
                let object = self.get(&self.pod_path(pod)).await?;
                let node = object["spec"]["nodeName"].as_str().map(str::to_owned);
                node.ok_or_else(|| format!("not bound: {:#}", object["status"]))
            });
            nodes.push(node.await);
        }
        nodes
    }

    /// That none of these pods has a node.
    pub(crate) async fn none_bound(&self, pods: &[String]) -> Result<(), String> {
        for pod in pods {
            let node = self.node_of(pod).await;
            ensure(node.is_none(), (pod, node))?;
        }
        Ok(())
    }

    /// Waits until the status of a group is as wanted, and returns the group.
    pub(crate) async fn group_when(
        &self,
        name: &str,
        mut wanted: impl FnMut(&Value) -> bool,
    ) -> Value {
        until(name, async || {
            let group = self.get(&self.group_path(name)).await?;
            ensure(wanted(&group["status"]), &group["status"])?;
            Ok(group)
        })
        .await
    }

    /// Waits until a group waits for `reason`, and returns it.
    pub(crate) async fn group_waits(&self, name: &str, reason: &str) -> Value {
        self.group_when(name, |status| status["reason"] == reason)
            .await
    }

    /// Waits until a pod's condition PodScheduled is False with this reason; returns its message.
    pub(crate) async fn pod_waits(&self, name: &str, reason: &str) -> String {
        until(name, async || {
            let pod = self.get(&self.pod_path(name)).await?;
            let condition = condition(&pod, "PodScheduled");
            let waits = condition["status"] == "False" && condition["reason"] == reason;
            ensure(waits, &pod["status"])?;
            Ok(condition["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// Waits for an event about an object; returns its message.
    pub(crate) async fn event(&self, kind: &str, name: &str, reason: &str) -> String {
        let path = format!(
            "/apis/events.k8s.io/v1/namespaces/{}/events",
            self.namespace
        );
        until(&format!("event {reason} on {kind} {name}"), async || {
            let events = self.list(&path).await?;
            let event = events.iter().find(|event| {
                let regarding = &event["regarding"];
                regarding["kind"] == kind && regarding["name"] == name && event["reason"] == reason
            });
            let event = event.ok_or_else(|| format!("{} events", events.len()))?;
            Ok(event["note"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// Sets the phase of a pod as its kubelet would.
    pub(crate) async fn set_phase(&self, pod: &str, phase: &str) {
        let status = json!({"status": {"phase": phase}});
        let path = format!("{}/status", self.pod_path(pod));
        self.merge(&path, &status).await;
    }
}
