//! The lines of queues: who comes into them, who leaves them, and whom the tree of queues compares.

use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::demand;
use crate::gangs::wait::{Verdict, Wait, Wake};
use crate::ids::GangId;
use crate::queues::{Demand, LineUp, QueueId};

impl Engine {
    /// Follows what has been freed: where counting says whether it helps, what lacks it may be
    /// over; everybody else is tried again.
    pub(crate) fn follow_freed(&mut self) {
        let stirred = self.agenda.take_freed(&mut self.state, &self.waiting);
        for queue in stirred.queues {
            self.show_heads(queue);
        }
        for gang in stirred.gangs {
            self.wake(gang);
        }
    }

    /// Everybody whom it may help has been tried.
    pub(crate) fn forget_freed(&mut self) {
        for queue in self.agenda.forget_freed() {
            self.show_heads(queue);
        }
    }

    /// The line-up of all who may be tried now.
    pub(crate) fn line_up(&mut self, work: &mut u64) -> LineUp {
        let (line_up, queues) = self.agenda.line_up();
        *work += 50 * queues.len() as u64;
        for queue in queues {
            self.show_head(line_up, queue);
        }
        line_up
    }

    /// Tells the tree of queues, in every line-up, what the next gang of a leaf asks for.
    pub(crate) fn show_heads(&mut self, queue: QueueId) {
        for line_up in self.agenda.line_ups() {
            self.show_head(line_up, queue);
        }
    }

    /// Tells the tree of queues what the next gang of a leaf asks for. What a gang asks for does
    /// not change while it stands where it is.
    pub(crate) fn show_head(&mut self, line_up: LineUp, queue: QueueId) {
        let head = self.agenda.head(line_up, queue).map(|(gang, _)| gang);
        if head == self.agenda.shown(line_up, queue) {
            return;
        }
        let demand = head.map(|gang| -> Demand {
            self.in_hand(gang, |engine| {
                demand::demand_of(
                    &engine.state,
                    &engine.settings,
                    &engine.progress,
                    gang,
                    queue,
                    UnixMs::MAX,
                )
            })
        });
        self.state.queues.set_candidate(line_up, queue, demand);
        self.agenda.show(line_up, queue, head);
    }

    /// Takes a gang off the agenda, from wherever it stands there.
    pub(crate) fn leave_agenda(&mut self, id: GangId) {
        if let Some(queue) = self.leave_line(id) {
            self.show_heads(queue);
            self.advance(queue);
        }
    }

    /// The queue in which it stood; its head may be another one now.
    fn leave_line(&mut self, id: GangId) -> Option<QueueId> {
        let waiting = &mut self.waiting[id];
        let (queue, key) = waiting.place.take()?;
        match &waiting.wait {
            Wait::Room(_, wake) => self.agenda.unpark(id, wake, queue, &key),
            _ => self.agenda.remove(queue, key, id),
        }
        Some(queue)
    }

    /// Keeps a gang that was refused in its place until what the refusal names changes.
    pub(crate) fn park(&mut self, id: GangId, verdict: Verdict, wake: Wake) {
        let place = self.waiting[id].place.clone();
        self.leave_line(id);
        if let Some((queue, key)) = &place {
            self.agenda.park(id, &wake, *queue, key);
        }
        let waiting = &mut self.waiting[id];
        waiting.place = place;
        waiting.judged = self.review.now();
        waiting.wait = Wait::Room(verdict, wake);
        if let Some((queue, _)) = waiting.place {
            self.show_heads(queue);
        }
    }

    /// Something has changed that a parked gang waits for: its turn may come. About the gang itself
    /// nothing has changed, so it is not assessed anew.
    pub(crate) fn wake(&mut self, id: GangId) {
        let waiting = &mut self.waiting[id];
        let (Some((queue, key)), Wait::Room(_, wake)) = (&waiting.place, &waiting.wait) else {
            return;
        };
        let (queue, key) = (*queue, key.clone());
        self.agenda.unpark(id, wake, queue, &key);
        self.agenda.add(queue, key, id);
        waiting.wait = Wait::Turn;
        self.show_heads(queue);
    }

    /// A gang has left the line of a queue. Where no gang may pass refused ones, the one that comes
    /// first now is tried: what has been freed while it stood behind others was not offered to it.
    fn advance(&mut self, queue: QueueId) {
        if let Some(gang) = self.agenda.blocker(queue) {
            self.wake(gang);
        }
    }
}
