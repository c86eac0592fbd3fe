use super::{Meta, Pairs, Quantity, Timestamp, null_is_default};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

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

/// `spec` of a pod. Numbers are wider than the API's, so that a file's nonsense can be named.
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
    /// `resources`.
    pub resources: Option<Resources>,
    /// `ports`.
    pub ports: Option<Vec<ContainerPort>>,
    /// `restartPolicy`; `Always` on an init container makes it a sidecar.
    pub restart_policy: Option<Box<str>>,
    /// `restartPolicyRules`.
    pub restart_policy_rules: Option<Vec<RestartRule>>,
}

impl Container {
    /// Whether this init container runs beside the containers instead of before them.
    #[must_use]
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
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

/// A volume, of which only matters whether it restricts where the pod can run.
#[derive(Debug, Clone, Default)]
pub struct Volume {
    /// The field that holds the restricting source, e.g. `persistentVolumeClaim`.
    pub restricting: Option<&'static str>,
}

impl Volume {
    /// Sources that kube-scheduler judges: those that are claims, those that only one pod or node
    /// may use at a time, and those of which a node attaches only so many.
    const RESTRICTING: [&'static str; 10] = [
        "persistentVolumeClaim",
        "ephemeral",
        "awsElasticBlockStore",
        "azureDisk",
        "cinder",
        "gcePersistentDisk",
        "iscsi",
        "portworxVolume",
        "rbd",
        "vsphereVolume",
    ];
}

impl<'de> Deserialize<'de> for Volume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(VolumeVisitor)
    }
}

struct VolumeVisitor;

impl<'de> Visitor<'de> for VolumeVisitor {
    type Value = Volume;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a volume")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Volume, A::Error> {
        let mut volume = Volume::default();
        while let Some(source) = map.next_key::<VolumeField>()? {
            let present = map.next_value::<Option<IgnoredAny>>()?.is_some();
            if present && source.0.is_some() {
                volume.restricting = source.0;
            }
        }
        Ok(volume)
    }
}

/// The name of a volume's field, if it is one of [`Volume::RESTRICTING`].
struct VolumeField(Option<&'static str>);

impl<'de> Deserialize<'de> for VolumeField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(VolumeFieldVisitor)
    }
}

struct VolumeFieldVisitor;

impl Visitor<'_> for VolumeFieldVisitor {
    type Value = VolumeField;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a volume's field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<VolumeField, E> {
        let known = Volume::RESTRICTING.into_iter();
        Ok(VolumeField(
            known.into_iter().find(|source| *source == name),
        ))
    }
}

/// `status` of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// `phase`.
    pub phase: Option<Box<str>>,
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
#[serde(default)]
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
