//! One gang: its objects, its pods and what it asks for.

mod tree;

pub(crate) use tree::{GroupTree, SubGroup};

use crate::facts::{
    GroupSource, PlacementChoice, PodGroupFacts, Problem, TopologyConstraint, Uid, UnixMs,
};
use crate::ids::PodId;
use crate::state::pod::Pod;
use crate::state::submitted::QueueNames;
use crate::status::PodGroupStatus;
use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};
use smallvec::SmallVec;

/// What makes pods a gang.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GangKey {
    /// A PodGroup: source, namespace, name.
    Group(GroupSource, Box<str>, Box<str>),
    /// The pods of one owner: an Indexed Job, or any owner whose pods carry `min-member`.
    Owner(Uid),
    /// The pods of all ReplicaSets of one Deployment that carry `min-member`: namespace, name.
    Deployment(Box<str>, Box<str>),
    /// One pod, which is a gang of its own.
    Pod(Uid),
}

impl GangKey {
    /// A number that tells gangs of one name apart: PodGroups of two sources, or pods or owners of
    /// which one is being deleted.
    pub(crate) fn namesake(&self) -> u128 {
        match self {
            Self::Group(GroupSource::GpuBatch, ..) => 0,
            Self::Group(GroupSource::Native, ..) => 1,
            Self::Deployment(..) => 0,
            Self::Owner(uid) | Self::Pod(uid) => uid.0,
        }
    }
}

/// The pods of a gang: most are gangs of one.
pub(crate) type Members = SmallVec<[PodId; 4]>;

/// A gang, from the first pod or object that names it.
#[derive(Debug)]
pub(crate) struct Gang {
    pub(crate) key: GangKey,
    /// `NS/NAME`, `NS/job/NAME`, `NS/deployment/NAME` or `NS/pod/NAME`.
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Box<str>,
    /// The PodGroup object; `None` for implicit gangs, and for a PodGroup that only pods mention.
    pub(crate) object: Option<Box<PodGroupFacts>>,
    /// The sub-groups of the gang's PodGroup, or what is wrong with them.
    pub(crate) tree: Result<Option<Arc<GroupTree>>, Problem>,
    /// The pods of the gang, in no order.
    pub(crate) members: Members,
    /// The Jobs that control members, or did so earlier.
    pub(crate) jobs: SmallVec<[Uid; 1]>,
    /// What the gang asks for by its objects, as of the last assessment.
    pub(crate) spec: GangSpec,
    /// How many members with a place have left the gang without being lost: they were moved to
    /// another gang, or had ended well and were deleted. Only rises: it is counted where pods
    /// leave, and read when the progress of the gang is next worked out.
    pub(crate) departed: u32,
    /// The queue names under which [`ClusterState::submitted`](super::ClusterState::submitted) has
    /// the gang.
    pub(crate) named: QueueNames,
}

/// What a gang asks for, from its PodGroup or from its pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GangSpec {
    pub(crate) queue: Arc<str>,
    /// Less the members that ended well and were removed since, as far as their Jobs tell.
    pub(crate) minimum: u32,
    pub(crate) priority: i32,
    pub(crate) preemptible: bool,
    pub(crate) topology: TopologyConstraint,
    /// The node label of a native group's topology constraint.
    pub(crate) required_label: Option<Box<str>>,
    pub(crate) placement: PlacementChoice,
    /// How long a complete gang may stay below its minimum; `None`: as configured; negative: for
    /// ever.
    pub(crate) staleness_grace_ms: Option<i64>,
    pub(crate) expected_runtime_ms: Option<u64>,
    /// How long the gang is complete and refused before it may evict or move others; `None`: as
    /// configured.
    pub(crate) preemption_delay_ms: Option<u64>,
    pub(crate) created_ms: UnixMs,
}

impl Gang {
    pub(crate) fn new(key: GangKey, namespace: &str, name: String) -> Self {
        Self {
            key,
            name: name.into(),
            namespace: namespace.into(),
            object: None,
            tree: Ok(None),
            members: Members::new(),
            jobs: SmallVec::new(),
            spec: GangSpec::default(),
            departed: 0,
            named: QueueNames::new(),
        }
    }

    /// The sub-groups, if there are any and they are valid.
    pub(crate) fn tree(&self) -> Option<&Arc<GroupTree>> {
        self.tree.as_ref().ok()?.as_ref()
    }

    /// The leaf of the tree that a member names.
    pub(crate) fn leaf_of(&self, pod: &Pod) -> Option<usize> {
        let name = pod.own.as_ref()?.sub_group.as_deref()?;
        self.tree()?.leaf(name)
    }

    /// The groups of the tree that a member is in, its leaf first, without the gang itself.
    pub(crate) fn groups_of(&self, pod: &Pod) -> Vec<usize> {
        let mut groups = Vec::new();
        let mut next = self.leaf_of(pod).unwrap_or(0);
        while let Some(tree) = self.tree().filter(|_| next != 0) {
            groups.push(next);
            next = tree.group(next).parent;
        }
        groups
    }

    /// Whether a member stands where the gang has a place for it: in a leaf of the tree, or in the
    /// gang itself where there is no tree.
    pub(crate) fn has_group_of(&self, pod: &Pod) -> bool {
        match self.tree() {
            None => !pod.glance.in_sub_group,
            Some(_) => self.leaf_of(pod).is_some(),
        }
    }

    /// The status of the gang's PodGroup, as last seen.
    pub(crate) fn shown(&self) -> Option<&PodGroupStatus> {
        self.object.as_ref()?.status.as_ref()
    }

    /// Whether a PodGroup makes the gang, existing or only named by pods.
    pub(crate) fn is_explicit(&self) -> bool {
        matches!(self.key, GangKey::Group(..))
    }

    /// Whether the gang could have more than one pod.
    pub(crate) fn may_have_others(&self) -> bool {
        !matches!(self.key, GangKey::Pod(_))
    }

    /// Whether the gang is a group that no pod of ours names, and a native one or one whose status
    /// another gpu-batch writes. Such a group is another scheduler's and counts nowhere.
    pub(crate) fn is_others(&self) -> bool {
        let is_told_by_other = || {
            let object = self.object.as_ref();
            object.is_some_and(|object| object.is_told_by_other)
        };
        self.members.is_empty() && (self.native_name().is_some() || is_told_by_other())
    }

    /// Namespace and name, if the gang is a native group.
    pub(crate) fn native_name(&self) -> Option<(&str, &str)> {
        match &self.key {
            GangKey::Group(GroupSource::Native, namespace, name) => Some((namespace, name)),
            _ => None,
        }
    }

    /// A name that no PodGroup of ours can have, if the gang is a native group.
    pub(crate) fn long_name(&self) -> Option<String> {
        let (namespace, name) = self.native_name()?;
        Some(format!("{namespace}/podgroup.scheduling.k8s.io/{name}"))
    }

    /// Whether the gang's PodGroup is not known: not yet, or not any more.
    pub(crate) fn lacks_object(&self) -> bool {
        self.is_explicit() && self.object.is_none()
    }
}
