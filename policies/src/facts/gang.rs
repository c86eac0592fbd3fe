//! What PodGroups and Jobs say of gangs.

use super::status::PodGroupStatus;
use super::{Problem, Uid, UnixMs};
use alloc::{boxed::Box, vec::Vec};

/// A PodGroup as it was last seen: ours, or a native one of `scheduling.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodGroupFacts {
    /// Whether the PodGroup is ours or a native one.
    pub source: GroupSource,
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.generation`, reported back as `observedGeneration`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created_ms: UnixMs,
    /// `spec.queue`, or the label `gpu-batch.io/queue` of a native group.
    pub queue: Option<Box<str>>,
    /// The number of members that start together or not at all; members beyond it are surplus.
    pub minimum: u32,
    /// `spec.subGroups`.
    pub sub_groups: Vec<SubGroupFacts>,
    /// `spec.minSubGroups`.
    pub min_sub_groups: Option<u32>,
    /// `spec.priorityClassName`.
    pub priority_class: Option<Box<str>>,
    /// `spec.priority` of a native group, which is used instead of `priority_class`.
    pub priority: Option<i32>,
    /// `spec.preemptible`; `None` means true.
    pub preemptible: Option<bool>,
    /// `spec.topology`.
    pub topology: Option<TopologyConstraint>,
    /// The node label of a native group's topology constraint: all members must be on nodes with
    /// one value of it.
    pub required_label: Option<Box<str>>,
    /// `spec.placement`.
    pub placement: PlacementChoice,
    /// `spec.expectedRuntime`.
    pub expected_runtime_ms: Option<u64>,
    /// `spec.preemptionDelay`.
    pub preemption_delay_ms: Option<u64>,
    /// `spec.stalenessGracePeriod`; negative: the gang is never evicted for it; `None`: as
    /// configured.
    pub staleness_grace_ms: Option<i64>,
    /// Fields that are not supported yet; the gang is barred with `Unsupported`.
    pub unsupported: Vec<Box<str>>,
    /// What could not be read or contradicts itself; the gang is barred with `InvalidSpec`.
    pub problems: Vec<Problem>,
    /// Labels and annotations of ours that mean nothing on a PodGroup, each with what may have been
    /// meant.
    pub unknown_keys: Vec<Problem>,
    /// `status`, if it can be what the scheduler wrote; `None` for native groups.
    pub status: Option<PodGroupStatus>,
    /// `status.scheduler` names another gpu-batch, which wrote the status.
    pub is_told_by_other: bool,
}

impl PodGroupFacts {
    /// A PodGroup of ours with this minimum, of the first generation, created at time zero, with
    /// nothing else set.
    #[must_use]
    pub fn new(uid: Uid, namespace: &str, name: &str, minimum: u32) -> Self {
        Self {
            source: GroupSource::GpuBatch,
            namespace: namespace.into(),
            name: name.into(),
            uid,
            generation: 1,
            created_ms: 0,
            queue: None,
            minimum,
            sub_groups: Vec::new(),
            min_sub_groups: None,
            priority_class: None,
            priority: None,
            preemptible: None,
            topology: None,
            required_label: None,
            placement: PlacementChoice::default(),
            expected_runtime_ms: None,
            preemption_delay_ms: None,
            staleness_grace_ms: None,
            unsupported: Vec::new(),
            problems: Vec::new(),
            unknown_keys: Vec::new(),
            status: None,
            is_told_by_other: false,
        }
    }
}

/// Where a PodGroup comes from. PodGroups of both sources may have one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupSource {
    /// A PodGroup of `gpu-batch.io`.
    GpuBatch,
    /// A PodGroup of `scheduling.k8s.io`.
    Native,
}

/// One role or slice of a PodGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubGroupFacts {
    /// The name, unique in the PodGroup.
    pub name: Box<str>,
    /// The parent's name; empty: the PodGroup itself.
    pub parent: Box<str>,
    /// The minimum of a leaf, in pods.
    pub min_member: Option<u32>,
    /// The minimum of a sub-group with children, in direct children.
    pub min_sub_groups: Option<u32>,
    /// Where the members of the sub-group must or should be.
    pub topology: Option<TopologyConstraint>,
}

impl SubGroupFacts {
    /// A sub-group with nothing else set. Without `min_member` it may have children; a leaf then
    /// has the minimum 1.
    #[must_use]
    pub fn new(name: &str, parent: &str, min_member: Option<u32>) -> Self {
        Self {
            name: name.into(),
            parent: parent.into(),
            min_member,
            min_sub_groups: None,
            topology: None,
        }
    }
}

/// `topology` of a PodGroup or sub-group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TopologyConstraint {
    /// The name of the Topology object; `None`: `default`.
    pub name: Option<Box<str>>,
    /// The level of which one domain must hold the whole group; until then the group waits.
    pub required: Option<Box<str>>,
    /// The level of which one domain should hold the whole group; if that is not possible, a wider
    /// one.
    pub preferred: Option<Box<str>>,
}

impl TopologyConstraint {
    /// The levels that are named.
    pub(crate) fn levels(&self) -> impl Iterator<Item = &str> {
        let levels = [&self.required, &self.preferred];
        levels.into_iter().flatten().map(|level| &**level)
    }
}

/// How nodes are chosen among those that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// The node with the least room left over.
    Binpack,
    /// The fewest members per domain.
    Spread,
    /// The node with the least CPU and GPUs left over, each as a part of what the largest machine
    /// has.
    BestFit,
    /// The node whose free GPUs lose the least of their use for the target workload.
    Fragmentation,
    /// The node whose free room is least aligned with what is asked for (by the dot product). Only
    /// for comparison in experiments.
    DotProduct,
    /// First cards that are shared already, then nodes that are in use, then empty ones. Only for
    /// comparison in experiments.
    GpuPacking,
    /// The node whose pods ask for one sort of GPUs, the sort that this pod asks for. Only for
    /// comparison in experiments.
    GpuClustering,
    /// Any node that fits, drawn from the seed and the pod's UID. Only for comparison in
    /// experiments.
    Random {
        /// The seed; another seed draws other nodes.
        seed: u64,
    },
    /// A single pod as with [`Placement::Binpack`]; several members on as few nodes as possible,
    /// the nodes with the most free GPUs first. Simulators of deep learning clusters do this (Hu et
    /// al., Helios, SC 2021). Not offered to users.
    Consolidated,
}

/// A choice of [`Placement`] for GPU and for CPU work; `None`: not chosen here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PlacementChoice {
    /// The placement of pods that ask for a GPU.
    pub gpu: Option<Placement>,
    /// The placement of all other pods.
    pub cpu: Option<Placement>,
}

/// A batch/v1 Job as it was last seen. Only indexed Jobs make gangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.completionMode` is `Indexed`.
    pub indexed: bool,
    /// `spec.parallelism`.
    pub parallelism: u32,
    /// `spec.completions`.
    pub completions: Option<u32>,
    /// `status.succeeded`: pods that ended well, also those that were removed since.
    pub succeeded: u32,
    /// `spec.activeDeadlineSeconds`, in milliseconds.
    pub active_deadline_ms: Option<u64>,
    /// The Job's `podFailurePolicy` ignores evicted pods. Otherwise each evicted pod counts as
    /// failed, and the Job fails once more pods have failed than its `backoffLimit`.
    pub ignores_evictions: bool,
    /// Labels and annotations of ours on the Job itself, where they mean nothing, each with what
    /// may have been meant.
    pub unknown_keys: Vec<Problem>,
}
