//! Pods come, change and go.

use super::ClusterState;
use super::holds::{Hold, Holder};
use super::pod::{Own, Pod, Stage};
use crate::facts::PodShape;
use crate::facts::{PodFacts, PodLabels, PodPhase, Uid};
use crate::ids::{LabelSetId, NodeId, PodId};
use crate::state::cards::{Held, merged};
use crate::state::relations::ClassRelations;
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use smallvec::SmallVec;

/// The stage of a pod that ended well.
const SUCCEEDED: Stage = Stage::Ended { succeeded: true };

impl ClusterState {
    pub(crate) fn apply_pod(&mut self, facts: PodFacts) {
        if facts.phase.ended() && !facts.ours {
            self.delete_pod(facts.uid);
            return;
        }
        let known = self.pod_ids.get(&facts.uid).copied();
        // A pod stays what it was when it was first seen.
        let is_known_elsewhere = known.map(|pod| self.pods[pod].is_chosen_elsewhere());
        match is_known_elsewhere.unwrap_or(facts.is_chosen_elsewhere()) {
            false => self.take_in(known, facts),
            true => self.take_in_of_others(known, facts),
        }
    }

    fn take_in(&mut self, known: Option<PodId>, facts: PodFacts) {
        match known {
            Some(pod) => self.change_pod(pod, facts),
            None => self.add_pod(facts),
        }
    }

    /// Takes in a pod whose node another scheduler chooses, and holds room for it on the node to
    /// which that scheduler has nominated it, as long as the pod waits.
    fn take_in_of_others(&mut self, known: Option<PodId>, facts: PodFacts) {
        let (uid, nominated) = (facts.uid, facts.nominated.clone());
        let before = known.map(|pod| Holder::Foreign(self.pods[pod].priority, uid));
        self.take_in(known, facts);
        let Some(pod) = self.pod_ids.get(&uid).map(|pod| &self.pods[*pod]) else {
            return;
        };
        let holder = Holder::Foreign(pod.priority, uid);
        let before = before.unwrap_or(holder);
        let (class, waits) = (pod.class, pod.stage == Stage::Waiting && !pod.deleting);
        let node = nominated.filter(|_| waits).map(|name| self.node_id(&name));
        let room = node.map(|node| (class, node));
        let held = self.holds.get(before);
        let held = held.and_then(|hold| hold.places.first().copied());
        if (before, held) == (holder, room) {
            return;
        }
        self.end_hold(before);
        if let Some(room) = room {
            self.begin_hold(Hold::new(holder, None, [room].into()));
        }
    }

    fn add_pod(&mut self, facts: PodFacts) {
        // Which terms of other pods select the pod is known once it has its labels.
        let class = self.enter_class(&facts.shape, &[]);
        let node = facts.node.as_deref().map(|name| self.node_id(name));
        let ended = facts.phase.ended();
        let label_set = self.enter_label_set(&facts.namespace, &facts.labels);
        let own = facts.ours.then(|| Box::new(own(&facts, None)));
        let pod = self.pods.insert(Pod {
            uid: facts.uid,
            namespace: facts.namespace.clone(),
            name: facts.name.clone(),
            class,
            label_set,
            priority: facts.priority,
            created_ms: facts.created_ms,
            stage: Stage::Waiting,
            cards: match node {
                Some(_) => held(&facts),
                None => Held::default(),
            },
            cells: None,
            deleting: false,
            deletion_ms: None,
            leaving: false,
            running: facts.phase == PodPhase::Running,
            retry_at_ms: 0,
            glance: own.as_deref().map(Own::glance).unwrap_or_default(),
            claims: None,
            own,
        });
        self.pod_ids.insert(facts.uid, pod);
        if !ended {
            self.take_in_claims(pod, &facts);
        }
        self.follow_new_terms();
        self.reclass(pod);
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
            self.count_kind(self.pods[pod].class);
        }
        self.note_deletion(pod, facts.deletion_ms);
    }

    fn change_pod(&mut self, pod: PodId, facts: PodFacts) {
        let has_ended = facts.phase.ended();
        self.note_claims(pod, if has_ended { &[] } else { &facts.claims });
        self.change_class(pod, &facts);
        self.change_stage(pod, &facts);
        self.note_deletion(pod, facts.deletion_ms);
        let record = &mut self.pods[pod];
        record.running = facts.phase == PodPhase::Running;
        record.priority = facts.priority;
        self.change_labels(pod, &facts);
        if self.pods[pod].own.is_some() {
            self.forget_owner(pod);
            let record = &mut self.pods[pod];
            record.own = record.own.take().map(|before| {
                let own = own(&facts, Some(before));
                record.glance = own.glance();
                Box::new(own)
            });
            self.note_owner(pod);
            self.regroup(pod);
        }
        let gang = self.pods[pod].gang();
        self.touched.extend(gang);
    }

    /// The label set of a new pod, of which it is known which rules of others select it.
    fn enter_label_set(&mut self, namespace: &str, labels: &PodLabels) -> LabelSetId {
        let (set, is_new) = self.budgets.enter(namespace, labels);
        if is_new {
            self.match_tallies(set, namespace);
        }
        set
    }

    /// Takes in the labels of a pod, which rules of other pods may select or not any more.
    fn change_labels(&mut self, pod: PodId, facts: &PodFacts) {
        let record = &self.pods[pod];
        let implied = record.own.as_deref().map_or(0, |own| own.implied_labels);
        let same_stated = self.budgets.stated(record.label_set) == facts.labels.stated.as_ref();
        if same_stated && implied == facts.labels.implied {
            return;
        }
        let (before, node) = (record.label_set, record.stage.node());
        if let Some(node) = node {
            self.relate(pod, node, false);
        }
        // The pod stays in the namespace in which it was first seen.
        let namespace = self.pods[pod].namespace.clone();
        let set = self.enter_label_set(&namespace, &facts.labels);
        self.budgets.leave(before, &namespace);
        self.pods[pod].label_set = set;
        if let Some(own) = self.pods[pod].own.as_deref_mut() {
            own.implied_labels = facts.labels.implied;
        }
        if let Some(node) = node {
            self.relate(pod, node, true);
        }
        self.reclass(pod);
    }

    /// Moves a pod whose shape has changed to its new class: it was resized in place, or its node
    /// selector was made narrower while it was gated.
    fn change_class(&mut self, pod: PodId, facts: &PodFacts) {
        let before = self.pods[pod].class;
        let shape = self.with_claims(pod, &facts.shape);
        if self.classes[before].shape != shape {
            self.move_to_class(pod, &shape);
            self.follow_new_terms();
        }
    }

    /// Takes in the claims of a new pod, which are a part of what decides where it can run.
    fn take_in_claims(&mut self, pod: PodId, facts: &PodFacts) {
        if !facts.claims.is_empty() {
            self.note_claims(pod, &facts.claims);
            self.change_class(pod, facts);
        }
    }

    /// Moves a pod of ours to another class if other terms of anti-affinity select it now.
    pub(super) fn reclass(&mut self, pod: PodId) {
        if self.pods[pod].own.is_none() {
            return;
        }
        let class = &self.classes[self.pods[pod].class];
        let known = class
            .relations
            .as_deref()
            .map(ClassRelations::terms_of_others);
        if *known.unwrap_or_default() != *self.kept_out(pod) {
            let shape = class.shape.clone();
            self.move_to_class(pod, &shape);
            self.touched.extend(self.pods[pod].gang());
        }
    }

    pub(super) fn move_to_class(&mut self, pod: PodId, shape: &Arc<PodShape>) {
        let before = self.pods[pod].class;
        let kept_out = match self.pods[pod].own.is_some() {
            true => self.kept_out(pod),
            false => SmallVec::new(),
        };
        let class = self.enter_class(shape, &kept_out);
        let node = self.pods[pod].stage.node();
        if let Some(node) = node {
            self.vacate(pod, node, false);
            self.pods[pod].cells = None;
            // A smaller pod leaves room in its queue.
            let account = self.pods[pod].account();
            self.released.extend(account.map(|account| account.queue));
        }
        self.close_account(pod);
        self.pods[pod].class = class;
        if let Some(node) = node {
            self.occupy(pod, node);
            // A smaller pod leaves room on its node: refused gangs may fit there.
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
            // A bound pod stays bound: facts without a node are older. An assumed place is not in
            // facts yet.
            // tests plant bugs here: assumed-pod
            (None, PodPhase::Pending | PodPhase::Running) => before,
        };
        if matches!(before, Stage::Ended { .. }) {
            return;
        }
        let misaligned_on = self.note_misaligned(&pod, facts);
        self.move_pod(pod, after);
        if let Some(node) = misaligned_on {
            self.explain_cells_anew(node);
        }
        let cards = held(facts);
        if let Stage::Bound(node) = after
            && !cards.is_empty()
            && *cards != *self.pods[pod].cards
        {
            // The pod stays, so the node is kept even if the pod is all that is known of it.
            self.vacate(pod, node, false);
            self.pods[pod].cards = cards;
            self.occupy(pod, node);
            self.freed.insert(node);
        }
    }

    /// Brings a pod to another stage, and takes or gives back its room on nodes accordingly.
    pub(crate) fn move_pod(&mut self, pod: PodId, after: Stage) {
        let before = core::mem::replace(&mut self.pods[pod].stage, after);
        if before.node() != after.node() {
            // tests plant bugs here: room-of-an-ended-pod
            if let Some(node) = before.node() {
                self.vacate(pod, node, true);
                self.pods[pod].cards = Held::default();
                self.pods[pod].cells = None;
                if after.node().is_none() {
                    self.cease_leaving(pod);
                }
            }
            if let Some(node) = after.node() {
                self.occupy(pod, node);
            }
            self.holds.rebooked.push(self.pods[pod].uid);
            self.claims_may_pass_on(pod);
            for node in before.node().into_iter().chain(after.node()) {
                self.attachments_may_be_used(pod, node);
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
        if self.pods[pod].is_chosen_elsewhere() {
            self.end_hold(Holder::Foreign(self.pods[pod].priority, uid));
        }
        if let Some(node) = self.pods[pod].stage.node() {
            self.vacate(pod, node, true);
        }
        self.cease_leaving(pod);
        self.note_claims(pod, &[]);
        let gang = self.pods[pod].gang();
        if let Some(gang) = gang.filter(|_| self.pods[pod].stage == SUCCEEDED) {
            // A member that ended well and is deleted afterwards is not lost.
            let departed = &mut self.gangs[gang].departed;
            *departed = departed.saturating_add(1);
        }
        self.close_account(pod);
        self.forget_owner(pod);
        self.leave_gang(pod);
        let record = &self.pods[pod];
        self.budgets.leave(record.label_set, &record.namespace);
        let class = self.pods[pod].class;
        self.pods.remove(pod);
        self.leave_class(class);
    }

    /// Whether a pod is another scheduler's.
    pub(crate) fn is_foreign(&self, uid: Uid) -> bool {
        let pod = self.pod_ids.get(&uid).map(|pod| &self.pods[*pod]);
        pod.is_some_and(|pod| pod.own.is_none())
    }

    /// The nodes with these names; `None`: there is no such Node object.
    pub(crate) fn nodes_named(&self, names: &[Box<str>]) -> Vec<Option<NodeId>> {
        let known = |name: &str| {
            let node = *self.node_ids.get(name)?;
            self.nodes[node].known.as_ref().map(|_| node)
        };
        names.iter().map(|name| known(name)).collect()
    }

    /// The node of a pod, bound or assumed.
    pub(crate) fn node_of(&self, pod: PodId) -> Option<NodeId> {
        self.pods.get(pod)?.stage.node()
    }
}

/// What a pod holds of cards by its facts, each card once, in the order of their ids.
fn held(facts: &PodFacts) -> Held {
    Held::new(merged(facts.cards.clone()).into(), facts.is_of_hami)
}

/// The part of a pod's record that only pods of ours have, from new facts. What only the engine
/// knows is kept from the record `before`.
fn own(facts: &PodFacts, before: Option<Box<Own>>) -> Own {
    let before = before.map(|own| *own);
    let was_planned = before.as_ref().is_some_and(|own| own.planned);
    let (gang, account, (failure, prepares), condition_ms, bound) = match before {
        Some(own) => (
            own.gang,
            own.account,
            (own.failure, own.prepares),
            own.condition_ms,
            // Facts from before the binding do not say what the pod was bound for.
            (facts.node.is_none()).then_some((own.bound_queue, own.bound_minima)),
        ),
        None => (None, None, (None, false), 0, None),
    };
    let (bound_queue, bound_minima) = bound.unwrap_or_else(|| {
        let minima = facts.bound_minima.as_slice().into();
        (facts.bound_queue.clone(), minima)
    });
    Own {
        gang,
        extended: facts.extended,
        // tests plant bugs here: planned-pod
        planned: facts.is_planned() || was_planned,
        is_shut: facts.has_gang_gate(),
        implied_labels: facts.labels.implied,
        pod_group: facts.pod_group.clone(),
        sub_group: facts.sub_group.clone(),
        queue: facts.queue.clone(),
        native_group: facts.native_group.clone(),
        owner: facts.owner.clone(),
        deployment: facts.deployment.clone(),
        hints: facts.hints.clone(),
        gates: facts.holding_gates().map(Into::into).collect(),
        card_entries: facts.card_entries.clone(),
        problems: facts.problems.clone(),
        unknown_keys: facts.unknown_keys.clone(),
        nominated: facts.nominated.clone(),
        bound_queue,
        bound_minima,
        bound_ms: facts.bound_ms.or(facts.started_ms),
        is_binding_told: facts.bound_ms.is_some(),
        never_preempts: facts.never_preempts,
        unscheduled: facts.unscheduled.clone(),
        condition_ms,
        account,
        failure,
        prepares,
    }
}
