//! Bindings while an admission webhook of another product cannot be called.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gpu_batch::lab::local::{Options, SchedulerProcess};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::cluster::{self, Cluster, until};
use crate::work::{condition, ensure};

const CONFIGURATION: &str = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
     serveAddress: 127.0.0.1:0\nleaderElection: {enabled: false}\n";

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A webhook on bindings at which nobody listens, and which may not be left out.
async fn break_bindings(cluster: &Cluster) {
    cluster
        .create(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "dead"},
            "webhooks": [{
                "name": "dead.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["pods/binding"],
                }],
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 1,
            }],
        }))
        .await;
    // The API server takes a moment to call a webhook that is new.
    let foreign = json!({"spec": {"schedulerName": "nobody"}});
    cluster.create(&cluster.pod("foreign", 0, &foreign)).await;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "foreign"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"},
    });
    until("the webhook", async || {
        let path = format!("{}/binding?dryRun=All", cluster.pod_path("foreign"));
        let body = serde_json::to_vec(&binding).unwrap();
        let request = http::Request::post(path).body(body).unwrap();
        let said = cluster.send(request).await.err().unwrap_or_default();
        ensure(said.contains("failed calling webhook"), said)
    })
    .await;
}

async fn explain(scheduler: &SchedulerProcess, arguments: &[&str]) -> String {
    let server = until("an address", async || {
        let address = scheduler.address();
        address.ok_or_else(|| scheduler.log())
    })
    .await;
    let server = format!("http://{server}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-batch"));
    command.arg("explain").args(arguments);
    command.args(["--server", &server]).stdin(Stdio::null());
    let output = command.kill_on_drop(true).output().await.unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn a_webhook_that_cannot_be_called_is_told_everywhere_and_the_gang_starts_soon_after_it() {
    let Some(cluster) = cluster::own("webhooks", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let scheduler = SchedulerProcess::start(executable, &cluster.kubeconfig, CONFIGURATION);
    let scheduler = scheduler.unwrap();
    cluster.nodes(["r1"]).await;
    break_bindings(&cluster).await;

    let started = Instant::now();
    cluster.group("train", &json!({"minMember": 2})).await;
    let pods = cluster.members("train", 2, 4, &json!({})).await;
    let failed = |said: &Value| {
        let said = said.as_str().unwrap_or_default();
        said.contains("refused to bind pod train-") && said.contains("failed calling webhook")
    };
    let group = cluster
        .group_when("train", |status| {
            status["reason"] == "BindingFailed" && failed(&status["message"])
        })
        .await;
    let scheduled = condition(&group, "PodGroupScheduled");
    assert_eq!(scheduled["reason"], "BindingFailed");
    assert!(failed(&scheduled["message"]), "{scheduled}");
    for pod in &pods {
        let said = cluster.pod_waits(pod, "BindingFailed").await;
        assert!(failed(&said.into()), "{pod}");
    }
    let event = cluster.event("PodGroup", "train", "BindingFailed").await;
    assert!(failed(&event.into()));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(10), "told after {took:?}");

    let pod = format!("{}/train-0", cluster.namespace);
    for _ in 0..20 {
        let told = explain(&scheduler, &["pod", &pod]).await;
        assert!(failed(&told.as_str().into()), "{told}");
        assert!(!told.contains("is on "), "{told}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let logged = " was refused: Internal error occurred: failed calling webhook";
    let log = scheduler.log();
    assert!(
        log.contains(&format!("bind of {}/", cluster.namespace)),
        "{log}"
    );
    assert!(log.contains(logged), "{log}");
    cluster.none_bound(&pods).await.unwrap();

    // Long enough for the pauses between tries to become long.
    tokio::time::sleep(Duration::from_secs(15)).await;
    cluster.delete(&format!("{WEBHOOKS}/dead")).await;
    let mended = Instant::now();
    cluster.bound(&pods).await;
    let took = mended.elapsed();
    assert!(took < Duration::from_secs(12), "started after {took:?}");
}
