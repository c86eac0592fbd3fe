//! What is told of queues: their statuses, and reports of all of them.

use crate::bind::Binder;
use crate::bind::outbox::StatusKey;
use crate::bind::timers::Timer;
use crate::command::StatusPatch;
use crate::facts::UnixMs;
use crate::gangs::progress::Tally;
use crate::queues::QueueId;
use crate::report::QueueReport;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::status::QueueStatus;
use crate::tell::Teller;
use crate::tell::status::LATE_WRITE_MS;
use alloc::vec::Vec;

/// How much of the fair shares is worked out in one step, in units of about ten nanoseconds.
const DIVISION_WORK: u64 = 100_000;

impl Teller {
    /// The status that is to be written to a Queue; `None`: there is no object, another gpu-batch
    /// tells of it, or the last status written was equal.
    pub(super) fn queue_patch(
        &mut self,
        state: &ClusterState,
        binder: &mut Binder,
        queue: QueueId,
        now_ms: UnixMs,
    ) -> Option<StatusPatch> {
        let (name, uid) = state.queues.object(queue)?;
        if self.is_left_alone(state, queue) {
            self.reported_queues.remove(&queue);
            return None;
        }
        let status = self.queue_status(state, queue);
        self.faults.note_queue(&name, uid, &status);
        self.faults.announce(&mut binder.outbox);
        if self.reported_queues.get(&queue) == Some(&status) {
            if state.queues.told_past(queue) != status.past_use.as_ref() {
                // The Queue shows other averages than were last written, perhaps of an older write
                // that came late; the next leader would begin with them.
                let rewrite_ms = now_ms.saturating_add(LATE_WRITE_MS);
                let key = StatusKey::Queue(queue);
                binder.timers.set(rewrite_ms, Timer::Rewrite(key));
            }
            return None;
        }
        self.reported_queues.insert(queue, status.clone());
        Some(StatusPatch::Queue { name, uid, status })
    }

    /// Works out the fair shares, slice by slice, and then lets the status of every queue be looked
    /// at again; at most once per `queue_status_interval_ms`, and only if something has changed.
    /// Returns whether the work goes on in the next slice.
    pub(crate) fn divide_queues(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        binder: &mut Binder,
        now_ms: UnixMs,
    ) -> bool {
        if !self.dividing {
            let silent = !binder.outbox.writes_statuses();
            let changed =
                self.dirty_queues || self.told_shares != Some(state.queues.shares_version());
            if silent || !changed || now_ms < self.queues_due_ms {
                return false;
            }
            self.dirty_queues = false;
        }
        self.dividing = !state.queues.divide(&mut 0, DIVISION_WORK);
        if self.dividing {
            return true;
        }
        self.told_shares = state.queues.divided_version();
        let next_ms = now_ms.saturating_add(settings.queue_status_interval_ms);
        self.queues_due_ms = next_ms;
        binder.timers.set(next_ms, Timer::QueueStatus);
        for queue in state.queues.ids() {
            binder.outbox.status(StatusKey::Queue(queue));
        }
        self.protection.begin(state);
        false
    }

    /// Takes in that a gang counts elsewhere among the gangs of queues.
    pub(crate) fn note_tally(
        &mut self,
        state: &ClusterState,
        before: Option<Tally>,
        now: Option<Tally>,
    ) {
        for (tally, one) in [(before, -1), (now, 1)] {
            let Some(Tally { queue, runs }) = tally else {
                continue;
            };
            for queue in state.queues.path(queue) {
                let (pending, running) = self.gangs_by_queue.entry(queue).or_default();
                let count = if runs { running } else { pending };
                *count = count.saturating_add_signed(one);
            }
        }
    }

    /// The status of a queue, with the numbers and the runtimes of its gangs, and a note on entries
    /// that no node has.
    pub(crate) fn queue_status(&self, state: &ClusterState, queue: QueueId) -> QueueStatus {
        let mut status = state.queues.status(queue);
        let (pending, running) = self.gangs_by_queue.get(&queue).copied().unwrap_or_default();
        (status.pending, status.running) = (pending, running);
        status.runtimes = state.runtimes.published(state.queues.name(queue)).cloned();
        if status.fault.is_none() {
            let missing = state.offered.missing(state.queues.entries(queue));
            status.note = missing.map(Into::into);
        }
        status
    }

    /// All queues, parents before children, siblings by name.
    pub(crate) fn queue_reports(&self, state: &mut ClusterState) -> Vec<QueueReport> {
        state.queues.divide_all();
        let report = |id| QueueReport {
            name: state.queues.name(id).into(),
            parent: state.queues.parent_name(id).map(Into::into),
            defined: state.queues.object(id).is_some(),
            status: self.queue_status(state, id),
        };
        state.queues.ids().into_iter().map(report).collect()
    }
}
