//! Evictions of gangs that are stale, unwound or on failed cards: which were asked for, and what
//! became of each. Evictions that make room for another gang are in [`takings`](super::takings).

use crate::bind::Binder;
use crate::bind::outbox::Flight;
use crate::bind::timers::Timer;
use crate::command::{Action, Evict, EvictionCause};
use crate::event::Outcome;
use crate::facts::{Uid, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::failed_cards;
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::pod::Pod;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

/// The pause, in ms, before an eviction for the sake of the pod's own gang is tried again that was
/// refused, by a disruption budget, say.
const EVICT_AGAIN_MS: u64 = 10_000;

/// What the outcome of an eviction means.
pub(super) enum Answer<'a> {
    /// The pod leaves, though the watch may not say so yet, or it is gone.
    Leaves,
    /// The pod stays: the API server has refused its eviction, with this message.
    Refused(&'a str),
    /// The pod stays: the API server is to be asked again after so many ms.
    PutOff(u64),
    /// The pod may leave or stay: the API server is to be asked again after so many ms.
    Unclear(u64),
}

impl<'a> Answer<'a> {
    fn of(outcome: &'a Outcome, settings: &Settings) -> Self {
        match outcome {
            Outcome::Done | Outcome::NotFound => Self::Leaves,
            Outcome::Refused { message } => Self::Refused(message),
            Outcome::Throttled { retry_after_ms } => Self::PutOff(*retry_after_ms),
            Outcome::Conflict { .. }
            | Outcome::Unknown { .. }
            | Outcome::Observed(_)
            | Outcome::Lease(_) => Self::Unclear(settings.retry_after_ms),
        }
    }
}

impl Binder {
    /// Evicts every bound member of a gang, or of one of its sub-groups; 0 is the gang itself.
    /// Members on failed cards go last: until then it is seen, also by the next leader, that the
    /// others are to leave, too.
    /// Returns how many of these evictions were not asked for before.
    pub(crate) fn evict_below(
        &mut self,
        state: &ClusterState,
        progress: &mut ById<GangId, Progress>,
        id: GangId,
        group: usize,
        cause: EvictionCause,
    ) -> usize {
        let gang = &state.gangs[id];
        let is_below = |pod: &&Pod| group == 0 || gang.groups_of(pod).contains(&group);
        let members = gang.members.iter().map(|pod| &state.pods[*pod]);
        let members = members.filter(is_below);
        let bound = members.filter(|pod| pod.stage.is_bound() && !pod.deleting);
        let is_last = |pod: &Pod| {
            cause == EvictionCause::CardFailed && failed_cards::holds_failed(state, pod)
        };
        let mut uids: Vec<(bool, Uid)> = bound.map(|pod| (is_last(pod), pod.uid)).collect();
        uids.sort_unstable();
        let alive = &state.pod_ids;
        self.evicting.retain(|uid, _| alive.contains_key(uid));
        let mut asked_for = 0;
        for (_, uid) in uids {
            if let Entry::Vacant(asked) = self.evicting.entry(uid) {
                asked.insert(cause);
                self.outbox.evictions.push_back(uid);
                asked_for += 1;
            }
        }
        if cause == EvictionCause::Unwind && asked_for > 0 {
            progress[id].note_unwound();
        }
        asked_for
    }

    /// Sends an eviction that was asked for, unless its cause has passed.
    pub(crate) fn send_eviction(
        &mut self,
        state: &mut ClusterState,
        progress: &mut ById<GangId, Progress>,
        uid: Uid,
        deadline_ms: UnixMs,
        now_ms: UnixMs,
    ) {
        let pod = state.pod_ids.get(&uid).map(|id| &state.pods[*id]);
        let gang = pod.and_then(|pod| pod.own.as_ref()?.gang);
        let cause = self.evicting.get(&uid).copied();
        let cause = cause.filter(|cause| still_holds(state, progress, *cause, gang, pod, now_ms));
        let (Some(pod), Some(cause)) = (pod, cause) else {
            self.evicting.remove(&uid);
            return;
        };
        let evict = Evict {
            pod: pod.reference(),
            cause,
            beneficiary: None,
        };
        self.outbox
            .send(Flight::Evict(uid), deadline_ms, Action::Evict(evict));
    }

    /// An eviction has ended.
    pub(crate) fn eviction_ended(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        uid: Uid,
        outcome: &Outcome,
        now_ms: UnixMs,
    ) {
        let answer = Answer::of(outcome, settings);
        let is_of_taking = self.taking_eviction_ended(state, uid, &answer, now_ms);
        let wait_ms = match answer {
            Answer::Leaves => return leaves(state, uid),
            _ if is_of_taking => return,
            Answer::Refused(_) => EVICT_AGAIN_MS,
            Answer::PutOff(wait_ms) | Answer::Unclear(wait_ms) => wait_ms,
        };
        self.evicting.remove(&uid);
        let pod = state.pod_ids.get(&uid).map(|id| &state.pods[*id]);
        if let Some(gang) = pod.and_then(|pod: &Pod| pod.own.as_ref()?.gang) {
            let again_ms = now_ms.saturating_add(wait_ms);
            self.timers.set(again_ms, Timer::Gang(gang));
        }
    }
}

/// Takes in that a pod has been asked to leave.
fn leaves(state: &mut ClusterState, uid: Uid) {
    if let Some(id) = state.pod_ids.get(&uid) {
        let id = *id;
        state.begin_deletion(id);
        state.touched.extend(state.pods[id].gang());
    }
}

/// Whether the cause of an eviction still holds: the gang, or the sub-group, may have come together
/// again while the request waited to be sent.
fn still_holds(
    state: &ClusterState,
    progress: &ById<GangId, Progress>,
    cause: EvictionCause,
    gang: Option<GangId>,
    pod: Option<&Pod>,
    now_ms: UnixMs,
) -> bool {
    let (Some(id), Some(pod)) = (gang, pod) else {
        return false;
    };
    match cause {
        EvictionCause::Stale => {
            progress[id].lost_ms.is_some() && count(state, id, now_ms).needed > 0
        }
        EvictionCause::Unwind => {
            progress[id].is_unfinished()
                || progress[id].is_in_unfinished_sub_group(&state.gangs[id], pod)
        }
        EvictionCause::CardFailed => failed_cards::eviction_goes_on(state, id, now_ms),
        EvictionCause::Reclaim | EvictionCause::Preempt | EvictionCause::Consolidate => false,
    }
}
