//! What a pod requires of other pods: affinity, anti-affinity, and spread with `DoNotSchedule`.

use super::limits;
use super::problems::Problems;
use super::selector::label_selector;
use crate::kube::objects::{
    LabelSelector, Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint,
};
use gpu_batch_policies::facts::{
    self, MatchOperator, PodSelection, PodTerm, Relations, SelectorRequirement, SpreadRule,
};
use std::collections::BTreeSet;

/// The field of required terms in `podAffinity` and `podAntiAffinity`.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The rules of a pod that this scheduler places; `None`: there are none.
pub(super) fn own(pod: &Pod, problems: &mut Problems) -> Option<Box<Relations>> {
    let affinity = pod.spec.affinity.as_ref();
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let relations = Relations {
        namespace: pod.metadata.namespace.clone(),
        affinity: terms(pod, near, "podAffinity", problems),
        anti_affinity: anti_affinity(pod, far, problems),
        spread: spread(pod, false, problems),
    };
    (!relations.is_empty()).then(|| Box::new(relations))
}

/// The anti-affinity of another scheduler's pod, which keeps pods away that it selects.
pub(super) fn foreign(pod: &Pod) -> Option<Box<Relations>> {
    let affinity = pod.spec.affinity.as_ref()?;
    let far = affinity.pod_anti_affinity.as_ref();
    let mut anti_affinity = anti_affinity(pod, far, &mut Problems::default());
    for term in &mut anti_affinity {
        // The pod runs, or another scheduler places it.
        term.selects_own_labels = false;
    }
    let relations = Relations {
        anti_affinity,
        ..Relations::default()
    };
    (!relations.is_empty()).then(|| Box::new(relations))
}

/// The required terms of anti-affinity. A pod with more than are read keeps all others away by the
/// labels that the rest name: it may run all the same.
fn anti_affinity(pod: &Pod, far: Option<&PodAffinity>, problems: &mut Problems) -> Vec<PodTerm> {
    let mut read = terms(pod, far, "podAntiAffinity", problems);
    let required = far.and_then(|far| far.required.as_deref());
    let rest = required.and_then(|all| all.get(limits::POD_TERMS..));
    let keys = rest.into_iter().flatten().map(|term| &term.topology_key);
    let keys: BTreeSet<&Box<str>> = keys.flatten().collect();
    let everyone = || PodSelection {
        namespaces: Vec::new(),
        namespace_selector: Some(facts::LabelSelector::default()),
        labels: Some(facts::LabelSelector::default()),
    };
    read.extend(keys.into_iter().take(limits::POD_TERMS).map(|key| PodTerm {
        topology_key: key.clone(),
        selection: everyone(),
        selects_own_labels: true,
    }));
    read
}

/// The required terms of an affinity; `name`: which field it is.
pub(super) fn terms(
    pod: &Pod,
    affinity: Option<&PodAffinity>,
    name: &str,
    problems: &mut Problems,
) -> Vec<PodTerm> {
    let terms = affinity.and_then(|affinity| affinity.required.as_deref());
    let field = format!("spec.affinity.{name}.{REQUIRED}");
    let terms = problems.at_most(limits::POD_TERMS, terms.unwrap_or_default(), &field);
    let terms = terms.iter().enumerate();
    terms
        .map(|(index, one)| term(pod, one, &format!("{field}[{index}]"), problems))
        .collect()
}

/// A term, required or preferred.
pub(super) fn term(
    pod: &Pod,
    term: &PodAffinityTerm,
    field: &str,
    problems: &mut Problems,
) -> PodTerm {
    let mut labels = labels(term.label_selector.as_ref(), field, problems);
    // The API server writes what these keys mean into the selector when a pod is made. The pod of a
    // file was not made by it.
    if pod.metadata.uid.is_empty() {
        let merged = [
            (&term.match_label_keys, MatchOperator::In),
            (&term.mismatch_label_keys, MatchOperator::NotIn),
        ];
        for (keys, operator) in merged {
            merge(pod, keys.as_deref(), operator, labels.as_mut());
        }
    }
    let selector = term.namespace_selector.clone();
    let namespace_selector = selector
        .map(|selector| label_selector(selector, &format!("{field}.namespaceSelector"), problems));
    let listed = term.namespaces.as_deref().unwrap_or_default();
    let listed = problems.at_most(limits::ENTRIES, listed, format_args!("{field}.namespaces"));
    let mut namespaces = listed.to_vec();
    if namespaces.is_empty() && namespace_selector.is_none() {
        namespaces.push(pod.metadata.namespace.clone());
    }
    namespaces.sort_unstable();
    namespaces.dedup();
    PodTerm {
        topology_key: topology_key(term.topology_key.as_deref(), field, problems),
        selects_own_labels: selects(pod, labels.as_ref()),
        selection: PodSelection {
            namespaces,
            namespace_selector,
            labels,
        },
    }
}

/// The topology spread constraints that are rules, or those that are `preferred`.
pub(super) fn spread(pod: &Pod, preferred: bool, problems: &mut Problems) -> Vec<SpreadRule> {
    let constraints = pod.spec.topology_spread_constraints.as_deref();
    let constraints = constraints.unwrap_or_default().iter().enumerate();
    // Without the field it is a rule, as in the API server's defaults.
    let rules = constraints.filter(|(_, constraint)| {
        (constraint.when_unsatisfiable.as_deref() == Some("ScheduleAnyway")) == preferred
    });
    let rules: Vec<(usize, &TopologySpreadConstraint)> = rules.collect();
    let rules = problems.at_most(limits::POD_TERMS, &rules, "spec.topologySpreadConstraints");
    let rules = rules.iter().map(|(index, constraint)| {
        let field = format!("spec.topologySpreadConstraints[{index}]");
        spread_rule(pod, constraint, &field, problems)
    });
    rules.collect()
}

fn spread_rule(
    pod: &Pod,
    constraint: &TopologySpreadConstraint,
    field: &str,
    problems: &mut Problems,
) -> SpreadRule {
    let mut labels = labels(constraint.label_selector.as_ref(), field, problems);
    let keys = constraint.match_label_keys.as_deref();
    merge(pod, keys, MatchOperator::In, labels.as_mut());
    let mut number = |name: &str, value: Option<i64>| {
        let number = value.unwrap_or(1);
        let read = u32::try_from(number).ok().filter(|number| *number > 0);
        if read.is_none() {
            let message = format_args!("must be at least 1, not {number}");
            problems.push_impossible(format_args!("{field}.{name}"), message);
        }
        read.unwrap_or(1)
    };
    let max_skew = number("maxSkew", constraint.max_skew);
    let min_domains = number("minDomains", constraint.min_domains);
    SpreadRule {
        topology_key: topology_key(constraint.topology_key.as_deref(), field, problems),
        max_skew,
        min_domains,
        selects_own_labels: selects(pod, labels.as_ref()),
        labels,
        honors_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
        honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
    }
}

fn topology_key(key: Option<&str>, field: &str, problems: &mut Problems) -> Box<str> {
    let key = key.unwrap_or_default();
    if key.is_empty() {
        problems.push_impossible(format_args!("{field}.topologyKey"), "is missing");
    }
    key.into()
}

fn labels(
    selector: Option<&LabelSelector>,
    field: &str,
    problems: &mut Problems,
) -> Option<facts::LabelSelector> {
    let field = format!("{field}.labelSelector");
    Some(label_selector(selector?.clone(), &field, problems))
}

/// Adds a requirement on each of these labels that the pod has: to be equal to the pod's, or not.
fn merge(
    pod: &Pod,
    keys: Option<&[Box<str>]>,
    operator: MatchOperator,
    labels: Option<&mut facts::LabelSelector>,
) {
    let Some(labels) = labels else {
        return;
    };
    for key in keys.unwrap_or_default().iter().take(limits::POD_TERMS) {
        let requirement = pod
            .metadata
            .labels
            .get(key)
            .map(|value| SelectorRequirement {
                key: key.clone(),
                operator,
                values: vec![value.as_ref().into()],
            });
        if let Some(requirement) = requirement
            && !labels.match_expressions.contains(&requirement)
        {
            labels.match_expressions.push(requirement);
        }
    }
}

/// Whether the labels of a pod are selected.
fn selects(pod: &Pod, labels: Option<&facts::LabelSelector>) -> bool {
    labels.is_some_and(|labels| labels.selects(|key| pod.metadata.labels.get(key)))
}

/// All text of the rules, in bytes.
pub(super) fn text_of(relations: &Relations) -> usize {
    let terms = relations.affinity.iter().chain(&relations.anti_affinity);
    let terms = terms.map(|term| term.topology_key.len() + text_of_selection(&term.selection));
    terms.chain([text_of_spread(&relations.spread)]).sum()
}

/// All text by which pods are selected, in bytes.
pub(super) fn text_of_selection(selection: &PodSelection) -> usize {
    let selectors = selection.labels.iter().chain(&selection.namespace_selector);
    let namespaces = selection.namespaces.iter().map(|name| name.len());
    selectors.map(text_of_selector).chain(namespaces).sum()
}

/// All text of topology spread constraints, in bytes.
pub(super) fn text_of_spread(rules: &[SpreadRule]) -> usize {
    let text = |rule: &SpreadRule| {
        let labels = rule.labels.iter().map(text_of_selector);
        rule.topology_key.len() + labels.sum::<usize>()
    };
    rules.iter().map(text).sum()
}

fn text_of_selector(selector: &facts::LabelSelector) -> usize {
    let equal = selector.match_labels.iter();
    let equal = equal.map(|(key, value)| key.len() + value.len());
    let expressions = selector
        .match_expressions
        .iter()
        .map(|one| one.key.len() + one.values.iter().map(|value| value.len()).sum::<usize>());
    equal.chain(expressions).sum()
}

#[cfg(test)]
mod tests;
