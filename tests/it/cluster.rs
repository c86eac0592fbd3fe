//! A control plane with the custom resources, in which a test has a namespace and nodes of its own.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gpu_batch::kube::{api, connection};
use gpu_batch::lab::local::nodes::{self, GpuNode, H100};
use gpu_batch::lab::local::{Binaries, CONTROLLERS, ControlPlane, Options, Program};
use gpu_batch::live::Scheduler;
use gpu_batch::live::config::Configuration;
use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::harness;

/// Nodes are for the pods of one test by this label, whose value is the test's namespace.
pub(crate) const TEST_LABEL: &str = "example.com/test";

/// How long anything may take that is awaited. Machines of CI are slow.
const PATIENCE: Duration = Duration::from_secs(40);

/// Where a test works.
pub(crate) struct Cluster {
    client: Client,
    /// The test's own; also the value of the label [`TEST_LABEL`] and the prefix of node names.
    pub(crate) namespace: String,
    pub(crate) kubeconfig: PathBuf,
    kubectl: PathBuf,
    /// `None` where the control plane is shared.
    control_plane: Option<ControlPlane>,
}

/// What the tests share that do not disturb each other.
struct Shared {
    control_plane: ControlPlane,
    binaries: Binaries,
    _scheduler: Scheduler,
    /// Runs the scheduler, longer than the runtime of any test.
    _runtime: Runtime,
}

pub(crate) const SHARED_OPTIONS: Options = Options {
    kwok: true,
    controllers: CONTROLLERS,
    kube_scheduler: false,
    native_gangs: false,
    audit: false,
};

/// One control plane with kwok, the controllers and a running scheduler for most tests, which keep
/// apart by namespaces and node labels. `None`: skipped, for want of Go.
pub(crate) async fn shared(namespace: &str) -> Option<Cluster> {
    static SHARED: OnceLock<Option<Shared>> = OnceLock::new();
    let shared = tokio::task::spawn_blocking(|| SHARED.get_or_init(start_shared));
    let shared = shared.await.unwrap().as_ref()?;
    let cluster = Cluster::new(&shared.control_plane, &shared.binaries, namespace).await;
    Some(cluster)
}

fn start_shared() -> Option<Shared> {
    let runtime = Runtime::new().unwrap();
    let (control_plane, binaries, scheduler) = runtime.block_on(async {
        let (control_plane, binaries) = start(SHARED_OPTIONS).await?;
        let cluster = Cluster::new(&control_plane, &binaries, "shared").await;
        cluster.define_kinds().await;
        let scheduler = cluster.scheduler("").await;
        Some((control_plane, binaries, scheduler))
    })?;
    Some(Shared {
        control_plane,
        binaries,
        _scheduler: scheduler,
        _runtime: runtime,
    })
}

async fn start(options: Options) -> Option<(ControlPlane, Binaries)> {
    let mut programs = options.programs();
    programs.push(Program::Kubectl);
    let binaries = harness::binaries_of(programs).await?;
    let control_plane = ControlPlane::start(&binaries, options).await;
    Some((control_plane.unwrap_or_else(|e| panic!("{e}")), binaries))
}

/// A control plane of the test's own, without custom resources and without a scheduler. `None`:
/// skipped, for want of Go.
pub(crate) async fn own(namespace: &str, options: Options) -> Option<Cluster> {
    let (control_plane, binaries) = start(options).await?;
    let mut cluster = Cluster::new(&control_plane, &binaries, namespace).await;
    cluster.control_plane = Some(control_plane);
    Some(cluster)
}

/// The configuration that a test runs with: `text` is added to it.
pub(crate) fn configuration(text: &str) -> Configuration {
    let election = if text.contains("leaderElection") {
        ""
    } else {
        "leaderElection: {enabled: false}\n"
    };
    let text = format!(
        "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
         serveAddress: 127.0.0.1:0\n{election}{text}"
    );
    Configuration::parse(&text, "test").unwrap()
}

impl Cluster {
    async fn new(control_plane: &ControlPlane, binaries: &Binaries, namespace: &str) -> Self {
        let cluster = Self {
            client: control_plane.client().await.unwrap(),
            namespace: namespace.to_owned(),
            kubeconfig: control_plane.kubeconfig().to_owned(),
            kubectl: binaries.path(Program::Kubectl),
            control_plane: None,
        };
        cluster
            .create(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                    "name": namespace, "labels": {"team": namespace},
                }}),
            )
            .await;
        cluster
    }

    /// The control plane of a test that has its own.
    pub(crate) fn control_plane(&mut self) -> &mut ControlPlane {
        self.control_plane.as_mut().unwrap()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Defines the custom resources and waits until they are served.
    pub(crate) async fn define_kinds(&self) {
        for crd in api::crds() {
            let mut crd = serde_json::to_value(crd).unwrap();
            crd["apiVersion"] = json!("apiextensions.k8s.io/v1");
            crd["kind"] = json!("CustomResourceDefinition");
            self.create(&crd).await;
        }
        for plural in ["queues", "podgroups", "topologies"] {
            let path = format!("/apis/gpu-batch.io/v1alpha1/{plural}");
            until(plural, async || self.list(&path).await.map(drop)).await;
        }
    }

    /// A scheduler in this process; `text` is its configuration, beside what every test needs.
    pub(crate) async fn scheduler(&self, text: &str) -> Scheduler {
        let kubeconfig = Some(&*self.kubeconfig);
        let config = connection::config(kubeconfig, None).await.unwrap();
        Scheduler::start(&config, configuration(text))
            .await
            .unwrap()
    }

    /// Creates nodes with 8 GPUs each in their racks, and returns their names.
    pub(crate) async fn nodes<const N: usize>(&self, racks: [&str; N]) -> [String; N] {
        let mut number = 0;
        let nodes = racks.map(|rack| {
            number += 1;
            self.node(&format!("n{number}"), rack)
        });
        let names = nodes.each_ref().map(|node| node.name.clone());
        nodes::create(&self.client, nodes).await.unwrap();
        names
    }

    /// A node that only pods of this test use.
    pub(crate) fn node(&self, name: &str, rack: &str) -> GpuNode {
        let mut node = GpuNode::new(format!("{}-{name}", self.namespace), H100);
        node.rack = rack.to_owned();
        let label = (TEST_LABEL.to_owned(), self.namespace.clone());
        node.labels.extend([label]);
        node
    }

    pub(crate) async fn add_node(&self, node: GpuNode) {
        self.add_nodes([node]).await;
    }

    pub(crate) async fn add_nodes(&self, nodes: impl IntoIterator<Item = GpuNode>) {
        nodes::create(&self.client, nodes).await.unwrap();
    }

    /// Creates an object of any kind that the tests use.
    pub(crate) async fn create(&self, object: &Value) -> Value {
        let created = self.try_create(object).await;
        created.unwrap_or_else(|message| panic!("{message}\n{object:#}"))
    }

    /// Creates an object of any kind that the tests use; on failure returns the API server's
    /// message.
    pub(crate) async fn try_create(&self, object: &Value) -> Result<Value, String> {
        // As kubectl does: what nobody knows is refused.
        let path = format!("{}?fieldValidation=Strict", self.collection(object));
        let body = serde_json::to_vec(object).unwrap();
        self.send(http::Request::post(path).body(body).unwrap())
            .await
    }

    /// Replaces the object as far as `object` says.
    pub(crate) async fn try_merge(&self, path: &str, object: &Value) -> Result<Value, String> {
        let request = http::Request::patch(path)
            .header("Content-Type", "application/merge-patch+json")
            .body(serde_json::to_vec(object).unwrap());
        self.send(request.unwrap()).await
    }

    pub(crate) async fn merge(&self, path: &str, object: &Value) -> Value {
        let merged = self.try_merge(path, object).await;
        merged.unwrap_or_else(|message| panic!("{path}: {message}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, String> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.send(request).await
    }

    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let list = self.get(path).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Deletes without grace.
    pub(crate) async fn delete(&self, path: &str) {
        let request = http::Request::delete(format!("{path}?gracePeriodSeconds=0"));
        let deleted = self.send(request.body(Vec::new()).unwrap()).await;
        deleted.unwrap_or_else(|message| panic!("{path}: {message}"));
    }

    pub(crate) async fn send(&self, mut request: http::Request<Vec<u8>>) -> Result<Value, String> {
        let json = http::HeaderValue::from_static("application/json");
        let headers = request.headers_mut();
        headers.entry("Content-Type").or_insert(json);
        let answer = self.client.request(request).await;
        answer.map_err(|error| match error {
            kube::Error::Api(status) => status.message.clone(),
            error => error.to_string(),
        })
    }

    /// Where objects of this one's kind are created.
    pub(crate) fn collection(&self, object: &Value) -> String {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let plural = match &*kind {
            "PriorityClass" => "priorityclasses".to_owned(),
            "Topology" => "topologies".to_owned(),
            "NodeResourceTopology" => "noderesourcetopologies".to_owned(),
            "StorageClass" => "storageclasses".to_owned(),
            "MutatingAdmissionPolicy" => "mutatingadmissionpolicies".to_owned(),
            _ => format!("{}s", kind.to_lowercase()),
        };
        let group = if version.contains('/') { "apis" } else { "api" };
        let namespaced = matches!(
            &*kind,
            "Pod"
                | "PodGroup"
                | "Job"
                | "Deployment"
                | "PodDisruptionBudget"
                | "PersistentVolumeClaim"
        );
        if namespaced {
            let namespace = object["metadata"]["namespace"].as_str();
            let namespace = namespace.unwrap_or(&self.namespace);
            format!("/{group}/{version}/namespaces/{namespace}/{plural}")
        } else {
            format!("/{group}/{version}/{plural}")
        }
    }

    pub(crate) fn pod_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{name}", self.namespace)
    }

    pub(crate) fn group_path(&self, name: &str) -> String {
        format!(
            "/apis/gpu-batch.io/v1alpha1/namespaces/{}/podgroups/{name}",
            self.namespace
        )
    }

    /// What the API server has been asked so far, an event each; only for a cluster of one's own
    /// with [`Options::audit`].
    pub(crate) fn audit_log(&self) -> Vec<Value> {
        let file = self.control_plane.as_ref().unwrap().audit_log();
        let text = std::fs::read_to_string(file).unwrap();
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let events = whole.lines().map(serde_json::from_str);
        events.collect::<Result<_, _>>().unwrap()
    }

    /// Runs kubectl and returns what it prints.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let output = tokio::process::Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .await
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {printed}{errors}");
        printed
    }
}

/// Asks every 50 ms until the answer is good; panics with the last complaint.
pub(crate) async fn until<T>(
    what: &str,
    mut question: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let start = Instant::now();
    loop {
        match question().await {
            Ok(answer) => return answer,
            Err(complaint) => {
                let late = start.elapsed() > PATIENCE;
                assert!(!late, "{what}: not within {PATIENCE:?}: {complaint}");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asks for a while whether something stays as it is.
pub(crate) async fn stays(
    what: &str,
    wait: Duration,
    mut question: impl AsyncFnMut() -> Result<(), String>,
) {
    let start = Instant::now();
    while start.elapsed() < wait {
        if let Err(complaint) = question().await {
            panic!("{what}: {complaint}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
