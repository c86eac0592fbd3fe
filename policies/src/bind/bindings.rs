//! The way of each placed pod to its node, through whatever the API server answers.
//!
//! ```text
//!  a planned pod:
//!  Offering --nominated, its gate lifted--> Offered --kube-scheduler asks--> Queued
//!     +---- Refused, or not asked for in time ----+--> the place is given up
//!
//!            room for a request          Done, or the watch
//! Queued --------------------> Sent -----------------------> (bound)
//!   ^                           |
//!   | Throttled: after a while  | Conflict, NotFound, Unknown
//!   +---------------------------+-------> Asking --> Observing
//!   |                                        ^           | Bound: the world decides
//!   |   Observed unbound: once more          | Unknown   | Gone: the pod is forgotten
//!   +----------------------------------------+-----------+
//! ```
//!
//! Planned pods of kube-scheduler are offered to it first: see [`offers`]. Before members of a
//! gang are bound that need volumes, these are made or kept: see [`preparing`]. Pods that get cards
//! of a node of HAMi take turns before their binds are queued: see [`locking`].
//!
//! The room stays taken until the outcome is certain: the pod gets no other node while the first
//! bind may still succeed. Only `Refused` gives the room back. From the second try that failed or
//! was throttled, what the API server says is told with the reason `BindingFailed`, whether or not
//! the room was given back.
//!
//! A scheduler that does not lead sends nothing. Then the room of bindings that were never sent is
//! given back; bindings that are uncertain are asked about when it leads again, unless the watch
//! has told their outcome before.
//!
//! A place that becomes too small before its bind was sent is given up, and with it all places of
//! its gang if the gang has not begun. Binds that were not sent yet are also given up when another
//! member of the gang turns out to be on a node that was not chosen for it. The pause between
//! repeated binds grows.

mod locking;
mod offers;
mod preparing;

pub(super) use locking::Locks;
pub(super) use preparing::Preparations;

use crate::bind::Binder;
use crate::bind::outbox::{Flight, StatusKey};
use crate::bind::timers::Timer;
use crate::command::{Action, Announcement, Bind, CardAssignment, CommandId};
use crate::event::{Outcome, PodSeen};
use crate::facts::{Uid, UnixMs};
use crate::gangs::first_look;
use crate::gangs::progress::Progress;
use crate::ids::ById;
use crate::ids::GangId;
use crate::ids::{NodeId, PodId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::gang::GangKey;
use crate::state::pod::{Pod, Stage};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

/// The binding of a pod that has been placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Binding {
    step: Step,
    /// Requests that were given up and may still arrive.
    given_up: u32,
    /// Requests that the API server has put off, which never arrive.
    throttled: u32,
}

/// Where a binding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Volumes for the claims of the pod's gang are to be ready by this time.
    Preparing(UnixMs),
    /// kube-scheduler is to be made to look at the pod.
    Offering(Offer),
    /// kube-scheduler looks at the pod, and is to ask for its bind until this time.
    Offered(UnixMs),
    /// The bind waits for the lock on the cards of the node.
    Locking,
    /// The bind waits for room to send a request, or for a time.
    Queued,
    /// The bind is under way.
    Sent,
    /// The outcome is uncertain; the API server will be asked.
    Asking,
    /// The API server has been asked.
    Observing(CommandId),
}

/// How far a planned pod has come to be offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Offer {
    /// The node is the pod's nominated one; what is left is to lift its gate.
    is_nominated: bool,
    /// The next request is under way.
    is_sent: bool,
}

/// The pause, in ms, before a failed observation is repeated, and before a bind is repeated that
/// was given up twice; before each further bind the pause is twice as long, up to 8 s.
const AGAIN_MS: u64 = 500;

/// How often the pause before a further bind is doubled, at most.
const DOUBLINGS_MAX: u32 = 4;

/// How many tries of a binding must have failed, or been throttled, before users are told.
const TOLD_FROM: u32 = 2;

impl Binding {
    /// Whether no bind was sent that may still arrive.
    fn is_unsent(&self) -> bool {
        let waits = matches!(
            self.step,
            Step::Preparing(_)
                | Step::Offering(_)
                | Step::Offered(_)
                | Step::Locking
                | Step::Queued
        );
        waits && self.given_up == 0
    }
}

impl Binder {
    /// Pods have been placed together: their bindings are to be sent.
    pub(crate) fn start_bindings(
        &mut self,
        state: &mut ClusterState,
        placed: &[(PodId, NodeId)],
        now_ms: UnixMs,
    ) {
        let first = self.begin_preparing(state, placed, now_ms);
        for (pod, _) in placed {
            self.start_binding(state, *pod, first);
        }
    }

    fn start_binding(&mut self, state: &mut ClusterState, pod: PodId, first: Option<Step>) {
        let uid = state.pods[pod].uid;
        let minima = first_look::minima_for(state, pod);
        if let Some(own) = &mut state.pods[pod].own {
            own.bound_minima = minima;
        }
        let binding = Binding {
            // tests plant bugs here: offered-first
            step: match state.pods[pod].is_planned() {
                true => Step::Offering(Offer::default()),
                false => first.unwrap_or(Step::Queued),
            },
            given_up: 0,
            throttled: 0,
        };
        self.bindings.insert(uid, binding);
        self.outbox.binds.push_back(uid);
    }

    /// Sends binds, observations and evictions while there is room.
    pub(crate) fn send_actions(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        now_ms: UnixMs,
    ) {
        let deadline_ms = now_ms.saturating_add(settings.request_deadline_ms);
        while self.outbox.has_room_for_action() {
            if let Some(uid) = self.outbox.observations.pop_front() {
                self.send_observation(state, uid, deadline_ms);
            } else if let Some(uid) = self.outbox.evictions.pop_front() {
                self.send_eviction(state, progress, uid, deadline_ms, now_ms);
            } else if self.send_release(deadline_ms) {
                // One request at a time, as long as there is room.
            } else if let Some(uid) = self.outbox.binds.pop_front() {
                self.send_bind(state, uid, deadline_ms, now_ms);
            } else if self.send_unselection(state, deadline_ms) {
                // One request at a time here, too.
            } else if !self.follow_locks(state, now_ms) {
                return self.send_takings(state, settings, now_ms);
            }
        }
    }

    fn send_bind(
        &mut self,
        state: &mut ClusterState,
        uid: Uid,
        deadline_ms: UnixMs,
        now_ms: UnixMs,
    ) {
        let Some(binding) = self.bindings.get(&uid) else {
            return;
        };
        let (step, again) = (binding.step, binding.given_up > 0);
        if matches!(
            step,
            Step::Offered(_) | Step::Sent | Step::Asking | Step::Observing(_)
        ) {
            return;
        }
        let Some((pod, node)) = assumed(state, uid) else {
            self.bindings.remove(&uid);
            return;
        };
        if state.nodes[node].known.is_none() || pod.deleting {
            // Nothing was sent yet, so the choice can still be taken back.
            self.give_up_place(state, uid);
            return;
        }
        let class = &state.classes[pod.class];
        // tests plant bugs here: failed-while-a-bind-waits
        let has_failed = class.accelerated && !state.ailments.of(node).is_empty();
        if !again && (has_failed || state.nodes[node].is_overfull(class, &pod.cards)) {
            // While the bind waited, the node has become too small, other pods have filled it, or
            // its GPUs have failed.
            self.take_back_with_gang(state, uid);
            return;
        }
        if let Step::Preparing(_) = step {
            self.send_selection(state, uid, deadline_ms);
            return;
        }
        if let Step::Offering(offer) = step {
            self.send_offer(state, uid, offer, deadline_ms);
            return;
        }
        let is_assigned = is_assigned(state, pod, node);
        if is_assigned && !self.has_turn(state, (uid, node), deadline_ms, now_ms) {
            return;
        }
        let assigned_ms = is_assigned.then_some(now_ms);
        let action = Action::Bind(bind_of(
            state,
            &state.pods[state.pod_ids[&uid]],
            node,
            assigned_ms,
        ));
        self.outbox.send(Flight::Bind(uid), deadline_ms, action);
        self.enter_step(uid, Step::Sent);
    }

    /// Binds a pod of another scheduler, which asks for that, to the node that was chosen for it.
    /// Nothing is followed up: the other scheduler asks again if the pod gets no node.
    pub(crate) fn bind_for_others(
        &mut self,
        state: &ClusterState,
        pod: PodId,
        node: &str,
        deadline_ms: UnixMs,
    ) {
        let pod = &state.pods[pod];
        let bind = Bind {
            pod: pod.reference(),
            node: node.into(),
            cards: Vec::new(),
            assignment: None,
            queue: "".into(),
            pod_group: None,
            minima: Vec::new(),
        };
        self.outbox
            .send(Flight::Bind(pod.uid), deadline_ms, Action::Bind(bind));
    }

    fn send_observation(&mut self, state: &mut ClusterState, uid: Uid, deadline_ms: UnixMs) {
        let reference = state
            .pod_ids
            .get(&uid)
            .map(|id| state.pods[*id].reference());
        let (Some(Step::Asking), Some(reference)) = (self.step_of(uid), reference) else {
            return;
        };
        let action = Action::Observe(reference);
        let id = self.outbox.send(Flight::Observe(uid), deadline_ms, action);
        self.enter_step(uid, Step::Observing(id));
    }

    /// A bind request has ended.
    pub(crate) fn bind_ended(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        uid: Uid,
        outcome: Outcome,
        now_ms: UnixMs,
    ) {
        if assumed(state, uid).is_none() {
            // The watch, or another event, has told first what became of the pod.
            if self.bindings.remove(&uid).is_some() && outcome == Outcome::Done {
                self.announce_bound(state, uid);
            }
            return;
        }
        match outcome {
            Outcome::Done => self.confirm(state, uid),
            Outcome::Refused { message } => {
                let name = &state.pods[state.pod_ids[&uid]].name;
                let why = format!("the API server refused to bind pod {name}: {message}");
                self.refuse(state, settings, progress, (uid, why.into()), now_ms);
            }
            Outcome::Throttled { retry_after_ms } => {
                self.note_throttled(state, uid);
                // tests plant bugs here: throttled-bind
                self.again(state, (uid, Step::Queued), now_ms, retry_after_ms.max(1));
            }
            // tests plant bugs here: unknown-outcome
            Outcome::Conflict { message } | Outcome::Unknown { message } => {
                self.ask_about(state, uid, message);
            }
            Outcome::NotFound | Outcome::Observed(_) | Outcome::Lease(_) => {
                self.ask_about(state, uid, "it knows no such pod".into());
            }
        }
    }

    /// A pod is certainly not bound to its node, for a reason that is told: its place is given up,
    /// and it is placed again after a pause.
    fn refuse(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        (uid, why): (Uid, Box<str>),
        now_ms: UnixMs,
    ) {
        let id = state.pod_ids[&uid];
        if let Some(gang) = state.pods[id].gang() {
            let first_ms = settings.retry_after_ms;
            let retry_at_ms = progress[gang].note_refused_binding(now_ms, first_ms);
            self.timers.set(retry_at_ms, Timer::Gang(gang));
            state.pods[id].retry_at_ms = retry_at_ms;
            note_failure(state, uid, why);
        }
        self.take_back_with_gang(state, uid);
    }

    /// A bind was answered with `message`, which leaves open whether it was done: the API server is
    /// asked.
    fn ask_about(&mut self, state: &mut ClusterState, uid: Uid, message: Box<str>) {
        if let Some(binding) = self.bindings.get_mut(&uid) {
            binding.step = Step::Asking;
            binding.given_up = binding.given_up.saturating_add(1);
            if binding.given_up >= TOLD_FROM {
                let tries = binding.given_up;
                let why = format!("{tries} tries have failed, the last with: {message}");
                note_not_bound(state, uid, &why);
            }
        }
        self.outbox.observations.push_back(uid);
    }

    /// Notes that a bind was throttled. It is told once, and without a number of tries: each new
    /// number would be one more status for an API server that has too much to do already.
    fn note_throttled(&mut self, state: &mut ClusterState, uid: Uid) {
        let Some(binding) = self.bindings.get_mut(&uid) else {
            return;
        };
        binding.throttled = binding.throttled.saturating_add(1);
        if binding.throttled != TOLD_FROM {
            return;
        }
        let why = "the API server throttles requests (429); it is asked again when it says";
        note_not_bound(state, uid, why);
        self.tell_failure(state, uid);
    }

    /// Queues the next request of a binding in this step, after a while.
    fn again(
        &mut self,
        state: &mut ClusterState,
        (uid, step): (Uid, Step),
        now_ms: UnixMs,
        wait_ms: u64,
    ) {
        self.enter_step(uid, step);
        if !self.leading {
            self.stand_down(state, uid);
        } else if wait_ms == 0 {
            self.outbox.binds.push_front(uid);
        } else {
            let at_ms = now_ms.saturating_add(wait_ms);
            self.timers.set(at_ms, Timer::Binding(uid));
        }
    }

    fn step_of(&self, uid: Uid) -> Option<Step> {
        self.bindings.get(&uid).map(|binding| binding.step)
    }

    fn enter_step(&mut self, uid: Uid, step: Step) {
        if let Some(binding) = self.bindings.get_mut(&uid) {
            binding.step = step;
        }
    }

    /// An observation has ended.
    pub(crate) fn observation_ended(
        &mut self,
        state: &mut ClusterState,
        uid: Uid,
        outcome: Outcome,
        now_ms: UnixMs,
    ) {
        let Some((_, node)) = assumed(state, uid) else {
            self.bindings.remove(&uid);
            return;
        };
        match outcome {
            Outcome::Observed(PodSeen::Bound(name)) if *name == *state.nodes[node].name => {
                self.confirm(state, uid);
            }
            Outcome::Observed(PodSeen::Bound(name)) => {
                // Another scheduler has bound the pod: the world decides.
                self.bindings.remove(&uid);
                // tests plant bugs here: bound-elsewhere
                let elsewhere = state.node_id(&name);
                let pod = state.pod_ids[&uid];
                state.move_pod(pod, Stage::Bound(elsewhere));
            }
            Outcome::Observed(PodSeen::Gone) | Outcome::NotFound => {
                self.bindings.remove(&uid);
                state.delete_pod(uid);
            }
            Outcome::Observed(PodSeen::Unbound) => {
                let given_up = self.bindings.get(&uid).map_or(0, |it| it.given_up);
                let wait_ms = match given_up {
                    0 | 1 => 0,
                    more => AGAIN_MS << (more - 2).min(DOUBLINGS_MAX),
                };
                self.again(state, (uid, Step::Queued), now_ms, wait_ms);
                self.tell_failure(state, uid);
            }
            Outcome::Done
            | Outcome::Conflict { .. }
            | Outcome::Refused { .. }
            | Outcome::Throttled { .. }
            | Outcome::Unknown { .. }
            | Outcome::Lease(_) => {
                self.tell_failure(state, uid);
                self.enter_step(uid, Step::Asking);
                let again_ms = now_ms.saturating_add(AGAIN_MS);
                // tests plant bugs here: ask-again
                self.timers.set(again_ms, Timer::Binding(uid));
            }
        }
    }

    /// The time has come to go on with a binding.
    pub(crate) fn binding_due(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        uid: Uid,
        now_ms: UnixMs,
    ) {
        match self.step_of(uid) {
            Some(Step::Preparing(until_ms)) => {
                self.preparing_due(state, settings, progress, (uid, until_ms), now_ms);
            }
            Some(Step::Offering(_) | Step::Queued) => self.outbox.binds.push_front(uid),
            Some(Step::Offered(until_ms)) if until_ms <= now_ms => {
                self.offer_lapsed(state, settings, progress, uid, now_ms);
            }
            Some(Step::Offered(_)) => {}
            Some(Step::Asking) => self.outbox.observations.push_back(uid),
            // Locks are followed with each step.
            Some(Step::Locking | Step::Sent | Step::Observing(_)) | None => {}
        }
    }

    /// The API server has bound the pod where we wanted it.
    fn confirm(&mut self, state: &mut ClusterState, uid: Uid) {
        let Some((pod, node)) = assumed(state, uid) else {
            return;
        };
        let gang = pod.own.as_ref().and_then(|own| own.gang);
        // The accounts stay as they are: a pod that is being bound counts in them already.
        let id = state.pod_ids[&uid];
        state.move_pod(id, Stage::Bound(node));
        // The annotation that the binding has written; the watch tells of it only later.
        if let Some(own) = &mut state.pods[id].own {
            own.bound_queue = gang.map(|gang| (&*state.gangs[gang].spec.queue).into());
            own.failure = None;
        }
        self.bindings.remove(&uid);
        self.announce_bound(state, uid);
        if let Some(gang) = gang {
            self.outbox.status(StatusKey::Gang(gang));
        }
    }

    /// Tells users where a pod went.
    fn announce_bound(&mut self, state: &mut ClusterState, uid: Uid) {
        if !self.outbox.announces() {
            return;
        }
        let pod = state.pod_ids.get(&uid).map(|id| &state.pods[*id]);
        let Some((pod, node)) = pod.and_then(|pod| Some((pod, pod.stage.node()?))) else {
            return;
        };
        let message = format!(
            "assigned {}/{} to {}",
            pod.namespace, pod.name, state.nodes[node].name
        );
        self.outbox.announce(Announcement {
            regarding: pod.object(),
            warning: false,
            reason: "Scheduled".into(),
            message: message.into(),
            once: false,
        });
    }

    /// Gives up the place of a pod that is certainly not bound there, and takes back its nomination
    /// if it was made for the place: no room is kept for the pod any more. A nomination that is
    /// under way is taken back when it has ended.
    fn give_up_place(&mut self, state: &mut ClusterState, uid: Uid) {
        let own = assumed(state, uid).and_then(|(pod, _)| pod.own.as_ref());
        let is_nominated = own.is_some_and(|own| own.nominated.is_some() || own.planned);
        if is_nominated && !self.offers.contains(&uid) {
            self.takings.clear_nomination(uid);
        }
        self.take_back(state, uid);
    }

    /// Gives up the place of a pod that is certainly not bound there. Its nomination stays: the
    /// next leader may go on with it.
    fn take_back(&mut self, state: &mut ClusterState, uid: Uid) {
        self.end_preparing(state, uid);
        self.bindings.remove(&uid);
        if let Some(id) = state.pod_ids.get(&uid).copied()
            && matches!(state.pods[id].stage, Stage::Assumed(_))
        {
            state.move_pod(id, Stage::Waiting);
        }
    }

    /// Takes back the places of gangs of which no member is bound and no bind was sent: the next
    /// leader places these gangs. All other gangs are finished, so that no part of a gang is left.
    pub(crate) fn take_back_unbegun(&mut self, state: &mut ClusterState) {
        let mut unbegun = self.pods_to_bind();
        unbegun.retain(|uid| self.is_unbegun(state, *uid));
        for uid in unbegun {
            self.take_back(state, uid);
        }
    }

    /// Takes back a place whose bind was not sent yet; with it all places of its gang, if the gang
    /// has not begun, so that no part of the gang begins alone.
    fn take_back_with_gang(&mut self, state: &mut ClusterState, uid: Uid) {
        if self.is_unbegun(state, uid) {
            let members = gang_members(state, uid).iter();
            let members = members.map(|member| state.pods[*member].uid);
            for member in members.collect::<Vec<_>>() {
                self.give_up_place(state, member);
            }
        }
        self.give_up_place(state, uid);
    }

    /// Takes back the places whose binds were not sent yet, of gangs of which a member was bound to
    /// a node that was not chosen for it: where the other members may be follows from its node.
    pub(crate) fn take_back_overtaken(&mut self, state: &mut ClusterState) {
        while let Some(gang) = state.overtaken.pop_first() {
            let members = state.gangs.get(gang).map_or(&[][..], |gang| &gang.members);
            let members = members.iter().map(|member| state.pods[*member].uid);
            let unsent = |uid: &Uid| self.bindings.get(uid).is_some_and(Binding::is_unsent);
            for uid in members.filter(unsent).collect::<Vec<_>>() {
                self.give_up_place(state, uid);
            }
        }
    }

    /// Whether no member of the pod's gang has a node, or may still get one by a bind that was
    /// sent.
    fn is_unbegun(&self, state: &ClusterState, uid: Uid) -> bool {
        let unsent = |uid: &Uid| self.bindings.get(uid).is_some_and(Binding::is_unsent);
        let begun = |member: &PodId| {
            let member = &state.pods[*member];
            match member.stage {
                Stage::Bound(_) => true,
                Stage::Assumed(_) => !unsent(&member.uid),
                Stage::Waiting | Stage::Ended { .. } => false,
            }
        };
        unsent(&uid) && !gang_members(state, uid).iter().any(begun)
    }

    /// This process does not lead any more: nothing is sent. Requests under way are followed to
    /// their answers.
    pub(crate) fn stop_leading(&mut self, state: &mut ClusterState) {
        self.leading = false;
        for uid in self.pods_to_bind() {
            self.stand_down(state, uid);
        }
        self.drop_preparations();
        self.drop_locks();
        self.outbox.forget_actions();
        self.evicting.clear();
        self.drop_takings(state);
    }

    /// Gives back a place whose bind was never sent. A bind that was sent may still succeed: the
    /// API server is asked about it if this process leads again before the watch tells.
    fn stand_down(&mut self, state: &mut ClusterState, uid: Uid) {
        let Some(binding) = self.bindings.get_mut(&uid) else {
            return;
        };
        // tests plant bugs here: stand-down
        if binding.is_unsent() {
            self.take_back(state, uid);
        } else if matches!(binding.step, Step::Queued | Step::Locking) {
            binding.step = Step::Asking;
        }
    }

    /// Asks about the bindings that were left uncertain.
    pub(super) fn ask_about_uncertain(&mut self) {
        let mut uncertain = self.pods_to_bind();
        uncertain.retain(|uid| self.step_of(*uid) == Some(Step::Asking));
        self.outbox.observations.extend(uncertain);
    }

    /// The pods that have a binding, in the order of their UIDs.
    fn pods_to_bind(&self) -> Vec<Uid> {
        let mut pods: Vec<Uid> = self.bindings.keys().copied().collect();
        pods.sort_unstable();
        pods
    }

    /// Lets the statuses of a pod and its gang tell why the pod's binding fails, while its outcome
    /// is still uncertain.
    fn tell_failure(&mut self, state: &mut ClusterState, uid: Uid) {
        let id = state.pod_ids[&uid];
        let pod = &state.pods[id];
        let gang = pod.own.as_ref().and_then(|own| own.gang);
        if let (Some(gang), Some(_)) = (gang, pod.failure()) {
            self.outbox.status(StatusKey::Gang(gang));
            self.outbox.status(StatusKey::Pod(uid));
        }
    }
}

/// Whether HAMi's device plugin has to be told which cards of a node a pod gets.
fn is_assigned(state: &ClusterState, pod: &Pod, node: NodeId) -> bool {
    let known = state.nodes[node].known.as_ref();
    !pod.cards.is_empty() && known.is_some_and(|known| known.gpu.is_hami)
}

/// The binding of a pod to the node that was chosen for it. `assigned_ms`: when its cards are
/// assigned, if the device plugin has to be told.
fn bind_of(state: &ClusterState, pod: &Pod, node: NodeId, assigned_ms: Option<UnixMs>) -> Bind {
    let own = pod.own.as_deref();
    let gang = own.and_then(|own| own.gang).map(|gang| &state.gangs[gang]);
    let pod_group = gang.and_then(|gang| match &gang.key {
        GangKey::Group(_, _, name) => Some(name.clone()),
        GangKey::Owner(_) | GangKey::Deployment(..) | GangKey::Pod(_) => None,
    });
    let entries = || {
        let entries = own.map(|own| own.card_entries.filled(pod.cards.by_container()));
        entries.unwrap_or_default()
    };
    Bind {
        pod: pod.reference(),
        node: state.nodes[node].name.clone(),
        cards: pod.cards.to_vec(),
        assignment: assigned_ms.map(|at_ms| CardAssignment {
            entries: entries(),
            at_ms,
        }),
        queue: gang
            .map(|gang| (&*gang.spec.queue).into())
            .unwrap_or_default(),
        pod_group,
        minima: own.map(|own| own.bound_minima.to_vec()).unwrap_or_default(),
    }
}

/// How long to wait before a request is made again that was not done, or perhaps not.
fn pause_ms(settings: &Settings, outcome: &Outcome) -> u64 {
    let wait_ms = match outcome {
        Outcome::Throttled { retry_after_ms } => *retry_after_ms,
        Outcome::Done
        | Outcome::Refused { .. }
        | Outcome::Unknown { .. }
        | Outcome::Conflict { .. }
        | Outcome::NotFound
        | Outcome::Observed(_)
        | Outcome::Lease(_) => settings.retry_after_ms,
    };
    wait_ms.max(1)
}

/// The pod and the node of a binding; `None`: events have overtaken it.
fn assumed(state: &ClusterState, uid: Uid) -> Option<(&Pod, NodeId)> {
    let pod = &state.pods[*state.pod_ids.get(&uid)?];
    match pod.stage {
        Stage::Assumed(node) => Some((pod, node)),
        Stage::Waiting | Stage::Bound(_) | Stage::Ended { .. } => None,
    }
}

/// Remembers the sentence about a binding that has failed.
fn note_failure(state: &mut ClusterState, uid: Uid, sentence: Box<str>) {
    let id = state.pod_ids[&uid];
    if let Some(own) = &mut state.pods[id].own {
        own.failure = Some(sentence);
        own.prepares = false;
    }
}

/// Notes why a placed pod still has no node, unless events have overtaken its binding.
fn note_not_bound(state: &mut ClusterState, uid: Uid, why: &str) {
    let Some((pod, node)) = assumed(state, uid) else {
        return;
    };
    let (pod, node) = (&pod.name, &state.nodes[node].name);
    let sentence = format!("pod {pod} is not bound to node {node}: {why}");
    note_failure(state, uid, sentence.into());
}

fn gang_members(state: &ClusterState, uid: Uid) -> &[PodId] {
    let pod = state.pod_ids.get(&uid).map(|id| &state.pods[*id]);
    let gang = pod.and_then(|pod| pod.own.as_ref()?.gang);
    gang.map_or(&[], |gang| &state.gangs[gang].members)
}
