//! Namespaces and PriorityClasses.

use super::{Meta, Pairs, Requirement};
use serde::Deserialize;

/// A PriorityClass.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityClass {
    /// `metadata`.
    pub metadata: Meta,
    /// `value`.
    pub value: i64,
    /// `globalDefault`: the class of pods that name none.
    pub global_default: Option<bool>,
    /// `preemptionPolicy`.
    pub preemption_policy: Option<Box<str>>,
}

/// A Namespace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// `metadata`.
    pub metadata: Meta,
}

/// A selector over labels.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// `matchLabels`.
    #[serde(default)]
    pub match_labels: Pairs<Box<str>>,
    /// `matchExpressions`.
    pub match_expressions: Option<Vec<Requirement>>,
}
