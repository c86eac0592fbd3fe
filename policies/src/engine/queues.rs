//! What it means for gangs that queues come, change and go.

use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::ids::GangId;
use crate::queues::QueueId;
use alloc::collections::BTreeSet;

impl Engine {
    /// Makes the changes of queues effective.
    pub(crate) fn refresh_queues(&mut self, now_ms: UnixMs) {
        for queue in self.state.queues.leaving() {
            self.empty_queue(queue);
        }
        let edits = self.state.queues.edits();
        if self.state.refresh_queues(now_ms) {
            self.forget_queues();
        }
        if self.state.queues.edits() != edits {
            // Limits and quotas bound what promised gangs may hold at their times.
            self.planner.doubt_promises();
        }
    }

    /// Lets every gang leave a queue that is about to go. Running members go on, in no queue's
    /// accounts.
    fn empty_queue(&mut self, queue: QueueId) {
        let named = self.state.submitted.to(self.state.queues.name(queue));
        // A member that has just come from another gang counts where that gang counted, until its
        // new gang is assessed.
        let touched = self.state.touched.iter().copied();
        let touched = touched.filter(|id| self.state.gangs.get(*id).is_some());
        let gangs: BTreeSet<GangId> = named.chain(touched).collect();
        for id in gangs {
            if self.progress[id]
                .tally()
                .is_some_and(|tally| tally.queue == queue)
            {
                self.replace_tally(id, None);
            }
            let (state, settings) = (&mut self.state, &self.settings);
            self.planner
                .leave_queue(state, settings, &self.progress, id, queue);
            self.binder.end_taking(&mut self.state, id, true);
            self.state.leave_queue(id, queue);
            self.state.touched.insert(id);
        }
        self.state.end_holds_in(queue);
        self.teller.forget_queue(queue);
    }

    /// Counts what queues have used, if the next time of the grid has come. Statuses of queues tell
    /// what they have used.
    pub(crate) fn count_use(&mut self, now_ms: UnixMs) {
        let before = self.state.queues.next_use_ms();
        self.state.queues.count_use(now_ms);
        let has_counted = self.state.queues.next_use_ms() != before;
        self.teller.note_queues(has_counted);
    }

    /// Forgets what is known by queue, because the hierarchy is built anew: every gang is entered
    /// again.
    fn forget_queues(&mut self) {
        self.planner.forget_queues(self.settings.queueing);
        self.teller.forget_queues();
        for progress in self.progress.made_mut() {
            progress.replace_tally(None);
        }
    }
}
