//! The objects of the measurements, as JSON; and many requests for them at the same time.

use super::Workload;
use anyhow::{Context, bail};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// Objects with this label belong to the measurement.
pub(super) const LABEL: &str = "gpu-batch.io/bench";

/// The `schedulerName` of the pods: a scheduler that runs already leaves them alone.
pub(super) const SCHEDULER: &str = "gpu-batch-bench";

/// The namespace of everything, the scheduler's lease included.
pub(super) const NAMESPACE: &str = "gpu-batch-bench";

/// Where Queues are created.
pub(super) const QUEUES: &str = "/apis/gpu-batch.io/v1alpha1/queues";

/// An object to be created, or a binding to be made.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) path: String,
    pub(super) body: Value,
}

/// Where the pods of the measurement are created.
pub(super) fn pods_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

/// The name of a fake node.
pub(super) fn node_name(number: usize) -> String {
    format!("gpu-batch-bench-{number}")
}

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

/// A PodGroup with a minimum of `members`.
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

/// A Queue with a quota of GPUs.
pub(super) fn queue(name: &str, gpus: usize) -> Post {
    Post {
        path: QUEUES.into(),
        body: json!({
            "apiVersion": "gpu-batch.io/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"resources": [{"name": "nvidia.com/gpu", "quota": gpus}]},
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
        path: pods_path(),
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
    let binding = |number| binding(&pod_name(number), number / pods_on_node);
    (0..workload.pods()).map(binding).collect()
}

/// The binding of a pod to the node with this number.
pub(super) fn binding(name: &str, node: usize) -> Post {
    Post {
        path: format!("{}/{name}/binding", pods_path()),
        body: json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": NAMESPACE, "name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name(node)},
        }),
    }
}

fn pod_name(number: usize) -> String {
    format!("pod-{number}")
}

/// Posts everything, `at_a_time` requests at once, in tasks of their own. Objects that exist
/// already are left alone.
///
/// # Errors
/// One of the requests that failed; others may have been sent.
pub(super) async fn post_all(
    client: &Client,
    posts: Vec<Post>,
    at_a_time: u32,
) -> anyhow::Result<()> {
    let encoded: Vec<(String, Vec<u8>)> = posts
        .into_iter()
        .map(|post| Ok((post.path, serde_json::to_vec(&post.body)?)))
        .collect::<serde_json::Result<_>>()?;
    let posts = Arc::new(Mutex::new(encoded.into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..at_a_time {
        let (client, posts) = (client.clone(), Arc::clone(&posts));
        workers.spawn(async move {
            let next = || posts.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((path, body)) = next() {
                send(&client, http::Request::post(&path), body)
                    .await
                    .with_context(|| format!("cannot post to {path}"))?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

/// Changes an object as far as `patch` says.
///
/// # Errors
/// If the request fails, or the API server refuses it.
pub(super) async fn merge(client: &Client, path: &str, patch: &Value) -> anyhow::Result<()> {
    let request = http::Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json");
    send(client, request, serde_json::to_vec(patch)?).await?;
    Ok(())
}

/// Sends one request, whose body is JSON unless it says otherwise, and reads the whole answer.
pub(super) async fn send(
    client: &Client,
    request: http::request::Builder,
    body: Vec<u8>,
) -> anyhow::Result<Vec<u8>> {
    let mut request = request.body(Body::from(body))?;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().entry(CONTENT_TYPE).or_insert(json);
    let answer = client.send(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect_bytes().await?;
    if !status.is_success() && status != StatusCode::CONFLICT {
        bail!("{status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(body.to_vec())
}
