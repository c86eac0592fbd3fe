//! What a pod would rather have: preferred node affinity, preferred affinity and anti-affinity
//! between pods, and spread with `ScheduleAnyway`.

use super::problems::Problems;
use super::{limits, relation, selector};
use crate::kube::objects::{Pod, PodAffinity};
use gpu_batch_policies::facts::{Preferences, PreferredNodes, PreferredPods};

/// The field of preferred node affinity.
pub(super) const PREFERRED_NODES: &str =
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

/// The preferences of a pod that this scheduler places; `None`: it has none.
pub(super) fn own(pod: &Pod, problems: &mut Problems) -> Option<Box<Preferences>> {
    let preferences = Preferences {
        namespace: pod.metadata.namespace.clone(),
        nodes: nodes(pod, problems),
        pods: pods(pod, problems),
        spread: relation::spread(pod, true, problems),
    };
    (!preferences.is_empty()).then(|| Box::new(preferences))
}

/// What another scheduler's pod prefers of the pods near it. Its required affinity draws the pods
/// that it selects, with the weight that kube-scheduler gives it.
pub(super) fn foreign(pod: &Pod) -> Option<Box<Preferences>> {
    let mut unread = Problems::default();
    let mut pods = pods(pod, &mut unread);
    let near = pod.spec.affinity.as_ref()?.pod_affinity.as_ref();
    for term in relation::terms(pod, near, "podAffinity", &mut unread) {
        pods.push(PreferredPods {
            weight: 1,
            topology_key: term.topology_key,
            selection: term.selection,
        });
    }
    let preferences = Preferences {
        pods,
        ..Preferences::default()
    };
    (!preferences.is_empty()).then(|| Box::new(preferences))
}

fn nodes(pod: &Pod, problems: &mut Problems) -> Vec<PreferredNodes> {
    let affinity = pod.spec.affinity.as_ref();
    let preferred = affinity.and_then(|it| it.node_affinity.as_ref()?.preferred.as_deref());
    let preferred = preferred.unwrap_or_default();
    let preferred = problems.at_most(limits::ENTRIES, preferred, PREFERRED_NODES);
    let preferred = preferred.iter().enumerate().map(|(index, one)| {
        let field = format!("{PREFERRED_NODES}[{index}]");
        let of_term = format_args!("{field}.preference");
        PreferredNodes {
            weight: weight(one.weight, &field, problems),
            term: selector::node_selector_term(&one.preference, of_term, problems),
        }
    });
    preferred.collect()
}

fn pods(pod: &Pod, problems: &mut Problems) -> Vec<PreferredPods> {
    let Some(affinity) = pod.spec.affinity.as_ref() else {
        return Vec::new();
    };
    let mut terms = weighted(pod, affinity.pod_affinity.as_ref(), "podAffinity", problems);
    let far = affinity.pod_anti_affinity.as_ref();
    let far = weighted(pod, far, "podAntiAffinity", problems).into_iter();
    terms.extend(far.map(|term| PreferredPods {
        weight: -term.weight,
        ..term
    }));
    terms
}

fn weighted(
    pod: &Pod,
    affinity: Option<&PodAffinity>,
    name: &str,
    problems: &mut Problems,
) -> Vec<PreferredPods> {
    let terms = affinity.and_then(|affinity| affinity.preferred.as_deref());
    let field = format!("spec.affinity.{name}.preferredDuringSchedulingIgnoredDuringExecution");
    let terms = problems.at_most(limits::POD_TERMS, terms.unwrap_or_default(), &field);
    let terms = terms.iter().enumerate().map(|(index, one)| {
        let field = format!("{field}[{index}]");
        let weight = weight(one.weight, &field, problems);
        let field = format!("{field}.podAffinityTerm");
        let term = relation::term(pod, &one.pod_affinity_term, &field, problems);
        PreferredPods {
            weight,
            topology_key: term.topology_key,
            selection: term.selection,
        }
    });
    terms.collect()
}

fn weight<T: TryFrom<i64> + Default>(weight: i64, field: &str, problems: &mut Problems) -> T {
    if !(1..=100).contains(&weight) {
        let message = format_args!("{weight} is not from 1 to 100");
        problems.push_impossible(format_args!("{field}.weight"), message);
    }
    T::try_from(weight.clamp(0, 100)).unwrap_or_default()
}

/// All text of the preferences, in bytes.
pub(super) fn text_of(preferences: &Preferences) -> usize {
    let nodes = preferences.nodes.iter();
    let nodes = nodes.map(|one| selector::text_of_term(&one.term));
    let pods = preferences.pods.iter();
    let pods = pods.map(|one| one.topology_key.len() + relation::text_of_selection(&one.selection));
    let spread = relation::text_of_spread(&preferences.spread);
    nodes.chain(pods).chain([spread]).sum()
}

#[cfg(test)]
mod tests;
