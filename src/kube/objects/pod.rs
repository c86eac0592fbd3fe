//! Pods.

use super::{
    Affinity, Meta, Pairs, Quantity, Timestamp, Toleration, TopologySpreadConstraint, Volume,
    null_is_default,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A pod.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Pod {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: PodSpec,
    /// `status`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: PodStatus,
}

/// `spec` of a pod. Numbers are wider than the API's, so that a problem can name a wrong one of a
/// file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// `schedulerName`.
    pub scheduler_name: Option<Box<str>>,
    /// `nodeName`: set once the pod is bound.
    pub node_name: Option<Box<str>>,
    /// `priority`.
    pub priority: Option<i64>,
    /// `priorityClassName`.
    pub priority_class_name: Option<Box<str>>,
    /// `preemptionPolicy`.
    pub preemption_policy: Option<Box<str>>,
    /// `schedulingGates`.
    pub scheduling_gates: Option<Vec<NamedObject>>,
    /// `schedulingGroup`: membership in a native PodGroup.
    pub scheduling_group: Option<SchedulingGroup>,
    /// `workloadRef`: what `schedulingGroup` was in Kubernetes 1.35.
    pub workload_ref: Option<IgnoredAny>,
    /// `containers`.
    pub containers: Option<Vec<Container>>,
    /// `initContainers`, sidecars among them.
    pub init_containers: Option<Vec<Container>>,
    /// `resources` of the whole pod.
    pub resources: Option<Resources>,
    /// `overhead` of the runtime class.
    #[serde(default)]
    pub overhead: Pairs<Quantity>,
    /// `nodeSelector`.
    #[serde(default)]
    pub node_selector: Pairs<Box<str>>,
    /// `affinity`.
    pub affinity: Option<Affinity>,
    /// `tolerations`.
    pub tolerations: Option<Vec<Toleration>>,
    /// `hostNetwork`.
    pub host_network: Option<bool>,
    /// `hostUsers`.
    pub host_users: Option<bool>,
    /// `resourceClaims`; only their presence matters.
    pub resource_claims: Option<Vec<IgnoredAny>>,
    /// `volumes`.
    pub volumes: Option<Vec<Volume>>,
    /// `topologySpreadConstraints`.
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// `activeDeadlineSeconds`.
    pub active_deadline_seconds: Option<i64>,
}

impl PodSpec {
    /// Whether the pod is in the network of the host, and has a user namespace of its own.
    pub fn has_own_users_in_host_network(&self) -> bool {
        self.host_network == Some(true) && self.host_users == Some(false)
    }
}

/// Anything of which only the name is read.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NamedObject {
    /// `name`.
    #[serde(default)]
    pub name: Box<str>,
}

/// `spec.schedulingGroup`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingGroup {
    /// `podGroupName`.
    pub pod_group_name: Option<Box<str>>,
}

/// A container or an init container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// `name`.
    pub name: Box<str>,
    /// `image`.
    pub image: Option<Box<str>>,
    /// `resources`.
    pub resources: Option<Resources>,
    /// `ports`.
    pub ports: Option<Vec<ContainerPort>>,
    /// `restartPolicy`; `Always` on an init container makes it a sidecar.
    pub restart_policy: Option<Box<str>>,
    /// `restartPolicyRules`.
    pub restart_policy_rules: Option<Vec<RestartRule>>,
    /// `securityContext`.
    pub security_context: Option<SecurityContext>,
}

impl Container {
    /// Whether this init container runs beside the containers instead of before them.
    #[must_use]
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// Whether the container may do on its node whatever it wants.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        let context = self.security_context.as_ref();
        context.and_then(|context| context.privileged) == Some(true)
    }
}

/// `securityContext` of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SecurityContext {
    /// `privileged`.
    pub privileged: Option<bool>,
}

/// One of `restartPolicyRules`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct RestartRule {
    /// `action`.
    #[serde(default)]
    pub action: Box<str>,
}

/// `resources` of a container or a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// `requests`.
    pub requests: Pairs<Quantity>,
    /// `limits`.
    pub limits: Pairs<Quantity>,
    /// `claims`; only their presence matters.
    pub claims: Option<Vec<IgnoredAny>>,
}

/// One of a container's `ports`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPort {
    /// `containerPort`.
    pub container_port: Option<i64>,
    /// `hostPort`.
    pub host_port: Option<i64>,
    /// `hostIP`.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<Box<str>>,
    /// `protocol`.
    pub protocol: Option<Box<str>>,
}

/// `status` of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// `phase`.
    pub phase: Option<Box<str>>,
    /// `reason`: why the kubelet has rejected the pod.
    pub reason: Option<Box<str>>,
    /// `nominatedNodeName`.
    pub nominated_node_name: Option<Box<str>>,
    /// `startTime`.
    pub start_time: Option<Timestamp>,
    /// `conditions`.
    pub conditions: Option<Vec<Condition>>,
    /// `containerStatuses`.
    pub container_statuses: Option<Vec<ContainerStatus>>,
    /// `initContainerStatuses`.
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
    /// `resources` of the whole pod, as they are in force.
    pub resources: Option<Resources>,
    /// `allocatedResources` of the whole pod, as the kubelet has admitted them.
    #[serde(default)]
    pub allocated_resources: Pairs<Quantity>,
}

/// A condition of a pod or a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// `type`.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// `status`: `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// `reason`.
    pub reason: Option<Box<str>>,
    /// `message`.
    pub message: Option<Box<str>>,
    /// `lastTransitionTime`: since when `status` has been what it is.
    pub last_transition_time: Option<Timestamp>,
}

/// What the kubelet says of one container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// `name`.
    pub name: Box<str>,
    /// `resources` as they are in force.
    pub resources: Option<Resources>,
    /// `allocatedResources` as the kubelet has admitted them.
    pub allocated_resources: Pairs<Quantity>,
}
