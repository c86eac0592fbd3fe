//! Pods come, change and go.

use super::ClusterState;
use super::pod::{Own, Pod, Stage};
use crate::facts::{CardIndex, PodFacts, PodPhase, Uid};
use crate::ids::{NodeId, PodId};
use alloc::boxed::Box;

/// The end of a member that did its part.
const SUCCEEDED: Stage = Stage::Ended { succeeded: true };

impl ClusterState {
    pub(crate) fn apply_pod(&mut self, facts: PodFacts) {
        if facts.phase.ended() && !facts.ours {
            self.delete_pod(facts.uid);
            return;
        }
        match self.pod_ids.get(&facts.uid) {
            Some(&pod) => self.change_pod(pod, facts),
            None => self.add_pod(facts),
        }
    }

    fn add_pod(&mut self, facts: PodFacts) {
        let class = self.enter_class(&facts.shape);
        let node = facts.node.as_deref().map(|name| self.node_id(name));
        let ended = facts.phase.ended();
        let own = facts.ours.then(|| Box::new(own(&facts, None)));
        let pod = self.pods.insert(Pod {
            uid: facts.uid,
            namespace: facts.namespace.clone(),
            name: facts.name.clone(),
            class,
            priority: facts.priority,
            created_ms: facts.created_ms,
            stage: Stage::Waiting,
            cards: held(&facts),
            deleting: facts.deleting,
            running: facts.phase == PodPhase::Running,
            retry_at_ms: 0,
            glance: own.as_deref().map(Own::glance).unwrap_or_default(),
            own,
        });
        self.pod_ids.insert(facts.uid, pod);
        self.note_owner(pod);
        self.regroup(pod);
        if ended {
            self.pods[pod].stage = Stage::Ended {
                succeeded: facts.phase == PodPhase::Succeeded,
            };
            if let Some(node) = node {
                self.drop_node_if_unused(node);
            }
        } else if let Some(node) = node {
            self.pods[pod].stage = Stage::Bound(node);
            self.occupy(pod, node);
        }
        if facts.ours && !ended {
            self.count_kind(class);
        }
    }

    fn change_pod(&mut self, pod: PodId, facts: PodFacts) {
        self.change_class(pod, &facts);
        self.change_stage(pod, &facts);
        let record = &mut self.pods[pod];
        // A pod that is being deleted never comes back, whatever late news says.
        record.deleting |= facts.deleting;
        record.running = facts.phase == PodPhase::Running;
        record.priority = facts.priority;
        if record.own.is_some() {
            self.forget_owner(pod);
            let record = &mut self.pods[pod];
            let own = own(&facts, record.own.take());
            record.glance = own.glance();
            record.own = Some(Box::new(own));
            self.note_owner(pod);
            self.regroup(pod);
        }
        let gang = self.pods[pod].gang();
        self.touched.extend(gang);
    }

    /// A resize in place, or lifted gates that made a node selector narrower: another class.
    fn change_class(&mut self, pod: PodId, facts: &PodFacts) {
        let before = self.pods[pod].class;
        if self.classes[before].shape == facts.shape {
            return;
        }
        let class = self.enter_class(&facts.shape);
        let node = self.pods[pod].stage.node();
        if let Some(node) = node {
            self.vacate(pod, node, false);
            // A smaller pod leaves room in its queue too.
            let account = self.pods[pod].account();
            self.released.extend(account.map(|account| account.queue));
        }
        self.close_account(pod);
        self.pods[pod].class = class;
        if let Some(node) = node {
            self.occupy(pod, node);
            // A smaller pod leaves room: others may look.
            self.freed.insert(node);
        }
        self.leave_class(before);
    }

    fn change_stage(&mut self, pod: PodId, facts: &PodFacts) {
        let before = self.pods[pod].stage;
        let after = match (&facts.node, facts.phase) {
            (_, PodPhase::Succeeded) => Stage::Ended { succeeded: true },
            (_, PodPhase::Failed) => Stage::Ended { succeeded: false },
            // tests plant bugs here: pod-being-deleted
            (Some(name), PodPhase::Pending | PodPhase::Running) => Stage::Bound(self.node_id(name)),
            // Old news: what was bound stays bound, and what we assume the watch cannot know yet.
            // tests plant bugs here: assumed-pod
            (None, PodPhase::Pending | PodPhase::Running) => before,
        };
        if matches!(before, Stage::Ended { .. }) {
            return;
        }
        self.move_pod(pod, after);
        let cards = held(facts);
        if let Stage::Bound(node) = after
            && !cards.is_empty()
            && cards != self.pods[pod].cards
        {
            self.vacate(pod, node, true);
            self.pods[pod].cards = cards;
            self.occupy(pod, node);
        }
    }

    /// Brings a pod to a stage, and its room with it.
    pub(crate) fn move_pod(&mut self, pod: PodId, after: Stage) {
        let before = core::mem::replace(&mut self.pods[pod].stage, after);
        if before.node() != after.node() {
            // tests plant bugs here: room-of-an-ended-pod
            if let Some(node) = before.node() {
                self.vacate(pod, node, true);
                self.pods[pod].cards = Box::default();
            }
            if let Some(node) = after.node() {
                self.occupy(pod, node);
            }
        }
        if matches!(after, Stage::Ended { .. }) {
            self.close_account(pod);
        }
        let gang = self.pods[pod].gang();
        if before != after {
            self.touched.extend(gang);
        }
        if let (Stage::Assumed(given), Stage::Bound(node)) = (before, after)
            && given != node
        {
            self.overtaken.extend(gang);
        }
    }

    pub(crate) fn delete_pod(&mut self, uid: Uid) {
        let Some(pod) = self.pod_ids.remove(&uid) else {
            return;
        };
        if let Some(node) = self.pods[pod].stage.node() {
            self.vacate(pod, node, true);
        }
        let gang = self.pods[pod].gang();
        if let Some(gang) = gang.filter(|_| self.pods[pod].stage == SUCCEEDED) {
            // A member that has done its part and is cleaned away is not lost.
            let departed = &mut self.gangs[gang].departed;
            *departed = departed.saturating_add(1);
        }
        self.close_account(pod);
        self.forget_owner(pod);
        self.leave_gang(pod);
        let class = self.pods[pod].class;
        self.pods.remove(pod);
        self.leave_class(class);
    }

    /// The node of a pod, bound or assumed.
    pub(crate) fn node_of(&self, pod: PodId) -> Option<NodeId> {
        self.pods.get(pod)?.stage.node()
    }
}

/// The cards that a pod holds as its facts say.
fn held(facts: &PodFacts) -> Box<[CardIndex]> {
    let mut cards = facts.cards.clone();
    cards.sort_unstable();
    cards.dedup();
    cards.into()
}

/// What only pods of ours have; what the engine knows of the pod is kept from before.
fn own(facts: &PodFacts, before: Option<Box<Own>>) -> Own {
    let before = before.map(|own| *own);
    let (gang, account, failure, condition_ms, bound) = match before {
        Some(own) => (
            own.gang,
            own.account,
            own.failure,
            own.condition_ms,
            // News from before the binding do not know of it.
            (facts.node.is_none()).then_some((own.bound_queue, own.bound_minima)),
        ),
        None => (None, None, None, 0, None),
    };
    let (bound_queue, bound_minima) = bound.unwrap_or_else(|| {
        let minima = facts.bound_minima.as_slice().into();
        (facts.bound_queue.clone(), minima)
    });
    Own {
        gang,
        pod_group: facts.pod_group.clone(),
        sub_group: facts.sub_group.clone(),
        queue: facts.queue.clone(),
        native_group: facts.native_group.clone(),
        owner: facts.owner.clone(),
        deployment: facts.deployment.clone(),
        hints: facts.hints.clone(),
        gates: facts.gates.clone(),
        problems: facts.problems.clone(),
        unknown_keys: facts.unknown_keys.clone(),
        bound_queue,
        bound_minima,
        bound_ms: facts.bound_ms,
        unscheduled: facts.unscheduled.clone(),
        condition_ms,
        account,
        failure,
    }
}
