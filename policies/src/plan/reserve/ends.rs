//! When gangs that run are expected to end.
//!
//! ```text
//!  NOT RUNNING --its minimum has places--> EXPECTED --the time passes--> OVERDUE --+
//!       ^                                     |                            |  ^    |
//!       +-------- no member has a place ------+----------------------------+  +----+
//!                                             expected 1, 2, 4 ... minutes later
//! ```
//!
//! A gang of whose runtime nothing is known is expected never to end. What is learned while a gang
//! runs changes nothing for it.

use crate::facts::{RuntimeSource, UnixMs};
use crate::gangs::counts::{Counts, began_ms};
use crate::ids::{ById, GangId, Id};
use crate::state::ClusterState;
use crate::state::runtimes::Expectation;
use alloc::collections::{BTreeSet, btree_set};
use alloc::vec::Vec;
use core::iter::Copied;

/// How long after the time at which a gang was expected to end it is expected for the first time
/// again; each time after that is twice as far away (Tsafrir, Etsion, Feitelson, TPDS 2007).
const OVERRUN_MS: u64 = 60_000;
/// How often that is doubled, at most: half a year.
const DOUBLINGS_MAX: u32 = 18;

/// The expected ends of all gangs that run.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    runs: ById<GangId, Option<Run>>,
    by_time: BTreeSet<(UnixMs, GangId)>,
}

/// A gang that runs.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// When the minimum had places.
    began_ms: UnixMs,
    /// How long the gang says that it runs.
    said_ms: Option<u64>,
    /// How long the gang was expected to run when it began, or when it last said something else.
    expectation: Option<Expectation>,
    /// When the gang is expected to end; `None`: never.
    end_ms: Option<UnixMs>,
    /// How often the gang was expected to have ended and had not.
    overruns: u32,
    /// How many members have places.
    places: u32,
}

/// A gang that has ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedRun {
    pub(crate) runtime_ms: u64,
    pub(crate) expectation: Option<Expectation>,
}

/// News of the room of a gang that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing has changed.
    Nothing,
    /// The gang has begun to run.
    Begun,
    /// Room is there when it was expected.
    OnTime,
    /// Members have left, or are leaving, earlier than expected.
    Left,
    /// Room will be there earlier than expected.
    Earlier,
    /// Room will be there later than expected.
    Later,
}

impl Ends {
    /// Takes in what has become of the members of a gang, and how long it is to run.
    /// `is_complete`: its minimum has had places, also if members are lost since, which another
    /// process may have seen.
    pub(crate) fn follow(
        &mut self,
        state: &ClusterState,
        id: GangId,
        counts: &Counts,
        is_complete: bool,
        now_ms: UnixMs,
    ) -> News {
        let places = counts.bound + counts.assumed;
        let said_ms = state.gangs[id].spec.expected_runtime_ms;
        let Some(run) = self.runs[id] else {
            if places > 0 && (counts.needed == 0 || is_complete) {
                let began_ms = began_ms(state, id, counts, now_ms);
                let expectation = state.expectation(id);
                let run = Run::new(began_ms, (said_ms, expectation), places, now_ms);
                self.note(id, run);
                return News::Begun;
            }
            return News::Nothing;
        };
        if places == 0 {
            return self.forget(id, now_ms);
        }
        if run.said_ms != said_ms {
            let expectation = state.expectation(id);
            let now = Run::new(run.began_ms, (said_ms, expectation), places, now_ms);
            self.note(id, now);
            let end_ms = |run: Run| run.end_ms.unwrap_or(UnixMs::MAX);
            return match end_ms(now) < end_ms(run) {
                true => News::Earlier,
                false => News::Later,
            };
        }
        if run.places != places {
            self.note(id, Run { places, ..run });
        }
        match places < run.places {
            true => News::Left,
            false => News::Nothing,
        }
    }

    /// Takes in that no member of a gang has a place any more.
    pub(crate) fn forget(&mut self, id: GangId, now_ms: UnixMs) -> News {
        let Some(run) = self.runs[id].take() else {
            return News::Nothing;
        };
        let Some(end_ms) = run.end_ms else {
            return News::Left;
        };
        self.by_time.remove(&(end_ms, id));
        match end_ms > now_ms {
            true => News::Left,
            false => News::OnTime,
        }
    }

    fn note(&mut self, id: GangId, run: Run) {
        let before = self.runs[id].replace(run);
        if let Some(end_ms) = before.and_then(|before| before.end_ms) {
            self.by_time.remove(&(end_ms, id));
        }
        self.by_time.extend(run.end_ms.map(|end_ms| (end_ms, id)));
    }

    /// Expects gangs later that were to have ended before now. Returns whether there were any.
    pub(crate) fn take_overdue(&mut self, now_ms: UnixMs) -> bool {
        let overdue = self.by_time.range(..(now_ms, GangId::new(0)));
        let overdue: Vec<GangId> = overdue.map(|(_, gang)| *gang).collect();
        for gang in &overdue {
            if let Some(mut run) = self.runs[*gang] {
                // tests plant bugs here: end-after-an-overrun
                run.overrun(now_ms);
                self.note(*gang, run);
            }
        }
        !overdue.is_empty()
    }

    /// When the next gang is to have ended.
    pub(crate) fn next_ms(&self) -> Option<UnixMs> {
        self.by_time.first().map(|(end_ms, _)| *end_ms)
    }

    /// The gangs that are expected to end, in the order of time.
    pub(crate) fn in_order(&self) -> Copied<btree_set::Iter<'_, (UnixMs, GangId)>> {
        self.by_time.iter().copied()
    }

    /// When a gang that runs is expected to end; `None`: never.
    pub(crate) fn of(&self, id: GangId) -> Option<UnixMs> {
        self.runs[id]?.end_ms
    }

    /// Why a gang that runs is expected to end when it is, and whether it has overrun its time.
    pub(crate) fn source_of(&self, id: GangId) -> Option<(RuntimeSource, bool)> {
        let run = self.runs[id]?;
        Some((run.expectation?.source, run.overruns > 0))
    }

    /// The run of a gang that has just ended well; `None`: it has not, or was not seen to run.
    pub(crate) fn ended(&self, id: GangId, counts: &Counts, now_ms: UnixMs) -> Option<EndedRun> {
        let run = self.runs[id]?;
        let has_ended_well = counts.have_ended() && counts.failed == 0;
        has_ended_well.then_some(EndedRun {
            runtime_ms: now_ms.saturating_sub(run.began_ms),
            expectation: run.expectation,
        })
    }
}

impl Run {
    fn new(
        began_ms: UnixMs,
        (said_ms, expectation): (Option<u64>, Option<Expectation>),
        places: u32,
        now_ms: UnixMs,
    ) -> Self {
        let mut run = Self {
            began_ms,
            said_ms,
            expectation,
            end_ms: expectation.map(|it| began_ms.saturating_add(it.runtime_ms)),
            overruns: 0,
            places,
        };
        run.overrun(now_ms);
        run
    }

    /// Moves an end that has passed to the first expected time that has not.
    fn overrun(&mut self, now_ms: UnixMs) {
        while let Some(end_ms) = self.end_ms.filter(|end_ms| *end_ms < now_ms) {
            let later_ms = OVERRUN_MS << self.overruns.min(DOUBLINGS_MAX);
            self.end_ms = Some(end_ms.saturating_add(later_ms));
            self.overruns = self.overruns.saturating_add(1);
        }
    }
}
