//! Requests to the API server, and its answers.

use gpu_batch_policies::command::{Announcement, Bind, Evict, StatusPatch};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::lease::{LeaseRequest, LeaseSeen};
use gpu_batch_policies::status::{PodGroupStatus, QueueStatus};
use std::sync::Arc;

/// The `resourceVersion` of an object or of a list: the store's revision at which it was written.
pub type Version = u64;

/// Names an object the way a URL does: another object may have the name tomorrow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The kind.
    pub kind: Kind,
    /// Empty for kinds without namespaces.
    pub namespace: Box<str>,
    /// The name.
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

/// One request. Whether it gets there, and how often, is not the API server's business.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// POST. The API server sets UID, creation time, generation and version, whatever the object
    /// says, and clears the status of kinds whose status is a subresource (a node keeps its own: a
    /// kubelet registers with it).
    Create(Object),
    /// PUT. The status stays as it is.
    Replace {
        /// The new object; its UID is a precondition.
        object: Object,
        /// The version that must be there. `None`: any, where the kind allows that.
        version: Option<Version>,
    },
    /// PUT of the subresource `status` of a pod or a node, as kubelets do; the rest stays.
    ReplaceStatus {
        /// Carries the new status; its UID is a precondition.
        object: Object,
        /// The version that must be there. `None`: any.
        version: Option<Version>,
    },
    /// DELETE.
    Delete {
        /// Which.
        name: Name,
        /// Preconditions.
        expected: Expected,
        /// `gracePeriodSeconds`; `None`: the pod's own. Only pods have any.
        grace_s: Option<u64>,
    },
    /// GET, as a quorum read.
    Get(Name),
    /// GET of all objects of a kind.
    List {
        /// The kind.
        kind: Kind,
        /// `None`: as they are now, a quorum read. A version: as they were then, which is what an
        /// API server whose watch cache lags answers from (`resourceVersionMatch=Exact` asks for
        /// it on purpose).
        at: Option<Version>,
    },
    /// The changes of a kind since a version, up to now. Each watcher asks from its own place, so
    /// there may be any number of them.
    Watch {
        /// The kind.
        kind: Kind,
        /// The version of the list, or of the last change that was seen.
        after: Version,
    },
    /// POST of `pods/binding`.
    Bind(Bind),
    /// POST of `pods/eviction`.
    Evict(Evict),
    /// PATCH of a status, as the scheduler writes it.
    PatchStatus(StatusPatch),
    /// The scheduler's lease.
    Lease(LeaseRequest),
    /// POST of a Kubernetes event.
    Publish(Announcement),
}

/// Preconditions of a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// The UID that the object must have.
    pub uid: Option<Uid>,
    /// The version that it must have.
    pub version: Option<Version>,
}

/// What the API server says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// 201 with the object as it was stored.
    Created(Arc<Stored>),
    /// 200 with the object as it is now.
    Found(Arc<Stored>),
    /// 200 or 201 with nothing but the word that it was done.
    Done,
    /// A list.
    Listed {
        /// The moment that it shows, and where to watch from.
        version: Version,
        /// The objects, by namespace and name.
        objects: Vec<Arc<Stored>>,
    },
    /// What a watch has to say.
    Changes {
        /// In the order of their versions.
        changes: Vec<Change>,
        /// A bookmark: nothing else has happened up to here.
        version: Version,
    },
    /// The lease as it is now.
    Lease(LeaseSeen),
    /// 404.
    NotFound,
    /// 409 with the reason `AlreadyExists`.
    AlreadyExists,
    /// 409 with the reason `Conflict`.
    Conflict(Conflict),
    /// 410: what happened since then is not known any more.
    Gone,
    /// 422, or 400.
    Invalid(&'static str),
    /// 429.
    TooManyRequests {
        /// `Retry-After`, in seconds.
        retry_after_s: u64,
        /// The cause is `DisruptionBudget`: not flow control.
        by_budget: bool,
    },
    /// 500.
    InternalError(&'static str),
    /// 504 with the cause `ResourceVersionTooLarge`: a version that is still to come.
    TooLarge,
}

/// Why a request conflicts with what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The version is another one.
    Version,
    /// The UID is another one: the object was deleted and created again.
    Uid,
    /// The pod has a node already, maybe this very one.
    AlreadyBound,
    /// The pod is being deleted.
    BeingDeleted,
    /// The pod has scheduling gates.
    Gated,
}

/// One change of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub sort: Sort,
    /// The object after the change; of a deletion the last state, with the version of the
    /// deletion.
    pub object: Arc<Stored>,
}

/// What a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The object was created.
    Added,
    /// It was changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// An object in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The object as schedulers see it.
    pub object: Object,
    /// Its version.
    pub version: Version,
    /// Its status, at which schedulers do not look.
    pub status: Status,
}

/// Those parts of an object that the facts of a scheduler leave out.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// None.
    Nothing,
    /// Of a PodGroup; `None`: never written. Of a native one only the condition counts, the rest
    /// is as by default.
    PodGroup(Option<PodGroupStatus>),
    /// Of a queue.
    Queue(Option<QueueStatus>),
    /// Of a pod.
    Pod(PodStatus),
}

/// Of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodStatus {
    /// The condition `PodScheduled`; reason and message are in the facts while it is false.
    pub scheduled: Option<bool>,
    /// When that condition became as it is, in whole seconds.
    pub scheduled_since_s: u64,
    /// The condition `DisruptionTarget` is there: somebody evicts the pod.
    pub disruption_target: bool,
    /// `metadata.deletionGracePeriodSeconds` of a pod that is being deleted.
    pub deletion_grace_s: Option<u64>,
    /// `metadata.deletionTimestamp`, in whole seconds: when its grace ends.
    pub deletion_s: u64,
}

impl Stored {
    /// The key under which the scheduler knows the object.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        match &self.object {
            Object::Node(facts) => ObjectKey::Node(facts.name.clone(), facts.uid),
            Object::Pod(facts) => ObjectKey::Pod(facts.uid),
            Object::Queue(facts) => ObjectKey::Queue(facts.name.clone()),
            Object::PodGroup(facts) => {
                let (namespace, name) = (facts.namespace.clone(), facts.name.clone());
                ObjectKey::PodGroup(facts.source, namespace, name)
            }
            Object::Topology(facts) => ObjectKey::Topology(facts.name.clone()),
            Object::PriorityClass(facts) => ObjectKey::PriorityClass(facts.name.clone()),
            Object::Namespace(facts) => ObjectKey::Namespace(facts.name.clone()),
            Object::Job(facts) => ObjectKey::Job(facts.uid),
        }
    }
}
