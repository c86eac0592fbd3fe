//! NUMA: what an exporter says of the NUMA nodes of a node, and what a pod wants aligned there.
//!
//! A NUMA node is a *cell* here, so that no sentence has two sorts of nodes.

use super::{Amount, Amounts, Problem, Uid};
use alloc::{boxed::Box, vec::Vec};

/// How many cells of a node are looked at. The kubelet's Topology Manager does not start on a node
/// with more, unless it is told to.
pub const CELLS_MAX: usize = 8;

/// A NodeResourceTopology of `topology.node.k8s.io`: the cells of the node that has its name, as
/// they were when the exporter on the node last looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaFacts {
    /// `metadata.name`: the name of the node.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
    /// What the kubelet does with pods that cannot be aligned.
    pub policy: AlignmentPolicy,
    /// What the kubelet aligns.
    pub scope: AlignmentScope,
    /// The cells by rising number, [`CELLS_MAX`] at most.
    pub cells: Vec<NumaCell>,
    /// What could not be read; an object with any problem says nothing of its node.
    pub problems: Vec<Problem>,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaCell {
    /// The number of the NUMA node, which its name ends with.
    pub number: u16,
    /// What it has, sorted by name.
    pub resources: Vec<CellResource>,
}

/// How much of one resource a cell has, in base units (see [`Amount`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellResource {
    /// The name of the resource.
    pub name: Box<str>,
    /// All of it, that which is reserved or out of order too.
    pub capacity: Amount,
    /// What pods may have.
    pub allocatable: Amount,
    /// What no pod had when the exporter last looked.
    pub available: Amount,
}

/// The policy of a kubelet's Topology Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlignmentPolicy {
    /// Nothing is aligned.
    None,
    /// The kubelet aligns what it can, and rejects nothing.
    BestEffort,
    /// A pod is rejected that needs more cells than it would on an empty node.
    Restricted,
    /// A pod is rejected that needs more than one cell.
    SingleCell,
}

impl AlignmentPolicy {
    /// Every policy.
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::BestEffort,
        Self::Restricted,
        Self::SingleCell,
    ];

    /// The name that the kubelet's configuration has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::BestEffort => "best-effort",
            Self::Restricted => "restricted",
            Self::SingleCell => "single-numa-node",
        }
    }

    /// Whether the kubelet rejects pods that cannot be aligned.
    #[must_use]
    pub fn rejects(self) -> bool {
        matches!(self, Self::Restricted | Self::SingleCell)
    }
}

/// The scope of a kubelet's Topology Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlignmentScope {
    /// Each container by itself, in the order in which the pod names them.
    Container,
    /// All containers of a pod together.
    Pod,
}

impl AlignmentScope {
    /// Every scope.
    pub const ALL: [Self; 2] = [Self::Container, Self::Pod];

    /// The name that the kubelet's configuration has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Pod => "pod",
        }
    }
}

/// What one container gets for itself alone, where the kubelet gives out such things.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlignedContainer {
    /// When the container runs.
    pub role: ContainerRole,
    /// Extended resources; of a pod of the quality of service Guaranteed also whole CPUs, memory
    /// and hugepages. In base units, sorted by name, none zero.
    pub amounts: Amounts,
}

/// When a container runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContainerRole {
    /// Before all containers; those that follow use again what it had.
    Init,
    /// From its turn among the init containers on, beside all that follow.
    Sidecar,
    /// Beside the other containers.
    Main,
}
