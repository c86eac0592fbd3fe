//! Claims and volumes of a small world, in few words.

use crate::Sketch;
use gpu_batch_policies::facts::{
    AccessModes, AttachmentFacts, CapacityFacts, ClaimFacts, ClaimReference, ClaimUse,
    CsiDriverFacts, CsiNodeFacts, LabelSelector, MatchOperator, MatchRequirement, NodeSelectorTerm,
    PodFacts, StorageClassFacts, Uid, VolumeFacts,
};

/// The driver of every class, unless a sketch says otherwise.
pub const DRIVER: &str = "disks.example.com";

/// Bytes of a GiB.
const GIB: u64 = 1 << 30;

/// Claims of a class that have no volume, of 1 GiB each, for pods of one node.
#[must_use]
pub fn claim(names: &str, class: &str) -> Sketch<ClaimFacts> {
    Sketch::each(names, |name| ClaimFacts {
        uid: claim_uid(name),
        class: class.into(),
        size: Some(GIB),
        ..ClaimFacts::new("default", name)
    })
}

/// The UID of the claim of a name.
fn claim_uid(name: &str) -> Uid {
    let number = name.bytes().fold(0, |number: u64, byte| {
        number.wrapping_mul(257).wrapping_add(byte.into())
    });
    Uid(6 << 64 | u128::from(number))
}

/// Volumes of so many GiB without a class, which no claim has and every node reaches.
#[must_use]
pub fn volume(names: &str, gib: u64) -> Sketch<VolumeFacts> {
    Sketch::each(names, |name| VolumeFacts::new(name, gib * GIB))
}

/// Classes whose volumes are made where a pod is to be.
#[must_use]
pub fn storage_class(names: &str) -> Sketch<StorageClassFacts> {
    Sketch::each(names, |name| StorageClassFacts {
        name: name.into(),
        provisioner: DRIVER.into(),
        waits: true,
        topologies: None,
    })
}

/// The CSINodes of nodes to which so many volumes of [`DRIVER`] can be attached.
#[must_use]
pub fn csi_node(names: &str, limit: u32) -> Sketch<CsiNodeFacts> {
    Sketch::each(names, |name| CsiNodeFacts {
        name: name.into(),
        drivers: vec![(DRIVER.into(), Some(limit))],
        migrated: Vec::new(),
    })
}

/// VolumeAttachments of [`DRIVER`] that attach a volume to a node.
#[must_use]
pub fn attachment(names: &str, volume: &str, node: &str) -> Sketch<AttachmentFacts> {
    Sketch::each(names, |name| AttachmentFacts {
        name: name.into(),
        driver: DRIVER.into(),
        node: node.into(),
        volume: Some(volume.into()),
    })
}

/// The CSIDriver of [`DRIVER`], which tells where it has room.
#[must_use]
pub fn csi_driver() -> Sketch<CsiDriverFacts> {
    Sketch::each(DRIVER, |name| CsiDriverFacts {
        name: name.into(),
        tells_capacity: true,
    })
}

/// Room for volumes of a class of up to so many GiB, which every node reaches.
#[must_use]
pub fn capacity(names: &str, class: &str, gib: u64) -> Sketch<CapacityFacts> {
    Sketch::each(names, |name| CapacityFacts {
        namespace: "default".into(),
        name: name.into(),
        class: class.into(),
        largest: Some(gib * GIB),
        nodes: Some(LabelSelector::default()),
    })
}

/// A term that selects nodes with this label.
fn labelled(key: &str, value: &str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: vec![MatchRequirement {
            key: key.into(),
            operator: MatchOperator::In,
            values: vec![value.into()],
        }],
        match_fields: Vec::new(),
    }
}

impl Sketch<ClaimFacts> {
    /// Binds the claims to this volume.
    #[must_use]
    pub fn bound_to(self, volume: &str) -> Self {
        self.with(|claim| {
            claim.volume = Some(volume.into());
            claim.bind_completed = true;
        })
    }

    /// Lets one pod alone use each claim.
    #[must_use]
    pub fn for_one_pod(self) -> Self {
        self.with(|claim| claim.access = AccessModes::ONE_POD)
    }

    /// Lets the claims ask for so many GiB.
    #[must_use]
    pub fn of_gib(self, gib: u64) -> Self {
        self.with(|claim| claim.size = Some(gib * GIB))
    }
}

impl Sketch<VolumeFacts> {
    /// Lets only nodes with this label reach the volumes, or with one of several if it is said
    /// again.
    #[must_use]
    pub fn reached_from(self, key: &str, value: &str) -> Self {
        self.with(|volume| {
            let terms = volume.affinity.get_or_insert_default();
            terms.push(labelled(key, value));
        })
    }

    /// Gives the volumes a class.
    #[must_use]
    pub fn of_class(self, class: &str) -> Self {
        self.with(|volume| volume.class = class.into())
    }

    /// Gives the volumes to the claim of this name.
    #[must_use]
    pub fn of_claim(self, claim: &str) -> Self {
        self.with(|volume| {
            volume.is_available = false;
            volume.claim = Some(ClaimReference {
                namespace: "default".into(),
                name: claim.into(),
                uid: Some(claim_uid(claim)),
            });
        })
    }

    /// Lets [`DRIVER`] attach the volumes.
    #[must_use]
    pub fn attached(self) -> Self {
        self.with(|volume| volume.csi = Some((DRIVER.into(), volume.name.clone())))
    }
}

impl Sketch<StorageClassFacts> {
    /// Lets volumes be made as soon as there is a claim.
    #[must_use]
    pub fn at_once(self) -> Self {
        self.with(|class| class.waits = false)
    }

    /// Lets volumes be made by hand alone.
    #[must_use]
    pub fn by_hand(self) -> Self {
        self.with(|class| class.provisioner = "kubernetes.io/no-provisioner".into())
    }

    /// Lets volumes be made only where nodes have this label, or one of several if it is said
    /// again.
    #[must_use]
    pub fn made_in(self, key: &str, value: &str) -> Self {
        self.with(|class| {
            let terms = class.topologies.get_or_insert_default();
            terms.push(labelled(key, value));
        })
    }
}

impl Sketch<CapacityFacts> {
    /// Lets only nodes with this label reach the room.
    #[must_use]
    pub fn reached_from(self, key: &str, value: &str) -> Self {
        self.with(|capacity| {
            let nodes = capacity.nodes.get_or_insert_default();
            nodes.match_labels.push((key.into(), value.into()));
            nodes.match_labels.sort();
        })
    }
}

impl Sketch<PodFacts> {
    /// Lets the pods use these claims.
    #[must_use]
    pub fn claims(self, claims: &str) -> Self {
        self.with(|pod| {
            let claims = claims.split_whitespace().map(|claim| ClaimUse {
                name: claim.into(),
                is_ephemeral: false,
            });
            pod.claims.extend(claims);
            pod.claims.sort();
        })
    }

    /// Gives each pod an ephemeral volume of this name, whose claim is `POD-VOLUME`.
    #[must_use]
    pub fn ephemeral(self, volume: &str) -> Self {
        self.with(|pod| {
            pod.claims.push(ClaimUse {
                name: format!("{}-{volume}", pod.name).into(),
                is_ephemeral: true,
            });
            pod.claims.sort();
        })
    }
}
