//! The Kubernetes objects of a gang.

use super::{Form, Gang, Traits};
use crate::kube::api::API_VERSION;
use crate::lab::demo::setting::{DEMO_ONLY, GANG_LABEL, PART_OF};
use serde_json::{Value, json};

/// Cores and GiB of memory for each GPU: so few that GPUs run out first.
const CPUS_PER_GPU: u32 = 10;
const MEMORY_GIB_PER_GPU: u32 = 96;

impl Gang {
    /// The objects of the gang, in the order in which they are created, each with the path of its
    /// collection. `shared`: the cluster has other users.
    pub(in crate::lab::demo) fn objects(
        &self,
        scheduler_name: &str,
        shared: bool,
    ) -> Vec<(String, Value)> {
        let namespace = self.namespace;
        let mut objects = Vec::new();
        if self.form == Form::PodGroup {
            let path = format!("/apis/{API_VERSION}/namespaces/{namespace}/podgroups");
            objects.push((path, self.pod_group()));
        }
        let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        objects.push((path, self.job(scheduler_name, shared)));
        objects
    }

    fn labels(&self) -> Value {
        json!({PART_OF.0: PART_OF.1, GANG_LABEL: self.name})
    }

    fn pod_group(&self) -> Value {
        let mut spec = json!({
            "queue": self.queue,
            "minMember": self.minimum,
            "expectedRuntime": format!("{}s", self.run_s),
        });
        match self.traits {
            Traits::Plain => {}
            Traits::OneRack => spec["topology"] = json!({"required": "rack"}),
            Traits::Spread => spec["placement"] = "spread".into(),
            Traits::NonPreemptible => spec["preemptible"] = false.into(),
        }
        json!({
            "apiVersion": API_VERSION,
            "kind": "PodGroup",
            "metadata": {"name": self.name, "labels": self.labels()},
            "spec": spec,
        })
    }

    fn job(&self, scheduler_name: &str, shared: bool) -> Value {
        let mut labels = self.labels();
        let mut annotations = json!({"gpu-batch.io/sim-run-seconds": self.run_s.to_string()});
        match self.form {
            Form::PodGroup => labels["gpu-batch.io/pod-group"] = self.name.as_str().into(),
            Form::Job => {
                labels["gpu-batch.io/queue"] = self.queue.into();
                annotations["gpu-batch.io/expected-runtime"] = format!("{}s", self.run_s).into();
                let hint = match self.traits {
                    Traits::Plain => None,
                    Traits::OneRack => Some(("topology-required", "rack")),
                    Traits::Spread => Some(("placement", "spread")),
                    Traits::NonPreemptible => Some(("preemptible", "false")),
                };
                if let Some((name, value)) = hint {
                    annotations[format!("gpu-batch.io/{name}")] = value.into();
                }
            }
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name, "labels": self.labels()},
            "spec": {
                "completionMode": "Indexed",
                "completions": self.pods,
                "parallelism": self.pods,
                "backoffLimitPerIndex": 6,
                "maxFailedIndexes": 0,
                // An evicted pod is no failure of the work.
                "podFailurePolicy": {"rules": [{
                    "action": "Ignore",
                    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                }]},
                "template": {
                    "metadata": {"labels": labels, "annotations": annotations},
                    "spec": self.pod(scheduler_name, shared),
                },
            },
        })
    }

    fn pod(&self, scheduler_name: &str, shared: bool) -> Value {
        let amounts = json!({
            "cpu": (self.gpus * CPUS_PER_GPU).to_string(),
            "memory": format!("{}Gi", self.gpus * MEMORY_GIB_PER_GPU),
            "nvidia.com/gpu": self.gpus.to_string(),
        });
        let mut pod = json!({
            "schedulerName": scheduler_name,
            "restartPolicy": "Never",
            "containers": [{
                "name": "main",
                "image": "example.com/train",
                "resources": {"requests": amounts, "limits": amounts},
            }],
        });
        if shared {
            pod["nodeSelector"] = json!({DEMO_ONLY: "true"});
            pod["tolerations"] = json!([{"key": DEMO_ONLY, "operator": "Exists"}]);
        }
        pod
    }
}
