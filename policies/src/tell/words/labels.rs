//! Labels that a shape insists on and no node has.

use crate::facts::{MatchOperator, PodShape, label};
use crate::names::there_are;
use crate::state::ClusterState;
use alloc::{collections::BTreeMap, format, string::String, vec::Vec};
use core::cmp::Reverse;

/// The labels of the node selector, and of a required affinity with one term, with the values that
/// a node may have.
pub(in crate::tell) fn wanted(shape: &PodShape) -> Vec<(&str, Vec<&str>)> {
    let selector = shape.node_selector.iter();
    let mut wanted: Vec<(&str, Vec<&str>)> = selector
        .map(|(key, value)| (&**key, Vec::from([&**value])))
        .collect();
    if let Some([term]) = shape.node_affinity.as_deref() {
        let listed = term.match_expressions.iter();
        let listed = listed.filter(|requirement| requirement.operator == MatchOperator::In);
        wanted.extend(listed.map(|requirement| {
            let mut values: Vec<&str> = Vec::new();
            for value in &requirement.values {
                if !values.contains(&&**value) {
                    values.push(value);
                }
            }
            (&*requirement.key, values)
        }));
    }
    wanted
}

/// A sentence for each label that a shape insists on and no node has:
/// `no node has nvidia.com/gpu.product=A100; there is H100 (2 nodes)`.
pub(in crate::tell) fn unknown(state: &ClusterState, shape: &PodShape) -> Vec<String> {
    let mut sentences = Vec::new();
    for (key, values) in wanted(shape) {
        // A selector and an affinity may insist on one label.
        let sentence = sentence(state, key, &values);
        sentences.extend(sentence.filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
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
    let named = there.iter().map(|(value, nodes)| match nodes {
        1 => format!("{value} (1 node)"),
        nodes => format!("{value} ({nodes} nodes)"),
    });
    let named: Vec<String> = named.collect();
    let there = there_are(&named).unwrap_or_else(|| "none has that label at all".into());
    Some(format!(
        "no node has {key}={}; {there}",
        wanted.join(" or ")
    ))
}
