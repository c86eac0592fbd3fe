//! Node selectors and required node affinity, as kube-scheduler reads them.
//!
//! A required affinity may contain label keys and values that Kubernetes no longer accepts: a term
//! with such a key or value selects no node.

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
        && shape.node_affinity.as_ref().is_none_or(|terms| {
            let mut terms = terms.iter();
            terms.any(|term| term_holds(term, &node.labels, Some(&node.name)))
        })
}

/// Whether all requirements of a term hold. A term without requirements never holds, nor does a
/// term with an invalid requirement: Kubernetes skips such a term and judges the others.
pub(super) fn term_holds(term: &NodeSelectorTerm, labels: &Labels, name: Option<&str>) -> bool {
    let empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
    !empty
        && term
            .match_expressions
            .iter()
            .all(|expression| label_holds(expression, labels))
        && term
            .match_fields
            .iter()
            .all(|field| field_holds(field, name))
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

/// Compares the label's integer with that of the requirement's only value. `None` if there is not
/// exactly one value, or one of the two texts is no decimal `i64`.
fn compare(found: Option<&str>, values: &[Box<str>]) -> Option<Ordering> {
    let [bound] = values else { return None };
    let bound: i64 = bound.parse().ok()?;
    let value: i64 = found?.parse().ok()?;
    Some(value.cmp(&bound))
}

/// Whether a requirement on a field of the node holds. Only In and NotIn with exactly one value are
/// valid. The only known field is `metadata.name`; any other counts as empty. `None`: the node is
/// known by its labels alone, and every valid requirement holds.
fn field_holds(requirement: &MatchRequirement, name: Option<&str>) -> bool {
    let (MatchOperator::In | MatchOperator::NotIn, [only]) =
        (requirement.operator, requirement.values.as_slice())
    else {
        return false;
    };
    let field = match &*requirement.key {
        "metadata.name" => name,
        _ => name.map(|_| ""),
    };
    let is_in = requirement.operator == MatchOperator::In;
    field.is_none_or(|field| (**only == *field) == is_in)
}

/// The most bytes of a label value, and of the name in a label key.
const NAME_MAX: usize = 63;

/// The most bytes of the prefix of a label key.
const PREFIX_MAX: usize = 253;

/// Whether the text is a label key: a name, optionally behind a DNS subdomain and a slash.
fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Whether the text is a label value: empty, or a name.
fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= NAME_MAX && is_word(text, inside, |byte| byte.is_ascii_alphanumeric())
}

fn is_subdomain(text: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= PREFIX_MAX
        && text
            .split('.')
            .all(|part| is_word(part, |byte| end(byte) || byte == b'-', end))
}

/// Whether a text is not empty, `inside` allows all its bytes, and `end` allows the first and the
/// last. A single byte is checked by `end` alone.
fn is_word(text: &str, inside: impl Fn(u8) -> bool, end: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => end(*only),
        [first, .., last] => end(*first) && end(*last) && text.bytes().all(inside),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_label_key, is_label_value};
    use std::string::String;

    #[test]
    fn label_values_are_those_of_kubernetes() {
        for good in ["", "a", "A-b_c.9", "007", &"x".repeat(63)] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in [
            "-5",
            "5-",
            "_",
            ".a",
            "a b",
            "a/b",
            "é",
            "+5",
            &"x".repeat(64),
        ] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }

    #[test]
    fn label_keys_are_those_of_kubernetes() {
        let longest = String::from("a.") + &"b".repeat(251) + "/" + &"x".repeat(63);
        for good in ["a", "A_b.c", "nvidia.com/gpu.product", "x-1.y/Z", &longest] {
            assert!(is_label_key(good), "{good}");
        }
        let too_long = String::from("a") + &longest;
        for bad in [
            "", "/", "a/", "/a", "a/b/c", "A.b/c", "a..b/c", "-a/b", "a_b/c", &too_long,
        ] {
            assert!(!is_label_key(bad), "{bad}");
        }
    }
}
