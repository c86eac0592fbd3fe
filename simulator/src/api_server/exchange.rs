//! Requests to the API server, and its answers.

use gpu_batch_policies::command::{
    Announcement, Bind, Evict, KeepVolume, Lift, LockCards, SelectNode, StatusPatch, UnlockCards,
};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::lease::{LeaseCall, LeaseSeen};
use gpu_batch_policies::status::{PodGroupStatus, QueueStatus};
use std::sync::Arc;

/// The `resourceVersion` of an object or of a list: the store's revision at which it was written.
pub type Version = u64;

/// Names an object the way a URL does. The trap: an object that is created later may have the name,
/// too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The kind of the object.
    pub kind: Kind,
    /// Empty for kinds without namespaces.
    pub namespace: Box<str>,
    /// The name of the object.
    pub name: Box<str>,
}

impl Name {
    /// The name of an object.
    #[must_use]
    pub fn of(object: &Object) -> Self {
        let (namespace, name): (&str, &str) = match object {
            Object::Node(facts) => ("", &facts.name),
            Object::Pod(facts) => (&facts.namespace, &facts.name),
            Object::Queue(facts) => ("", &facts.name),
            Object::PodGroup(facts) => (&facts.namespace, &facts.name),
            Object::Topology(facts) => ("", &facts.name),
            Object::PriorityClass(facts) => ("", &facts.name),
            Object::Namespace(facts) => ("", &facts.name),
            Object::Job(facts) => (&facts.namespace, &facts.name),
            Object::DisruptionBudget(facts) => (&facts.namespace, &facts.name),
            Object::Storage(facts) => facts.name(),
            Object::Numa(facts) => ("", &facts.name),
        };
        Self {
            kind: object.kind(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The name of a pod.
    #[must_use]
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self {
            kind: Kind::Pod,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// One request. Whether it arrives, and how often, is not the API server's business.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// POST. The API server sets UID, creation time, generation and version, whatever the object
    /// says, and clears the status of kinds whose status is a subresource. A node keeps its status,
    /// because a kubelet registers its node with one.
    Create(Object),
    /// PUT. The stored status stays as it is.
    Replace {
        /// The new object. Its UID must be that of the stored object.
        object: Object,
        /// The version that the stored object must have. `None`: any version, where the kind allows
        /// that.
        version: Option<Version>,
    },
    /// PUT of the subresource `status`: of a pod or a node, as kubelets do, or of a disruption
    /// budget, as its controller does. The rest of the object stays.
    ReplaceStatus {
        /// The object with the new status. Its UID must be that of the stored object.
        object: Object,
        /// The version that the stored object must have. `None`: any version, where the kind allows
        /// that.
        version: Option<Version>,
    },
    /// DELETE of an object.
    Delete {
        /// The object to delete.
        name: Name,
        /// What the object must be for the deletion to be carried out.
        expected: Expected,
        /// `gracePeriodSeconds`, in seconds. `None`: the pod's own grace. Other kinds have no
        /// grace.
        grace_s: Option<u64>,
    },
    /// GET, as a quorum read.
    Get(Name),
    /// GET of all objects of a kind.
    List {
        /// The kind of the objects.
        kind: Kind,
        /// `None`: the objects as they are now, a quorum read. A version: the objects as they were
        /// at that version, as an API server answers whose watch cache lags
        /// (`resourceVersionMatch=Exact` asks for such a list on purpose).
        at: Option<Version>,
    },
    /// The changes of a kind since a version, up to now. The server keeps nothing about watchers,
    /// so there may be any number of them.
    Watch {
        /// The kind of the objects.
        kind: Kind,
        /// The version of the list, or of the last change that was seen.
        after: Version,
    },
    /// POST of `pods/binding`.
    Bind(Bind),
    /// POST of `pods/eviction`.
    Evict(Evict),
    /// PATCH of a pod that lifts a gate, as the scheduler sends it.
    Lift(Lift),
    /// PATCH of a claim that says where its volume is to be made.
    SelectNode(SelectNode),
    /// PATCH of a volume that keeps it for a claim, or frees it.
    KeepVolume(KeepVolume),
    /// PATCH of a node that takes the lock on its cards.
    LockCards(LockCards),
    /// PATCH of a node that gives the lock on its cards back.
    UnlockCards(UnlockCards),
    /// PATCH of a status, as the scheduler sends it.
    PatchStatus(StatusPatch),
    /// Reads or writes the scheduler's lease.
    Lease(LeaseCall),
    /// POST of a Kubernetes event.
    Publish(Announcement),
}

/// Preconditions of a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// The UID that the object must have.
    pub uid: Option<Uid>,
    /// The version that the object must have.
    pub version: Option<Version>,
}

/// What the API server says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// 201 with the object as it was stored.
    Created(Arc<Stored>),
    /// 200 with the object as it is now.
    Found(Arc<Stored>),
    /// 200 or 201 without an object: the request was carried out.
    Done,
    /// 200 with a list.
    Listed {
        /// The version at which the list was taken; a watch begins after it.
        version: Version,
        /// The objects, by namespace and name.
        objects: Vec<Arc<Stored>>,
    },
    /// The changes of a kind since the version that was asked for.
    Changes {
        /// The changes, in the order of their versions.
        changes: Vec<Change>,
        /// A bookmark: up to this version the kind has no other changes.
        version: Version,
    },
    /// The lease as it is now.
    Lease(LeaseSeen),
    /// 404: there is no such object.
    NotFound,
    /// 409 with the reason `AlreadyExists`.
    AlreadyExists,
    /// 409 with the reason `Conflict`.
    Conflict(Conflict),
    /// 410: the changes since the version that was asked for are not known any more.
    Gone,
    /// 422 or 400: the object or the request is not valid, and why.
    Invalid(&'static str),
    /// 429: the request may be sent again later.
    TooManyRequests {
        /// `Retry-After`, in seconds.
        retry_after_s: u64,
        /// Whether a disruption budget forbids the eviction (cause `DisruptionBudget`); otherwise
        /// flow control has turned the request away.
        by_budget: bool,
    },
    /// 500, and why.
    InternalError(&'static str),
    /// 504 with the cause `ResourceVersionTooLarge`: the store has not reached the version yet.
    TooLarge,
}

/// Why a request conflicts with the stored object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The object has another version than the request expects.
    Version,
    /// The object has another UID: it was deleted and created again.
    Uid,
    /// The pod has a node already, maybe the one of this request.
    AlreadyBound,
    /// The pod is being deleted.
    BeingDeleted,
    /// The pod has scheduling gates.
    Gated,
    /// The lock on the cards of the node is another one, or gone.
    Locked,
}

/// One change of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub sort: Sort,
    /// The object after the change. Of a deleted object: its last state, with the version of the
    /// deletion.
    pub object: Arc<Stored>,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// An object in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The object as schedulers see it.
    pub object: Object,
    /// The revision at which the object was written.
    pub version: Version,
    /// The stored status, beside what the facts repeat of it.
    pub status: Status,
}

/// The status of an object as it is stored. The facts of an object repeat the parts that the
/// scheduler reads back.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// Nothing beside the facts.
    Nothing,
    /// The status of a PodGroup; `None`: never written. Of a native PodGroup only the condition is
    /// stored, all else has its default.
    PodGroup(Option<PodGroupStatus>),
    /// The status of a queue; `None`: never written.
    Queue(Option<QueueStatus>),
    /// The status of a pod.
    Pod(PodStatus),
    /// The status of a disruption budget.
    DisruptionBudget {
        /// Whether the status is about the spec as it is now (`observedGeneration` is not below
        /// `metadata.generation`).
        observed: bool,
    },
}

/// The status of a pod, without what the facts have of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodStatus {
    /// The condition `PodScheduled`; reason and message are in the facts while it is false.
    pub scheduled: Option<bool>,
    /// When the condition `PodScheduled` became as it is, in whole seconds.
    pub scheduled_since_s: u64,
    /// Whether the condition `DisruptionTarget` is there: the pod was evicted.
    pub disruption_target: bool,
    /// `spec.terminationGracePeriodSeconds`; `None`: the default.
    pub grace_s: Option<u64>,
    /// The annotation that tells when the gate of the pod was lifted, which makes each lifting a
    /// change.
    pub planned_at_ms: u64,
    /// `metadata.deletionGracePeriodSeconds` of a pod that is being deleted.
    pub deletion_grace_s: Option<u64>,
    /// `metadata.deletionTimestamp`, in whole seconds: when the grace of the pod ends.
    pub deletion_s: u64,
}

impl Stored {
    /// The key under which the scheduler knows the object.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        self.object.key()
    }
}
