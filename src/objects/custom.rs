//! Queues, PodGroups and Topologies, as JSON that nobody has checked.

use super::{Meta, null_is_default};
use serde::Deserialize;
use serde_json::Value;

/// A Queue of `gpu-batch.io`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Queue {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`, unread.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: Value,
    /// `status`, unread.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: Value,
}

/// A PodGroup of `gpu-batch.io`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PodGroup {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`, unread.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: Value,
    /// `status`, unread.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: Value,
}

/// A Topology of `gpu-batch.io`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Topology {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`, unread.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: Value,
}
