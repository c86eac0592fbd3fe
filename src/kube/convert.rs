//! From Kubernetes objects to facts: total functions.
//!
//! Nothing here fails and nothing panics. What can be read is read, what cannot becomes a
//! [`Problem`](gpu_batch_policies::facts::Problem) inside the fact, what is not supported yet is
//! named, and one bad object never stops another. Nothing is decided here.
//!
//! The live scheduler goes through [`Watched::convert`], one
//! object at a time. Files go through [`from_value`] or [`from_files`], which also do what the API
//! server does when it takes an object: defaults, and priorities from PriorityClasses.

mod alignment;
mod disks;
mod disruption;
mod document;
mod fields;
mod hami;
mod hints;
mod identity;
mod job;
mod keys;
pub(crate) mod limits;
mod native_group;
mod node;
mod numa;
mod pod;
mod pod_group;
mod policy;
mod preference;
mod problems;
pub(crate) mod quantity;
mod queue;
mod relation;
mod resources;
mod selector;
mod shape;
mod storage;
mod topology;
mod unsupported;

pub use document::{Document, RefusedDocument, from_value};
pub(crate) use document::{FromFiles, Identity, from_files, part_of, refused, taken_apart};
pub use hami::CardContainers;
pub use preference::ClusterPreferences;

pub(crate) use hami::{CARD_LOCK, NODE_OF_CARDS, annotations_of_cards, written_card_lock};
pub(crate) use identity::named_uid;
pub(crate) use keys::{OF_BINDINGS, OF_LIFTING, of_owner as unknown_keys_of_owner};
pub(crate) use storage::SELECTED_NODE;

use crate::kube::objects::{Meta, Timestamp, protobuf};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{ConditionStatus, Labels, PodShape, Problem, UnixMs};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// A kind of object that the scheduler watches.
///
/// One watcher serves every kind: it lists [`Watched::PATH`] as
/// [`ListOf`](crate::kube::objects::ListOf), follows the watch, and hands each object to
/// [`Watched::convert`].
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

/// What conversion needs to know beside the object.
///
/// Each watcher has its own. Equal shapes and equal labels of pods are shared: 140,000 pods have a
/// few hundred shapes.
#[derive(Debug)]
pub struct Converter {
    scheduler_name: Box<str>,
    /// The `schedulerName` of kube-scheduler, if this scheduler is its extender.
    extended: Option<Box<str>>,
    /// The conditions of nodes that are kept, each with the status in which it is kept.
    conditions: Vec<(Box<str>, ConditionStatus)>,
    preferences: ClusterPreferences,
    now_ms: UnixMs,
    shapes: Shared<PodShape>,
    labels: Shared<Labels>,
    /// PriorityClasses by name, from files only: the value, and whether pods of the class never
    /// preempt.
    priority_classes: BTreeMap<Box<str>, (i64, bool)>,
    /// The PriorityClass of pods in files that name none.
    default_priority_class: Option<Box<str>>,
    /// The StorageClass of claims in files that name none: when it was created, and its name.
    default_storage_class: Option<(UnixMs, Box<str>)>,
    /// From files only: the containers of pods with cards, by `namespace/name` of the pods.
    card_containers: BTreeMap<String, CardContainers>,
    /// Why the API server would have refused the Node, or the pod of ours, that was read last. Only
    /// objects from files have such problems.
    impossible: Vec<Problem>,
}

impl Converter {
    /// A converter for the pods with this `schedulerName`. `now_ms`: see [`Converter::set_now`].
    #[must_use]
    pub fn new(scheduler_name: &str, now_ms: UnixMs) -> Self {
        Self {
            scheduler_name: scheduler_name.into(),
            extended: None,
            conditions: Vec::new(),
            preferences: ClusterPreferences::default(),
            now_ms,
            shapes: Shared::default(),
            labels: Shared::default(),
            priority_classes: BTreeMap::new(),
            default_priority_class: None,
            default_storage_class: None,
            card_containers: BTreeMap::new(),
            impossible: Vec::new(),
        }
    }

    /// Takes the pods with this other `schedulerName` for extended if they name a queue:
    /// kube-scheduler chooses their nodes, with this scheduler as its extender.
    #[must_use]
    pub fn with_extended(mut self, scheduler_name: Option<&str>) -> Self {
        self.extended = scheduler_name.map(Into::into);
        self
    }

    /// Keeps these conditions of nodes where they have these statuses, and no others.
    #[must_use]
    pub fn with_conditions(mut self, conditions: Vec<(Box<str>, ConditionStatus)>) -> Self {
        self.conditions = conditions;
        self
    }

    /// Adds these preferences to what pods state.
    #[must_use]
    pub fn with_preferences(mut self, preferences: ClusterPreferences) -> Self {
        self.preferences = preferences;
        self
    }

    /// Sets the time, in Unix milliseconds. Later times in objects count as this time, because
    /// clocks of other machines may be ahead. Set it before each batch.
    pub fn set_now(&mut self, now_ms: UnixMs) {
        self.now_ms = now_ms;
    }

    /// The containers of pods with cards that were read from files, by `namespace/name` of the
    /// pods.
    pub(crate) fn into_card_containers(self) -> BTreeMap<String, CardContainers> {
        self.card_containers
    }

    /// Whether a status says that another gpu-batch wrote it.
    fn is_told_by_other(&self, status: &Value) -> bool {
        let scheduler = status.get("scheduler").and_then(Value::as_str);
        scheduler.is_some_and(|name| name != &*self.scheduler_name)
    }

    /// A time of an object; a time in the future counts as now.
    fn past(&self, time: Timestamp) -> UnixMs {
        time.0.min(self.now_ms)
    }
}

/// One copy of each value, as long as a fact holds it.
#[derive(Debug)]
struct Shared<T> {
    values: HashSet<Arc<T>>,
    /// How many values there may be before unused ones are dropped.
    before_sweep: usize,
}

impl<T> Shared<T> {
    const BEFORE_FIRST_SWEEP: usize = 1_024;
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self {
            values: HashSet::new(),
            before_sweep: Self::BEFORE_FIRST_SWEEP,
        }
    }
}

impl<T: Eq + Hash> Shared<T> {
    /// The shared copy of a value.
    fn share(&mut self, value: impl Into<Arc<T>> + Borrow<T>) -> Arc<T> {
        if let Some(shared) = self.values.get(value.borrow()) {
            return Arc::clone(shared);
        }
        if self.values.len() >= self.before_sweep {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.before_sweep = (2 * self.values.len()).max(Self::BEFORE_FIRST_SWEEP);
        }
        let shared = value.into();
        self.values.insert(Arc::clone(&shared));
        shared
    }
}

#[cfg(test)]
mod tests;
