//! Why a gang or a pod waits: a closed list, one meaning each, documented for users.

use core::fmt;

/// Why a gang or a pod waits. The words are part of the contract with users and their tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Fewer pods exist than the gang's minimum.
    WaitingForMembers,
    /// The pod names a PodGroup that does not exist in its namespace.
    PodGroupNotFound,
    /// The pod names a sub-group that its PodGroup does not have, or none where one is needed.
    SubGroupNotFound,
    /// The pod names a gpu-batch PodGroup by label and a native one by field.
    ConflictingGroups,
    /// The queue does not exist, or is not Ready.
    QueueNotFound,
    /// The queue has children; only leaves take gangs.
    QueueNotLeaf,
    /// The queue, or one above it, admits nothing new.
    QueueClosed,
    /// The queue, or one above it, does not take gangs of this namespace.
    NamespaceNotAllowed,
    /// A limit of the queue, or of one above it, would be exceeded.
    OverLimit,
    /// The gang is not preemptible and its queue's quota has no room for it.
    NonPreemptibleOverQuota,
    /// The Topology or the level that the gang names does not exist.
    TopologyNotFound,
    /// The gang fits nowhere now, and that is proved.
    DoesNotFit,
    /// No place was found within the steps that a search may take; there may be one.
    NotFoundWithinBound,
    /// The gang could start, but others come before it.
    WaitingForTurn,
    /// Room is being made for the gang by evictions.
    WaitingForEviction,
    /// kube-scheduler chooses the node of the pod, and asks this scheduler as its extender.
    WaitingForKubeScheduler,
    /// The gang fits, but would keep another one from starting when it was promised to.
    Reserved,
    /// The gang may not move or evict others yet.
    PreemptionDelay,
    /// A field makes no sense; the message names it.
    InvalidSpec,
    /// A field is not supported yet; the message names it.
    Unsupported,
    /// A PersistentVolumeClaim is missing, not bound, or used by another pod; the message names it.
    WaitingForVolumes,
    /// Pods carry scheduling gates.
    SchedulingGated,
    /// Members of a running gang were lost and their replacements wait.
    MembersLost,
    /// The API server refused a binding, which will be tried again.
    BindingFailed,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 24] = [
        Self::WaitingForMembers,
        Self::PodGroupNotFound,
        Self::SubGroupNotFound,
        Self::ConflictingGroups,
        Self::QueueNotFound,
        Self::QueueNotLeaf,
        Self::QueueClosed,
        Self::NamespaceNotAllowed,
        Self::OverLimit,
        Self::NonPreemptibleOverQuota,
        Self::TopologyNotFound,
        Self::DoesNotFit,
        Self::NotFoundWithinBound,
        Self::WaitingForTurn,
        Self::WaitingForEviction,
        Self::WaitingForKubeScheduler,
        Self::Reserved,
        Self::PreemptionDelay,
        Self::InvalidSpec,
        Self::Unsupported,
        Self::WaitingForVolumes,
        Self::SchedulingGated,
        Self::MembersLost,
        Self::BindingFailed,
    ];

    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WaitingForMembers => "WaitingForMembers",
            Self::PodGroupNotFound => "PodGroupNotFound",
            Self::SubGroupNotFound => "SubGroupNotFound",
            Self::ConflictingGroups => "ConflictingGroups",
            Self::QueueNotFound => "QueueNotFound",
            Self::QueueNotLeaf => "QueueNotLeaf",
            Self::QueueClosed => "QueueClosed",
            Self::NamespaceNotAllowed => "NamespaceNotAllowed",
            Self::OverLimit => "OverLimit",
            Self::NonPreemptibleOverQuota => "NonPreemptibleOverQuota",
            Self::TopologyNotFound => "TopologyNotFound",
            Self::DoesNotFit => "DoesNotFit",
            Self::NotFoundWithinBound => "NotFoundWithinBound",
            Self::WaitingForTurn => "WaitingForTurn",
            Self::WaitingForEviction => "WaitingForEviction",
            Self::WaitingForKubeScheduler => "WaitingForKubeScheduler",
            Self::Reserved => "Reserved",
            Self::PreemptionDelay => "PreemptionDelay",
            Self::InvalidSpec => "InvalidSpec",
            Self::Unsupported => "Unsupported",
            Self::WaitingForVolumes => "WaitingForVolumes",
            Self::SchedulingGated => "SchedulingGated",
            Self::MembersLost => "MembersLost",
            Self::BindingFailed => "BindingFailed",
        }
    }

    /// Whether a bound of a queue is in the way.
    pub(crate) fn is_of_queue(self) -> bool {
        matches!(self, Self::OverLimit | Self::NonPreemptibleOverQuota)
    }

    /// Whether a gang with this reason cannot start as it stands, whatever else ends. Until the
    /// gang, its queue or its claims are changed, the gang asks for nothing, so that no share moves
    /// for its sake.
    pub(crate) fn asks_for_nothing(self) -> bool {
        matches!(
            self,
            Self::PodGroupNotFound
                | Self::SubGroupNotFound
                | Self::ConflictingGroups
                | Self::QueueNotFound
                | Self::QueueNotLeaf
                | Self::QueueClosed
                | Self::NamespaceNotAllowed
                | Self::TopologyNotFound
                | Self::InvalidSpec
                | Self::Unsupported
                | Self::WaitingForVolumes
        )
    }

    /// Whether more nodes help as a rule; the verdict on a gang may know better. Only where they
    /// help, a pod's condition says `Unschedulable`, so that no autoscaler grows a cluster for a
    /// quota.
    pub(crate) fn more_nodes_help(self) -> bool {
        matches!(
            self,
            Self::DoesNotFit | Self::NotFoundWithinBound | Self::MembersLost
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
