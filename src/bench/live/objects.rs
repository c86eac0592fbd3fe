//! The objects that are measured with, as JSON.

use super::Workload;
use super::requests::Post;
use crate::bench::live::cluster::{LABEL, SCHEDULER, node_name};
use serde_json::{Value, json};

/// A fake node of 8 GPUs. Only pods of the measurement tolerate its taint.
pub(super) fn node(number: usize) -> Post {
    let name = node_name(number);
    let amounts = json!({"cpu": "190", "memory": "2000Gi", "pods": "110", "nvidia.com/gpu": "8"});
    Post {
        path: "/api/v1/nodes".into(),
        body: json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    LABEL: "true",
                    "kubernetes.io/hostname": name,
                    "example.com/rack": format!("rack-{}", number / 16),
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                },
            },
            "spec": {"taints": [{"key": LABEL, "effect": "NoSchedule"}]},
            "status": {
                "allocatable": amounts,
                "capacity": amounts,
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "Fake", "message": "",
                }],
            },
        }),
    }
}

/// The PodGroups of a workload; single pods have none.
pub(super) fn pod_groups(workload: &Workload, namespace: &str) -> Vec<Post> {
    let gangs = if workload.members > 1 {
        workload.gangs
    } else {
        0
    };
    let group = |gang| Post {
        path: format!("/apis/gpu-batch.io/v1alpha1/namespaces/{namespace}/podgroups"),
        body: json!({
            "apiVersion": "gpu-batch.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": format!("gang-{gang}")},
            "spec": {"minMember": workload.members},
        }),
    };
    (0..gangs).map(group).collect()
}

/// The pods of a workload.
pub(super) fn pods(workload: &Workload, namespace: &str) -> Vec<Post> {
    (0..workload.pods())
        .map(|number| pod(workload, namespace, number))
        .collect()
}

fn pod(workload: &Workload, namespace: &str, number: usize) -> Post {
    let mut labels = json!({});
    if workload.members > 1 {
        labels["gpu-batch.io/pod-group"] = json!(format!("gang-{}", number / workload.members));
    }
    let resources: Value = json!({
        "requests": {"cpu": "1", "memory": "4Gi"},
        "limits": {"nvidia.com/gpu": workload.gpus.to_string()},
    });
    Post {
        path: format!("/api/v1/namespaces/{namespace}/pods"),
        body: json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod_name(number), "labels": labels},
            "spec": {
                "schedulerName": SCHEDULER,
                "nodeSelector": {LABEL: "true"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "none", "resources": resources}],
            },
        }),
    }
}

/// The bindings that the bare binder posts: it fills one node after the other.
pub(super) fn bindings(workload: &Workload, namespace: &str) -> Vec<Post> {
    let pods_on_node = (8 / workload.gpus as usize).max(1);
    let binding = |number| {
        let name = pod_name(number);
        Post {
            path: format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"),
            body: json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"namespace": namespace, "name": name},
                "target": {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": node_name(number / pods_on_node),
                },
            }),
        }
    };
    (0..workload.pods()).map(binding).collect()
}

fn pod_name(number: usize) -> String {
    format!("pod-{number}")
}
