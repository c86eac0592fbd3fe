//! The running scheduler explains, through the program that users call.

use std::path::Path;
use std::process::{Output, Stdio};

use gpu_batch::lab::local::SchedulerProcess;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::cluster::{self, TEST_LABEL};
use crate::work::ensure;

const CONFIGURATION: &str = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
     schedulerName: explainer\nserveAddress: 127.0.0.1:0\nleaderElection: {enabled: false}\n";

async fn explain(server: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-batch"));
    command.arg("explain").args(arguments);
    command.args(["--server", server]).stdin(Stdio::null());
    command.kill_on_drop(true).output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_running_scheduler_says_why_a_pod_waits() {
    let Some(cluster) = cluster::shared("explain").await else {
        return;
    };
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let scheduler = SchedulerProcess::start(executable, &cluster.kubeconfig, CONFIGURATION);
    let scheduler = scheduler.unwrap();
    cluster.nodes(["r1"]).await;
    let secret = "correct-horse-battery-staple";
    cluster
        .create(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "large", "annotations": {"example.com/token": secret}},
            "spec": {
                "schedulerName": "explainer",
                "nodeSelector": {TEST_LABEL: cluster.namespace},
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "c", "image": "none",
                    "env": [{"name": "TOKEN", "value": secret}],
                    "resources": {"limits": {"nvidia.com/gpu": "9"}},
                }],
            },
        }))
        .await;
    let server = cluster::until("an address", async || {
        let address = scheduler.address();
        address
            .map(|address| format!("http://{address}"))
            .ok_or_else(|| scheduler.log())
    })
    .await;
    let pod = format!("{}/large", cluster.namespace);
    let told = cluster::until("an explanation", async || {
        let output = explain(&server, &["pod", &pod]).await;
        let told = text(&output.stdout);
        ensure(
            output.status.success() && told.contains("DoesNotFit"),
            &output,
        )?;
        Ok(told)
    })
    .await;
    assert!(
        told.contains("a member asks for 9 nvidia.com/gpu"),
        "{told}"
    );
    assert!(
        told.contains("an empty cluster would hold none of 1"),
        "{told}"
    );

    let gang = format!("{}/pod/large", cluster.namespace);
    let output = explain(&server, &["podgroup", &gang, "-o", "json"]).await;
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["reason"], "DoesNotFit", "{json}");
    assert_eq!(json["shortages"][0]["nearest"]["withRoom"], 0, "{json}");
    assert!(!json.to_string().contains(secret));

    let output = explain(
        &server,
        &["podgroup", &format!("{}/lagre", cluster.namespace)],
    )
    .await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("there is no gang"), "{said}");
}
