//! What goes into the engine: events, which the shells report and from which the engine concludes.

use crate::command::{CommandId, ObjectReference};
use crate::facts::{
    DisruptionBudgetFacts, GroupSource, JobFacts, NamespaceFacts, NodeFacts, NumaFacts, PodFacts,
    PodGroupFacts, PriorityClassFacts, QueueFacts, StorageFacts, StorageKind, TopologyFacts, Uid,
};
use crate::lease::LeaseSeen;
use crate::settings::Settings;
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An object was created or changed.
    Applied(Box<Object>),
    /// An object is gone.
    Deleted(ObjectKey),
    /// All objects of one kind, as one list that replaces what was known of the kind: objects that
    /// it does not name are gone. Nothing is planned before every kind has been listed once; a kind
    /// that the API server does not serve counts as listed empty.
    Listed(Listing),
    /// A command has ended. Each command ends in exactly one outcome.
    Outcome(CommandId, Outcome),
    /// The administrator has changed settings. They take effect at once, except those that the
    /// engine was built around: [`Settings::leadership`], [`Settings::leaf_order`],
    /// [`Settings::queueing`] and [`Settings::target_workload`].
    Configured(Box<Settings>),
    /// kube-scheduler asks to bind a pod to the node that it has chosen. A pod that is *extended*
    /// (see [`crate::extender`]) is bound if its queue and the node still have room for it; another
    /// pod of kube-scheduler is bound as it asks.
    BindAsked {
        /// The pod.
        pod: Uid,
        /// The name of the node.
        node: Box<str>,
    },
    /// A deadline has come, or the last step has left work for the next slice.
    Continue,
}

impl Event {
    /// What an engine hears first: one list of each kind, with these objects.
    #[must_use]
    pub fn lists(objects: impl IntoIterator<Item = Object>) -> Vec<Self> {
        let mut by_kind: BTreeMap<Kind, Vec<Object>> = BTreeMap::new();
        for object in objects {
            by_kind.entry(object.kind()).or_default().push(object);
        }
        let listing = |kind| Listing {
            kind,
            objects: by_kind.remove(&kind).unwrap_or_default(),
        };
        Kind::ALL.map(listing).map(Self::Listed).into()
    }

    /// The objects that the event tells of as they are now. Objects that are gone are not among
    /// them.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        match self {
            Self::Applied(object) => core::slice::from_ref(object),
            Self::Listed(listing) => &listing.objects,
            _ => &[],
        }
    }
}

/// Kinds of objects that the engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Nodes.
    Node,
    /// Pods of all schedulers.
    Pod,
    /// Queues.
    Queue,
    /// PodGroups of `gpu-batch.io`.
    PodGroup,
    /// PodGroups of `scheduling.k8s.io`.
    NativePodGroup,
    /// Topologies.
    Topology,
    /// PriorityClasses.
    PriorityClass,
    /// Namespaces.
    Namespace,
    /// Jobs of `batch/v1`.
    Job,
    /// PodDisruptionBudgets of `policy/v1`.
    DisruptionBudget,
    /// What says where there are, or can be, volumes.
    Storage(StorageKind),
    /// NodeResourceTopologies of `topology.node.k8s.io`.
    Numa,
}

impl Kind {
    /// Every kind, in the order in which the kinds are best listed: objects that others refer to
    /// come first.
    pub const ALL: [Self; 18] = [
        Self::Namespace,
        Self::PriorityClass,
        Self::Topology,
        Self::Queue,
        Self::Storage(StorageKind::ALL[0]),
        Self::Storage(StorageKind::ALL[1]),
        Self::Storage(StorageKind::ALL[2]),
        Self::Storage(StorageKind::ALL[3]),
        Self::Storage(StorageKind::ALL[4]),
        Self::Storage(StorageKind::ALL[5]),
        Self::Storage(StorageKind::ALL[6]),
        Self::Numa,
        Self::Node,
        Self::DisruptionBudget,
        Self::Job,
        Self::PodGroup,
        Self::NativePodGroup,
        Self::Pod,
    ];

    /// `apiVersion` and `kind` of its objects, as they stand in manifests and references.
    #[must_use]
    pub const fn api_type(self) -> (&'static str, &'static str) {
        const OURS: &str = "gpu-batch.io/v1alpha1";
        const STORAGE: &str = "storage.k8s.io/v1";
        match self {
            Self::Node => ("v1", "Node"),
            Self::Pod => ("v1", "Pod"),
            Self::Namespace => ("v1", "Namespace"),
            Self::Queue => (OURS, "Queue"),
            Self::PodGroup => (OURS, "PodGroup"),
            Self::Topology => (OURS, "Topology"),
            Self::NativePodGroup => ("scheduling.k8s.io/v1alpha2", "PodGroup"),
            Self::PriorityClass => ("scheduling.k8s.io/v1", "PriorityClass"),
            Self::Job => ("batch/v1", "Job"),
            Self::DisruptionBudget => ("policy/v1", "PodDisruptionBudget"),
            Self::Numa => ("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"),
            Self::Storage(StorageKind::Claim) => ("v1", "PersistentVolumeClaim"),
            Self::Storage(StorageKind::Volume) => ("v1", "PersistentVolume"),
            Self::Storage(StorageKind::Class) => (STORAGE, "StorageClass"),
            Self::Storage(StorageKind::CsiNode) => (STORAGE, "CSINode"),
            Self::Storage(StorageKind::CsiDriver) => (STORAGE, "CSIDriver"),
            Self::Storage(StorageKind::Capacity) => (STORAGE, "CSIStorageCapacity"),
            Self::Storage(StorageKind::Attachment) => (STORAGE, "VolumeAttachment"),
        }
    }
}

impl Kind {
    /// An object of this kind, as events name it.
    pub(crate) fn reference(self, namespace: &str, name: &str, uid: Uid) -> ObjectReference {
        let (api_version, kind) = self.api_type();
        ObjectReference {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
            uid,
        }
    }
}

impl From<GroupSource> for Kind {
    fn from(source: GroupSource) -> Self {
        match source {
            GroupSource::GpuBatch => Self::PodGroup,
            GroupSource::Native => Self::NativePodGroup,
        }
    }
}

/// One object of any kind.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "most objects are pods, and events have objects in boxes"
)]
pub enum Object {
    /// A node.
    Node(NodeFacts),
    /// A pod.
    Pod(PodFacts),
    /// A queue.
    Queue(QueueFacts),
    /// A PodGroup of either source.
    PodGroup(PodGroupFacts),
    /// A Topology.
    Topology(TopologyFacts),
    /// A PriorityClass.
    PriorityClass(PriorityClassFacts),
    /// A Namespace.
    Namespace(NamespaceFacts),
    /// A Job.
    Job(JobFacts),
    /// A PodDisruptionBudget.
    DisruptionBudget(DisruptionBudgetFacts),
    /// An object that says where there are, or can be, volumes.
    Storage(StorageFacts),
    /// A NodeResourceTopology.
    Numa(NumaFacts),
}

impl Object {
    /// The object's kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Node(_) => Kind::Node,
            Self::Pod(_) => Kind::Pod,
            Self::Queue(_) => Kind::Queue,
            Self::PodGroup(group) => group.source.into(),
            Self::Topology(_) => Kind::Topology,
            Self::PriorityClass(_) => Kind::PriorityClass,
            Self::Namespace(_) => Kind::Namespace,
            Self::Job(_) => Kind::Job,
            Self::DisruptionBudget(_) => Kind::DisruptionBudget,
            Self::Storage(facts) => Kind::Storage(facts.kind()),
            Self::Numa(_) => Kind::Numa,
        }
    }

    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Node(node) => ObjectKey::Node(node.name.clone(), node.uid),
            Self::Pod(pod) => ObjectKey::Pod(pod.uid),
            Self::Queue(queue) => ObjectKey::Queue(queue.name.clone()),
            Self::PodGroup(group) => {
                let (namespace, name) = (group.namespace.clone(), group.name.clone());
                ObjectKey::PodGroup(group.source, namespace, name)
            }
            Self::Topology(topology) => ObjectKey::Topology(topology.name.clone()),
            Self::PriorityClass(class) => ObjectKey::PriorityClass(class.name.clone()),
            Self::Namespace(namespace) => ObjectKey::Namespace(namespace.name.clone()),
            Self::Job(job) => ObjectKey::Job(job.uid),
            Self::DisruptionBudget(budget) => {
                ObjectKey::DisruptionBudget(budget.namespace.clone(), budget.name.clone())
            }
            Self::Storage(facts) => {
                let (namespace, name) = facts.name();
                ObjectKey::Storage(facts.kind(), namespace.into(), name.into())
            }
            Self::Numa(facts) => ObjectKey::Numa(facts.name.clone()),
        }
    }

    /// The object's UID; `None` for kinds of which nothing depends on the UID.
    #[must_use]
    pub fn uid(&self) -> Option<Uid> {
        match self {
            Self::Node(facts) => Some(facts.uid),
            Self::Pod(facts) => Some(facts.uid),
            Self::Queue(facts) => Some(facts.uid),
            Self::PodGroup(facts) => Some(facts.uid),
            Self::Topology(facts) => Some(facts.uid),
            Self::Job(facts) => Some(facts.uid),
            Self::Namespace(facts) => Some(facts.uid),
            Self::DisruptionBudget(facts) => Some(facts.uid),
            Self::Storage(facts) => facts.uid(),
            Self::Numa(facts) => Some(facts.uid),
            Self::PriorityClass(_) => None,
        }
    }
}

/// Names one object. Nodes, pods and Jobs are named with their UID: before the news of a deletion
/// arrives, another object may have the name of the deleted one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKey {
    /// A node, by name and UID.
    Node(Box<str>, Uid),
    /// A pod.
    Pod(Uid),
    /// A queue, by name.
    Queue(Box<str>),
    /// A PodGroup: source, namespace, name.
    PodGroup(GroupSource, Box<str>, Box<str>),
    /// A Topology, by name.
    Topology(Box<str>),
    /// A PriorityClass, by name.
    PriorityClass(Box<str>),
    /// A Namespace, by name.
    Namespace(Box<str>),
    /// A Job.
    Job(Uid),
    /// A PodDisruptionBudget: namespace, name.
    DisruptionBudget(Box<str>, Box<str>),
    /// An object that says where there are, or can be, volumes: kind, namespace, name. The
    /// namespace is empty for kinds without.
    Storage(StorageKind, Box<str>, Box<str>),
    /// A NodeResourceTopology, by name.
    Numa(Box<str>),
}

impl ObjectKey {
    /// The object's kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Node(..) => Kind::Node,
            Self::Pod(_) => Kind::Pod,
            Self::Queue(_) => Kind::Queue,
            Self::PodGroup(source, ..) => (*source).into(),
            Self::Topology(_) => Kind::Topology,
            Self::PriorityClass(_) => Kind::PriorityClass,
            Self::Namespace(_) => Kind::Namespace,
            Self::Job(_) => Kind::Job,
            Self::DisruptionBudget(..) => Kind::DisruptionBudget,
            Self::Storage(kind, ..) => Kind::Storage(*kind),
            Self::Numa(_) => Kind::Numa,
        }
    }
}

/// All objects of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// The kind that is replaced.
    pub kind: Kind,
    /// The objects; an object of another kind is ignored.
    pub objects: Vec<Object>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The API server did what the command says.
    Done,
    /// 409: the world is not as we thought, or the API server could not tell whether it is.
    Conflict {
        /// What the API server said.
        message: Box<str>,
    },
    /// 404: the object is gone.
    NotFound,
    /// The API server certainly did not do what the command says: the request is wrong (400, 403,
    /// 422), admission has denied it or failed, or, of an eviction, a disruption budget forbids it
    /// (429).
    Refused {
        /// What the API server said.
        message: Box<str>,
    },
    /// 429 of flow control: nothing was done, and the request may be sent again later.
    Throttled {
        /// How long the API server asked to wait, in milliseconds.
        retry_after_ms: u64,
    },
    /// It is not certain whether the request was done: a timeout, a 5xx, a lost connection.
    Unknown {
        /// What the API server said, or why there is no answer.
        message: Box<str>,
    },
    /// The answer to [`Action::Observe`](crate::command::Action::Observe).
    Observed(PodSeen),
    /// The answer to [`Action::Lease`](crate::command::Action::Lease).
    Lease(LeaseSeen),
}

/// What a quorum read said of the pod with a UID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodSeen {
    /// There is no such pod, or the pod with its name has another UID.
    Gone,
    /// The pod exists and has no node.
    Unbound,
    /// The pod is bound to this node.
    Bound(Box<str>),
}
