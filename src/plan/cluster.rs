//! The objects of a cluster, as `kubectl get -o json` would print them.

use super::source::Source;
use crate::kube::connection;
use kube::Client;
use kube::core::Status;
use serde_json::Value;
use std::time::Duration;
use thiserror::Error;

/// Objects a page.
const PAGE_OBJECTS: u32 = 500;
/// How long a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// What users are told as the source of these objects.
const NAME: &str = "the cluster";

/// What a cluster holds that a plan may need.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Captured {
    /// Lists of objects, page by page.
    pub(super) lists: Vec<(Source, Value)>,
    /// What a user should know about these objects, a sentence each.
    pub(super) notes: Vec<String>,
}

impl Captured {
    /// Whether a pod names a native PodGroup (`scheduling.k8s.io`).
    fn names_groups(&self) -> bool {
        let items = self.lists.iter().map(|(_, list)| list["items"].as_array());
        let mut objects = items.flatten().flatten();
        objects.any(|object| object.pointer("/spec/schedulingGroup").is_some())
    }
}

/// Why the cluster could not be read.
#[derive(Debug, Error)]
pub(crate) enum NotCaptured {
    /// The API server does not list what every plan needs.
    #[error("the {kind} of the cluster cannot be listed: {message}")]
    Refused {
        /// The kind, in the plural.
        kind: &'static str,
        /// What the API server says.
        message: String,
    },
    /// The API server does not answer.
    #[error("the API server does not answer: {0}")]
    Silent(String),
}

/// A kind that is listed.
struct Listed {
    kind: &'static str,
    path: &'static str,
    need: Need,
}

/// How much a plan needs a kind.
#[derive(PartialEq)]
enum Need {
    /// A plan without the kind would be about an empty cluster, so none is made.
    Vital,
    /// A plan without the kind is made, and says so in a note.
    Usual,
    /// As [`Need::Usual`]; the definition of the kind comes with gpu-batch.
    Ours,
    /// Most clusters do not serve the kind. A note is given only where pods need it.
    Optional,
    /// As [`Need::Usual`], but many clusters do not serve the kind, which is no news.
    Extra,
}

const KINDS: [Listed; 18] = [
    Listed::new("Nodes", "/api/v1/nodes", Need::Vital),
    Listed::new("Pods", "/api/v1/pods", Need::Vital),
    Listed::new("Namespaces", "/api/v1/namespaces", Need::Usual),
    Listed::new("Jobs", "/apis/batch/v1/jobs", Need::Usual),
    Listed::new(
        "PriorityClasses",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        Need::Usual,
    ),
    Listed::new(
        "PodDisruptionBudgets",
        "/apis/policy/v1/poddisruptionbudgets",
        Need::Usual,
    ),
    Listed::new(
        "PersistentVolumeClaims",
        "/api/v1/persistentvolumeclaims",
        Need::Usual,
    ),
    Listed::new(
        "PersistentVolumes",
        "/api/v1/persistentvolumes",
        Need::Usual,
    ),
    Listed::new(
        "StorageClasses",
        "/apis/storage.k8s.io/v1/storageclasses",
        Need::Usual,
    ),
    Listed::new("CSINodes", "/apis/storage.k8s.io/v1/csinodes", Need::Usual),
    Listed::new(
        "CSIDrivers",
        "/apis/storage.k8s.io/v1/csidrivers",
        Need::Usual,
    ),
    Listed::new(
        "CSIStorageCapacities",
        "/apis/storage.k8s.io/v1/csistoragecapacities",
        Need::Usual,
    ),
    Listed::new(
        "VolumeAttachments",
        "/apis/storage.k8s.io/v1/volumeattachments",
        Need::Usual,
    ),
    Listed::new("Queues", "/apis/gpu-batch.io/v1alpha1/queues", Need::Ours),
    Listed::new(
        "PodGroups",
        "/apis/gpu-batch.io/v1alpha1/podgroups",
        Need::Ours,
    ),
    Listed::new(
        "Topologies",
        "/apis/gpu-batch.io/v1alpha1/topologies",
        Need::Ours,
    ),
    Listed::new(
        "NodeResourceTopologies",
        "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
        Need::Extra,
    ),
    Listed::new(
        "PodGroups of Kubernetes",
        "/apis/scheduling.k8s.io/v1alpha2/podgroups",
        Need::Optional,
    ),
];

impl Listed {
    const fn new(kind: &'static str, path: &'static str, need: Need) -> Self {
        Self { kind, path, need }
    }
}

/// Lists everything that a plan may need. Rights to list are enough.
///
/// # Errors
/// If the API server does not answer, or does not list nodes or pods. Any other kind that the API
/// server does not list is named in a note.
pub(crate) async fn capture(client: &Client) -> Result<Captured, NotCaptured> {
    let mut captured = Captured::default();
    let mut not_installed = Vec::new();
    for listed in &KINDS {
        let kind = listed.kind;
        let error = match pages(client, listed.path, &mut captured.lists).await {
            Ok(()) => continue,
            Err(error) => error,
        };
        let message = match error {
            // A user without the right to list a kind is refused even where the kind is not served.
            kube::Error::Api(_) if listed.need == Need::Optional && !captured.names_groups() => {
                continue;
            }
            kube::Error::Api(_)
                if listed.need == Need::Extra && !is_served(client, listed).await =>
            {
                continue;
            }
            kube::Error::Api(status) if status.code == 404 && listed.need == Need::Ours => {
                not_installed.push(kind);
                continue;
            }
            kube::Error::Api(status) => status.message,
            error => return Err(NotCaptured::Silent(connection::obstacle(&error))),
        };
        if listed.need == Need::Vital {
            return Err(NotCaptured::Refused { kind, message });
        }
        captured.notes.push(format!(
            "the plan is made without the {kind} of the cluster, which cannot be listed: {message}"
        ));
    }
    if !not_installed.is_empty() {
        captured.notes.push(format!(
            "the cluster has no {}; `gpu-batch crds | kubectl apply -f -` installs their kinds",
            not_installed.join(", ")
        ));
    }
    Ok(captured)
}

/// Whether the API server serves the version that a kind is of, which every user may ask; true
/// where it does not say.
async fn is_served(client: &Client, listed: &Listed) -> bool {
    let version = listed
        .path
        .rsplit_once('/')
        .map_or("", |(version, _)| version);
    let answer = page(client, version).await;
    !matches!(answer, Err(kube::Error::Api(status)) if status.code == 404)
}

/// Adds all pages of a kind.
async fn pages(
    client: &Client,
    path: &str,
    lists: &mut Vec<(Source, Value)>,
) -> Result<(), kube::Error> {
    let source = Source {
        file: NAME.into(),
        document: None,
    };
    let mut token = String::new();
    loop {
        // The token is base64 for URLs, so it needs no escapes.
        let after = match &*token {
            "" => String::new(),
            token => format!("&continue={token}"),
        };
        let mut page = page(client, &format!("{path}?limit={PAGE_OBJECTS}{after}")).await?;
        let next = page.pointer("/metadata/continue").and_then(Value::as_str);
        token = next.unwrap_or_default().to_owned();
        for item in page["items"].as_array_mut().into_iter().flatten() {
            // The field is never read, and can be half of an object.
            if let Some(metadata) = item["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
        lists.push((source.clone(), page));
        if token.is_empty() {
            return Ok(());
        }
    }
}

async fn page(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    let late = |_| {
        let message = format!("no list within {} s", PAGE_TIMEOUT.as_secs());
        kube::Error::Api(Box::new(Status::failure(&message, "Timeout")))
    };
    let answer = tokio::time::timeout(PAGE_TIMEOUT, client.request(request));
    answer.await.map_err(late)?
}
