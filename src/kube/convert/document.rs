//! Objects from files, or from a cluster in the same form, for `plan` and `explain`.

mod admission;
mod kinds;

use super::{Converter, limits};
use crate::kube::api::GROUP;
use gpu_batch_policies::event::Object;
use kinds::{Known, default_namespace};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// The group of Deployments and their like, which are all in namespaces.
const WORKLOADS: &str = "apps";

/// An object in a file that cannot be read at all.
///
/// An object that can be read and has mistakes becomes a fact with a
/// [`Problem`](gpu_batch_policies::facts::Problem) inside instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {field}: {message}")]
pub struct RefusedDocument {
    /// The object as a user would name it: `Pod vision/train-0`.
    pub object: String,
    /// The field, e.g. `spec.containers[0].name`.
    pub field: String,
    /// The mistake in the field.
    pub message: String,
}

/// What the scheduler makes of an object of a file.
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
pub(crate) struct FromFiles<S> {
    /// The facts; PriorityClasses first, otherwise in the order of the files.
    pub objects: Vec<(S, Object)>,
    /// Kinds that the scheduler has no use for: `apiVersion` and `kind`.
    pub ignored: Vec<(S, String)>,
    /// What cannot be read, and what the API server would have refused of Nodes and pods of ours.
    pub refused: Vec<(S, RefusedDocument)>,
}

/// Kind, namespace and name: what no two objects of a cluster share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    /// The group of `apiVersion`; empty for the core kinds.
    pub group: Box<str>,
    /// `kind`.
    pub kind: Box<str>,
    /// `metadata.namespace`; empty for kinds that have none.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
}

impl Identity {
    /// `None` where an object does not say what it is.
    #[must_use]
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let meta = value.get("metadata")?;
        let (kind, name) = (text(value, "kind"), text(meta, "name"));
        let (group, _) = text(value, "apiVersion")
            .split_once('/')
            .unwrap_or_default();
        let known = Known::find(group, kind);
        let namespace = match known {
            Some(known) if !known.namespaced => "",
            _ => text(meta, "namespace"),
        };
        (!kind.is_empty() && !name.is_empty()).then(|| Self {
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(formatter, "{} {}", self.kind, self.name),
            namespace => write!(formatter, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// The objects of a document, in which lists (of any depth) are taken apart. An object that belongs
/// into a namespace and names none is put into `namespace`. An empty document has no objects.
///
/// # Errors
/// [`RefusedDocument`] if the `items` of a list are no list.
pub(crate) fn taken_apart(document: Value, namespace: &str) -> Result<Vec<Value>, RefusedDocument> {
    let mut objects = flattened(document)?;
    for object in &mut objects {
        let (group, _) = text(object, "apiVersion")
            .split_once('/')
            .unwrap_or_default();
        let known = Known::find(group, text(object, "kind"));
        if known.is_some_and(|known| known.namespaced) || group == WORKLOADS {
            default_namespace(object, namespace);
        }
    }
    Ok(objects)
}

/// Reads objects, of which no two have the same [`Identity`].
///
/// PriorityClasses and StorageClasses are read first wherever they stand, so that pods get their
/// priorities, and claims the default class, as from the API server.
pub(crate) fn from_files<S: Clone>(
    mut objects: Vec<(S, Value)>,
    converter: &mut Converter,
) -> FromFiles<S> {
    let mut result = FromFiles {
        objects: Vec::new(),
        ignored: Vec::new(),
        refused: Vec::new(),
    };
    let is_class = |kind: &str| matches!(kind, "PriorityClass" | "StorageClass");
    objects.sort_by_key(|(_, value)| !is_class(text(value, "kind")));
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
            Ok(Document::Object(object)) => result.objects.push((source, *object)),
            Ok(Document::Ended) => {}
            Ok(Document::Ignored(kind)) => result.ignored.push((source, kind)),
            Err(refused) => result.refused.push((source, refused)),
        }
    }
    result
}

/// Reads a part of an object.
///
/// # Errors
/// [`RefusedDocument`] with the first field that is of another type.
pub(crate) fn part_of<T: DeserializeOwned>(value: &Value) -> Result<T, RefusedDocument> {
    kinds::typed(value).map_err(|(field, message)| refused(value, field, message))
}

/// Refuses an object for a mistake in one of its fields.
pub(crate) fn refused(
    value: &Value,
    field: impl Into<String>,
    message: impl Into<String>,
) -> RefusedDocument {
    RefusedDocument {
        object: title(value),
        field: field.into(),
        message: message.into(),
    }
}

/// Reads one object (no list), with the defaults that the API server would fill in.
///
/// The priority of a pod comes from the PriorityClasses that this converter has read before. A node
/// without conditions counts as ready, because nodes written by hand are meant to be used.
///
/// # Errors
/// [`RefusedDocument`] where the object cannot be read: it has no `apiVersion`, `kind` or name, its
/// kind is known and its version is not, or a field is of another type than Kubernetes has.
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

/// A text field of an object; anything else is empty.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The name of an object as a user would write it, shortened if the object holds long texts.
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

/// The objects of a list, of lists in it, and so on; one object that is no list; nothing for
/// `null`.
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

/// Adds `kind` and `apiVersion` to an item that lacks them, as the items of a `PodList` do.
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

#[cfg(test)]
mod tests;
