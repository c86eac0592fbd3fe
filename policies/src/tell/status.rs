//! What users see: statuses, conditions and events, worked out when there is room to send them.
//!
//! Statuses of PodGroups are read back from the watch: what is there is not written again after a
//! restart, and a write that came late is noticed.

use crate::bind::Binder;
use crate::bind::outbox::{Flight, Outbox, StatusKey};
use crate::bind::timers::{Timer, Timers};
use crate::command::{Action, Announcement, ObjectReference, StatusPatch};
use crate::event::Outcome;
use crate::facts::{ScheduledCondition, Uid, UnixMs};
use crate::gangs::counts::{Counts, count};
use crate::gangs::progress::Progress;
use crate::gangs::wait::Verdict;
use crate::ids::{ById, GangId};
use crate::plan::Planner;
use crate::plan::waiting::Waiting;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::pod::Stage;
use crate::status::Phase;
use crate::tell::gang::{scheduled, staleness};
use crate::tell::{Teller, View};
use alloc::boxed::Box;
use alloc::format;

/// A condition whose reason has not changed is written again only after so long, however often the
/// numbers in its message change; at once where the gang asks for something else.
const CONDITION_INTERVAL_MS: u64 = 10_000;

/// How long after the creation (which is known to the second) of a pod or gang that waits anything
/// is first said of it: most are placed before.
const FIRST_WORD_DELAY_MS: u64 = 2_000;

/// A write that was given up, or that something on the way has repeated, may arrive after a newer
/// one. So long after that was noticed, what is there is compared again, or written again where the
/// watch does not show it.
pub(super) const LATE_WRITE_MS: u64 = 10_000;

/// How many statuses one step looks at.
const STATUSES_LOOKED_AT: u32 = 1_000;

impl Teller {
    /// Sends statuses, then events, while there is room and nothing more urgent waits. Whether
    /// there was more to look at than fits into a slice.
    pub(crate) fn send(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        planner: &mut Planner,
        binder: &mut Binder,
        now_ms: UnixMs,
    ) -> bool {
        let deadline_ms = now_ms.saturating_add(settings.request_deadline_ms);
        let mut looked_at = 0;
        while let Some(key) = binder.outbox.next_status() {
            looked_at += 1;
            if looked_at > STATUSES_LOOKED_AT {
                binder.outbox.status(key);
                return true;
            }
            let gang = match key {
                StatusKey::Gang(gang) => Some(gang),
                StatusKey::Pod(uid) => gang_of(state, uid),
                StatusKey::Queue(_) => None,
            };
            let before = planner.in_hand;
            if let Some(gang) = gang.filter(|gang| state.gangs.get(*gang).is_some()) {
                planner.in_hand = Some(gang);
                self.say(state, settings, progress, &planner.waiting, gang, now_ms);
            }
            let patch = match key {
                StatusKey::Gang(gang) => {
                    let view = View {
                        state,
                        settings,
                        progress,
                        waiting: &planner.waiting,
                        now_ms,
                    };
                    self.gang_patch(view, binder, gang)
                }
                StatusKey::Pod(uid) => self.pod_patch(state, &planner.waiting, binder, uid, now_ms),
                StatusKey::Queue(queue) => self.queue_patch(state, binder, queue, now_ms),
            };
            planner.in_hand = before;
            if let Some(patch) = patch {
                let action = Action::PatchStatus(patch);
                binder.outbox.send(Flight::Status(key), deadline_ms, action);
            }
        }
        while let Some(announcement) = binder.outbox.next_announcement() {
            let action = Action::Publish(announcement);
            binder
                .outbox
                .send(Flight::Announcement, deadline_ms, action);
        }
        false
    }

    fn gang_patch(
        &mut self,
        view: View<'_>,
        binder: &mut Binder,
        id: GangId,
    ) -> Option<StatusPatch> {
        let View { state, now_ms, .. } = view;
        let gang = state.gangs.get(id)?;
        if gang.is_others() {
            return None;
        }
        let native = gang.native_name().is_some();
        let counts = count(state, id, now_ms);
        let status = self.gang_status(view, id, &counts);
        let first_ms = gang.spec.created_ms.saturating_add(FIRST_WORD_DELAY_MS);
        let reported = self.told[id].reported(gang.object.as_deref());
        let told = reported.or(gang.shown());
        if status.phase == Phase::Pending && told.is_none() && first_ms > now_ms {
            binder.timers.set(first_ms, Timer::Gang(id));
            return None;
        }
        self.announce_reason(view, &mut binder.outbox, id);
        let object = gang.object.as_deref()?;
        let shown = object.status.as_ref();
        let told = &mut self.told[id];
        if told.reported(Some(object)).or(shown) == Some(&status) {
            if !native && shown != Some(&status) {
                // The watch is behind, or another write came later than ours.
                let rewrite_ms = now_ms.saturating_add(LATE_WRITE_MS);
                let key = StatusKey::Gang(id);
                binder.timers.set(rewrite_ms, Timer::Rewrite(key));
            }
            return None;
        }
        told.reported = Some((object.uid, status.clone()));
        Some(StatusPatch::PodGroup {
            source: object.source,
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: object.uid,
            status,
        })
    }

    /// News of why a gang waits goes to its PodGroup, its owner or its pod: once for each reason.
    fn announce_reason(&mut self, view: View<'_>, outbox: &mut Outbox, id: GangId) {
        let state = view.state;
        let verdict = self.why_it_waits(state, view.waiting, id);
        let reason = verdict.as_ref().map(|verdict| verdict.reason);
        if self.told[id].announced == reason {
            return;
        }
        let object = state.object_of(&state.gangs[id]);
        if let (Some(verdict), Some(object)) = (verdict, object) {
            outbox.announce(announcement(object, &verdict));
        }
        self.told[id].announced = reason;
    }

    fn pod_patch(
        &mut self,
        state: &mut ClusterState,
        waiting: &ById<GangId, Waiting>,
        binder: &mut Binder,
        uid: Uid,
        now_ms: UnixMs,
    ) -> Option<StatusPatch> {
        let id = *state.pod_ids.get(&uid)?;
        let pod = &state.pods[id];
        let waits = pod.stage == Stage::Waiting || pod.failure().is_some();
        if !waits || pod.deleting {
            return None;
        }
        let own = pod.own.as_ref()?;
        let gang = own.gang?;
        let young_until_ms = pod.created_ms.saturating_add(FIRST_WORD_DELAY_MS);
        if young_until_ms > now_ms {
            binder.timers.set(young_until_ms, Timer::Gang(gang));
            return None;
        }
        let verdict = self.why_it_waits(state, waiting, gang)?;
        let (reason, message) = condition(&verdict);
        if let Some(current) = &own.unscheduled {
            if current.reason == reason && current.message == message {
                return None;
            }
            let again_ms = own.condition_ms.saturating_add(CONDITION_INTERVAL_MS);
            let asks_anew = state.gangs[gang].specified_ms > own.condition_ms;
            if current.reason == reason && again_ms > now_ms && !asks_anew {
                binder.timers.set(again_ms, Timer::Gang(gang));
                return None;
            }
        }
        let news = own.unscheduled.as_ref();
        let news = news.is_none_or(|current| current.reason != reason);
        let since_ms = pod.created_ms;
        let reference = pod.reference();
        // News of why it waits goes to a member, too, where `kubectl describe pod` shows it: a
        // condition is shown there without its reason. To a gang that a pod stands for it is told
        // there.
        let object = pod.object();
        if news && state.object_of(&state.gangs[gang]).as_ref() != Some(&object) {
            binder.outbox.announce(announcement(object, &verdict));
        }
        if let Some(own) = &mut state.pods[id].own {
            let (reason, message) = (reason.clone(), message.clone());
            own.unscheduled = Some(ScheduledCondition { reason, message });
            own.condition_ms = now_ms;
        }
        Some(StatusPatch::Unscheduled {
            pod: reference,
            reason,
            message,
            since_ms,
        })
    }

    /// Sees to it that what has become of the gang is told. Of one that waits for its turn or for
    /// nothing, its pods have nothing to say, nor has anybody but its PodGroup.
    pub(crate) fn report(
        &mut self,
        view: View<'_>,
        outbox: &mut Outbox,
        id: GangId,
        counts: &Counts,
    ) {
        self.dirty_queues = true;
        let View { state, now_ms, .. } = view;
        let (gang, told) = (&state.gangs[id], &mut self.told[id]);
        told.scheduled = scheduled(gang, told, counts, now_ms);
        let progress = &view.progress[id];
        let complete_ms = progress.start.complete_ms();
        told.staleness = complete_ms.zip(staleness(progress, told, now_ms));
        let refused = view.waiting[id].wait.reason().is_some();
        if refused || gang.object.is_some() || told.announced.is_some() {
            outbox.status(StatusKey::Gang(id));
        }
        if !refused || counts.waiting == 0 || !outbox.writes_statuses() {
            return;
        }
        for pod in gang.members.iter().map(|pod| &state.pods[*pod]) {
            if pod.stage == Stage::Waiting {
                outbox.status(StatusKey::Pod(pod.uid));
            }
        }
    }

    /// Writes a status once more, unless the watch shows that it is there.
    pub(crate) fn rewrite(&mut self, state: &ClusterState, outbox: &mut Outbox, key: StatusKey) {
        self.forget(state, key);
        if let StatusKey::Gang(id) = key
            && state.gangs.get(id).is_some()
        {
            outbox.status(key);
        }
    }

    /// It is not known any more what was written. Of pods the watch shows it.
    fn forget(&mut self, state: &ClusterState, key: StatusKey) {
        match key {
            StatusKey::Gang(id) if state.gangs.get(id).is_some() => self.told[id].reported = None,
            StatusKey::Gang(_) | StatusKey::Pod(_) => {}
            StatusKey::Queue(queue) => {
                self.reported_queues.remove(&queue);
                self.dirty_queues = true;
            }
        }
    }

    /// A status write has ended. What was not written is looked at again.
    pub(crate) fn status_ended(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        timers: &mut Timers,
        key: StatusKey,
        outcome: &Outcome,
        now_ms: UnixMs,
    ) {
        let again_ms = match outcome {
            Outcome::Done | Outcome::NotFound | Outcome::Refused { .. } => return,
            Outcome::Throttled { retry_after_ms } => now_ms.saturating_add(*retry_after_ms),
            Outcome::Conflict { .. }
            | Outcome::Unknown { .. }
            | Outcome::Observed(_)
            | Outcome::Lease(_) => now_ms.saturating_add(settings.retry_after_ms),
        };
        if matches!(outcome, Outcome::Unknown { .. }) {
            let rewrite_ms = now_ms.saturating_add(LATE_WRITE_MS);
            timers.set(rewrite_ms, Timer::Rewrite(key));
        }
        self.forget(state, key);
        match key {
            StatusKey::Gang(id) if state.gangs.get(id).is_some() => {
                timers.set(again_ms, Timer::Gang(id));
            }
            StatusKey::Gang(_) => {}
            StatusKey::Pod(uid) => {
                let Some(pod) = state.pod_ids.get(&uid) else {
                    return;
                };
                if let Some(own) = &mut state.pods[*pod].own {
                    own.unscheduled = None;
                    if let Some(gang) = own.gang {
                        timers.set(again_ms, Timer::Gang(gang));
                    }
                }
            }
            StatusKey::Queue(_) => timers.set(again_ms, Timer::QueueStatus),
        }
    }
}

/// The gang of a pod that is there.
fn gang_of(state: &ClusterState, uid: Uid) -> Option<GangId> {
    state.pods[*state.pod_ids.get(&uid)?].own.as_ref()?.gang
}

/// News of why a gang waits.
fn announcement(regarding: ObjectReference, verdict: &Verdict) -> Announcement {
    Announcement {
        regarding,
        // A gang that is still being put together is no trouble.
        warning: verdict.reason != Reason::WaitingForMembers,
        reason: verdict.reason.as_str().into(),
        message: verdict.message.as_str().into(),
        once: false,
    }
}

/// The pod condition of a gang that waits: `Unschedulable` only where more nodes would help.
fn condition(verdict: &Verdict) -> (Box<str>, Box<str>) {
    let Verdict {
        reason, message, ..
    } = verdict;
    if verdict.more_nodes_help {
        let message = format!("{reason}: {message}");
        return ("Unschedulable".into(), message.into());
    }
    (reason.as_str().into(), message.as_str().into())
}
