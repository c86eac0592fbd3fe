//! NodeResourceTopologies of `topology.node.k8s.io/v1alpha2`.
//!
//! Other programs write them, and no schema of ours checks them: what is in them stays JSON, so
//! that a wrong field harms only the object that has it.

use super::{Meta, Quantity};
use serde::Deserialize;
use serde_json::Value;

/// What an exporter says of the NUMA nodes of the node that has its name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeResourceTopology {
    /// `metadata`.
    pub metadata: Meta,
    /// `topologyPolicies`: policy and scope in one word, as older exporters write them.
    pub topology_policies: Value,
    /// `attributes`: policy and scope, among others.
    pub attributes: Value,
    /// `zones`.
    pub zones: Value,
}

/// One of `attributes`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TopologyAttribute {
    /// `name`.
    pub name: Box<str>,
    /// `value`.
    pub value: Box<str>,
}

/// One of `zones`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TopologyZone {
    /// `name`: `node-0`.
    pub name: Box<str>,
    /// `type`: `Node` of a NUMA node.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// `resources`.
    pub resources: Option<Vec<ZoneResource>>,
}

/// One of the `resources` of a zone.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ZoneResource {
    /// `name`.
    pub name: Box<str>,
    /// `capacity`.
    pub capacity: Option<Quantity>,
    /// `allocatable`.
    pub allocatable: Option<Quantity>,
    /// `available`.
    pub available: Option<Quantity>,
}
