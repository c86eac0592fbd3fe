//! The kinds that are read from files, with what the API server would fill in.

use super::admission;
use crate::kube::api::{GROUP, VERSION};
use crate::kube::convert::problems::in_plain_words;
use crate::kube::convert::{
    self, CardContainers, Converter, Watched, hami, limits, resources, storage,
};
use crate::kube::objects::{
    Condition, CsiDriver, CsiNode, CsiStorageCapacity, DisruptionBudget, Job, Namespace,
    NativePodGroup, Node, NodeResourceTopology, PersistentVolume, PersistentVolumeClaim, Pod,
    PodGroup, PriorityClass, Queue, StorageClass, Topology, VolumeAttachment,
};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{PodFacts, Problem};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A field and what is wrong with it.
pub(super) type FieldError = (String, String);

/// The annotations by which a StorageClass says that it is the default: today's, and that of
/// before.
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// The group of kinds that say where there can be volumes.
const STORAGE: &str = "storage.k8s.io";

/// A kind that is read from files.
pub(super) struct Known {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
    read: fn(Value, &mut Converter) -> Result<Option<Object>, FieldError>,
}

impl Known {
    const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        namespaced: bool,
        read: fn(Value, &mut Converter) -> Result<Option<Object>, FieldError>,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            namespaced,
            read,
        }
    }

    pub(super) const ALL: [Self; Kind::ALL.len()] = [
        Self::new("", "v1", "Node", false, node),
        Self::new("", "v1", "Pod", true, pod),
        Self::new("", "v1", "Namespace", false, plain::<Namespace>),
        Self::new("", "v1", "PersistentVolumeClaim", true, claim),
        Self::new(
            "",
            "v1",
            "PersistentVolume",
            false,
            plain::<PersistentVolume>,
        ),
        Self::new(STORAGE, "v1", "StorageClass", false, storage_class),
        Self::new(STORAGE, "v1", "CSINode", false, plain::<CsiNode>),
        Self::new(STORAGE, "v1", "CSIDriver", false, plain::<CsiDriver>),
        Self::new(
            STORAGE,
            "v1",
            "CSIStorageCapacity",
            true,
            plain::<CsiStorageCapacity>,
        ),
        Self::new(
            "topology.node.k8s.io",
            "v1alpha2",
            "NodeResourceTopology",
            false,
            plain::<NodeResourceTopology>,
        ),
        Self::new(
            STORAGE,
            "v1",
            "VolumeAttachment",
            false,
            plain::<VolumeAttachment>,
        ),
        Self::new("batch", "v1", "Job", true, plain::<Job>),
        Self::new(
            "policy",
            "v1",
            "PodDisruptionBudget",
            true,
            plain::<DisruptionBudget>,
        ),
        Self::new(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            false,
            priority_class,
        ),
        Self::new(
            "scheduling.k8s.io",
            "v1alpha2",
            "PodGroup",
            true,
            plain::<NativePodGroup>,
        ),
        Self::new(GROUP, VERSION, "Queue", false, plain::<Queue>),
        Self::new(GROUP, VERSION, "PodGroup", true, plain::<PodGroup>),
        Self::new(GROUP, VERSION, "Topology", false, plain::<Topology>),
    ];

    pub(super) fn find(group: &str, kind: &str) -> Option<&'static Self> {
        const ALL: &[Known] = &Known::ALL;
        ALL.iter()
            .find(|known| known.group == group && known.kind == kind)
    }
}

impl Known {
    /// Whether clusters may serve the kind in versions that cannot be read here, because Kubernetes
    /// has not settled it yet.
    pub(super) fn is_unsettled(&self) -> bool {
        (self.group, self.kind) == ("scheduling.k8s.io", "PodGroup")
    }

    /// Reads an object of this kind; `None`: a pod of another scheduler that has ended.
    pub(super) fn read(
        &self,
        mut value: Value,
        converter: &mut Converter,
    ) -> Result<Option<Object>, FieldError> {
        if self.namespaced {
            default_namespace(&mut value, "default");
        }
        (self.read)(value, converter)
    }
}

/// Reads a type. The error is the field with a wrong value, and what is wrong with the value.
pub(super) fn typed<'de, T: Deserialize<'de>>(
    value: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        (field, in_plain_words(&error.inner().to_string()))
    })
}

fn decode<'de, T: Watched>(
    value: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, FieldError> {
    let object: T = typed(value)?;
    match object.meta().name.len() {
        0 => Err(("metadata.name".to_owned(), "is missing".to_owned())),
        1..=limits::TEXT => Ok(object),
        length => Err((
            "metadata.name".to_owned(),
            format!("is {length} bytes long"),
        )),
    }
}

fn plain<T: Watched>(
    value: Value,
    converter: &mut Converter,
) -> Result<Option<Object>, FieldError> {
    decode::<T>(value).map(|object| object.convert(converter))
}

fn node(value: Value, converter: &mut Converter) -> Result<Option<Object>, FieldError> {
    let mut node: Node = decode(value)?;
    if node
        .status
        .conditions
        .as_deref()
        .unwrap_or_default()
        .is_empty()
    {
        node.status.conditions = Some(vec![Condition {
            kind: "Ready".into(),
            status: "True".into(),
            ..Condition::default()
        }]);
    }
    Ok(node.convert(converter))
}

fn priority_class(value: Value, converter: &mut Converter) -> Result<Option<Object>, FieldError> {
    let class: PriorityClass = decode(value)?;
    let name = class.metadata.name.clone();
    let never_preempts = class.preemption_policy.as_deref() == Some("Never");
    if class.global_default == Some(true) {
        converter.default_priority_class = Some(name.clone());
    }
    converter
        .priority_classes
        .insert(name, (class.value, never_preempts));
    Ok(class.convert(converter))
}

/// Of several default classes the API server takes the youngest, and of these the first by name.
fn storage_class(value: Value, converter: &mut Converter) -> Result<Option<Object>, FieldError> {
    let class: StorageClass = decode(value)?;
    let meta = &class.metadata;
    let mut says = DEFAULT_CLASS.iter().map(|key| meta.annotations.get(key));
    if says.any(|said| said == Some("true")) {
        let created_ms = meta.creation_timestamp.map_or(0, |time| time.0);
        let known = converter.default_storage_class.as_ref();
        let is_first =
            known.is_none_or(|(known_ms, known)| (*known_ms, &meta.name) < (created_ms, known));
        if is_first {
            converter.default_storage_class = Some((created_ms, meta.name.clone()));
        }
    }
    Ok(class.convert(converter))
}

/// Reads a claim. One that names no class and is not bound gets the default class.
fn claim(value: Value, converter: &mut Converter) -> Result<Option<Object>, FieldError> {
    let mut claim: PersistentVolumeClaim = decode(value)?;
    let annotations = &claim.metadata.annotations;
    let names_none = claim.spec.storage_class_name.is_none()
        && annotations.get(storage::CLASS).is_none()
        && annotations.get(storage::BIND_COMPLETED).is_none();
    if let Some((_, class)) = converter
        .default_storage_class
        .as_ref()
        .filter(|_| names_none)
    {
        claim.spec.storage_class_name = Some(class.clone());
    }
    Ok(claim.convert(converter))
}

fn pod(value: Value, converter: &mut Converter) -> Result<Option<Object>, FieldError> {
    let mut pod: Pod = decode(&value)?;
    let problem = admit_priority(&mut pod, converter);
    let refusals = admission::refusals(&pod, &value);
    let mut facts = convert::pod::pod(&pod, converter);
    if let Some(containers) = facts
        .as_ref()
        .and_then(|facts| card_containers(&pod, facts))
    {
        let name = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        converter.card_containers.insert(name, containers);
    }
    // Conversion may have refused a field already: its words are kept.
    for refusal in refusals {
        let known = converter.impossible.iter();
        if known.clone().all(|it| it.field != refusal.field) {
            converter.impossible.push(refusal);
        }
    }
    if let (Some(facts), Some(problem)) = (&mut facts, problem)
        && facts.ours
    {
        facts.problems.push(problem);
    }
    Ok(facts.map(Object::Pod))
}

/// The containers of a pod that asks for cards, or has some.
fn card_containers(pod: &Pod, facts: &PodFacts) -> Option<CardContainers> {
    let asks = facts.shape.cards.is_some();
    let terms = facts.shape.card_terms.as_ref();
    let several = terms.is_some_and(|terms| terms.containers.len() > 1);
    let names = resources::all_containers(&pod.spec);
    (asks || !facts.cards.is_empty()).then(|| CardContainers {
        names: names.map(|(_, container)| container.name.clone()).collect(),
        only: (asks && !several).then_some(facts.card_entries.before as usize),
        held: hami::by_container(pod).unwrap_or_default(),
    })
}

/// Fills in a pod's priority as the API server's admission does.
fn admit_priority(pod: &mut Pod, converter: &Converter) -> Option<Problem> {
    if pod.spec.priority.is_some() {
        return None;
    }
    let named = pod
        .spec
        .priority_class_name
        .as_deref()
        .filter(|name| !name.is_empty());
    let name = named.or(converter.default_priority_class.as_deref())?;
    let (priority, never_preempts) = match (converter.priority_classes.get(name), name) {
        (Some(class), _) => *class,
        (None, "system-node-critical") => (2_000_001_000, false),
        (None, "system-cluster-critical") => (2_000_000_000, false),
        (None, _) => {
            return Some(Problem {
                field: "spec.priorityClassName".into(),
                message: "is not among the PriorityClasses that were read".into(),
            });
        }
    };
    pod.spec.priority = Some(priority);
    if never_preempts && pod.spec.preemption_policy.is_none() {
        pod.spec.preemption_policy = Some("Never".into());
    }
    None
}

/// Puts an object that names no namespace into this one.
pub(super) fn default_namespace(value: &mut Value, namespace: &str) {
    let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let absent = |meta: &Map<String, Value>| match meta.get("namespace") {
        None | Some(Value::Null) => true,
        Some(Value::String(namespace)) => namespace.is_empty(),
        Some(_) => false,
    };
    if absent(meta) {
        meta.insert("namespace".to_owned(), namespace.into());
    }
}
