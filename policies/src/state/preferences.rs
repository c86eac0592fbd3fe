//! Which of the nodes that fit a pod prefers.
//!
//! Each sort of preference is a score from 0 to 100, as the plugins of kube-scheduler's default
//! profile (v1.36) give it after they have normalised it over the nodes that fit; their weighted
//! sum orders the nodes. What pods state counts, what the cluster adds to that, and the taints with
//! PreferNoSchedule. A pod without preferences, in a cluster without such taints, is never looked
//! at here.

use super::ClusterState;
use crate::filter;
use crate::ids::{ById, ClassId, NodeId, PodId};
use crate::report::PreferenceScores;
use alloc::{boxed::Box, vec::Vec};

/// What a class prefers of the nodes' objects.
#[derive(Debug)]
pub(crate) struct NodePreferences {
    /// The version of the nodes' labels and taints.
    as_of: u64,
    /// By node: how many taints keep the class away, and the weight of its affinity.
    by_node: ById<NodeId, (u32, u32)>,
}

impl ClusterState {
    /// Whether a pod may prefer some nodes to others.
    pub(crate) fn has_preferences(&self, pod: PodId) -> bool {
        let class = &self.classes[self.pods[pod].class];
        class.shape.preferences.is_some()
            || !self.softly_tainted.is_empty()
            || self.prefers_by_pods(pod)
    }

    /// Of the nodes that fit a pod, those that it prefers to all others.
    pub(crate) fn preferred(&mut self, pod: PodId, nodes: Vec<NodeId>) -> Vec<NodeId> {
        if !self.has_preferences(pod) {
            return nodes;
        }
        let scores = self.preference_scores(pod, &nodes);
        let best = scores.iter().map(PreferenceScores::sum).max();
        let scored = nodes.into_iter().zip(scores);
        let best = scored.filter(|(_, scores)| Some(scores.sum()) == best);
        best.map(|(node, _)| node).collect()
    }

    /// What a pod prefers of each of the nodes that fit it.
    pub(crate) fn preference_scores(
        &mut self,
        pod: PodId,
        nodes: &[NodeId],
    ) -> Vec<PreferenceScores> {
        let class = self.pods[pod].class;
        let mut scores = self.by_objects(class, nodes);
        let preferences = self.classes[class].shape.preferences.as_deref();
        if let Some(images) = preferences.and_then(|it| it.images.as_ref()) {
            for (score, images) in scores.iter_mut().zip(self.image_scores(images, nodes)) {
                score.images = images;
            }
        }
        if !self.prefers_by_pods(pod) {
            return scores;
        }
        let drawn = self.drawn_to(pod, nodes);
        let least = drawn.iter().min().copied().unwrap_or(0);
        let range = drawn.iter().max().map_or(0, |most| most.abs_diff(least));
        for (score, drawn) in scores.iter_mut().zip(drawn) {
            score.pods = part(drawn.abs_diff(least), range);
        }
        let crowding = self.crowding(class, nodes);
        let labelled = || crowding.iter().flatten().copied();
        let (least, most) = (labelled().min().unwrap_or(0), labelled().max().unwrap_or(0));
        for (score, crowded) in scores.iter_mut().zip(&crowding) {
            score.spread = match crowded {
                None => 0,
                Some(_) if most == 0 => 100,
                Some(crowded) => part(most + least - crowded, most),
            };
        }
        scores
    }

    /// The scores that depend on the nodes' objects alone.
    fn by_objects(&mut self, id: ClassId, nodes: &[NodeId]) -> Vec<PreferenceScores> {
        self.read_node_preferences(id);
        let Some(read) = self.classes[id].node_preferences.as_deref() else {
            return Vec::new();
        };
        let of = |node: &NodeId| read.by_node[*node];
        let most_taints = nodes.iter().map(|node| of(node).0).max().unwrap_or(0);
        let most_weight = nodes.iter().map(|node| of(node).1).max().unwrap_or(0);
        let scores = nodes.iter().map(|node| {
            let (taints, weight) = of(node);
            PreferenceScores {
                taints: 100 - part(taints.into(), most_taints.into()),
                node_affinity: part(weight.into(), most_weight.into()),
                images: 0,
                spread: 0,
                pods: 0,
            }
        });
        scores.collect()
    }

    /// Reads the objects of all nodes for a class, if labels or taints have changed since.
    fn read_node_preferences(&mut self, id: ClassId) {
        let as_of = self.labels_version();
        let class = &mut self.classes[id];
        if class
            .node_preferences
            .as_ref()
            .is_some_and(|read| read.as_of == as_of)
        {
            return;
        }
        let mut by_node = ById::default();
        for (node, record) in self.nodes.iter() {
            if let Some(known) = &record.known {
                by_node[node] = (
                    filter::unwanted_taints(&class.shape, &known.facts),
                    filter::affinity_weight(&class.shape, &known.facts),
                );
            }
        }
        class.node_preferences = Some(Box::new(NodePreferences { as_of, by_node }));
    }

    /// Takes in that labels or taints of a node have changed, or that it is gone.
    pub(super) fn follow_soft_taints(&mut self, node: NodeId) {
        let known = self.nodes[node].known.as_ref();
        match known.is_some_and(|known| filter::would_rather_be_left(&known.facts)) {
            true => self.softly_tainted.insert(node),
            false => self.softly_tainted.remove(&node),
        };
    }
}

/// A number as hundredths of another one, rounded down; 0 of nothing.
pub(super) fn part(of: u64, whole: u64) -> u32 {
    if whole == 0 {
        return 0;
    }
    let hundredths = match of.checked_mul(100) {
        Some(hundredfold) => hundredfold / whole,
        None => u64::try_from(u128::from(of) * 100 / u128::from(whole)).unwrap_or(u64::MAX),
    };
    u32::try_from(hundredths).unwrap_or(u32::MAX)
}
