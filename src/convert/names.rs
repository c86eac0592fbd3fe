//! Labels and annotations of `gpu-batch.io`.

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

/// The field of a label, as users see it.
pub(super) fn label(name: &str) -> String {
    format!("metadata.labels[{name}]")
}

/// The field of an annotation, as users see it.
pub(super) fn annotation(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}
