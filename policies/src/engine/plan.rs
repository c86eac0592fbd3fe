//! Phase 4: whose turn it is, and whether there is a place.

use crate::engine::Engine;
use crate::engine::settle::Due;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::wait::Wait;
use crate::ids::{GangId, NodeId, PodId};
use crate::plan::turn::{SLICE_WORK, Tried, Turn};
use crate::queues::QueueId;

impl Engine {
    /// Tries the gangs whose turn it is, until none is left or the slice is used up. Whether it was
    /// used up.
    pub(super) fn plan(&mut self, due: Due, now_ms: UnixMs) -> bool {
        if self.leader.stopping {
            return false;
        }
        let (state, settings) = (&mut self.state, &self.settings);
        let timers = &mut self.binder.timers;
        if due.review {
            self.planner
                .review_due(state, settings, &self.progress, timers, now_ms);
        }
        if due.search {
            self.planner.try_next_cut(state, settings, &self.progress);
        }
        let unfinished = self.take_turns(now_ms);
        let timers = &mut self.binder.timers;
        self.planner.plan_review(&self.settings, timers, now_ms);
        self.planner.plan_cut(timers, now_ms);
        unfinished
    }

    fn take_turns(&mut self, now_ms: UnixMs) -> bool {
        let mut work = 0;
        while work < SLICE_WORK {
            work += 100;
            let (state, settings) = (&mut self.state, &self.settings);
            let planner = &mut self.planner;
            match planner.next_turn(state, settings, &self.progress, &mut work) {
                Turn::Of(queue, gang) => self.in_hand(gang, |engine| {
                    engine.attempt(queue, gang, now_ms, &mut work);
                }),
                Turn::Unclear => {}
                Turn::Nobodys => return false,
            }
        }
        true
    }

    fn attempt(&mut self, queue: QueueId, id: GangId, now_ms: UnixMs, work: &mut u64) {
        #[cfg(feature = "planted-panic")]
        self.spring_planted_panic(id);
        let (state, settings, progress) = (&mut self.state, &self.settings, &self.progress);
        let planner = &mut self.planner;
        match planner.try_gang(state, settings, progress, (queue, id), now_ms, work) {
            Tried::Placed(placed) => self.begin(id, &placed, now_ms),
            Tried::Refused(counts) => {
                self.follow_unfinished(id, &counts, now_ms);
                self.report(id, &counts);
            }
            Tried::Searching => {}
        }
    }

    /// Members of a gang have places: their binds are to be sent, and its surplus may wait for a
    /// turn of its own. What the gang asks for is as it was when it was assessed.
    fn begin(&mut self, id: GangId, placed: &[(PodId, NodeId)], now_ms: UnixMs) {
        for (pod, _) in placed {
            self.binder.start_binding(&mut self.state, *pod);
        }
        self.planner.waiting[id].wait = Wait::Nothing;
        let counts = count(&self.state, id, now_ms);
        self.follow(id, &counts, now_ms);
    }

    /// Lets the next gang whose search ended early be searched for as long as one alone may be, in
    /// the next steps. Whether there was one. For shells in which no time passes.
    pub fn search_on(&mut self) -> bool {
        self.planner.allowance.refill_whole(self.now_ms);
        let (state, settings) = (&mut self.state, &self.settings);
        let one = self.planner.try_next_cut(state, settings, &self.progress);
        self.unfinished |= one;
        one
    }

    /// Tries all refused gangs again whose refusal may have become untrue, in the next steps, so
    /// that what is told of them is what is true now. For shells that print one state.
    pub fn review(&mut self) {
        let (state, settings) = (&mut self.state, &self.settings);
        self.planner
            .review_all(state, settings, &self.progress, self.now_ms);
        self.unfinished = true;
    }
}
