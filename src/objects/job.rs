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
    /// `podFailurePolicy`.
    pub pod_failure_policy: Option<PodFailurePolicy>,
}

/// `podFailurePolicy` of a Job: of its rules the first that a failed pod meets holds.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PodFailurePolicy {
    /// `rules`.
    pub rules: Option<Vec<PodFailureRule>>,
}

/// One of the `rules` of a `podFailurePolicy`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodFailureRule {
    /// `action`: `FailJob`, `FailIndex`, `Ignore` or `Count`.
    pub action: Box<str>,
    /// `onExitCodes`.
    pub on_exit_codes: Option<OnExitCodes>,
    /// `onPodConditions`: it takes a pod with any of them.
    pub on_pod_conditions: Option<Vec<OnPodCondition>>,
}

/// `onExitCodes` of a rule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OnExitCodes {
    /// `operator`: `In` or `NotIn`.
    pub operator: Box<str>,
    /// `values`.
    pub values: Option<Vec<i64>>,
}

/// One of the `onPodConditions` of a rule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OnPodCondition {
    /// `type` of the condition.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// `status` of the condition; absent: `True`.
    pub status: Option<Box<str>>,
}
