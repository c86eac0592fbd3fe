//! Planning: which gang is tried next, and whether there is a place for it. Everything that
//! proposes changes is here.

mod agenda;
mod attempt;
pub(crate) mod bounds;
mod claims;
mod displaced;
mod line;
pub(crate) mod order;
pub(crate) mod refusal;
mod repeats;
pub(crate) mod reserve;
mod search;
pub(crate) mod turn;
pub(crate) mod victims;
pub(crate) mod waiting;

use crate::event::Kind;
use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Wait;
use crate::ids::{ById, GangId};
use crate::queues::QueueId;
use crate::settings::{Queueing, Settings};
use crate::state::ClusterState;
use agenda::Agenda;
use claims::Claims;
use displaced::Displaced;
use repeats::Repeats;
use reserve::Reservations;
use reserve::ends::EndedRun;
use search::{Allowance, Search};
use waiting::{ClaimState, Waiting};

/// How much work one step does, in units of about ten nanoseconds, before it lets events in again.
pub(crate) const SLICE_WORK: u64 = 200_000;

/// Whose turn it is, and what each refused gang waits for.
#[derive(Debug)]
pub(crate) struct Planner {
    agenda: Agenda,
    /// What each gang waits for, and its place in the line of its queue.
    waiting: ById<GangId, Waiting>,
    /// The search that is not finished, if there is one.
    search: Option<Search>,
    allowance: Allowance,
    repeats: Repeats,
    claims: Claims,
    displaced: Displaced,
    reservations: Reservations,
    /// A parked gang was woken since the turns last ended.
    has_woken: bool,
}

impl Planner {
    pub(crate) fn new(queueing: Queueing) -> Self {
        Self {
            agenda: Agenda::new(queueing),
            waiting: ById::default(),
            search: None,
            allowance: Allowance::full(),
            repeats: Repeats::default(),
            claims: Claims::default(),
            displaced: Displaced::default(),
            reservations: Reservations::default(),
            has_woken: false,
        }
    }

    /// Whether a parked gang was woken after the turns had ended, so that it has its turn in the
    /// next step only.
    pub(crate) fn has_woken(&self) -> bool {
        self.has_woken
    }

    /// What each gang waits for, and its place in the line of its queue.
    pub(crate) fn waiting(&self) -> &ById<GangId, Waiting> {
        &self.waiting
    }

    /// Takes in that objects of a kind have come, changed or gone.
    pub(crate) fn note_objects(&mut self, kind: Kind) {
        if kind != Kind::Pod {
            self.claims.note();
        }
        match kind {
            Kind::Node => self.reservations.note_nodes(),
            Kind::Topology => self.reservations.doubt(),
            _ => {}
        }
        self.disturb_claims();
    }

    /// Takes in that a pod of another scheduler has come, changed or gone.
    pub(crate) fn note_foreign_pod(&mut self) {
        self.reservations.note_nodes();
    }

    /// Takes in that everything of a kind has been listed, or that queues have changed, so that
    /// promises may not be kept.
    pub(crate) fn doubt_promises(&mut self) {
        self.reservations.doubt();
    }

    /// Takes in how many members of a gang have places, and how long the gang is to run. The run of
    /// a gang that has just ended well is forgotten: [`Self::ended_run`] comes before.
    /// `is_complete`: the minimum of the gang has had places.
    pub(crate) fn follow_run(
        &mut self,
        state: &ClusterState,
        id: GangId,
        counts: &Counts,
        is_complete: bool,
        now_ms: UnixMs,
    ) {
        self.reservations
            .follow(state, id, counts, is_complete, now_ms);
    }

    /// The run of a gang that has just ended well.
    pub(crate) fn ended_run(
        &self,
        id: GangId,
        counts: &Counts,
        now_ms: UnixMs,
    ) -> Option<EndedRun> {
        self.reservations.ended(id, counts, now_ms)
    }

    /// When a promised start is due, or a gang is overdue; `None`: nothing was promised.
    pub(crate) fn promises_deadline(&self, now_ms: UnixMs) -> Option<UnixMs> {
        self.reservations.deadline(now_ms)
    }

    /// Whether promises are to be looked at once more now.
    pub(crate) fn keeps_promises_on(&self, now_ms: UnixMs) -> bool {
        self.reservations.is_unfinished(now_ms)
    }

    /// The gangs with promises and when each is to start, in the order of promises.
    pub(crate) fn promised_starts(&self) -> impl Iterator<Item = (GangId, UnixMs)> + '_ {
        self.reservations.promised_starts()
    }

    /// The gangs that would fit now, but for promises to others.
    pub(crate) fn gangs_behind_promises(&self) -> impl Iterator<Item = GangId> + '_ {
        self.reservations.behind()
    }

    /// Takes in that members of a gang, which has left its line, were given places. Returns the
    /// time at which it was first promised to start, if it was.
    pub(crate) fn note_start(&mut self, id: GangId, now_ms: UnixMs) -> Option<UnixMs> {
        self.disturb_claims();
        self.displaced.forget(id);
        let waiting = &mut self.waiting[id];
        waiting.wait = Wait::Nothing;
        waiting.claim.start(now_ms);
        waiting.promised_ms = None;
        waiting.first_promised_ms.take()
    }

    /// Lets a gang leave a queue that is about to go.
    pub(crate) fn leave_queue(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
        queue: QueueId,
    ) {
        let place = self.waiting[id].place.as_ref();
        if place.is_some_and(|(stands_in, _)| *stands_in == queue) {
            self.leave_agenda(state, settings, progress, id);
            self.waiting[id].wait = Wait::Nothing;
        }
        self.displaced.forget(id);
        self.waiting[id].claim = ClaimState::default();
    }

    /// Forgets a gang that is gone: its number may be given to another gang.
    pub(crate) fn forget_gang(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
        now_ms: UnixMs,
    ) {
        self.forget_search_of(id);
        self.forget_repeat(id);
        self.leave_agenda(state, settings, progress, id);
        self.displaced.forget(id);
        self.reservations.forget(id, now_ms);
        self.waiting.forget(id);
    }

    /// Plans no more, because another process leads: searches end, and these gangs, for which
    /// victims were to be evicted, wait for none.
    pub(crate) fn stand_down(&mut self, takings: impl IntoIterator<Item = GangId>) {
        self.search = None;
        self.displaced.clear();
        for gang in takings {
            self.waiting[gang].claim.awaited = None;
        }
    }

    /// Forgets what is known by queue, because queues have other numbers now: no gang has a place.
    pub(crate) fn forget_queues(&mut self, queueing: Queueing) {
        self.agenda = Agenda::new(queueing);
        self.claims.forget_queues();
        self.displaced.clear();
        self.reservations.forget_promises();
        for waiting in self.waiting.made_mut() {
            waiting.place = None;
            waiting.wait = Wait::Nothing;
        }
    }
}
