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
use crate::place::Request;
use crate::queues::{ClaimKind, Demand, QueueId};
use crate::resources::amount_of;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::state::pod::Stage;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bound::Rooms;
use branch::{Best, Search, Searched};
use units::{Claimant, May, Unit, Units};
use what_if::WhatIf;

/// How much work it is to look at a gang that runs, in units of about ten nanoseconds.
const GIVER_WORK: u64 = 50;
/// How much work it is to look at one unit, in units of about ten nanoseconds.
const UNIT_WORK: u64 = 50;

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
    /// Whether some victims have to have another place.
    fn moves(self) -> bool {
        matches!(self, Self::Consolidate | Self::Mixed(_))
    }

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

/// The takings of gangs that come after the claimant, which cost nothing to end.
#[derive(Debug, Default)]
pub(crate) struct Later {
    /// The gangs, the last first.
    pub(crate) holders: Vec<Holder>,
    /// Their victims that were not asked to leave, and stay if the takings end.
    pub(crate) unsent: BTreeSet<PodId>,
}

/// The plan that would be made for a gang that waits for room.
///
/// Changes nothing, but works out the fair shares anew where they are not current. `work`: grows by
/// the work done, in units of about ten nanoseconds.
///
/// # Errors
/// Why there is no plan.
pub(crate) fn find(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    (gang, queue): (GangId, QueueId),
    later: &Later,
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
        let mut units = Units::collect(what_if.state, self.progress, self.claimant, what_if.now_ms);
        what_if.work += GIVER_WORK * units.givers() as u64;
        let units = &mut units;
        let moved = self.search(what_if, units, Action::Consolidate);
        let taken = self
            .reclaim(what_if, units, Action::Reclaim)
            .or_else(|_| self.search(what_if, units, Action::Preempt));
        match (moved, taken) {
            (Ok(moved), Ok(taken)) if moved.cost.broken() <= taken.cost.broken() => Ok(moved),
            (_, Ok(taken)) => Ok(taken),
            (Ok(moved), Err(_)) => Ok(moved),
            (Err(no_move), Err(no_taking)) => {
                let mixed = self.reclaim(what_if, units, Action::Mixed);
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
        units: &mut Units,
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
        units: &mut Units,
        action: Action,
    ) -> Result<Plan, NoPlan> {
        let next_ms = units.next_ms;
        let no_plan = |why, is_proved| NoPlan {
            why,
            is_proved,
            next_ms,
        };
        if !units.could_leave(action) {
            return Err(no_plan(Why::Nobody, true));
        }
        let requests = self.requests(what_if);
        let request = match requests.as_slice() {
            [request] => Some(request),
            _ => None,
        };
        if request
            .is_some_and(|request| lacks_without_a_look(what_if.state, request, units, action))
        {
            let judge = Judge::new(what_if, action, request, units);
            let (state, now_ms) = (&*what_if.state, what_if.now_ms);
            let any_goes =
                |judge: Judge<'_, '_>| units.any_goes(state, now_ms, action, judge.of_units());
            let why = match any_goes(judge) {
                true => Why::TooLittle,
                false => self.why_nobody(any_goes(judge.of_a_small_queue(action))),
            };
            return Err(no_plan(why, true));
        }
        what_if.work += UNIT_WORK * units.build(what_if.state, what_if.now_ms) as u64;
        let judge = Judge::new(what_if, action, request, units);
        if !units.choose(action, judge.of_units()) {
            let any_goes = units.choose(action, judge.of_a_small_queue(action).of_units());
            return Err(no_plan(self.why_nobody(any_goes), true));
        }
        let Some(request) = request else {
            return Err(no_plan(Why::TooLittle, false));
        };
        if lacks(what_if.state, request, &units.all, action) {
            return Err(no_plan(Why::TooLittle, true));
        }
        let rooms = Rooms::read(what_if.state, request, &units.all, units.zero.clone());
        match Search::new(&units.all, &rooms, action).run(what_if) {
            Searched::Nothing { why, is_proved } => Err(no_plan(why, is_proved)),
            Searched::Found(best) => Ok(plan_of(what_if.state, &units.all, action, best)),
        }
    }

    /// Why nobody leaves. `any_goes`: somebody would if the claimant's queue held nothing.
    fn why_nobody(&self, any_goes: bool) -> Why {
        match any_goes {
            true => Why::Claims(self.claimant.queue),
            false => Why::Nobody,
        }
    }

    /// What the claimant asks for next: one request, or alternatives for its surplus; none if it
    /// asks for nothing.
    fn requests(&self, what_if: &WhatIf<'_>) -> Vec<Request> {
        let (gang, queue) = (self.claimant.gang, self.claimant.queue);
        let (state, now_ms) = (&*what_if.state, what_if.now_ms);
        wanted::requests(state, self.settings, self.progress, gang, queue, now_ms)
    }
}

/// For what units may be evicted in plans of one action, as the state is.
#[derive(Clone, Copy)]
struct Judge<'a, 'b> {
    what_if: &'a WhatIf<'b>,
    /// The bounds down to which others give; `None`: nobody gives.
    kind: Option<ClaimKind>,
}

impl<'a, 'b> Judge<'a, 'b> {
    fn new(
        what_if: &'a WhatIf<'b>,
        action: Action,
        request: Option<&Request>,
        units: &Units,
    ) -> Self {
        let state = &*what_if.state;
        let queue = what_if.claimant.queue;
        let may_claim = |kind: &ClaimKind| {
            let least = request.and_then(|request| sums::least_held(state, request));
            // What leaves the claimant's own queue, too, may bring that queue under its bound.
            let leaves = match action {
                Action::Mixed(_) => units.could_leave_of_queue(state, action, queue),
                _ => Demand::default(),
            };
            what_if.may_claim(*kind, least.as_ref(), &leaves)
        };
        let kind = action.claims().filter(may_claim);
        Self { what_if, kind }
    }

    /// What would be judged if the claimant's queue held nothing.
    fn of_a_small_queue(self, action: Action) -> Self {
        let kind = action.claims();
        Self { kind, ..self }
    }

    /// Says for what a unit may be evicted, of what it may be evicted for by itself.
    fn of_units(self) -> impl FnMut(&Unit, May) -> May {
        let mut known = BTreeMap::new();
        move |unit, can| {
            let Self { what_if, kind } = self;
            let mut gives = |kind| what_if.may_give(unit, kind, &mut known);
            May {
                be_reclaimed: can.be_reclaimed && kind.is_some_and(&mut gives),
                be_moved_for_more: can.be_moved && what_if.moves_for_more(unit),
                ..can
            }
        }
    }
}

/// Whether sums show that there is too little room, before anybody looks at pods of gangs.
fn lacks_without_a_look(
    state: &ClusterState,
    request: &Request,
    units: &Units,
    action: Action,
) -> bool {
    let given = |resource| {
        let pods = units.could_leave_for_good(action);
        let amount =
            |pod: PodId| amount_of(&state.classes[state.pods[pod].class].requests, resource);
        pods.map(amount).map(u128::from).sum()
    };
    action.moves() && sums::lacks(state, request, given)
}

/// Whether sums show that there is too little room.
fn lacks(state: &ClusterState, request: &Request, units: &[Unit], action: Action) -> bool {
    let given = |resource| {
        let leaves = |unit: &&Unit| unit.goes && unit.may.leave_for_good(action);
        let frees = units.iter().filter(leaves).flat_map(|unit| &unit.frees);
        let amounts = frees.map(|(_, frees)| amount_of(frees, resource));
        amounts.map(u128::from).sum()
    };
    action.moves() && sums::lacks(state, request, given)
}

fn plan_of(state: &ClusterState, units: &[Unit], action: Action, best: Best) -> Plan {
    let pods = best.set.iter().flat_map(|unit| &units[*unit].pods);
    let mut evict: Vec<PodId> = pods.map(|(pod, _)| *pod).collect();
    let name = |pod: &PodId| (&state.pods[*pod].namespace, &state.pods[*pod].name);
    evict.sort_by(|one, other| name(one).cmp(&name(other)));
    Plan {
        action,
        evict,
        places: best.end.places,
        moved: best.end.moved,
        cost: best.cost,
        bound: best.bound,
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
