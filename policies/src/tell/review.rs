//! Keeps true what refused gangs were told.
//!
//! A refused gang is tried again only when something may help it (see `plan::agenda`), but what it
//! was told can become untrue by other things: nodes that go, limits that fall, others that take
//! what was free. So the sentences of refused gangs are made again in turn, a few a second, while
//! anything has happened since they were made. Nobody is tried for it.
//!
//! ```text
//!   anything happens        REVIEW_INTERVAL_MS        none is left
//!  +----------+  +------------------+  +-----------+  +----------+
//!  |  rests   |->| list those whose |->| some more |->|  rests   |
//!  |          |  | sentence is older|  |  are told |  |          |
//!  +----------+  +------------------+  +-----------+  +----------+
//! ```

use crate::bind::Binder;
use crate::bind::outbox::Outbox;
use crate::bind::timers::{Timer, Timers};
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::ids::GangId;
use crate::tell::{Teller, View};
use alloc::vec::Vec;

/// How often sentences are made again.
const REVIEW_INTERVAL_MS: u64 = 1_000;

/// For how many waiting pods something new may be told at each time. One gang of more takes as many
/// times: a condition is written to each pod.
const PODS_REVIEWED: u64 = 16;

/// Which sentences are made again.
#[derive(Debug, Default)]
pub(crate) struct Review {
    /// Rises with everything that happens.
    happened: u64,
    /// What had happened when gangs were listed last.
    listed: u64,
    /// Those that are still to be told anew, the last first.
    gangs: Vec<GangId>,
    /// A timer runs.
    waits: bool,
}

impl Review {
    /// Something has happened.
    pub(crate) fn note(&mut self) {
        self.happened += 1;
    }

    /// How much has happened, for a sentence that is made now.
    pub(super) fn now(&self) -> u64 {
        self.happened
    }

    /// Sees to it that sentences are made again, if anything has happened.
    pub(crate) fn plan(&mut self, outbox: &Outbox, timers: &mut Timers, now_ms: UnixMs) {
        let nothing = self.gangs.is_empty() && self.listed == self.happened;
        if !nothing && !self.waits && outbox.writes_statuses() {
            self.waits = true;
            timers.set(now_ms.saturating_add(REVIEW_INTERVAL_MS), Timer::Review);
        }
    }
}

impl Teller {
    /// It is time to tell some of the refused gangs anew.
    pub(crate) fn review_some(&mut self, view: View<'_>, binder: &mut Binder) {
        let review = &mut self.review;
        if review.gangs.is_empty() && review.listed != review.happened {
            review.listed = review.happened;
            review.gangs = view.state.gangs.ids();
            review.gangs.retain(|id| view.waiting[*id].is_parked());
            review.gangs.reverse();
        }
        let mut pods = 0;
        while pods < PODS_REVIEWED
            && let Some(id) = self.review.gangs.pop()
        {
            pods += self.review_gang(view, &mut binder.outbox, id);
        }
        self.review.waits = !self.review.gangs.is_empty();
        if self.review.waits {
            let pause_ms = REVIEW_INTERVAL_MS * pods.div_ceil(PODS_REVIEWED);
            let at_ms = view.now_ms.saturating_add(pause_ms);
            binder.timers.set(at_ms, Timer::Review);
        }
    }

    /// Lets every refused gang be told anew.
    pub(crate) fn review_all(&mut self, view: View<'_>, outbox: &mut Outbox) {
        for id in view.state.gangs.ids() {
            self.review_gang(view, outbox, id);
        }
    }

    /// Lets a gang be told anew if its sentence may have become untrue. How many of its pods wait.
    fn review_gang(&mut self, view: View<'_>, outbox: &mut Outbox, id: GangId) -> u64 {
        let said = self.told[id].said.as_ref();
        let is_true = said.is_some_and(|said| said.as_of == self.review.happened);
        if is_true || !view.waiting[id].is_parked() {
            return 0;
        }
        let counts = count(view.state, id, view.now_ms);
        self.told[id].is_stale = true;
        self.report(view, outbox, id, &counts);
        u64::from(counts.waiting).max(1)
    }
}
