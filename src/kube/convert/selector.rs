//! Requirements on labels and fields.

use super::limits;
use super::problems::Problems;
use crate::kube::objects::{self, LabelSelector, Requirement};
use gpu_batch_policies::facts::{
    self, MatchOperator, MatchRequirement, NodeSelectorTerm, SelectorRequirement,
};
use std::fmt;

/// The field of the terms of required node affinity.
pub(super) const TERMS: &str = "spec.affinity.nodeAffinity.\
                                requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

/// Required node affinity. A term or requirement that makes no sense is a problem.
pub(super) fn node_affinity(
    affinity: Option<&objects::NodeAffinity>,
    problems: &mut Problems,
) -> Option<Vec<NodeSelectorTerm>> {
    let terms = affinity?.required.as_ref()?.node_selector_terms.as_deref();
    let terms = problems.at_most(limits::ENTRIES, terms.unwrap_or_default(), TERMS);
    let terms = terms.iter().enumerate();
    let terms = terms
        .map(|(index, term)| node_selector_term(term, format_args!("{TERMS}[{index}]"), problems));
    Some(terms.collect())
}

/// A term of required or preferred node affinity.
pub(super) fn node_selector_term(
    term: &objects::NodeSelectorTerm,
    field: impl fmt::Display,
    problems: &mut Problems,
) -> NodeSelectorTerm {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let (of_labels, of_fields) = (
        format_args!("{field}.matchExpressions"),
        format_args!("{field}.matchFields"),
    );
    NodeSelectorTerm {
        match_expressions: requirements(expressions, of_labels, problems, on_labels),
        match_fields: requirements(fields, of_fields, problems, on_fields),
    }
}

/// All text of a term, in bytes.
pub(super) fn text_of_term(term: &NodeSelectorTerm) -> usize {
    let requirements = term.match_expressions.iter().chain(&term.match_fields);
    let texts = requirements.map(|requirement| {
        let values = requirement.values.iter().map(|value| value.len());
        requirement.key.len() + values.sum::<usize>()
    });
    texts.sum()
}

/// A selector over labels of objects, as in `namespaceSelector`.
pub(super) fn label_selector(
    selector: LabelSelector,
    field: &str,
    problems: &mut Problems,
) -> facts::LabelSelector {
    let expressions = selector.match_expressions.unwrap_or_default();
    let field_of_expressions = format_args!("{field}.matchExpressions");
    let expressions = requirements(&expressions, field_of_expressions, problems, on_objects);
    problems.at_most(
        limits::PAIRS,
        &selector.match_labels.0,
        format_args!("{field}.matchLabels"),
    );
    facts::LabelSelector {
        match_labels: selector.match_labels.0,
        match_expressions: expressions
            .into_iter()
            .map(|requirement| SelectorRequirement {
                key: requirement.key,
                operator: requirement.operator,
                values: requirement.values,
            })
            .collect(),
    }
}

/// A part of a requirement, and what is wrong with it.
type Mistake = (&'static str, &'static str);

/// Checks a requirement.
type Rule = fn(&Requirement, MatchOperator) -> Vec<Mistake>;

fn requirements(
    list: &[Requirement],
    field: impl fmt::Display,
    problems: &mut Problems,
    rule: Rule,
) -> Vec<MatchRequirement> {
    let list = problems.at_most(limits::ENTRIES, list, &field);
    let mut requirements = Vec::with_capacity(list.len());
    for (index, requirement) in list.iter().enumerate() {
        let values = requirement.values.as_deref().unwrap_or_default();
        let values_field = format_args!("{field}[{index}].values");
        let values = problems
            .at_most(limits::ENTRIES, values, values_field)
            .to_vec();
        let Some(operator) = operator(&requirement.operator) else {
            problems.push_impossible(
                format_args!("{field}[{index}].operator"),
                format_args!("`{}` is not an operator", requirement.operator),
            );
            continue;
        };
        for (part, message) in rule(requirement, operator) {
            problems.push_impossible(format_args!("{field}[{index}].{part}"), message);
        }
        requirements.push(MatchRequirement {
            key: requirement.key.clone(),
            operator,
            values,
        });
    }
    requirements
}

fn operator(text: &str) -> Option<MatchOperator> {
    Some(match text {
        "In" => MatchOperator::In,
        "NotIn" => MatchOperator::NotIn,
        "Exists" => MatchOperator::Exists,
        "DoesNotExist" => MatchOperator::DoesNotExist,
        "Gt" => MatchOperator::Gt,
        "Lt" => MatchOperator::Lt,
        _ => return None,
    })
}

/// A number that cannot be read is no mistake: the API server does not look at it, and
/// kube-scheduler drops the term.
fn on_labels(requirement: &Requirement, operator: MatchOperator) -> Vec<Mistake> {
    let count = requirement.values.as_deref().unwrap_or_default().len();
    let mut mistakes = Vec::new();
    if requirement.key.is_empty() {
        mistakes.push(("key", "is missing"));
    }
    match operator {
        MatchOperator::In | MatchOperator::NotIn if count == 0 => {
            mistakes.push(("values", "In and NotIn need at least one value"));
        }
        MatchOperator::Exists | MatchOperator::DoesNotExist if count > 0 => {
            mistakes.push(("values", "Exists and DoesNotExist take no values"));
        }
        MatchOperator::Gt | MatchOperator::Lt if count != 1 => {
            mistakes.push(("values", "Gt and Lt need one integer"));
        }
        _ => {}
    }
    mistakes
}

fn on_objects(requirement: &Requirement, operator: MatchOperator) -> Vec<Mistake> {
    match operator {
        MatchOperator::Gt | MatchOperator::Lt => {
            vec![("operator", "Gt and Lt compare labels of nodes only")]
        }
        _ => on_labels(requirement, operator),
    }
}

fn on_fields(requirement: &Requirement, operator: MatchOperator) -> Vec<Mistake> {
    let count = requirement.values.as_deref().unwrap_or_default().len();
    let mut mistakes = Vec::new();
    if &*requirement.key != "metadata.name" {
        mistakes.push(("key", "the only field is metadata.name"));
    }
    match operator {
        MatchOperator::In | MatchOperator::NotIn if count == 1 => {}
        MatchOperator::In | MatchOperator::NotIn => {
            mistakes.push(("values", "must be one value"));
        }
        _ => mistakes.push(("operator", "a field takes In or NotIn")),
    }
    mistakes
}
