//! Amounts of volumes: how many can be attached to nodes, and how many free ones nodes reach.
//!
//! How many volumes of a driver can be attached to a node is an amount, as CPU is: nodes have it,
//! and each volume takes one. A volume that several pods of a node share counts once for each,
//! which is more than kube-scheduler counts. Only drivers that some CSINode limits are counted; on
//! all other nodes such a driver is not limited.

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
    pub(in crate::state) fn add_amounts(&self, node: &mut NodeFacts) {
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
            allocatable.push((format!("{ATTACHED}{driver}").into(), limit));
        }
        allocatable.sort();
    }
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
