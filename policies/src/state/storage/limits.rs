//! Amounts of volumes: how many can be attached to nodes, and how many free ones nodes reach.
//!
//! How many volumes of a driver can be attached to a node is an amount, as CPU is: nodes have it,
//! and each volume takes one. A volume that several pods use is told by its handle, so that it
//! counts once on each node ([`crate::state::shared`]). Volumes that are still attached take one,
//! too. Only drivers that some CSINode limits are counted; on all other nodes such a driver is not
//! limited.
//!
//! A disk of a pod on a node may be one that no driver understands. kube-scheduler fails then for
//! every other pod that attaches volumes, if the node limits any driver. While there is such a pod,
//! [`ANY`] stands for all drivers: of it nothing is left on such a node.

use super::stock::{FREE, without_free};
use super::users::key;
use super::{Named, Storage};
use crate::facts::{
    Amount, Amounts, ClaimUse, CsiNodeFacts, MIGRATED_PREFIX, NodeFacts, PodShape, SharedVolume,
    UnixMs, migrated_label,
};
use crate::ids::ResourceId;
use crate::state::ClusterState;
use crate::state::node::Node;
use crate::state::pod::Pod;
use crate::state::shared::{ATTACHED, attachments_of};
use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

/// Provisioners from before CSI, each with the CSI driver that has taken its volumes over and whose
/// attachments nodes limit.
const TAKEN_OVER: [(&str, &str); 5] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// How many volumes can be attached to a node that does not limit it.
pub(super) const UNLIMITED: Amount = 1 << 40;

/// All drivers together; no driver has such a name.
pub(super) const ANY: &str = "any driver";

/// Kinds from before CSI that drivers have taken over without counting them.
const UNCOUNTED: [&str; 2] = ["kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"];

impl Storage {
    /// Takes in the CSINode of a node, which replaces another.
    pub(super) fn set_csi_node(&mut self, name: &str, facts: Option<CsiNodeFacts>) {
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

    /// Takes in whether some pod has a disk that no driver understands.
    pub(super) fn limit_any(&mut self, is_known: bool) {
        match is_known {
            true => self.limited.insert(ANY.into(), 1),
            false => self.limited.remove(ANY),
        };
        (self.all_nodes_changed, self.all_changed) = (true, true);
    }

    /// The volume that a claim has, or is to get, by its driver and its handle; `None`: one that no
    /// node counts.
    fn handle(&self, name: &Named) -> Option<(&str, String)> {
        let facts = self.claims.get(name)?;
        let volume = facts.volume.as_ref();
        match volume.and_then(|volume| self.volumes.get(volume)) {
            Some(volume) => {
                let (driver, handle) = volume.csi.as_ref()?;
                Some((driver, (**handle).to_owned()))
            }
            None => {
                // A volume that is not there yet is none of those that are.
                let class = self.classes.get(&facts.class)?;
                let is_counted = !UNCOUNTED.contains(&&*class.provisioner);
                is_counted.then(|| (driver_of(&class.provisioner), format!("\0{name:?}")))
            }
        }
    }

    /// The claims that have the volume of a claim, by whatever PersistentVolumes: itself, and
    /// others.
    fn sharers(&self, name: &Named) -> Vec<&Named> {
        let volume = self
            .claims
            .get(name)
            .and_then(|claim| claim.volume.as_ref());
        let others = volume.map(|volume| self.named_alike(volume));
        let mut sharers: Vec<&Named> = others.into_iter().flatten().collect();
        if sharers.is_empty() {
            sharers.extend(self.users.get_key_value(name).map(|(name, _)| name));
        }
        sharers
    }

    /// The claims that name a PersistentVolume, or another one that stands for the same volume.
    pub(super) fn named_alike(&self, volume: &str) -> impl Iterator<Item = &Named> {
        let csi = self.volumes.get(volume).and_then(|it| it.csi.as_ref());
        let alike = csi.and_then(|csi| self.of_handle.get(csi));
        let names = alike.into_iter().flatten();
        names.filter_map(|name| self.named.get(name)).flatten()
    }

    /// Whether several pods use the volume of a claim.
    fn is_shared(&self, name: &Named) -> bool {
        let sharers = self.sharers(name).into_iter();
        let users = sharers.filter_map(|claim| self.users.get(claim));
        let mut users = users.flatten();
        let first = users.next();
        users.any(|other| Some(other) != first)
    }

    /// Adds to claims those that have the same volumes.
    pub(super) fn with_sharers(&self, claims: &mut BTreeSet<Named>) {
        let sharers = claims.iter().flat_map(|name| self.sharers(name));
        let sharers: Vec<Named> = sharers.cloned().collect();
        claims.extend(sharers);
    }

    /// Adds to what a node has how many volumes of each limited driver can be attached to it, how
    /// many free volumes it reaches, and labels for the kinds that it leaves to CSI drivers.
    /// `unused`: how many of each driver are attached that no pod on the node uses.
    pub(super) fn add_amounts(&self, node: &mut NodeFacts, unused: &BTreeMap<Box<str>, Amount>) {
        let NodeFacts {
            labels,
            allocatable,
            ..
        } = node;
        self.stock.add_free(&self.volumes, labels, allocatable);
        let of_node = self.csi_nodes.get(&node.name);
        for driver in self.limited.keys() {
            let drivers = of_node.into_iter().flat_map(|facts| &facts.drivers);
            let mut limits = drivers.filter(|(name, _)| name == driver);
            let limit = limits.find_map(|(_, limit)| *limit);
            let limit = limit.map_or(UNLIMITED, Amount::from);
            let unused = unused.get(driver).copied().unwrap_or(0);
            // tests plant bugs here: attachable-volumes
            let limit = limit.saturating_sub(unused);
            allocatable.push((attachments_of(driver), limit));
        }
        allocatable.sort();
        if let Some(of_node) = of_node.filter(|facts| !facts.migrated.is_empty()) {
            let kinds = of_node.migrated.iter();
            labels.extend(kinds.map(|kind| (migrated_label(kind), "".into())));
            labels.sort();
        }
    }
}

/// The driver that attaches the volumes which a provisioner makes.
fn driver_of(provisioner: &str) -> &str {
    let mut taken_over = TAKEN_OVER.into_iter();
    let by = taken_over.find(|(before, _)| *before == provisioner);
    by.map_or(provisioner, |(_, driver)| driver)
}

/// The names of the claims of a pod.
fn names(namespace: &str, claims: &[ClaimUse]) -> impl Iterator<Item = Named> {
    claims.iter().map(move |claim| key(namespace, claim))
}

/// Takes from amounts those that [`Storage::add_amounts`] or a pod's claims have added.
fn without_added(amounts: &mut Amounts) {
    without_free(amounts);
    amounts.retain(|(name, _)| !name.starts_with(ATTACHED));
}

impl ClusterState {
    /// Adds to a shape how many volumes of each limited driver the claims of a pod attach, and how
    /// many free ones they wait for, in place of what was added before.
    pub(super) fn set_amounts(&self, shape: &mut PodShape, namespace: &str, claims: &[ClaimUse]) {
        without_added(&mut shape.requests);
        let mut free: BTreeMap<&Box<str>, Amount> = BTreeMap::new();
        for name in names(namespace, claims) {
            let want = self.storage.stock.want_of(&name).into_iter();
            for asked in want.flat_map(|want| self.storage.stock.asked_by(want)) {
                *free.entry(asked).or_default() += 1;
            }
        }
        let free = free.into_iter().map(|(name, count)| (name.clone(), count));
        shape.requests.extend(free);
        let attached = self.attached(namespace, claims);
        let mut counts: BTreeMap<&str, Amount> = BTreeMap::new();
        for (driver, _) in attached.keys() {
            *counts.entry(driver).or_default() += 1;
        }
        if self.storage.limited.contains_key(ANY) && !self.handles(namespace, claims).is_empty() {
            counts.insert(ANY, 1);
        }
        for (driver, volumes) in counts {
            shape.requests.push((attachments_of(driver), volumes));
        }
        shape.requests.sort();
        let shared = attached.into_iter().filter(|(_, is_shared)| *is_shared);
        let shared = shared.map(|((driver, handle), _)| SharedVolume {
            driver: driver.into(),
            handle: handle.into(),
        });
        let shared: Vec<_> = shared.collect();
        if !shared.is_empty() {
            shape.volumes.get_or_insert_default().shared = shared;
        }
    }

    /// The volumes of limited drivers that the claims of a pod attach, each by its driver and its
    /// handle, and whether other pods use it, too.
    fn attached(&self, namespace: &str, claims: &[ClaimUse]) -> BTreeMap<(&str, String), bool> {
        let mut attached = BTreeMap::new();
        if self.storage.limited.is_empty() {
            return attached;
        }
        for name in names(namespace, claims) {
            if let Some(handle) = self.storage.handle(&name)
                && self.storage.limited.contains_key(handle.0)
            {
                *attached.entry(handle).or_default() |= self.storage.is_shared(&name);
            }
        }
        attached
    }

    /// The volumes that the claims of a pod attach, each by its driver and its handle.
    pub(super) fn handles(&self, namespace: &str, claims: &[ClaimUse]) -> BTreeSet<(&str, String)> {
        let handles = names(namespace, claims).filter_map(|name| self.storage.handle(&name));
        handles.collect()
    }

    /// Whether a pod with a disk that no driver understands keeps other volumes off a node.
    pub(super) fn is_closed_to_volumes(&self, node: &str) -> bool {
        let of_node = self.storage.csi_nodes.get(node).into_iter();
        let mut drivers = of_node.flat_map(|facts| &facts.drivers);
        if !self.storage.limited.contains_key(ANY) || drivers.all(|(_, limit)| limit.is_none()) {
            return false;
        }
        let mut claims = self.claims_on(node).flat_map(|(_, claims)| claims);
        claims.any(ClaimUse::is_unreadable)
    }

    /// The pods on a node that use claims, each with these.
    pub(super) fn claims_on(&self, node: &str) -> impl Iterator<Item = (&Pod, &[ClaimUse])> {
        let pods = self.node_ids.get(node).map(|node| &self.nodes[*node].pods);
        let pods = pods.into_iter().flatten().map(|pod| &self.pods[*pod]);
        pods.filter_map(|pod| Some((pod, pod.claims.as_deref()?.as_slice())))
    }

    /// Forgets the names of amounts of volumes that no pod asks for and no node has any more, once
    /// there are many names: sizes and classes of volumes come and go.
    pub(crate) fn forget_amounts(&mut self) {
        if !self.resource_names.are_many() {
            return;
        }
        let classes = self.classes.iter().map(|(_, class)| &class.requests);
        let asked = classes.flatten().map(|(resource, _)| *resource);
        let nodes = self.nodes.iter().map(|(_, node)| node);
        let had = nodes.flat_map(Node::resources_in_use);
        let used: BTreeSet<ResourceId> =
            asked.chain(had).chain(self.capacity.resources()).collect();
        let is_of_volumes = |name: &str| name.starts_with(FREE) || name.starts_with(ATTACHED);
        let keeps = |resource, name: &str| used.contains(&resource) || !is_of_volumes(name);
        self.resource_names.retain(keeps);
    }

    /// Takes in how many volumes can be attached to a node now.
    pub(super) fn limit_node(&mut self, name: &str, now_ms: UnixMs) {
        let node = self.node_ids.get(name).map(|node| &self.nodes[*node]);
        if let Some(known) = node.and_then(|node| node.known.as_ref()) {
            let mut facts = known.facts.clone();
            without_added(&mut facts.allocatable);
            facts
                .labels
                .retain(|(key, _)| !key.starts_with(MIGRATED_PREFIX));
            self.apply_node(facts, now_ms);
        }
    }
}
