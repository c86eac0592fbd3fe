//! What a pod would rather have: preferred node affinity, preferred affinity and anti-affinity
//! between pods, and spread with `ScheduleAnyway`; and what the cluster adds to that.

use super::problems::Problems;
use super::{identity, limits, relation, resources, selector};
use crate::kube::objects::{Pod, PodAffinity};
use gpu_batch_policies::facts::{
    CONTROLLER, LabelSelector, Preferences, PreferredImages, PreferredNodes, PreferredPods,
    SpreadRule,
};

/// What the cluster adds to the preferences that pods state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterPreferences {
    /// Pods prefer nodes that have their images (ImageLocality).
    pub image_locality: bool,
    /// Pods of a ReplicaSet, StatefulSet or ReplicationController without spread constraints prefer
    /// nodes and zones that have few pods of it (PodTopologySpread with the defaults of the
    /// system).
    pub default_spreading: bool,
}

/// The labels by which pods spread by default, each with its `maxSkew`.
const DEFAULT_SPREAD: [(&str, u32); 2] = [
    ("topology.kubernetes.io/zone", 5),
    ("kubernetes.io/hostname", 3),
];

/// The controllers whose pods spread by default.
const SPREAD_OWNERS: [(&str, &str); 3] = [
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"),
];

/// The field of preferred node affinity.
pub(super) const PREFERRED_NODES: &str =
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

/// The preferences of a pod that this scheduler places; `None`: it has none.
pub(super) fn own(
    pod: &Pod,
    added: ClusterPreferences,
    problems: &mut Problems,
) -> Option<Box<Preferences>> {
    let constraints = pod.spec.topology_spread_constraints.as_deref();
    let spread_is_default = added.default_spreading && constraints.is_none_or(<[_]>::is_empty);
    let preferences = Preferences {
        namespace: pod.metadata.namespace.clone(),
        nodes: nodes(pod, problems),
        pods: pods(pod, problems),
        spread: match spread_is_default {
            true => default_spread(pod),
            false => relation::spread(pod, true, problems),
        },
        spread_is_default,
        images: added.image_locality.then(|| images(pod)),
    };
    (!preferences.is_empty()).then(|| Box::new(preferences))
}

/// The constraints that a pod has which states none: it keeps to few pods of its controller. The
/// controller's selector, by which kube-scheduler counts, selects the controller's own pods.
fn default_spread(pod: &Pod) -> Vec<SpreadRule> {
    let owner = identity::owner(pod)
        .filter(|owner| SPREAD_OWNERS.contains(&(&*owner.api_version, &*owner.kind)));
    let Some(owner) = owner else {
        return Vec::new();
    };
    let same_controller = LabelSelector {
        match_labels: vec![(CONTROLLER.into(), owner.uid.to_string().into())],
        match_expressions: Vec::new(),
    };
    let rules = DEFAULT_SPREAD
        .into_iter()
        .map(|(key, max_skew)| SpreadRule {
            topology_key: key.into(),
            max_skew,
            min_domains: 1,
            labels: Some(same_controller.clone()),
            selects_own_labels: true,
            honors_affinity: true,
            honors_taints: false,
        });
    rules.collect()
}

/// The images of a pod.
fn images(pod: &Pod) -> PreferredImages {
    let containers = resources::all_containers(&pod.spec).map(|(_, container)| container);
    let of_containers = containers.clone().filter_map(|one| one.image.as_deref());
    let volumes = pod.spec.volumes.iter().flatten();
    let of_volumes = volumes.filter_map(|volume| volume.image.as_ref()?.reference.as_deref());
    let all = of_containers.chain(of_volumes).map(with_tag);
    let short = all.filter(|name| name.len() <= limits::TEXT);
    let mut names: Vec<Box<str>> = short.take(limits::IMAGES).collect();
    names.sort_unstable();
    PreferredImages {
        names,
        containers: u32::try_from(containers.count()).unwrap_or(u32::MAX),
    }
}

/// The name of an image as nodes have it: with the tag that is meant where there is none.
fn with_tag(name: &str) -> Box<str> {
    match name.rfind(':') <= name.rfind('/') {
        true => format!("{name}:latest").into(),
        false => name.into(),
    }
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
