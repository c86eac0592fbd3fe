//! What a pod asks of the node and of other pods.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// `spec.affinity`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    /// `nodeAffinity`.
    pub node_affinity: Option<NodeAffinity>,
    /// `podAffinity`.
    pub pod_affinity: Option<PodAffinity>,
    /// `podAntiAffinity`.
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// `nodeAffinity`, without its preferences.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeAffinity {
    /// `requiredDuringSchedulingIgnoredDuringExecution`.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
}

/// A node selector: one of the terms must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// `nodeSelectorTerms`.
    pub node_selector_terms: Option<Vec<NodeSelectorTerm>>,
}

/// A term: all requirements must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// `matchExpressions`: on labels.
    pub match_expressions: Option<Vec<Requirement>>,
    /// `matchFields`: on fields.
    pub match_fields: Option<Vec<Requirement>>,
}

/// `key operator values`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// `key`.
    pub key: Box<str>,
    /// `operator`.
    pub operator: Box<str>,
    /// `values`.
    pub values: Option<Vec<Box<str>>>,
}

/// `podAffinity` or `podAntiAffinity`, without preferences.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PodAffinity {
    /// `requiredDuringSchedulingIgnoredDuringExecution`; only its presence matters.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<Vec<IgnoredAny>>,
}

/// A toleration.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Toleration {
    /// `key`.
    pub key: Option<Box<str>>,
    /// `operator`.
    pub operator: Option<Box<str>>,
    /// `value`.
    pub value: Option<Box<str>>,
    /// `effect`.
    pub effect: Option<Box<str>>,
}

/// One of `topologySpreadConstraints`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// `whenUnsatisfiable`: `DoNotSchedule` is a rule, `ScheduleAnyway` a preference.
    pub when_unsatisfiable: Option<Box<str>>,
}
