//! The objects that are measured with, as JSON.

use super::Workload;
use super::requests::Post;
use crate::bench::live::cluster::{LABEL, NAMESPACE, SCHEDULER, node_name};
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
pub(super) fn pod_groups(workload: &Workload) -> Vec<Post> {
    let gangs = if workload.members > 1 {
        workload.gangs
    } else {
        0
    };
    (0..gangs)
        .map(|gang| pod_group(&format!("gang-{gang}"), workload.members))
        .collect()
}

/// A PodGroup of so many members.
pub(super) fn pod_group(name: &str, members: usize) -> Post {
    Post {
        path: format!("/apis/gpu-batch.io/v1alpha1/namespaces/{NAMESPACE}/podgroups"),
        body: json!({
            "apiVersion": "gpu-batch.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": members},
        }),
    }
}

/// The pods of a workload.
pub(super) fn pods(workload: &Workload) -> Vec<Post> {
    (0..workload.pods())
        .map(|number| pod(workload, number))
        .collect()
}

fn pod(workload: &Workload, number: usize) -> Post {
    let mut post = plain_pod(&pod_name(number), workload.gpus);
    if workload.members > 1 {
        let gang = format!("gang-{}", number / workload.members);
        post.body["metadata"]["labels"]["gpu-batch.io/pod-group"] = json!(gang);
    }
    post
}

/// A pod without a PodGroup.
pub(super) fn plain_pod(name: &str, gpus: u32) -> Post {
    let resources: Value = json!({
        "requests": {"cpu": "1", "memory": "4Gi"},
        "limits": {"nvidia.com/gpu": gpus.to_string()},
    });
    Post {
        path: format!("/api/v1/namespaces/{NAMESPACE}/pods"),
        body: json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {}},
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
pub(super) fn bindings(workload: &Workload) -> Vec<Post> {
    let pods_on_node = (8 / workload.gpus as usize).max(1);
    let binding = |number| {
        let name = pod_name(number);
        Post {
            path: format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding"),
            body: json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"namespace": NAMESPACE, "name": name},
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
