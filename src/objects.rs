//! Kubernetes objects, decoded only as far as they are used.
//!
//! A cluster has 140,000 pods, and most of what the API server says about them decides nothing. The
//! structs here name the fields that do; everything else is skipped while it is read. Core kinds
//! are decoded with types, because the API server has validated them; the specs of our own kinds
//! stay JSON values, because the scheduler never trusts a schema that may be older or newer than
//! itself, and one wrong field must cost one object its schedule and not the watch its list.

mod custom;
mod group;
mod job;
mod meta;
mod node;
mod pairs;
mod pod;
mod policy;
pub mod protobuf;
mod quantity;
mod rules;
mod volume;

pub use custom::{PodGroup, Queue, Topology};
pub use group::{
    GangPolicy, NativePodGroup, NativePodGroupSpec, SchedulingConstraints, SchedulingPolicy,
    TopologyConstraint,
};
pub use job::{Job, JobSpec, OnExitCodes, OnPodCondition, PodFailurePolicy, PodFailureRule};
pub use meta::{ListMeta, Meta, OwnerReference, Timestamp};
pub use node::{Node, NodeSpec, NodeStatus, Taint};
pub use pairs::{Annotations, Pairs};
pub use pod::{
    Condition, Container, ContainerPort, ContainerStatus, NamedObject, Pod, PodSpec, PodStatus,
    Resources, RestartRule, SchedulingGroup,
};
pub use policy::{LabelSelector, Namespace, PriorityClass};
pub use quantity::Quantity;
pub use rules::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, PodAffinity, Requirement, Toleration,
    TopologySpreadConstraint,
};
pub use volume::Volume;

use crate::convert::Converter;
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// A kind of object that the scheduler watches.
///
/// One watcher serves every kind: it lists [`Watched::PATH`] as [`ListOf`], follows the watch, and
/// hands each object to [`Watched::convert`].
pub trait Watched: DeserializeOwned + Send + 'static {
    /// The engine's name for the kind.
    const KIND: Kind;
    /// Where the API server lists and watches all objects of the kind, in all namespaces.
    const PATH: &'static str;
    /// How the kind is read in the binary form. `None`: it has only JSON.
    const PROTOBUF: Option<&'static protobuf::Forms> = None;

    /// The object's metadata.
    fn meta(&self) -> &Meta;

    /// What the engine calls the object, also when it is gone.
    fn key(&self) -> ObjectKey;

    /// The object as a fact. `None`: it is of no use to the engine any more (an ended pod of
    /// another scheduler), and the watcher reports [`Watched::key`] as deleted.
    fn convert(self, converter: &mut Converter) -> Option<Object>;
}

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
