//! Gangs whose search ended early because other searches had used the allowance that all share.
//!
//! The reason of a refused gang must follow from the state, and not from which gang was searched
//! for right before it. So a search is repeated if it neither found a place nor proved that there
//! is none, and it had fewer steps than a whole search may take or had to begin anew. It is
//! repeated when the whole allowance is back, one gang after the other.
//!
//! So whether a refusal is told as proved or bounded follows from the state alone, once nothing has
//! happened for two seconds for each such gang. The shell `plan` does not wait for that: no time
//! passes there, and each gang has the whole allowance for itself.

use crate::bind::timers::Timer;
use crate::bind::timers::Timers;
use crate::facts::UnixMs;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Refused, Wake};
use crate::ids::ById;
use crate::ids::GangId;
use crate::plan::Planner;
use crate::plan::search::Search;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use alloc::collections::BTreeSet;

/// The gangs that are searched for once more.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    gangs: BTreeSet<GangId>,
    /// The timer is set, or has ended and its repeat is still to come.
    waits: bool,
    /// The timer has ended: all of the allowance may be back.
    is_due: bool,
}

impl Repeats {
    /// Whether the timer has ended since the last call.
    fn take_due(&mut self) -> bool {
        let due = core::mem::take(&mut self.is_due);
        self.waits &= !due;
        due
    }
}

impl Planner {
    /// Notes a gang for another search, unless its refusal is proved or comes from a whole search.
    pub(super) fn note_refusal(&mut self, id: GangId, search: &Search, of: (&Refused, &Wake)) {
        let (refused, wake) = of;
        let proved = refused.reason == Reason::DoesNotFit || refused.reason.is_of_queue();
        if matches!(wake, Wake::AnyRoom(..)) && !proved && !search.is_whole() {
            self.repeats.gangs.insert(id);
        } else {
            self.repeats.gangs.remove(&id);
        }
    }

    /// Forgets a gang that has gone: its number may be given to another gang.
    pub(super) fn forget_repeat(&mut self, id: GangId) {
        self.repeats.gangs.remove(&id);
    }

    /// Sets the timer if gangs are to be searched for once more.
    pub(crate) fn plan_repeats(&mut self, timers: &mut Timers, now_ms: UnixMs) {
        if self.repeats.gangs.is_empty() || self.repeats.waits {
            return;
        }
        self.repeats.waits = true;
        // Not before the next millisecond: else the repeats of one moment would never end.
        let at_ms = self.allowance.full_at(now_ms);
        let at_ms = at_ms.max(now_ms.saturating_add(1));
        timers.set(at_ms, Timer::Search);
    }

    /// The timer for another search has ended.
    pub(crate) fn repeat_is_due(&mut self) {
        self.repeats.is_due = true;
    }

    /// Lets the next gang whose search ended early be tried again, if the timer for that has ended.
    pub(crate) fn try_due_repeat(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
    ) {
        if self.repeats.take_due() {
            self.try_next_repeat(state, settings, progress);
        }
    }

    /// Gives the whole allowance back at once, and lets the next gang whose search ended early be
    /// tried again, and the round of claims go on. Returns whether there is anything to go on with.
    pub(crate) fn go_on_at_once(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        now_ms: UnixMs,
    ) -> bool {
        self.allowance.refill_whole(now_ms);
        let repeats = self.try_next_repeat(state, settings, progress);
        let waits = self.claims.go_on();
        repeats || waits
    }

    /// Lets the next gang whose search ended early be tried again. Returns whether there was one.
    fn try_next_repeat(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
    ) -> bool {
        while let Some(id) = self.repeats.gangs.pop_first() {
            if state.gangs.get(id).is_some() && self.waiting[id].is_parked() {
                self.wake(state, settings, progress, id);
                return true;
            }
        }
        false
    }
}
