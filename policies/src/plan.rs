//! Planning: which gang is tried next, and whether there is a place for it. Everything that
//! proposes changes is here.

pub(crate) mod agenda;
pub(crate) mod attempt;
pub(crate) mod bounds;
pub(crate) mod claims;
pub(crate) mod line;
pub(crate) mod order;
pub(crate) mod refusal;
pub(crate) mod repeats;
pub(crate) mod reserve;
pub(crate) mod search;
pub(crate) mod turn;
pub(crate) mod victims;
pub(crate) mod waiting;

use crate::gangs::wait::Wait;
use crate::ids::{ById, GangId};
use crate::settings::Queueing;
use agenda::Agenda;
use claims::Claims;
use repeats::Repeats;
use reserve::Reservations;
use search::{Allowance, Search};
use waiting::Waiting;

/// Whose turn it is, and what each refused gang waits for.
#[derive(Debug)]
pub(crate) struct Planner {
    pub(crate) agenda: Agenda,
    /// What each gang waits for, and its place in the line of its queue.
    pub(crate) waiting: ById<GangId, Waiting>,
    /// The search that is not finished, if there is one.
    pub(crate) search: Option<Search>,
    pub(crate) allowance: Allowance,
    pub(crate) repeats: Repeats,
    pub(crate) claims: Claims,
    pub(crate) reservations: Reservations,
    /// The gang that is being assessed or tried.
    pub(crate) in_hand: Option<GangId>,
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
            reservations: Reservations::default(),
            in_hand: None,
        }
    }

    /// Plans no more, because another process leads: searches end, and these gangs, for which
    /// victims were to be evicted, wait for none.
    pub(crate) fn stand_down(&mut self, takings: impl IntoIterator<Item = GangId>) {
        self.search = None;
        for gang in takings {
            self.waiting[gang].claim.awaited = None;
        }
    }

    /// Forgets what is known by queue, because queues have other numbers now: no gang has a place.
    pub(crate) fn forget_queues(&mut self, queueing: Queueing) {
        self.agenda = Agenda::new(queueing);
        self.claims.forget_queues();
        self.reservations.forget_promises();
        for waiting in self.waiting.made_mut() {
            waiting.place = None;
            waiting.wait = Wait::Nothing;
        }
    }
}
