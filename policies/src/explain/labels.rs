//! Labels that a shape insists on and no node has.

use crate::facts::{MatchOperator, PodShape, label};
use crate::state::ClusterState;
use alloc::{boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};
use core::cmp::Reverse;

/// How many values that nodes do have are named.
const VALUES_NAMED: usize = 3;

/// The labels of the node selector, and of a required affinity with one term, with the values that
/// a node may have.
pub(super) fn wanted(shape: &PodShape) -> Vec<(&str, Vec<&str>)> {
    let selector = shape.node_selector.iter();
    let mut wanted: Vec<(&str, Vec<&str>)> = selector
        .map(|(key, value)| (&**key, Vec::from([&**value])))
        .collect();
    if let Some([term]) = shape.node_affinity.as_deref() {
        let listed = term.match_expressions.iter();
        let listed = listed.filter(|requirement| requirement.operator == MatchOperator::In);
        wanted.extend(listed.map(|requirement| {
            let values = requirement.values.iter().map(|value| &**value);
            (&*requirement.key, values.collect())
        }));
    }
    wanted
}

/// A sentence for each label that a shape insists on and no node has:
/// `no node has nvidia.com/gpu.product=A100; there are H100 (2 nodes)`.
pub(super) fn unknown(state: &ClusterState, shape: &PodShape) -> Vec<String> {
    let sentences = wanted(shape).into_iter();
    sentences
        .filter_map(|(key, values)| sentence(state, key, &values))
        .collect()
}

fn sentence(state: &ClusterState, key: &str, wanted: &[&str]) -> Option<String> {
    let mut values: BTreeMap<&str, u32> = BTreeMap::new();
    let known = state
        .nodes
        .iter()
        .filter_map(|(_, node)| node.known.as_ref());
    for value in known.filter_map(|known| label(&known.facts.labels, key)) {
        *values.entry(value).or_insert(0) += 1;
    }
    if wanted.iter().any(|wanted| values.contains_key(wanted)) {
        return None;
    }
    let mut there: Vec<(&str, u32)> = values.into_iter().collect();
    there.sort_by_key(|(value, nodes)| (Reverse(*nodes), *value));
    let named = there.iter().take(VALUES_NAMED);
    let mut named: Vec<Box<str>> = named
        .map(|(value, nodes)| match nodes {
            1 => format!("{value} (1 node)").into(),
            nodes => format!("{value} ({nodes} nodes)").into(),
        })
        .collect();
    if there.len() > VALUES_NAMED {
        named.push(format!("{} more", there.len() - VALUES_NAMED).into());
    }
    let there = match named.as_slice() {
        [] => "none has that label at all".into(),
        named => format!("there are {}", named.join(", ")),
    };
    Some(format!(
        "no node has {key}={}; {there}",
        wanted.join(" or ")
    ))
}
