//! Kubelets: whether a node takes a pod that was bound to it, and when a pod has ended.

use super::alignment::Aligned;
use super::{Cluster, Task};
use crate::api_server::Name;
use crate::faults::{FaultKind, Faults};
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{NodeFacts, PodFacts, PodPhase, Uid, UnixMs, amount};

impl Cluster {
    /// The kubelet starts a pod that was bound to its node, or fails it if it has no room beside
    /// the pods that run there.
    pub(super) fn admit(
        &mut self,
        uid: Uid,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) {
        let Some(mut facts) = self.pod(uid).cloned() else {
            return;
        };
        let node = facts.node.as_deref().and_then(|node| self.node(node));
        let Some(node) = node.filter(|_| !facts.phase.ended() && facts.deletion_ms.is_none())
        else {
            return;
        };
        let room = self.has_room(node, &facts) && self.has_cards(node, &facts);
        let node = node.name.clone();
        self.give_cards(&facts, now_ms);
        self.rejected += u32::from(!room);
        self.admitted.insert(uid);
        facts.is_misaligned = room && self.rejects(&node, &facts);
        if !room || facts.is_misaligned || faults.strikes(FaultKind::KubeletRefuses, random) {
            facts.phase = PodPhase::Failed;
        } else {
            facts.phase = PodPhase::Running;
            facts.started_ms = Some(now_ms / 1_000 * 1_000);
            let runtime_ms = self.owners.runtime_ms(uid).filter(|_| !self.settling);
            if let Some(runtime_ms) = runtime_ms {
                self.tasks.push((now_ms + runtime_ms, Task::Succeed(uid)));
            }
        }
        self.put_status(Object::Pod(facts), now_ms);
    }

    /// Whether the kubelet of a node rejects a pod for its NUMA nodes.
    fn rejects(&mut self, node: &str, facts: &PodFacts) -> bool {
        let aligned = self.align(node, facts);
        self.misaligned += u32::from(aligned == Aligned::Impossible);
        aligned != Aligned::Admitted
    }

    /// Whether a node has room for a pod. As in Kubernetes, an extended resource that the node does
    /// not have at all is not checked.
    fn has_room(&self, node: &NodeFacts, facts: &PodFacts) -> bool {
        let runs_here = |other: &&PodFacts| {
            other.uid != facts.uid
                && other.node.as_deref() == Some(&*node.name)
                && other.phase == PodPhase::Running
        };
        facts.shape.requests.iter().all(|(resource, asked)| {
            let has = amount(&node.allocatable, resource);
            if has == 0 && amount(&node.capacity, resource) == 0 && resource.contains('/') {
                return true;
            }
            let others = self.api.pods().filter(runs_here);
            let taken: u64 = others
                .map(|other| amount(&other.shape.requests, resource))
                .sum();
            taken + asked <= has
        })
    }

    /// The kubelet confirms the deletion of a pod. On a node that is gone no kubelet does.
    pub(super) fn terminated(&mut self, uid: Uid, now_ms: UnixMs) {
        let Some(facts) = self.pod(uid) else { return };
        let there = facts
            .node
            .as_deref()
            .is_some_and(|node| self.node(node).is_some());
        if there && facts.deletion_ms.is_some() {
            let name = Name::pod(&facts.namespace, &facts.name);
            self.delete(name, Some(0), now_ms);
        }
    }
}
