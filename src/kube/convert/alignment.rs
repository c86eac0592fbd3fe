//! What containers get for themselves alone, which kubelets may align.

use super::problems::Problems;
use super::quantity::{self, Thousandths};
use super::resources::{self, ContainerField, HUGEPAGES, Sums};
use crate::kube::objects::{Container, PodSpec};
use gpu_batch_policies::facts::{AlignedContainer, Amounts, ContainerRole};

/// The containers of a pod that get something for themselves alone: devices; and in a pod of the
/// quality of service Guaranteed whole CPUs, memory and hugepages.
pub(super) fn aligned(spec: &PodSpec) -> Vec<AlignedContainer> {
    let is_guaranteed = is_guaranteed(spec);
    let containers = resources::all_containers(spec).map(|(field, container)| AlignedContainer {
        role: role(field, container),
        amounts: amounts(container, field, is_guaranteed),
    });
    let aligned = containers.filter(|container| !container.amounts.is_empty());
    aligned.collect()
}

fn role(field: ContainerField, container: &Container) -> ContainerRole {
    match (field.is_init(), container.is_sidecar()) {
        (false, _) => ContainerRole::Main,
        (true, false) => ContainerRole::Init,
        (true, true) => ContainerRole::Sidecar,
    }
}

/// Whether kubelets give the containers CPUs and memory of their own: every container has limits of
/// CPU and memory and asks for no less. If the pod as a whole has resources, they do not.
fn is_guaranteed(spec: &PodSpec) -> bool {
    let of_pod = spec.resources.as_ref();
    let has_own =
        |it: &crate::kube::objects::Resources| !it.requests.is_empty() || !it.limits.is_empty();
    if of_pod.is_some_and(has_own) {
        return false;
    }
    let is_limited = |(field, container): (ContainerField, &Container)| {
        let Some(of) = &container.resources else {
            return false;
        };
        let limits = resources::readable(&of.limits);
        let asked = asked(container, field);
        ["cpu", "memory"].iter().all(|name| {
            let limit = limits.get(name).copied().unwrap_or(0);
            limit > 0 && asked.get(name) == Some(&limit)
        })
    };
    let mut containers = resources::all_containers(spec);
    containers.all(is_limited)
}

/// The requests of a container. What cannot be read in them is a problem of the pod already.
fn asked(container: &Container, field: ContainerField) -> Sums<'_> {
    resources::asked(container, field, &mut Problems::default())
}

fn amounts(container: &Container, field: ContainerField, is_guaranteed: bool) -> Amounts {
    let asked = asked(container, field).into_iter();
    let own = asked.filter(|(name, amount)| is_own(name, *amount, is_guaranteed));
    // What cannot be counted is a problem of the pod already.
    let own = own.filter_map(|(name, amount)| {
        let amount = quantity::base_units(name, amount).ok()?;
        Some((name.into(), amount))
    });
    own.collect()
}

/// Whether a container gets this for itself alone.
fn is_own(name: &str, amount: Thousandths, is_guaranteed: bool) -> bool {
    const WHOLE: Thousandths = 1_000;
    let of_system = match name {
        "cpu" => amount.is_multiple_of(WHOLE),
        _ => name == "memory" || name.starts_with(HUGEPAGES),
    };
    amount > 0 && (resources::is_device(name) || is_guaranteed && of_system)
}

#[cfg(test)]
mod tests;
