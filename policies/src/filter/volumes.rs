//! Whether a node can have the volumes of a pod.

use super::Filter;
use super::affinity::term_holds;
use crate::facts::{
    Labels, NodeFacts, NodeSelectorTerm, PodShape, VolumeNeeds, VolumePlaces, ZONE_LABELS, label,
};
use alloc::vec::Vec;

/// Whether the volumes of a pod are, or can be, on a node. What is missing everywhere is not looked
/// at: a pod that misses something is not placed at all.
///
/// # Errors
/// The first reason, in the order in which kube-scheduler asks its plugins.
pub(super) fn verdict(shape: &PodShape, node: &NodeFacts) -> Result<(), Filter> {
    let needs = shape.volumes.as_deref();
    needs.map_or(Ok(()), |needs| verdict_on(needs, node))
}

/// Whether volumes are, or can be, on a node.
///
/// # Errors
/// The first reason, in the order in which kube-scheduler asks its plugins.
pub(super) fn verdict_on(needs: &VolumeNeeds, node: &NodeFacts) -> Result<(), Filter> {
    // tests plant bugs here: places-of-volumes
    if let Some(refused) = needs.places.iter().find(|places| !holds(places, node)) {
        return Err(match refused.is_bound {
            true => Filter::VolumeAffinity,
            false => Filter::NoVolume,
        });
    }
    let value = |key: &str| label(&node.labels, key);
    let has_zone = ZONE_LABELS.into_iter().any(|key| value(key).is_some());
    let mut zones = needs.zones.iter();
    let is_in = |key: &str| value(key).or_else(|| value(current(key)));
    let all_hold = zones.all(|zone| {
        let found = is_in(&zone.key);
        found.is_some_and(|found| zone.values.iter().any(|value| **value == *found))
    });
    match has_zone && !all_hold {
        true => Err(Filter::VolumeZone),
        false => Ok(()),
    }
}

/// The name that a label of a zone or region has today.
fn current(key: &str) -> &str {
    match key {
        "failure-domain.beta.kubernetes.io/zone" => "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region" => "topology.kubernetes.io/region",
        other => other,
    }
}

fn holds(places: &VolumePlaces, node: &NodeFacts) -> bool {
    let only = places.only_on.as_ref();
    only.is_none_or(|only| *only == node.name) && one_place_holds(&places.any_of, &node.labels)
}

/// Whether one of these alternatives holds of a node with these labels: one term of each list.
pub(crate) fn one_place_holds(places: &[Vec<Vec<NodeSelectorTerm>>], labels: &Labels) -> bool {
    let one_holds = |terms: &Vec<NodeSelectorTerm>| one_term_holds(terms, labels);
    places.iter().any(|lists| lists.iter().all(one_holds))
}

/// Whether one of these terms of volumes holds of a node with these labels. Kubernetes looks at
/// the labels alone where volumes are.
pub(crate) fn one_term_holds(terms: &[NodeSelectorTerm], labels: &Labels) -> bool {
    terms.iter().any(|term| term_holds(term, labels, None))
}
