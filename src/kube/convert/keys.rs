//! Labels and annotations of `gpu-batch.io`: the keys, and those under our prefix that mean nothing
//! where they stand.
//!
//! No object is refused for a key that means nothing: other tools may have keys of their own there
//! one day. But a queue that is named in an annotation instead of a label, or on a Job instead of
//! its pods, is not used, and the author of the object has to hear of it.

use super::limits;
use super::problems::Problems;
use crate::kube::objects::Meta;
use gpu_batch_policies::facts::Problem;
use gpu_batch_policies::names::nearest;
use serde::Deserialize;
use serde_json::Value;

pub(super) const POD_GROUP: &str = "gpu-batch.io/pod-group";
pub(super) const SUB_GROUP: &str = "gpu-batch.io/subgroup";
pub(super) const QUEUE: &str = "gpu-batch.io/queue";
pub(super) const BOUND_QUEUE: &str = "gpu-batch.io/bound-queue";
pub(super) const BOUND_POD_GROUP: &str = "gpu-batch.io/bound-podgroup";
pub(super) const BOUND_MINIMUM: &str = "gpu-batch.io/bound-minimum";
pub(super) const PLANNED_NODE: &str = "gpu-batch.io/planned-node";
const PLANNED_AT: &str = "gpu-batch.io/planned-at";
pub(super) const MIN_MEMBER: &str = "gpu-batch.io/min-member";
pub(super) const EXPECTED_RUNTIME: &str = "gpu-batch.io/expected-runtime";
pub(super) const PREEMPTIBLE: &str = "gpu-batch.io/preemptible";
pub(super) const PLACEMENT: &str = "gpu-batch.io/placement";
pub(super) const TOPOLOGY_REQUIRED: &str = "gpu-batch.io/topology-required";
pub(super) const TOPOLOGY_PREFERRED: &str = "gpu-batch.io/topology-preferred";
pub(super) const PREEMPTION_DELAY: &str = "gpu-batch.io/preemption-delay";
pub(super) const LAST_CHECKPOINT: &str = "gpu-batch.io/last-checkpoint";
pub(super) const GPU_MEMORY: &str = "gpu-batch.io/gpu-memory";
pub(super) const GPU_FRACTION: &str = "gpu-batch.io/gpu-fraction";
pub(super) const GPU_CORES: &str = "gpu-batch.io/gpu-cores";
pub(super) const GPU_SLICE: &str = "gpu-batch.io/gpu-slice";
pub(super) const SIM_RUN_SECONDS: &str = "gpu-batch.io/sim-run-seconds";
pub(super) const SIM_EXIT_CODE: &str = "gpu-batch.io/sim-exit-code";

/// The annotations that a binding writes, in the order in which
/// [`execute`](crate::kube::execute) fills them.
pub(crate) const OF_BINDINGS: [&str; 3] = [BOUND_QUEUE, BOUND_POD_GROUP, BOUND_MINIMUM];

/// The annotations that the lifting of a gate writes: the node, and when.
pub(crate) const OF_LIFTING: [&str; 2] = [PLANNED_NODE, PLANNED_AT];

/// The prefix of all our keys.
pub(super) const PREFIX: &str = "gpu-batch.io/";

/// The labels of pods that mean something.
pub(super) const LABELS: [&str; 3] = [POD_GROUP, SUB_GROUP, QUEUE];

/// The annotations of pods that mean something: what users write, what a binding or the lifting of
/// a gate has written, and what the fake nodes of the demo read.
pub(super) const ANNOTATIONS: [&str; 19] = [
    MIN_MEMBER,
    EXPECTED_RUNTIME,
    PREEMPTIBLE,
    PLACEMENT,
    TOPOLOGY_REQUIRED,
    TOPOLOGY_PREFERRED,
    PREEMPTION_DELAY,
    LAST_CHECKPOINT,
    GPU_MEMORY,
    GPU_FRACTION,
    GPU_CORES,
    GPU_SLICE,
    BOUND_QUEUE,
    BOUND_POD_GROUP,
    BOUND_MINIMUM,
    PLANNED_NODE,
    PLANNED_AT,
    SIM_RUN_SECONDS,
    SIM_EXIT_CODE,
];

/// The field of a label, as users see it.
pub(super) fn label(name: &str) -> String {
    format!("metadata.labels[{name}]")
}

/// The field of an annotation, as users see it.
pub(super) fn annotation(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}

/// Whether a key is a label or an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Label,
    Annotation,
}

impl Sort {
    fn word(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Annotation => "annotation",
        }
    }

    fn article(self) -> &'static str {
        match self {
            Self::Label => "a label",
            Self::Annotation => "an annotation",
        }
    }

    fn field(self, key: &str) -> String {
        match self {
            Self::Label => label(key),
            Self::Annotation => annotation(key),
        }
    }

    /// Whether a key means something on a pod as a label, or as an annotation.
    fn of(key: &str) -> Option<Self> {
        let is = |keys: &[&str]| keys.contains(&key);
        is(&LABELS)
            .then_some(Self::Label)
            .or(is(&ANNOTATIONS).then_some(Self::Annotation))
    }
}

/// The keys of an object that have our prefix.
fn ours(meta: &Meta) -> impl Iterator<Item = (Sort, &str)> {
    let labels = meta.labels.iter().map(|(key, _)| (Sort::Label, key));
    let annotations = meta.annotations.iter();
    let annotations = annotations.map(|(key, _)| (Sort::Annotation, key));
    labels
        .chain(annotations)
        .filter(|(_, key)| key.starts_with(PREFIX))
}

/// The keys of a pod that mean nothing, each with what may have been meant.
pub(super) fn unknown(meta: &Meta) -> Vec<Problem> {
    let mut unknown = Problems::default();
    for (sort, key) in ours(meta) {
        let message = match Sort::of(key) {
            Some(right) if right == sort => continue,
            Some(right) => {
                let (right, wrong) = (right.article(), sort.article());
                format!("is {right}: as {wrong} it means nothing")
            }
            None => misspelt(key, |sort, name| {
                format!("did you mean the {} {name}?", sort.word())
            }),
        };
        unknown.push(sort.field(key), message);
    }
    unknown.into_vec()
}

/// The sentence that an unknown key means nothing. `say`: the words for the known key that may be
/// meant.
fn misspelt(key: &str, say: impl Fn(Sort, &str) -> String) -> String {
    let said = match meant(key) {
        Some((sort, name)) => say(sort, name),
        None => "docs/labels.md lists the keys that do".to_owned(),
    };
    format!("means nothing; {said}")
}

/// The known key that may have been meant by an unknown one.
fn meant(key: &str) -> Option<(Sort, &'static str)> {
    let written = || LABELS.into_iter().chain(ANNOTATIONS);
    let word = |key: &'static str| key.trim_start_matches(PREFIX);
    // The prefix is right, so only the letters behind it are compared.
    let short = key
        .get(PREFIX.len()..limits::TEXT.min(key.len()))
        .unwrap_or_default();
    let meant = nearest(short, written().map(word))?;
    let name = written().find(|name| word(name) == meant)?;
    Some((Sort::of(name)?, name))
}

/// The keys of an object other than a pod: all of them mean nothing, but for those that `counts`
/// picks. `home` says where a known key belongs.
fn elsewhere(
    meta: &Meta,
    counts: impl Fn(Sort, &str) -> bool,
    home: impl Fn(Sort, &str) -> String,
) -> Vec<Problem> {
    let mut unknown = Problems::default();
    for (sort, key) in ours(meta).filter(|(sort, key)| !counts(*sort, key)) {
        let message = match Sort::of(key) {
            Some(right) => format!("means nothing here: {}", home(right, key)),
            None => misspelt(key, |right, name| {
                format!("if {name} is meant: {}", home(right, name))
            }),
        };
        unknown.push(sort.field(key), message);
    }
    unknown.into_vec()
}

/// The keys of an owner of pods that mean nothing there and that its pods do not have either. What
/// users write on an owner and on its pods alike, as tools do that label everything, is no mistake.
pub(super) fn on_owner(owner: &Meta, template: &Meta) -> Vec<Problem> {
    let is_on_pods = |_, key: &str| match Sort::of(key) {
        Some(Sort::Label) => template.labels.get(key).is_some(),
        Some(Sort::Annotation) => template.annotations.get(key).is_some(),
        None => false,
    };
    elsewhere(owner, is_on_pods, |sort, key| match key {
        _ if is_ours_to_write(key) => OF_PODS.to_owned(),
        _ => format!("write it in spec.template.metadata.{}s", sort.word()),
    })
}

/// The keys of an owner in a file, as [`on_owner`] finds them.
pub(crate) fn of_owner(object: &Value) -> Vec<Problem> {
    let meta = |path: &str| {
        let meta = object.pointer(path);
        meta.and_then(|meta| Meta::deserialize(meta).ok())
            .unwrap_or_default()
    };
    on_owner(&meta("/metadata"), &meta("/spec/template/metadata"))
}

/// The keys of a PodGroup of ours that mean nothing there.
pub(super) fn on_pod_group(meta: &Meta) -> Vec<Problem> {
    elsewhere(
        meta,
        |_, _| false,
        |sort, key| match field_for(key) {
            Some(field) => format!("a PodGroup has {field}"),
            None => of_its_pods(sort, key),
        },
    )
}

/// The keys of a native PodGroup that mean nothing there.
pub(super) fn on_native_group(meta: &Meta) -> Vec<Problem> {
    let names_queue = |sort, key: &str| (sort, key) == (Sort::Label, QUEUE);
    elsewhere(meta, names_queue, |sort, key| match (key, field_for(key)) {
        (QUEUE, _) => "write it as a label".into(),
        (MIN_MEMBER, _) => "a native PodGroup has spec.schedulingPolicy.gang.minCount".into(),
        (_, Some(field)) => format!("only a PodGroup of gpu-batch.io can say it, by {field}"),
        _ => of_its_pods(sort, key),
    })
}

/// The keys of a queue that mean nothing there.
pub(super) fn on_queue(meta: &Meta) -> Vec<Problem> {
    elsewhere(
        meta,
        |_, _| false,
        |_, key| match key {
            PLACEMENT => "a Queue has spec.placement".into(),
            _ => OF_PODS.to_owned(),
        },
    )
}

const OF_PODS: &str = "only pods have it";

/// Whether the scheduler writes a key on pods, and no user.
fn is_ours_to_write(key: &str) -> bool {
    OF_BINDINGS.contains(&key) || OF_LIFTING.contains(&key)
}

fn of_its_pods(sort: Sort, key: &str) -> String {
    match is_ours_to_write(key) {
        true => OF_PODS.to_owned(),
        false => format!("write it on its pods, as {}", sort.article()),
    }
}

/// The field of a PodGroup of ours that says what a key says on pods.
fn field_for(key: &str) -> Option<&'static str> {
    Some(match key {
        QUEUE => "spec.queue",
        MIN_MEMBER => "spec.minMember",
        EXPECTED_RUNTIME => "spec.expectedRuntime",
        PREEMPTIBLE => "spec.preemptible",
        PLACEMENT => "spec.placement",
        TOPOLOGY_REQUIRED => "spec.topology.required",
        TOPOLOGY_PREFERRED => "spec.topology.preferred",
        PREEMPTION_DELAY => "spec.preemptionDelay",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
