//! The GPUs of the cluster, by model and resource.

use crate::facts::{Amount, CardClosed, CardMemory, CardNeed, amount};
use crate::gpu::{self, GPU, is_gpu_resource};
use crate::ids::ClassId;
use crate::report::GpuReport;
use crate::state::ClusterState;
use crate::state::class::Class;
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
    let mut reports: Vec<GpuReport> = reports.into_values().collect();
    count_cards(state, &mut reports);
    reports
}

/// Adds the cards that HAMi divides, each in one state.
fn count_cards(state: &ClusterState, reports: &mut Vec<GpuReport>) {
    let asked = asked_of_cards(state);
    let anything: Vec<CardNeed> = CardNeed::new(1, 0, CardMemory::Mib(1))
        .into_iter()
        .collect();
    for (_, node) in state.nodes.iter() {
        let Some(known) = node.known.as_ref().filter(|known| known.gpu.is_hami) else {
            continue;
        };
        let rooms = node
            .cards
            .openings(&anything)
            .zip(node.cards.openings(&asked));
        for (card, ((is_held, has_any), (_, has_room))) in known.facts.cards.iter().zip(rooms) {
            let model = known.gpu.product.as_ref().unwrap_or(&card.model);
            let report = report_of(reports, model);
            let is_closed = card.closed.is_some() || is_closed(known);
            let count = match () {
                () if card.closed == Some(CardClosed::Unhealthy) => &mut report.unhealthy,
                () if is_closed && !is_held => &mut report.closed,
                () if is_closed || !has_any => &mut report.used,
                () if !has_room && !asked.is_empty() => &mut report.fragmented,
                () if is_held => &mut report.shared,
                () => &mut report.free,
            };
            *count = count.saturating_add(1);
        }
    }
}

/// The report of the GPUs of a model, in its place.
fn report_of<'a>(reports: &'a mut Vec<GpuReport>, model: &str) -> &'a mut GpuReport {
    let known = reports.binary_search_by(|it| (&*it.model, &*it.resource).cmp(&(model, GPU)));
    let place = known.unwrap_or_else(|place| {
        let report = GpuReport {
            model: model.into(),
            resource: GPU.into(),
            ..GpuReport::default()
        };
        reports.insert(place, report);
        place
    });
    &mut reports[place]
}

/// What the containers of waiting pods ask of cards, each request once.
fn asked_of_cards(state: &ClusterState) -> Vec<CardNeed> {
    let asked = waiting_classes(state).flat_map(Class::card_needs);
    let asked: BTreeSet<CardNeed> = asked.collect();
    asked.into_iter().collect()
}

/// The classes of waiting pods, each once.
fn waiting_classes(state: &ClusterState) -> impl Iterator<Item = &Class> {
    let pods = state.pods.iter().map(|(_, pod)| pod);
    let waiting = pods.filter(|pod| pod.stage == Stage::Waiting);
    let classes: BTreeSet<ClassId> = waiting.map(|pod| pod.class).collect();
    classes.into_iter().map(|class| &state.classes[class])
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
    let mut least: BTreeMap<&str, Amount> = BTreeMap::new();
    for class in waiting_classes(state) {
        let asked = class.shape.requests.iter();
        for (name, amount) in asked.filter(|(name, _)| is_gpu_resource(name)) {
            let known = least.entry(name).or_insert(*amount);
            *known = (*known).min(*amount);
        }
    }
    least
}
