//! Objects from files, for `plan` and `explain`.

use super::{Converter, limits};
use crate::api::{GROUP, VERSION};
use crate::objects::{
    Condition, Job, Namespace, NativePodGroup, Node, Pod, PodGroup, PriorityClass, Queue, Topology,
    Watched,
};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::Problem;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// An object in a file that cannot be read at all.
///
/// What is readable but wrong becomes a [`Problem`] inside the fact instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {field}: {message}")]
pub struct RefusedDocument {
    /// The object as a user would name it: `Pod vision/train-0`.
    pub object: String,
    /// The field, e.g. `spec.containers[0].name`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// What one object of a file is to the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// A fact.
    Object(Box<Object>),
    /// A pod of another scheduler that has ended.
    Ended,
    /// A kind that the scheduler has no use for: its `apiVersion` and `kind`.
    Ignored(String),
}

/// Everything that files hold, each entry with its source (a file's name, say).
#[derive(Debug, Clone, PartialEq)]
pub struct FromFiles<S> {
    /// The facts; PriorityClasses first, otherwise in the order of the files.
    pub objects: Vec<Object>,
    /// Kinds that the scheduler has no use for: `apiVersion` and `kind`.
    pub ignored: Vec<(S, String)>,
    /// What cannot be read.
    pub refused: Vec<(S, RefusedDocument)>,
}

/// Reads all objects of some documents, lists (of any depth) taken apart, empty documents skipped.
///
/// PriorityClasses are read first wherever they stand, so that pods get their priorities as from
/// the API server. An object that is there twice is refused.
pub fn from_files<S: Clone>(
    documents: impl IntoIterator<Item = (S, Value)>,
    converter: &mut Converter,
) -> FromFiles<S> {
    let mut result = FromFiles {
        objects: Vec::new(),
        ignored: Vec::new(),
        refused: Vec::new(),
    };
    let mut objects = Vec::new();
    for (source, value) in documents {
        match flattened(value) {
            Ok(values) => objects.extend(values.into_iter().map(|value| (source.clone(), value))),
            Err(refused) => result.refused.push((source, refused)),
        }
    }
    objects.sort_by_key(|(_, value)| text(value, "kind") != "PriorityClass");
    let mut seen = BTreeSet::new();
    for (source, value) in objects {
        let title = title(&value);
        match from_value(value, converter) {
            Ok(Document::Object(object)) if seen.insert(identity(&object)) => {
                result.objects.push(*object);
            }
            Ok(Document::Object(_)) => result.refused.push((
                source,
                RefusedDocument {
                    object: title,
                    field: "metadata.name".to_owned(),
                    message: "the object is there twice".to_owned(),
                },
            )),
            Ok(Document::Ended) => {}
            Ok(Document::Ignored(kind)) => result.ignored.push((source, kind)),
            Err(refused) => result.refused.push((source, refused)),
        }
    }
    result
}

/// Reads one object (no list), with the defaults that the API server would fill in.
///
/// The priority of a pod comes from the PriorityClasses that this converter has read before. A node
/// without conditions counts as ready: whoever writes one by hand means it to be.
///
/// # Errors
/// [`RefusedDocument`] where the object cannot be read: no `apiVersion`, `kind` or name, a version
/// that is not known of a kind that is, or a field of another type than Kubernetes has.
pub fn from_value(
    mut value: Value,
    converter: &mut Converter,
) -> Result<Document, RefusedDocument> {
    let title = title(&value);
    let refuse = |field: &str, message: String| RefusedDocument {
        object: title.clone(),
        field: field.to_owned(),
        message,
    };
    for field in ["apiVersion", "kind"] {
        if text(&value, field).is_empty() {
            return Err(refuse(field, "is missing".to_owned()));
        }
    }
    let api_version = text(&value, "apiVersion").to_owned();
    let kind = text(&value, "kind").to_owned();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(known) = Known::find(group, &kind) else {
        if group == GROUP {
            return Err(refuse("kind", format!("{kind} is not a kind of {group}")));
        }
        return Ok(Document::Ignored(format!("{api_version} {kind}")));
    };
    if version != known.version {
        let only = known.version;
        return Err(refuse(
            "apiVersion",
            format!("of {kind}, only {only} is known"),
        ));
    }
    if known.namespaced {
        default_namespace(&mut value);
    }
    let object =
        (known.read)(value, converter).map_err(|(field, message)| refuse(&field, message))?;
    Ok(object.map_or(Document::Ended, |object| Document::Object(Box::new(object))))
}

/// A field and what is wrong with it.
type FieldError = (String, String);

/// A kind that is read from files.
struct Known {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    namespaced: bool,
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

    const ALL: [Self; Kind::ALL.len()] = [
        Self::new("", "v1", "Node", false, node),
        Self::new("", "v1", "Pod", true, pod),
        Self::new("", "v1", "Namespace", false, plain::<Namespace>),
        Self::new("batch", "v1", "Job", true, plain::<Job>),
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

    fn find(group: &str, kind: &str) -> Option<&'static Self> {
        const ALL: &[Known] = &Known::ALL;
        ALL.iter()
            .find(|known| known.group == group && known.kind == kind)
    }
}

fn decode<T: Watched>(value: Value) -> Result<T, FieldError> {
    let object: T = serde_path_to_error::deserialize(value)
        .map_err(|error| (error.path().to_string(), error.inner().to_string()))?;
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

fn pod(value: Value, converter: &mut Converter) -> Result<Option<Object>, FieldError> {
    let mut pod: Pod = decode(value)?;
    let problem = admit_priority(&mut pod, converter);
    let mut object = pod.convert(converter);
    if let (Some(Object::Pod(facts)), Some(problem)) = (&mut object, problem)
        && facts.ours
    {
        facts.problems.push(problem);
    }
    Ok(object)
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

/// The objects of a list, of lists in it, and so on; one object alone; nothing of `null`.
fn flattened(value: Value) -> Result<Vec<Value>, RefusedDocument> {
    let mut open = vec![value];
    let mut flat = Vec::new();
    while let Some(mut value) = open.pop() {
        if value.is_null() {
            continue;
        }
        let title = title(&value);
        let kind = text(&value, "kind").to_owned();
        let Some(of) = kind.strip_suffix("List") else {
            flat.push(value);
            continue;
        };
        let api_version = text(&value, "apiVersion").to_owned();
        match value.get_mut("items").map(Value::take) {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                let items = items.into_iter().rev();
                open.extend(items.map(|item| typed_item(item, of, &api_version)));
            }
            Some(_) => {
                return Err(RefusedDocument {
                    object: title,
                    field: "items".to_owned(),
                    message: "is not a list".to_owned(),
                });
            }
        }
    }
    Ok(flat)
}

/// Items of a `PodList` do not say that they are Pods.
fn typed_item(mut item: Value, kind: &str, api_version: &str) -> Value {
    if let Value::Object(fields) = &mut item
        && !kind.is_empty()
    {
        let entries = [("kind", kind), ("apiVersion", api_version)];
        for (name, text) in entries {
            fields.entry(name).or_insert_with(|| text.into());
        }
    }
    item
}

fn default_namespace(value: &mut Value) {
    let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let absent = |meta: &Map<String, Value>| match meta.get("namespace") {
        None | Some(Value::Null) => true,
        Some(Value::String(namespace)) => namespace.is_empty(),
        Some(_) => false,
    };
    if absent(meta) {
        meta.insert("namespace".to_owned(), "default".into());
    }
}

/// Kind, namespace and name: what two objects of a file must not share.
fn identity(object: &Object) -> (Kind, Box<str>, Box<str>) {
    let (namespace, name) = match object {
        Object::Node(node) => ("", &node.name),
        Object::Pod(pod) => (&*pod.namespace, &pod.name),
        Object::Queue(queue) => ("", &queue.name),
        Object::PodGroup(group) => (&*group.namespace, &group.name),
        Object::Topology(topology) => ("", &topology.name),
        Object::PriorityClass(class) => ("", &class.name),
        Object::Namespace(namespace) => ("", &namespace.name),
        Object::Job(job) => (&*job.namespace, &job.name),
    };
    (object.kind(), namespace.into(), name.clone())
}

/// A text field of an object; anything else is empty.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// How a user would name an object, short whatever the object holds.
fn title(value: &Value) -> String {
    let meta = value.get("metadata").unwrap_or(&Value::Null);
    let short = |text| super::problems::shortened(text, limits::PROBLEM_TEXT);
    let kind = short(match text(value, "kind") {
        "" => "an object",
        kind => kind,
    });
    match (text(meta, "namespace"), text(meta, "name")) {
        (_, "") => kind,
        ("", name) => format!("{kind} {}", short(name)),
        (namespace, name) => format!("{kind} {}/{}", short(namespace), short(name)),
    }
}

#[cfg(test)]
mod tests;
