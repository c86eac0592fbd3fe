//! Nodes whose GPUs have failed, by what the nodes say.
//!
//! A node is ailing from when it first shows a sign of failed GPUs until it has shown none for the
//! recovery time. So a condition that flaps every second makes the node ailing once: it is closed
//! and opened once, the delay of an eviction runs from the first time on, and where the delay ends
//! while the sign is gone for a moment, the eviction waits for its return.

use super::ClusterState;
use crate::facts::{NodeFacts, Uid, UnixMs};
use crate::gpu::{GpuNode, GpuRefusal};
use crate::ids::NodeId;
use crate::settings::{Health, Settings, Sign};
use alloc::{collections::BTreeMap, vec::Vec};

/// The nodes that are ailing. Most clusters have none.
#[derive(Debug, Default)]
pub(crate) struct Ailments {
    health: Health,
    nodes: BTreeMap<NodeId, Patient>,
}

/// A node that is ailing.
#[derive(Debug, PartialEq, Eq)]
struct Patient {
    /// The node's UID: another machine under the same name is not ailing for that.
    machine: Uid,
    ailments: Vec<Ailment>,
}

/// One sign of failed GPUs that a node shows, or showed a short time ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ailment {
    pub(crate) sign: Sign,
    /// When the node first showed the sign. Breaks shorter than the recovery time do not count.
    pub(crate) since_ms: UnixMs,
    /// When gangs with GPUs on the node are evicted; `None`: they stay.
    pub(crate) evicts_ms: Option<UnixMs>,
    /// When the node ceased to show the sign; `None`: the node shows the sign now.
    pub(crate) gone_ms: Option<UnixMs>,
}

impl Ailments {
    /// Takes in what a node says. Returns whether anything has changed.
    fn follow(&mut self, id: NodeId, node: &NodeFacts, now_ms: UnixMs) -> bool {
        let is_quiet = node.conditions.is_empty() && node.taints.is_empty();
        if is_quiet && !self.nodes.contains_key(&id) {
            return false;
        }
        let before = self.nodes.remove(&id);
        let known = before
            .as_ref()
            .filter(|patient| patient.machine == node.uid);
        let known = known.map_or(&[][..], |patient| &patient.ailments);
        let mut ailments = Vec::new();
        for rule in &self.health.rules {
            let shown = rule.sign.shown_since(node, now_ms);
            let known = known.iter().find(|ailment| ailment.sign == rule.sign);
            let gone_ms = match shown {
                Some(_) => None,
                None => known.map(|ailment| ailment.gone_ms.unwrap_or(now_ms)),
            };
            let since = known.map(|ailment| ailment.since_ms);
            let Some(since_ms) = since.into_iter().chain(shown).min() else {
                continue;
            };
            if gone_ms.is_none_or(|gone_ms| self.is_ailing(gone_ms, now_ms)) {
                let after = rule.evict_after_ms;
                ailments.push(Ailment {
                    sign: rule.sign.clone(),
                    since_ms,
                    evicts_ms: after.map(|after_ms| since_ms.saturating_add(after_ms)),
                    gone_ms,
                });
            }
        }
        let now = (!ailments.is_empty()).then_some(Patient {
            machine: node.uid,
            ailments,
        });
        let changed = now != before;
        self.nodes.extend(now.map(|patient| (id, patient)));
        changed
    }

    /// Whether a node still counts as ailing that shows a sign no more since a time.
    fn is_ailing(&self, gone_ms: UnixMs, now_ms: UnixMs) -> bool {
        gone_ms.saturating_add(self.health.recovery_ms) > now_ms
    }

    /// What a node is ailing from, in the order of the rules.
    pub(crate) fn of(&self, node: NodeId) -> &[Ailment] {
        let patient = self.nodes.get(&node);
        patient.map_or(&[], |patient| &patient.ailments)
    }

    /// Whether no node is ailing.
    pub(crate) fn are_none(&self) -> bool {
        self.nodes.is_empty()
    }

    /// When the next node has shown no sign for long enough.
    pub(crate) fn deadline(&self) -> Option<UnixMs> {
        let ailments = self.nodes.values().flat_map(|patient| &patient.ailments);
        let gone = ailments.filter_map(|ailment| ailment.gone_ms);
        let ends = gone.map(|gone_ms| gone_ms.saturating_add(self.health.recovery_ms));
        ends.min()
    }

    pub(super) fn forget(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }
}

impl ClusterState {
    /// What a node says of its GPUs, with what the node is ailing from.
    pub(super) fn read_gpu(&mut self, id: NodeId, facts: &NodeFacts, now_ms: UnixMs) -> GpuNode {
        if self.ailments.follow(id, facts, now_ms) {
            self.touch_gangs_on(id);
        }
        let mut gpu = GpuNode::read(facts, self.time_slices_are_single);
        if let (None, Some(ailment)) = (&gpu.refusal, self.ailments.of(id).first()) {
            gpu.refusal = Some(GpuRefusal::Failed(ailment.sign.clone()));
        }
        gpu
    }

    /// Takes over what the settings say of failed GPUs and of shares.
    pub(crate) fn set_gpu_rules(&mut self, settings: &Settings, now_ms: UnixMs) {
        self.ailments.health = settings.health.clone();
        self.time_slices_are_single = settings.time_slices_are_single;
        for id in self.nodes.ids() {
            self.judge_gpus_anew(id, now_ms);
        }
    }

    /// Opens the nodes that have shown no sign of failed GPUs for long enough. Returns whether
    /// there may be any.
    pub(crate) fn follow_ailments(&mut self, now_ms: UnixMs) -> bool {
        if self
            .ailments
            .deadline()
            .is_none_or(|due_ms| due_ms > now_ms)
        {
            return false;
        }
        let nodes: Vec<NodeId> = self.ailments.nodes.keys().copied().collect();
        for id in nodes {
            self.judge_gpus_anew(id, now_ms);
        }
        true
    }

    /// Judges a node anew whose object has not changed.
    fn judge_gpus_anew(&mut self, id: NodeId, now_ms: UnixMs) {
        let Some(mut known) = self.nodes[id].known.take() else {
            return;
        };
        let gpu = self.read_gpu(id, &known.facts, now_ms);
        let same = gpu == known.gpu;
        known.gpu = gpu;
        self.nodes[id].known = Some(known);
        if !same {
            self.judge_node(id);
            self.judge_reach(id);
            self.node_changed(id, true);
        }
    }
}
