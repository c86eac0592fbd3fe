//! Keeps the sentences of refused gangs true.
//!
//! A refused gang is tried again only when something may help it (see `plan::agenda`), but its
//! sentence can become untrue by other changes: nodes go, limits fall, other gangs take what was
//! free. So the sentences of refused gangs are made again in turn, a few a second, if anything has
//! happened since they were made. No gang is tried for that.
//!
//! ```text
//!   anything happens        REVIEW_INTERVAL_MS        none is left
//!  +----------+  +------------------+  +-----------+  +----------+
//!  |  rests   |->| list gangs whose |->| some more |->|  rests   |
//!  |          |  | sentence is older|  |  are told |  |          |
//!  +----------+  +------------------+  +-----------+  +----------+
//! ```

use crate::bind::Binder;
use crate::bind::outbox::Outbox;
use crate::bind::timers::{Timer, Timers};
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::ids::GangId;
use crate::tell::{Scene, Teller, View};
use alloc::vec::Vec;

/// The pause between two rounds in which sentences are made again.
const REVIEW_INTERVAL_MS: u64 = 1_000;

/// How many waiting pods one round may tell something new: a condition is written to each pod. A
/// gang with more waiting pods makes the pause after it longer in proportion.
const PODS_REVIEWED: u64 = 16;

/// Which sentences are made again.
#[derive(Debug, Default)]
pub(super) struct Review {
    /// How much has happened: rises with everything that may make a sentence untrue.
    happened: u64,
    /// How much had happened when the gangs were last listed.
    listed: u64,
    /// The listed gangs that are still to be told anew, the last first.
    gangs: Vec<GangId>,
    /// The timer is set, or has ended and its round is still to come.
    waits: bool,
    /// The timer has ended: a round is due.
    is_due: bool,
}

impl Review {
    /// Notes that something has happened.
    pub(super) fn note(&mut self) {
        self.happened += 1;
    }

    /// How much has happened, for a sentence that is made now.
    pub(super) fn now(&self) -> u64 {
        self.happened
    }

    /// Sets the timer for the next round, if anything has happened since the last list.
    fn plan(&mut self, outbox: &Outbox, timers: &mut Timers, now_ms: UnixMs) {
        let nothing = self.gangs.is_empty() && self.listed == self.happened;
        if !nothing && !self.waits && outbox.writes_statuses() {
            self.waits = true;
            timers.set(now_ms.saturating_add(REVIEW_INTERVAL_MS), Timer::Review);
        }
    }
}

impl Teller {
    /// Takes in that the timer of reviews has ended.
    pub(crate) fn review_is_due(&mut self) {
        self.review.is_due = true;
    }

    /// Tells some of the refused gangs anew, when it is time.
    pub(crate) fn review(&mut self, view: View<'_>, binder: &mut Binder) {
        if core::mem::take(&mut self.review.is_due) {
            self.review_some(view, binder);
        }
        let Binder { outbox, timers, .. } = binder;
        self.review.plan(outbox, timers, view.now_ms);
    }

    fn review_some(&mut self, view: View<'_>, binder: &mut Binder) {
        self.descriptions.forget_gone(view.state);
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

    /// Lets every refused gang be told anew, and makes the sentences of all gangs, also of gangs
    /// that are too young to be told.
    pub(crate) fn review_all(&mut self, scene: &mut Scene<'_>, outbox: &mut Outbox) {
        for id in scene.state.gangs.ids() {
            self.review_gang(scene.view(), outbox, id);
            self.say(scene, id);
        }
    }

    /// Lets a gang be told anew if its sentence may have become untrue. Returns how many of its
    /// pods wait, at least 1; 0: the gang is not told anew.
    fn review_gang(&mut self, view: View<'_>, outbox: &mut Outbox, id: GangId) -> u64 {
        let said = self.told[id].said.as_ref();
        let is_true = said.is_some_and(|said| said.as_of == self.review.happened);
        if is_true || !view.waiting[id].is_parked() {
            return 0;
        }
        let counts = count(view.state, id, view.now_ms);
        self.report_anew(view, outbox, id, &counts);
        u64::from(counts.waiting).max(1)
    }
}
