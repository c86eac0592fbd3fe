//! Claims of pods, and what they ask of nodes.
//!
//! What a pod's claims ask is worked out from the objects, and becomes a part of the pod's shape
//! ([`VolumeNeeds`]): so pods whose claims ask alike are one class, and the static filters judge
//! it. It is worked out anew when an object changes that it depends on.
//!
//! Sources: the plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.

mod attachments;
mod choice;
mod limits;
mod needs;
mod open;
mod stock;
mod users;

pub(crate) use open::OpenClaim;

use super::ClusterState;
use super::sets::{put_in, take_out};
use crate::facts::{
    CapacityFacts, ClaimFacts, CsiDriverFacts, CsiNodeFacts, StorageClassFacts, StorageFacts,
    StorageKind, Uid, VolumeFacts,
};
use crate::ids::PodId;
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use attachments::Attachments;
use stock::Stock;

/// A namespace and a name; the namespace is empty for kinds without.
pub(crate) type Named = (Box<str>, Box<str>);

/// A CSI driver, and what tells a volume from others of it.
type Handle = (Box<str>, Box<str>);

/// All objects about volumes.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    claims: BTreeMap<Named, ClaimFacts>,
    volumes: BTreeMap<Box<str>, VolumeFacts>,
    /// The names of the volumes that claims have, or are to get, by claim.
    kept: BTreeMap<Named, BTreeSet<Box<str>>>,
    /// The claims that name each volume as theirs, whether or not there is such a volume.
    named: BTreeMap<Box<str>, BTreeSet<Named>>,
    /// The names of the volumes with each driver and handle.
    of_handle: BTreeMap<Handle, BTreeSet<Box<str>>>,
    stock: Stock,
    classes: BTreeMap<Box<str>, StorageClassFacts>,
    csi_nodes: BTreeMap<Box<str>, CsiNodeFacts>,
    drivers: BTreeMap<Box<str>, CsiDriverFacts>,
    capacities: BTreeMap<Named, CapacityFacts>,
    attachments: Attachments,
    /// The pods that use each claim and have not ended, whether or not there is such a claim.
    users: BTreeMap<Named, BTreeSet<PodId>>,
    /// The drivers that some CSINode limits, each with the number of such CSINodes.
    limited: BTreeMap<Box<str>, u32>,
    /// Claims whose pods may ask for something else now.
    changed: BTreeSet<Named>,
    /// StorageClasses whose claims may ask for something else now.
    classes_changed: BTreeSet<Box<str>>,
    /// StorageClasses whose claims without a volume may get one elsewhere now.
    room_changed: BTreeSet<Box<str>>,
    /// Every claim is to be looked at anew.
    all_changed: bool,
    /// Nodes with another CSINode; and all nodes, if other drivers are limited now.
    nodes_changed: BTreeSet<Box<str>>,
    all_nodes_changed: bool,
}

impl Storage {
    /// The names of all known objects of a kind; disks that pods name themselves are none.
    pub(crate) fn names(&self, kind: StorageKind) -> Vec<Named> {
        let is_object = |name: &str| !name.contains('/');
        let names: Vec<&Box<str>> = match kind {
            StorageKind::Claim => {
                let claims = self.claims.keys().filter(|(_, name)| is_object(name));
                return claims.cloned().collect();
            }
            StorageKind::Capacity => return self.capacities.keys().cloned().collect(),
            StorageKind::Volume => self.volumes.keys().filter(|name| is_object(name)).collect(),
            StorageKind::Class => self.classes.keys().collect(),
            StorageKind::CsiNode => self.csi_nodes.keys().collect(),
            StorageKind::CsiDriver => self.drivers.keys().collect(),
            StorageKind::Attachment => self.attachments.names().collect(),
        };
        let names = names.into_iter();
        names.map(|name| ("".into(), name.clone())).collect()
    }

    /// Whether an object is known just as it is said to be.
    fn knows(&self, facts: &StorageFacts) -> bool {
        let (namespace, name) = facts.name();
        let named = || (namespace.into(), name.into());
        match facts {
            StorageFacts::Claim(facts) => self.claims.get(&named()) == Some(facts),
            StorageFacts::Volume(facts) => self.volumes.get(name) == Some(facts),
            StorageFacts::Class(facts) => self.classes.get(name) == Some(facts),
            StorageFacts::CsiNode(facts) => self.csi_nodes.get(name) == Some(facts),
            StorageFacts::CsiDriver(facts) => self.drivers.get(name) == Some(facts),
            StorageFacts::Capacity(facts) => self.capacities.get(&named()) == Some(facts),
            StorageFacts::Attachment(facts) => self.attachments.get(name) == Some(facts),
        }
    }

    /// Takes the claims whose pods may ask for something else now.
    fn take_changed(&mut self) -> BTreeSet<Named> {
        let mut changed = core::mem::take(&mut self.changed);
        let classes = core::mem::take(&mut self.classes_changed);
        let with_room = core::mem::take(&mut self.room_changed);
        let all = core::mem::take(&mut self.all_changed);
        if !all && classes.is_empty() && with_room.is_empty() {
            return changed;
        }
        let concerns = |claim: &ClaimFacts| {
            classes.contains(&claim.class)
                || (!claim.is_bound() && with_room.contains(&claim.class))
        };
        for name in self.users.keys() {
            if all || self.claims.get(name).is_some_and(concerns) {
                changed.insert(name.clone());
            }
        }
        changed
    }

    /// A claim; `None`: there is none of this name.
    pub(crate) fn claim(&self, name: &Named) -> Option<&ClaimFacts> {
        self.claims.get(name)
    }

    /// A volume; `None`: there is none of this name.
    pub(crate) fn volume(&self, name: &str) -> Option<&VolumeFacts> {
        self.volumes.get(name)
    }

    /// Whether other volumes are free than when that was last worked out.
    pub(crate) fn has_other_free_volumes(&self) -> bool {
        self.stock.is_changed()
    }

    /// Whether pods may ask for something else than was worked out last.
    pub(crate) fn is_changed(&self) -> bool {
        let of_classes = self.classes_changed.is_empty()
            && self.room_changed.is_empty()
            && !self.stock.is_changed();
        let of_nodes = self.nodes_changed.is_empty() && !self.all_nodes_changed;
        self.all_changed || !self.changed.is_empty() || !of_classes || !of_nodes
    }

    /// Whether no pod uses a claim.
    fn is_unused(&self) -> bool {
        self.users.is_empty()
    }

    /// Takes in a claim, or that it is gone.
    fn set_claim(&mut self, name: &Named, facts: Option<ClaimFacts>) {
        self.changed.insert(name.clone());
        let volume = facts.as_ref().and_then(|facts| facts.volume.clone());
        let known = self.claims.get(name).map(|known| known.uid);
        let is_open = |facts: &ClaimFacts| facts.volume.is_none() && Some(facts.uid) == known;
        if !facts.as_ref().is_some_and(is_open)
            && let Some(chosen) = self.stock.chosen_for(name)
        {
            self.unchoose(&Box::from(chosen));
        }
        let before = match facts {
            Some(facts) => self.claims.insert(name.clone(), facts),
            None => self.claims.remove(name),
        };
        if let Some(volume) = before.and_then(|before| before.volume) {
            take_out(&mut self.named, &volume, name);
            self.handle_changed(&volume);
        }
        if let Some(volume) = volume {
            put_in(&mut self.named, volume, name.clone());
        }
    }

    /// Forgets for which claim a volume was chosen.
    fn unchoose(&mut self, volume: &str) {
        self.changed.extend(self.stock.unchoose(volume));
        if let Some(facts) = self.volumes.get(volume) {
            self.stock.return_volume(facts);
        }
    }

    /// Forgets which volumes claims were to get with a pod.
    pub(crate) fn unchoose_with(&mut self, pod: Uid) {
        for volume in self.stock.chosen_with(pod) {
            self.unchoose(&volume);
        }
    }

    /// Notes that other claims may have the volume of a PersistentVolume now.
    fn handle_changed(&mut self, volume: &str) {
        let claims: Vec<Named> = self.named_alike(volume).cloned().collect();
        self.changed.extend(claims);
    }

    /// Takes in a volume, or that it is gone.
    fn set_volume(&mut self, name: &str, facts: Option<VolumeFacts>) {
        let claim_of = |facts: &VolumeFacts| -> Option<Named> {
            let claim = facts.claim.as_ref()?;
            Some((claim.namespace.clone(), claim.name.clone()))
        };
        let claim = facts.as_ref().and_then(claim_of);
        self.nodes_changed.extend(self.attachments.nodes_of(name));
        self.handle_changed(name);
        let before = match facts {
            Some(facts) => self.volumes.insert(name.into(), facts),
            None => self.volumes.remove(name),
        };
        if let Some(csi) = before.as_ref().and_then(|before| before.csi.as_ref()) {
            take_out(&mut self.of_handle, csi, name);
        }
        if let Some(csi) = self.volumes.get(name).and_then(|now| now.csi.clone()) {
            put_in(&mut self.of_handle, csi, name.into());
        }
        self.handle_changed(name);
        let lost = self.stock.change(before.as_ref(), self.volumes.get(name));
        self.changed.extend(lost);
        if let Some(claim) = before.as_ref().and_then(claim_of) {
            take_out(&mut self.kept, &claim, name);
            self.changed.insert(claim);
        }
        let named = self.named.get(name).into_iter().flatten();
        self.changed.extend(named.cloned());
        if let Some(claim) = claim {
            self.changed.insert(claim.clone());
            put_in(&mut self.kept, claim, name.into());
        }
    }
}

impl ClusterState {
    pub(crate) fn apply_storage(&mut self, facts: StorageFacts) {
        let storage = &mut self.storage;
        if storage.knows(&facts) {
            return;
        }
        match facts {
            StorageFacts::Claim(facts) => {
                let name = (facts.namespace.clone(), facts.name.clone());
                storage.set_claim(&name, Some(facts));
            }
            StorageFacts::Volume(facts) => {
                let name = facts.name.clone();
                storage.set_volume(&name, Some(facts));
            }
            StorageFacts::Class(facts) => {
                storage.classes_changed.insert(facts.name.clone());
                storage.classes.insert(facts.name.clone(), facts);
            }
            StorageFacts::CsiNode(facts) => {
                let name = facts.name.clone();
                storage.set_csi_node(&name, Some(facts));
            }
            StorageFacts::CsiDriver(facts) => {
                storage.drivers.insert(facts.name.clone(), facts);
                storage.all_changed = true;
            }
            StorageFacts::Capacity(facts) => {
                storage.room_changed.insert(facts.class.clone());
                let name = (facts.namespace.clone(), facts.name.clone());
                let before = storage.capacities.insert(name, facts);
                storage
                    .room_changed
                    .extend(before.map(|before| before.class));
            }
            StorageFacts::Attachment(facts) => {
                let name = facts.name.clone();
                storage.set_attachment(&name, Some(facts));
            }
        }
    }

    pub(crate) fn delete_storage(&mut self, kind: StorageKind, name: &Named) {
        let storage = &mut self.storage;
        match kind {
            StorageKind::Claim => storage.set_claim(name, None),
            StorageKind::Volume => storage.set_volume(&name.1, None),
            StorageKind::Class => {
                storage.classes.remove(&name.1);
                storage.classes_changed.insert(name.1.clone());
            }
            StorageKind::CsiNode => storage.set_csi_node(&name.1, None),
            StorageKind::CsiDriver => {
                storage.drivers.remove(&name.1);
                storage.all_changed = true;
            }
            StorageKind::Capacity => {
                let before = storage.capacities.remove(name);
                storage
                    .room_changed
                    .extend(before.map(|before| before.class));
            }
            StorageKind::Attachment => storage.set_attachment(&name.1, None),
        }
    }
}
