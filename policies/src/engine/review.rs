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

use crate::engine::Engine;
use crate::engine::timers::Timer;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::wait::{Wait, Wake};
use crate::gangs::{request, wanted};
use crate::ids::GangId;
use crate::place::{Request, counting_refuses};
use crate::plan::bounds;
use crate::queues::QueueId;
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

impl Engine {
    /// Sees to it that the refusals are reviewed, if anything has happened.
    pub(crate) fn plan_review(&mut self, now_ms: UnixMs) {
        let review = &mut self.review;
        let nothing = review.gangs.is_empty() && review.listed == review.happened;
        if nothing || review.waits || self.stopping || !self.outbox.writes_statuses() {
            return;
        }
        review.waits = true;
        let at_ms = now_ms.saturating_add(REVIEW_INTERVAL_MS);
        self.timers.set(at_ms, Timer::Review);
    }

    /// It is time to try some of the refused gangs again.
    pub(crate) fn review_due(&mut self, now_ms: UnixMs) {
        self.list_for_review();
        let mut pods = 0;
        while pods < PODS_REVIEWED
            && let Some(id) = self.review.gangs.pop()
        {
            if self.review_gang(id) {
                pods += u64::from(count(&self.state, id, now_ms).waiting).max(1);
            }
        }
        self.review.waits = !self.review.gangs.is_empty();
        if self.review.waits {
            let pause_ms = REVIEW_INTERVAL_MS * pods.div_ceil(PODS_REVIEWED);
            let at_ms = now_ms.saturating_add(pause_ms);
            self.timers.set(at_ms, Timer::Review);
        }
    }

    /// Tries all refused gangs again whose refusal may have become untrue, in the next steps, so
    /// that what is told of them is what is true now. For shells that print one state.
    pub fn review(&mut self) {
        self.review.gangs.clear();
        self.list_for_review();
        for id in core::mem::take(&mut self.review.gangs) {
            self.review_gang(id);
        }
        self.unfinished = true;
    }

    fn list_for_review(&mut self) {
        let review = &mut self.review;
        if review.gangs.is_empty() && review.listed != review.happened {
            review.listed = review.happened;
            let refused = |id: &GangId| self.waiting[*id].is_parked();
            let ids = self.state.gangs.ids().into_iter();
            review.gangs = ids.filter(refused).collect();
            review.gangs.reverse();
        }
    }

    /// Whether no area has room for enough of the members even where each shape is counted alone.
    fn counting_refuses(&mut self, id: GangId, queue: QueueId) -> bool {
        let requests: Vec<Request> = if self.state.gangs[id].tree().is_some() {
            let trees = wanted::trees(
                &self.state,
                &self.settings,
                &self.progress,
                id,
                queue,
                self.now_ms,
            );
            let all = trees
                .iter()
                .map(|tree| tree.flat(tree.pods_below(0), tree.fewest(0)));
            all.collect()
        } else {
            let counts = count(&self.state, id, self.now_ms);
            Vec::from([request::request_of_waiting(
                &self.state,
                &self.settings,
                id,
                queue,
                &counts,
                self.now_ms,
            )])
        };
        let refused = |request: &Request| counting_refuses(&mut self.state, request);
        !requests.is_empty() && requests.iter().all(refused)
    }

    /// Lets a gang be tried again if its refusal may say something else. What a search has found
    /// is not searched again: only whether the queue has room, and whether counting refuses it by
    /// now.
    fn review_gang(&mut self, id: GangId) -> bool {
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
            let as_before = bounds::over(
                &self.state,
                &self.settings,
                &self.progress,
                id,
                queue,
                self.now_ms,
            )
            .is_some()
                == of_queue;
            if as_before && (of_queue || !self.counting_refuses(id, queue)) {
                return false;
            }
        }
        self.wake(id);
        true
    }
}
