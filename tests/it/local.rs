//! The local control plane itself.

mod binaries;
#[cfg(target_os = "linux")] // It reads /proc.
mod endings;

use std::time::{Duration, Instant};

use gpu_batch::lab::local::nodes::{self, GpuNode, H100};
use gpu_batch::lab::local::{CONTROLLERS, Options, Program};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use crate::harness::{self, wait_for};

/// All that there is.
const EVERYTHING: Options = Options {
    kwok: true,
    controllers: CONTROLLERS,
    kube_scheduler: true,
    native_gangs: true,
    audit: false,
};

#[tokio::test]
async fn a_node_is_created_and_a_pod_bound() {
    let start = Instant::now();
    let Some(control_plane) = harness::start(Options::default()).await else {
        return;
    };
    eprintln!("ready after {:?}", start.elapsed());
    let client = control_plane.client().await.unwrap();
    nodes::create(&client, [GpuNode::new("n1", H100)])
        .await
        .unwrap();
    let node = Api::<Node>::all(client.clone()).get("n1").await.unwrap();
    let gpus = node.status.unwrap().allocatable.unwrap()["nvidia.com/gpu"].clone();
    assert_eq!(gpus.0, "8");
    assert_eq!(node.spec.unwrap().taints, None);

    bind_a_pod(&client, "n1", json!({})).await;
    let pod = Api::<Pod>::default_namespaced(client)
        .get("p")
        .await
        .unwrap();
    assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("n1"));
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Pending"));
}

#[tokio::test]
async fn with_kwok_a_bound_pod_runs_and_succeeds() {
    let options = Options {
        kwok: true,
        ..Options::default()
    };
    let Some(control_plane) = harness::start(options).await else {
        return;
    };
    let client = control_plane.client().await.unwrap();
    nodes::create(&client, [GpuNode::new("n1", H100)])
        .await
        .unwrap();
    bind_a_pod(&client, "n1", json!({"gpu-batch.io/sim-run-seconds": "1"})).await;
    let pods = Api::<Pod>::default_namespaced(client);
    for phase in ["Running", "Succeeded"] {
        wait_for(phase, async || {
            let pod = pods.get("p").await.unwrap();
            pod.status.and_then(|status| status.phase).as_deref() == Some(phase)
        })
        .await;
    }
}

#[tokio::test]
async fn a_job_is_scheduled_by_kubernetes_itself_and_completes() {
    let Some(control_plane) = harness::start(EVERYTHING).await else {
        return;
    };
    let client = control_plane.client().await.unwrap();
    let group = http::Request::get("/apis/scheduling.k8s.io/v1alpha2").body(Vec::new());
    let served = client.request_text(group.unwrap()).await.unwrap();
    assert!(served.contains("podgroups"), "{served}");

    nodes::create(&client, [GpuNode::new("n1", H100)])
        .await
        .unwrap();
    let jobs = Api::<Job>::default_namespaced(client);
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {"completions": 2, "parallelism": 2, "template": {
            "metadata": {"annotations": {"gpu-batch.io/sim-run-seconds": "1"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]},
        }},
    });
    let job = serde_json::from_value(job).unwrap();
    jobs.create(&PostParams::default(), &job).await.unwrap();
    wait_for("completion", async || {
        let status = jobs.get("j").await.unwrap().status.unwrap_or_default();
        status.completion_time.is_some() && status.succeeded == Some(2)
    })
    .await;
}

#[tokio::test]
async fn the_data_survive_kills_and_pauses() {
    let Some(mut control_plane) = harness::start(Options::default()).await else {
        return;
    };
    let client = control_plane.client().await.unwrap();
    nodes::create(&client, [GpuNode::new("n1", H100)])
        .await
        .unwrap();
    let nodes = Api::<Node>::all(client);
    for program in [Program::KubeApiserver, Program::Etcd] {
        control_plane.kill(program);
        control_plane.restart(program).await.unwrap();
        assert!(nodes.get("n1").await.is_ok(), "{program}");
    }
    control_plane.pause(Program::KubeApiserver);
    control_plane.pause(Program::KubeApiserver);
    let late = tokio::time::timeout(Duration::from_millis(300), nodes.get("n1")).await;
    assert!(late.is_err(), "{late:?}");
    control_plane.resume(Program::KubeApiserver);
    nodes.get("n1").await.unwrap();
}

/// The pod is `default/p` and takes one GPU.
async fn bind_a_pod(client: &Client, node: &str, annotations: serde_json::Value) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let pod = json!({
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {
            "schedulerName": "gpu-batch",
            "containers": [{
                "name": "c",
                "image": "none",
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }],
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let binding: Binding = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": node},
    }))
    .unwrap();
    let answer: Result<Status, _> = pods
        .create_subresource("binding", "p", &PostParams::default(), &binding)
        .await;
    answer.unwrap();
}
