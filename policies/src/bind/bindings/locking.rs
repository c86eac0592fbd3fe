//! Pods that get cards of a node of HAMi take turns.
//!
//! HAMi's device plugin serves the pod that the lock on its node names, and takes the lock away
//! when all containers of the pod have their cards. So a pod is bound under this lock, and the next
//! pod of the node tries when the watch shows the lock no more.
//!
//! ```text
//! a turn:     nobody has the lock, or it may be replaced
//!    Due <--------------------+-------------------------> Taking --Done--> Held --> Queued
//!     |                       |                              |
//!     | another has the lock  | the watch shows another      | Conflict, Unknown, Throttled:
//!     +-------------------> Waiting <------------------------+ for a while
//!                             lock, or the time has come     | Refused, NotFound
//!                                                            v
//!                                                   the place is given up
//!
//! the pod is bound ----------------------------------> the turn ends
//! its place is given up --never locked---------------> the turn ends
//!              +--perhaps locked--> Releasing -------> the turn ends
//!                                      ^ | Unknown, Throttled
//!                                      +-+
//! ```
//!
//! A lock may be replaced when it is 5 minutes old, was seen for 5 minutes, or names a pod that has
//! ended or is not known: the plugin serves that pod no more. A lock that cannot be read stays
//! until somebody takes it away.
//!
//! Source: `pkg/util/nodelock` of HAMi, which waits also for a pod that has ended.

use super::{Step, TOLD_FROM, assumed, note_not_bound, pause_ms};
use crate::bind::Binder;
use crate::bind::outbox::Flight;
use crate::bind::timers::Timer;
use crate::command::{Action, CommandId, LockCards, OwnCardLock, UnlockCards};
use crate::event::Outcome;
use crate::facts::{CardLock, Uid, UnixMs};
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId, NodeId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::node::Node;
use crate::state::pod::{Pod, Stage};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;

/// How old a lock is that may be replaced, in ms.
const EXPIRY_MS: u64 = 300_000;

/// The pause, in ms, after the first try that found the lock taken; it is doubled after each
/// further one, up to [`PAUSE_MAX_MS`].
const PAUSE_MS: u64 = 100;

/// The longest pause, in ms, after a try that found the lock taken.
const PAUSE_MAX_MS: u64 = 5_000;

/// The lines of pods that take turns, by the name of their node.
#[derive(Debug, Default)]
pub(in crate::bind) struct Locks {
    lines: BTreeMap<Box<str>, Line>,
    /// The requests that are under way, each with its node, whose turn waits for the answer.
    requests: BTreeMap<CommandId, Box<str>>,
    /// The nodes whose lock is to be given back.
    releases: VecDeque<Box<str>>,
}

/// The pods that get cards of one node.
#[derive(Debug, Default)]
struct Line {
    turn: Option<Turn>,
    waiting: VecDeque<Uid>,
}

/// The turn of a pod.
#[derive(Debug)]
struct Turn {
    pod: Uid,
    /// The lock that was asked for last, or is the pod's.
    lock: OwnCardLock,
    step: LockStep,
    /// The lock that the watch shows, and since when the turn knows it. The clock by which it
    /// was taken may be ahead.
    shown: Option<(Box<str>, UnixMs)>,
    /// A request may have written the lock, or may still do so.
    may_be_ours: bool,
    /// How many requests have not been done.
    failed: u32,
}

/// Where a turn stands.
#[derive(Debug)]
enum LockStep {
    /// The binding is in the outbox, and goes on from there.
    Due,
    /// Until the watch shows another lock than `seen`, or until this time; or, if the pod waits
    /// `for_holder`, until the pod that has the lock has ended or is gone.
    Waiting {
        seen: Option<Box<str>>,
        until_ms: UnixMs,
        for_holder: bool,
    },
    /// The lock was asked for, in the place of `replaced`.
    Taking { replaced: Option<Box<str>> },
    /// The pod has the lock, in the place of `replaced`, which the watch may still show.
    Held { replaced: Option<Box<str>> },
    /// The lock is to be given back at this time.
    Release(UnixMs),
    /// The request to give the lock back waits to be sent, or is under way.
    Releasing,
    /// The lock was given back.
    Over,
}

/// What the watch shows of a lock.
enum Shown {
    /// The lock may be taken, in the place of this value.
    Free(Option<Box<str>>),
    /// The pod itself has the lock, since this time.
    Own(UnixMs),
    /// Another has the lock, at least until this time.
    Taken(UnixMs),
    /// The value of the lock cannot be read, so the pod that has it is not known.
    Unreadable,
}

impl Turn {
    fn new(pod: &Pod) -> Self {
        Self {
            pod: pod.uid,
            lock: OwnCardLock {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                at_ms: 0,
            },
            step: LockStep::Due,
            shown: None,
            may_be_ours: false,
            failed: 0,
        }
    }

    fn is_holder(&self, lock: &CardLock) -> bool {
        let holder = lock.holder.as_ref();
        holder.is_some_and(|(namespace, name)| {
            *namespace == self.lock.namespace && *name == self.lock.name
        })
    }

    /// Whether the pod has the lock, as far as the watch knows.
    fn has_lock(&self, shown: Option<&CardLock>, now_ms: UnixMs) -> bool {
        let LockStep::Held { replaced } = &self.step else {
            return false;
        };
        let is_fresh = self.lock.at_ms.saturating_add(EXPIRY_MS) > now_ms;
        // The watch may not show the lock yet, but what it was written over.
        let is_other =
            |shown: &CardLock| replaced.as_ref() != Some(&shown.value) && !self.is_holder(shown);
        is_fresh && !shown.is_some_and(is_other)
    }

    /// What a lock that is shown means to the pod.
    fn look_at(&self, state: &ClusterState, node: &Node, now_ms: UnixMs) -> Shown {
        let Some(lock) = shown(node) else {
            return Shown::Free(None);
        };
        let Some(at_ms) = lock.at_ms else {
            return Shown::Unreadable;
        };
        let known = self
            .shown
            .as_ref()
            .filter(|(value, _)| *value == lock.value);
        let since_ms = known.map_or(at_ms, |(_, since_ms)| at_ms.min(*since_ms));
        let expires_ms = since_ms.saturating_add(EXPIRY_MS);
        // tests plant bugs here: lock-that-may-be-replaced
        if expires_ms <= now_ms || is_left(state, node) {
            Shown::Free(Some(lock.value.clone()))
        } else if self.is_holder(lock) {
            Shown::Own(at_ms)
        } else {
            Shown::Taken(expires_ms)
        }
    }
}

impl Locks {
    /// Whether no pod has a turn, and no lock is to be given back.
    pub(in crate::bind) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The turn whose request has ended, with the name of its node.
    fn ended(&mut self, request: CommandId) -> Option<(Box<str>, &mut Turn)> {
        let node = self.requests.remove(&request)?;
        let turn = self.lines.get_mut(&node)?.turn.as_mut()?;
        Some((node, turn))
    }
}

impl Binder {
    /// Whether a pod may be bound now, as far as the lock on the cards of its node goes. If not,
    /// the lock is asked for or waited for.
    pub(super) fn has_turn(
        &mut self,
        state: &mut ClusterState,
        (uid, node): (Uid, NodeId),
        deadline_ms: UnixMs,
        now_ms: UnixMs,
    ) -> bool {
        let (pod, node) = (&state.pods[state.pod_ids[&uid]], &state.nodes[node]);
        let line = self.locks.lines.entry(node.name.clone()).or_default();
        let turn = line.turn.get_or_insert_with(|| Turn::new(pod));
        if turn.pod != uid || turn.is_given_back() {
            if !line.waiting.contains(&uid) {
                line.waiting.push_back(uid);
            }
            self.enter_step(uid, Step::Locking);
            return false;
        }
        line.waiting.retain(|waiting| *waiting != uid);
        turn.look(node, now_ms);
        // tests plant bugs here: turn-with-a-lock
        if turn.has_lock(shown(node), now_ms) {
            return true;
        }
        let is_waiting = matches!(
            turn.step,
            LockStep::Waiting { .. } | LockStep::Taking { .. }
        );
        let mut unreadable = None;
        match turn.look_at(state, node, now_ms) {
            _ if is_waiting => {}
            Shown::Own(at_ms) => {
                turn.lock.at_ms = at_ms;
                turn.may_be_ours = true;
                turn.step = LockStep::Held { replaced: None };
                return true;
            }
            Shown::Free(seen) => {
                let action = turn.take(node, seen, now_ms);
                let request = self.outbox.send(Flight::Lock, deadline_ms, action);
                self.locks.requests.insert(request, node.name.clone());
            }
            Shown::Taken(until_ms) => {
                turn.wait(node, until_ms, true);
                self.timers.set(until_ms, Timer::Binding(uid));
            }
            Shown::Unreadable => {
                turn.wait(node, UnixMs::MAX, false);
                unreadable = shown(node).map(|lock| lock.value.clone());
            }
        }
        self.enter_step(uid, Step::Locking);
        if let Some(value) = unreadable {
            let why = format!(
                "the lock on its cards cannot be read; take the annotation hami.io/mutex.lock \
                 away, which says {value:?}"
            );
            note_not_bound(state, uid, &why);
            self.tell_failure(state, uid);
        }
        false
    }

    /// A request for a lock has ended.
    pub(crate) fn lock_ended(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        (request, outcome): (CommandId, Outcome),
        now_ms: UnixMs,
    ) {
        let Some((node, turn)) = self.locks.ended(request) else {
            return;
        };
        let LockStep::Taking { replaced } = core::mem::replace(&mut turn.step, LockStep::Due)
        else {
            return;
        };
        let uid = turn.pod;
        turn.may_be_ours |= matches!(outcome, Outcome::Done | Outcome::Unknown { .. });
        if outcome == Outcome::Done {
            turn.step = LockStep::Held { replaced };
            self.outbox.binds.push_front(uid);
            return;
        }
        let wait_ms = match &outcome {
            Outcome::Conflict { .. } => (PAUSE_MS << turn.failed.min(6)).min(PAUSE_MAX_MS),
            other => pause_ms(settings, other),
        };
        turn.failed = turn.failed.saturating_add(1);
        let failed = turn.failed;
        let place = assumed(state, uid).map(|(pod, place)| (pod, &state.nodes[place]));
        let Some((pod, place)) = place.filter(|(_, place)| place.name == node) else {
            // Events have overtaken the pod; its turn ends when they are followed.
            return;
        };
        let until_ms = match turn.look_at(state, place, now_ms) {
            // The watch has told first.
            Shown::Own(_) => now_ms,
            _ => now_ms.saturating_add(wait_ms),
        };
        turn.wait(place, until_ms, false);
        let (pod, node) = (&pod.name, &place.name);
        let refusal = match &outcome {
            Outcome::Refused { message } => format!(
                "the API server refused to lock the cards of node {node} for pod {pod}: {message}"
            ),
            Outcome::NotFound => {
                format!("the API server knows no node {node}, on which pod {pod} was to be")
            }
            other => {
                self.timers.set(until_ms, Timer::Binding(uid));
                if let Outcome::Unknown { message } = other
                    && failed >= TOLD_FROM
                {
                    let what = format!("{failed} tries to lock the cards have failed");
                    note_not_bound(state, uid, &format!("{what}, the last with: {message}"));
                    self.tell_failure(state, uid);
                }
                return;
            }
        };
        self.refuse(state, settings, progress, (uid, refusal.into()), now_ms);
    }

    /// Gives the lock of a node back of which the pod is not bound. Returns whether there was one.
    pub(super) fn send_release(&mut self, deadline_ms: UnixMs) -> bool {
        let Some(node) = self.locks.releases.pop_front() else {
            return false;
        };
        let line = self.locks.lines.get_mut(&node);
        if let Some(turn) = line.and_then(|line| line.turn.as_mut()) {
            let lock = turn.lock.clone();
            let name = node.clone();
            let action = Action::UnlockCards(UnlockCards { node, lock });
            let request = self.outbox.send(Flight::Unlock, deadline_ms, action);
            self.locks.requests.insert(request, name);
        }
        true
    }

    /// A request to give a lock back has ended.
    pub(crate) fn release_ended(
        &mut self,
        settings: &Settings,
        (request, outcome): (CommandId, &Outcome),
        now_ms: UnixMs,
    ) {
        let Some((_, turn)) = self.locks.ended(request) else {
            return;
        };
        match outcome {
            Outcome::Unknown { .. } | Outcome::Throttled { .. } => {
                let at_ms = now_ms.saturating_add(pause_ms(settings, outcome));
                turn.step = LockStep::Release(at_ms);
                self.timers.set(at_ms, Timer::Binding(turn.pod));
            }
            Outcome::Done
            | Outcome::Refused { .. }
            | Outcome::Conflict { .. }
            | Outcome::NotFound
            | Outcome::Observed(_)
            // The lock is gone, or others take it away when it is old.
            | Outcome::Lease(_) => turn.step = LockStep::Over,
        }
    }

    /// Ends the turns of pods that are bound or have lost their places, begins the next ones, and
    /// goes on with turns for which the watch, or the time, has come. Returns whether that gives
    /// anything to send.
    pub(super) fn follow_locks(&mut self, state: &ClusterState, now_ms: UnixMs) -> bool {
        let mut lines = core::mem::take(&mut self.locks.lines);
        lines.retain(|name, line| {
            line.waiting.retain(|uid| self.is_on_way(state, *uid, name));
            if let Some(turn) = &mut line.turn
                && self.follow_turn(state, name, turn, now_ms)
            {
                line.turn = None;
            }
            if line.turn.is_none()
                && let Some(next) = line.waiting.pop_front()
            {
                line.turn = Some(Turn::new(&state.pods[state.pod_ids[&next]]));
                self.outbox.binds.push_back(next);
            }
            line.turn.is_some()
        });
        self.locks.lines = lines;
        !self.outbox.binds.is_empty() || !self.locks.releases.is_empty()
    }

    /// Follows what has become of a turn. Returns whether it has ended.
    fn follow_turn(
        &mut self,
        state: &ClusterState,
        node: &str,
        turn: &mut Turn,
        now_ms: UnixMs,
    ) -> bool {
        let id = state.node_ids.get(node);
        match &turn.step {
            LockStep::Taking { .. } | LockStep::Releasing => return false,
            LockStep::Over => return true,
            LockStep::Release(at_ms) if *at_ms > now_ms => return false,
            LockStep::Waiting {
                seen,
                until_ms,
                for_holder,
            } if self.is_on_way(state, turn.pod, node) => {
                let node = id.map(|id| &state.nodes[*id]);
                let lock = node.and_then(shown);
                let is_left = || *for_holder && node.is_some_and(|node| is_left(state, node));
                let has_changed = lock.map(|lock| &lock.value) != seen.as_ref();
                if has_changed || *until_ms <= now_ms || is_left() {
                    turn.step = LockStep::Due;
                    self.outbox.binds.push_back(turn.pod);
                }
                return false;
            }
            LockStep::Due | LockStep::Held { .. } if self.is_on_way(state, turn.pod, node) => {
                return false;
            }
            LockStep::Release(_)
            | LockStep::Waiting { .. }
            | LockStep::Due
            | LockStep::Held { .. } => {}
        }
        let pod = state.pod_ids.get(&turn.pod).map(|pod| &state.pods[*pod]);
        let stage = pod.map(|pod| pod.stage);
        let is_bound = id.is_some_and(|id| stage == Some(Stage::Bound(*id)));
        if is_bound || !turn.may_be_ours || id.is_none() {
            return true;
        }
        // tests plant bugs here: lock-of-a-pod-that-is-not-bound
        turn.step = LockStep::Releasing;
        self.locks.releases.push_back(node.into());
        false
    }

    /// Whether the binding of a pod to a node is under way.
    fn is_on_way(&self, state: &ClusterState, uid: Uid, node: &str) -> bool {
        let place = assumed(state, uid).map(|(_, place)| &*state.nodes[place].name);
        place == Some(node) && self.bindings.contains_key(&uid)
    }

    /// This process does not lead any more: the next leader goes on with the locks.
    pub(super) fn drop_locks(&mut self) {
        self.locks = Locks::default();
    }
}

impl Turn {
    /// Whether the turn is at its end, but for the lock.
    fn is_given_back(&self) -> bool {
        matches!(
            self.step,
            LockStep::Release(_) | LockStep::Releasing | LockStep::Over
        )
    }

    /// Notes which lock the watch shows.
    fn look(&mut self, node: &Node, now_ms: UnixMs) {
        let lock = shown(node).map(|lock| &lock.value);
        if self.shown.as_ref().map(|(value, _)| value) != lock {
            self.shown = lock.map(|value| (value.clone(), now_ms));
        }
    }

    /// Waits for another lock than the one that is shown, or until a time.
    fn wait(&mut self, node: &Node, until_ms: UnixMs, for_holder: bool) {
        let seen = shown(node).map(|lock| lock.value.clone());
        self.step = LockStep::Waiting {
            seen,
            until_ms,
            for_holder,
        };
    }

    /// Asks for the lock in the place of what was seen.
    fn take(&mut self, node: &Node, seen: Option<Box<str>>, now_ms: UnixMs) -> Action {
        let expires_ms = self.lock.at_ms.saturating_add(EXPIRY_MS);
        if !self.may_be_ours || expires_ms <= now_ms {
            // A request whose outcome is not known is repeated word by word, so that it is known
            // what there is to give back.
            self.lock.at_ms = now_ms;
        }
        self.step = LockStep::Taking {
            replaced: seen.clone(),
        };
        Action::LockCards(LockCards {
            node: node.name.clone(),
            lock: self.lock.clone(),
            seen,
        })
    }
}

/// The lock that the watch shows.
fn shown(node: &Node) -> Option<&CardLock> {
    node.known.as_ref()?.facts.card_lock.as_ref()
}

/// Whether the lock that the watch shows names a pod that has ended or is not known.
fn is_left(state: &ClusterState, node: &Node) -> bool {
    let holder = shown(node).and_then(|lock| lock.holder.as_ref());
    holder.is_some_and(|holder| !is_alive(state, node, holder))
}

/// Whether there is a pod of this namespace and name that has not ended. Mostly it is on the node.
fn is_alive(state: &ClusterState, node: &Node, (namespace, name): &(Box<str>, Box<str>)) -> bool {
    let has_ended = |pod: &Pod| matches!(pod.stage, Stage::Ended { .. });
    let is_meant = |pod: &Pod| pod.name == *name && pod.namespace == *namespace && !has_ended(pod);
    node.pods.iter().any(|pod| is_meant(&state.pods[*pod]))
        || state.pods.iter().any(|(_, pod)| is_meant(pod))
}
