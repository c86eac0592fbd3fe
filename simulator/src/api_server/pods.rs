//! Pods: bindings, evictions, and deletions with a grace.
//!
//! ```text
//!  without a node, ended, or grace 0:   delete --> MODIFIED (leaving), DELETED
//!  with a node:                         delete --> MODIFIED (leaving) ... the kubelet deletes it
//!                                                                        with grace 0 --> DELETED
//! ```

use super::{Answer, ApiServer, Conflict, Name, PodStatus, Status, Stored, fields, found};
use gpu_batch_policies::command::{Bind, Lift, PodReference};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{DisruptionBudgetFacts, GANG_GATE, PodFacts, PodPhase, UnixMs};
use std::sync::Arc;

/// `terminationGracePeriodSeconds` of every pod here: Kubernetes' default.
const GRACE_S: u64 = 30;

/// `Retry-After` of an eviction while the controller has not seen the spec of the budget, in
/// seconds.
const UNOBSERVED_RETRY_S: u64 = 10;
const TWO_BUDGETS: &str = "This pod has more than one PodDisruptionBudget, which the eviction \
     subresource does not support.";

/// A pod as it is stored.
#[derive(Debug, Clone)]
pub(super) struct StoredPod {
    pub(super) name: Name,
    pub(super) facts: PodFacts,
    pub(super) status: PodStatus,
    stored: Arc<Stored>,
}

impl ApiServer {
    pub(super) fn pod(&self, namespace: &str, name: &str) -> Option<StoredPod> {
        self.pod_named(Name::pod(namespace, name))
    }

    fn pod_named(&self, name: Name) -> Option<StoredPod> {
        let stored = self.get(&name)?;
        match (&stored.object, &stored.status) {
            (Object::Pod(facts), Status::Pod(status)) => Some(StoredPod {
                name,
                facts: facts.clone(),
                status: status.clone(),
                stored: Arc::clone(stored),
            }),
            _ => None,
        }
    }

    pub(super) fn change_pod(&mut self, mut pod: StoredPod) -> Arc<Stored> {
        pod.facts.bound_ms = fields::bound_ms(&pod.status);
        let (object, status) = (Object::Pod(pod.facts), Status::Pod(pod.status));
        self.change(pod.name, &pod.stored, object, status)
    }

    /// Binds a pod. As in Kubernetes the node is not looked at: it may be full, or not exist.
    pub(super) fn bind(&mut self, bind: &Bind, now_ms: UnixMs) -> Answer {
        let Some(mut pod) = self.pod(&bind.pod.namespace, &bind.pod.name) else {
            return Answer::NotFound;
        };
        // tests plant bugs here: uid-of-a-bind
        let conflict = if pod.facts.uid != bind.pod.uid {
            Some(Conflict::Uid)
        } else if pod.facts.deletion_ms.is_some() {
            Some(Conflict::BeingDeleted)
        } else if pod.facts.node.is_some() {
            Some(Conflict::AlreadyBound)
        } else if !pod.facts.gates.is_empty() {
            Some(Conflict::Gated)
        } else {
            None
        };
        if let Some(conflict) = conflict {
            return Answer::Conflict(conflict);
        }
        pod.facts.node = Some(bind.node.clone());
        pod.facts.nominated = None;
        // Annotations are merged: those that the binding does not name stay. A binding by another
        // scheduler names no queue.
        if !bind.queue.is_empty() {
            pod.facts.bound_queue = Some(bind.queue.clone());
        }
        if let Some(pod_group) = &bind.pod_group {
            pod.facts.bound_pod_group = Some(pod_group.clone());
        }
        if !bind.minima.is_empty() {
            pod.facts.bound_minima.clone_from(&bind.minima);
        }
        if bind.assignment.is_some() {
            pod.facts.cards.clone_from(&bind.cards);
        }
        pod.facts.unscheduled = None;
        if pod.status.scheduled != Some(true) {
            pod.status.scheduled = Some(true);
            pod.status.scheduled_since_s = now_ms / 1_000;
        }
        pod.facts.bound_ms = Some(pod.status.scheduled_since_s * 1_000);
        self.change_pod(pod);
        Answer::Done
    }

    /// Lifts the gate of a pod and notes the node that was chosen for it.
    pub(super) fn lift(&mut self, lift: Lift, now_ms: UnixMs) -> Answer {
        let mut pod = match self.pod_of_patch(&lift.pod) {
            Ok(pod) => pod,
            Err(answer) => return answer,
        };
        pod.facts.gates.retain(|gate| **gate != *GANG_GATE);
        pod.facts.planned_node = Some(lift.node);
        pod.status.planned_at_ms = now_ms;
        found(self.change_pod(pod))
    }

    /// Evicts a pod. A budget is asked only for a running pod, and before the UID is compared. For
    /// other pods the real API server takes ten seconds to answer that the UID is another one.
    pub(super) fn evict(&mut self, reference: &PodReference, now_ms: UnixMs) -> Answer {
        let Some(mut pod) = self.pod(&reference.namespace, &reference.name) else {
            return Answer::NotFound;
        };
        let guarded = pod.facts.phase == PodPhase::Running && pod.facts.deletion_ms.is_none();
        if guarded && let Some(refusal) = self.ask_budgets(&pod.facts) {
            return refusal;
        }
        if pod.facts.uid != reference.uid {
            return Answer::Conflict(Conflict::Uid);
        }
        pod.status.disruption_target = true;
        let name = pod.name.clone();
        self.change_pod(pod);
        self.delete_pod(&name, None, now_ms);
        Answer::Done
    }

    /// Asks the budget that selects a pod, which then allows one eviction less.
    fn ask_budgets(&mut self, facts: &PodFacts) -> Option<Answer> {
        let selecting = self.budgets().filter(|(_, budget)| budget.selects(facts));
        let selecting: Vec<_> = selecting.collect();
        let (stored, budget) = *selecting.first()?;
        if selecting.len() > 1 {
            return Some(Answer::InternalError(TWO_BUDGETS));
        }
        let retry_after_s = match (&stored.status, budget.allowed) {
            (Status::DisruptionBudget { observed: false }, _) => Some(UNOBSERVED_RETRY_S),
            (_, 0) => Some(0),
            _ => None,
        };
        if let Some(retry_after_s) = retry_after_s {
            return Some(Answer::TooManyRequests {
                retry_after_s,
                by_budget: true,
            });
        }
        let budget = Object::DisruptionBudget(DisruptionBudgetFacts {
            allowed: budget.allowed - 1,
            ..budget.clone()
        });
        let status = stored.status.clone();
        self.store(Name::of(&budget), budget, status);
        None
    }

    /// Sets the grace period of a pod that was created with another one than the default.
    pub(crate) fn set_grace(&mut self, name: &Name, grace_s: u64) {
        if let Some(mut pod) = self.pod_named(name.clone()) {
            pod.status.grace_s = Some(grace_s);
            self.change_pod(pod);
        }
    }

    /// Deletes a pod. Even a pod without a grace is first marked as being deleted; watches see both
    /// changes. The grace of a pod that is being deleted can only be shortened.
    pub(super) fn delete_pod(&mut self, name: &Name, grace_s: Option<u64>, now_ms: UnixMs) {
        let Some(mut pod) = self.pod_named(name.clone()) else {
            return;
        };
        let now_s = now_ms / 1_000;
        let grace_s = match (pod.status.deletion_grace_s, grace_s) {
            (None, asked_s) => {
                let at_once = pod.facts.node.is_none() || pod.facts.phase.ended();
                let grace_s = if at_once {
                    0
                } else {
                    asked_s.or(pod.status.grace_s).unwrap_or(GRACE_S)
                };
                pod.status.deletion_s = now_s + grace_s;
                grace_s
            }
            (Some(left_s), Some(asked_s)) if asked_s < left_s => {
                let shortened_s = pod.status.deletion_s.saturating_sub(left_s) + asked_s;
                pod.status.deletion_s = shortened_s.max(now_s);
                // If the shortened grace has ended already, the pod still stays until the kubelet
                // deletes it.
                let over = shortened_s < now_s && asked_s > 0;
                if over { 1 } else { asked_s }
            }
            (Some(_), _) => return,
        };
        pod.facts.deletion_ms = Some(pod.status.deletion_s * 1_000);
        pod.status.deletion_grace_s = Some(grace_s);
        self.change_pod(pod);
        if grace_s == 0 {
            self.remove(name);
        }
    }
}
