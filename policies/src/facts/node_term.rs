//! Which nodes a term of node affinity selects.

use super::MatchOperator;
use alloc::{boxed::Box, vec::Vec};

/// One term of a node affinity: all its requirements must hold. A term without requirements matches
/// no node.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    pub match_expressions: Vec<MatchRequirement>,
    /// Requirements on fields; the only field is `metadata.name`.
    pub match_fields: Vec<MatchRequirement>,
}

/// `key operator values`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchRequirement {
    /// A label key, or the field's path.
    pub key: Box<str>,
    /// How the key's value is compared.
    pub operator: MatchOperator,
    /// What the key's value is compared with: one integer for `Gt` and `Lt`, nothing for `Exists`
    /// and `DoesNotExist`.
    pub values: Vec<Box<str>>,
}
