//! What kube-scheduler and its extenders send each other: `k8s.io/kube-scheduler/extender/v1`, as
//! far as it is used. Its names are those of Go's fields, because there they have no others.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What `/filter` and `/prioritize` are asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NodesAsked<'a> {
    pub(super) pod: Pod,
    /// Set where kube-scheduler is told that the extender knows the nodes (`nodeCacheCapable`).
    #[serde(default)]
    pub(super) node_names: Option<Vec<Box<str>>>,
    /// Set where it is not.
    #[serde(borrow, default)]
    pub(super) nodes: Option<NodeList<'a>>,
}

/// Of a pod, only what it is known by.
#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    pub(super) metadata: Meta,
}

/// What an object is known by.
#[derive(Debug, Deserialize)]
pub(super) struct Meta {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) uid: String,
}

/// Whole nodes, which are given back as they came.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeList<'a> {
    /// Go writes a list that was never filled as null.
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// The only thing that is read of a node.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) metadata: Meta,
}

/// What `/filter` answers.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Filtered<'a> {
    pub(super) node_names: Option<Vec<&'a str>>,
    pub(super) nodes: Option<NodeList<'a>>,
    /// Where pods that end or are evicted may help.
    pub(super) failed_nodes: BTreeMap<&'a str, Box<str>>,
    /// Where no eviction helps.
    pub(super) failed_and_unresolvable_nodes: BTreeMap<&'a str, Box<str>>,
    pub(super) error: String,
}

/// What `/prioritize` answers for each node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Scored<'a> {
    pub(super) host: &'a str,
    pub(super) score: u8,
}

/// What `/preempt` is asked. One of the two maps is set.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct VictimsAsked {
    pub(super) pod: Pod,
    #[serde(default)]
    pub(super) node_name_to_meta_victims: Option<BTreeMap<Box<str>, Victims<MetaPod>>>,
    #[serde(default)]
    pub(super) node_name_to_victims: Option<BTreeMap<Box<str>, Victims<Pod>>>,
}

/// The pods that would be evicted from one node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Victims<P> {
    #[serde(rename = "Pods", default = "Option::default")]
    pub(super) pods: Option<Vec<P>>,
    #[serde(rename = "NumPDBViolations", default)]
    pub(super) violations: i64,
}

/// A pod by its UID.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MetaPod {
    #[serde(rename = "UID")]
    pub(super) uid: String,
}

/// What `/preempt` answers: the nodes on which the pods may be evicted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct VictimsAllowed {
    pub(super) node_name_to_meta_victims: BTreeMap<Box<str>, Victims<MetaPod>>,
}

/// What `/bind` is asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BindAsked {
    #[serde(rename = "PodUID")]
    pub(super) pod_uid: String,
    pub(super) node: Box<str>,
}

/// What `/bind` answers. No error: the pod is bound.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BindAnswered {
    pub(super) error: String,
}

impl From<Pod> for MetaPod {
    fn from(pod: Pod) -> Self {
        let uid = pod.metadata.uid;
        Self { uid }
    }
}

impl VictimsAsked {
    /// The victims by node, whichever map they came in.
    ///
    /// # Errors
    /// If there is no map.
    pub(super) fn victims(self) -> Result<BTreeMap<Box<str>, Victims<MetaPod>>, String> {
        if let Some(victims) = self.node_name_to_meta_victims {
            return Ok(victims);
        }
        let victims = self.node_name_to_victims;
        let victims =
            victims.ok_or("neither NodeNameToMetaVictims nor NodeNameToVictims is set")?;
        let meta = |victims: Victims<Pod>| Victims {
            pods: victims
                .pods
                .map(|pods| pods.into_iter().map(MetaPod::from).collect()),
            violations: victims.violations,
        };
        let victims = victims.into_iter();
        Ok(victims
            .map(|(node, victims)| (node, meta(victims)))
            .collect())
    }
}

/// Reads the body of a request from kube-scheduler.
///
/// # Errors
/// The body cannot be read. The sentence names the kind of an object of another API.
pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        api_version: String,
        kind: String,
    }
    serde_json::from_slice(body).map_err(|error| {
        let wanted = "kube-scheduler's extender API v1 (k8s.io/kube-scheduler/extender/v1)";
        match serde_json::from_slice(body) {
            Ok(Typed { api_version, kind }) => {
                format!("this is a {kind} of {api_version}, not a request of {wanted}")
            }
            Err(_) => format!("this is not a request of {wanted}: {error}"),
        }
    })
}
