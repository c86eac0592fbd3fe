//! Amounts of resources: of containers, of the pod as a whole, and its overhead. What is no
//! quantity has been refused already.

use super::names::{NOT_A_KEY, is_key};
use crate::kube::convert::problems::Problems;
use crate::kube::convert::quantity::{self, Thousandths};
use crate::kube::convert::resources::{self, HUGEPAGES, Sums};
use crate::kube::objects::{Pairs, PodSpec, Quantity, Resources};
use std::fmt;

/// The mistake in the name of a resource; `None`: there is none.
type OfName = fn(&str) -> Option<String>;

/// The resources of a container.
pub(super) fn of_container(of: &Resources, field: impl fmt::Display, problems: &mut Problems) {
    let field = format!("{field}.resources");
    for (list, quantities) in [("limits", &of.limits), ("requests", &of.requests)] {
        each(
            quantities,
            &format!("{field}.{list}"),
            of_containers,
            problems,
        );
    }
    let [requests, limits] = [&of.requests, &of.limits].map(resources::readable);
    both(&requests, &limits, &field, problems);
}

/// The overhead, which is an amount of a container to the API server.
pub(super) fn of_overhead(overhead: &Pairs<Quantity>, problems: &mut Problems) {
    const FIELD: &str = "spec.overhead";
    each(overhead, FIELD, of_containers, problems);
    let limits = resources::readable(overhead);
    both(&Sums::new(), &limits, FIELD, problems);
}

/// The resources of the pod as a whole, with what the API server fills in.
pub(super) fn of_pod(spec: &PodSpec, problems: &mut Problems) {
    const FIELD: &str = "spec.resources";
    let Some(of) = &spec.resources else {
        return;
    };
    for (list, quantities) in [("limits", &of.limits), ("requests", &of.requests)] {
        each(quantities, &format!("{FIELD}.{list}"), of_pods, problems);
    }
    let Some(of_pod) = resources::of_pod(spec, &mut Problems::default()) else {
        return;
    };
    let (requests, limits) = (of_pod.requests, of_pod.limits);
    both(&requests, &limits, FIELD, problems);
    for (name, sum) in &of_pod.of_containers {
        let too_little = |amounts: &Sums| amounts.get(name).is_some_and(|amount| amount < sum);
        let message = "is less than the containers have together";
        if too_little(&requests) {
            problems.push(format_args!("{FIELD}.requests[{name}]"), message);
        }
        if name.starts_with(HUGEPAGES) && too_little(&limits) {
            problems.push(format_args!("{FIELD}.limits[{name}]"), message);
        }
    }
    limits_of_containers(spec, &limits, problems);
}

/// No container may have more than the pod.
fn limits_of_containers(spec: &PodSpec, limits: &Sums<'_>, problems: &mut Problems) {
    for (field, container) in resources::all_containers(spec) {
        let own = container.resources.as_ref().filter(|_| !field.is_init());
        for (name, limit) in own
            .into_iter()
            .flat_map(|own| resources::readable(&own.limits))
        {
            if limits.get(name).is_some_and(|most| *most < limit) {
                let field = format_args!("{field}.resources.limits[{name}]");
                problems.push(field, "is above the limit of the pod");
            }
        }
    }
}

/// Each amount of a list for itself.
fn each(list: &Pairs<Quantity>, field: &str, of_name: OfName, problems: &mut Problems) {
    for (name, quantity) in list.iter() {
        let field = format_args!("{field}[{name}]");
        if let Some(message) = of_name(name) {
            problems.push(field, message);
            continue;
        }
        let Ok(amount) = quantity::thousandths(&quantity.0) else {
            continue;
        };
        if resources::is_extended(name) && !amount.is_multiple_of(1_000) {
            problems.push(
                field,
                format_args!("`{}` is not a whole number", quantity.0),
            );
        }
        if let Some(page) = name.strip_prefix(HUGEPAGES)
            && !is_pages(amount, page)
        {
            problems.push(
                field,
                format_args!("`{}` is no number of pages", quantity.0),
            );
        }
    }
}

/// Requests and limits beside each other.
fn both(requests: &Sums<'_>, limits: &Sums<'_>, field: &str, problems: &mut Problems) {
    for (name, request) in requests {
        let may_differ = !resources::is_extended(name) && !name.starts_with(HUGEPAGES);
        match limits.get(name) {
            None if !may_differ => {
                let field = format_args!("{field}.limits[{name}]");
                problems.push(
                    field,
                    "is missing: the request needs a limit, which is equal",
                );
            }
            Some(limit) if !may_differ && request != limit => {
                let field = format_args!("{field}.requests[{name}]");
                problems.push(field, "differs from its limit");
            }
            Some(limit) if request > limit => {
                let field = format_args!("{field}.requests[{name}]");
                problems.push(field, "is above its limit");
            }
            _ => {}
        }
    }
    let has = |is: fn(&str) -> bool| requests.keys().chain(limits.keys()).any(|name| is(name));
    let is_page = |name: &str| name.starts_with(HUGEPAGES);
    if has(is_page) && !has(|name| matches!(name, "cpu" | "memory")) {
        problems.push(field, "must have cpu or memory beside hugepages");
    }
}

/// Whether an amount is a number of pages of a size.
fn is_pages(amount: Thousandths, page: &str) -> bool {
    let size = quantity::thousandths(page).unwrap_or(0);
    let is_whole = size > 0 && size.is_multiple_of(1_000);
    is_whole && amount.div_ceil(1_000).is_multiple_of(size / 1_000)
}

fn of_containers(name: &str) -> Option<String> {
    if !is_key(name) {
        return Some(format!("`{name}` {NOT_A_KEY}"));
    }
    let is_known = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    if !name.contains('/') && !is_known && !name.starts_with(HUGEPAGES) {
        let message = "is not a resource of containers; those of device plugins have a domain, as \
                       in nvidia.com/gpu";
        return Some(message.to_owned());
    }
    // Quotas prefix resources with `requests.`, which must make sense.
    let in_quotas = || is_key(&format!("requests.{name}"));
    let is_odd = resources::is_extended(name) && (name.starts_with("requests.") || !in_quotas());
    is_odd.then(|| "cannot be the name of a resource".to_owned())
}

fn of_pods(name: &str) -> Option<String> {
    if !is_key(name) {
        return Some(format!("`{name}` {NOT_A_KEY}"));
    }
    let message = "a pod as a whole may have cpu, memory and hugepages";
    (!resources::is_pod_level(name)).then(|| message.to_owned())
}
