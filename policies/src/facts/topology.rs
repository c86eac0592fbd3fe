//! What a Topology says.

use super::{Problem, Uid};
use alloc::{boxed::Box, vec::Vec};

/// A Topology object as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `spec.levels`, farthest first, without the level `node` that always ends them.
    pub levels: Vec<TopologyLevel>,
    /// What could not be read; the Topology counts as missing while there is any.
    pub problems: Vec<Problem>,
}

/// One level of a Topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyLevel {
    /// The level's name, as gangs write it.
    pub name: Box<str>,
    /// The node label whose values are its domains.
    pub node_label: Box<str>,
}
