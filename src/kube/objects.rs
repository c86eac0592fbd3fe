//! Kubernetes objects, decoded only as far as they are used.
//!
//! A cluster has 140,000 pods, and most of what the API server says about them decides nothing. The
//! structs here have the fields that do; all others are skipped while they are read. Core kinds are
//! decoded with types, because the API server has validated them. The specs of our own kinds stay
//! JSON values, because the scheduler never trusts a schema that may be older or newer than itself,
//! and a wrong field must harm only the object that has it, and not stop the list.

mod disk;
mod kinds;
mod meta;
mod numa;
mod pod;
pub mod protobuf;
mod rules;
mod storage;
mod values;

pub use disk::InTreeSource;
pub use kinds::{
    ContainerImage, DisruptionBudget, DisruptionBudgetSpec, DisruptionBudgetStatus, GangPolicy,
    Job, JobSpec, Namespace, NativePodGroup, NativePodGroupSpec, Node, NodeSpec, NodeStatus,
    OnExitCodes, OnPodCondition, PodFailurePolicy, PodFailureRule, PodGroup, PodTemplate,
    PriorityClass, Queue, SchedulingConstraints, SchedulingPolicy, Taint, Topology,
    TopologyConstraint,
};
pub use meta::{ListMeta, Meta, OwnerReference, Timestamp};
pub use numa::{NodeResourceTopology, TopologyAttribute, TopologyZone, ZoneResource};
pub use pod::{
    Condition, Container, ContainerPort, ContainerStatus, NamedObject, Pod, PodSpec, PodStatus,
    Resources, RestartRule, SchedulingGroup, SecurityContext,
};
pub use rules::{
    Affinity, ClaimSource, ImageSource, LabelSelector, NodeAffinity, NodeSelector,
    NodeSelectorTerm, PodAffinity, PodAffinityTerm, PreferredNodeTerm, Requirement, Toleration,
    TopologySpreadConstraint, Volume, WeightedPodAffinityTerm,
};
pub use storage::{
    AttachedSource, AttachmentSpec, ClaimRef, ClaimResources, ClaimSpec, CsiDriver, CsiDriverSpec,
    CsiNode, CsiNodeDriver, CsiNodeSpec, CsiSource, CsiStorageCapacity, PersistentVolume,
    PersistentVolumeClaim, StorageClass, TopologyRequirement, TopologyTerm, VolumeAttachment,
    VolumeCount, VolumeNodeAffinity, VolumePhase, VolumeSpec,
};
pub use values::{Annotations, Pairs, Quantity};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// A list, or one page of a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub struct ListOf<T> {
    /// Where the watch goes on, and where the next page starts.
    #[serde(default)]
    pub metadata: ListMeta,
    /// The objects.
    #[serde(default, deserialize_with = "null_is_default")]
    pub items: Vec<T>,
}

/// Reads `null` as an absent field, the way the API server does.
pub(crate) fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests;
