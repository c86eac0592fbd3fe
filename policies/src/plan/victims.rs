//! Which gangs would have to leave, so that a gang that waits can start.
//!
//! A victim is a gang as a whole, or one member of its surplus. The search looks for the cheapest
//! set of victims that the rules allow, and says how sure it is: *optimal*, *feasible* with the
//! bound that was proved, or *impossible*.
//!
//! ```text
//! nothing leaves: room that comes free anyway
//!   no -> consolidate: gangs that run move       } the first of these that is possible;
//!         reclaim: from queues over their bounds } moving is a restart, too, so it comes first
//!         preempt: lower priority of one queue   } only if it breaks no more gangs
//!   no -> the union of their victims
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `units` | who may be evicted, and for what |
//! | `cost` | what that costs |
//! | `node_costs`, `bound` | the least that any plan costs, by counting room |
//! | `sums` | a proof without a search: all room together is too little |
//! | `branch` | the search |
//! | `what_if`, `rules` | one set, tried in a transaction, with all rules |

mod bound;
mod branch;
mod cost;
mod node_costs;
mod rules;
mod sums;
mod units;
mod what_if;

pub(crate) use cost::Cost;

use crate::facts::UnixMs;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Refused;
use crate::gangs::wanted;
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::queues::{ClaimKind, QueueId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::state::pod::Stage;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bound::Rooms;
use branch::{Search, Searched};
use units::{Claimant, May, Unit, Units};
use what_if::WhatIf;

/// How much work it is to look at one unit, in units of about ten nanoseconds.
const UNIT_WORK: u64 = 100;

/// How a gang gets its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nobody is evicted: the room is free, or is being left.
    Free,
    /// Gangs move: they are evicted, and have another place.
    Consolidate,
    /// Queues give what they hold beyond their bounds of this kind.
    Reclaim(ClaimKind),
    /// Gangs of lower priority of the claimant's queue leave.
    Preempt,
    /// Several of these together.
    Mixed(ClaimKind),
}

impl Action {
    /// What the queue of the claimant claims from others; `None`: nothing.
    pub(crate) fn claims(self) -> Option<ClaimKind> {
        match self {
            Self::Reclaim(kind) | Self::Mixed(kind) => Some(kind),
            Self::Free | Self::Consolidate | Self::Preempt => None,
        }
    }
}

/// Why a set of victims is no plan, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is too little room for the claimant.
    Room(Refused),
    /// Nobody may be evicted for the claimant.
    Nobody,
    /// Counting shows that there is too little room even without everybody who may be evicted.
    TooLittle,
    /// A disruption budget allows fewer evictions.
    Budget,
    /// A victim is not needed for room or a limit.
    Unneeded,
    /// This queue would give what is within its bound.
    Gives(QueueId),
    /// This queue of the claimant would hold more than its bound.
    Claims(QueueId),
    /// This queue of the claimant would grow beyond its fair share.
    Outgrows(QueueId),
    /// A victim has to have another place, and there is none.
    NoOtherPlace,
    /// More GPUs would move than the claimant is worth.
    MovesTooMuch,
    /// Pods of the claimant say `preemptionPolicy: Never`.
    Never,
}

/// A way to make room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) action: Action,
    /// The pods to be evicted, by name.
    pub(crate) evict: Vec<PodId>,
    /// Where the claimant's members would be.
    pub(crate) places: Vec<(PodId, NodeId)>,
    /// Where victims would be placed again.
    pub(crate) moved: Vec<(PodId, NodeId)>,
    pub(crate) cost: Cost,
    /// No plan of this action costs less; equal to `cost`: the plan is optimal.
    pub(crate) bound: Cost,
}

impl Plan {
    /// The plan that the last leader was carrying out, as far as nominations tell it: nobody is
    /// evicted for it any more.
    pub(crate) fn of_nominations(places: Vec<(PodId, NodeId)>) -> Self {
        Self {
            action: Action::Free,
            evict: Vec::new(),
            places,
            moved: Vec::new(),
            cost: Cost::default(),
            bound: Cost::default(),
        }
    }

    pub(crate) fn is_optimal(&self) -> bool {
        self.bound == self.cost
    }
}

/// There is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoPlan {
    pub(crate) why: Why,
    /// It is certain that there is none.
    pub(crate) is_proved: bool,
    /// When the next gang has run for long enough to be evicted.
    pub(crate) next_ms: Option<UnixMs>,
}

/// The plan that would be made for a gang that waits for room.
///
/// Changes nothing, but works out the fair shares anew where they are not current. `later`: holds
/// of gangs that come after this one, which cost nothing to take. `work`: grows by the work done,
/// in units of about ten nanoseconds.
///
/// # Errors
/// Why there is no plan.
pub(crate) fn find(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    (gang, queue): (GangId, QueueId),
    later: &[Holder],
    now_ms: UnixMs,
    work: &mut u64,
) -> Result<Plan, NoPlan> {
    state.queues.divide_all();
    let counts = crate::gangs::counts::count(state, gang, now_ms);
    let claimant = Claimant {
        gang,
        queue,
        is_surplus: counts.needed == 0,
    };
    let mut what_if = WhatIf::begin(state, settings, progress, claimant, later, now_ms);
    let found = Planning {
        progress,
        settings,
        claimant,
    }
    .find(&mut what_if);
    *work = work.saturating_add(what_if.finish());
    found
}

struct Planning<'a> {
    progress: &'a ById<GangId, Progress>,
    settings: &'a Settings,
    claimant: Claimant,
}

impl Planning<'_> {
    fn find(&self, what_if: &mut WhatIf<'_>) -> Result<Plan, NoPlan> {
        let has_no_room = match what_if.try_set(&[], &[], Action::Free) {
            Ok(end) => {
                return Ok(Plan {
                    action: Action::Free,
                    evict: Vec::new(),
                    places: end.places,
                    moved: Vec::new(),
                    cost: Cost::default(),
                    bound: Cost::default(),
                });
            }
            Err(failure) => failure.is_proved,
        };
        if never_preempts(what_if.state, self.claimant.gang) {
            return Err(NoPlan {
                why: Why::Never,
                is_proved: has_no_room,
                next_ms: None,
            });
        }
        let units = Units::collect(what_if.state, self.progress, self.claimant, what_if.now_ms);
        what_if.work += UNIT_WORK * units.all.len() as u64;
        let moved = self.search(what_if, &units, Action::Consolidate);
        let taken = self
            .reclaim(what_if, &units, Action::Reclaim)
            .or_else(|_| self.search(what_if, &units, Action::Preempt));
        match (moved, taken) {
            (Ok(moved), Ok(taken)) if moved.cost.broken() <= taken.cost.broken() => Ok(moved),
            (_, Ok(taken)) => Ok(taken),
            (Ok(moved), Err(_)) => Ok(moved),
            (Err(no_move), Err(no_taking)) => {
                let mixed = self.reclaim(what_if, &units, Action::Mixed);
                let is_proved = has_no_room && no_move.is_proved && no_taking.is_proved;
                mixed.map_err(|no_mix| NoPlan {
                    is_proved: no_mix.is_proved && is_proved,
                    ..no_mix
                })
            }
        }
    }

    /// The cheaper plan of those for the two kinds of claims.
    fn reclaim(
        &self,
        what_if: &mut WhatIf<'_>,
        units: &Units,
        action: fn(ClaimKind) -> Action,
    ) -> Result<Plan, NoPlan> {
        let quota = self.search(what_if, units, action(ClaimKind::Quota));
        // A queue that is over its fair share is over its quota, too, so no plan of the other kind
        // costs less.
        if quota.as_ref().is_ok_and(Plan::is_optimal) {
            return quota;
        }
        let share = self.search(what_if, units, action(ClaimKind::FairShare));
        match (quota, share) {
            (Ok(quota), Ok(share)) if share.cost < quota.cost => Ok(share),
            (Ok(quota), _) => Ok(quota),
            (Err(_), Ok(share)) => Ok(share),
            (Err(quota), Err(share)) => Err(NoPlan {
                is_proved: quota.is_proved && share.is_proved,
                ..share
            }),
        }
    }

    fn search(
        &self,
        what_if: &mut WhatIf<'_>,
        units: &Units,
        action: Action,
    ) -> Result<Plan, NoPlan> {
        let no_plan = |why, is_proved| NoPlan {
            why,
            is_proved,
            next_ms: units.next_ms,
        };
        let chosen = self.chosen(what_if, units, action);
        if chosen.is_empty() {
            return Err(no_plan(Why::Nobody, true));
        }
        let request = {
            let claimant = self.claimant;
            let (gang, queue) = (claimant.gang, claimant.queue);
            let state = &what_if.state;
            wanted::requests(
                state,
                self.settings,
                self.progress,
                gang,
                queue,
                what_if.now_ms,
            )
        };
        let [request] = request.as_slice() else {
            return Err(no_plan(Why::TooLittle, false));
        };
        if sums::lacks(what_if.state, request, &chosen, action) {
            return Err(no_plan(Why::TooLittle, true));
        }
        let rooms = Rooms::read(what_if.state, request, &chosen, units.zero.clone());
        match Search::new(&chosen, &rooms, action).run(what_if) {
            Searched::Nothing { why, is_proved } => Err(no_plan(why, is_proved)),
            Searched::Found(best) => {
                let mut evict: Vec<PodId> = Vec::new();
                for unit in &best.set {
                    evict.extend(chosen[*unit].pods.iter().map(|(pod, _)| *pod));
                }
                let state = &what_if.state;
                let name = |pod: &PodId| {
                    let pod = &state.pods[*pod];
                    (pod.namespace.clone(), pod.name.clone())
                };
                evict.sort_by_cached_key(name);
                Ok(Plan {
                    action,
                    evict,
                    places: best.end.places,
                    moved: best.end.moved,
                    cost: best.cost,
                    bound: best.bound,
                })
            }
        }
    }

    /// The units that may leave for an action.
    fn chosen(&self, what_if: &WhatIf<'_>, units: &Units, action: Action) -> Vec<Unit> {
        // What leaves the claimant's own queue, too, may bring that queue under its bound.
        let may_claim = |kind: &_| matches!(action, Action::Mixed(_)) || what_if.may_claim(*kind);
        let kind = action.claims().filter(may_claim);
        let mut known = BTreeMap::new();
        let flags: Vec<May> = units
            .all
            .iter()
            .map(|unit| {
                let gives = kind.is_some_and(|kind| what_if.may_give(unit, kind, &mut known));
                May {
                    be_reclaimed: unit.may.be_reclaimed && gives,
                    be_moved_for_more: what_if.moves_for_more(unit),
                    ..unit.may
                }
            })
            .collect();
        let may = |unit: usize| {
            let flags = &flags[unit];
            match action {
                Action::Free => false,
                Action::Consolidate => flags.be_moved,
                Action::Reclaim(_) => flags.be_reclaimed,
                Action::Preempt => flags.be_preempted,
                Action::Mixed(_) => flags.be_preempted || flags.be_reclaimed || flags.be_moved,
            }
        };
        // A core leaves with its surplus only.
        let all = &units.all;
        let goes = |index: usize| {
            may(index) && (!all[index].is_core || all[index].kin.iter().all(|kin| may(*kin)))
        };
        let mut number = alloc::vec![None; all.len()];
        let mut chosen: Vec<Unit> = Vec::new();
        for (index, unit) in all.iter().enumerate().filter(|(index, _)| goes(*index)) {
            number[index] = Some(chosen.len());
            chosen.push(Unit {
                may: flags[index],
                ..unit.clone()
            });
        }
        for unit in &mut chosen {
            unit.kin = unit.kin.iter().filter_map(|kin| number[*kin]).collect();
        }
        chosen
    }
}

/// Whether pods of a gang that wait say that nobody is to be evicted for them.
fn never_preempts(state: &ClusterState, gang: GangId) -> bool {
    let members = state.gangs[gang].members.iter();
    let mut waiting = members.filter(|pod| state.pods[**pod].stage == Stage::Waiting);
    waiting.any(|pod| {
        let own = state.pods[*pod].own.as_ref();
        own.is_some_and(|own| own.never_preempts)
    })
}
