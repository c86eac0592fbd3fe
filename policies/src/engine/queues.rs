//! Queues come, change and go under the gangs that stand in them.

use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::wait::Wait;
use crate::ids::GangId;
use crate::plan::agenda::Agenda;
use crate::queues::QueueId;
use alloc::vec::Vec;

impl Engine {
    /// Makes the changes of queues effective.
    pub(crate) fn refresh_queues(&mut self, now_ms: UnixMs) {
        for queue in self.state.queues.leaving() {
            self.empty_queue(queue);
        }
        if self.state.refresh_queues(now_ms) {
            self.forget_queues();
        }
    }

    /// Lets every gang leave a queue that will not be there any more. What runs goes on, as
    /// foreign.
    fn empty_queue(&mut self, queue: QueueId) {
        let gangs: Vec<GangId> = self
            .state
            .submitted
            .to(self.state.queues.name(queue))
            .collect();
        for id in gangs {
            if self.progress[id]
                .tally
                .is_some_and(|tally| tally.queue == queue)
            {
                self.replace_tally(id, None);
            }
            let place = self.planner.waiting[id].place.as_ref();
            if place.is_some_and(|(stands_in, _)| *stands_in == queue) {
                self.planner
                    .leave_agenda(&mut self.state, &self.settings, &self.progress, id);
                self.planner.waiting[id].wait = Wait::Nothing;
            }
            self.state.leave_queue(id, queue);
            self.state.touched.insert(id);
        }
        self.teller.gangs_by_queue.remove(&queue);
        self.teller.reported_queues.remove(&queue);
    }

    /// Counts what queues have used, on its grid; what is written of it changes with that.
    pub(crate) fn count_use(&mut self, now_ms: UnixMs) {
        let before = self.state.queues.next_use_ms();
        self.state.queues.count_use(now_ms);
        self.teller.dirty_queues |= self.state.queues.next_use_ms() != before;
    }

    /// The hierarchy is another one: every gang that stood in a queue is entered anew.
    fn forget_queues(&mut self) {
        self.planner.agenda = Agenda::new(self.settings.queueing);
        self.teller.gangs_by_queue.clear();
        self.teller.reported_queues.clear();
        self.teller.dirty_queues = true;
        for id in self.state.gangs.ids() {
            self.progress[id].tally = None;
            let waiting = &mut self.planner.waiting[id];
            waiting.place = None;
            waiting.wait = Wait::Nothing;
        }
    }
}
