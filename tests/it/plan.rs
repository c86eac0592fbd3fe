//! `plan` on a cluster: what it reads itself, and files over it.

use std::path::Path;
use std::process::{Output, Stdio};

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::cluster::{self, Cluster};

/// All kinds that a plan may need, as docs/plan.md gives them to kubectl.
const KINDS: &str = "nodes,pods,jobs,namespaces,priorityclasses,poddisruptionbudgets,\
     persistentvolumeclaims,persistentvolumes,storageclasses,csinodes,csidrivers,\
     csistoragecapacities,volumeattachments,queues.gpu-batch.io,podgroups.gpu-batch.io,topologies.gpu-batch.io";

async fn plan(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-batch"));
    command
        .arg("plan")
        .args(arguments)
        .args(["-o", "json"])
        .current_dir(folder)
        .env("GPU_BATCH_NOW", "2099-01-01T00:00:00Z")
        .stdin(Stdio::null());
    command.kill_on_drop(true).output().await.unwrap()
}

/// The options that name the cluster as a reader does.
fn reading(kubeconfig: &Path) -> [&str; 4] {
    let kubeconfig = kubeconfig.to_str().unwrap();
    ["--kubeconfig", kubeconfig, "--context", "reading"]
}

/// The plan, and the notes on standard error.
fn planned(output: &Output) -> (Value, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

impl Cluster {
    /// A node of 8 GPUs, a queue with a limit of 4, a pod that runs in it, and one that waits.
    async fn hold_two_pods(&self) {
        self.define_kinds().await;
        let [node] = self.nodes(["r1"]).await;
        let entry = json!({"name": "nvidia.com/gpu", "limit": "4"});
        self.queue("team", &json!({"resources": [entry]})).await;
        let label = json!({"metadata": {"labels": {"gpu-batch.io/queue": "team"}}});
        for name in ["a", "b"] {
            self.create(&self.pod(name, 4, &label)).await;
        }
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("{}/binding", self.pod_path("a"));
        let body = serde_json::to_vec(&binding).unwrap();
        let request = ::http::Request::post(path).body(body).unwrap();
        self.send(request).await.unwrap();
    }

    /// A kubeconfig of somebody who may list these resources and do nothing else; its only context
    /// is `reading`, in the namespace of the test.
    async fn kubeconfig_of_a_reader(&self, name: &str, resources: &str) -> tempfile::TempPath {
        let of_all = format!("--resource={resources}");
        let account = format!("--serviceaccount={}:{name}", self.namespace);
        let role = format!("--clusterrole={name}");
        for arguments in [
            &["create", "serviceaccount", name, "-n", &self.namespace][..],
            &["create", "clusterrole", name, "--verb=list", &of_all],
            &["create", "clusterrolebinding", name, &role, &account],
        ] {
            self.kubectl(arguments).await;
        }
        let token = ["create", "token", name, "-n", &self.namespace];
        let token = self.kubectl(&token).await;
        let text = std::fs::read_to_string(&self.kubeconfig).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        config["contexts"][0]["name"] = json!("reading");
        config["contexts"][0]["context"]["namespace"] = json!(self.namespace);
        config["current-context"] = json!("");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, config.to_string()).unwrap();
        file.into_temp_path()
    }
}

#[tokio::test]
async fn a_plan_reads_the_cluster_and_lays_files_over_it() {
    let Some(cluster) = cluster::own("planning", Options::default()).await else {
        return;
    };
    cluster.hold_two_pods().await;
    let reader = cluster.kubeconfig_of_a_reader("reader", KINDS).await;
    let reading = reading(&reader);
    let folder = tempfile::tempdir().unwrap();

    let output = plan(folder.path(), &reading).await;
    let (alone, said) = planned(&output);
    let pods = |plan: &Value| ["a", "b"].map(|pod| plan["pods"][format!("planning/{pod}")].clone());
    let [a, b] = pods(&alone);
    assert_eq!(
        (&a["state"], &a["node"]),
        (&json!("Bound"), &json!("planning-n1")),
        "{said}"
    );
    assert_eq!(b["reason"], "OverLimit", "{alone:#}");
    assert_eq!(said, "");

    // A plan from what kubectl prints is equal.
    let captured = cluster.kubectl(&["get", "-A", "-o", "json", KINDS]).await;
    std::fs::write(folder.path().join("cluster.json"), captured).unwrap();
    let of_kubectl = plan(folder.path(), &["-f", "cluster.json"]).await;
    assert_eq!(of_kubectl.stdout, output.stdout);

    // The job is in the namespace of the context, as kubectl would apply it.
    let files = [
        (
            "queue.yaml",
            json!({
                "apiVersion": "gpu-batch.io/v1alpha1", "kind": "Queue", "metadata": {"name": "team"},
                "spec": {"resources": [{"name": "nvidia.com/gpu", "limit": "8"}]},
            }),
        ),
        (
            "job.yaml",
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "new"},
                "spec": {"template": {
                    "metadata": {"labels": {"gpu-batch.io/queue": "team"}},
                    "spec": {
                        "schedulerName": "gpu-batch", "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "none",
                                        "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
                    },
                }},
            }),
        ),
    ];
    for (name, object) in &files {
        std::fs::write(folder.path().join(name), object.to_string()).unwrap();
    }
    let over = [&reading[..], &["-f", "queue.yaml", "job.yaml"]].concat();
    let (raised, said) = planned(&plan(folder.path(), &over).await);
    let [a, b] = pods(&raised);
    assert_eq!(
        (&a["state"], &b["state"]),
        (&json!("Bound"), &json!("Bound")),
        "{raised:#}"
    );
    assert_eq!(
        raised["pods"]["planning/new-0"]["reason"], "OverLimit",
        "{raised:#}"
    );
    let notes = "note: queue.yaml: Queue team replaces that of the cluster\n\
         note: made the missing pods: 1 of Job planning/new\n";
    assert_eq!(said, notes);
    not_everything_may_be_read(&cluster, folder.path()).await;
}

/// A kind that may not be listed is named in a note; without nodes or pods there is no plan.
async fn not_everything_may_be_read(cluster: &Cluster, folder: &Path) {
    let most = KINDS.replace(",queues.gpu-batch.io", "");
    let reader = cluster.kubeconfig_of_a_reader("no-queues", &most).await;
    let (planned, said) = planned(&plan(folder, &reading(&reader)).await);
    assert!(
        said.contains("made without the Queues of the cluster"),
        "{said}"
    );
    assert!(said.contains("cannot list resource \"queues\""), "{said}");
    assert_eq!(planned["pods"]["planning/b"]["reason"], "QueueNotFound");

    let most = KINDS.replace("nodes,pods", "nodes");
    let reader = cluster.kubeconfig_of_a_reader("no-pods", &most).await;
    let output = plan(folder, &reading(&reader)).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the Pods of the cluster cannot be listed"),
        "{said}"
    );
}
