//! The GPUs of the cluster, by model and resource.

use crate::facts::{Amount, amount};
use crate::gpu::{self, is_gpu_resource};
use crate::ids::ClassId;
use crate::report::GpuReport;
use crate::state::ClusterState;
use crate::state::node::{KnownNode, Node};
use crate::state::pod::Stage;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// All GPUs, in the order of models and resources. Looks at all nodes and pods.
pub(crate) fn gpu_reports(state: &ClusterState) -> Vec<GpuReport> {
    let least_asked = least_asked(state);
    let mut reports: BTreeMap<(&str, &str), GpuReport> = BTreeMap::new();
    for (_, node) in state.nodes.iter() {
        let Some(known) = &node.known else { continue };
        let model = known.gpu.product.as_deref().unwrap_or_default();
        // HAMi's slots are no GPUs.
        let existing = gpu::existing(&known.facts).filter(|(name, _)| known.gpu.offers(name));
        for (resource, existing) in existing {
            let report = reports
                .entry((model, resource))
                .or_insert_with(|| GpuReport {
                    model: model.into(),
                    resource: resource.into(),
                    ..GpuReport::default()
                });
            let used = used(state, node, resource);
            let least = least_asked.get(resource).copied();
            count(report, known, (existing, used), least);
        }
    }
    reports.into_values().collect()
}

/// How much of a resource the pods on a node use.
fn used(state: &ClusterState, node: &Node, resource: &str) -> Amount {
    let mut known = node.resources();
    let known = known.find(|(id, ..)| state.resource_names.name(*id) == resource);
    known.map_or(0, |(_, _, used)| used)
}

/// Adds what one node has of a resource, of which every waiting pod that asks for it asks for
/// `least` or more; `None`: none waits.
fn count(
    report: &mut GpuReport,
    known: &KnownNode,
    (existing, used): (Amount, Amount),
    least: Option<Amount>,
) {
    let add = |sum: &mut Amount, amount: Amount| *sum = sum.saturating_add(amount);
    let offered = amount(&known.facts.allocatable, &report.resource);
    add(&mut report.unhealthy, existing.saturating_sub(offered));
    add(&mut report.used, used);
    let free = offered.saturating_sub(used);
    if is_closed(known) {
        add(&mut report.closed, free);
    } else if least.is_some_and(|least| free < least) {
        add(&mut report.fragmented, free);
    } else {
        add(&mut report.free, free);
    }
}

/// Whether a node takes no pods that ask for GPUs now, whatever else they ask for. Taints, which
/// some pods tolerate, do not count.
fn is_closed(known: &KnownNode) -> bool {
    known.facts.unschedulable || known.facts.readiness.is_lost() || known.gpu.refusal.is_some()
}

/// The GPU resources for which pods wait, each with the least of it that any of them asks for.
pub(crate) fn least_asked(state: &ClusterState) -> BTreeMap<&str, Amount> {
    let pods = state.pods.iter().map(|(_, pod)| pod);
    let waiting = pods.filter(|pod| pod.stage == Stage::Waiting);
    let classes: BTreeSet<ClassId> = waiting.map(|pod| pod.class).collect();
    let mut least: BTreeMap<&str, Amount> = BTreeMap::new();
    for class in classes {
        let asked = state.classes[class].shape.requests.iter();
        for (name, amount) in asked.filter(|(name, _)| is_gpu_resource(name)) {
            let known = least.entry(name).or_insert(*amount);
            *known = (*known).min(*amount);
        }
    }
    least
}
