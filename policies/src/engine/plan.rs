//! The planning loop: whose turn it is, and whether there is a place.

use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::request;
use crate::gangs::wait::Wait;
use crate::ids::GangId;
use crate::plan::attempt;
use crate::plan::attempt::Attempt;
use crate::queues::QueueId;

impl Engine {
    /// Lets the next gang whose search ended early be searched for as long as one alone may be, in
    /// the next steps. Whether there was one. For shells in which no time passes.
    pub fn search_on(&mut self) -> bool {
        self.planner.allowance.refill_whole(self.now_ms);
        let one = self
            .planner
            .try_next_cut(&mut self.state, &self.settings, &self.progress);
        self.unfinished |= one;
        one
    }

    /// Tries the gangs whose turn it is, until none is left or the slice is used up. Whether it was
    /// used up.
    pub(crate) fn plan(&mut self, now_ms: UnixMs) -> bool {
        let mut work = 0;
        while work < SLICE_WORK {
            work += 100;
            let before_all = self.planner.agenda.first_unfinished();
            if let Some((queue, gang)) = before_all.or_else(|| self.planner.searching()) {
                self.in_hand(gang, |engine| {
                    engine.attempt(gang, queue, now_ms, &mut work);
                });
                continue;
            }
            let line_up =
                self.planner
                    .line_up(&mut self.state, &self.settings, &self.progress, &mut work);
            let Some(queue) = self.state.queues.next_leaf(line_up) else {
                self.planner
                    .forget_freed(&mut self.state, &self.settings, &self.progress);
                return false;
            };
            match self.planner.agenda.head(line_up, queue) {
                Some((_, Some(shortfall)))
                    if !self.planner.agenda.is_over(&mut self.state, shortfall) => {}
                Some((gang, _)) => self.in_hand(gang, |engine| {
                    engine.attempt(gang, queue, now_ms, &mut work);
                }),
                None => self.planner.show_head(
                    &mut self.state,
                    &self.settings,
                    &self.progress,
                    line_up,
                    queue,
                ),
            }
        }
        true
    }

    /// Tries one gang: its minimum, or one more of its surplus. Its search may need more slices.
    fn attempt(&mut self, id: GangId, queue: QueueId, now_ms: UnixMs, work: &mut u64) {
        #[cfg(feature = "planted-panic")]
        self.spring_planted_panic(id);
        let counts = count(&self.state, id, now_ms);
        let mut search = self
            .planner
            .begin_slice(&mut self.state, id, queue, &counts, now_ms);
        let mut attempt = Attempt {
            gang: id,
            queue,
            counts,
            now_ms,
            memo: &mut search.memo,
            work,
        };
        let (state, settings) = (&mut self.state, &self.settings);
        let result = attempt::try_place(state, settings, &self.progress, &mut attempt);
        self.planner.charge_search(&mut search);
        if result.is_err() && search.memo.is_interrupted() {
            self.planner
                .keep_search(&mut self.state, search, queue, &counts, now_ms);
            *work = SLICE_WORK.max(*work);
            return;
        }
        match result {
            Ok(placed) => {
                self.planner
                    .leave_agenda(&mut self.state, &self.settings, &self.progress, id);
                for (pod, _) in placed {
                    self.binder.start_binding(&mut self.state, pod);
                }
                self.teller.review.note();
                self.planner.waiting[id].wait = Wait::Nothing;
                self.assess_as_specified(id, now_ms);
            }
            Err((refused, wake)) => {
                self.planner.waiting[id].tried = request::fingerprint(&self.state, id, &counts);
                self.planner.note_refusal(id, &search, (&refused, &wake));
                self.planner.park(
                    &mut self.state,
                    &self.settings,
                    &self.progress,
                    id,
                    refused,
                    wake,
                );
                self.follow_unfinished(id, &counts, now_ms);
                self.teller.told[id].is_stale = true;
                self.report(id, &counts);
            }
        }
        self.assess_touched(now_ms);
    }
}

/// How much work one step does, in units of about ten nanoseconds, before it lets events in again.
const SLICE_WORK: u64 = 200_000;
