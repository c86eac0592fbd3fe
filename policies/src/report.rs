//! Views of the engine's state for `plan`, `queues`, metrics and tests.

use crate::facts::{Amount, CardPart, RuntimeSource, Uid, UnixMs};
use crate::reason::Reason;
use crate::status::{PodGroupStatus, QueueStatus};
use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodState {
    /// The pod waits.
    Pending,
    /// The pod waits behind scheduling gates.
    Gated,
    /// The pod has a node (or a binding is on its way) and does not run yet.
    Bound,
    /// The pod runs.
    Running,
    /// The pod is being deleted.
    Leaving,
    /// The pod ended well.
    Succeeded,
    /// The pod ended badly.
    Failed,
}

/// One pod of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodReport {
    /// The pod's UID.
    pub uid: Uid,
    /// The pod's namespace.
    pub namespace: Box<str>,
    /// The pod's name.
    pub name: Box<str>,
    /// How far the pod has come.
    pub state: PodState,
    /// The pod's node, also while the binding is on its way.
    pub node: Option<Box<str>>,
    /// What the pod holds of cards of its node, in the order of their ids.
    pub cards: Box<[CardPart]>,
    /// The binding is on its way: the API server has not said yet that the pod is on its node.
    pub binding: bool,
    /// Why the pod waits.
    pub reason: Option<Reason>,
    /// The reason as a sentence.
    pub message: String,
}

/// One gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GangReport {
    /// `NS/NAME` of a PodGroup; `NS/KIND/NAME` of an implicit gang: `NS/job/NAME`, `NS/pod/NAME`.
    pub name: String,
    /// The queue that the gang names, existing or not.
    pub queue: Box<str>,
    /// Whether the gang comes from a PodGroup object (and not from an owner or a pod).
    pub explicit: bool,
    /// The gang's status.
    pub status: PodGroupStatus,
    /// When the gang's PodGroup (or its oldest pod) was created.
    pub created_ms: UnixMs,
    /// When the gang's minimum was bound; `None` while the gang waits.
    pub bound_ms: Option<UnixMs>,
    /// How many GPUs the bound members hold.
    pub gpus_allocated: Amount,
    /// How many GPUs the waiting members ask for.
    pub gpus_asked: Amount,
    /// The nodes of the bound members, each once, sorted.
    pub nodes: Vec<Box<str>>,
}

/// Where every pod is and what every node holds, in words. Two inventories can be compared line by
/// line.
///
/// Keys are `pod NS/NAME UID` and `node NAME`. A pod whose binding is on its way is on its node.
pub type Inventory = BTreeMap<String, String>;

/// What keeps a pod off each node, by the node's name, in words that follow `3 node(s)`; `None`:
/// the pod may run there.
pub type Verdicts = BTreeMap<Box<str>, Option<String>>;

/// What a pod prefers of a node that fits it: a score of each sort, from 0 to 100, as the plugin of
/// kube-scheduler gives it over the nodes that fit, up to one point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreferenceScores {
    /// Few taints with the effect PreferNoSchedule that it does not tolerate (TaintToleration).
    pub taints: u32,
    /// The preferred node affinity (NodeAffinity).
    pub node_affinity: u32,
    /// The topology spread constraints with ScheduleAnyway (PodTopologySpread).
    pub spread: u32,
    /// The preferred affinity and anti-affinity between pods, of the pod and of others
    /// (InterPodAffinity).
    pub pods: u32,
    /// The size of the pod's images that the node has (ImageLocality); 0 where the cluster does not
    /// prefer such nodes.
    pub images: u32,
}

impl PreferenceScores {
    /// The sum by which nodes are ordered, with the weights of kube-scheduler's default profile.
    #[must_use]
    pub fn sum(&self) -> u32 {
        3 * self.taints + 2 * (self.node_affinity + self.spread + self.pods) + self.images
    }
}

/// How much of the cluster's free GPUs is of no use for the target workload: the measure of Weng et
/// al., Beware of Fragmentation, USENIX ATC 2023.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// The fragmented GPUs, in thousandths of a card, times `weight`: an exact sum.
    pub weighted: u128,
    /// The sum of the target workload's weights; 0 while no pod was seen.
    pub weight: u64,
    /// The free GPUs, in thousandths of a card.
    pub free_thousandths: u64,
}

/// What nodes of one GPU model have of one resource, in pieces: cards, MIG devices, or shares of a
/// card. Each piece counts once; the sum is what exists, unless pods use more than that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuReport {
    /// The GPU model of the nodes, without suffixes for sharing and MIG; empty: they name none.
    pub model: Box<str>,
    /// The resource: `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`.
    pub resource: Box<str>,
    /// Used by pods; of cards that HAMi divides, those of which nothing is left.
    pub used: Amount,
    /// Cards that HAMi divides, of which pods hold parts and others may get some.
    pub shared: Amount,
    /// Free, and perhaps held for a gang.
    pub free: Amount,
    /// Free, on nodes that have less of it free than any waiting pod asks for; or cards that HAMi
    /// divides, with too little left of each for any waiting pod.
    pub fragmented: Amount,
    /// Not used, on nodes that take no GPU pods now: cordoned, lost, being upgraded, or with a sign
    /// that GPUs have failed.
    pub closed: Amount,
    /// Not offered by the device plugin, which calls them unhealthy or has not started.
    pub unhealthy: Amount,
}

/// Something that was foreseen and has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    /// A gang has started that was promised to.
    Start {
        /// When the gang was to start at the latest, by what it was promised first.
        promised_ms: UnixMs,
        /// When the members of its minimum got their places.
        started_ms: UnixMs,
    },
    /// A gang has ended well.
    Runtime {
        /// Where the expectation came from.
        source: RuntimeSource,
        /// How long the gang was expected to run.
        expected_ms: u64,
        /// How long it ran, from the start of its minimum to its last end.
        real_ms: u64,
    },
    /// A kubelet has rejected a pod of ours that it was to align on its NUMA nodes.
    Misaligned,
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReport {
    /// The queue's name.
    pub name: Box<str>,
    /// The queue's parent; `None`: the root.
    pub parent: Option<Box<str>>,
    /// Whether the queue has an object (the queue `default` exists without one).
    pub defined: bool,
    /// The queue's status.
    pub status: QueueStatus,
}
