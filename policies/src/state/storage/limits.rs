//! Amounts of volumes: how many can be attached to nodes, and how many free ones nodes reach.
//!
//! How many volumes of a driver can be attached to a node is an amount, as CPU is: nodes have it,
//! and each volume takes one. A volume that several pods of a node share counts once for each,
//! which is more than kube-scheduler counts. Volumes that are still attached take one, too. Only
//! drivers that some CSINode limits are counted; on all other nodes such a driver is not limited.

use super::Storage;
use super::stock::without_free;
use crate::facts::{Amount, Amounts, ClaimUse, CsiNodeFacts, NodeFacts, PodShape, UnixMs};
use crate::state::ClusterState;
use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
};

/// What the names of amounts of attached volumes begin with; the name of the driver follows. They
/// stand in sentences about what is missing.
const ATTACHED: &str = "attachable volumes of ";

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
const UNLIMITED: Amount = 1 << 40;

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

    /// Adds to what a node has how many volumes of each limited driver can be attached to it, and
    /// how many free volumes it reaches.
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
            let limit = limit.saturating_sub(unused);
            allocatable.push((format!("{ATTACHED}{driver}").into(), limit));
        }
        allocatable.sort();
    }
}

/// The driver that attaches the volumes which a provisioner makes.
fn driver_of(provisioner: &str) -> &str {
    let mut taken_over = TAKEN_OVER.into_iter();
    let by = taken_over.find(|(before, _)| *before == provisioner);
    by.map_or(provisioner, |(_, driver)| driver)
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
        let names = claims
            .iter()
            .map(|claim| (namespace.into(), claim.name.clone()));
        let mut free: BTreeMap<&Box<str>, Amount> = BTreeMap::new();
        for name in names {
            let want = self.storage.stock.want_of(&name).into_iter();
            for asked in want.flat_map(|want| self.storage.stock.asked_by(want)) {
                *free.entry(asked).or_default() += 1;
            }
        }
        let free = free.into_iter().map(|(name, count)| (name.clone(), count));
        shape.requests.extend(free);
        for (driver, volumes) in self.attached(namespace, claims) {
            let name = format!("{ATTACHED}{driver}");
            shape.requests.push((name.into(), volumes));
        }
        shape.requests.sort();
    }

    /// How many volumes of each limited driver the claims of a pod attach.
    fn attached(&self, namespace: &str, claims: &[ClaimUse]) -> BTreeMap<Box<str>, Amount> {
        if self.storage.limited.is_empty() {
            return BTreeMap::new();
        }
        let mut attached = BTreeMap::new();
        for (driver, _) in self.handles(namespace, claims) {
            if self.storage.limited.contains_key(driver) {
                *attached.entry(driver.into()).or_insert(0) += 1;
            }
        }
        attached
    }

    /// The volumes that the claims of a pod attach, each by its driver and its handle.
    pub(super) fn handles(&self, namespace: &str, claims: &[ClaimUse]) -> BTreeSet<(&str, String)> {
        let mut handles: BTreeSet<(&str, String)> = BTreeSet::new();
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
                    let driver = class.map(|class| driver_of(&class.provisioner));
                    handles.extend(driver.map(|driver| (driver, format!("\0{name:?}"))));
                }
            }
        }
        handles
    }

    /// Takes in how many volumes can be attached to a node now.
    pub(super) fn limit_node(&mut self, name: &str, now_ms: UnixMs) {
        let node = self.node_ids.get(name).map(|node| &self.nodes[*node]);
        if let Some(known) = node.and_then(|node| node.known.as_ref()) {
            let mut facts = known.facts.clone();
            without_added(&mut facts.allocatable);
            self.apply_node(facts, now_ms);
        }
    }
}
