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
pub(super) const SIM_RUN_SECONDS: &str = "gpu-batch.io/sim-run-seconds";
pub(super) const SIM_EXIT_CODE: &str = "gpu-batch.io/sim-exit-code";

/// The annotations that a binding writes, in the order in which
/// [`execute`](crate::execute) fills them.
pub(crate) const OF_BINDINGS: [&str; 3] = [BOUND_QUEUE, BOUND_POD_GROUP, BOUND_MINIMUM];

/// What every key of ours begins with.
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
