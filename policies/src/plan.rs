//! Whether there is a place for a gang: everything that proposes changes.

pub(crate) mod agenda;
pub(crate) mod attempt;
pub(crate) mod bounds;
pub(crate) mod cut;
pub(crate) mod line;
pub(crate) mod order;
pub(crate) mod refusal;
pub(crate) mod search;
pub(crate) mod selection;
pub(crate) mod sub_groups;
pub(crate) mod waiting;

use crate::ids::{ById, GangId};
use crate::settings::Queueing;
use agenda::Agenda;
use cut::Cut;
use search::{Allowance, Search};
use waiting::Waiting;

/// Whose turn it is, and what each refused gang waits for.
#[derive(Debug)]
pub(crate) struct Planner {
    pub(crate) agenda: Agenda,
    /// Where each gang stands that waits.
    pub(crate) waiting: ById<GangId, Waiting>,
    /// The search that is not finished, if there is one.
    pub(crate) search: Option<Search>,
    pub(crate) allowance: Allowance,
    pub(crate) cut: Cut,
    /// The gang that is being handled.
    pub(crate) in_hand: Option<GangId>,
}

impl Planner {
    pub(crate) fn new(queueing: Queueing) -> Self {
        Self {
            agenda: Agenda::new(queueing),
            waiting: ById::default(),
            search: None,
            allowance: Allowance::full(),
            cut: Cut::default(),
            in_hand: None,
        }
    }
}
