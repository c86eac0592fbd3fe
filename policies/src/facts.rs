//! What the shells report about the world, in the engine's own words.
//!
//! A *fact* is one object as it was last seen: a node, a pod, a queue. Facts carry names, because
//! only the engine interns them, and they carry what could not be read as [`Problem`]s, because a
//! bad object is a value and not an error: its owner sees the reason, and all other objects are
//! handled as usual.
//!
//! Conversion from Kubernetes objects lives in the live shell (`src/kube/convert`); the simulator
//! makes facts directly. Nothing here is decided.
//!
//! Facts, events and commands are not serializable: every boundary owns its format.

mod amounts;
mod cards;
mod disruption;
mod duration;
mod feature;
mod gang;
mod labels;
mod mig;
mod node;
mod node_term;
mod numa;
mod owner;
mod pod;
mod preference;
mod queue;
mod relation;
mod selector;
mod shape;
pub mod status;
mod storage;
mod uid;
mod workload;

pub(crate) use amounts::saturated;
pub use amounts::{
    AMOUNT_MAX, Amount, Amounts, CARD, GPU, Labels, amount, label, quantity, queue_quantity,
    queue_unit,
};
pub use cards::{
    CARD_RULES, CardClosed, CardEntries, CardFacts, CardLink, CardLock, CardMemory, CardNeed,
    CardOrder, CardPart, CardRule, CardTerms, ContainerCards, WHOLE_CARD,
};
pub use disruption::DisruptionBudgetFacts;
pub use duration::duration;
pub use feature::NodeFeature;
pub use gang::{
    GroupSource, JobFacts, Placement, PlacementChoice, PodGroupFacts, SubGroupFacts,
    TopologyConstraint,
};
pub use labels::{CONTROLLER, PodLabels};
pub use mig::{CardModes, MIG_SLICES, MigInstance, MigPlacement, MigProfile};
pub use node::{
    ConditionStatus, HAMI_REGISTER, NodeCondition, NodeFacts, NodeImage, Readiness, Taint,
    TaintEffect, TopologyFacts, TopologyLevel,
};
pub use node_term::{MatchRequirement, NodeSelectorTerm};
pub use numa::{
    AlignedContainer, AlignmentPolicy, AlignmentScope, CELLS_MAX, CellResource, ContainerRole,
    NumaCell, NumaFacts,
};
pub use owner::OwnerReference;
pub use pod::{GANG_GATE, GangHints, PodFacts, PodPhase, ScheduledCondition};
pub use preference::{Preferences, PreferredImages, PreferredNodes, PreferredPods};
pub use queue::{NamespaceFacts, PriorityClassFacts, QueueFacts, QueueResource, UNREADABLE_MS};
pub use relation::{PodSelection, PodTerm, Relations, SpreadRule};
pub use selector::{LabelSelector, MatchOperator, SelectorRequirement};
pub use shape::{Disk, HostPort, PodShape, Protocol, Toleration, TolerationOperator};
pub use status::{LearnedRuntimes, OwnerRuntimes, PastUse, RuntimeSource};
pub(crate) use storage::MIGRATED_PREFIX;
pub use storage::{
    AccessModes, AttachmentFacts, CapacityFacts, ClaimFacts, ClaimReference, ClaimUse,
    CsiDriverFacts, CsiNodeFacts, SharedVolume, StorageClassFacts, StorageFacts, StorageKind,
    VolumeFacts, VolumeNeeds, VolumePlaces, ZONE_LABELS, ZoneLabel, migrated_label,
};
pub use uid::Uid;
pub use workload::{PodKind, TargetWorkload, TypicalPod};

use alloc::boxed::Box;

/// Milliseconds since the Unix epoch. Time is always an argument; nothing here reads a clock.
pub type UnixMs = u64;

/// Something in an object that could not be read or makes no sense.
///
/// The object's owner sees it as `InvalidSpec` (or, for a queue, as its condition) with the field
/// and the message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The field, as a user would write it: `spec.resources[0].quota`.
    pub field: Box<str>,
    /// A full sentence without the final point: what is wrong and what would be right.
    pub message: Box<str>,
}
