//! Follows the pods of a namespace at the API server, and remembers what each was seen to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::cluster::Cluster;

/// How often the pods are listed. Between two looks a pod can get a node only once, for what is
/// deleted never comes back: a pod that moved would have a new UID.
const POLL: Duration = Duration::from_millis(100);

/// How long a number of binds may take. Machines of CI are slow, and etcd stands still for 30 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// The witness; it ends when this is dropped.
pub(super) struct Witness {
    view: Arc<View>,
    _task: JoinSet<()>,
}

struct View {
    client: Client,
    path: String,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    /// The UIDs of the last list.
    all: BTreeSet<String>,
    /// The node of each pod that was seen with one, by UID.
    nodes: BTreeMap<String, String>,
    /// When each gang that is bound in part came to be so, and the longest that this lasted.
    partial: BTreeMap<String, Instant>,
    longest_partial: Duration,
    violations: Vec<String>,
}

impl Witness {
    pub(super) fn start(cluster: &Cluster) -> Self {
        let path = format!("/api/v1/namespaces/{}/pods", cluster.namespace);
        let view = Arc::new(View {
            client: cluster.client().clone(),
            path,
            books: Mutex::default(),
        });
        let mut task = JoinSet::new();
        let theirs = Arc::clone(&view);
        task.spawn(async move {
            loop {
                theirs.look().await;
                tokio::time::sleep(POLL).await;
            }
        });
        Self { view, _task: task }
    }

    /// How many pods were seen with a node.
    pub(super) fn count(&self) -> usize {
        self.view.books.lock().unwrap().nodes.len()
    }

    /// How many pods have a node, once what was under way has come to rest: for when nobody binds.
    pub(super) async fn count_at_rest(&self) -> usize {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.view.look().await;
        self.count()
    }

    /// Waits until at least so many pods were seen with a node.
    pub(super) async fn bound(&self, pods: usize) {
        let start = Instant::now();
        while self.count() < pods {
            let late = start.elapsed() > PATIENCE;
            assert!(!late, "{} of {pods} pods are bound", self.count());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// That nothing forbidden was seen.
    pub(super) fn check(&self) {
        let books = self.view.books.lock().unwrap();
        assert!(books.violations.is_empty(), "{:#?}", books.violations);
        eprintln!(
            "a gang was bound in part for at most {:?}",
            books.longest_partial
        );
    }
}

impl View {
    /// Lists the pods; nothing is learned while the API server is away.
    async fn look(&self) {
        let request = http::Request::get(&self.path).body(Vec::new()).unwrap();
        if let Ok(list) = self.client.request::<Value>(request).await {
            let pods = list["items"].as_array().unwrap();
            self.books.lock().unwrap().look(pods);
        }
    }
}

impl Books {
    fn look(&mut self, pods: &[Value]) {
        let mut held: BTreeMap<&str, u64> = BTreeMap::new();
        let mut gangs: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for pod in pods {
            let gang = pod["metadata"]["labels"]["gpu-batch.io/pod-group"].as_str();
            let (bound, members) = gangs.entry(gang.unwrap()).or_default();
            *members += 1;
            let Some(node) = pod["spec"]["nodeName"].as_str() else {
                continue;
            };
            *bound += 1;
            *held.entry(node).or_default() += gpus_of(pod);
            let before = self.nodes.insert(uid(pod), node.to_owned());
            if let Some(before) = before.filter(|before| before != node) {
                self.violations
                    .push(format!("a pod of {before} is on {node}"));
            }
        }
        let over = held.iter().filter(|(_, gpus)| **gpus > 8);
        let over = over.map(|(node, gpus)| format!("{gpus} GPUs are taken on {node}"));
        self.violations.extend(over);
        let seen: BTreeSet<String> = pods.iter().map(uid).collect();
        if !seen.is_superset(&self.all) {
            self.violations.push("pods were deleted".to_owned());
        }
        self.all = seen;
        self.note_partial(&gangs);
    }

    fn note_partial(&mut self, gangs: &BTreeMap<&str, (usize, usize)>) {
        let now = Instant::now();
        for (gang, (bound, members)) in gangs {
            if (1..*members).contains(bound) {
                let since = *self.partial.entry((*gang).to_owned()).or_insert(now);
                self.longest_partial = self.longest_partial.max(now - since);
            } else if let Some(since) = self.partial.remove(*gang) {
                self.longest_partial = self.longest_partial.max(now - since);
            }
        }
    }
}

fn uid(pod: &Value) -> String {
    pod["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The GPUs that a pod of the tests asks for.
pub(super) fn gpus_of(pod: &Value) -> u64 {
    let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
    limits["nvidia.com/gpu"].as_str().unwrap().parse().unwrap()
}
