//! Gangs of which only a part is bound: completed, unwound, or evicted when they stay stale.
//!
//! How a gang comes to be unfinished or complete is drawn at [`Start`]. What follows from it:
//!
//! | the gang | its bound members |
//! |---|---|
//! | is unfinished | it is planned before all others; if that fails, they are evicted at once |
//! | was complete and lost members | they are evicted after `stalenessGracePeriod` |
//! | was complete, its minimum was raised | they stay |
//!
//! [`first_look`](crate::gangs::first_look) says which it is when an engine begins with a gang of
//! which members run.
//! Sub-groups that a gang could do without are followed in the same way, see [`super::parts`].
//!
//! Kubernetes cannot bind several pods at once, so a crash may leave a gang with a part of its
//! members bound. The next leader sees how many are, and finishes the gang before anything else or
//! evicts them.

use crate::bind::timers::Timer;
use crate::command::EvictionCause;
use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Start;
use crate::gangs::wait::Wait;
use crate::gangs::{judge, progress};
use crate::ids::GangId;

/// How long an unfinished gang that cannot be completed is kept, so that news that is on its way
/// (a replacement, another kind's list) still counts. Users are promised two seconds.
pub(crate) const UNWIND_AFTER_MS: u64 = 1_000;

impl Engine {
    /// Follows how far the gang has come, and evicts what is left of one that ran and stays below
    /// its minimum. While the PodGroup is not known, nobody knows the minimum: what has become of
    /// the gang in the meantime is seen when it is.
    pub(crate) fn follow_members(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        if self.state.gangs[id].lacks_object() {
            self.progress[id].lost_ms = None;
            return;
        }
        let lost = progress::follow_start(&self.state, &mut self.progress, id, counts, now_ms);
        self.follow_losses(id, counts, lost, now_ms);
    }

    /// Evicts a gang that has been below its minimum for too long since it lost members. What runs
    /// in a queue that is gone, say, is left alone: nobody lets it come back to its minimum.
    fn follow_losses(&mut self, id: GangId, counts: &Counts, lost: bool, now_ms: UnixMs) {
        let progress = &mut self.progress[id];
        // Only a loss starts the clock, never a minimum that was raised.
        progress.bereaved |= lost;
        // The binding of a replacement may still fail: until it has a node the loss stands.
        progress.bereaved &= !counts.met && progress.holds() && !progress.is_unfinished();
        let stale = progress.bereaved && counts.bound > 0;
        let stale = stale
            && (counts.needed == 0
                || judge::admit(&self.state, &self.progress, id, counts).is_ok());
        let progress = &mut self.progress[id];
        progress.lost_ms = stale.then(|| progress.lost_ms.unwrap_or(now_ms));
        let grace = match self.state.gangs[id].spec.staleness_grace_ms {
            Some(grace) => u64::try_from(grace).ok(),
            None => self.settings.staleness_grace_ms,
        };
        let (Some(lost_ms), Some(grace)) = (progress.lost_ms, grace) else {
            return;
        };
        let due_ms = lost_ms.saturating_add(grace);
        if due_ms > now_ms {
            self.binder.timers.set(due_ms, Timer::Gang(id));
        } else if counts.needed > 0 && self.binder.leading {
            // A process that does not lead sends nothing, nor keeps it for the day when it leads.
            // tests plant bugs here: evict-the-rest
            self.binder.evict_members(
                &mut self.state,
                &mut self.progress,
                id,
                EvictionCause::Stale,
            );
        }
    }

    /// Unwinds an unfinished gang that cannot be completed: its members cannot be placed, or there
    /// is no room for them. While a binding of it is under way, nobody knows yet.
    pub(crate) fn follow_unfinished(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        self.follow_cut_off(id, now_ms);
        let leading = self.binder.leading;
        let progress = &mut self.progress[id];
        let tried = counts.assumed == 0 && self.planner.waiting[id].wait != Wait::Turn;
        let Start::Unfinished { stuck_ms } = &mut progress.start else {
            return;
        };
        if !leading {
            *stuck_ms = None;
            return;
        }
        if counts.bound == 0 || counts.needed == 0 || !tried {
            return;
        }
        let due_ms = stuck_ms
            .get_or_insert(now_ms)
            .saturating_add(UNWIND_AFTER_MS);
        if due_ms > now_ms {
            self.binder.timers.set(due_ms, Timer::Gang(id));
        } else {
            // tests plant bugs here: unwind
            self.binder.evict_members(
                &mut self.state,
                &mut self.progress,
                id,
                EvictionCause::Unwind,
            );
        }
    }
}
