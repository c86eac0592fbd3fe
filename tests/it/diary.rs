//! Follows the pods of a namespace, and remembers all that the API server says of them, in its
//! order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::{AsyncBufReadExt, StreamExt};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::cluster::{Cluster, until};
use crate::work::{condition, ensure};

/// The diary; it ends when this is dropped.
pub(crate) struct Diary {
    entries: Arc<Mutex<Vec<Entry>>>,
    _task: JoinSet<()>,
}

/// What the API server said once.
struct Entry {
    pod: Value,
    is_gone: bool,
}

impl Entry {
    fn is_of(&self, name: &str) -> bool {
        self.pod["metadata"]["name"] == name
    }
}

impl Diary {
    /// A diary that begins with the pods that are there now.
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        let path = format!("/api/v1/namespaces/{}/pods", cluster.namespace);
        let list = cluster.get(&path).await.unwrap();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let path = format!("{path}?watch=true&resourceVersion={version}&timeoutSeconds=3600");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let stream = cluster.client().request_stream(request).await;
        let mut lines = Box::pin(stream.unwrap()).lines();
        let entries: Arc<Mutex<Vec<Entry>>> = Arc::default();
        let written = Arc::clone(&entries);
        let mut task = JoinSet::new();
        task.spawn(async move {
            // The watch is cut when the test ends.
            while let Some(Ok(line)) = lines.next().await {
                let mut event: Value = serde_json::from_str(&line).unwrap();
                let pod = event["object"].take();
                let is_gone = event["type"] == "DELETED";
                written.lock().unwrap().push(Entry { pod, is_gone });
            }
        });
        Self {
            entries,
            _task: task,
        }
    }

    /// The pods that were evicted through the Eviction API so far.
    pub(crate) fn evicted(&self) -> BTreeSet<String> {
        let entries = self.entries.lock().unwrap();
        entries.iter().filter_map(evicted).collect()
    }

    /// The pods that were marked for a reason as about to be evicted so far.
    pub(crate) fn evicted_for(&self, reason: &str) -> BTreeSet<String> {
        let entries = self.entries.lock().unwrap();
        let pods = entries.iter().filter_map(|entry| targeted(entry, reason));
        pods.collect()
    }

    /// The first node whose pods had more GPUs than this at a time, and the pod with which it had.
    pub(crate) fn overfilled(&self, gpus: u64) -> Option<(String, String)> {
        let mut pods: BTreeMap<String, (String, u64)> = BTreeMap::new();
        for entry in self.entries.lock().unwrap().iter() {
            let name = entry.pod["metadata"]["name"].as_str()?.to_owned();
            let Some(node) = entry.pod["spec"]["nodeName"].as_str() else {
                continue;
            };
            pods.insert(name.clone(), (node.to_owned(), gpus_of(&entry.pod)));
            let phase = entry.pod["status"]["phase"].as_str();
            // A pod that has ended takes no room.
            if entry.is_gone || matches!(phase, Some("Succeeded" | "Failed")) {
                pods.remove(&name);
            }
            let on_node = pods.values().filter(|(of, _)| of == node);
            if on_node.map(|(_, gpus)| gpus).sum::<u64>() > gpus {
                return Some((node.to_owned(), name));
            }
        }
        None
    }

    /// Waits until a pod is known to be gone.
    pub(crate) async fn gone(&self, name: &str) {
        until(name, async || {
            let entries = self.entries.lock().unwrap();
            let gone = entries
                .iter()
                .any(|entry| entry.is_gone && entry.is_of(name));
            ensure(gone, entries.len())
        })
        .await;
    }

    /// The pods that were evicted after this one was gone.
    pub(crate) fn evicted_after(&self, name: &str) -> BTreeSet<String> {
        let entries = self.entries.lock().unwrap();
        let gone = entries.iter().position(|e| e.is_gone && e.is_of(name));
        let (before, after) = entries.split_at(gone.unwrap());
        let before: BTreeSet<String> = before.iter().filter_map(evicted).collect();
        let after = after.iter().filter_map(evicted);
        after.filter(|pod| !before.contains(pod)).collect()
    }

    /// The node to which each of these pods was nominated when the first pod was evicted. One that
    /// was not nominated by then has none.
    pub(crate) fn nominated_before_evictions(&self, members: &[String]) -> Vec<Option<String>> {
        let entries = self.entries.lock().unwrap();
        let first = entries.iter().position(|entry| evicted(entry).is_some());
        let before = &entries[..first.unwrap()];
        let nominated = members.iter().map(|member| {
            let last = before.iter().rfind(|entry| entry.is_of(member));
            let node = last?.pod["status"]["nominatedNodeName"].as_str();
            node.map(str::to_owned)
        });
        nominated.collect()
    }
}

/// The name of the pod of an entry, if the Eviction API has marked it.
fn evicted(entry: &Entry) -> Option<String> {
    targeted(entry, "EvictionByEvictionAPI")
}

/// The name of the pod of an entry, if it is marked for this reason as about to be evicted.
fn targeted(entry: &Entry, reason: &str) -> Option<String> {
    let target = condition(&entry.pod, "DisruptionTarget");
    let is_targeted = target["status"] == "True" && target["reason"] == reason;
    let name = entry.pod["metadata"]["name"].as_str();
    name.filter(|_| is_targeted).map(str::to_owned)
}

/// How many GPUs a pod holds: those of its only container, until it has ended.
fn gpus_of(pod: &Value) -> u64 {
    let has_ended = ["Succeeded", "Failed"].map(|phase| pod["status"]["phase"] == phase);
    let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
    let gpus = limits["nvidia.com/gpu"].as_str().unwrap_or("0");
    match has_ended.contains(&true) {
        true => 0,
        false => gpus.parse().unwrap(),
    }
}
