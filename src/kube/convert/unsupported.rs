//! What a pod may ask for and the scheduler cannot give yet.
//!
//! A pod of ours with such a field is held, with the field in its reason; it is never placed as if
//! the field were not there. HAMi's and KAI's scoring policies, which only order nodes, are not
//! used yet, and hold no pod.

use super::resources::{self, ContainerField};
use super::{disks, hami, keys};
use crate::kube::objects::{Container, Pod};
use gpu_batch_policies::facts::CARD_RULES;

/// The fields of a pod that are not supported yet.
pub(super) fn fields(pod: &Pod) -> Vec<Box<str>> {
    let spec = &pod.spec;
    let mut fields: Vec<Box<str>> = Vec::new();
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        if let Some(field) = disks::unknown(volume) {
            fields.push(format!("spec.volumes[{index}].{field}").into());
        }
    }
    if !spec
        .resource_claims
        .as_deref()
        .unwrap_or_default()
        .is_empty()
    {
        fields.push("spec.resourceClaims".into());
    }
    if spec.workload_ref.is_some() {
        fields.push("spec.workloadRef".into());
    }
    let of_pod = spec
        .resources
        .as_ref()
        .and_then(|resources| resources.claims.as_deref());
    if !of_pod.unwrap_or_default().is_empty() {
        fields.push("spec.resources.claims".into());
    }
    for (field, container) in resources::all_containers(spec) {
        in_container(field, container, &mut fields);
    }
    choice_of_cards(pod, &mut fields);
    fields
}

/// What a pod says of the choice of cards. Cards for plain GPUs are not chosen here.
fn choice_of_cards(pod: &Pod, fields: &mut Vec<Box<str>>) {
    let annotations = &pod.metadata.annotations;
    if hami::wants_parts(pod) {
        fields.extend(hami::unsupported_mode(annotations).map(Into::into));
        return;
    }
    let said = CARD_RULES.into_iter().chain([hami::ORDER, hami::MODE]);
    let said = said.filter(|name| annotations.get(name).is_some());
    let bound = Some(hami::NUMA_BIND).filter(|_| hami::is_bound_to_numa(annotations));
    let said = said.chain(bound);
    fields.extend(said.map(|name| keys::annotation(name).into()));
}

fn in_container(field: ContainerField, container: &Container, fields: &mut Vec<Box<str>>) {
    if let Some(resources) = &container.resources {
        if !resources.claims.as_deref().unwrap_or_default().is_empty() {
            fields.push(format!("{field}.resources.claims").into());
        }
        let virtual_ones = resources::VIRTUAL.into_iter();
        for name in virtual_ones.filter(|name| !hami::PARTS.contains(name)) {
            if resources.limits.get(name).is_some() {
                fields.push(format!("{field}.resources.limits[{name}]").into());
            } else if resources.requests.get(name).is_some() {
                fields.push(format!("{field}.resources.requests[{name}]").into());
            }
        }
    }
}

#[cfg(test)]
mod tests;
