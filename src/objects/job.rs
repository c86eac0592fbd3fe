//! Jobs.

use super::{Meta, null_is_default};
use serde::Deserialize;

/// A Job of `batch/v1`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Job {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: JobSpec,
}

/// `spec` of a Job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    /// `completionMode`: `Indexed` or `NonIndexed`.
    pub completion_mode: Option<Box<str>>,
    /// `parallelism`.
    pub parallelism: Option<i64>,
    /// `completions`.
    pub completions: Option<i64>,
    /// `activeDeadlineSeconds`.
    pub active_deadline_seconds: Option<i64>,
}
