//! Node affinity, required and preferred. Weights, operators and numbers of values have been looked
//! at already.

use super::names::{is_key_of, is_node_of, is_value_of};
use crate::kube::convert::preference::PREFERRED_NODES;
use crate::kube::convert::problems::Problems;
use crate::kube::convert::selector::TERMS;
use crate::kube::objects::{NodeSelectorTerm, PodSpec};

/// The terms of required node affinity.
pub(super) fn required(spec: &PodSpec, problems: &mut Problems) {
    let affinity = spec.affinity.as_ref();
    let required = affinity.and_then(|it| it.node_affinity.as_ref()?.required.as_ref());
    let Some(required) = required else {
        return;
    };
    let terms = required.node_selector_terms.as_deref().unwrap_or_default();
    if terms.is_empty() {
        problems.push(TERMS, "must have at least one term");
    }
    for (index, term) in terms.iter().enumerate() {
        let field = format!("{TERMS}[{index}]");
        of_term(term, &field, problems);
        for (place, requirement) in term.match_expressions.iter().flatten().enumerate() {
            for (at, value) in requirement.values.iter().flatten().enumerate() {
                let field = format_args!("{field}.matchExpressions[{place}].values[{at}]");
                is_value_of(value, field, problems);
            }
        }
    }
}

/// The terms of preferred node affinity.
pub(super) fn preferred(spec: &PodSpec, problems: &mut Problems) {
    let affinity = spec.affinity.as_ref();
    let preferred = affinity.and_then(|it| it.node_affinity.as_ref()?.preferred.as_ref());
    for (index, term) in preferred.into_iter().flatten().enumerate() {
        let field = format!("{PREFERRED_NODES}[{index}].preference");
        of_term(&term.preference, &field, problems);
    }
}

/// The keys of labels, and the names of nodes.
fn of_term(term: &NodeSelectorTerm, field: &str, problems: &mut Problems) {
    for (place, requirement) in term.match_expressions.iter().flatten().enumerate() {
        let field = format_args!("{field}.matchExpressions[{place}].key");
        is_key_of(&requirement.key, field, problems);
    }
    for (place, requirement) in term.match_fields.iter().flatten().enumerate() {
        for (at, name) in requirement.values.iter().flatten().enumerate() {
            if &*requirement.key == "metadata.name" {
                let field = format_args!("{field}.matchFields[{place}].values[{at}]");
                is_node_of(name, field, problems);
            }
        }
    }
}
