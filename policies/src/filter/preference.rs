//! What a pod prefers of a node's object, as kube-scheduler's plugins score it before they
//! normalise.

use super::{affinity, tolerate};
use crate::facts::{NodeFacts, PodShape, TaintEffect};
use crate::gpu;

/// The sum of the weights of the preferred node affinity's terms that select the node
/// (NodeAffinity).
pub(crate) fn affinity_weight(shape: &PodShape, node: &NodeFacts) -> u32 {
    let preferences = shape.preferences.as_deref();
    let terms = preferences.map_or(&[] as &[_], |preferences| &preferences.nodes);
    let selecting = terms
        .iter()
        .filter(|one| affinity::term_holds(&one.term, &node.labels, Some(&node.name)));
    let weights = selecting.map(|one| one.weight);
    weights.fold(0, u32::saturating_add)
}

/// How many taints with the effect PreferNoSchedule the node has that the pod does not tolerate
/// (TaintToleration). That the GPU operator will soon drain a node counts as one more taint for
/// pods that ask for GPUs.
pub(crate) fn unwanted_taints(shape: &PodShape, node: &NodeFacts) -> u32 {
    let taints = node.taints.iter();
    let soft = taints.filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
    let unwanted = soft.filter(|taint| !tolerate(&shape.tolerations, taint));
    let is_drained_soon = gpu::awaits_upgrade(node) && gpu::asks_for_gpus(&shape.requests);
    u32::try_from(unwanted.count() + usize::from(is_drained_soon)).unwrap_or(u32::MAX)
}

/// Whether the node has a taint with the effect PreferNoSchedule, or waits to have its GPU driver
/// upgraded.
pub(crate) fn would_rather_be_left(node: &NodeFacts) -> bool {
    let mut taints = node.taints.iter();
    taints.any(|taint| taint.effect == TaintEffect::PreferNoSchedule) || gpu::awaits_upgrade(node)
}
