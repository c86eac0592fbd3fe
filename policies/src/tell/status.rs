//! Statuses, conditions and events of gangs and pods, worked out when there is room to send them.
//!
//! Statuses of PodGroups are read back from the watch: a status that is already there is not
//! written again after a restart, and a write that came late is noticed.

use crate::bind::Binder;
use crate::bind::outbox::{Flight, Outbox, StatusKey};
use crate::bind::timers::{Timer, Timers};
use crate::command::{Action, Announcement, ObjectReference, StatusPatch};
use crate::event::Outcome;
use crate::facts::{ScheduledCondition, Uid};
use crate::gangs::counts::{Counts, count};
use crate::gangs::wait::Verdict;
use crate::ids::GangId;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::pod::Stage;
use crate::status::Phase;
use crate::tell::gang::{phase, scheduled, staleness};
use crate::tell::{Scene, Teller, View};
use alloc::boxed::Box;
use alloc::format;

/// How long a condition stays while only its message changes, because of the numbers in it. It is
/// replaced at once if its reason or the spec of the gang has changed.
const CONDITION_INTERVAL_MS: u64 = 10_000;

/// How long after its creation nothing is said of a pod or gang that waits: most are placed before.
/// The creation is known to the second.
const FIRST_WORD_DELAY_MS: u64 = 2_000;

/// How long after a possibly late write the status is compared with the watch again, or written
/// again where the watch does not show it. A write that was given up, or that was repeated on its
/// way, may arrive after a newer one.
pub(super) const LATE_WRITE_MS: u64 = 10_000;

/// How much work one step does for statuses, in units of about ten nanoseconds.
const TELL_WORK: u64 = 100_000;
/// How much work it is to look at one status.
const STATUS_WORK: u64 = 100;

impl Teller {
    /// Phase 6 of a step: sends statuses, then events, while there is room and nothing more urgent
    /// waits. Returns whether there is more to look at than fits into a slice.
    pub(crate) fn tell(&mut self, scene: &mut Scene<'_>, binder: &mut Binder) -> bool {
        let (settings, now_ms) = (scene.settings, scene.now_ms);
        self.faults.announce(&mut binder.outbox);
        self.failed_cards.announce(&mut binder.outbox);
        let mut unfinished = self.divide_queues(scene.state, settings, binder, now_ms);
        unfinished |= self.protect_some(scene.state, &mut binder.outbox);
        let deadline_ms = now_ms.saturating_add(settings.request_deadline_ms);
        let mut work = 0;
        while let Some(key) = binder.outbox.next_status() {
            if work >= TELL_WORK {
                binder.outbox.status(key);
                return true;
            }
            work += STATUS_WORK;
            let gang = gang_of(scene.state, key);
            scene.state.in_hand = gang;
            let timers = &mut binder.timers;
            let gang = gang.filter(|gang| self.has_a_word(scene.view(), timers, key, *gang));
            if let Some(gang) = gang {
                work += self.say(scene, gang);
            }
            let patch = match (key, gang) {
                (StatusKey::Gang(_), Some(gang)) => self.gang_patch(scene.view(), binder, gang),
                (StatusKey::Pod(uid), Some(gang)) => self.pod_patch(scene, binder, (uid, gang)),
                (StatusKey::Queue(queue), _) => {
                    self.queue_patch(scene.state, binder, queue, now_ms)
                }
                (_, None) => None,
            };
            scene.state.in_hand = None;
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
        unfinished
    }

    /// Whether anything is to be said of a gang, or of a pod of it; of one that is young and waits,
    /// later.
    fn has_a_word(&self, view: View<'_>, timers: &mut Timers, key: StatusKey, id: GangId) -> bool {
        let View { state, now_ms, .. } = view;
        let gang = &state.gangs[id];
        let created_ms = match key {
            StatusKey::Pod(uid) => {
                let pod = &state.pods[state.pod_ids[&uid]];
                let waits = pod.stage == Stage::Waiting || pod.failure().is_some();
                if !waits || pod.deleting {
                    return false;
                }
                pod.created_ms
            }
            StatusKey::Gang(_) | StatusKey::Queue(_) => {
                if gang.is_others() {
                    return false;
                }
                let reported = self.told[id].reported(gang.object.as_deref());
                let is_told = reported.or(gang.shown()).is_some();
                if is_told || phase(&count(state, id, now_ms)) != Phase::Pending {
                    return true;
                }
                gang.spec.created_ms
            }
        };
        let first_ms = created_ms.saturating_add(FIRST_WORD_DELAY_MS);
        if first_ms > now_ms {
            timers.set(first_ms, Timer::Gang(id));
        }
        first_ms <= now_ms
    }

    fn gang_patch(
        &mut self,
        view: View<'_>,
        binder: &mut Binder,
        id: GangId,
    ) -> Option<StatusPatch> {
        let View { state, now_ms, .. } = view;
        let gang = &state.gangs[id];
        let native = gang.native_name().is_some();
        self.announce_reason(view, &mut binder.outbox, id);
        let object = gang.object.as_deref()?;
        let status = self.gang_status(view, id, &count(state, id, now_ms));
        let shown = object.status.as_ref();
        let told = &mut self.told[id];
        if told.reported(Some(object)).or(shown) == Some(&status) {
            if !native && shown != Some(&status) {
                // The watch is behind, or another write came after ours.
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

    /// Publishes why a gang waits, once for each reason, as an event on its PodGroup, the owner of
    /// a member, or a member.
    fn announce_reason(&mut self, view: View<'_>, outbox: &mut Outbox, id: GangId) {
        let state = view.state;
        let verdict = self.why_pods_wait(state, view.waiting, id);
        let reason = verdict.as_ref().map(|verdict| verdict.reason);
        // kube-scheduler tells of the pods whose nodes it chooses.
        let is_ours_to_tell = reason != Some(Reason::WaitingForKubeScheduler);
        if !is_ours_to_tell || self.told[id].announced == reason {
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
        scene: &mut Scene<'_>,
        binder: &mut Binder,
        (uid, gang): (Uid, GangId),
    ) -> Option<StatusPatch> {
        let (waiting, now_ms) = (scene.waiting, scene.now_ms);
        let state = &mut *scene.state;
        let id = state.pod_ids[&uid];
        let pod = &state.pods[id];
        // kube-scheduler writes the condition of the pods that it looks at.
        let own = pod.own.as_ref().filter(|own| !own.is_told_elsewhere())?;
        let verdict = self.why_pods_wait(state, waiting, gang)?;
        let (reason, message) = condition(&verdict);
        if let Some(current) = &own.unscheduled {
            if current.reason == reason && current.message == message {
                return None;
            }
            let again_ms = own.condition_ms.saturating_add(CONDITION_INTERVAL_MS);
            let asks_anew = self.told[gang].specified_ms > own.condition_ms;
            if current.reason == reason && again_ms > now_ms && !asks_anew {
                binder.timers.set(again_ms, Timer::Gang(gang));
                return None;
            }
        }
        let news = own.unscheduled.as_ref();
        let news = news.is_none_or(|current| current.reason != reason);
        let since_ms = pod.created_ms;
        let reference = pod.reference();
        // A member gets the event, too, because `kubectl describe pod` shows conditions without
        // their reasons; not the member that stands for its gang, which has the gang's event.
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

    /// Lets the statuses of a gang be looked at. Unless the gang is barred or was refused, only its
    /// PodGroup has something to say, not its pods.
    pub(crate) fn report(
        &mut self,
        view: View<'_>,
        outbox: &mut Outbox,
        id: GangId,
        counts: &Counts,
    ) {
        self.dirty_queues = true;
        let View { state, now_ms, .. } = view;
        let gang = &state.gangs[id];
        let holds = counts.bound > 0;
        let had_held = self.told[id].protected.is_some();
        if had_held && !holds {
            self.told[id].protected = None;
        }
        if had_held || holds {
            let tally = view.progress[id].tally().map(|tally| tally.queue);
            let queue = tally.or_else(|| state.queues.find(&gang.spec.queue));
            self.protection.note(queue);
        }
        if gang.object.is_some() {
            let (told, progress) = (&mut self.told[id], &view.progress[id]);
            told.scheduled = scheduled(gang, told, counts, now_ms);
            let complete_ms = progress.start.complete_ms();
            told.staleness = complete_ms.zip(staleness(progress, told, now_ms));
        }
        let refused = view.waiting[id].wait.reason().is_some();
        if refused || gang.object.is_some() || self.told[id].announced.is_some() {
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

    /// Lets the statuses of a gang be looked at. If it was refused, its sentence is made again.
    pub(crate) fn report_anew(
        &mut self,
        view: View<'_>,
        outbox: &mut Outbox,
        id: GangId,
        counts: &Counts,
    ) {
        self.told[id].is_stale = true;
        self.report(view, outbox, id, counts);
    }

    /// Writes a status once more, unless the watch shows it.
    pub(crate) fn rewrite(&mut self, state: &ClusterState, outbox: &mut Outbox, key: StatusKey) {
        self.forget(state, key);
        if let StatusKey::Gang(id) = key
            && state.gangs.get(id).is_some()
        {
            outbox.status(key);
        }
    }

    /// Forgets the status that was last written. The condition of a pod is known from the watch.
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

    /// A write of a status has ended. If it failed, the status is looked at again later, unless the
    /// object is gone or the API server refused the write.
    pub(crate) fn status_ended(
        &mut self,
        scene: &mut Scene<'_>,
        timers: &mut Timers,
        key: StatusKey,
        outcome: &Outcome,
    ) {
        let now_ms = scene.now_ms;
        let state = &mut *scene.state;
        let again_ms = match outcome {
            Outcome::Done | Outcome::NotFound | Outcome::Refused { .. } => return,
            Outcome::Throttled { retry_after_ms } => now_ms.saturating_add(*retry_after_ms),
            Outcome::Conflict { .. }
            | Outcome::Unknown { .. }
            | Outcome::Observed(_)
            | Outcome::Lease(_) => now_ms.saturating_add(scene.settings.retry_after_ms),
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

/// The gang whose status, or the status of whose pod, is looked at; `None`: it is gone or not ours,
/// or the status is a queue's.
fn gang_of(state: &ClusterState, key: StatusKey) -> Option<GangId> {
    match key {
        StatusKey::Gang(gang) => state.gangs.get(gang).map(|_| gang),
        StatusKey::Pod(uid) => state.pods[*state.pod_ids.get(&uid)?].own.as_ref()?.gang,
        StatusKey::Queue(_) => None,
    }
}

/// The Kubernetes event that tells why a gang waits.
fn announcement(regarding: ObjectReference, verdict: &Verdict) -> Announcement {
    Announcement {
        regarding,
        // No warning while the members of a gang are still being created.
        warning: verdict.reason != Reason::WaitingForMembers,
        reason: verdict.reason.as_str().into(),
        message: verdict.message.as_str().into(),
        once: false,
    }
}

/// Reason and message of the condition on the pods of a waiting gang. The reason is
/// `Unschedulable`, which makes autoscalers add nodes, only where more nodes would help.
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
