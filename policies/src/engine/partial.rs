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
//! [`super::first_look`] says which it is when an engine begins with a gang of which members run.
//! Sub-groups that a gang could do without are followed in the same way, see [`super::parts`].
//!
//! Kubernetes cannot bind several pods at once, so a crash may leave a gang with a part of its
//! members bound. The next leader sees how many are, and finishes the gang before anything else or
//! evicts them.

use super::Engine;
use super::counts::{Counts, has_started};
use super::first_look::FirstLook;
use super::timers::Timer;
use crate::command::EvictionCause;
use crate::facts::UnixMs;
use crate::ids::GangId;
use crate::state::gang::{Backoff, Start, Wait};

/// How long an unfinished gang that cannot be completed is kept, so that news that is on its way
/// (a replacement, another kind's list) still counts. Users are promised two seconds.
pub(crate) const UNWIND_AFTER_MS: u64 = 1_000;

impl Engine {
    /// Follows how far the gang has come, and evicts what is left of one that ran and stays below
    /// its minimum. While the PodGroup is not known, nobody knows the minimum: what has become of
    /// the gang in the meantime is seen when it is.
    pub(crate) fn follow_members(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        let gang = &mut self.state.gangs[id];
        if gang.lacks_object() {
            gang.lost_ms = None;
            return;
        }
        let lost = self.follow_start(id, counts, now_ms);
        self.follow_losses(id, counts, lost, now_ms);
    }

    /// Whether a complete gang has lost members since the last look.
    fn follow_start(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) -> bool {
        let complete = Start::Complete { since_ms: now_ms };
        let completed = self.follow_parts(id, now_ms);
        let start = self.state.gangs[id].start;
        let held = counts.bound + counts.assumed + counts.succeeded;
        let first_look = (start == Start::NotBegun && counts.bound > 0)
            .then(|| self.first_look(id, counts, now_ms));
        // The minimum may have been raised while it was bound.
        let finished = !matches!(start, Start::Complete { .. })
            && (counts.met || (counts.bound > 0 && self.lacks(id, &has_started)[0] == 0));
        let gang = &mut self.state.gangs[id];
        let mut lost = held < core::mem::replace(&mut gang.held, held);
        gang.start = match (start, first_look) {
            _ if counts.bound + counts.assumed == 0 => {
                gang.staleness = None;
                Start::NotBegun
            }
            (_, Some(FirstLook::Complete { lost_ms, told })) => {
                lost = lost_ms.is_some();
                gang.lost_ms = lost_ms;
                gang.staleness = told;
                complete
            }
            (_, None) if finished => complete,
            (_, Some(FirstLook::Unfinished)) | (Start::NotBegun, None) => {
                Start::Unfinished { stuck_ms: None }
            }
            (known, None) => known,
        };
        // A sub-group that is refused again and again must not profit from those that run.
        let settled = gang.parts.is_empty() || completed;
        if matches!(gang.start, Start::Complete { .. }) && counts.met && settled {
            gang.backoff = Backoff::default();
        }
        lost && matches!(gang.start, Start::Complete { .. })
    }

    /// Evicts a gang that has been below its minimum for too long since it lost members. What runs
    /// in a queue that is gone, say, is left alone: nobody lets it come back to its minimum.
    fn follow_losses(&mut self, id: GangId, counts: &Counts, lost: bool, now_ms: UnixMs) {
        let gang = &mut self.state.gangs[id];
        // Only a loss starts the clock, never a minimum that was raised.
        gang.bereaved |= lost;
        // The binding of a replacement may still fail: until it has a node the loss stands.
        gang.bereaved &= !counts.met && gang.held > 0 && !gang.is_unfinished();
        let stale = gang.bereaved && counts.bound > 0;
        let stale = stale && (counts.needed == 0 || self.admit(id, counts).is_ok());
        let gang = &mut self.state.gangs[id];
        gang.lost_ms = stale.then(|| gang.lost_ms.unwrap_or(now_ms));
        let grace = match gang.spec.staleness_grace_ms {
            Some(grace) => u64::try_from(grace).ok(),
            None => self.settings.staleness_grace_ms,
        };
        let (Some(lost_ms), Some(grace)) = (gang.lost_ms, grace) else {
            return;
        };
        let due_ms = lost_ms.saturating_add(grace);
        if due_ms > now_ms {
            self.timers.set(due_ms, Timer::Gang(id));
        } else if counts.needed > 0 {
            self.evict_members(id, EvictionCause::Stale);
        }
    }

    /// Unwinds an unfinished gang that cannot be completed: its members cannot be placed, or there
    /// is no room for them. While a binding of it is under way, nobody knows yet.
    pub(crate) fn follow_unfinished(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        self.follow_cut_off(id, now_ms);
        let leading = self.leading;
        let gang = &mut self.state.gangs[id];
        let tried = counts.assumed == 0 && gang.wait != Wait::Turn;
        let Start::Unfinished { stuck_ms } = &mut gang.start else {
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
            self.timers.set(due_ms, Timer::Gang(id));
        } else {
            self.evict_members(id, EvictionCause::Unwind);
        }
    }
}
