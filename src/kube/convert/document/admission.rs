//! What the API server refuses of a new pod although every field can be read: no cluster lets such
//! a pod in, so a plan with it would tell of something that cannot happen.
//!
//! The trap: a pod that a cluster has may still break a rule here. It may be older than the rule,
//! or was changed since: a deadline of 0 is refused of a new pod alone. So pods with a UID are let
//! in.
//!
//! Looked at is what decides where a pod can run, and what says how long it runs. Not looked at are
//! fields without a part in that: a pod without an image is planned.
//!
//! Source: `pkg/apis/core/validation/validation.go` of Kubernetes 1.36.

use crate::kube::convert::problems::Problems;
use crate::kube::convert::selector::TERMS;
use crate::kube::convert::{quantity, resources};
use crate::kube::objects::{Pairs, Pod, Quantity, Resources, Toleration};
use gpu_batch_policies::facts::Problem;
use std::fmt;

/// The longest name, without its prefix, and the longest value of a label.
const LABEL_MAX: usize = 63;
/// The longest prefix of a name.
const PREFIX_MAX: usize = 253;

const NOT_A_KEY: &str = "is not a key: at most 63 letters, digits, `-`, `_` and `.`, with a letter \
                         or digit at both ends, after a domain and `/` if there is one";
const NOT_A_VALUE: &str = "is not a value of a label: at most 63 letters, digits, `-`, `_` and \
                           `.`, with a letter or digit at both ends";

/// What the API server refuses of a pod; nothing of one that a cluster has let in.
pub(super) fn refusals(pod: &Pod) -> Vec<Problem> {
    if !pod.metadata.uid.is_empty() {
        return Vec::new();
    }
    let mut problems = Problems::default();
    let spec = &pod.spec;
    pairs(&pod.metadata.labels, "metadata.labels", &mut problems);
    pairs(&spec.node_selector, "spec.nodeSelector", &mut problems);
    for (field, container) in resources::all_containers(spec) {
        if let Some(resources) = &container.resources {
            of_container(resources, field, &mut problems);
        }
    }
    for (index, toleration) in spec.tolerations.iter().flatten().enumerate() {
        let field = format!("spec.tolerations[{index}]");
        of_toleration(toleration, &field, &mut problems);
    }
    node_affinity(pod, &mut problems);
    let deadline = spec.active_deadline_seconds;
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        let message = format_args!("{seconds} is not from 1 to {}", i32::MAX);
        problems.push("spec.activeDeadlineSeconds", message);
    }
    let policy = spec.preemption_policy.as_deref();
    if let Some(policy) = policy.filter(|it| !matches!(*it, "Never" | "PreemptLowerPriority")) {
        let message = format_args!("`{policy}` is neither Never nor PreemptLowerPriority");
        problems.push("spec.preemptionPolicy", message);
    }
    problems.into_vec()
}

/// Labels, or what is asked of them.
fn pairs(pairs: &Pairs<Box<str>>, field: &str, problems: &mut Problems) {
    for (key, value) in pairs.iter() {
        if !is_key(key) {
            problems.push(field, format_args!("`{key}` {NOT_A_KEY}"));
        }
        if !is_value(value) {
            let field = format_args!("{field}[{key}]");
            problems.push(field, format_args!("`{value}` {NOT_A_VALUE}"));
        }
    }
}

fn of_container(of: &Resources, field: impl fmt::Display, problems: &mut Problems) {
    for (list, quantities) in [("limits", &of.limits), ("requests", &of.requests)] {
        for (name, quantity) in quantities.iter() {
            let field = format_args!("{field}.resources.{list}[{name}]");
            of_amount(name, quantity, field, problems);
        }
    }
    for (name, requested) in of.requests.iter() {
        let field = format_args!("{field}.resources.requests[{name}]");
        let limit = of.limits.get(name);
        let may_differ = !resources::is_extended(name) && !name.starts_with(resources::HUGEPAGES);
        let (Some(asked), most) = (amount(requested), limit.and_then(amount)) else {
            continue;
        };
        match (limit, most) {
            (None, _) if !may_differ => {
                problems.push(field, "needs a limit, which must be equal");
            }
            (Some(limit), Some(most)) if asked > most || (asked != most && !may_differ) => {
                let must = match may_differ {
                    true => "is above",
                    false => "differs from",
                };
                let (requested, limit) = (&requested.0, &limit.0);
                problems.push(
                    field,
                    format_args!("`{requested}` {must} its limit `{limit}`"),
                );
            }
            _ => {}
        }
    }
}

/// One amount of a resource. What is no quantity has been refused already.
fn of_amount(name: &str, quantity: &Quantity, field: impl fmt::Display, problems: &mut Problems) {
    let is_known = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    if !name.contains('/') && !is_known && !name.starts_with(resources::HUGEPAGES) {
        let message = "is not a resource of containers; those of device plugins have a domain, as \
                       in nvidia.com/gpu";
        problems.push(field, message);
    } else if !is_key(name) || (resources::is_extended(name) && name.starts_with("requests.")) {
        problems.push(field, format_args!("`{name}` {NOT_A_KEY}"));
    } else if resources::is_extended(name)
        && amount(quantity).is_some_and(|thousandths| thousandths % 1_000 != 0)
    {
        problems.push(
            field,
            format_args!("`{}` is not a whole number", quantity.0),
        );
    }
}

/// The thousandths of a quantity; `None`: it is none.
fn amount(quantity: &Quantity) -> Option<quantity::Thousandths> {
    quantity::thousandths(&quantity.0).ok()
}

fn of_toleration(toleration: &Toleration, field: &str, problems: &mut Problems) {
    let key = toleration.key.as_deref().unwrap_or_default();
    let value = toleration.value.as_deref().unwrap_or_default();
    let operator = toleration.operator.as_deref().unwrap_or_default();
    if key.is_empty() && operator != "Exists" {
        let message = "must be Exists where there is no key: such a toleration is for all taints";
        problems.push(format_args!("{field}.operator"), message);
    }
    if !key.is_empty() && !is_key(key) {
        problems.push(
            format_args!("{field}.key"),
            format_args!("`{key}` {NOT_A_KEY}"),
        );
    }
    match operator {
        "Exists" if !value.is_empty() => {
            problems.push(format_args!("{field}.value"), "must be empty with Exists");
        }
        "" | "Equal" if !is_value(value) => {
            let message = format_args!("`{value}` {NOT_A_VALUE}");
            problems.push(format_args!("{field}.value"), message);
        }
        _ => {}
    }
}

/// The keys and values of required node affinity; operators and numbers of values have been looked
/// at already.
fn node_affinity(pod: &Pod, problems: &mut Problems) {
    let affinity = pod.spec.affinity.as_ref();
    let required = affinity.and_then(|it| it.node_affinity.as_ref()?.required.as_ref());
    let Some(required) = required else {
        return;
    };
    let terms = required.node_selector_terms.as_deref().unwrap_or_default();
    if terms.is_empty() {
        problems.push(TERMS, "must have at least one term");
    }
    for (index, term) in terms.iter().enumerate() {
        for (place, requirement) in term.match_expressions.iter().flatten().enumerate() {
            let field = format!("{TERMS}[{index}].matchExpressions[{place}]");
            if !is_key(&requirement.key) {
                let message = format_args!("`{}` {NOT_A_KEY}", requirement.key);
                problems.push(format_args!("{field}.key"), message);
            }
            let mut values = requirement.values.iter().flatten();
            if let Some(value) = values.find(|value| !is_value(value)) {
                let message = format_args!("`{value}` {NOT_A_VALUE}");
                problems.push(format_args!("{field}.values"), message);
            }
        }
    }
}

/// Whether a text is a qualified name, as labels and resources have.
fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name(text),
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
    }
}

/// Whether a text can be the value of a label.
fn is_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let ends_well = |byte: &Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.len() <= LABEL_MAX && ends.iter().all(ends_well) && text.bytes().all(is_inner)
}

fn is_subdomain(text: &str) -> bool {
    let is_outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let ends = [part.bytes().next(), part.bytes().next_back()];
        let ends_well = ends.iter().all(|byte| byte.is_some_and(is_outer));
        ends_well && part.bytes().all(|byte| is_outer(byte) || byte == b'-')
    };
    text.len() <= PREFIX_MAX && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests;
