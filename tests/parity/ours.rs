//! What gpu-batch says of a case.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gpu_batch::kube::convert::{ClusterPreferences, Converter, Watched};
use gpu_batch::kube::objects::{
    CsiDriver, CsiNode, CsiStorageCapacity, Namespace, Node, PersistentVolume,
    PersistentVolumeClaim, Pod, StorageClass, VolumeAttachment,
};
use gpu_batch::plan::{Reading, read};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{PodFacts, Readiness};
use gpu_batch_policies::lease::LeaseSettings;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::{PodReport, PreferenceScores};
use gpu_batch_policies::settings::{Evictions, Health, Leadership, Settings};
use gpu_batch_testing::World;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

use crate::oracle::Stored;

/// The pod of every case is ours.
const SCHEDULER: &str = "gpu-batch";
/// After all times in cases.
const NOW_MS: u64 = 1_800_000_000_000;

/// The verdicts of gpu-batch on a pod that is let in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    /// What keeps the pod off each node; empty: nothing.
    pub(crate) nodes: BTreeMap<String, String>,
    /// What the pod prefers of each node that fits.
    pub(crate) scores: BTreeMap<String, PreferenceScores>,
    /// Nodes that are not ready. kube-scheduler knows of them by their taints only.
    pub(crate) not_ready: BTreeSet<String>,
    /// What the pod asks for and is not supported, so that it waits wherever it might fit.
    pub(crate) unsupported: Vec<String>,
}

/// A mistake: the object, the field, and the words.
#[derive(Debug, Clone)]
pub(crate) struct Mistake {
    pub(crate) object: String,
    pub(crate) field: String,
    pub(crate) message: String,
}

/// Reads cases as files, as `plan` does.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    /// Writes the objects of a case as users write them, in a file for `plan`.
    pub(crate) fn write(&self, case: &Value) -> PathBuf {
        let mut text = String::new();
        let kinds = [
            ("Node", "nodes"),
            ("Pod", "pods"),
            ("Namespace", "namespaces"),
        ];
        for (kind, list) in kinds {
            for object in case[list].as_array().into_iter().flatten() {
                text += &typed(object, kind);
            }
        }
        for object in case["objects"].as_array().into_iter().flatten() {
            text += &object.to_string();
        }
        text += &typed(&case["pod"], "Pod");
        let path = self.folder.path().join("case.json");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The verdicts on a case that is read from a file, or the mistakes in it.
    pub(crate) fn judge(&self, case: &Value) -> Result<Judged, Vec<Mistake>> {
        let reading = Reading {
            scheduler_name: SCHEDULER,
            namespace: "default",
            now_ms: NOW_MS,
            health: &Health::default(),
            preferences: preferences(case),
        };
        match read(None, &[self.write(case)], reading) {
            Ok(input) => Ok(judged(input.objects, &name_of(&case["pod"]))),
            Err(errors) => Err(errors.to_string().lines().map(mistake).collect()),
        }
    }
}

/// The preferences that the cluster of a case adds. kube-scheduler always adds them, so that most
/// cases have nothing to add.
fn preferences(case: &Value) -> ClusterPreferences {
    let are_on = case["defaults"] == true;
    ClusterPreferences {
        image_locality: are_on,
        default_spreading: are_on,
    }
}

/// The verdicts on objects of a cluster, as the watches bring them.
pub(crate) fn judge_stored(stored: &Stored, case: &Value) -> Judged {
    judged(watched(stored, case), &name_of(&stored.pod))
}

/// Objects of a cluster, as the watches bring them.
fn watched(stored: &Stored, case: &Value) -> Vec<Object> {
    let mut converter = Converter::new(SCHEDULER, NOW_MS).with_preferences(preferences(case));
    let mut objects = Vec::new();
    for namespace in case["namespaces"].as_array().into_iter().flatten() {
        objects.extend(seen::<Namespace>(namespace, &mut converter));
    }
    for object in &stored.objects {
        objects.extend(seen_of_kind(object, &mut converter));
    }
    for node in &stored.nodes {
        objects.extend(seen::<Node>(node, &mut converter));
    }
    for pod in stored.pods.iter().chain([&stored.pod]) {
        objects.extend(seen::<Pod>(pod, &mut converter));
    }
    objects
}

/// An object that says its kind; `None`: one that is not watched.
fn seen_of_kind(object: &Value, converter: &mut Converter) -> Option<Object> {
    match object["kind"].as_str()? {
        "PersistentVolumeClaim" => seen::<PersistentVolumeClaim>(object, converter),
        "PersistentVolume" => seen::<PersistentVolume>(object, converter),
        "StorageClass" => seen::<StorageClass>(object, converter),
        "CSINode" => seen::<CsiNode>(object, converter),
        "CSIDriver" => seen::<CsiDriver>(object, converter),
        "VolumeAttachment" => seen::<VolumeAttachment>(object, converter),
        "CSIStorageCapacity" => seen::<CsiStorageCapacity>(object, converter),
        _ => None,
    }
}

fn seen<T: Watched + DeserializeOwned>(
    object: &Value,
    converter: &mut Converter,
) -> Option<Object> {
    let decoded: T = serde_json::from_value(object.clone())
        .unwrap_or_else(|error| panic!("{error}: the API server would hold {object}"));
    decoded.convert(converter)
}

/// The node on which a pod of these objects would be placed.
///
/// # Errors
/// Why it is placed on none.
pub(crate) fn choice(stored: &Stored, case: &Value) -> Result<String, String> {
    let report = settled(watched(stored, case), &name_of(&stored.pod));
    let report = report.ok_or("there is no such pod")?;
    report.node.map(Into::into).ok_or(report.message)
}

/// The report on a pod, once an engine that leads has placed what it can; `None`: there is no such
/// pod.
fn settled(objects: Vec<Object>, name: &str) -> Option<PodReport> {
    let mut world = World::with(Settings {
        evictions: Evictions {
            in_flight: 0,
            per_second: 1,
        },
        ..Settings::default()
    });
    world.now_ms = NOW_MS;
    for object in objects {
        world.apply(object);
    }
    world.settle();
    let reports = world.engine.pod_reports();
    reports.into_iter().find(|pod| *pod.name == *name)
}

/// The sentence about a volume that a pod lacks. Only an engine that leads says it.
fn missing(objects: &[Object], pod: &PodFacts) -> Option<String> {
    if pod.claims.is_empty() {
        return None;
    }
    let report = settled(objects.to_vec(), &pod.name)?;
    // A pod that has a place waits for volumes that are made there.
    let is_missing = report.reason == Some(Reason::WaitingForVolumes) && report.node.is_none();
    is_missing.then_some(report.message)
}

fn name_of(pod: &Value) -> String {
    pod["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// An object as a document of a file.
fn typed(object: &Value, kind: &str) -> String {
    let mut object = object.clone();
    object["apiVersion"] = "v1".into();
    object["kind"] = kind.into();
    object.to_string()
}

/// Takes `FILE, document 2: Pod default/judged: spec.x: message` apart.
fn mistake(line: &str) -> Mistake {
    let mut parts = line.splitn(4, ": ").skip(1).map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    let (object, field, message) = (next(), next(), next());
    Mistake {
        object,
        field,
        message,
    }
}

/// Asks an engine that does not act, so that the pod is not placed before the question.
fn judged(objects: Vec<Object>, name: &str) -> Judged {
    let mut engine = Engine::new(Settings {
        leadership: Leadership::Elected(LeaseSettings {
            identity: "parity".into(),
            duration_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
        }),
        ..Settings::default()
    });
    let mut pod: Option<PodFacts> = None;
    let mut judged = Judged::default();
    for object in &objects {
        match object {
            Object::Pod(facts) if *facts.name == *name => pod = Some(facts.clone()),
            Object::Node(node) if matches!(node.readiness, Readiness::Lost { .. }) => {
                judged.not_ready.insert(node.name.to_string());
            }
            _ => {}
        }
    }
    let pod = pod.expect("the pod is among the objects");
    let missing = missing(&objects, &pod);
    engine.step(NOW_MS, Event::lists(objects));
    let verdicts = engine.verdicts(pod.uid).expect("the engine knows the pod");
    let scores = engine
        .preferences(pod.uid)
        .expect("the engine knows the pod");
    judged.scores = scores
        .into_iter()
        .map(|(node, scores)| (node.into(), scores))
        .collect();
    judged.unsupported = pod
        .shape
        .unsupported
        .iter()
        .map(ToString::to_string)
        .collect();
    // A pod with a problem, or whose volumes are missing, is held: no node takes it.
    let problem = pod.problems.first();
    let problem = problem.map(|problem| format!("{}: {}", problem.field, problem.message));
    let held = problem.or(missing);
    for (node, verdict) in verdicts {
        let verdict = held.clone().or(verdict).unwrap_or_default();
        judged.nodes.insert(node.into(), verdict);
    }
    judged
}
