//! Watches: short ones from a version on, and one of each kind over the whole test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::AsyncBufReadExt;
use gpu_batch::kube::convert::Watched;
use gpu_batch::kube::objects::{
    DisruptionBudget, Job, Namespace, NativePodGroup, Node, Pod, PodGroup, PriorityClass, Queue,
    Topology,
};
use gpu_batch_policies::event::Kind;
use gpu_batch_simulator::api_server::{Sort, Version};
use kube::Client;
use serde_json::Value;

use super::objects::{self, NO_VOLUMES, SEQUENCE};
use super::reply::{Reply, Seen, refusal, seen, version};

/// How long a watch may take to say what has happened already.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads so many changes.
pub(super) async fn read(
    client: &Client,
    path: String,
    kind: Kind,
    count: usize,
) -> Result<Reply, String> {
    let mut changes = Vec::new();
    let reading = follow(client, &path, count, |sort, object| {
        changes.push((sort, seen(kind, object)?));
        Ok(())
    });
    let ended = match tokio::time::timeout(PATIENCE, reading).await {
        Ok(ended) => ended?,
        // Changes that are missing show when all are compared.
        Err(_) => None,
    };
    Ok(ended.unwrap_or(Reply::Changes(changes)))
}

/// Opens a watch and hands on at most so many changes. `Some`: the API server said no.
async fn follow(
    client: &Client,
    path: &str,
    count: usize,
    mut take: impl FnMut(Sort, Value) -> Result<(), String>,
) -> Result<Option<Reply>, String> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let stream = match client.request_stream(request).await {
        Ok(stream) => stream,
        Err(kube::Error::Api(status)) => return Ok(Some(refusal(&status))),
        Err(error) => return Err(error.to_string()),
    };
    let mut stream = std::pin::pin!(stream);
    let mut line = Vec::new();
    for _ in 0..count {
        line.clear();
        match stream.read_until(b'\n', &mut line).await {
            Ok(length) if length > 0 => {}
            Ok(_) => break,
            Err(error) => return Err(error.to_string()),
        }
        let mut frame: Value = serde_json::from_slice(&line).map_err(|e| e.to_string())?;
        let object = frame["object"].take();
        let sort = match frame["type"].as_str() {
            Some("ADDED") => Sort::Added,
            Some("MODIFIED") => Sort::Modified,
            Some("DELETED") => Sort::Deleted,
            Some("ERROR") => {
                let status = serde_json::from_value(object).map_err(|e| e.to_string())?;
                return Ok(Some(refusal(&status)));
            }
            other => return Err(format!("{other:?} is not a change")),
        };
        take(sort, object)?;
    }
    Ok(None)
}

/// What all watches of the test have said, by kind and sequence.
pub(super) type Heard = BTreeMap<(Kind, Box<str>), Vec<(Sort, Seen)>>;

/// One watch a kind, over everything, as the shell's: by its path and from its list on.
pub(super) struct Watches {
    heard: Arc<Mutex<Heard>>,
    tasks: tokio::task::JoinSet<String>,
}

impl Watches {
    pub(super) async fn start(client: &Client) -> Self {
        let heard = Arc::default();
        let mut tasks = tokio::task::JoinSet::new();
        for kind in objects::kinds() {
            let path = path_of(kind);
            let request = http::Request::get(format!("{path}?limit=1")).body(Vec::new());
            let list: Value = client.request(request.unwrap()).await.unwrap();
            let from = version(&list["metadata"]["resourceVersion"]).unwrap();
            let (client, heard) = (client.clone(), Arc::clone(&heard));
            tasks.spawn(async move { listen(&client, kind, path, from, &heard).await });
        }
        Self { heard, tasks }
    }

    /// Waits until each kind's watch has told of something of this sequence.
    pub(super) async fn have_heard_of(&mut self, id: &str) {
        let told = |heard: &Heard| {
            let mut kinds = objects::kinds().into_iter();
            kinds.all(|kind| heard.contains_key(&(kind, id.into())))
        };
        let start = std::time::Instant::now();
        while !told(&self.heard.lock().unwrap()) {
            if let Some(ended) = self.tasks.try_join_next() {
                panic!("a watch ended: {ended:?}");
            }
            assert!(start.elapsed() < PATIENCE, "the watches do not keep up");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What there was to hear so far of one sequence.
    pub(super) fn take(&self, kind: Kind, id: &str) -> Vec<(Sort, Seen)> {
        let mut heard = self.heard.lock().unwrap();
        heard.remove(&(kind, id.into())).unwrap_or_default()
    }
}

/// Follows one kind for ever, going on where a watch has ended; returns what went wrong.
async fn listen(
    client: &Client,
    kind: Kind,
    path: &str,
    from: Version,
    heard: &Mutex<Heard>,
) -> String {
    let mut position = from;
    loop {
        let path = format!("{path}?watch=true&resourceVersion={position}&timeoutSeconds=3600");
        let ended = follow(client, &path, usize::MAX, |sort, object| {
            let metadata = &object["metadata"];
            let id = match metadata["namespace"].as_str() {
                Some(namespace) => namespace.trim_start_matches('s').into(),
                None => metadata["labels"][SEQUENCE]
                    .as_str()
                    .unwrap_or_default()
                    .into(),
            };
            let seen = seen(kind, object)?;
            position = seen.version;
            heard
                .lock()
                .unwrap()
                .entry((kind, id))
                .or_default()
                .push((sort, seen));
            Ok(())
        });
        match ended.await {
            Ok(None) => {}
            Ok(Some(refusal)) => return format!("{kind:?}: {refusal:?}"),
            Err(error) => return format!("{kind:?}: {error}"),
        }
    }
}

fn path_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => Node::PATH,
        Kind::Pod => Pod::PATH,
        Kind::Queue => Queue::PATH,
        Kind::PodGroup => PodGroup::PATH,
        Kind::NativePodGroup => NativePodGroup::PATH,
        Kind::Topology => Topology::PATH,
        Kind::PriorityClass => PriorityClass::PATH,
        Kind::Namespace => Namespace::PATH,
        Kind::Job => Job::PATH,
        Kind::DisruptionBudget => DisruptionBudget::PATH,
        Kind::Storage(_) | Kind::Numa => unreachable!("{NO_VOLUMES}"),
    }
}
