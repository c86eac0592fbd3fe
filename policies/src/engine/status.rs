//! What users see: statuses, conditions and events, worked out when there is room to send them.
//!
//! Statuses of PodGroups are read back from the watch: what is there is not written again after a
//! restart, and a write that came late is noticed.

use crate::bind::outbox::{Flight, StatusKey};
use crate::bind::timers::Timer;
use crate::command::{Action, Announcement, ObjectReference, StatusPatch};
use crate::engine::Engine;
use crate::event::Outcome;
use crate::facts::{ScheduledCondition, Uid, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::wait::Verdict;
use crate::ids::{GangId, PodId};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::state::pod::Stage;
use crate::status::Phase;
use crate::tell::why::failure;
use crate::tell::{gang, why};
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
const LATE_WRITE_MS: u64 = 10_000;

/// How much of the fair shares is worked out in one step, in units of about ten nanoseconds.
const DIVISION_WORK: u64 = 100_000;

/// How many statuses one step looks at.
const STATUSES_LOOKED_AT: u32 = 1_000;

impl Engine {
    /// Phase 6: what users see. Whether there was more to look at than fits into a slice.
    pub(super) fn tell(&mut self, now_ms: UnixMs) -> bool {
        self.announce_faults();
        let unfinished = self.queue_reports_due(now_ms);
        self.send_reports(now_ms) | unfinished
    }

    /// Sends statuses, then events, while there is room and nothing more urgent waits. Whether
    /// there was more to look at than fits into a slice.
    fn send_reports(&mut self, now_ms: UnixMs) -> bool {
        let deadline_ms = now_ms.saturating_add(self.settings.request_deadline_ms);
        let mut looked_at = 0;
        while let Some(key) = self.binder.outbox.next_status() {
            looked_at += 1;
            if looked_at > STATUSES_LOOKED_AT {
                self.binder.outbox.status(key);
                return true;
            }
            let Some(patch) = self.patch(key, now_ms) else {
                continue;
            };
            let action = Action::PatchStatus(patch);
            self.binder
                .outbox
                .send(Flight::Status(key), deadline_ms, action);
        }
        while let Some(announcement) = self.binder.outbox.next_announcement() {
            let action = Action::Publish(announcement);
            self.binder
                .outbox
                .send(Flight::Announcement, deadline_ms, action);
        }
        false
    }

    fn patch(&mut self, key: StatusKey, now_ms: UnixMs) -> Option<StatusPatch> {
        match key {
            StatusKey::Gang(gang) => self.in_hand(gang, |engine| engine.gang_patch(gang, now_ms)),
            StatusKey::Pod(uid) => self.pod_patch(uid, now_ms),
            StatusKey::Queue(queue) => self.queue_patch(queue, now_ms),
        }
    }

    fn gang_patch(&mut self, id: GangId, now_ms: UnixMs) -> Option<StatusPatch> {
        let gang = self.state.gangs.get(id)?;
        if gang.is_others() {
            return None;
        }
        let native = gang.native_name().is_some();
        let counts = count(&self.state, id, now_ms);
        let status = gang::gang_status(
            &self.state,
            &self.told,
            &self.planner.waiting,
            &self.progress,
            id,
            &counts,
            now_ms,
        );
        let first_ms = gang.spec.created_ms.saturating_add(FIRST_WORD_DELAY_MS);
        let reported = self.told[id].reported(gang.object.as_deref());
        let told = reported.or(gang.shown());
        if status.phase == Phase::Pending && told.is_none() && first_ms > now_ms {
            self.binder.timers.set(first_ms, Timer::Gang(id));
            return None;
        }
        let complete_ms = self.progress[id].start.complete_ms();
        let told = &mut self.told[id];
        told.scheduled = (status.scheduled, status.scheduled_since_ms);
        told.staleness = complete_ms.zip(status.staleness);
        self.announce_reason(id);
        let object = self.state.gangs[id].object.as_deref()?;
        let shown = object.status.as_ref();
        let told = &mut self.told[id];
        if told.reported(Some(object)).or(shown) == Some(&status) {
            if !native && shown != Some(&status) {
                // The watch is behind, or another write came later than ours.
                let rewrite_ms = now_ms.saturating_add(LATE_WRITE_MS);
                let key = StatusKey::Gang(id);
                self.binder.timers.set(rewrite_ms, Timer::Rewrite(key));
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
    fn announce_reason(&mut self, id: GangId) {
        let gang = &self.state.gangs[id];
        let verdict = why::why_it_waits(&self.state, &self.planner.waiting, id);
        let reason = verdict.as_ref().map(|verdict| verdict.reason);
        if self.told[id].announced == reason {
            return;
        }
        let announcement = verdict
            .and_then(|verdict| Some(announcement(gang::object_of(&self.state, gang)?, &verdict)));
        self.told[id].announced = reason;
        if let Some(announcement) = announcement {
            self.binder.outbox.announce(announcement);
        }
    }

    /// News of why it waits goes to a member, too, where `kubectl describe pod` shows it: a
    /// condition is shown there without its reason.
    fn announce_to_member(&mut self, pod: PodId, gang: GangId) {
        let regarding = self.state.pods[pod].object();
        // To a gang that a pod stands for it is told there.
        let object = gang::object_of(&self.state, &self.state.gangs[gang]);
        let Some(verdict) = why::why_it_waits(&self.state, &self.planner.waiting, gang)
            .filter(|_| object.as_ref() != Some(&regarding))
        else {
            return;
        };
        let announcement = announcement(regarding, &verdict);
        self.binder.outbox.announce(announcement);
    }

    fn pod_patch(&mut self, uid: Uid, now_ms: UnixMs) -> Option<StatusPatch> {
        let id = *self.state.pod_ids.get(&uid)?;
        let pod = &self.state.pods[id];
        let waits = pod.stage == Stage::Waiting || failure(pod).is_some();
        if !waits || pod.deleting {
            return None;
        }
        let own = pod.own.as_ref()?;
        let gang = own.gang?;
        let young_until_ms = pod.created_ms.saturating_add(FIRST_WORD_DELAY_MS);
        if young_until_ms > now_ms {
            self.binder.timers.set(young_until_ms, Timer::Gang(gang));
            return None;
        }
        let (reason, message) = condition(&*why::why_it_waits(
            &self.state,
            &self.planner.waiting,
            gang,
        )?);
        if let Some(current) = &own.unscheduled {
            if current.reason == reason && current.message == message {
                return None;
            }
            let again_ms = own.condition_ms.saturating_add(CONDITION_INTERVAL_MS);
            let asks_anew = self.state.gangs[gang].specified_ms > own.condition_ms;
            if current.reason == reason && again_ms > now_ms && !asks_anew {
                self.binder.timers.set(again_ms, Timer::Gang(gang));
                return None;
            }
        }
        let news = own.unscheduled.as_ref();
        let news = news.is_none_or(|current| current.reason != reason);
        let since_ms = pod.created_ms;
        let reference = pod.reference();
        if news {
            self.announce_to_member(id, gang);
        }
        if let Some(own) = &mut self.state.pods[id].own {
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

    fn queue_patch(&mut self, queue: QueueId, now_ms: UnixMs) -> Option<StatusPatch> {
        let (name, uid) = self.state.queues.object(queue)?;
        let status = self.queue_status(queue);
        self.note_queue(&name, uid, &status);
        if self.reported_queues.get(&queue) == Some(&status) {
            if self.state.queues.told_past(queue) != status.past_use.as_ref() {
                // A successor would begin with what an older write has left there.
                let rewrite_ms = now_ms.saturating_add(LATE_WRITE_MS);
                let key = StatusKey::Queue(queue);
                self.binder.timers.set(rewrite_ms, Timer::Rewrite(key));
            }
            return None;
        }
        self.reported_queues.insert(queue, status.clone());
        Some(StatusPatch::Queue { name, uid, status })
    }

    /// Lets every queue's status be looked at again, at most once in a while, as soon as the fair
    /// shares are worked out. Whether that goes on in the next slice.
    fn queue_reports_due(&mut self, now_ms: UnixMs) -> bool {
        if !self.dividing {
            let silent = !self.binder.outbox.writes_statuses();
            let changed = self.dirty_queues || !self.state.queues.shares_are_current();
            if silent || !changed || now_ms < self.queues_reported_ms {
                return false;
            }
            self.dirty_queues = false;
        }
        self.dividing = !self.state.queues.divide(&mut 0, DIVISION_WORK);
        if self.dividing {
            return true;
        }
        let next_ms = now_ms.saturating_add(self.settings.queue_status_interval_ms);
        self.queues_reported_ms = next_ms;
        self.binder.timers.set(next_ms, Timer::QueueStatus);
        for queue in self.state.queues.ids() {
            self.binder.outbox.status(StatusKey::Queue(queue));
        }
        false
    }

    /// Writes a status once more, unless the watch shows that it is there.
    pub(crate) fn rewrite(&mut self, key: StatusKey) {
        match key {
            StatusKey::Gang(id) => {
                if self.state.gangs.get(id).is_some() {
                    self.told[id].reported = None;
                    self.binder.outbox.status(key);
                }
            }
            // The watch shows the condition.
            StatusKey::Pod(_) => {}
            StatusKey::Queue(queue) => {
                self.reported_queues.remove(&queue);
                self.dirty_queues = true;
            }
        }
    }

    /// A status write has ended. What was not written is looked at again.
    pub(crate) fn status_ended(&mut self, key: StatusKey, outcome: &Outcome, now_ms: UnixMs) {
        let again_ms = match outcome {
            Outcome::Done | Outcome::NotFound | Outcome::Refused { .. } => return,
            Outcome::Throttled { retry_after_ms } => now_ms.saturating_add(*retry_after_ms),
            Outcome::Conflict { .. }
            | Outcome::Unknown { .. }
            | Outcome::Observed(_)
            | Outcome::Lease(_) => now_ms.saturating_add(self.settings.retry_after_ms),
        };
        if matches!(outcome, Outcome::Unknown { .. }) {
            let rewrite_ms = now_ms.saturating_add(LATE_WRITE_MS);
            self.binder.timers.set(rewrite_ms, Timer::Rewrite(key));
        }
        match key {
            StatusKey::Gang(id) => {
                if self.state.gangs.get(id).is_some() {
                    self.told[id].reported = None;
                    self.binder.timers.set(again_ms, Timer::Gang(id));
                }
            }
            StatusKey::Pod(uid) => {
                let Some(pod) = self.state.pod_ids.get(&uid) else {
                    return;
                };
                if let Some(own) = &mut self.state.pods[*pod].own {
                    own.unscheduled = None;
                    if let Some(gang) = own.gang {
                        self.binder.timers.set(again_ms, Timer::Gang(gang));
                    }
                }
            }
            StatusKey::Queue(queue) => {
                self.reported_queues.remove(&queue);
                self.dirty_queues = true;
                self.binder.timers.set(again_ms, Timer::QueueStatus);
            }
        }
    }
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
