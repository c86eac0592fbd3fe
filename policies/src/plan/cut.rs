//! Gangs whose search ended early because others had used what searches share.
//!
//! The reason of a refused gang must follow from the state, and not from which gang was searched
//! for right before it. So a search that neither found a place nor proved that there is none, and
//! that had less than a whole one may take, or had to begin anew in between, is made once more when
//! all of the allowance is back; one gang after the other.
//!
//! So whether a refusal is told as proved or bounded follows from the state alone, once nothing has
//! happened for as long as that takes: two seconds for each such gang. `plan` waits for none of it:
//! there no time passes, and each gang has the whole allowance for itself.

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
pub(crate) struct Cut {
    gangs: BTreeSet<GangId>,
    /// A timer runs.
    waits: bool,
}

impl Cut {
    /// The timer has ended: all of the allowance may be back. Whether anybody waits for it.
    pub(crate) fn is_due(&mut self) -> bool {
        self.waits = false;
        !self.gangs.is_empty()
    }
}

impl Planner {
    /// Notes whether a refusal is what a whole search says.
    pub(crate) fn note_refusal(&mut self, id: GangId, search: &Search, of: (&Refused, &Wake)) {
        let (refused, wake) = of;
        let proved = refused.reason == Reason::DoesNotFit || refused.reason.is_of_queue();
        if matches!(wake, Wake::AnyRoom(..)) && !proved && !search.is_whole() {
            self.cut.gangs.insert(id);
        } else {
            self.cut.gangs.remove(&id);
        }
    }

    /// The gang has gone, and its number may be given to another.
    pub(crate) fn forget_cut(&mut self, id: GangId) {
        self.cut.gangs.remove(&id);
    }

    /// Sees to it that those who were cut short are searched for once more.
    pub(crate) fn plan_cut(&mut self, timers: &mut Timers, now_ms: UnixMs, stopping: bool) {
        if self.cut.gangs.is_empty() || self.cut.waits || stopping {
            return;
        }
        self.cut.waits = true;
        // Not before the next millisecond, or one moment would have no end.
        let at_ms = self.allowance.full_at(now_ms);
        let at_ms = at_ms.max(now_ms.saturating_add(1));
        timers.set(at_ms, Timer::Search);
    }

    /// Lets the next one be tried again. Whether there was one.
    pub(crate) fn try_next_cut(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
    ) -> bool {
        while let Some(id) = self.cut.gangs.pop_first() {
            if state.gangs.get(id).is_some() && self.waiting[id].is_parked() {
                self.wake(state, settings, progress, id);
                return true;
            }
        }
        false
    }
}
