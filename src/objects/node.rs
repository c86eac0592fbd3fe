//! Nodes.

use super::{Condition, Meta, Pairs, Quantity, null_is_default};
use serde::Deserialize;

/// A node.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Node {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: NodeSpec,
    /// `status`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: NodeStatus,
}

/// `spec` of a node.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeSpec {
    /// `taints`.
    pub taints: Option<Vec<Taint>>,
    /// `unschedulable`: `kubectl cordon`.
    pub unschedulable: Option<bool>,
}

/// A taint.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// `key`.
    pub key: Box<str>,
    /// `value`.
    pub value: Option<Box<str>>,
    /// `effect`.
    pub effect: Box<str>,
}

/// `status` of a node.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeStatus {
    /// `allocatable`; absent: the capacity.
    pub allocatable: Option<Pairs<Quantity>>,
    /// `capacity`.
    #[serde(default)]
    pub capacity: Pairs<Quantity>,
    /// `conditions`.
    pub conditions: Option<Vec<Condition>>,
}
