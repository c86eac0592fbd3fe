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

/// How much work one step does, in units of about ten nanoseconds, before it lets events in again.
const SLICE_WORK: u64 = 200_000;

impl Engine {
    /// Tries the gangs whose turn it is, until none is left or the slice is used up. Whether it was
    /// used up.
    pub(crate) fn plan(&mut self, now_ms: UnixMs) -> bool {
        let mut work = 0;
        while work < SLICE_WORK {
            work += 100;
            let before_all = self.agenda.first_unfinished();
            if let Some((queue, gang)) = before_all.or_else(|| self.searching()) {
                self.in_hand(gang, |engine| {
                    engine.attempt(gang, queue, now_ms, &mut work);
                });
                continue;
            }
            let line_up = self.line_up(&mut work);
            let Some(queue) = self.state.queues.next_leaf(line_up) else {
                self.forget_freed();
                return false;
            };
            match self.agenda.head(line_up, queue) {
                Some((_, Some(shortfall))) if !self.agenda.is_over(&mut self.state, shortfall) => {}
                Some((gang, _)) => self.in_hand(gang, |engine| {
                    engine.attempt(gang, queue, now_ms, &mut work);
                }),
                None => self.show_head(line_up, queue),
            }
        }
        true
    }

    /// Tries one gang: its minimum, or one more of its surplus. Its search may need more slices.
    fn attempt(&mut self, id: GangId, queue: QueueId, now_ms: UnixMs, work: &mut u64) {
        #[cfg(feature = "planted-panic")]
        self.spring_planted_panic(id);
        let counts = count(&self.state, id, now_ms);
        let mut search = self.begin_slice(id, queue, &counts, now_ms);
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
        self.charge_search(&mut search);
        if result.is_err() && search.memo.is_interrupted() {
            self.keep_search(search, queue, &counts, now_ms);
            *work = SLICE_WORK.max(*work);
            return;
        }
        match result {
            Ok(placed) => {
                self.leave_agenda(id);
                for (pod, _) in placed {
                    self.start_binding(pod);
                }
                self.review.note();
                self.waiting[id].wait = Wait::Nothing;
                self.assess_as_specified(id, now_ms);
            }
            Err((verdict, wake)) => {
                self.waiting[id].tried = request::fingerprint(&self.state, id, &counts);
                self.note_refusal(id, &search, (&verdict, &wake));
                self.park(id, verdict, wake);
                self.follow_unfinished(id, &counts, now_ms);
                self.report(id, &counts);
            }
        }
        self.assess_touched(now_ms);
    }
}
