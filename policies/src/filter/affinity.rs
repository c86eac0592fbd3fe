//! Node selectors and required node affinity, as kube-scheduler reads them.

use super::syntax::{is_label_key, is_label_value};
use crate::facts::{
    Labels, MatchOperator, MatchRequirement, NodeFacts, NodeSelectorTerm, PodShape, label,
};
use alloc::boxed::Box;
use core::cmp::Ordering;

/// Whether the node selector and the required node affinity select the node: all labels of the
/// selector, and at least one term of the affinity.
pub(super) fn selects(shape: &PodShape, node: &NodeFacts) -> bool {
    let selector = &shape.node_selector;
    selector
        .iter()
        .all(|(key, value)| label(&node.labels, key) == Some(value))
        && shape
            .node_affinity
            .as_ref()
            .is_none_or(|terms| terms.iter().any(|term| term_holds(term, node)))
}

/// Whether all requirements of a term hold. A term without any holds nowhere, and so does one with
/// a requirement that makes no sense: Kubernetes skips such a term and judges the others.
fn term_holds(term: &NodeSelectorTerm, node: &NodeFacts) -> bool {
    let empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
    !empty
        && term
            .match_expressions
            .iter()
            .all(|expression| label_holds(expression, &node.labels))
        && term
            .match_fields
            .iter()
            .all(|field| field_holds(field, &node.name))
}

fn label_holds(requirement: &MatchRequirement, labels: &Labels) -> bool {
    let MatchRequirement {
        key,
        operator,
        values,
    } = requirement;
    if !is_label_key(key) || !values.iter().all(|value| is_label_value(value)) {
        return false;
    }
    let found = label(labels, key);
    let listed = |value: &str| values.iter().any(|one| **one == *value);
    match operator {
        MatchOperator::In => found.is_some_and(listed),
        MatchOperator::NotIn => !values.is_empty() && !found.is_some_and(listed),
        MatchOperator::Exists => values.is_empty() && found.is_some(),
        MatchOperator::DoesNotExist => values.is_empty() && found.is_none(),
        MatchOperator::Gt => compare(found, values) == Some(Ordering::Greater),
        MatchOperator::Lt => compare(found, values) == Some(Ordering::Less),
    }
}

/// The label's integer against the only value's; `None` where one of them is no decimal `i64`.
fn compare(found: Option<&str>, values: &[Box<str>]) -> Option<Ordering> {
    let [bound] = values else { return None };
    let bound: i64 = bound.parse().ok()?;
    let value: i64 = found?.parse().ok()?;
    Some(value.cmp(&bound))
}

/// A requirement on a field of the node: exactly one value, which the field has or has not. The
/// only field is `metadata.name`; any other counts as empty.
fn field_holds(requirement: &MatchRequirement, name: &str) -> bool {
    let field = if &*requirement.key == "metadata.name" {
        name
    } else {
        ""
    };
    match (requirement.operator, requirement.values.as_slice()) {
        (MatchOperator::In, [only]) => **only == *field,
        (MatchOperator::NotIn, [only]) => **only != *field,
        _ => false,
    }
}
