//! The way of each placed pod to its node, through whatever the API server answers.
//!
//! ```text
//!            room for a request          Done, or the watch
//! Queued --------------------> Sent -----------------------> (bound)
//!   ^                           |
//!   | Throttled: after a while  | Conflict, NotFound, Unknown
//!   +---------------------------+-------> Asking --> Observing
//!   |                                        ^           | Bound: the world decides
//!   |   Observed unbound: the same bind      | Unknown   | Gone: the pod is forgotten
//!   +----------------------------------------+-----------+
//! ```
//!
//! The room stays taken until the outcome is certain: never another node while the first bind may
//! still succeed. Only `Refused` gives the room back, and the end of our leadership: from then on
//! nothing is sent, and what an answer leaves open is given back.

use super::Engine;
use super::outbox::{Flight, StatusKey};
use super::timers::Timer;
use crate::command::{Action, Announcement, Bind, CommandId, ObjectReference};
use crate::event::{Outcome, PodSeen};
use crate::facts::{Uid, UnixMs};
use crate::ids::NodeId;
use crate::state::gang::GangKey;
use crate::state::pod::{Pod, Stage};
use alloc::{boxed::Box, format};

/// Where the binding of a pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It waits for room, or for a time.
    Queued,
    /// The request is under way.
    Sent(CommandId),
    /// Nobody knows what became of it; the API server will be asked.
    Asking,
    /// The API server has been asked.
    Observing(CommandId),
}

/// How long before an observation that failed is repeated.
const ASK_AGAIN_MS: u64 = 500;

impl Engine {
    /// A pod has been placed: its binding is to be sent.
    pub(crate) fn start_binding(&mut self, uid: Uid) {
        self.bindings.insert(uid, Step::Queued);
        self.outbox.binds.push_back(uid);
    }

    /// The pod and the node of a binding that has not been overtaken by events.
    fn assumed(&self, uid: Uid) -> Option<(&Pod, NodeId)> {
        let pod = &self.state.pods[*self.state.pod_ids.get(&uid)?];
        match pod.stage {
            Stage::Assumed(node) => Some((pod, node)),
            Stage::Waiting | Stage::Bound(_) | Stage::Ended { .. } => None,
        }
    }

    /// Sends binds, observations and evictions while there is room.
    pub(crate) fn send_actions(&mut self, now_ms: UnixMs) {
        let limits = self.settings.in_flight;
        let deadline_ms = now_ms.saturating_add(self.settings.request_deadline_ms);
        while self.outbox.has_room_for_action(limits) {
            if let Some(uid) = self.outbox.observations.pop_front() {
                self.send_observation(uid, deadline_ms);
            } else if let Some(uid) = self.outbox.evictions.pop_front() {
                self.send_eviction(uid, deadline_ms);
            } else if let Some(uid) = self.outbox.binds.pop_front() {
                self.send_bind(uid, deadline_ms);
            } else {
                return;
            }
        }
    }

    fn send_bind(&mut self, uid: Uid, deadline_ms: UnixMs) {
        if self.bindings.get(&uid) != Some(&Step::Queued) {
            return;
        }
        let Some((pod, node)) = self.assumed(uid) else {
            self.bindings.remove(&uid);
            return;
        };
        if self.state.nodes[node].known.is_none() || pod.deleting {
            // Nothing was sent yet, so the choice can still be taken back.
            self.take_back(uid);
            return;
        }
        let gang = pod
            .own
            .as_ref()
            .and_then(|own| own.gang)
            .map(|gang| &self.state.gangs[gang]);
        let pod_group = gang.and_then(|gang| match &gang.key {
            GangKey::Group(_, _, name) => Some(name.clone()),
            GangKey::Owner(_) | GangKey::Pod(_) => None,
        });
        let bind = Bind {
            pod: pod.reference(),
            node: self.state.nodes[node].name.clone(),
            queue: gang.map(|gang| gang.spec.queue.clone()).unwrap_or_default(),
            pod_group,
        };
        let command = self
            .outbox
            .send(Flight::Bind(uid), deadline_ms, Action::Bind(bind));
        self.bindings.insert(uid, Step::Sent(command.id));
        self.commands.push(command);
    }

    fn send_observation(&mut self, uid: Uid, deadline_ms: UnixMs) {
        let reference = self
            .state
            .pod_ids
            .get(&uid)
            .map(|id| self.state.pods[*id].reference());
        let (Some(Step::Asking), Some(reference)) = (self.bindings.get(&uid), reference) else {
            return;
        };
        let action = Action::Observe(reference);
        let command = self.outbox.send(Flight::Observe(uid), deadline_ms, action);
        self.bindings.insert(uid, Step::Observing(command.id));
        self.commands.push(command);
    }

    /// A bind request has ended.
    pub(crate) fn bind_ended(&mut self, uid: Uid, outcome: Outcome, now_ms: UnixMs) {
        if self.assumed(uid).is_none() {
            // The watch was faster.
            if self.bindings.remove(&uid).is_some() && outcome == Outcome::Done {
                self.announce_bound(uid);
            }
            return;
        }
        match outcome {
            Outcome::Done => self.confirm(uid),
            _ if !self.leading => self.take_back(uid),
            Outcome::Refused { message } => self.binding_refused(uid, message, now_ms),
            Outcome::Throttled { retry_after_ms } => {
                self.bindings.insert(uid, Step::Queued);
                self.timers.set(
                    now_ms.saturating_add(retry_after_ms.max(1)),
                    Timer::Binding(uid),
                );
            }
            Outcome::Conflict
            | Outcome::NotFound
            | Outcome::Unknown
            | Outcome::Observed(_)
            | Outcome::Lease(_) => {
                self.bindings.insert(uid, Step::Asking);
                self.outbox.observations.push_back(uid);
            }
        }
    }

    /// An observation has ended.
    pub(crate) fn observation_ended(&mut self, uid: Uid, outcome: Outcome, now_ms: UnixMs) {
        let Some((_, node)) = self.assumed(uid) else {
            self.bindings.remove(&uid);
            return;
        };
        match outcome {
            Outcome::Observed(PodSeen::Bound(name)) if *name == *self.state.nodes[node].name => {
                self.confirm(uid);
            }
            Outcome::Observed(PodSeen::Bound(name)) => {
                // Somebody else was faster: the world decides.
                self.bindings.remove(&uid);
                let elsewhere = self.state.node_id(&name);
                let pod = self.state.pod_ids[&uid];
                self.state.move_pod(pod, Stage::Bound(elsewhere));
            }
            Outcome::Observed(PodSeen::Gone) | Outcome::NotFound => {
                self.bindings.remove(&uid);
                self.state.delete_pod(uid);
            }
            _ if !self.leading => self.take_back(uid),
            Outcome::Observed(PodSeen::Unbound) => {
                self.bindings.insert(uid, Step::Queued);
                self.outbox.binds.push_front(uid);
            }
            Outcome::Done
            | Outcome::Conflict
            | Outcome::Refused { .. }
            | Outcome::Throttled { .. }
            | Outcome::Unknown
            | Outcome::Lease(_) => {
                self.bindings.insert(uid, Step::Asking);
                self.timers
                    .set(now_ms.saturating_add(ASK_AGAIN_MS), Timer::Binding(uid));
            }
        }
    }

    /// A time has come for a binding.
    pub(crate) fn binding_due(&mut self, uid: Uid) {
        match self.bindings.get(&uid) {
            Some(Step::Queued) => self.outbox.binds.push_front(uid),
            Some(Step::Asking) => self.outbox.observations.push_back(uid),
            Some(Step::Sent(_) | Step::Observing(_)) | None => {}
        }
    }

    /// The API server has bound the pod where we wanted it.
    fn confirm(&mut self, uid: Uid) {
        let Some((pod, node)) = self.assumed(uid) else {
            return;
        };
        let gang = pod.own.as_ref().and_then(|own| own.gang);
        // The accounts need nothing more; the pod counts as bound from now on.
        let id = self.state.pod_ids[&uid];
        self.state.move_pod(id, Stage::Bound(node));
        self.bindings.remove(&uid);
        self.announce_bound(uid);
        if let Some(gang) = gang {
            self.outbox.status(StatusKey::Gang(gang));
        }
    }

    /// Tells users where a pod went.
    fn announce_bound(&mut self, uid: Uid) {
        let pod = self.state.pod_ids.get(&uid).map(|id| &self.state.pods[*id]);
        let Some((pod, node)) = pod.and_then(|pod| Some((pod, pod.stage.node()?))) else {
            return;
        };
        let message = format!(
            "assigned {}/{} to {}",
            pod.namespace, pod.name, self.state.nodes[node].name
        );
        self.outbox.announce(Announcement {
            regarding: pod_object(pod),
            warning: false,
            reason: "Scheduled",
            message: message.into(),
        });
    }

    fn binding_refused(&mut self, uid: Uid, message: Box<str>, now_ms: UnixMs) {
        let first_ms = self.settings.retry_after_ms;
        let id = self.state.pod_ids[&uid];
        if let Some(own) = &mut self.state.pods[id].own
            && let Some(gang) = own.gang
        {
            let backoff = &mut self.state.gangs[gang].backoff;
            own.retry_at_ms = backoff.refused(now_ms, first_ms);
            own.failure = Some(message);
            self.timers.set(own.retry_at_ms, Timer::Gang(gang));
        }
        self.take_back(uid);
    }

    /// Gives up a place that is certainly not taken.
    fn take_back(&mut self, uid: Uid) {
        self.bindings.remove(&uid);
        if let Some(id) = self.state.pod_ids.get(&uid).copied()
            && matches!(self.state.pods[id].stage, Stage::Assumed(_))
        {
            self.state.move_pod(id, Stage::Waiting);
        }
    }

    /// Takes back the gangs of which no member has a node yet and no request was sent: the next
    /// leader places them. All others are finished, so that none is left in part.
    pub(crate) fn take_back_unbegun(&mut self) {
        let unsent = |uid: &Uid| self.bindings.get(uid) == Some(&Step::Queued);
        let mut unbegun = alloc::vec::Vec::new();
        for uid in self.bindings.keys().filter(|uid| unsent(uid)) {
            let pod = self.state.pod_ids.get(uid).map(|id| &self.state.pods[*id]);
            let gang = pod.and_then(|pod| pod.own.as_ref()?.gang);
            let members = gang.map_or(&[][..], |gang| &self.state.gangs[gang].members);
            let begun = members.iter().any(|member| {
                let member = &self.state.pods[*member];
                match member.stage {
                    Stage::Bound(_) => true,
                    Stage::Assumed(_) => !unsent(&member.uid),
                    Stage::Waiting | Stage::Ended { .. } => false,
                }
            });
            if !begun {
                unbegun.push(*uid);
            }
        }
        for uid in unbegun {
            self.take_back(uid);
        }
    }

    /// We do not lead any more. What was not sent, and what the API server would have to be asked
    /// about, is given back: another leads now, the watch tells what it does, and when we lead
    /// again we begin from what the world shows. A request under way is followed to its answer.
    pub(crate) fn give_up_uncertain(&mut self) {
        let under_way = |step: &Step| matches!(step, Step::Sent(_) | Step::Observing(_));
        let uncertain: alloc::vec::Vec<Uid> = self
            .bindings
            .iter()
            .filter(|(_, step)| !under_way(step))
            .map(|(uid, _)| *uid)
            .collect();
        for uid in uncertain {
            self.take_back(uid);
        }
        self.outbox.forget_actions();
        self.evicting.clear();
    }
}

/// A pod as the object of an event.
pub(crate) fn pod_object(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid,
    }
}
