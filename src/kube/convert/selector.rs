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
    let terms = terms.iter().enumerate().map(|(index, term)| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        NodeSelectorTerm {
            match_expressions: requirements(
                expressions,
                format_args!("{TERMS}[{index}].matchExpressions"),
                problems,
                on_labels,
            ),
            match_fields: requirements(
                fields,
                format_args!("{TERMS}[{index}].matchFields"),
                problems,
                on_fields,
            ),
        }
    });
    Some(terms.collect())
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

/// Checks a requirement; the error says what the requirement must be.
type Rule = fn(&Requirement, MatchOperator) -> Result<(), &'static str>;

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
        if let Err(message) = rule(requirement, operator) {
            let field = format_args!("{field}[{index}]");
            // The API server does not check whether the value is a number.
            let compares = matches!(operator, MatchOperator::Gt | MatchOperator::Lt);
            if compares && values.len() == 1 {
                problems.push(field, message);
            } else {
                problems.push_impossible(field, message);
            }
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

fn on_labels(requirement: &Requirement, operator: MatchOperator) -> Result<(), &'static str> {
    let values = requirement.values.as_deref().unwrap_or_default();
    match operator {
        MatchOperator::In | MatchOperator::NotIn if values.is_empty() => {
            Err("In and NotIn need at least one value")
        }
        MatchOperator::Exists | MatchOperator::DoesNotExist if !values.is_empty() => {
            Err("Exists and DoesNotExist take no values")
        }
        MatchOperator::Gt | MatchOperator::Lt => match values {
            [value] if value.parse::<i64>().is_ok() => Ok(()),
            _ => Err("Gt and Lt need one integer"),
        },
        _ if requirement.key.is_empty() => Err("the key is missing"),
        _ => Ok(()),
    }
}

fn on_objects(requirement: &Requirement, operator: MatchOperator) -> Result<(), &'static str> {
    match operator {
        MatchOperator::Gt | MatchOperator::Lt => Err("Gt and Lt compare labels of nodes only"),
        _ => on_labels(requirement, operator),
    }
}

fn on_fields(requirement: &Requirement, operator: MatchOperator) -> Result<(), &'static str> {
    let values = requirement.values.as_deref().unwrap_or_default();
    match operator {
        _ if &*requirement.key != "metadata.name" => Err("the only field is metadata.name"),
        MatchOperator::In | MatchOperator::NotIn if values.len() == 1 => Ok(()),
        _ => Err("a field takes In or NotIn with one value"),
    }
}
