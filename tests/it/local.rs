//! The local control plane itself.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gpu_batch::local::control_plane::CONTROLLERS;
use gpu_batch::local::nodes::{self, GpuNode, H100};
use gpu_batch::local::{Options, Program};
use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::harness;

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

    bind_a_pod(&client, "p", "n1", json!({})).await;
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
        controllers: CONTROLLERS,
        ..Options::default()
    };
    let start = Instant::now();
    let Some(control_plane) = harness::start(options).await else {
        return;
    };
    eprintln!("ready after {:?}", start.elapsed());
    let client = control_plane.client().await.unwrap();
    nodes::create(&client, [GpuNode::new("n1", H100)])
        .await
        .unwrap();
    let annotations = json!({"gpu-batch.io/sim-run-seconds": "1"});
    bind_a_pod(&client, "p", "n1", annotations).await;
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
async fn nothing_is_left_after_a_drop() {
    let options = Options {
        kwok: true,
        controllers: CONTROLLERS,
        ..Options::default()
    };
    let Some(control_plane) = harness::start(options).await else {
        return;
    };
    let folder = control_plane.folder().to_owned();
    // The watchdog and four programs.
    assert_eq!(
        processes_that_name(&folder).len(),
        5,
        "{:?}",
        processes_that_name(&folder)
    );
    let start = Instant::now();
    drop(control_plane);
    eprintln!("gone after {:?}", start.elapsed());
    assert_eq!(processes_that_name(&folder), Vec::<String>::new());
    assert!(!folder.exists());
}

/// Not a test: what the tests below run in a process of its own, in order to kill it.
#[tokio::test]
#[ignore = "started by other tests"]
async fn hold_a_control_plane() {
    let control_plane = harness::start(Options::default()).await.unwrap();
    println!("\nfolder {}", control_plane.folder().display());
    if std::env::var_os("KEEP").is_some() {
        println!("stop {}", control_plane.keep().display());
    } else {
        // A program that is paused must not escape either.
        control_plane.pause(Program::Etcd);
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn spawn_a_holder(environment: &[(&str, &str)]) -> (std::process::Child, Vec<String>) {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "local::hold_a_control_plane",
            "--ignored",
            "--nocapture",
        ])
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let wanted = if environment.is_empty() { 1 } else { 2 };
    let found = lines.filter(|line| line.starts_with("folder ") || line.starts_with("stop "));
    let paths = found
        .take(wanted)
        .map(|line| line.split_once(' ').unwrap().1.into())
        .collect();
    (holder, paths)
}

#[tokio::test]
async fn nothing_is_left_after_the_parent_is_killed() {
    if harness::start(Options::default()).await.is_none() {
        return;
    }
    let (mut holder, paths) = spawn_a_holder(&[]);
    let folder = Path::new(&paths[0]);
    assert_eq!(processes_that_name(folder).len(), 3);
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_for("the end", async || {
        processes_that_name(folder).is_empty() && !folder.exists()
    })
    .await;
}

#[tokio::test]
async fn what_is_kept_runs_on_until_it_is_told_to_stop() {
    if harness::start(Options::default()).await.is_none() {
        return;
    }
    let (mut holder, paths) = spawn_a_holder(&[("KEEP", "1")]);
    let folder = Path::new(&paths[0]);
    holder.wait().unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(processes_that_name(folder).len(), 3);
    std::fs::write(&paths[1], "").unwrap();
    wait_for("the end", async || {
        processes_that_name(folder).is_empty() && !folder.exists()
    })
    .await;
}

#[tokio::test]
async fn the_api_server_survives_a_kill_and_a_pause() {
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
    let late = tokio::time::timeout(Duration::from_millis(300), nodes.get("n1")).await;
    assert!(late.is_err());
    control_plane.resume(Program::KubeApiserver);
    nodes.get("n1").await.unwrap();
}

async fn bind_a_pod(client: &Client, name: &str, node: &str, annotations: serde_json::Value) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "schedulerName": "gpu-batch",
            "containers": [{
                "name": "c",
                "image": "none",
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }],
        },
    });
    let apply = PatchParams::apply("test");
    pods.patch(name, &apply, &Patch::Apply(pod)).await.unwrap();
    let binding: Binding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": node},
    }))
    .unwrap();
    let answer: Result<Status, _> = pods
        .create_subresource("binding", name, &PostParams::default(), &binding)
        .await;
    answer.unwrap();
}

/// Every 50 ms for 30 s.
async fn wait_for(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "no {what} within 30 s"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The command lines of the processes that have `folder` in theirs.
fn processes_that_name(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}
