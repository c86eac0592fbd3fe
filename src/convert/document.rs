//! Objects from files, for `plan` and `explain`.

mod kinds;
mod lists;

use super::{Converter, limits};
use crate::api::GROUP;
use gpu_batch_policies::event::{Kind, Object};
use kinds::Known;
use lists::flattened;
use serde_json::Value;
use std::collections::BTreeSet;

/// An object in a file that cannot be read at all.
///
/// What is readable but wrong becomes a
/// [`Problem`](gpu_batch_policies::facts::Problem) inside the fact instead.
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
    pub objects: Vec<(S, Object)>,
    /// Kinds that the scheduler has no use for: `apiVersion` and `kind`.
    pub ignored: Vec<(S, String)>,
    /// What cannot be read, and what the API server would have refused of Nodes and pods of ours.
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
        let document = from_value(value, converter);
        let impossible = std::mem::take(&mut converter.impossible).into_iter();
        let impossible = impossible.map(|problem| RefusedDocument {
            object: title.clone(),
            field: problem.field.into(),
            message: problem.message.into(),
        });
        let refused = impossible.map(|refused| (source.clone(), refused));
        result.refused.extend(refused);
        match document {
            Ok(Document::Object(object)) if seen.insert(identity(&object)) => {
                result.objects.push((source, *object));
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
pub fn from_value(value: Value, converter: &mut Converter) -> Result<Document, RefusedDocument> {
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
            let hint = match kind.as_str() {
                "Configuration" => "; pass it with --config",
                _ => "",
            };
            let message = format!("{kind} is not a kind of {group} in a cluster{hint}");
            return Err(refuse("kind", message));
        }
        return Ok(Document::Ignored(format!("{api_version} {kind}")));
    };
    if version != known.version {
        if known.is_unsettled() {
            return Ok(Document::Ignored(format!("{api_version} {kind}")));
        }
        let only = known.version;
        return Err(refuse(
            "apiVersion",
            format!("of {kind}, only {only} is known"),
        ));
    }
    let object = known
        .read(value, converter)
        .map_err(|(field, message)| refuse(&field, message))?;
    Ok(object.map_or(Document::Ended, |object| Document::Object(Box::new(object))))
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
