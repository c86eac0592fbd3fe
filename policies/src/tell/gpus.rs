//! The GPUs of the cluster, by model and resource.

use crate::facts::{Amount, amount};
use crate::gpu::is_gpu_resource;
use crate::report::GpuReport;
use crate::state::ClusterState;
use crate::state::node::{KnownNode, Node};
use crate::state::pod::Stage;
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

/// The least of each GPU resource that any waiting pod asks for.
type LeastAsked = BTreeMap<Box<str>, Amount>;

/// All GPUs, in the order of models and resources. Looks at all nodes and pods.
pub(crate) fn gpu_reports(state: &ClusterState) -> Vec<GpuReport> {
    let least_asked = least_asked(state);
    let mut reports: BTreeMap<(Box<str>, Box<str>), GpuReport> = BTreeMap::new();
    for (_, node) in state.nodes.iter() {
        let Some(known) = &node.known else { continue };
        for (resource, existing) in existing(known) {
            let model = known.gpu.product.clone().unwrap_or_default();
            let key = (model.clone(), resource.clone());
            let report = reports.entry(key).or_insert_with(|| GpuReport {
                model,
                resource: resource.clone(),
                ..GpuReport::default()
            });
            let used = used(state, node, &resource);
            count(report, known, (existing, used), &least_asked);
        }
    }
    reports.into_values().collect()
}

/// The GPU resources of a node, each with how much of it exists. HAMi's slots are no GPUs.
fn existing(known: &KnownNode) -> impl Iterator<Item = (Box<str>, Amount)> + '_ {
    let capacity = known.facts.capacity.iter();
    let extra = known.facts.allocatable.iter();
    let extra = extra.filter(|(name, _)| amount(&known.facts.capacity, name) == 0);
    let all = capacity.chain(extra);
    let gpus = all.filter(|(name, amount)| *amount > 0 && is_gpu_resource(name));
    gpus.filter(|(name, _)| known.gpu.offers(name))
        .map(|(name, amount)| (name.clone(), *amount))
}

/// How much of a resource the pods on a node use.
fn used(state: &ClusterState, node: &Node, resource: &str) -> Amount {
    let mut known = node.resources();
    let known = known.find(|(id, ..)| state.resource_names.name(*id) == resource);
    known.map_or(0, |(_, _, used)| used)
}

/// Adds what one node has of a resource.
fn count(
    report: &mut GpuReport,
    known: &KnownNode,
    (existing, used): (Amount, Amount),
    least_asked: &LeastAsked,
) {
    let add = |sum: &mut Amount, amount: Amount| *sum = sum.saturating_add(amount);
    let offered = amount(&known.facts.allocatable, &report.resource);
    add(&mut report.unhealthy, existing.saturating_sub(offered));
    add(&mut report.used, used);
    let free = offered.saturating_sub(used);
    let least = least_asked.get(&report.resource);
    if is_closed(known) {
        add(&mut report.closed, free);
    } else if least.is_some_and(|least| free < *least) {
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

fn least_asked(state: &ClusterState) -> LeastAsked {
    let mut least = LeastAsked::new();
    let pods = state.pods.iter().map(|(_, pod)| pod);
    for pod in pods.filter(|pod| pod.stage == Stage::Waiting) {
        let asked = state.classes[pod.class].shape.requests.iter();
        for (name, amount) in asked.filter(|(name, _)| is_gpu_resource(name)) {
            let known = least.entry(name.clone()).or_insert(*amount);
            *known = (*known).min(*amount);
        }
    }
    least
}
