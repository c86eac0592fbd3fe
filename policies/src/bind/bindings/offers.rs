//! Planned pods are offered to kube-scheduler, which has them bound.
//!
//! ```text
//! Offering: the node is nominated --Done--> the gate is lifted --Done--> Offered
//!             ^ Throttled, or no certain outcome: the same request again, after a while
//!
//! Offering, Offered --kube-scheduler asks to bind the pod to the node--> Queued
//!                   --Refused, or it has not asked in time-------------> the place is given up
//! ```
//!
//! kube-scheduler looks at the nominated node first, and hears from
//! [`Engine::filter_nodes`](crate::engine::Engine::filter_nodes) that no other will do. It may
//! refuse the node all the same: what it knows of nodes is newer, or its plugins want more.
//!
//! A pod whose place is given up keeps the annotation that came with the lifting: that is how the
//! next leader knows that it is planned. A gate cannot be put back, so until the pod has a place
//! again, kube-scheduler hears that no node will do. If a gang has begun when a member loses its
//! place, the gang is unwound as any other that cannot be completed.

use super::{Offer, Step, assumed, pause_ms};
use crate::bind::Binder;
use crate::bind::outbox::Flight;
use crate::bind::timers::Timer;
use crate::command::{Action, Lift, StatusPatch};
use crate::event::Outcome;
use crate::facts::{Uid, UnixMs};
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId};
use crate::settings::Settings;
use crate::state::ClusterState;
use alloc::format;

/// How long kube-scheduler has for asking for the bind of a pod that is offered. It takes a few ms
/// for a pod, after all others in its queue.
const OFFERED_MS: u64 = 30_000;

impl Binder {
    /// Sends the next request of an offer, unless an older one about the pod is under way: of two
    /// requests the one that arrives last would count.
    pub(super) fn send_offer(
        &mut self,
        state: &ClusterState,
        uid: Uid,
        offer: Offer,
        deadline_ms: UnixMs,
    ) {
        let is_busy = self.offers.contains(&uid) || self.takings.are_nominating(uid);
        let Some((pod, node)) = assumed(state, uid).filter(|_| !is_busy) else {
            return;
        };
        let (pod, node) = (pod.reference(), state.nodes[node].name.clone());
        let action = match offer.is_nominated {
            false => Action::PatchStatus(StatusPatch::Nominated {
                pod,
                node: Some(node),
            }),
            true => Action::Lift(Lift { pod, node }),
        };
        self.offers.insert(uid);
        self.outbox.send(Flight::Offer(uid), deadline_ms, action);
        let is_sent = true;
        self.enter_step(uid, Step::Offering(Offer { is_sent, ..offer }));
    }

    /// A request about a pod has ended for which its offer may have waited.
    pub(crate) fn go_on_offering(&mut self, uid: Uid) {
        if let Some(Step::Offering(Offer { is_sent: false, .. })) = self.step_of(uid) {
            self.outbox.binds.push_back(uid);
        }
    }

    /// A nomination, or the lifting of a gate, has ended.
    pub(crate) fn offer_ended(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        uid: Uid,
        outcome: Outcome,
        now_ms: UnixMs,
    ) {
        self.offers.remove(&uid);
        let Some((pod, _)) = assumed(state, uid) else {
            // The place was given up meanwhile, or another scheduler has bound the pod.
            self.bindings.remove(&uid);
            if self.is_leading() {
                self.takings.clear_nomination(uid);
            }
            return;
        };
        let Some(Step::Offering(offer)) = self.step_of(uid) else {
            return;
        };
        if !offer.is_sent {
            // The request was for an earlier place of the pod.
            self.go_on_offering(uid);
            return;
        }
        let next = |is_nominated| {
            Step::Offering(Offer {
                is_nominated,
                is_sent: false,
            })
        };
        match outcome {
            Outcome::Done if offer.is_nominated => {
                let until_ms = now_ms.saturating_add(OFFERED_MS);
                self.enter_step(uid, Step::Offered(until_ms));
                self.timers.set(until_ms, Timer::Binding(uid));
            }
            Outcome::Done => self.again(state, (uid, next(true)), now_ms, 0),
            Outcome::Refused { message } => {
                let name = &pod.name;
                let why = format!("the API server refused to offer pod {name}: {message}");
                self.refuse(state, settings, progress, (uid, why.into()), now_ms);
            }
            // The pod may be gone, of which the watch tells.
            uncertain => {
                let wait_ms = pause_ms(settings, &uncertain);
                self.again(state, (uid, next(offer.is_nominated)), now_ms, wait_ms);
            }
        }
    }

    /// kube-scheduler asks to bind a planned pod to the node that was chosen for it.
    pub(crate) fn bind_asked(&mut self, uid: Uid) {
        if let Some(Step::Offering(_) | Step::Offered(_)) = self.step_of(uid) {
            self.enter_step(uid, Step::Queued);
            self.outbox.binds.push_back(uid);
        }
    }

    /// kube-scheduler has not asked in time for the bind of a pod that is offered.
    pub(super) fn offer_lapsed(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        uid: Uid,
        now_ms: UnixMs,
    ) {
        let Some((pod, node)) = assumed(state, uid) else {
            self.bindings.remove(&uid);
            return;
        };
        let (pod, node) = (&pod.name, &state.nodes[node].name);
        let seconds = OFFERED_MS / 1_000;
        let why = format!(
            "kube-scheduler has not asked to bind pod {pod} to node {node} within {seconds} s; \
             its events on the pod say why"
        );
        self.refuse(state, settings, progress, (uid, why.into()), now_ms);
    }
}
