//! Kubernetes objects from a cluster and from files.

use super::cluster::Captured;
use super::source::{Gathered, Source, Sourced};
use super::{controllers, layers};
use crate::kube::convert::{
    CardContainers, ClusterPreferences, Converter, FromFiles, RefusedDocument, from_files,
};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{Problem, UnixMs};
use gpu_batch_policies::settings::Health;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many errors are told at once.
const ERRORS_TOLD: usize = 20;

/// How objects are read.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// Pods with this `schedulerName` are ours.
    pub scheduler_name: &'a str,
    /// The namespace of objects that name none.
    pub namespace: &'a str,
    /// The time in Unix milliseconds; no object may be younger.
    pub now_ms: UnixMs,
    /// Which conditions of nodes are kept.
    pub health: &'a Health,
    /// The preferences that the cluster adds to those that pods state.
    pub preferences: ClusterPreferences,
}

/// What cluster and files have.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The objects.
    pub objects: Vec<Object>,
    /// The containers of pods with cards, by `namespace/name` of the pods.
    pub card_containers: BTreeMap<String, CardContainers>,
    /// What a user should know about the objects: sentences for standard error.
    pub notes: Vec<String>,
}

/// Files that cannot be used: each error with the file, the object and the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadInput(Vec<String>);

impl fmt::Display for BadInput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = &self.0[..self.0.len().min(ERRORS_TOLD)];
        write!(formatter, "{}", told.join("\n"))?;
        match self.0.len() - told.len() {
            0 => Ok(()),
            more => write!(formatter, "\nand {more} more"),
        }
    }
}

impl std::error::Error for BadInput {}

/// Reads files, folders (their `.yaml`, `.yml` and `.json` files, not those of folders in them) and
/// standard input (`-`), over the objects of a cluster if there is one.
///
/// It is as if the files were applied one after the other: of several objects with one name the
/// last counts. Then owners get the pods that they lack, as the controllers of a cluster make them.
///
/// A field of a Node or a Pod that the API server would have refused is an error. A mistake that an
/// object in a cluster may have is judged by the scheduler itself: it becomes a note, and the plan
/// shows what follows from it, for that object alone.
///
/// # Errors
/// Everything that cannot be read, and everything that the API server would have refused.
pub fn read(
    cluster: Option<Captured>,
    paths: &[PathBuf],
    reading: Reading<'_>,
) -> Result<Input, BadInput> {
    let Captured { lists, mut notes } = cluster.unwrap_or_default();
    let mut documents = lists;
    let mut errors = Vec::new();
    for path in paths {
        if let Err(error) = load(path, &mut documents) {
            errors.push(error);
        }
    }
    let mut gathered = Gathered::default();
    for (source, document) in documents {
        gathered.add(&source, document, reading.namespace);
    }
    let (last, replaced) = layers::last_of_each(gathered.objects);
    gathered.objects = last;
    notes.extend(replaced);
    notes.extend(controllers::make_pods(&mut gathered));
    notes.extend(gathered.objects.iter().filter_map(without_status));
    let converter = Converter::new(reading.scheduler_name, reading.now_ms);
    let converter = converter.with_conditions(reading.health.conditions());
    let mut converter = converter.with_preferences(reading.preferences);
    let read = from_files(gathered.objects, &mut converter);
    for refused in gathered.refused.iter().chain(&read.refused) {
        let error = refusal(refused);
        // A Job is read twice, for its pods and for the scheduler, so its errors come twice.
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    if !errors.is_empty() {
        return Err(BadInput(errors));
    }
    for (source, object) in &read.objects {
        problems_of(source, object, &mut notes);
    }
    notes.extend(ignored(&read));
    let objects: Vec<Object> = read.objects.into_iter().map(|(_, object)| object).collect();
    notes.extend(nothing_to_do(&objects, reading.scheduler_name));
    Ok(Input {
        objects,
        card_containers: converter.into_card_containers(),
        notes,
    })
}

fn refusal((source, refused): &(Source, RefusedDocument)) -> String {
    format!("{source}: {refused}")
}

/// Adds the documents of a path, each with its source.
fn load(path: &Path, documents: &mut Vec<(Source, Value)>) -> Result<(), String> {
    let name = path.display().to_string();
    let failed = |error: std::io::Error| format!("{name}: {error}");
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        return parse("standard input", &text, documents);
    }
    if !path.is_dir() {
        let text = std::fs::read_to_string(path).map_err(failed)?;
        return parse(&name, &text, documents);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(format!(
            "{name}: the folder has no .yaml, .yml or .json file"
        ));
    }
    files.sort();
    files.iter().try_for_each(|file| load(file, documents))
}

/// Takes a text apart into documents. JSON is YAML too, but is read faster as JSON.
fn parse(name: &str, text: &str, documents: &mut Vec<(Source, Value)>) -> Result<(), String> {
    let json = || -> Option<Vec<Value>> {
        let stream = serde_json::Deserializer::from_str(text).into_iter();
        stream.collect::<Result<_, _>>().ok()
    };
    let values = if text.trim_start().starts_with('{') {
        json()
    } else {
        None
    };
    let values = match values {
        Some(values) => values,
        None => yaml(text).map_err(|error| format!("{name}: {error}"))?,
    };
    let alone = values.len() == 1;
    let file = Arc::from(name);
    let numbered = values.into_iter().enumerate().map(|(index, value)| {
        let source = Source {
            file: Arc::clone(&file),
            document: (!alone).then_some(index + 1),
        };
        (source, value)
    });
    documents.extend(numbered);
    Ok(())
}

/// A whole cluster may be captured in one file, so there is no bound on its size.
fn yaml(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
        },
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

/// A note on a disruption budget as people write it: what it allows is worked out by a controller
/// of the cluster, and stands in the status.
fn without_status((source, object): &Sourced) -> Option<String> {
    let is_budget = object["kind"] == "PodDisruptionBudget" && object["status"].is_null();
    let name = object["metadata"]["name"].as_str();
    let name = name.filter(|_| is_budget)?;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    Some(format!(
        "{source}: PodDisruptionBudget {namespace}/{name}: status: there is none, so no eviction is \
         allowed; write status.disruptionsAllowed as a cluster would"
    ))
}

/// Notes the problems of an object that a cluster may have.
fn problems_of(source: &Source, object: &Object, notes: &mut Vec<String>) {
    let (title, problems) = match object {
        Object::Node(node) => (format!("Node {}", node.name), &node.problems),
        Object::Pod(pod) => (format!("Pod {}/{}", pod.namespace, pod.name), &pod.problems),
        Object::Queue(queue) => (format!("Queue {}", queue.name), &queue.problems),
        Object::PodGroup(group) => (
            format!("PodGroup {}/{}", group.namespace, group.name),
            &group.problems,
        ),
        Object::Topology(topology) => (format!("Topology {}", topology.name), &topology.problems),
        Object::Namespace(namespace) => {
            (format!("Namespace {}", namespace.name), &namespace.problems)
        }
        Object::DisruptionBudget(budget) => (
            format!("PodDisruptionBudget {}/{}", budget.namespace, budget.name),
            &budget.problems,
        ),
        Object::Numa(facts) => (
            format!("NodeResourceTopology {}", facts.name),
            &facts.problems,
        ),
        Object::PriorityClass(_) | Object::Job(_) | Object::Storage(_) => return,
    };
    let unknown_keys = match object {
        Object::Pod(pod) if pod.ours => pod.unknown_keys.as_slice(),
        Object::PodGroup(group) => &group.unknown_keys,
        Object::Queue(queue) => &queue.unknown_keys,
        _ => &[],
    };
    for Problem { field, message } in problems.iter().chain(unknown_keys) {
        notes.push(format!("{source}: {title}: {field}: {message}"));
    }
    if let Object::PodGroup(group) = object {
        let not_yet = group.unsupported.iter();
        notes.extend(
            not_yet.map(|field| format!("{source}: {title}: {field}: is not supported yet")),
        );
    }
}

/// Kinds that the scheduler has no use for, in one line.
fn ignored(read: &FromFiles<Source>) -> Option<String> {
    let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, kind) in &read.ignored {
        *kinds.entry(kind).or_default() += 1;
    }
    if kinds.is_empty() {
        return None;
    }
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    Some(format!("not used: {}", kinds.join(", ")))
}

fn nothing_to_do(objects: &[Object], scheduler_name: &str) -> Option<String> {
    let mut pods = 0;
    for object in objects {
        if let Object::Pod(pod) = object {
            if pod.ours {
                return None;
            }
            pods += 1;
        }
    }
    Some(match pods {
        0 => "there are no pods to schedule".to_owned(),
        1 => format!("the only pod does not have spec.schedulerName: {scheduler_name}"),
        pods => format!("none of the {pods} pods has spec.schedulerName: {scheduler_name}"),
    })
}
