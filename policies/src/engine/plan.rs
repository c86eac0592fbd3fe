//! Phase 4: whose turn it is, and whether there is a place.

use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::ids::{GangId, NodeId, PodId};
use crate::plan::SLICE_WORK;
use crate::plan::turn::{Tried, Turn};
use crate::queues::QueueId;

impl Engine {
    /// Tries the gangs whose turn it is, until none is left or the slice is used up. Returns
    /// whether the slice was used up.
    pub(super) fn plan(&mut self, now_ms: UnixMs) -> bool {
        self.take_asked_binds(now_ms);
        if self.leader.stopping {
            return false;
        }
        let (state, settings) = (&mut self.state, &self.settings);
        self.planner.try_due_repeat(state, settings, &self.progress);
        if self.binder.take_adoption() {
            self.adopt_nominations();
        }
        let mut work = 0;
        self.planner.keep_promises(
            &mut self.state,
            &self.settings,
            &self.progress,
            now_ms,
            &mut work,
        );
        let unfinished = self.take_turns(now_ms, work) || self.take_claims(now_ms);
        let unfinished =
            unfinished || self.planner.keeps_promises_on(now_ms) || self.planner.has_woken();
        self.planner.note_planned(&self.state);
        self.planner.plan_repeats(&mut self.binder.timers, now_ms);
        for gang in self.planner.take_promise_news() {
            if self.state.gangs.get(gang).is_some() {
                let counts = count(&self.state, gang, now_ms);
                self.report(gang, &counts);
            }
        }
        unfinished
    }

    fn take_turns(&mut self, now_ms: UnixMs, mut work: u64) -> bool {
        while work < SLICE_WORK {
            if self.state.storage.has_other_free_volumes() {
                // Which of the gangs that follow can have volumes is known in the next step.
                return true;
            }
            work += 100;
            let (state, settings) = (&mut self.state, &self.settings);
            let planner = &mut self.planner;
            match planner.next_turn(state, settings, &self.progress, &mut work) {
                Turn::Of(queue, gang) => self.in_hand(gang, |engine| {
                    engine.attempt(queue, gang, now_ms, &mut work);
                }),
                Turn::Unclear => {}
                Turn::Ended => return false,
            }
        }
        true
    }

    fn attempt(&mut self, queue: QueueId, id: GangId, now_ms: UnixMs, work: &mut u64) {
        #[cfg(feature = "planted-panic")]
        self.spring_planted_panic(&self.state.gangs[id].name);
        let (state, settings, progress) = (&mut self.state, &self.settings, &self.progress);
        let planner = &mut self.planner;
        match planner.try_gang(state, settings, progress, (queue, id), now_ms, work) {
            Tried::Placed(placed) => self.begin(id, &placed, now_ms),
            Tried::Refused(counts) => {
                self.give_up_taking(id, now_ms);
                self.follow_unfinished(id, &counts, now_ms);
                self.report_anew(id, &counts);
            }
            Tried::Searching => {}
        }
    }

    /// Takes in that members of a gang were given places: their binds are to be sent, and the
    /// gang's surplus may wait for a turn of its own. The gang's spec has not changed since the
    /// gang was assessed.
    pub(super) fn begin(&mut self, id: GangId, placed: &[(PodId, NodeId)], now_ms: UnixMs) {
        let (binder, state) = (&mut self.binder, &mut self.state);
        binder.start_bindings(state, placed, now_ms);
        self.teller.doubt_sentences();
        self.binder.end_taking(&mut self.state, id, true);
        if let Some(promised_ms) = self.planner.note_start(id, now_ms) {
            self.forecasts.note_start(promised_ms, now_ms);
        }
        // The gang is judged once more, because its surplus is another question than its minimum: a
        // closed queue, for instance, takes no surplus. This cannot wait until the next step
        // settles the gang: other gangs would have their turns before the surplus has one.
        let counts = count(&self.state, id, now_ms);
        self.follow(id, &counts, now_ms);
    }

    /// Lets the next gang whose search ended early be searched for in the next steps, with the
    /// whole allowance. Returns whether there was such a gang. For shells in which no time passes.
    pub fn search_on(&mut self) -> bool {
        let (state, settings) = (&mut self.state, &self.settings);
        let goes_on = self
            .planner
            .go_on_at_once(state, settings, &self.progress, self.now_ms);
        self.unfinished |= goes_on;
        goes_on
    }
}
