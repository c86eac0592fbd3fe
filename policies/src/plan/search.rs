//! The search for the place of one gang, kept from step to step.
//!
//! ```text
//!             the slice ends first               what it read has changed:
//!  ITS TURN ------------------------> SEARCHING ----+  once more, with the
//!   |    ^                            | |  |  ^     |  steps that are left
//!   |    |  it has changed itself     | |  |  +-----+
//!   |    +----------------------------+ |  |
//!   |                                   |  +--> found: its members are bound
//!   +---> gone, or barred: dropped <----+
//!                                       +-----> refused: proved, or its steps are used up
//! ```
//!
//! Between two slices nothing is assumed and all events are applied. The gang keeps its turn: only
//! gangs of which a part is bound go before it. So that it does not keep other gangs waiting for
//! long, all steps beyond the first slice of an attempt come from an [`Allowance`] that all gangs
//! share. One search takes no more than the whole allowance; a search that got less is repeated
//! (see `repeats`).
//!
//! A search that begins anew has only the steps that are left, so a busy cluster makes no search
//! endless. The narrower domains that a gang prefers are searched in the first slice only; the
//! areas in which the gang may be and the choices of its members share the other steps in equal
//! parts. Between two steps nothing of a search is in the state, and losing a search can change no
//! answer but a bounded one.

use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::wait::Wait;
use crate::gangs::{demand, request};
use crate::ids::{ClassId, GangId};
use crate::place::{Memo, ReadSet, SLICE_STEPS};
use crate::plan::Planner;
use crate::queues::QueueId;
use crate::state::ClusterState;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// How many steps searches may take at once beyond the first slices of their gangs: 100 slices,
/// which is 0.2 s in which no other gang has a turn.
pub(crate) const ALLOWANCE_STEPS: u64 = 100 * SLICE_STEPS;

/// How many steps of the allowance come back in a millisecond: a slice every 20 ms. So searches
/// that never come to an end take a tenth of the time, and the whole allowance is back after 2 s.
const ALLOWANCE_STEPS_PER_MS: u64 = SLICE_STEPS / 20;

/// How much searches may still take beyond their first slices.
#[derive(Debug)]
pub(crate) struct Allowance {
    steps: u64,
    as_of_ms: UnixMs,
}

impl Allowance {
    pub(super) fn full() -> Self {
        Self {
            steps: ALLOWANCE_STEPS,
            as_of_ms: 0,
        }
    }

    /// How many steps are left at a time.
    fn left_at(&self, now_ms: UnixMs) -> u64 {
        let passed_ms = now_ms.saturating_sub(self.as_of_ms);
        let back = passed_ms.saturating_mul(ALLOWANCE_STEPS_PER_MS);
        self.steps.saturating_add(back).min(ALLOWANCE_STEPS)
    }

    /// When the whole allowance is back.
    pub(super) fn full_at(&self, now_ms: UnixMs) -> UnixMs {
        let lacking = ALLOWANCE_STEPS - self.left_at(now_ms);
        now_ms.saturating_add(lacking.div_ceil(ALLOWANCE_STEPS_PER_MS))
    }

    /// Gives the whole allowance back at once.
    pub(super) fn refill_whole(&mut self, now_ms: UnixMs) {
        self.steps = ALLOWANCE_STEPS;
        self.as_of_ms = now_ms;
    }

    fn refill(&mut self, now_ms: UnixMs) {
        self.steps = self.left_at(now_ms);
        self.as_of_ms = now_ms;
    }
}

/// A search under way.
#[derive(Debug)]
pub(crate) struct Search {
    gang: GangId,
    pub(crate) memo: Memo,
    /// What was asked and what was read; `None` until the first slice has ended.
    basis: Option<Basis>,
    /// How many more steps the search may take if no other search takes any.
    own: u64,
    /// How many steps the search may take from the slice in hand on, and (`first`) how many of
    /// these are not charged to the allowance.
    granted: u64,
    first: u64,
    /// The search has not begun anew, and other searches left it all the steps that it may take.
    whole: bool,
}

impl Search {
    fn new(gang: GangId) -> Self {
        Self {
            gang,
            memo: Memo::default(),
            basis: None,
            own: SLICE_STEPS + ALLOWANCE_STEPS,
            granted: 0,
            first: SLICE_STEPS,
            whole: true,
        }
    }

    /// Whether the answer of the search follows from the state alone.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }
}

#[derive(Debug)]
struct Basis {
    /// A hash of everything that was asked.
    asked: u64,
    read: ReadSet,
}

impl Planner {
    /// The gang whose search goes on, and its queue. If the gang does not wait for its turn any
    /// more, the search is dropped.
    pub(super) fn searching(&mut self) -> Option<(QueueId, GangId)> {
        let id = self.search.as_ref()?.gang;
        let waiting = &self.waiting[id];
        let place = waiting.place.as_ref();
        match place.filter(|_| waiting.wait == Wait::Turn) {
            Some((queue, _)) => Some((*queue, id)),
            None => {
                self.search = None;
                None
            }
        }
    }

    /// Begins a slice for a gang: of its kept search, if nothing about the gang has changed; else
    /// of a new search.
    pub(super) fn begin_slice(
        &mut self,
        state: &mut ClusterState,
        id: GangId,
        queue: QueueId,
        counts: &Counts,
        now_ms: UnixMs,
    ) -> Search {
        let kept = self.search.take_if(|search| search.gang == id);
        let kept = kept.filter(|search| {
            let known = search.basis.as_ref().map(|basis| basis.asked);
            known == Some(asked(state, id, queue, counts, now_ms))
        });
        let mut search = kept.unwrap_or_else(|| Search::new(id));
        self.allowance.refill(now_ms);
        let limits = request::model_limits(state, queue);
        if let Some(basis) = &mut search.basis
            && !basis.read.is_as_read(state, limits)
        {
            search.memo.forget();
            search.whole = false;
            basis.read = read_set(state, id, queue, now_ms);
        }
        let shared = search.first + self.allowance.steps;
        search.whole &= shared >= search.own;
        search.granted = shared.min(search.own);
        search.memo.begin_slice(search.granted);
        search
    }

    /// Keeps a search for the next step.
    pub(super) fn keep_search(
        &mut self,
        state: &mut ClusterState,
        mut search: Search,
        queue: QueueId,
        counts: &Counts,
        now_ms: UnixMs,
    ) {
        let id = search.gang;
        if search.basis.is_none() {
            search.basis = Some(Basis {
                asked: asked(state, id, queue, counts, now_ms),
                read: read_set(state, id, queue, now_ms),
            });
        }
        self.search = Some(search);
    }

    /// Takes the steps that a slice has used from the allowance; a first slice is free.
    pub(super) fn charge_search(&mut self, search: &mut Search) {
        let used = search.granted.saturating_sub(search.memo.left());
        search.own = search.own.saturating_sub(used.max(search.first));
        let charged = used.saturating_sub(search.first);
        self.allowance.steps = self.allowance.steps.saturating_sub(charged);
        search.first = 0;
    }

    /// How many steps searches may still take beyond their first slices.
    #[cfg(test)]
    pub(crate) fn allowance_left_at(&self, now_ms: UnixMs) -> u64 {
        self.allowance.left_at(now_ms)
    }

    /// Forgets the search of a gang that has gone: its number may be given to another gang.
    pub(super) fn forget_search_of(&mut self, id: GangId) {
        self.search.take_if(|search| search.gang == id);
    }
}

fn read_set(state: &mut ClusterState, id: GangId, queue: QueueId, now_ms: UnixMs) -> ReadSet {
    let pods = demand::waiting_pods(state, id, now_ms).into_iter();
    let mut classes: Vec<ClassId> = pods.map(|pod| state.pods[pod].class).collect();
    classes.sort_unstable();
    classes.dedup();
    let limits = request::model_limits(state, queue);
    ReadSet::read(state, classes, limits)
}

/// A hash of everything about the gang that its place depends on.
fn asked(state: &ClusterState, id: GangId, queue: QueueId, counts: &Counts, now_ms: UnixMs) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    request::fingerprint(state, id, counts).hash(&mut hasher);
    (&state.gangs[id].key, queue).hash(&mut hasher);
    demand::waiting_pods(state, id, now_ms).hash(&mut hasher);
    hasher.finish()
}
