//! Users ask the scheduler that leads through the API server, with the Role that is made for it.
//!
//! ```text
//!   gpu-batch explain -> kube-apiserver -> kwok, as the kubelet of the pod -> the scheduler here
//! ```
//!
//! The scheduler is a process of this machine and its pod only a name on a node; kwok forwards
//! ports with the library that kubelets use.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use gpu_batch::lab::local::{Options, Program, SchedulerProcess};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::cluster::{self, Cluster, TEST_LABEL, until};
use crate::harness;
use crate::work::ensure;

/// Where the scheduler is installed.
const HOME: &str = "gpu-batch";
const LEADER: &str = "gpu-batch-0";
const CONFIGURATION: &str = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
     serveAddress: 127.0.0.1:0\nleaderElection: {identity: gpu-batch-0}\n";

#[tokio::test]
async fn a_user_asks_through_the_api_server_and_forwards_no_port() {
    let Some(cluster) = cluster::own("asked", Options::default()).await else {
        return;
    };
    let Some(binaries) = harness::binaries_of(vec![Program::Kwok]).await else {
        return;
    };
    cluster.define_kinds().await;
    let name = json!({"name": HOME});
    let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": name});
    cluster.create(&home).await;
    cluster.kubectl(&["apply", "-f", "deploy/rbac.yaml"]).await;
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let scheduler = SchedulerProcess::start(executable, &cluster.kubeconfig, CONFIGURATION);
    let scheduler = scheduler.unwrap();
    let address = until("an address", async || {
        scheduler.address().ok_or_else(|| scheduler.log())
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let (_kubelet, port) = kubelet(
        &binaries.path(Program::Kwok),
        &cluster,
        folder.path(),
        address,
    );
    the_pod_of_the_leader(&cluster, port, address.port()).await;
    cluster.nodes(["r1"]).await;
    cluster.create(&large()).await;

    let jane = Jane::new(&cluster, folder.path());
    let refused = jane.runs(&["explain", "pod", "large"]).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = text(&refused.stderr);
    assert!(
        said.contains("the Role gpu-batch-explain in the namespace gpu-batch"),
        "{said}"
    );
    let bind = [
        "create",
        "rolebinding",
        "jane",
        "--role=gpu-batch-explain",
        "--user=jane",
    ];
    cluster.kubectl(&[&bind[..], &["-n", HOME]].concat()).await;

    what_jane_is_told(&jane).await;
    queues_show_who_is_closed(&cluster).await;
}

async fn what_jane_is_told(jane: &Jane) {
    // The namespace of the pod is that of the context.
    let told = jane
        .until_told(&["explain", "pod", "large"], "DoesNotFit")
        .await;
    assert!(told.contains("asked/pod/large"), "{told}");
    assert!(
        told.contains("a member asks for 9 nvidia.com/gpu"),
        "{told}"
    );

    let table = jane.until_told(&["gangs"], "DoesNotFit").await;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("GANG "), "{table}");
    assert!(lines[1].starts_with("asked/pod/large "), "{table}");
    let none = jane.until_told(&["gangs", "-n", "elsewhere"], "").await;
    assert_eq!(none, "No gang in the namespace \"elsewhere\" waits.\n");
    let json = jane
        .until_told(&["gangs", "--queue", "default", "-o", "json"], "at")
        .await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["gangs"][0]["gang"], "asked/pod/large", "{json:#}");
    assert_eq!(json["gangs"][0]["reason"], "DoesNotFit", "{json:#}");
    assert_eq!(
        json["gangs"][0]["gpus"],
        json!({"held": "0", "asked": "9"}),
        "{json:#}"
    );

    let missing = jane.runs(&["gangs", "--lease", "gpu-batch/night"]).await;
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let said = text(&missing.stderr);
    assert!(said.contains("leases"), "{said}");
}

/// A pod that waits for more GPUs than a node has.
fn large() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large"},
        "spec": {
            "schedulerName": "gpu-batch",
            "nodeSelector": {TEST_LABEL: "asked"},
            "containers": [{
                "name": "c", "image": "none",
                "resources": {"limits": {"nvidia.com/gpu": "9"}},
            }],
        },
    })
}

/// Starts kwok as a kubelet that forwards all ports of all pods to the scheduler. Where it serves.
fn kubelet(kwok: &Path, cluster: &Cluster, folder: &Path, scheduler: SocketAddr) -> (Child, u16) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let forward = json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterPortForward",
        "metadata": {"name": "all"},
        "spec": {"forwards": [
            {"target": {"address": "127.0.0.1", "port": scheduler.port()}},
        ]},
    });
    let file = folder.join("forward.yaml");
    std::fs::write(&file, forward.to_string()).unwrap();
    let child = Command::new(kwok)
        .arg(format!("--kubeconfig={}", cluster.kubeconfig.display()))
        .arg(format!("--config={}", file.display()))
        // kwok does not start without any stage of a pod.
        .arg("--config=deploy/local/stages/pod-finish.yaml")
        .arg(format!("--server-address={address}"))
        .args([
            "--manage-single-node=none",
            "--node-lease-duration-seconds=0",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join("kwok.log")).unwrap())
        .kill_on_drop(true)
        .spawn();
    (child.unwrap(), address.port())
}

/// The pod that the Lease names, on a node whose kubelet serves at a port of this machine.
async fn the_pod_of_the_leader(cluster: &Cluster, kubelet: u16, serves: u16) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kubelet"}});
    cluster.create(&node).await;
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet}},
    }});
    cluster.merge("/api/v1/nodes/kubelet/status", &status).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": LEADER, "namespace": HOME},
        "spec": {
            "nodeName": "kubelet",
            "containers": [{
                "name": "gpu-batch", "image": "none",
                "ports": [{"name": "http", "containerPort": serves}],
            }],
        },
    });
    cluster.create(&pod).await;
}

/// A user with a kubeconfig of her own.
struct Jane {
    kubeconfig: PathBuf,
}

impl Jane {
    /// Her context is not the current one, and names a namespace.
    fn new(cluster: &Cluster, folder: &Path) -> Self {
        let text = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
        let mut file: Value = serde_saphyr::from_str(&text).unwrap();
        let mut user = file["users"][0].clone();
        user["name"] = json!("jane");
        user["user"]["as"] = json!("jane");
        file["users"].as_array_mut().unwrap().push(user);
        let mut context = file["contexts"][0].clone();
        context["name"] = json!("jane");
        context["context"]["user"] = json!("jane");
        context["context"]["namespace"] = json!(cluster.namespace);
        file["contexts"].as_array_mut().unwrap().push(context);
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, file.to_string()).unwrap();
        Self { kubeconfig }
    }

    async fn runs(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-batch"));
        command.args(arguments).args(["--context", "jane"]);
        command.env("KUBECONFIG", &self.kubeconfig);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.output().await.unwrap()
    }

    async fn until_told(&self, arguments: &[&str], wanted: &str) -> String {
        until(wanted, async || {
            let output = self.runs(arguments).await;
            let told = text(&output.stdout);
            ensure(output.status.success() && told.contains(wanted), &output)?;
            Ok(told)
        })
        .await
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `kubectl get queues` says which queues take nothing new.
async fn queues_show_who_is_closed(cluster: &Cluster) {
    cluster.queue("shut", &json!({"closed": true})).await;
    let table = cluster.kubectl(&["get", "queues"]).await;
    let mut lines = table.lines();
    let column = lines.next().unwrap().find("CLOSED");
    let column = column.unwrap_or_else(|| panic!("{table}"));
    let shut = lines.find(|line| line.starts_with("shut ")).unwrap();
    assert!(shut[column..].starts_with("true"), "{table}");
}
