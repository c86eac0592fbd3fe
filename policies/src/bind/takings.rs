//! Eviction plans that are being carried out.
//!
//! A *taking* is an eviction plan from the moment at which it was made: its room is held, and the
//! pods of its victims count as leaving. First every member of the gang is nominated, so that the
//! next leader knows which gang the room is for; then the pods are evicted, at a pace.
//!
//! ```text
//!             all members are nominated          all evictions are sent
//! NOMINATING --------------------------> EVICTING ----------------------> WAITING
//! ```
//!
//! Whichever of these it has reached, a taking ends when
//!
//! - members of the gang get places, in the room that is held or elsewhere;
//! - the gang asks for something else or for nothing any more, or the gang or its queue is gone;
//! - the API server refuses a nomination or an eviction, or a pod may not be evicted any more;
//! - the room does not come, or the gang is refused although the room is there;
//! - a gang that comes before it takes the room, the pods, or what queues give for it;
//! - bounds of queues keep the gang from starting, whatever leaves;
//! - a queue gives nothing any more, and no pod may have been evicted yet;
//! - this process does not lead any more.
//!
//! Pods whose evictions were not sent before the end stay. A request that was sent is not taken
//! back.

use crate::bind::Binder;
use crate::bind::evictions::Answer;
use crate::bind::givers::{Givers, Giving};
use crate::bind::outbox::Flight;
use crate::bind::timers::Timer;
use crate::command::{
    Action, Announcement, Beneficiary, Evict, EvictionCause, ObjectReference, StatusPatch,
};
use crate::event::Outcome;
use crate::facts::{Uid, UnixMs};
use crate::ids::{GangId, PodId};
use crate::queues::{ClaimKind, Giver};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::state::pod::Stage;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

/// One eviction plan that is being carried out.
#[derive(Debug)]
pub(crate) struct Taking {
    /// What the gang asks for, see [`crate::gangs::request::asks`].
    pub(crate) asks: u64,
    /// By which bound the gang's queue claims from other queues; `None`: it claims nothing from
    /// them.
    pub(crate) claim: Option<ClaimKind>,
    /// It is proved that no other set of victims costs less.
    pub(crate) is_optimal: bool,
    /// The queues that give, until a pod may have been evicted: from then on the taking goes on to
    /// its end, whatever these queues hold.
    pub(crate) givers: Option<Givers>,
    /// Members whose nominations are to be sent, each with its node.
    pub(crate) to_nominate: VecDeque<(Uid, Box<str>)>,
    /// Members that are nominated, or may be.
    pub(crate) nominated: BTreeSet<Uid>,
    /// Nominations under way, each with the name of the node.
    pub(crate) asked: BTreeMap<Uid, Box<str>>,
    /// Evictions that are to be sent.
    pub(crate) to_evict: VecDeque<Eviction>,
    /// Evictions under way, by the pod.
    pub(crate) under_way: BTreeMap<Uid, Eviction>,
    /// A pod was asked to leave.
    pub(crate) has_evicted: bool,
    /// Nothing is sent before this time, because the API server has put off a request.
    pub(crate) paused_until_ms: UnixMs,
}

/// The eviction of one pod for a gang.
#[derive(Debug, Clone)]
pub(crate) struct Eviction {
    /// The pod that is to be evicted.
    pub(crate) uid: Uid,
    pub(crate) cause: EvictionCause,
    /// The message of the event on the pod.
    pub(crate) message: Box<str>,
    /// The object of the pod's gang, and the message of the event on it, which tells of all pods of
    /// that gang that the taking evicts. `None`: the eviction of another pod tells it, or the gang
    /// has no object.
    pub(crate) of_gang: Option<(ObjectReference, Box<str>)>,
}

/// All takings, and the pace of their evictions.
#[derive(Debug, Default)]
pub(crate) struct Takings {
    by_gang: BTreeMap<GangId, Taking>,
    giving: Giving,
    /// The gangs of which members are still to be nominated.
    nominating: BTreeSet<GangId>,
    /// The gangs for which pods are still to be asked to leave.
    evicting: BTreeSet<GangId>,
    /// For which gang each eviction under way was sent.
    evictions: BTreeMap<Uid, GangId>,
    /// For which gang each nomination under way was sent.
    nominations: BTreeMap<Uid, GangId>,
    /// Members whose nomination is to be taken back.
    to_clear: VecDeque<Uid>,
    /// Members whose nomination is being taken back. Such a member is nominated again only
    /// afterwards: of two requests the one that arrives last would count.
    clearing: BTreeSet<Uid>,
    pace: Pace,
    /// This process has begun to lead, and has not yet adopted the nominations of the last leader.
    pub(super) adopts: bool,
    /// Since the engine last took this flag, a taking has had an eviction that may have been
    /// carried out. It goes on to its end, so other plans may take from the queues that give for it
    /// again.
    pub(super) has_begun: bool,
    /// Gangs whose taking has come to nothing since the engine last took this list, each with the
    /// cause.
    pub(super) failed: Vec<(GangId, Failure)>,
}

/// Why a taking has come to nothing before all its evictions were sent. Users are told in a later
/// phase, when the pod or the queue may be gone, so both are kept by name.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The API server has refused the nomination of a member.
    NominationRefused,
    /// The API server has refused an eviction, with this message.
    EvictionRefused(Box<str>),
    /// This queue was to give, and does not hold more than its own any more.
    GivesNoMore(Box<str>),
    /// The gang of this pod is not preemptible any more.
    NotPreemptible(Box<str>),
    /// A disruption budget does not allow to evict this pod.
    KeptByBudget(Box<str>),
}

impl Taking {
    /// The pods that are reclaimed and of which it is not known that they have left.
    fn reclaimed(&self) -> impl Iterator<Item = Uid> {
        let evictions = self.to_evict.iter().chain(self.under_way.values());
        let reclaimed = evictions.filter(|eviction| eviction.cause == EvictionCause::Reclaim);
        reclaimed.map(|eviction| eviction.uid)
    }

    /// The pods that are reclaimed and are there.
    fn reclaimed_there(&self, state: &ClusterState) -> impl Iterator<Item = PodId> {
        let pods = self.reclaimed().map(|uid| state.pod_ids.get(&uid).copied());
        pods.flatten()
    }
}

/// How fast evictions are sent: a bucket that fills evenly, and holds as many evictions as it gets
/// in a tenth of a second, at least one.
#[derive(Debug, Default)]
struct Pace {
    /// In thousandths of an eviction.
    credit: u64,
    as_of_ms: UnixMs,
}

impl Pace {
    /// Takes one eviction out of the bucket, which gets `per_second` of them each second.
    ///
    /// # Errors
    /// The bucket is empty: the time from which on it has one again.
    fn take(&mut self, per_second: u32, now_ms: UnixMs) -> Result<(), UnixMs> {
        let per_ms = u64::from(per_second.max(1));
        let credit_max = (per_ms * 100).max(1_000);
        let passed_ms = now_ms.saturating_sub(self.as_of_ms);
        let credit = self.credit.saturating_add(passed_ms.saturating_mul(per_ms));
        self.credit = credit.min(credit_max);
        self.as_of_ms = now_ms;
        match self.credit.checked_sub(1_000) {
            Some(rest) => {
                self.credit = rest;
                Ok(())
            }
            None => Err(now_ms + (1_000 - self.credit).div_ceil(per_ms)),
        }
    }
}

impl Takings {
    /// The taking of a gang, if it has one.
    pub(crate) fn get(&self, gang: GangId) -> Option<&Taking> {
        self.by_gang.get(&gang)
    }

    /// The gangs that have takings.
    pub(crate) fn gangs(&self) -> impl Iterator<Item = GangId> {
        self.by_gang.keys().copied()
    }

    /// Whether takings have come to nothing and are still to be ended.
    pub(crate) fn have_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// What queues give for the takings of gangs that `counts` picks, as long as no pod may have
    /// been evicted for the taking: each giver once, with the first of these gangs.
    pub(crate) fn givers(
        &self,
        counts: impl Fn(GangId) -> bool,
    ) -> impl Iterator<Item = (&Giver, GangId)> {
        self.giving.givers(counts)
    }

    /// See [`Binder::renew_givers`].
    fn renew_givers(&mut self, state: &mut ClusterState, in_all: bool) {
        let rebooked = state.holds.take_rebooked();
        // tests plant bugs here: givers-follow
        let gangs = match in_all {
            true => self.by_gang.keys().copied().collect(),
            false => self.giving.takers_of(&rebooked),
        };
        for gang in gangs {
            self.renew_givers_of(state, gang);
        }
    }

    fn renew_givers_of(&mut self, state: &ClusterState, gang: GangId) {
        let taking = self.by_gang.get_mut(&gang);
        let Some((taking, mut givers)) = taking.and_then(|taking| {
            let givers = taking.givers.take()?;
            Some((taking, givers))
        }) else {
            return;
        };
        self.giving.uncount(gang, &givers);
        givers.renew(state, taking.reclaimed_there(state));
        self.giving.count(gang, &givers);
        taking.givers = Some(givers);
    }

    /// Every violation of what is kept of queues that give, as sentences. A difference that the
    /// next step takes in first is no violation.
    pub(crate) fn violations(&self, state: &ClusterState) -> Vec<String> {
        let mut found = Vec::new();
        let takings = self.by_gang.iter();
        let givers = takings.filter_map(|(gang, taking)| Some((*gang, taking.givers.as_ref()?)));
        if !self.giving.is_of(givers) {
            found.push("queues give for other takings than there are".into());
        }
        let renewed_next = self.giving.takers_of(state.holds.rebooked());
        for (gang, taking) in &self.by_gang {
            let there = taking.reclaimed_there(state);
            let givers = taking.givers.as_ref();
            let are_current = givers.is_none_or(|givers| givers.are_current(state, there));
            if !are_current && !renewed_next.contains(gang) && !state.holds.have_queues_changed() {
                let name = state
                    .gangs
                    .get(*gang)
                    .map_or("that is gone", |gang| &gang.name);
                found.push(alloc::format!(
                    "other queues than are kept give for gang {name}"
                ));
            }
        }
        found
    }

    /// Whether a nomination of a pod is under way, or being taken back.
    pub(super) fn are_nominating(&self, uid: Uid) -> bool {
        self.clearing.contains(&uid) || self.nominations.contains_key(&uid)
    }

    /// Lets the nomination of a pod be taken back, unless the pod has a place again by then.
    pub(super) fn clear_nomination(&mut self, uid: Uid) {
        self.to_clear.push_back(uid);
    }
}

impl Binder {
    /// Begins to carry out an eviction plan. The caller has begun the hold, and lets the pods count
    /// as leaving.
    pub(crate) fn begin_taking(&mut self, gang: GangId, taking: Taking) {
        self.takings.nominating.insert(gang);
        self.takings.evicting.insert(gang);
        if let Some(givers) = &taking.givers {
            let reclaimed = taking.reclaimed();
            self.takings.giving.add(gang, givers, reclaimed);
        }
        self.takings.by_gang.insert(gang, taking);
    }

    /// Takes in that pods count for something else now, or nowhere, so that the queues from which
    /// they are reclaimed may give nothing any more. `in_all`: the queues have changed, so all
    /// takings are looked at.
    pub(crate) fn renew_givers(&mut self, state: &mut ClusterState, in_all: bool) {
        self.takings.renew_givers(state, in_all);
    }

    /// Ends the taking of a gang. Its room is given back, and pods that were not asked to leave
    /// stay. `clears`: nominations are taken back. Returns whether the gang had a taking.
    pub(crate) fn end_taking(
        &mut self,
        state: &mut ClusterState,
        gang: GangId,
        clears: bool,
    ) -> bool {
        let Some(taking) = self.takings.by_gang.remove(&gang) else {
            return false;
        };
        if let Some(givers) = &taking.givers {
            let reclaimed = taking.reclaimed();
            self.takings.giving.remove(gang, givers, reclaimed);
        }
        state.end_hold(Holder::Gang(gang));
        for eviction in &taking.to_evict {
            let_stay(state, eviction.uid);
        }
        if clears {
            // A nomination that is under way is taken back when it has ended.
            let is_asked = |uid: &Uid| taking.asked.contains_key(uid);
            let nominated = taking.nominated.iter().filter(|uid| !is_asked(uid));
            self.takings.to_clear.extend(nominated);
        }
        true
    }

    /// Ends every taking and leaves the nominations, because this process does not lead any more:
    /// the next leader adopts them.
    pub(crate) fn drop_takings(&mut self, state: &mut ClusterState) {
        for gang in self.takings.gangs().collect::<Vec<_>>() {
            self.end_taking(state, gang, false);
        }
        self.takings.to_clear.clear();
    }

    /// Sends nominations and evictions while there is room for requests and the pace allows it.
    pub(super) fn send_takings(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        now_ms: UnixMs,
    ) {
        self.takings.renew_givers(state, false);
        let deadline_ms = now_ms.saturating_add(settings.request_deadline_ms);
        while self.outbox.has_room_for_action()
            && let Some(uid) = self.takings.to_clear.pop_front()
        {
            self.send_nomination(state, None, (uid, None), deadline_ms);
        }
        for gang in self.takings.nominating.iter().copied().collect::<Vec<_>>() {
            self.send_nominations(state, gang, deadline_ms, now_ms);
            let taking = self.takings.by_gang.get(&gang);
            if taking.is_none_or(|taking| taking.to_nominate.is_empty()) {
                self.takings.nominating.remove(&gang);
            }
        }
        let mut next = self.takings.evicting.first().copied();
        while let Some(gang) = next
            && self.send_evictions(state, settings, gang, now_ms).is_ok()
        {
            let taking = self.takings.by_gang.get(&gang);
            if taking.is_none_or(|taking| taking.to_evict.is_empty()) {
                self.takings.evicting.remove(&gang);
            }
            let after = (Bound::Excluded(gang), Bound::Unbounded);
            next = self.takings.evicting.range(after).next().copied();
        }
    }

    fn send_nominations(
        &mut self,
        state: &ClusterState,
        gang: GangId,
        deadline_ms: UnixMs,
        now_ms: UnixMs,
    ) {
        while self.outbox.has_room_for_action()
            && let Some(taking) = self.takings.by_gang.get_mut(&gang)
            && taking.paused_until_ms <= now_ms
            && let Some((uid, _)) = taking.to_nominate.front()
            && !self.takings.clearing.contains(uid)
            && !self.takings.nominations.contains_key(uid)
            && !self.offers.contains(uid)
            && let Some((uid, node)) = taking.to_nominate.pop_front()
        {
            taking.nominated.insert(uid);
            taking.asked.insert(uid, node.clone());
            self.send_nomination(state, Some(gang), (uid, Some(node)), deadline_ms);
        }
    }

    fn send_nomination(
        &mut self,
        state: &ClusterState,
        gang: Option<GangId>,
        (uid, node): (Uid, Option<Box<str>>),
        deadline_ms: UnixMs,
    ) {
        let pod = state.pod_ids.get(&uid).map(|id| &state.pods[*id]);
        let Some(pod) = pod.filter(|pod| pod.stage == Stage::Waiting) else {
            return;
        };
        if let Some(gang) = gang {
            self.takings.nominations.insert(uid, gang);
        } else {
            self.takings.clearing.insert(uid);
        }
        let patch = StatusPatch::Nominated {
            pod: pod.reference(),
            node,
        };
        let action = Action::PatchStatus(patch);
        self.outbox.send(Flight::Nominate(uid), deadline_ms, action);
    }

    /// A nomination has ended. If it has failed, no pod is asked to leave: the next leader would
    /// not know for which gang.
    pub(crate) fn nomination_ended(
        &mut self,
        settings: &Settings,
        uid: Uid,
        outcome: &Outcome,
        now_ms: UnixMs,
    ) {
        let Some(gang) = self.takings.nominations.remove(&uid) else {
            self.takings.clearing.remove(&uid);
            return;
        };
        let Some(taking) = self.takings.by_gang.get_mut(&gang) else {
            // The taking has ended meanwhile.
            self.takings.to_clear.push_back(uid);
            return;
        };
        let Some(node) = taking.asked.remove(&uid) else {
            // The nomination was asked for by an earlier taking of the gang.
            self.takings.to_clear.push_back(uid);
            return;
        };
        let wait_ms = match outcome {
            Outcome::Done => return,
            Outcome::Throttled { retry_after_ms } => *retry_after_ms,
            Outcome::Unknown { .. } | Outcome::Observed(_) | Outcome::Lease(_) => {
                settings.retry_after_ms
            }
            Outcome::NotFound | Outcome::Conflict { .. } | Outcome::Refused { .. } => {
                self.takings.failed.push((gang, Failure::NominationRefused));
                return;
            }
        };
        taking.to_nominate.push_front((uid, node));
        self.takings.nominating.insert(gang);
        taking.paused_until_ms = now_ms.saturating_add(wait_ms);
        self.timers.set(taking.paused_until_ms, Timer::Pace);
    }

    /// Sends evictions for a gang whose members are nominated.
    ///
    /// # Errors
    /// There is no room for another request, or the pace allows none, so that nothing is sent for
    /// other gangs either.
    fn send_evictions(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        gang: GangId,
        now_ms: UnixMs,
    ) -> Result<(), ()> {
        let deadline_ms = now_ms.saturating_add(settings.request_deadline_ms);
        // tests plant bugs here: nominations-first
        while let Some(taking) = self.takings.by_gang.get_mut(&gang)
            && taking.to_nominate.is_empty()
            && taking.asked.is_empty()
            && taking.paused_until_ms <= now_ms
            && let Some(next) = taking.to_evict.front()
        {
            let in_flight = self.takings.evictions.len();
            let limit = usize::try_from(settings.evictions.in_flight).unwrap_or(usize::MAX);
            if !self.outbox.has_room_for_action() || in_flight >= limit {
                return Err(());
            }
            // An eviction under way may have been carried out.
            if taking.under_way.is_empty()
                && let Some(givers) = &taking.givers
                && let Some(queue) = givers.gives_no_more(state)
            {
                let failure = Failure::GivesNoMore(state.queues.name(queue).into());
                self.takings.failed.push((gang, failure));
                return Ok(());
            }
            let pod = match evictable(state, next.uid) {
                Ok(Some(pod)) => pod,
                Ok(None) => {
                    taking.to_evict.pop_front();
                    self.takings.renew_givers_of(state, gang);
                    continue;
                }
                Err(failure) => {
                    self.takings.failed.push((gang, failure));
                    return Ok(());
                }
            };
            let per_second = settings.evictions.per_second;
            if let Err(at_ms) = self.takings.pace.take(per_second, now_ms) {
                self.timers.set(at_ms, Timer::Pace);
                return Err(());
            }
            if let Some(eviction) = taking.to_evict.pop_front() {
                let beneficiary = Beneficiary {
                    gang: (&*state.name_of(&state.gangs[gang])).into(),
                    claim: taking
                        .claim
                        .filter(|_| eviction.cause == EvictionCause::Reclaim),
                    is_optimal: taking.is_optimal,
                };
                self.takings.evictions.insert(eviction.uid, gang);
                let evict = Evict {
                    pod: state.pods[pod].reference(),
                    cause: eviction.cause,
                    beneficiary: Some(beneficiary),
                };
                let (uid, told) = (eviction.uid, eviction.clone());
                taking.under_way.insert(uid, eviction);
                taking.has_evicted = true;
                self.announce_eviction(state, pod, told);
                self.outbox
                    .send(Flight::Evict(uid), deadline_ms, Action::Evict(evict));
            }
        }
        Ok(())
    }

    /// Publishes that a pod is asked to leave, on the pod and on its gang.
    fn announce_eviction(&mut self, state: &ClusterState, pod: PodId, eviction: Eviction) {
        let reason = match eviction.cause {
            EvictionCause::Reclaim => "Reclaimed",
            EvictionCause::Preempt => "Preempted",
            EvictionCause::Consolidate => "Moved",
            EvictionCause::Stale | EvictionCause::Unwind | EvictionCause::CardFailed => return,
        };
        let of_pod = (state.pods[pod].object(), eviction.message);
        for (regarding, message) in [Some(of_pod), eviction.of_gang].into_iter().flatten() {
            self.outbox.announce(Announcement {
                regarding,
                warning: true,
                reason: reason.into(),
                message,
                once: false,
            });
        }
    }

    /// An eviction for a gang that waits has ended. Returns `false` for any other eviction.
    pub(super) fn taking_eviction_ended(
        &mut self,
        state: &mut ClusterState,
        uid: Uid,
        answer: &Answer<'_>,
        now_ms: UnixMs,
    ) -> bool {
        let Some(gang) = self.takings.evictions.remove(&uid) else {
            return false;
        };
        let taking = self.takings.by_gang.get_mut(&gang);
        let Some((taking, eviction)) = taking.and_then(|taking| {
            let eviction = taking.under_way.remove(&uid)?;
            Some((taking, eviction))
        }) else {
            // The taking has ended meanwhile: the pod stays, unless the eviction has succeeded.
            if !matches!(answer, Answer::Leaves) {
                let_stay(state, uid);
            }
            return true;
        };
        if !matches!(answer, Answer::PutOff(_))
            && let Some(givers) = taking.givers.take()
        {
            let reclaimed = taking.reclaimed().chain([uid]);
            self.takings.giving.remove(gang, &givers, reclaimed);
            self.takings.has_begun = true;
        }
        if matches!(answer, Answer::Leaves) {
            return true;
        }
        taking.to_evict.push_front(eviction);
        self.takings.evicting.insert(gang);
        match answer {
            Answer::Leaves => {}
            Answer::Refused(message) => {
                let failure = Failure::EvictionRefused((*message).into());
                self.takings.failed.push((gang, failure));
            }
            Answer::PutOff(wait_ms) | Answer::Unclear(wait_ms) => {
                taking.paused_until_ms = now_ms.saturating_add(*wait_ms);
                self.timers.set(taking.paused_until_ms, Timer::Pace);
            }
        }
        true
    }
}

/// Lets a pod stay that is not being deleted: its room is not coming any more, and its gang may
/// place new members again.
fn let_stay(state: &mut ClusterState, uid: Uid) {
    let pod = state.pod_ids.get(&uid).copied();
    if let Some(pod) = pod.filter(|pod| !state.pods[*pod].deleting) {
        state.set_leaving(pod, false);
        state.touched.extend(state.pods[pod].gang());
    }
}

/// The pod with this UID, looked at right before its eviction is sent; `None`: the pod is leaving
/// or gone already.
///
/// # Errors
/// Why the pod must not be evicted any more.
fn evictable(state: &ClusterState, uid: Uid) -> Result<Option<PodId>, Failure> {
    let Some(id) = state.pod_ids.get(&uid).copied() else {
        return Ok(None);
    };
    let pod = &state.pods[id];
    if pod.deleting || pod.stage.node().is_none() {
        return Ok(None);
    }
    let gang = pod.gang().map(|gang| &state.gangs[gang]);
    if gang.is_none_or(|gang| !gang.spec.preemptible) {
        return Err(Failure::NotPreemptible(pod.name.clone()));
    }
    let mut budgets = state.budgets_of(id);
    let first = budgets.next();
    let is_kept = first.is_some_and(|budget| budget.allowed == 0) || budgets.next().is_some();
    // tests plant bugs here: budget-before-an-eviction
    match is_kept && pod.running {
        true => Err(Failure::KeptByBudget(pod.name.clone())),
        false => Ok(Some(id)),
    }
}
