//! Labels and annotations of `gpu-batch.io`: the keys, and those under our prefix that mean nothing
//! where they stand.
//!
//! No object is refused for a key that means nothing: other tools may have keys of their own there
//! one day. But a queue that is named in an annotation instead of a label is not used, and the
//! author of the object has to hear of it.

use super::limits;
use super::problems::Problems;
use crate::kube::objects::Meta;
use gpu_batch_policies::facts::Problem;
use gpu_batch_policies::names::nearest;

pub(super) const POD_GROUP: &str = "gpu-batch.io/pod-group";
pub(super) const SUB_GROUP: &str = "gpu-batch.io/subgroup";
pub(super) const QUEUE: &str = "gpu-batch.io/queue";
pub(super) const BOUND_QUEUE: &str = "gpu-batch.io/bound-queue";
pub(super) const BOUND_POD_GROUP: &str = "gpu-batch.io/bound-podgroup";
pub(super) const BOUND_MINIMUM: &str = "gpu-batch.io/bound-minimum";
pub(super) const MIN_MEMBER: &str = "gpu-batch.io/min-member";
pub(super) const EXPECTED_RUNTIME: &str = "gpu-batch.io/expected-runtime";
pub(super) const PREEMPTIBLE: &str = "gpu-batch.io/preemptible";
pub(super) const PLACEMENT: &str = "gpu-batch.io/placement";
pub(super) const TOPOLOGY_REQUIRED: &str = "gpu-batch.io/topology-required";
pub(super) const TOPOLOGY_PREFERRED: &str = "gpu-batch.io/topology-preferred";
pub(super) const PREEMPTION_DELAY: &str = "gpu-batch.io/preemption-delay";
pub(super) const LAST_CHECKPOINT: &str = "gpu-batch.io/last-checkpoint";
pub(super) const SIM_RUN_SECONDS: &str = "gpu-batch.io/sim-run-seconds";
pub(super) const SIM_EXIT_CODE: &str = "gpu-batch.io/sim-exit-code";

/// The annotations that a binding writes, in the order in which
/// [`execute`](crate::kube::execute) fills them.
pub(crate) const OF_BINDINGS: [&str; 3] = [BOUND_QUEUE, BOUND_POD_GROUP, BOUND_MINIMUM];

/// The prefix of all our keys.
pub(super) const PREFIX: &str = "gpu-batch.io/";

/// The labels of pods that mean something.
pub(super) const LABELS: [&str; 3] = [POD_GROUP, SUB_GROUP, QUEUE];

/// The annotations of pods that mean something: what users write, what a binding has written, and
/// what the fake nodes of the demo read.
pub(super) const ANNOTATIONS: [&str; 13] = [
    MIN_MEMBER,
    EXPECTED_RUNTIME,
    PREEMPTIBLE,
    PLACEMENT,
    TOPOLOGY_REQUIRED,
    TOPOLOGY_PREFERRED,
    PREEMPTION_DELAY,
    LAST_CHECKPOINT,
    BOUND_QUEUE,
    BOUND_POD_GROUP,
    BOUND_MINIMUM,
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

/// The keys of a pod that mean nothing, each with what may have been meant.
pub(super) fn unknown(meta: &Meta) -> Vec<Problem> {
    let mut unknown = Problems::default();
    let mut tell =
        |key: &str, field: fn(&str) -> String, here: &[&str], elsewhere: &[&str], misplaced| {
            if elsewhere.contains(&key) {
                unknown.push(field(key), misplaced);
            } else if key.starts_with(PREFIX) && !here.contains(&key) {
                unknown.push(field(key), meaning_nothing(key));
            }
        };
    let (labels, annotations) = (&LABELS, &ANNOTATIONS);
    for (key, _) in meta.labels.iter() {
        let misplaced = "is an annotation: as a label it means nothing";
        tell(key, label, labels, annotations, misplaced);
    }
    for (key, _) in meta.annotations.iter() {
        let misplaced = "is a label: as an annotation it means nothing";
        tell(key, annotation, annotations, labels, misplaced);
    }
    unknown.into_vec()
}

fn meaning_nothing(key: &str) -> String {
    let labels = LABELS.into_iter().map(|name| ("label", name));
    let annotations = ANNOTATIONS.into_iter().map(|name| ("annotation", name));
    let written = labels.chain(annotations);
    let word = |key: &'static str| key.trim_start_matches(PREFIX);
    // The prefix is right, so only the letters behind it are compared.
    let short = key
        .get(PREFIX.len()..limits::TEXT.min(key.len()))
        .unwrap_or_default();
    let meant = nearest(short, written.clone().map(|(_, name)| word(name)));
    let meant = meant.and_then(|meant| written.clone().find(|(_, name)| word(name) == meant));
    match meant {
        Some((kind, name)) => format!("means nothing; did you mean the {kind} {name}?"),
        None => "means nothing; docs/labels.md lists the keys that do".to_owned(),
    }
}

#[cfg(test)]
mod tests;
