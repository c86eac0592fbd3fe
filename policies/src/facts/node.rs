//! What a node says, and a Topology of nodes.

use super::{Amounts, CardFacts, CardLink, CardLock, Labels, NodeFeature, Problem, Uid, UnixMs};
use alloc::{boxed::Box, vec::Vec};

/// The annotation in which HAMi's device plugin lists the cards of a node. On such a node
/// `nvidia.com/gpu` counts slots: ten for each card, unless the plugin is configured otherwise.
pub const HAMI_REGISTER: &str = "hami.io/node-nvidia-register";

/// A node as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`; a node with another UID is another machine, whatever its name.
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
    /// or without. Fair shares divide what ready nodes have, and nodes that were ready a short time
    /// ago.
    pub readiness: Readiness,
    /// Only the conditions that a [`HealthRule`](crate::settings::HealthRule) calls bad: a node
    /// that is well has none.
    pub conditions: Vec<NodeCondition>,
    /// `status.allocatable`, in base units (see [`Amount`](super::Amount)), with `pods` among the
    /// resources.
    pub allocatable: Amounts,
    /// `status.capacity`, in base units. Where a GPU resource has more capacity than allocatable,
    /// devices are sick or not offered yet.
    pub capacity: Amounts,
    /// The features of `status.declaredFeatures` that pods may need, sorted, each once.
    pub features: Vec<NodeFeature>,
    /// The cards among which the scheduler chooses. Empty: the scheduler does not choose cards on
    /// this node, as with plain `nvidia.com/gpu`. If the node has the annotation
    /// [`HAMI_REGISTER`], HAMi's device plugin has to be told which cards a pod gets.
    pub cards: Vec<CardFacts>,
    /// How well pairs of the cards are connected, each pair at most once. One that is not here has
    /// no link.
    pub card_links: Vec<CardLink>,
    /// The lock under which cards of the node are assigned; `None`: nobody has it.
    pub card_lock: Option<CardLock>,
    /// The container images that the node has, by each of their names. Empty as well where the
    /// cluster does not prefer nodes that have a pod's images.
    pub images: Vec<NodeImage>,
    /// What could not be read. To be safe, such a resource counts as absent, and such a taint as
    /// there.
    pub problems: Vec<Problem>,
}

/// A container image of a node, under one of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeImage {
    /// The name, with a tag or a digest.
    pub name: Box<str>,
    /// The size, in bytes.
    pub size_bytes: u64,
}

impl NodeFacts {
    /// A ready node without labels and taints whose whole capacity can be given to pods.
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
            conditions: Vec::new(),
            capacity: allocatable.clone(),
            allocatable,
            features: Vec::new(),
            cards: Vec::new(),
            card_links: Vec::new(),
            card_lock: None,
            images: Vec::new(),
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
        /// When the condition became `False` or `Unknown`, in Unix milliseconds, if it says so.
        since_ms: Option<UnixMs>,
    },
    /// The node has no condition `Ready`.
    Unsaid,
}

impl Readiness {
    /// Whether the kubelet says that the node works.
    #[must_use]
    pub fn is_ready(self) -> bool {
        self == Self::Ready
    }

    /// Whether the kubelet says that the node does not work, or has fallen silent.
    #[must_use]
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}

/// A condition of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCondition {
    /// `type`.
    pub kind: Box<str>,
    /// `status`.
    pub status: ConditionStatus,
    /// `lastTransitionTime`, in Unix milliseconds, if the condition has one.
    pub since_ms: Option<UnixMs>,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`.
    Unknown,
}

impl ConditionStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// The word in `status`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// The taint's key.
    pub key: Box<str>,
    /// The taint's value, often empty.
    pub value: Box<str>,
    /// The taint's effect on pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// New pods go elsewhere if they can.
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
    /// What could not be read; a Topology with any problem cannot be used.
    pub problems: Vec<Problem>,
}

/// One level of a Topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyLevel {
    /// The level's name, as gangs write it.
    pub name: Box<str>,
    /// The node label whose values tell the domains of this level apart.
    pub node_label: Box<str>,
}
