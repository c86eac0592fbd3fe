//! PodGroups of `scheduling.k8s.io`.

use super::{Meta, null_is_default};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A PodGroup of `scheduling.k8s.io/v1alpha2`: Kubernetes' own gang.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NativePodGroup {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: NativePodGroupSpec,
}

/// `spec` of a native PodGroup.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NativePodGroupSpec {
    /// `schedulingPolicy`: exactly one of `basic` and `gang`.
    #[serde(default)]
    pub scheduling_policy: SchedulingPolicy,
    /// `schedulingConstraints`.
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// `resourceClaims`; only their presence matters.
    pub resource_claims: Option<Vec<IgnoredAny>>,
    /// `priorityClassName`.
    pub priority_class_name: Option<Box<str>>,
    /// `priority`.
    pub priority: Option<i64>,
}

/// How a native PodGroup is scheduled.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SchedulingPolicy {
    /// Pod by pod.
    pub basic: Option<IgnoredAny>,
    /// All or nothing.
    pub gang: Option<GangPolicy>,
}

/// The policy `gang`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GangPolicy {
    /// How many pods start together.
    #[serde(default)]
    pub min_count: i64,
}

/// Where the pods of a native PodGroup must be.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SchedulingConstraints {
    /// At most one constraint.
    pub topology: Option<Vec<TopologyConstraint>>,
}

/// All pods in one domain of a node label.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct TopologyConstraint {
    /// The node label.
    #[serde(default)]
    pub key: Box<str>,
}
