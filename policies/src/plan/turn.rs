//! Whose turn it is, and what becomes of the gang that has it.

use crate::facts::UnixMs;
use crate::gangs::counts::{Counts, count};
use crate::gangs::progress::Progress;
use crate::gangs::request;
use crate::gangs::wait::{Refused, Wake};
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::plan::attempt::{Asker, Attempt};
use crate::plan::reserve::Wish;
use crate::plan::search::Search;
use crate::plan::{Planner, SLICE_WORK};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::vec::Vec;

/// Which gang is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This gang of a queue.
    Of(QueueId, GangId),
    /// Not known yet: the head of a line has changed, and the queues are compared once more.
    Unclear,
    /// No gang has a turn: all gangs that could start have been tried.
    Ended,
}

/// What became of an attempt.
#[derive(Debug)]
pub(crate) enum Tried {
    /// These members have been given places.
    Placed(Vec<(PodId, NodeId)>),
    /// There is no place. The gang, with its members as they are counted here, is parked.
    Refused(Counts),
    /// The slice is used up, and the search goes on in the next one.
    Searching,
}

impl Planner {
    /// The next gang: a gang of which a part is bound, else the gang whose search goes on, else the
    /// head of the queue whose turn it is.
    pub(crate) fn next_turn(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        work: &mut u64,
    ) -> Turn {
        let before_all = self.agenda.first_unfinished();
        if let Some((queue, gang)) = before_all.or_else(|| self.searching()) {
            return Turn::Of(queue, gang);
        }
        self.offer_reservations(state, settings, progress);
        let line_up = self.line_up(state, settings, progress, work);
        let Some(queue) = state.queues.next_leaf(line_up) else {
            self.forget_freed(state, settings, progress);
            self.has_woken = false;
            return Turn::Ended;
        };
        match self.agenda.head(line_up, queue) {
            // Other gangs have taken what this gang lacks: another gang of the queue comes forward.
            Some((_, Some(shortfall))) if !self.agenda.is_eased(state, shortfall) => Turn::Unclear,
            Some((gang, _)) => Turn::Of(queue, gang),
            None => {
                self.show_head(state, settings, progress, line_up, queue);
                Turn::Unclear
            }
        }
    }

    /// Tries one gang: its minimum, or one more of its surplus. Its search may need more slices.
    pub(crate) fn try_gang(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        (queue, id): (QueueId, GangId),
        now_ms: UnixMs,
        work: &mut u64,
    ) -> Tried {
        let counts = count(state, id, now_ms);
        let mut search = self.begin_slice(state, id, queue, &counts, now_ms);
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        txn.give_up_own(state, id);
        let begin = txn.checkpoint();
        let asker = Asker {
            settings,
            progress,
            gang: id,
            queue,
            counts,
            now_ms,
        };
        let attempt = Attempt {
            asker,
            state,
            txn: &mut txn,
            memo: &mut search.memo,
            work,
        };
        let result = attempt.run();
        self.charge_search(&mut search);
        let result = match result {
            Err(refused)
                if search.memo.is_interrupted()
                    || !self.place_where_promised(state, asker, &mut txn, work) =>
            {
                Err(refused)
            }
            _ => self
                .place_beside_promises(state, asker, &mut txn, begin, work)
                .map_err(|promised| (Refused::behind(promised), Wake::Promises)),
        };
        if result.is_err() {
            txn.rollback(state, start);
        }
        match result {
            Ok(()) => {
                self.reservations.keep(id, now_ms);
                self.leave_agenda(state, settings, progress, id);
                Tried::Placed(txn.commit(state))
            }
            Err(_) if search.memo.is_interrupted() => {
                self.keep_search(state, search, queue, &counts, now_ms);
                *work = SLICE_WORK.max(*work);
                Tried::Searching
            }
            Err(refusal) => self.refuse(state, asker, search, refusal, work),
        }
    }

    /// Parks a gang for which there is no place, with a promise if it gets one.
    fn refuse(
        &mut self,
        state: &mut ClusterState,
        asker: Asker<'_>,
        search: Search,
        (refused, wake): (Refused, Wake),
        work: &mut u64,
    ) -> Tried {
        let (settings, progress, now_ms) = (asker.settings, asker.progress, asker.now_ms);
        let (id, counts) = (asker.gang, asker.counts);
        let reason = refused.reason;
        let wish = self.reserve(state, asker, reason, work);
        if wish == Wish::SliceEnded {
            // Places that were found, but for promises, are looked for anew.
            if reason != Reason::Reserved {
                self.keep_search(state, search, asker.queue, &counts, now_ms);
            }
            *work = SLICE_WORK.max(*work);
            return Tried::Searching;
        }
        self.waiting[id].tried = request::fingerprint(state, id, &counts);
        self.note_refusal(id, &search, (&refused, &wake));
        let wake = if wish == Wish::Granted {
            Wake::Promises
        } else {
            wake
        };
        self.park(state, settings, progress, id, (refused, wake), now_ms);
        self.note_refused(state, settings, progress, (id, reason));
        Tried::Refused(counts)
    }
}
