//! The kinds beside the pod. The specs of those of `gpu-batch.io` are JSON that was not checked.

use super::{Condition, LabelSelector, Meta, Pairs, Quantity, null_is_default};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

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
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// `allocatable`; absent: the capacity.
    pub allocatable: Option<Pairs<Quantity>>,
    /// `capacity`.
    #[serde(default)]
    pub capacity: Pairs<Quantity>,
    /// `conditions`.
    pub conditions: Option<Vec<Condition>>,
    /// `declaredFeatures`.
    pub declared_features: Option<Vec<Box<str>>>,
    /// `images`.
    pub images: Option<Vec<ContainerImage>>,
}

/// A container image that a node has.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerImage {
    /// `names`.
    pub names: Option<Vec<Box<str>>>,
    /// `sizeBytes`.
    pub size_bytes: i64,
}

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

/// A PodDisruptionBudget of `policy/v1`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct DisruptionBudget {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: DisruptionBudgetSpec,
    /// `status`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: DisruptionBudgetStatus,
}

/// `spec` of a PodDisruptionBudget, without the numbers that its controller works with.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct DisruptionBudgetSpec {
    /// `selector`; absent: it selects no pod.
    pub selector: Option<LabelSelector>,
}

/// `status` of a PodDisruptionBudget, as its controller writes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionBudgetStatus {
    /// `observedGeneration`: the generation that the rest of the status is about.
    pub observed_generation: Option<i64>,
    /// `disruptionsAllowed`: how many evictions are still allowed.
    pub disruptions_allowed: Option<i64>,
}

/// A Job of `batch/v1`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Job {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: JobSpec,
    /// `status`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: JobStatus,
}

/// `status` of a Job.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct JobStatus {
    /// `succeeded`; absent: 0.
    pub succeeded: Option<i64>,
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
    /// `template`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub template: PodTemplate,
}

/// What the pods of an owner are made of, as far as the owner itself is judged by it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PodTemplate {
    /// `metadata`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub metadata: Meta,
}

/// `podFailurePolicy` of a Job: the first rule that matches a failed pod applies.
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
    /// `onPodConditions`: the rule matches a pod with any of them.
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
