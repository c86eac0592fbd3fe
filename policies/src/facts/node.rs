//! What a node says, and a Topology of nodes.

use super::{Amounts, CardFacts, Labels, Problem, Uid, UnixMs};
use alloc::{boxed::Box, vec::Vec};

/// The annotation by which HAMi's device plugin tells the cards of a node. `nvidia.com/gpu` is then
/// what it makes of them: so many slots a card, ten unless it is told otherwise.
pub const HAMI_REGISTER: &str = "hami.io/node-nvidia-register";

/// A node as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`; another one under the same name is another machine.
    pub uid: Uid,
    /// All labels.
    pub labels: Labels,
    /// Only the annotations under `nvidia.com/`, through which the GPU operator speaks, and
    /// [`HAMI_REGISTER`] without its value.
    pub annotations: Labels,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// The `Ready` condition. A node that is lost takes no pods, with the node controller's taints
    /// or without; fair shares divide what ready nodes have.
    pub readiness: Readiness,
    /// `status.allocatable`, with `pods` among the resources.
    pub allocatable: Amounts,
    /// `status.capacity`. More capacity than allocatable of a GPU resource is a sick card.
    pub capacity: Amounts,
    /// The cards among which the scheduler chooses. Empty: which card a pod gets is not ours to
    /// say, as with plain `nvidia.com/gpu`.
    pub cards: Vec<CardFacts>,
    /// What could not be read. The resource or taint concerned is treated in the safe way: absent,
    /// respectively there.
    pub problems: Vec<Problem>,
}

impl NodeFacts {
    /// A ready node without labels and taints, all of whose capacity can be given to pods.
    #[must_use]
    pub fn new(uid: Uid, name: &str, allocatable: Amounts) -> Self {
        Self {
            name: name.into(),
            uid,
            labels: Labels::new(),
            annotations: Labels::new(),
            taints: Vec::new(),
            unschedulable: false,
            readiness: Readiness::Ready,
            capacity: allocatable.clone(),
            allocatable,
            cards: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// What the condition `Ready` of a node says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// `True`.
    Ready,
    /// `False` or `Unknown`.
    Lost {
        /// When the condition became `False` or `Unknown`, if it says so.
        since_ms: Option<UnixMs>,
    },
    /// The node has no such condition.
    Unsaid,
}

impl Readiness {
    /// The kubelet says that the node works.
    #[must_use]
    pub fn is_ready(self) -> bool {
        self == Self::Ready
    }

    /// The kubelet says that the node does not work, or has fallen silent.
    #[must_use]
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// The key.
    pub key: Box<str>,
    /// The value, often empty.
    pub value: Box<str>,
    /// Its effect on pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// Pods rather go elsewhere.
    PreferNoSchedule,
    /// No new pods, and running ones are evicted by the taint manager.
    NoExecute,
}

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
