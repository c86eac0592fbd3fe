//! Claims, volumes, and what says where there can be volumes.

use super::{Amount, LabelSelector, Labels, NodeSelectorTerm, Uid};
use alloc::{boxed::Box, format, vec::Vec};

/// A use of a PersistentVolumeClaim by a pod, or of a disk that the pod names itself and that a CSI
/// driver attaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimUse {
    /// The name of the claim, in the pod's namespace; of a disk, the driver and the handle with a
    /// slash between them, which no name of a claim has; both empty if no driver understands it.
    pub name: Box<str>,
    /// The claim is made for this pod alone (`ephemeral`), and counts only if the pod controls it.
    pub is_ephemeral: bool,
}

impl ClaimUse {
    /// The driver and the handle of a disk that the pod names itself; `None`: it is a claim.
    #[must_use]
    pub fn disk(&self) -> Option<(&str, &str)> {
        self.name.split_once('/')
    }

    /// Whether the pod names a disk that no driver understands although one has taken its kind
    /// over: neither its driver nor its handle is known.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        &*self.name == "/"
    }
}

/// The label by which the engine knows a node whose CSINode is [`CsiNodeFacts::migrated`] for a
/// kind of volumes. No node in a cluster has it.
#[must_use]
pub fn migrated_label(kind: &str) -> Box<str> {
    let (_, name) = kind.rsplit_once('/').unwrap_or(("", kind));
    format!("{MIGRATED_PREFIX}{name}").into()
}

/// What each [`migrated_label`] begins with.
pub(crate) const MIGRATED_PREFIX: &str = "migrated-plugins.storage.alpha.kubernetes.io/";

/// The kinds of objects that say where there are, or can be, volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageKind {
    /// PersistentVolumeClaims.
    Claim,
    /// PersistentVolumes.
    Volume,
    /// StorageClasses of `storage.k8s.io`.
    Class,
    /// CSINodes of `storage.k8s.io`.
    CsiNode,
    /// CSIDrivers of `storage.k8s.io`.
    CsiDriver,
    /// CSIStorageCapacities of `storage.k8s.io`.
    Capacity,
    /// VolumeAttachments of `storage.k8s.io`.
    Attachment,
}

impl StorageKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Class,
        Self::CsiDriver,
        Self::CsiNode,
        Self::Capacity,
        Self::Volume,
        Self::Claim,
        Self::Attachment,
    ];
}

/// An object of a [`StorageKind`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageFacts {
    /// A PersistentVolumeClaim.
    Claim(ClaimFacts),
    /// A PersistentVolume.
    Volume(VolumeFacts),
    /// A StorageClass.
    Class(StorageClassFacts),
    /// A CSINode.
    CsiNode(CsiNodeFacts),
    /// A CSIDriver.
    CsiDriver(CsiDriverFacts),
    /// A CSIStorageCapacity.
    Capacity(CapacityFacts),
    /// A VolumeAttachment.
    Attachment(AttachmentFacts),
}

impl StorageFacts {
    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> StorageKind {
        match self {
            Self::Claim(_) => StorageKind::Claim,
            Self::Volume(_) => StorageKind::Volume,
            Self::Class(_) => StorageKind::Class,
            Self::CsiNode(_) => StorageKind::CsiNode,
            Self::CsiDriver(_) => StorageKind::CsiDriver,
            Self::Capacity(_) => StorageKind::Capacity,
            Self::Attachment(_) => StorageKind::Attachment,
        }
    }

    /// `metadata.namespace`, empty for kinds without namespaces, and `metadata.name`.
    #[must_use]
    pub fn name(&self) -> (&str, &str) {
        match self {
            Self::Claim(claim) => (&claim.namespace, &claim.name),
            Self::Volume(volume) => ("", &volume.name),
            Self::Class(class) => ("", &class.name),
            Self::CsiNode(node) => ("", &node.name),
            Self::CsiDriver(driver) => ("", &driver.name),
            Self::Capacity(capacity) => (&capacity.namespace, &capacity.name),
            Self::Attachment(attachment) => ("", &attachment.name),
        }
    }

    /// `metadata.uid` of a claim; `None`: of an object of another kind, of which nothing depends on
    /// the UID.
    #[must_use]
    pub fn uid(&self) -> Option<Uid> {
        match self {
            Self::Claim(claim) => Some(claim.uid),
            _ => None,
        }
    }
}

/// How pods may use a volume, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessModes(pub u8);

impl AccessModes {
    /// `ReadWriteOnce`: pods of one node.
    pub const ONE_NODE: Self = Self(1);
    /// `ReadOnlyMany`.
    pub const READ_ONLY: Self = Self(2);
    /// `ReadWriteMany`.
    pub const MANY: Self = Self(4);
    /// `ReadWriteOncePod`: one pod.
    pub const ONE_POD: Self = Self(8);

    /// Whether all of the other modes are among these.
    #[must_use]
    pub fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// A PersistentVolumeClaim as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Uid,
    /// The storage class, from the annotation `volume.beta.kubernetes.io/storage-class` or
    /// `spec.storageClassName`; empty: none.
    pub class: Box<str>,
    /// `spec.volumeName`.
    pub volume: Option<Box<str>>,
    /// The annotation `pv.kubernetes.io/bind-completed`: with a volume, the claim is bound.
    pub bind_completed: bool,
    /// `status.phase` is `Lost`: the volume of the claim is gone.
    pub is_lost: bool,
    /// The claim is being deleted.
    pub is_deleting: bool,
    /// `spec.resources.requests.storage`, in bytes; `None`: not said.
    pub size: Option<Amount>,
    /// `spec.accessModes`.
    pub access: AccessModes,
    /// `spec.volumeMode` is `Block`.
    pub is_block: bool,
    /// `spec.selector`, which volumes must match; `None`: all do.
    pub selector: Option<LabelSelector>,
    /// `spec.volumeAttributesClassName`; empty: none.
    pub attributes_class: Box<str>,
    /// The annotation `volume.kubernetes.io/selected-node`: where a volume is to be made.
    pub selected_node: Option<Box<str>>,
    /// The pod that controls the claim, which was made for it.
    pub pod: Option<Uid>,
}

impl ClaimFacts {
    /// A claim without a volume for pods of one node, with nothing else set: it asks for no size
    /// and no class, and its UID is 0.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            uid: Uid(0),
            class: "".into(),
            volume: None,
            bind_completed: false,
            is_lost: false,
            is_deleting: false,
            size: None,
            access: AccessModes::ONE_NODE,
            is_block: false,
            selector: None,
            attributes_class: "".into(),
            selected_node: None,
            pod: None,
        }
    }

    /// Whether the claim has its volume for good.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.volume.is_some() && self.bind_completed
    }

    /// `spec.claimRef` of a volume of the claim.
    #[must_use]
    pub fn reference(&self) -> ClaimReference {
        ClaimReference {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: Some(self.uid),
        }
    }

    /// Does what Kubernetes does once a volume is kept for the claim: binds the two.
    pub fn bind_to(&mut self, volume: &mut VolumeFacts) {
        (volume.claim, volume.is_available) = (Some(self.reference()), false);
        (self.volume, self.bind_completed) = (Some(volume.name.clone()), true);
    }

    /// Does what a provisioner does for a claim without a volume for which a node was selected:
    /// makes a volume, which every node reaches, and binds the claim to it. `None`: the claim has a
    /// volume, or no node.
    pub fn provision(&mut self) -> Option<VolumeFacts> {
        if self.selected_node.is_none() || self.volume.is_some() {
            return None;
        }
        let name = format!("pvc-{}", self.uid);
        let mut volume = VolumeFacts {
            class: self.class.clone(),
            access: self.access,
            is_block: self.is_block,
            attributes_class: self.attributes_class.clone(),
            ..VolumeFacts::new(&name, self.size.unwrap_or(0))
        };
        self.bind_to(&mut volume);
        Some(volume)
    }
}

/// A PersistentVolume as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.resourceVersion`, a precondition of requests about the volume; empty in files.
    pub version: Box<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `spec.nodeAffinity.required`: one of the terms must hold. `None`: every node does.
    pub affinity: Option<Vec<NodeSelectorTerm>>,
    /// The terms that hold instead once a claim has the volume, where a source from before CSI
    /// makes a difference; they may ask for a [`migrated_label`]. `None`: the same.
    pub affinity_once_bound: Option<Vec<NodeSelectorTerm>>,
    /// `spec.claimRef`: the claim that has the volume, or is to get it; `None`: none.
    pub claim: Option<ClaimReference>,
    /// The storage class, from the annotation or the field; empty: none.
    pub class: Box<str>,
    /// `spec.capacity.storage`, in bytes.
    pub size: Amount,
    /// `spec.accessModes`.
    pub access: AccessModes,
    /// `spec.volumeMode` is `Block`.
    pub is_block: bool,
    /// `spec.volumeAttributesClassName`; empty: none.
    pub attributes_class: Box<str>,
    /// `status.phase` is `Available`.
    pub is_available: bool,
    /// The volume is being deleted.
    pub is_deleting: bool,
    /// `spec.csi`: driver and handle, or those of the CSI driver that has taken over a source from
    /// before CSI; `None`: a source of which no node counts attachments.
    pub csi: Option<(Box<str>, Box<str>)>,
    /// The volume has a source from before CSI. Its VolumeAttachments are not counted.
    pub is_in_tree: bool,
}

impl VolumeFacts {
    /// A free volume of this size in bytes for pods of one node, with nothing else set: it has no
    /// class, and every node reaches it.
    #[must_use]
    pub fn new(name: &str, size: Amount) -> Self {
        Self {
            name: name.into(),
            version: "".into(),
            labels: Labels::new(),
            affinity: None,
            affinity_once_bound: None,
            claim: None,
            class: "".into(),
            size,
            access: AccessModes::ONE_NODE,
            is_block: false,
            attributes_class: "".into(),
            is_available: true,
            is_deleting: false,
            csi: None,
            is_in_tree: false,
        }
    }

    /// Keeps the volume for a claim, of which the facts are given where they are known, and does
    /// what Kubernetes does then: binds the two. Returns the objects as they are now.
    pub fn keep(
        &mut self,
        reference: Option<ClaimReference>,
        claim: Option<&mut ClaimFacts>,
    ) -> Vec<StorageFacts> {
        self.claim = reference;
        let claim = claim.map(|claim| {
            claim.bind_to(self);
            StorageFacts::Claim(claim.clone())
        });
        let mut now: Vec<_> = claim.into_iter().collect();
        now.push(StorageFacts::Volume(self.clone()));
        now
    }
}

/// `spec.claimRef` of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimReference {
    /// `namespace`.
    pub namespace: Box<str>,
    /// `name`.
    pub name: Box<str>,
    /// `uid`; `None`: any claim of the name.
    pub uid: Option<Uid>,
}

/// A StorageClass as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageClassFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `provisioner`; `kubernetes.io/no-provisioner`: volumes are made by hand.
    pub provisioner: Box<str>,
    /// `volumeBindingMode` is `WaitForFirstConsumer`: a claim gets its volume where its first pod
    /// is to be.
    pub waits: bool,
    /// `allowedTopologies`: one of the terms must hold of a node where a volume is made. `None`:
    /// every node will do.
    pub topologies: Option<Vec<NodeSelectorTerm>>,
}

/// A CSINode as it was last seen: how many volumes can be attached to a node, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiNodeFacts {
    /// `metadata.name`: that of the node.
    pub name: Box<str>,
    /// The drivers on the node, by name, each with `allocatable.count`; `None`: no limit.
    pub drivers: Vec<(Box<str>, Option<u32>)>,
    /// The annotation `storage.alpha.kubernetes.io/migrated-plugins`: the kinds of volumes from
    /// before CSI that the node leaves to CSI drivers, such as `kubernetes.io/aws-ebs`, as far as
    /// that says where volumes are.
    pub migrated: Vec<Box<str>>,
}

/// A VolumeAttachment as it was last seen: a volume is attached to a node, or is to be, or has not
/// been detached yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.attacher`: the CSI driver.
    pub driver: Box<str>,
    /// `spec.nodeName`.
    pub node: Box<str>,
    /// `spec.source.persistentVolumeName`; `None`: a volume that no PersistentVolume stands for.
    pub volume: Option<Box<str>>,
}

/// A CSIDriver as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiDriverFacts {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.storageCapacity`: CSIStorageCapacities say where there is room for new volumes.
    pub tells_capacity: bool,
}

/// A CSIStorageCapacity as it was last seen: how much room for new volumes of a class some nodes
/// have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityFacts {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `storageClassName`.
    pub class: Box<str>,
    /// The largest volume that can be made: `maximumVolumeSize`, else `capacity`, in bytes; `None`:
    /// not said, so none can.
    pub largest: Option<Amount>,
    /// `nodeTopology`: which nodes reach it; `None`: none does.
    pub nodes: Option<LabelSelector>,
}

/// What the claims of a pod ask of nodes, as the engine has worked it out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct VolumeNeeds {
    /// Why the pod can be on no node now, as a sentence without the final point; `None`: nothing is
    /// missing.
    pub missing: Option<Box<str>>,
    /// Where the volumes are, or can be: a node must be among all of these. Sorted, each once.
    pub places: Vec<VolumePlaces>,
    /// The zones of volumes. Sorted, each once.
    pub zones: Vec<ZoneLabel>,
    /// The volumes that other pods use, too, as far as nodes limit how many are attached: on each
    /// node such a volume counts once. They are among what the pod requests. Sorted, each once.
    pub shared: Vec<SharedVolume>,
}

/// A volume that several pods use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedVolume {
    /// The CSI driver.
    pub driver: Box<str>,
    /// What tells the volume from others of the driver.
    pub handle: Box<str>,
}

/// Where a volume is, or can be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumePlaces {
    /// There is a volume; else one would have to be found or made.
    pub is_bound: bool,
    /// The name of the node that was selected for the volume, which is to be made there; `None`:
    /// none was.
    pub only_on: Option<Box<str>>,
    /// Alternatives, of which one must hold. In each, one term of each list must hold; one without
    /// lists holds of every node.
    pub any_of: Vec<Vec<Vec<NodeSelectorTerm>>>,
}

/// A zone or region of a volume: a node in any zone or region must be in one of these.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneLabel {
    /// The label, one of [`ZONE_LABELS`].
    pub key: Box<str>,
    /// The zones or regions, sorted.
    pub values: Vec<Box<str>>,
}

/// The labels of a volume that say in which zones and regions it is.
pub const ZONE_LABELS: [&str; 4] = [
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];
