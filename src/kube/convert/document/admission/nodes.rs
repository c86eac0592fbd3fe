//! Node affinity, required and preferred. Of what is required, operators and numbers of values have
//! been looked at already.

use super::names::{is_key_of, is_node_of, is_value_of};
use crate::kube::convert::problems::Problems;
use crate::kube::convert::selector::{self, TERMS};
use crate::kube::objects::{NodeSelectorTerm, PodSpec};
use serde::Deserialize;
use serde_json::Value;

/// Where the preferences stand in a document, and as a field.
const PREFERRED: (&str, &str) = (
    "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
);

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

/// Preferences, which the scheduler does not read.
pub(super) fn preferred(document: &Value, problems: &mut Problems) {
    #[derive(Deserialize)]
    #[serde(default)]
    struct Preferred {
        weight: i64,
        preference: NodeSelectorTerm,
    }
    impl Default for Preferred {
        fn default() -> Self {
            let preference = NodeSelectorTerm::default();
            Self {
                weight: 0,
                preference,
            }
        }
    }
    let (path, field) = PREFERRED;
    let listed = document.pointer(path).and_then(Value::as_array);
    for (index, entry) in listed.into_iter().flatten().enumerate() {
        let field = format!("{field}[{index}]");
        let Ok(Preferred { weight, preference }) = Preferred::deserialize(entry) else {
            problems.push(field, "cannot be read");
            continue;
        };
        if !(1..=100).contains(&weight) {
            let message = format_args!("{weight} is not from 1 to 100");
            problems.push(format_args!("{field}.weight"), message);
        }
        let field = format!("{field}.preference");
        for problem in selector::mistakes(&preference, &field) {
            problems.push(problem.field, problem.message);
        }
        of_term(&preference, &field, problems);
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
