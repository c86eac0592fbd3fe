//! The fields of pods and nodes that the demo reads.
//!
//! Not used: the whole types of `k8s-openapi`. Reading lists and watches of them compiles a reader
//! for every field that a pod can have, three times over, which took a quarter of the build of this
//! package.

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::{ApiResource, Object};
use kube::{Api, Client};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A pod: where it is, what it asks for, how far it has come.
pub(super) type Pod = Object<Option<PodSpec>, PodStatus>;

/// A node: how much there is.
pub(super) type Node = Object<Option<NodeSpec>, NodeStatus>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) node_name: Option<String>,
    pub(super) containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    pub(super) resources: Option<Resources>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    pub(super) requests: Option<BTreeMap<String, Quantity>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    pub(super) phase: Option<String>,
    pub(super) conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) reason: Option<String>,
}

/// No field of the spec is read.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct NodeSpec {}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatus {
    pub(super) allocatable: Option<BTreeMap<String, Quantity>>,
}

/// The pods of all namespaces.
pub(super) fn pods(client: Client) -> Api<Pod> {
    Api::all_with(client, &ApiResource::erase::<v1::Pod>(&()))
}

/// All nodes.
pub(super) fn nodes(client: Client) -> Api<Node> {
    Api::all_with(client, &ApiResource::erase::<v1::Node>(&()))
}
