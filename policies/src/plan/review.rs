//! Keeps true what refused gangs were told.
//!
//! A refused gang is tried again only when something may help it (see `agenda`), but what its
//! refusal says can become untrue by other things: nodes that go, limits that fall, others that
//! take what was free. So refused gangs are tried again in turn, a few a second, while anything has
//! happened since they were refused. It changes what is told, never who starts: a gang that fits
//! does not wait for this.
//!
//! ```text
//!   anything happens        REVIEW_INTERVAL_MS        none is left
//!  +----------+  +------------------+  +-----------+  +----------+
//!  |  rests   |->| list those whose |->| some more |->|  rests   |
//!  |          |  | refusal is older |  |  are tried|  |          |
//!  +----------+  +------------------+  +-----------+  +----------+
//! ```

use crate::bind::timers::Timer;
use crate::bind::timers::Timers;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Wait, Wake};
use crate::gangs::wanted;
use crate::ids::ById;
use crate::ids::GangId;
use crate::place;
use crate::place::Request;
use crate::plan::Planner;
use crate::plan::bounds;
use crate::queues::QueueId;
use crate::settings::Settings;
use crate::state::ClusterState;
use alloc::vec::Vec;

/// How often refused gangs are reviewed.
const REVIEW_INTERVAL_MS: u64 = 1_000;

/// For how many waiting pods something new may be told at each time. One gang of more takes as many
/// times: a condition is written to each pod.
const PODS_REVIEWED: u64 = 16;

/// Which refusals are looked at again.
#[derive(Debug, Default)]
pub(crate) struct Review {
    /// Rises with everything that happens.
    happened: u64,
    /// What had happened when gangs were listed last.
    listed: u64,
    /// Those that are still to be looked at, the last first.
    gangs: Vec<GangId>,
    /// A timer runs.
    waits: bool,
}

impl Review {
    /// Something has happened.
    pub(crate) fn note(&mut self) {
        self.happened += 1;
    }

    /// As of when a refusal is.
    pub(crate) fn now(&self) -> u64 {
        self.happened
    }
}

impl Planner {
    /// Sees to it that the refusals are reviewed, if anything has happened.
    pub(crate) fn plan_review(
        &mut self,
        settings: &Settings,
        timers: &mut Timers,
        now_ms: UnixMs,
        stopping: bool,
    ) {
        let review = &mut self.review;
        let nothing = review.gangs.is_empty() && review.listed == review.happened;
        if nothing || review.waits || stopping || settings.in_flight.statuses == 0 {
            return;
        }
        review.waits = true;
        let at_ms = now_ms.saturating_add(REVIEW_INTERVAL_MS);
        timers.set(at_ms, Timer::Review);
    }

    /// It is time to try some of the refused gangs again.
    pub(crate) fn review_due(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        timers: &mut Timers,
        now_ms: UnixMs,
    ) {
        self.list_for_review(state);
        let mut pods = 0;
        while pods < PODS_REVIEWED
            && let Some(id) = self.review.gangs.pop()
        {
            if self.review_gang(state, settings, progress, id, now_ms) {
                pods += u64::from(count(state, id, now_ms).waiting).max(1);
            }
        }
        self.review.waits = !self.review.gangs.is_empty();
        if self.review.waits {
            let pause_ms = REVIEW_INTERVAL_MS * pods.div_ceil(PODS_REVIEWED);
            let at_ms = now_ms.saturating_add(pause_ms);
            timers.set(at_ms, Timer::Review);
        }
    }

    /// Lets every refused gang be tried again whose refusal may have become untrue.
    pub(crate) fn review_all(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        now_ms: UnixMs,
    ) {
        self.review.gangs.clear();
        self.list_for_review(state);
        for id in core::mem::take(&mut self.review.gangs) {
            self.review_gang(state, settings, progress, id, now_ms);
        }
    }

    fn list_for_review(&mut self, state: &ClusterState) {
        let review = &mut self.review;
        if review.gangs.is_empty() && review.listed != review.happened {
            review.listed = review.happened;
            let refused = |id: &GangId| self.waiting[*id].is_parked();
            let ids = state.gangs.ids().into_iter();
            review.gangs = ids.filter(refused).collect();
            review.gangs.reverse();
        }
    }

    /// Lets a gang be tried again if its refusal may say something else. What a search has found
    /// is not searched again: only whether the queue has room, and whether counting refuses it by
    /// now.
    fn review_gang(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
        now_ms: UnixMs,
    ) -> bool {
        let waiting = &self.waiting[id];
        let (Wait::Room(verdict, wake), Some((queue, _))) = (&waiting.wait, &waiting.place) else {
            return false;
        };
        if waiting.judged == self.review.now() {
            return false;
        }
        if matches!(wake, Wake::AnyRoom(..)) && !verdict.counted {
            let of_queue = verdict.reason.is_of_queue();
            let queue = *queue;
            let as_before =
                bounds::excess(state, settings, progress, id, queue, now_ms).is_some() == of_queue;
            if as_before
                && (of_queue || !counting_refuses(state, settings, progress, id, queue, now_ms))
            {
                return false;
            }
        }
        self.wake(state, settings, progress, id);
        true
    }
}

/// Whether no area has room for enough of the members even where each shape is counted alone.
fn counting_refuses(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    id: GangId,
    queue: QueueId,
    now_ms: UnixMs,
) -> bool {
    let requests = wanted::requests(state, settings, progress, id, queue, now_ms);
    let refused = |request: &Request| place::counting_refuses(state, request);
    !requests.is_empty() && requests.iter().all(refused)
}
