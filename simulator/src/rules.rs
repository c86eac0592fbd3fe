//! A plain reading of rules about other pods, for judges.

use gpu_batch_policies::facts::{LabelSelector, NodeFacts, PodFacts, PodSelection, label};

/// Whether two nodes are in one domain of a label.
pub(crate) fn near(key: &str, one: &NodeFacts, other: &NodeFacts) -> bool {
    let domain = label(&one.labels, key);
    domain.is_some() && domain == label(&other.labels, key)
}

/// Whether a term about other pods selects a pod.
pub(crate) fn selects(selection: &PodSelection, pod: &PodFacts) -> bool {
    selection.namespaces.contains(&pod.namespace) && has_labels(pod, selection.labels.as_ref())
}

/// Whether a pod has the labels that a selector asks for; none has those of no selector.
pub(crate) fn has_labels(pod: &PodFacts, asked: Option<&LabelSelector>) -> bool {
    let value = |key: &str| pod.labels.value(key, &pod.name, pod.owner.as_ref());
    asked.is_some_and(|asked| asked.selects(value))
}
