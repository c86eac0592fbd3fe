//! What tells the shapes of a gang's members apart.

use super::asks::{amount_in_words, asks};
use super::labels;
use crate::facts::PodShape;
use crate::ids::{ClassId, ResourceId};
use crate::resources::amount_of;
use crate::state::ClusterState;
use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

/// What members of each class ask for, so that no two read alike: `8 nvidia.com/gpu and 4 cpu`,
/// `8 nvidia.com/gpu (gpu=h100)`.
pub(in crate::tell) fn told_apart(state: &ClusterState, classes: &[ClassId]) -> Vec<String> {
    let plain = classes.iter().map(|class| asks(state, *class, None));
    let mut told: Vec<String> = plain.collect();
    while let Some(alike) = alike(&told) {
        let of: Vec<ClassId> = alike.iter().map(|position| classes[*position]).collect();
        let more = differences(state, &of);
        for (position, more) in alike.into_iter().zip(more) {
            told[position].push_str(&more);
        }
    }
    told
}

/// The positions of the first descriptions that are equal; `None`: no two are equal.
fn alike(told: &[String]) -> Option<Vec<usize>> {
    let same = |first: &String| -> Vec<usize> {
        let all = told.iter().enumerate();
        all.filter(|(_, other)| *other == first)
            .map(|(position, _)| position)
            .collect()
    };
    told.iter().map(same).find(|same| same.len() > 1)
}

/// For each of these classes the words that tell it from the others; at least two of them differ.
fn differences(state: &ClusterState, classes: &[ClassId]) -> Vec<String> {
    let shapes = || classes.iter().map(|class| &*state.classes[*class].shape);
    let differ = |words: &[String]| words.iter().collect::<BTreeSet<_>>().len() > 1;
    let resources = classes
        .iter()
        .flat_map(|class| &state.classes[*class].in_order);
    for (resource, _) in resources {
        let words: Vec<String> = classes
            .iter()
            .map(|class| amount(state, *class, *resource))
            .collect();
        if differ(&words) {
            return words;
        }
    }
    let by: [fn(&PodShape) -> String; 2] = [nodes, ports];
    for words in by {
        let words: Vec<String> = shapes().map(words).collect();
        if differ(&words) {
            return words;
        }
    }
    // Terms of an affinity, tolerations and containers are too long to be told.
    let number = |position: usize| format!(" (shape {})", position + 1);
    (0..classes.len()).map(number).collect()
}

fn amount(state: &ClusterState, class: ClassId, resource: ResourceId) -> String {
    let amount = amount_of(&state.classes[class].requests, resource);
    match (state.resource_names.name(resource), amount) {
        (name, 0) => format!(" and no {name}"),
        (name, amount) => format!(" and {}", amount_in_words(name, amount)),
    }
}

fn nodes(shape: &PodShape) -> String {
    match selected(shape).as_slice() {
        [] => " (any node)".into(),
        labels => format!(" ({})", labels.join(", ")),
    }
}

/// The labels that nodes must have: `gpu=h100`, `zone=a or b`.
pub(in crate::tell) fn selected(shape: &PodShape) -> Vec<String> {
    let wanted = labels::wanted(shape).into_iter();
    let mut selected: Vec<String> = wanted
        .map(|(key, values)| format!("{key}={}", values.join(" or ")))
        .collect();
    selected.sort_unstable();
    selected.dedup();
    selected
}

fn ports(shape: &PodShape) -> String {
    let ports = shape.host_ports.iter();
    let ports: Vec<String> = ports.map(|port| format!("{}", port.port)).collect();
    match ports.as_slice() {
        [] => " and no host port".into(),
        ports => format!(" and host port {}", ports.join(", ")),
    }
}
