//! Selectors over labels, and how their requirements compare.

use super::Labels;
use alloc::{boxed::Box, vec::Vec};

/// How a requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchOperator {
    /// The key's value is one of `values`.
    In,
    /// The key is absent, or its value is none of `values`.
    NotIn,
    /// The key is there, with any value.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// The key's value is an integer greater than the one of `values`.
    Gt,
    /// The key's value is an integer less than the one of `values`.
    Lt,
}

/// A selector over labels: all its requirements must hold; the empty selector selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    /// `matchLabels`.
    pub match_labels: Labels,
    /// `matchExpressions`; `Gt` and `Lt` do not occur.
    pub match_expressions: Vec<SelectorRequirement>,
}

impl LabelSelector {
    /// Whether the selector matches an object, of which `value_of` gives the value of a label.
    pub fn selects<V: AsRef<str>>(&self, value_of: impl Fn(&str) -> Option<V>) -> bool {
        let holds = |requirement: &SelectorRequirement| {
            let value = value_of(&requirement.key);
            let value = value.as_ref().map(AsRef::as_ref);
            let mut values = requirement.values.iter().map(|listed| &**listed);
            match requirement.operator {
                MatchOperator::In => value.is_some_and(|value| values.any(|it| it == value)),
                MatchOperator::NotIn => value.is_none_or(|value| values.all(|it| it != value)),
                MatchOperator::Exists => value.is_some(),
                MatchOperator::DoesNotExist => value.is_none(),
                // Label selectors have no such operators.
                MatchOperator::Gt | MatchOperator::Lt => false,
            }
        };
        let mut equal = self.match_labels.iter();
        equal.all(|(key, value)| value_of(key).is_some_and(|found| found.as_ref() == &**value))
            && self.match_expressions.iter().all(holds)
    }
}

/// One requirement of a [`LabelSelector`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorRequirement {
    /// The label.
    pub key: Box<str>,
    /// How the values are compared.
    pub operator: MatchOperator,
    /// The values.
    pub values: Vec<Box<str>>,
}
