//! What PodGroups and Jobs say of gangs.

use super::status::PodGroupStatus;
use super::{Problem, Uid, UnixMs};
use alloc::{boxed::Box, vec::Vec};

/// A PodGroup as it was last seen: ours, or a native one of `scheduling.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodGroupFacts {
    /// Which kind of PodGroup.
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
    /// The number of members that start together or not at all; members above it are elastic.
    pub minimum: u32,
    /// `spec.subGroups`.
    pub sub_groups: Vec<SubGroupFacts>,
    /// `spec.minSubGroups`.
    pub min_sub_groups: Option<u32>,
    /// `spec.priorityClassName`.
    pub priority_class: Option<Box<str>>,
    /// `spec.priority` of a native group, which wins over the class's name.
    pub priority: Option<i32>,
    /// `spec.preemptible`; `None`: true.
    pub preemptible: Option<bool>,
    /// `spec.topology`.
    pub topology: Option<TopologyRequest>,
    /// The node label of a native group's topology constraint: all members in one domain of it.
    pub required_label: Option<Box<str>>,
    /// `spec.placement`.
    pub placement: PlacementChoice,
    /// `spec.expectedRuntime`.
    pub expected_runtime_ms: Option<u64>,
    /// `spec.preemptionDelay`.
    pub preemption_delay_ms: Option<u64>,
    /// `spec.stalenessGracePeriod`; negative: never; `None`: the configuration's.
    pub staleness_grace_ms: Option<i64>,
    /// Fields that are not supported yet; the gang is held with `Unsupported`.
    pub unsupported: Vec<Box<str>>,
    /// What could not be read or contradicts itself; the gang is held with `InvalidSpec`.
    pub problems: Vec<Problem>,
    /// `status`, if the scheduler could have written it so; of native groups never.
    pub status: Option<PodGroupStatus>,
}

impl PodGroupFacts {
    /// A PodGroup of ours of which so many members start together, of the first generation,
    /// created at time zero, that says nothing else.
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
            status: None,
        }
    }
}

/// Where a PodGroup comes from. The two kinds may share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupSource {
    /// `gpu-batch.io` PodGroup.
    GpuBatch,
    /// `scheduling.k8s.io` PodGroup.
    Native,
}

/// One role or slice of a PodGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubGroupFacts {
    /// The name, unique in the PodGroup.
    pub name: Box<str>,
    /// The parent's name; empty: the PodGroup itself.
    pub parent: Box<str>,
    /// Of a leaf: pods.
    pub min_member: Option<u32>,
    /// Of an inner node: direct children.
    pub min_sub_groups: Option<u32>,
    /// Where its members must or should be.
    pub topology: Option<TopologyRequest>,
}

impl SubGroupFacts {
    /// A sub-group that says nothing else. Without `min_member` it is an inner node, or a leaf by
    /// default.
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
pub struct TopologyRequest {
    /// The Topology object; `None`: `default`.
    pub name: Option<Box<str>>,
    /// The whole group inside one domain of this level, or it waits.
    pub required: Option<Box<str>>,
    /// As near as this level if possible, wider if not.
    pub preferred: Option<Box<str>>,
}

impl TopologyRequest {
    /// The levels that are named.
    pub(crate) fn levels(&self) -> impl Iterator<Item = &str> {
        let levels = [&self.required, &self.preferred];
        levels.into_iter().flatten().map(|level| &**level)
    }
}

/// How nodes are chosen among those that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// The node with the least left over.
    Binpack,
    /// The fewest members per domain.
    Spread,
    /// The node that has the least CPU and GPUs left, measured in the largest machine's.
    BestFit,
    /// The node whose free GPUs lose the least of their use for the target workload.
    Fragmentation,
    /// The node whose free room points least in the direction of what is asked for. For comparison
    /// in experiments, as are all that follow.
    DotProduct,
    /// First cards that are shared already, then nodes that are in use, then empty ones.
    GpuPacking,
    /// The node whose pods ask for the same sort of GPUs.
    GpuClustering,
    /// Any node that fits, drawn from the seed and the pod's UID.
    Random {
        /// Another seed draws other nodes.
        seed: u64,
    },
    /// A single pod as with [`Placement::Binpack`]; several members on as few nodes as possible,
    /// those with the most free first. What simulators of deep learning clusters do (Hu et al.,
    /// Helios, SC 2021); to be compared with, and not offered to users.
    Consolidated,
}

/// A choice of [`Placement`] for GPU and for CPU work; `None`: not said here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PlacementChoice {
    /// For pods that ask for a GPU.
    pub gpu: Option<Placement>,
    /// For all others.
    pub cpu: Option<Placement>,
}

/// A batch/v1 Job as it was last seen. Only indexed ones make gangs.
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
    /// `spec.activeDeadlineSeconds`, in milliseconds.
    pub active_deadline_ms: Option<u64>,
    /// Its `podFailurePolicy` ignores evicted pods. Where it does not, each of them counts as
    /// failed, and the Job fails once they are more than its `backoffLimit`.
    pub ignores_evictions: bool,
}
