//! Which nodes have which container images.
//!
//! Source: the plugin ImageLocality of kube-scheduler (v1.36), which counts an image by its size,
//! times the part of all nodes that have it: an image that only one node has draws all pods there.
//! Where nodes tell other sizes of one image, kube-scheduler takes the size that it saw first; here
//! that of each node counts for the node.

use super::ClusterState;
use crate::facts::{NodeImage, PreferredImages};
use crate::ids::NodeId;
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

/// Images that are smaller together count nothing, in bytes.
const LEAST_BYTES: u64 = 23 << 20;

/// What one container adds to the size at which more counts no more, in bytes.
const MOST_BYTES_OF_CONTAINER: u64 = 1_000 << 20;

/// The nodes that have each image, by its name, with its size there in bytes.
#[derive(Debug, Default)]
pub(super) struct Images(BTreeMap<Box<str>, BTreeMap<NodeId, u64>>);

impl Images {
    /// Takes in that a node has other images than before.
    pub(super) fn change(&mut self, node: NodeId, before: &[NodeImage], now: &[NodeImage]) {
        if before == now {
            return;
        }
        for image in before {
            if let Some(nodes) = self.0.get_mut(&image.name) {
                nodes.remove(&node);
                if nodes.is_empty() {
                    self.0.remove(&image.name);
                }
            }
        }
        for image in now {
            if !self.0.contains_key(&image.name) {
                self.0.insert(image.name.clone(), BTreeMap::new());
            }
            let nodes = self.0.get_mut(&image.name);
            // Of an image that is listed twice the first counts.
            nodes.map(|nodes| *nodes.entry(node).or_insert(image.size_bytes));
        }
    }
}

impl ClusterState {
    /// How much of a pod's images each of some nodes has, from 0 to 100.
    pub(super) fn image_scores(&self, images: &PreferredImages, nodes: &[NodeId]) -> Vec<u32> {
        let known = self.nodes.iter().filter(|(_, node)| node.known.is_some());
        let known = known.count().max(1) as u128;
        let found = images
            .names
            .iter()
            .filter_map(|name| self.images.0.get(name));
        let found: Vec<&BTreeMap<NodeId, u64>> = found.collect();
        let scaled = |sizes: &BTreeMap<NodeId, u64>, node: &NodeId| {
            let size = sizes.get(node).copied().unwrap_or(0);
            let scaled = u128::from(size) * sizes.len() as u128 / known;
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let score = |node: &NodeId| {
            let sizes = found.iter().map(|sizes| scaled(sizes, node));
            part_of_images(sizes.fold(0, u64::saturating_add), images.containers)
        };
        nodes.iter().map(score).collect()
    }
}

/// The size of images as hundredths of the way from the least size that counts to the most.
fn part_of_images(bytes: u64, containers: u32) -> u32 {
    let most = MOST_BYTES_OF_CONTAINER * u64::from(containers.max(1));
    let above = bytes.clamp(LEAST_BYTES, most) - LEAST_BYTES;
    super::preferences::part(above, most - LEAST_BYTES)
}
