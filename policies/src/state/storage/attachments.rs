//! Volumes that are attached to nodes.
//!
//! A volume of a pod that is gone stays attached until it has been detached, and takes one of the
//! attachments that the node can have. As kube-scheduler does, attached volumes count that no pod
//! on the node uses, and those of pods by the pods. A pod that is to use such a volume is counted
//! beside it until the pod has its place.
//!
//! Source: `getNodeVolumeAttachmentInfo` of the plugin NodeVolumeLimits (v1.36).

use super::Storage;
use super::limits::{ANY, UNLIMITED};
use crate::facts::{Amount, AttachmentFacts, ClaimUse, NodeFacts};
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use crate::state::node::Node;
use crate::state::sets::{put_in, take_out};
use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::String,
};

/// All VolumeAttachments.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    by_name: BTreeMap<Box<str>, AttachmentFacts>,
    /// Their names by node, and by volume.
    of_node: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    of_volume: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

impl Attachments {
    pub(super) fn get(&self, name: &str) -> Option<&AttachmentFacts> {
        self.by_name.get(name)
    }

    /// The names of all.
    pub(super) fn names(&self) -> impl Iterator<Item = &Box<str>> {
        self.by_name.keys()
    }

    /// The nodes to which a volume is attached.
    pub(super) fn nodes_of(&self, volume: &str) -> impl Iterator<Item = Box<str>> {
        let names = self.of_volume.get(volume).into_iter().flatten();
        let attachments = names.filter_map(|name| self.get(name));
        attachments.map(|attachment| attachment.node.clone())
    }

    fn on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a AttachmentFacts> {
        let names = self.of_node.get(node).into_iter().flatten();
        names.filter_map(|name| self.get(name))
    }
}

impl Storage {
    /// Takes in a VolumeAttachment, or that it is gone.
    pub(super) fn set_attachment(&mut self, name: &str, facts: Option<AttachmentFacts>) {
        let attachments = &mut self.attachments;
        if let Some(before) = attachments.by_name.remove(name) {
            take_out(&mut attachments.of_node, &before.node, name);
            if let Some(volume) = &before.volume {
                take_out(&mut attachments.of_volume, volume, name);
            }
            self.nodes_changed.insert(before.node);
        }
        if let Some(now) = facts {
            put_in(&mut attachments.of_node, now.node.clone(), name.into());
            if let Some(volume) = &now.volume {
                put_in(&mut attachments.of_volume, volume.clone(), name.into());
            }
            self.nodes_changed.insert(now.node.clone());
            attachments.by_name.insert(name.into(), now);
        }
    }
}

impl ClusterState {
    /// Adds to what a node has how many volumes can be attached to it, and how many free ones it
    /// reaches.
    pub(in crate::state) fn add_amounts(&self, node: &mut NodeFacts) {
        let mut unused = self.unused_attachments(&node.name);
        if self.is_closed_to_volumes(&node.name) {
            unused.insert(ANY.into(), UNLIMITED);
        }
        self.storage.add_amounts(node, &unused);
    }

    /// How many volumes of each driver are attached to a node that no pod on it uses.
    fn unused_attachments(&self, node: &str) -> BTreeMap<Box<str>, Amount> {
        let mut unused: BTreeMap<Box<str>, Amount> = BTreeMap::new();
        if !self.storage.attachments.of_node.contains_key(node) {
            return unused;
        }
        let claims = self.claims_on(node);
        let handles = claims.flat_map(|(pod, claims)| self.handles(&pod.namespace, claims));
        let mut used: BTreeSet<(&str, String)> = handles.collect();
        for attachment in self.storage.attachments.on(node) {
            let volume = attachment.volume.as_ref();
            let volume = volume.and_then(|volume| self.storage.volumes.get(volume));
            let csi = volume
                .filter(|it| !it.is_in_tree)
                .and_then(|it| it.csi.as_ref());
            // Each volume counts once.
            if let Some((_, handle)) = csi
                && !attachment.driver.is_empty()
                && used.insert((&attachment.driver, (**handle).to_owned()))
            {
                *unused.entry(attachment.driver.clone()).or_default() += 1;
            }
        }
        unused
    }

    /// Notes that a pod with claims has come to a node or left it: what is attached there may be in
    /// use now, or not any more.
    pub(in crate::state) fn attachments_may_be_used(&mut self, pod: PodId, node: NodeId) {
        // A node that is gone goes with its last pod.
        let Some(Node { name, .. }) = self.nodes.get(node) else {
            return;
        };
        let Some(claims) = &self.pods[pod].claims else {
            return;
        };
        let is_attached = self.storage.attachments.of_node.contains_key(name);
        if is_attached || claims.iter().any(ClaimUse::is_unreadable) {
            self.storage.nodes_changed.insert(name.clone());
        }
    }
}
