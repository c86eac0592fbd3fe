//! Claims of pods, and what they ask of nodes.
//!
//! What a pod's claims ask is worked out from the objects, and becomes a part of the pod's shape
//! ([`VolumeNeeds`]): so pods whose claims ask alike are one class, and the static filters judge
//! it. It is worked out anew when an object changes that it depends on.
//!
//! How many volumes of a driver can be attached to a node is an amount, as CPU is: nodes have it,
//! and each volume takes one. A volume that several pods of a node share counts once for each,
//! which is more than kube-scheduler counts. Only drivers that some CSINode limits are counted; on
//! all other nodes such a driver is not limited.
//!
//! Sources: the plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.

mod needs;

use super::ClusterState;
use super::pod::{Pod, Stage};
use crate::facts::{
    Amount, Amounts, CapacityFacts, ClaimFacts, ClaimUse, CsiDriverFacts, CsiNodeFacts, PodShape,
    StorageClassFacts, StorageFacts, StorageKind, Uid, UnixMs, VolumeFacts,
};
use crate::filter;
use crate::ids::{NodeId, PodId};
use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};

/// A namespace and a name; the namespace is empty for kinds without.
pub(crate) type Named = (Box<str>, Box<str>);

/// What the names of amounts begin with that count attached volumes; the name of the driver follows.
const ATTACHED: &str = "attachable-volumes-csi-";

/// How many volumes can be attached to a node that does not limit it.
const UNLIMITED: Amount = 1 << 40;

/// A claim whose volume is not ready yet.
#[derive(Debug)]
pub(crate) struct OpenClaim {
    pub(crate) name: Named,
    pub(crate) uid: Uid,
    /// A volume was chosen or made, and is being bound.
    pub(crate) has_volume: bool,
    /// The claim was told the node on which its pod has a place, or a volume is kept for it.
    pub(crate) is_selected: bool,
}

/// All objects about volumes.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    claims: BTreeMap<Named, ClaimFacts>,
    volumes: BTreeMap<Box<str>, VolumeFacts>,
    /// The names of the volumes that claims have, or are to get, by claim.
    kept: BTreeMap<Named, BTreeSet<Box<str>>>,
    classes: BTreeMap<Box<str>, StorageClassFacts>,
    csi_nodes: BTreeMap<Box<str>, CsiNodeFacts>,
    drivers: BTreeMap<Box<str>, CsiDriverFacts>,
    capacities: BTreeMap<Named, CapacityFacts>,
    /// The pods that use each claim and have not ended, whether or not there is such a claim.
    users: BTreeMap<Named, BTreeSet<PodId>>,
    /// The drivers that some CSINode limits, each with the number of such CSINodes.
    limited: BTreeMap<Box<str>, u32>,
    /// Claims whose pods may ask for something else now.
    changed: BTreeSet<Named>,
    /// Every claim is to be looked at anew.
    all_changed: bool,
    /// Nodes with another CSINode; and all nodes, if other drivers are limited now.
    nodes_changed: BTreeSet<Box<str>>,
    all_nodes_changed: bool,
}

impl Storage {
    /// The names of all known objects of a kind.
    pub(crate) fn names(&self, kind: StorageKind) -> Vec<Named> {
        let plain = |name: &Box<str>| ("".into(), name.clone());
        match kind {
            StorageKind::Claim => self.claims.keys().cloned().collect(),
            StorageKind::Capacity => self.capacities.keys().cloned().collect(),
            StorageKind::Volume => self.volumes.keys().map(plain).collect(),
            StorageKind::Class => self.classes.keys().map(plain).collect(),
            StorageKind::CsiNode => self.csi_nodes.keys().map(plain).collect(),
            StorageKind::CsiDriver => self.drivers.keys().map(plain).collect(),
        }
    }

    /// A claim; `None`: there is none of this name.
    pub(crate) fn claim(&self, name: &Named) -> Option<&ClaimFacts> {
        self.claims.get(name)
    }

    /// Whether no pod uses a claim.
    fn is_unused(&self) -> bool {
        self.users.is_empty()
    }

    /// Takes in a volume, or that it is gone.
    fn set_volume(&mut self, name: &str, facts: Option<VolumeFacts>) {
        let claim_of = |facts: &VolumeFacts| -> Option<Named> {
            let claim = facts.claim.as_ref()?;
            Some((claim.namespace.clone(), claim.name.clone()))
        };
        let claim = facts.as_ref().and_then(claim_of);
        let before = match facts {
            Some(facts) => self.volumes.insert(name.into(), facts),
            None => self.volumes.remove(name),
        };
        if let Some(claim) = before.as_ref().and_then(claim_of) {
            self.changed.insert(claim.clone());
            if let Some(kept) = self.kept.get_mut(&claim) {
                kept.remove(name);
                if kept.is_empty() {
                    self.kept.remove(&claim);
                }
            }
        }
        if let Some(claim) = claim {
            self.changed.insert(claim.clone());
            self.kept.entry(claim).or_default().insert(name.into());
        }
    }

    /// Notes that unbound claims of a class may get volumes elsewhere.
    fn class_changed(&mut self, class: &str) {
        for name in self.users.keys() {
            let claim = self.claims.get(name);
            if claim.is_some_and(|claim| *claim.class == *class && !claim.bind_completed) {
                self.changed.insert(name.clone());
            }
        }
    }

    /// Takes in the CSINode of a node, which replaces another.
    fn set_csi_node(&mut self, name: &str, facts: Option<CsiNodeFacts>) {
        let limited = |facts: Option<&CsiNodeFacts>| -> BTreeSet<Box<str>> {
            let drivers = facts.into_iter().flat_map(|facts| &facts.drivers);
            let drivers = drivers.filter(|(_, limit)| limit.is_some());
            drivers.map(|(driver, _)| driver.clone()).collect()
        };
        let now = limited(facts.as_ref());
        let before = match facts {
            Some(facts) => self.csi_nodes.insert(name.into(), facts),
            None => self.csi_nodes.remove(name),
        };
        let before = limited(before.as_ref());
        for driver in now.difference(&before) {
            let nodes = self.limited.entry(driver.clone()).or_default();
            *nodes += 1;
            self.all_nodes_changed |= *nodes == 1;
        }
        for driver in before.difference(&now) {
            if let Some(nodes) = self.limited.get_mut(driver) {
                *nodes -= 1;
                if *nodes == 0 {
                    self.limited.remove(driver);
                    self.all_nodes_changed = true;
                }
            }
        }
        self.all_changed |= self.all_nodes_changed;
        self.nodes_changed.insert(name.into());
    }

    /// Adds to what a node has how many volumes of each limited driver can be attached to it.
    pub(super) fn add_limits(&self, node: &str, allocatable: &mut Amounts) {
        let of_node = self.csi_nodes.get(node);
        for driver in self.limited.keys() {
            let drivers = of_node.into_iter().flat_map(|facts| &facts.drivers);
            let mut limits = drivers.filter(|(name, _)| name == driver);
            let limit = limits.find_map(|(_, limit)| *limit);
            let limit = limit.map_or(UNLIMITED, Amount::from);
            allocatable.push((format!("{ATTACHED}{driver}").into(), limit));
        }
        allocatable.sort();
    }
}

/// Takes from amounts those that [`Storage::add_limits`] or a pod's claims have added.
fn without_limits(amounts: &mut Amounts) {
    amounts.retain(|(name, _)| !name.starts_with(ATTACHED));
}

impl ClusterState {
    pub(crate) fn apply_storage(&mut self, facts: StorageFacts) {
        let storage = &mut self.storage;
        match facts {
            StorageFacts::Claim(facts) => {
                let name = (facts.namespace.clone(), facts.name.clone());
                storage.changed.insert(name.clone());
                storage.claims.insert(name, facts);
            }
            StorageFacts::Volume(facts) => {
                let name = facts.name.clone();
                storage.set_volume(&name, Some(facts));
            }
            StorageFacts::Class(facts) => {
                let name = facts.name.clone();
                storage.classes.insert(name.clone(), facts);
                storage.class_changed(&name);
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
                let class = facts.class.clone();
                let name = (facts.namespace.clone(), facts.name.clone());
                storage.capacities.insert(name, facts);
                storage.class_changed(&class);
            }
        }
    }

    pub(crate) fn delete_storage(&mut self, kind: StorageKind, name: &Named) {
        let storage = &mut self.storage;
        match kind {
            StorageKind::Claim => {
                storage.claims.remove(name);
                storage.changed.insert(name.clone());
            }
            StorageKind::Volume => storage.set_volume(&name.1, None),
            StorageKind::Class => {
                storage.classes.remove(&name.1);
                storage.class_changed(&name.1);
            }
            StorageKind::CsiNode => storage.set_csi_node(&name.1, None),
            StorageKind::CsiDriver => {
                storage.drivers.remove(&name.1);
                storage.all_changed = true;
            }
            StorageKind::Capacity => {
                if let Some(before) = storage.capacities.remove(name) {
                    storage.class_changed(&before.class);
                }
            }
        }
    }

    /// Notes which claims a pod uses that has come or changed.
    pub(super) fn note_claims(&mut self, pod: PodId, claims: &[ClaimUse]) {
        let record = &mut self.pods[pod];
        let ended = matches!(record.stage, Stage::Ended { .. });
        let claims = if ended { &[] } else { claims };
        let before = match claims.is_empty() {
            true => record.claims.take(),
            false => record.claims.replace(Box::new(claims.to_vec())),
        };
        if before.is_none() && claims.is_empty() {
            return;
        }
        let namespace = record.namespace.clone();
        let named = |claim: &ClaimUse| (namespace.clone(), claim.name.clone());
        for claim in before.into_iter().flat_map(|claims| *claims) {
            let name = named(&claim);
            self.storage.changed.insert(name.clone());
            if let Some(users) = self.storage.users.get_mut(&name) {
                users.remove(&pod);
                if users.is_empty() {
                    self.storage.users.remove(&name);
                }
            }
        }
        for claim in claims {
            let name = named(claim);
            self.storage.changed.insert(name.clone());
            self.storage.users.entry(name).or_default().insert(pod);
        }
    }

    /// The shape of a pod together with what its claims ask for now.
    pub(super) fn with_claims(&self, pod: PodId, shape: &Arc<PodShape>) -> Arc<PodShape> {
        let record = &self.pods[pod];
        let Some(claims) = record.claims.as_deref() else {
            return shape.clone();
        };
        let mut with = (**shape).clone();
        without_limits(&mut with.requests);
        // Where a pod of another scheduler may go is not ours to judge.
        let needs = self.volume_needs(record, claims);
        with.volumes = record.own.is_some().then(|| Box::new(needs));
        for (driver, volumes) in self.attached(&record.namespace, claims) {
            with.requests
                .push((format!("{ATTACHED}{driver}").into(), volumes));
        }
        with.requests.sort();
        Arc::new(with)
    }

    /// How many volumes of each limited driver the claims of a pod attach.
    fn attached(&self, namespace: &str, claims: &[ClaimUse]) -> BTreeMap<Box<str>, Amount> {
        let mut handles: BTreeSet<(&str, String)> = BTreeSet::new();
        if self.storage.limited.is_empty() {
            return BTreeMap::new();
        }
        for claim in claims {
            let name = (namespace.into(), claim.name.clone());
            let Some(facts) = self.storage.claims.get(&name) else {
                continue;
            };
            let volume = facts.volume.as_ref();
            let volume = volume.and_then(|volume| self.storage.volumes.get(volume));
            match volume {
                Some(volume) => {
                    let csi = volume.csi.as_ref();
                    handles.extend(csi.map(|(driver, handle)| (&**driver, (**handle).to_owned())));
                }
                None => {
                    // A volume that is not there yet is none of those that are.
                    let class = self.storage.classes.get(&facts.class);
                    handles.extend(class.map(|class| (&*class.provisioner, format!("\0{name:?}"))));
                }
            }
        }
        let mut attached = BTreeMap::new();
        for (driver, _) in handles {
            if self.storage.limited.contains_key(driver) {
                *attached.entry(driver.into()).or_insert(0) += 1;
            }
        }
        attached
    }

    /// Works out anew what pods ask for whose claims, or what these depend on, have changed.
    pub(crate) fn follow_storage(&mut self, now_ms: UnixMs) {
        let storage = &mut self.storage;
        if core::mem::take(&mut storage.all_nodes_changed) {
            storage.nodes_changed = self.node_ids.keys().cloned().collect();
        }
        let nodes = core::mem::take(&mut storage.nodes_changed);
        let mut changed = core::mem::take(&mut storage.changed);
        if core::mem::take(&mut storage.all_changed) {
            changed = storage.users.keys().cloned().collect();
        }
        for node in nodes {
            self.limit_node(&node, now_ms);
        }
        if self.storage.is_unused() {
            return;
        }
        let users = changed
            .iter()
            .filter_map(|claim| self.storage.users.get(claim));
        let pods: BTreeSet<PodId> = users.flatten().copied().collect();
        for pod in pods {
            if let Stage::Assumed(_) = self.pods[pod].stage {
                self.claims_changed.insert(self.pods[pod].uid);
            }
            let shape = &self.classes[self.pods[pod].class].shape;
            let now = self.with_claims(pod, shape);
            if *shape != now {
                self.move_to_class(pod, &now);
                self.touched.extend(self.pods[pod].gang());
            }
        }
    }
}

impl ClusterState {
    /// Whether volumes are to be made for claims of a pod before it is bound. kube-scheduler does
    /// that for pods that it asks to bind.
    pub(crate) fn has_open_claims(&self, pod: PodId) -> bool {
        let record = &self.pods[pod];
        let is_asked_for = record.own.as_ref().is_none_or(|own| own.extended);
        let claims = record.claims.as_deref().filter(|_| !is_asked_for);
        claims.into_iter().flatten().any(|claim| {
            let name = (record.namespace.clone(), claim.name.clone());
            let facts = self.storage.claim(&name);
            facts.is_some_and(|facts| !facts.is_bound())
        })
    }

    /// The claims of a pod that have no volume yet.
    ///
    /// # Errors
    /// Why the pod cannot be on the node, as a sentence without the final point.
    pub(crate) fn open_claims(
        &self,
        pod: PodId,
        node: NodeId,
    ) -> Result<Vec<OpenClaim>, Box<str>> {
        let record = &self.pods[pod];
        let mut open = Vec::new();
        for claim in record.claims.as_deref().into_iter().flatten() {
            let name = (record.namespace.clone(), claim.name.clone());
            let facts = self.storage.claim(&name);
            let facts = facts.filter(|facts| !facts.is_lost && !facts.is_deleting);
            let Some(facts) = facts else {
                return Err(format!("PersistentVolumeClaim {} is lost", claim.name).into());
            };
            let volume = facts.volume.as_ref().filter(|_| facts.is_bound());
            let volume = volume.and_then(|volume| self.storage.volumes.get(volume));
            if volume.is_some() {
                self.check_volume(record, claim, node)?;
                continue;
            }
            let node = &self.nodes[node].name;
            open.push(OpenClaim {
                name,
                uid: facts.uid,
                has_volume: facts.volume.is_some(),
                is_selected: facts.selected_node.as_ref() == Some(node)
                    || self.storage.kept_for(facts).next().is_some(),
            });
        }
        Ok(open)
    }

    /// Checks that the volume of a claim can be used on a node.
    fn check_volume(&self, pod: &Pod, claim: &ClaimUse, node: NodeId) -> Result<(), Box<str>> {
        let needs = self.volume_needs(pod, core::slice::from_ref(claim));
        let known = self.nodes[node].known.as_ref();
        match known.map(|known| filter::allows_volumes(&needs, &known.facts)) {
            Some(true) | None => Ok(()),
            Some(false) => {
                let (claim, node) = (&claim.name, &self.nodes[node].name);
                let message = format!(
                    "the volume of PersistentVolumeClaim {claim} cannot be used on node {node}"
                );
                Err(message.into())
            }
        }
    }

    /// Takes in how many volumes can be attached to a node now.
    fn limit_node(&mut self, name: &str, now_ms: UnixMs) {
        let node = self.node_ids.get(name).map(|node| &self.nodes[*node]);
        if let Some(known) = node.and_then(|node| node.known.as_ref()) {
            let mut facts = known.facts.clone();
            without_limits(&mut facts.allocatable);
            self.apply_node(facts, now_ms);
        }
    }
}

impl Storage {
    /// The pod that may use a claim which one pod alone may use: one that is on a node, else the
    /// oldest.
    fn first_user(&self, state: &ClusterState, claim: &Named) -> Option<PodId> {
        let users = self.users.get(claim)?.iter().copied();
        users.min_by_key(|pod| {
            let pod = &state.pods[*pod];
            (pod.stage.node().is_none(), pod.created_ms, pod.uid)
        })
    }
}
