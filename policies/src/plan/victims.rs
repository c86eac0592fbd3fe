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
//! | `units` | which pods may be evicted together, and for what |
//! | `cost` | what evictions cost |
//! | `node_costs`, `choose`, `bound` | the least that any plan costs, by counting room |
//! | `sums` | a proof without a search: all room together is too little |
//! | `branch` | the search |
//! | `greedy` | a set that makes room, found without the search |
//! | `allowances` | which units cannot leave beside others, because a queue gives no more |
//! | `kept` | what is kept of a search from one slice to the next |
//! | `shelf` | the answer without a search, for many claimants of one pod |
//! | `what_if`, `rules` | one set, tried in a transaction, with all rules |

mod allowances;
mod bound;
mod branch;
mod choose;
mod cost;
mod greedy;
mod kept;
mod node_costs;
mod rules;
mod shelf;
mod sums;
mod units;
mod what_if;

pub(crate) use cost::Cost;
pub(crate) use kept::Known;

use crate::facts::{Uid, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Refused;
use crate::gangs::wanted;
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::place::Request;
use crate::queues::{ClaimKind, Demand, Giver, QueueId};
use crate::resources::amount_of;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::state::pod::Stage;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bound::BoundTables;
use branch::{Best, Search, Searched};
use kept::{DOUBLINGS_MAX, Kept, RESTARTS_FREE};
use shelf::Shelves;
use units::{Claimant, May, Unit, Units};
use what_if::WhatIf;

/// How much work it is to look at a gang that runs, in units of about ten nanoseconds.
const GANG_WORK: u64 = 50;
/// How much work it is to look at one unit, in units of about ten nanoseconds.
const UNIT_WORK: u64 = 50;

/// How a gang gets its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// No gang is evicted: the room is free, or is being left.
    Free,
    /// Gangs move: they are evicted, and have another place.
    Consolidate,
    /// Queues give what they hold beyond their bounds of this kind.
    Reclaim(ClaimKind),
    /// Gangs of lower priority of the claimant's queue leave.
    Preempt,
    /// Gangs move, queues give and gangs of lower priority leave, in one plan.
    Mixed(ClaimKind),
}

impl Action {
    /// Whether some victims have to have another place.
    fn moves(self) -> bool {
        matches!(self, Self::Consolidate | Self::Mixed(_))
    }

    /// Whether every victim must be needed for room or a limit (R12). Gangs that move lose nothing.
    fn needs_all(self) -> bool {
        // tests plant bugs here: unneeded-victim
        self != Self::Consolidate
    }

    /// What the queue of the claimant claims from other queues; `None`: nothing.
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
    /// No gang may be evicted for the claimant.
    Nobody,
    /// Counting shows that there is too little room even without all gangs that may be evicted.
    TooLittle,
    /// This disruption budget allows fewer evictions.
    Budget(Uid),
    /// A victim is not needed for room or a limit.
    Unneeded,
    /// This queue would give what is within its bound.
    Gives(QueueId),
    /// This queue gives for a gang, and would not be over its bound any more before its first
    /// victim leaves.
    Promised(QueueId, GangId),
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

impl Why {
    /// How much a cause tells users, of several for which there is no plan: a bound or a lack of
    /// room most, gangs that could only move least.
    fn tells(&self) -> u8 {
        match self {
            Self::Room(_)
            | Self::TooLittle
            | Self::Budget(_)
            | Self::Gives(_)
            | Self::Promised(..)
            | Self::Claims(_)
            | Self::Outgrows(_)
            | Self::Never => 3,
            Self::Unneeded => 2,
            Self::NoOtherPlace | Self::MovesTooMuch => 1,
            Self::Nobody => 0,
        }
    }
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
    /// A plan for which no pod is evicted: the room for these places is free, or is being left.
    pub(crate) fn without_evictions(places: Vec<(PodId, NodeId)>) -> Self {
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
    /// It is certain that there is no plan.
    pub(crate) is_proved: bool,
    /// When the next gang has run for long enough to be evicted.
    pub(crate) next_ms: Option<UnixMs>,
    /// A gang of which only disruption budgets keep pods from being evicted.
    pub(crate) guarded: Option<GangId>,
}

/// What the takings of other gangs mean for the claimant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// The gangs with takings that come after the claimant, the last first. To end one of these
    /// takings costs nothing.
    pub(crate) later: Vec<Holder>,
    /// The pods that were not asked to leave yet for the gangs in `later`: they stay if the takings
    /// of these gangs end.
    pub(crate) unsent: BTreeSet<PodId>,
    /// What queues give for the takings of gangs that are neither in `later` nor the claimant.
    pub(crate) promised: Vec<Promised>,
}

/// A queue that gives for the taking of a gang, and the gang. While no victim of the taking has
/// left, the queue has to stay over its bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) giver: Giver,
    pub(crate) to: GangId,
}

/// The gang for which a plan is looked for, and what the search reads.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) progress: &'a ById<GangId, Progress>,
    pub(crate) gang: GangId,
    pub(crate) queue: QueueId,
    pub(crate) others: &'a Others,
    pub(crate) now_ms: UnixMs,
    /// How much work is done in this slice, in units of about ten nanoseconds.
    pub(crate) slice_work: u64,
}

/// The plan that would be made for a gang that waits for room, or why there is none; `None`: the
/// search is kept, and goes on in the next slice.
///
/// Changes nothing, but works out the fair shares anew where they are not current. `work`: grows by
/// the work done, in units of about ten nanoseconds.
pub(crate) fn find(
    state: &mut ClusterState,
    asked: &Asked<'_>,
    known: &mut Known,
    work: &mut u64,
) -> Option<Result<Plan, NoPlan>> {
    state.queues.divide_all();
    let &Asked {
        settings,
        progress,
        gang,
        queue,
        now_ms,
        ..
    } = asked;
    let planning = asked.planning(state);
    let claimant = planning.claimant;
    let kept = known.search.take();
    let kept = kept.filter(|kept| (kept.gang, kept.queue) == (gang, queue));
    let is_current = |kept: &Kept| {
        let is_as_it_was = !kept.is_disturbed && kept.cursor == state.changes.end();
        is_as_it_was && kept.others == *asked.others
    };
    let restarts = kept.as_ref().map_or(0, |kept| kept.restarts + 1);
    let kept = kept.filter(is_current);
    let restarts = kept.as_ref().map_or(restarts, |kept| kept.restarts);
    let doublings = restarts.saturating_sub(RESTARTS_FREE).min(DOUBLINGS_MAX);
    let slice_end = asked.slice_work.saturating_mul(1 << doublings);
    let mut what_if = WhatIf::begin(state, settings, progress, claimant, asked.others, now_ms);
    let begun = match kept {
        Some(kept) => Begun::Searching(kept),
        None => {
            // Shelves know nothing of the victims of takings that would end.
            let shelves = Some(&mut known.shelves);
            let shelves = shelves.filter(|_| asked.others.later.is_empty());
            planning.begin(&mut what_if, shelves, restarts)
        }
    };
    let mut unfinished = None;
    let found = match begun {
        Begun::Answered(answer) => Some(answer),
        Begun::Searching(mut kept) => {
            let found = planning.go_on(&mut what_if, &mut kept, slice_end);
            unfinished = Some(kept).filter(|_| found.is_none());
            found
        }
    };
    *work = work.saturating_add(what_if.finish());
    known.search = unfinished.map(|kept| Kept {
        others: asked.others.clone(),
        cursor: state.changes.end(),
        ..kept
    });
    found
}

/// What `look` sees where every pod has left that may be evicted for a gang. Changes nothing.
pub(crate) fn without_all<T>(
    state: &mut ClusterState,
    asked: &Asked<'_>,
    look: impl FnOnce(&mut ClusterState) -> T,
) -> T {
    let planning = asked.planning(state);
    let &Asked {
        settings, progress, ..
    } = asked;
    let claimant = planning.claimant;
    let mut what_if = WhatIf::begin(
        state,
        settings,
        progress,
        claimant,
        asked.others,
        asked.now_ms,
    );
    let units = planning.all_that_may_leave(&mut what_if);
    let all: Vec<usize> = (0..units.all.len())
        .filter(|unit| units.all[*unit].goes)
        .collect();
    let seen = what_if.without(&units.all, &all, look);
    what_if.finish();
    seen
}

/// How looking for a plan has begun.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Begun {
    /// The answer needs no search.
    Answered(Result<Plan, NoPlan>),
    Searching(Kept),
}

impl<'a> Asked<'a> {
    fn planning(&self, state: &ClusterState) -> Planning<'a> {
        let counts = count(state, self.gang, self.now_ms);
        Planning {
            progress: self.progress,
            settings: self.settings,
            claimant: Claimant {
                gang: self.gang,
                queue: self.queue,
                is_surplus: counts.needed == 0,
            },
        }
    }
}

/// A claimant for which a plan is looked for, and what the search reads beside the state.
struct Planning<'a> {
    progress: &'a ById<GangId, Progress>,
    settings: &'a Settings,
    claimant: Claimant,
}

impl Planning<'_> {
    /// Looks whether a search is needed.
    fn begin(
        &self,
        what_if: &mut WhatIf<'_>,
        shelves: Option<&mut Shelves>,
        restarts: u32,
    ) -> Begun {
        let has_no_room = match what_if.try_set(&[], &[], Action::Free) {
            Ok(end) => {
                return Begun::Answered(Ok(Plan::without_evictions(end.places)));
            }
            Err(failure) => failure.is_proved,
        };
        if never_preempts(what_if.state, self.claimant.gang) {
            return Begun::Answered(Err(NoPlan {
                why: Why::Never,
                is_proved: has_no_room,
                next_ms: None,
                guarded: None,
            }));
        }
        if let Some(shelves) = shelves
            && let Some(plan) = self.plan_by_shelf(what_if, shelves)
        {
            return Begun::Answered(Ok(plan));
        }
        let units = Units::collect(what_if.state, self.progress, self.claimant, what_if.now_ms);
        what_if.work += GANG_WORK * units.gang_count() as u64;
        Begun::Searching(Kept {
            gang: self.claimant.gang,
            queue: self.claimant.queue,
            others: Others::default(),
            cursor: 0,
            is_disturbed: false,
            restarts,
            has_no_room,
            units,
            found: Vec::new(),
            running: None,
        })
    }

    /// Looks at one action after the other until the answer is known.
    fn go_on(
        &self,
        what_if: &mut WhatIf<'_>,
        kept: &mut Kept,
        slice_end: u64,
    ) -> Option<Result<Plan, NoPlan>> {
        loop {
            let action = match kept.answer() {
                Ok(answer) => return Some(answer),
                Err(action) => action,
            };
            // Where no pod could leave there is nothing to be looked for in another slice.
            if what_if.work > slice_end && kept.units.could_leave(action) {
                return None;
            }
            let mut search = match kept.running.take() {
                Some(search) => search,
                None => match self.prepare(what_if, &mut kept.units, action) {
                    Ok(search) if what_if.work > slice_end => {
                        kept.running = Some(search);
                        return None;
                    }
                    Ok(search) => search,
                    Err(no_plan) => {
                        kept.found.push((action, Err(no_plan)));
                        continue;
                    }
                },
            };
            let Some(searched) = search.run(what_if, slice_end) else {
                kept.running = Some(search);
                return None;
            };
            kept.units = search.units;
            let found = match searched {
                Searched::Found(best) => Ok(plan_of(what_if.state, &kept.units.all, action, best)),
                Searched::Nothing { why, is_proved } => Err(kept.units.no_plan(why, is_proved)),
            };
            kept.found.push((action, found));
            // To carry out a large plan is work, too.
            if what_if.work > slice_end {
                return None;
            }
        }
    }

    /// The cheapest reclaim for a claimant of one pod, if counting tells it and all rules keep it.
    fn plan_by_shelf(&self, what_if: &mut WhatIf<'_>, shelves: &mut Shelves) -> Option<Plan> {
        let requests = self.requests(what_if);
        let [request] = requests.as_slice() else {
            return None;
        };
        let class = shelf::class_of_one(what_if.state, request)?;
        let least = sums::least_held(what_if.state, request);
        let mut kinds = [ClaimKind::Quota, ClaimKind::FairShare].into_iter();
        let kind =
            kinds.find(|kind| what_if.may_claim(*kind, least.as_ref(), &Demand::default()))?;
        let read = |what_if: &mut WhatIf<'_>| {
            let (state, now_ms) = (&mut *what_if.state, what_if.now_ms);
            let mut units = Units::collect(state, self.progress, self.claimant, now_ms);
            units.build(state, now_ms);
            units
        };
        let cheapest = shelves.cheapest(what_if, class, kind, read)?;
        let (units, set) = (cheapest.units, &cheapest.set);
        let action = Action::Reclaim(kind);
        let end = what_if.try_set(units, set, action).ok()?;
        let as_of_ms = cheapest.as_of_ms;
        let keeps_others = set
            .iter()
            .all(|unit| units[*unit].is_of_one_key(what_if.state));
        let best = Best {
            set: cheapest.set,
            end,
            bound: cheapest.cost.clone(),
            cost: cheapest.cost,
        };
        let plan = plan_of(what_if.state, units, action, best);
        if !keeps_others {
            shelves.clear();
        }
        debug_assert!(
            as_of_ms != what_if.now_ms || self.is_found_again(what_if, &plan),
            "a search finds a plan that costs as much as {plan:?}"
        );
        Some(plan)
    }

    /// Whether a search finds a plan that costs as much as one from a shelf: debug builds check it,
    /// so all simulated worlds do.
    fn is_found_again(&self, what_if: &mut WhatIf<'_>, plan: &Plan) -> bool {
        let work = what_if.work;
        let found = match self.begin(what_if, None, 0) {
            Begun::Answered(answer) => Some(answer),
            Begun::Searching(mut kept) => self.go_on(what_if, &mut kept, u64::MAX),
        };
        what_if.work = work;
        let loss = |plan: &Plan| (plan.cost.broken(), plan.cost.gpu_seconds());
        matches!(found, Some(Ok(found)) if loss(&found) == loss(plan) || !found.is_optimal())
    }

    /// Begins the search for a plan of one action.
    ///
    /// # Errors
    /// There is no plan, which shows without a search.
    fn prepare(
        &self,
        what_if: &mut WhatIf<'_>,
        units: &mut Units,
        action: Action,
    ) -> Result<Search, NoPlan> {
        if !units.could_leave(action) {
            return Err(units.no_plan(Why::Nobody, true));
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
            return Err(units.no_plan(why, true));
        }
        what_if.work += UNIT_WORK * units.build(what_if.state, what_if.now_ms) as u64;
        let judge = Judge::new(what_if, action, request, units);
        // Where all victims of a mixed plan would have to move, that is consolidation, which was
        // looked for.
        let counts = |unit: &Unit| match action {
            Action::Mixed(_) => unit.goes && unit.may.leave_for_good(action),
            _ => unit.goes,
        };
        let mut any_goes = |judge: Judge<'_, '_>| {
            units.choose(action, judge.of_units()) && units.all.iter().any(counts)
        };
        if !any_goes(judge) {
            let why = self.why_nobody(any_goes(judge.of_a_small_queue(action)));
            return Err(units.no_plan(why, true));
        }
        let Some(request) = request else {
            return Err(units.no_plan(Why::TooLittle, false));
        };
        if lacks(what_if.state, request, &units.all, action) {
            return Err(units.no_plan(Why::TooLittle, true));
        }
        let tables = BoundTables::read(what_if.state, request, &units.all, units.zero.clone());
        Ok(Search::new(core::mem::take(units), tables, action))
    }

    /// All units, with those marked to go that may leave in any plan.
    fn all_that_may_leave(&self, what_if: &mut WhatIf<'_>) -> Units {
        let (state, now_ms) = (&mut *what_if.state, what_if.now_ms);
        let mut units = Units::collect(state, self.progress, self.claimant, now_ms);
        units.build(what_if.state, now_ms);
        let requests = self.requests(what_if);
        let request = requests.first().filter(|_| requests.len() == 1);
        let kinds = [ClaimKind::Quota, ClaimKind::FairShare];
        // More may be taken by a claim for the quota than by one for the fair share.
        let judges = kinds.map(|kind| {
            let action = Action::Mixed(kind);
            (action, Judge::new(what_if, action, request, &units))
        });
        let [quota, share] = judges;
        let (action, judge) = if quota.1.kind.is_some() { quota } else { share };
        units.choose(action, judge.of_units());
        units
    }

    /// Why no gang leaves. `any_goes`: a gang would leave if the claimant's queue held nothing.
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
    /// The bounds down to which other queues give; `None`: no queue gives.
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

    /// A judge of units that are reclaimed by a claim which the claimant's queue may make.
    fn of_kind(what_if: &'a WhatIf<'b>, kind: ClaimKind) -> Self {
        let kind = Some(kind);
        Self { what_if, kind }
    }

    /// The judge that there would be if the claimant's queue held nothing.
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

/// Whether sums show that there is too little room, before the units of gangs are built.
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

/// Whether sums over these units show that there is too little room.
fn lacks(state: &ClusterState, request: &Request, units: &[Unit], action: Action) -> bool {
    let given = |resource| {
        let leaves = |unit: &Unit| unit.goes && unit.may.leave_for_good(action);
        let follows = |unit: &Unit| {
            let mut leaders = unit.leaders.iter();
            leaders.any(|leader| leaves(&units[*leader]))
        };
        let given = units.iter().filter(|unit| leaves(unit) || follows(unit));
        let frees = given.flat_map(|unit| &unit.frees);
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

/// Whether pods of a gang that wait say that no pod is to be evicted for them.
fn never_preempts(state: &ClusterState, gang: GangId) -> bool {
    let members = state.gangs[gang].members.iter();
    let mut waiting = members.filter(|pod| state.pods[**pod].stage == Stage::Waiting);
    waiting.any(|pod| state.pods[*pod].never_preempts())
}
