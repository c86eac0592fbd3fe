//! The cheapest set of units that makes a plan: branch and bound, the least bound first.
//!
//! ```text
//! OPEN --its bound is the least--> tried: a plan --costs its bound--> done with all sets below it
//!  ^                                 |   +--------costs more--+
//!  |                                 +--- no plan ------------+--> one unit is decided, both ways
//!  +----------------------------------------------------------------------+
//! ```
//!
//! A set with room that breaks a rule ends its branch: in every larger set some unit would not be
//! needed. So does a set that asks too much of a disruption budget.

use super::allowances::Allowances;
use super::bound::{AllDecided, BoundTables, Bounded, Decided};
use super::cost::Cost;
use super::greedy;
use super::units::{Unit, Units, cost_of};
use super::what_if::{End, Failure, Needed, WhatIf, follows};
use super::{Action, Why};
use crate::ids::{NodeId, PodId};
use crate::queues::QueueId;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How many branches are looked at, at most.
const BRANCHES_MAX: u64 = 4_000;
/// How much work a search may do in all its slices, in units of about ten nanoseconds.
const WORK_MAX: u64 = 2_000_000;

/// How much work may be done until it is known that each unit of a plan is needed, in units of
/// about ten nanoseconds.
const NEEDED_WORK_MAX: u64 = 10 * WORK_MAX;

/// How much work it is to see whether a unit may leave beside others, in units of about ten
/// nanoseconds.
const ALLOWANCE_WORK: u64 = 10;

/// What is decided on the way to a branch, and what follows.
#[derive(Debug)]
struct Branch {
    decided: Vec<(usize, Decided)>,
    bounded: Bounded,
}

/// The cheapest plan that was found.
#[derive(Debug)]
pub(super) struct Best {
    pub(super) set: Vec<usize>,
    pub(super) end: End,
    pub(super) cost: Cost,
    /// No plan costs less than this.
    pub(super) bound: Cost,
}

/// What a search has found.
#[derive(Debug)]
pub(super) enum Searched {
    Found(Best),
    /// No plan: why the most promising set is none, and whether it is certain that no set is one.
    Nothing {
        why: Why,
        is_proved: bool,
    },
}

/// How far a large set was looked at, beside the branches. That is the set of all units, when the
/// first set has too little room although counting finds enough, or when the search is cut short
/// without a plan; or a set that was found without a search. Each is looked at once.
///
/// ```text
/// NOT ASKED --> ASKED --there is room without all--> ENOUGH --it is no plan--------> DONE
///                 |            a set was found ------^    |                           ^
///                 v                  one is not needed    +--> PLAN --all are needed, +
///     there is none: over                            ^-------------+  or no work is left
/// ```
#[derive(Debug, PartialEq, Eq)]
enum Largest {
    NotAsked,
    Asked,
    /// These units are enough for the places that the claimant would be given.
    Enough(Vec<usize>),
    /// These units make a plan with this end, if each of them is needed, wherever the claimant is
    /// placed. The number says how many units have been looked at.
    Plan(Vec<usize>, End, usize),
    Done,
}

/// A search under way.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) units: Units,
    tables: BoundTables,
    action: Action,
    /// How much may be taken from each queue; counted once a set took too much.
    allowances: Option<Allowances>,
    open: BTreeMap<(Cost, u64), Branch>,
    /// The first branch was looked at.
    has_begun: bool,
    largest: Largest,
    /// The set of all units that may leave was trimmed to what the claimant needs, see [`Largest`].
    has_trimmed_all: bool,
    /// A cheaper set was looked for without a search, see [`greedy`].
    has_been_greedy: bool,
    branches: u64,
    /// The work done in all slices, in units of about ten nanoseconds.
    work: u64,
    best: Option<(Vec<usize>, End, Cost)>,
    /// Sets that leave room for the claimant and break a rule. No set with more units is a plan.
    roomy: Vec<Vec<usize>>,
    /// The cheapest set of which it is not certain that it is no plan.
    doubted: Option<Cost>,
    why: Option<Why>,
}

impl Search {
    pub(super) fn new(units: Units, tables: BoundTables, action: Action) -> Self {
        Self {
            units,
            tables,
            action,
            allowances: None,
            open: BTreeMap::new(),
            has_begun: false,
            largest: Largest::NotAsked,
            has_trimmed_all: false,
            has_been_greedy: false,
            branches: 0,
            work: 0,
            best: None,
            roomy: Vec::new(),
            doubted: None,
            why: None,
        }
    }

    /// Goes on until the answer is found, or the work of the slice is done; `None`: it goes on in
    /// the next slice. The answer is taken from the search, which is over then.
    pub(super) fn run(&mut self, what_if: &mut WhatIf<'_>, slice_end: u64) -> Option<Searched> {
        if !core::mem::replace(&mut self.has_begun, true) && !self.push(Vec::new(), what_if) {
            let why = self.why.take().unwrap_or(Why::TooLittle);
            return Some(Searched::Nothing {
                why,
                is_proved: true,
            });
        }
        let mut cut_short_at = None;
        loop {
            let before = what_if.work;
            let Some(looked_at) = self.look_at_next(what_if, &mut cut_short_at) else {
                break;
            };
            self.work += what_if.work - before;
            if looked_at.is_err() {
                break;
            }
            if what_if.work > slice_end && self.has_more() {
                return None;
            }
        }
        Some(self.conclude(cut_short_at))
    }

    fn has_more(&self) -> bool {
        let is_over = matches!(self.largest, Largest::NotAsked | Largest::Done);
        !is_over || !self.open.is_empty()
    }

    /// Looks at all units, where that was asked for, else at the branch of the least bound; `None`:
    /// no branch can hold a cheaper plan, or the search is cut short, at this bound.
    ///
    /// # Errors
    /// There is no room even if all units leave: the search is over.
    fn look_at_next(
        &mut self,
        what_if: &mut WhatIf<'_>,
        cut_short_at: &mut Option<Cost>,
    ) -> Option<Result<(), ()>> {
        match core::mem::replace(&mut self.largest, Largest::Done) {
            Largest::Asked => return Some(self.trim_all(what_if)),
            Largest::Enough(set) => {
                self.try_trimmed(set, what_if);
                return Some(Ok(()));
            }
            Largest::Plan(set, end, next) => {
                self.look_for_unneeded(set, end, next, what_if);
                return Some(Ok(()));
            }
            is_not_due => self.largest = is_not_due,
        }
        let ((lower, _), _) = self.open.first_key_value()?;
        if self.best.as_ref().is_some_and(|(.., cost)| cost <= lower) {
            return None;
        }
        if self.branches > BRANCHES_MAX || self.work > WORK_MAX {
            // A plan that is no more than good enough is better than none.
            if self.best.is_none() && !self.has_trimmed_all {
                self.largest = Largest::Asked;
                return Some(Ok(()));
            }
            *cut_short_at = Some(lower.clone());
            return None;
        }
        let (_, branch) = self.open.pop_first()?;
        self.look_at(&branch, what_if);
        Some(Ok(()))
    }

    fn conclude(&mut self, cut_short_at: Option<Cost>) -> Searched {
        let doubts = [&self.doubted, &cut_short_at]
            .into_iter()
            .flatten()
            .min()
            .cloned();
        match self.best.take() {
            Some((set, end, mut cost)) => {
                let before = set.len();
                let (set, end) = let_stay(&self.units.all, set, end);
                if set.len() < before {
                    cost = self.cost_of(&set, &Cost::default());
                }
                let bound = doubts.map_or_else(|| cost.clone(), |doubt| doubt.min(cost.clone()));
                Searched::Found(Best {
                    set,
                    end,
                    cost,
                    bound,
                })
            }
            None => Searched::Nothing {
                why: self.why.take().unwrap_or(Why::TooLittle),
                is_proved: doubts.is_none(),
            },
        }
    }

    /// Adds a branch, unless it holds no plan. Returns whether it was added.
    fn push(&mut self, decided: Vec<(usize, Decided)>, what_if: &mut WhatIf<'_>) -> bool {
        let all = self.all_decided(&decided);
        let Some(mut all) = all else { return false };
        let has_to_stay = self.used_up(&all, &mut what_if.work);
        // Of the units that have to stay some may find another place, and take nothing from their
        // queue.
        let comes_back = |unit: &usize| self.units.all[*unit].comes_back;
        if has_to_stay.iter().any(comes_back) {
            let before = self.tables.bound(&self.units.all, &all, &mut what_if.work);
            let doubted = before.map(|bounded| bounded.cost);
            self.doubted = self.doubted.take().into_iter().chain(doubted).min();
        }
        all.extend(has_to_stay.into_iter().map(|unit| (unit, Decided::Stays)));
        let bounded = self.tables.bound(&self.units.all, &all, &mut what_if.work);
        let Some(bounded) = bounded else {
            return false;
        };
        self.branches += 1;
        let key = (bounded.cost.clone(), self.branches);
        self.open.insert(key, Branch { decided, bounded });
        true
    }

    /// Adds to the decisions of a branch what follows from them: the surplus of a gang leaves with
    /// its core, and a core stays with any of its surplus. `None`: the decisions contradict each
    /// other, or a unit would leave that must not.
    fn all_decided(&self, decided: &[(usize, Decided)]) -> Option<AllDecided> {
        let mut all = AllDecided::new();
        for (unit, how) in decided {
            let unit_of = &self.units.all[*unit];
            let follows = match how {
                Decided::Leaves => &unit_of.followers,
                Decided::Stays => &unit_of.leaders,
            };
            for one in [*unit].iter().chain(follows) {
                let goes = self.units.all[*one].goes;
                let before = all.insert(*one, *how);
                let before = before.or((!goes).then_some(Decided::Stays));
                if before.is_some_and(|before| before != *how) {
                    return None;
                }
            }
        }
        Some(all)
    }

    /// The open units that cannot leave, too, because their queues give no more.
    fn used_up(&self, all: &AllDecided, work: &mut u64) -> Vec<usize> {
        let Some(allowances) = &self.allowances else {
            return Vec::new();
        };
        *work += ALLOWANCE_WORK * self.units.all.len() as u64;
        allowances.used_up(all)
    }

    /// Tries the set of a branch, and branches.
    fn look_at(&mut self, branch: &Branch, what_if: &mut WhatIf<'_>) {
        let set = &branch.bounded.set;
        let cost = self.cost_of(set, &branch.bounded.cost);
        let tried = what_if.try_set(&self.units.all, set, self.action);
        let tried = tried.and_then(|end| match self.has_more_than_room(set) {
            true => Err(Failure::of_rule(Why::Unneeded, true)),
            false => Ok(end),
        });
        match tried {
            Ok(end) => {
                let is_best = self.best.as_ref().is_none_or(|(.., best)| cost < *best);
                if is_best {
                    self.best = Some((set.clone(), end, cost.clone()));
                }
                if cost > branch.bounded.cost {
                    self.be_greedy(what_if);
                    self.split(branch, None, what_if);
                }
            }
            Err(failure) => {
                // Counting has found room for the set, and there is none: it overlooks something.
                if !failure.has_room && self.why.is_none() {
                    self.largest = Largest::Asked;
                }
                let gives_no_more = match failure.why {
                    Why::Gives(queue) | Why::Promised(queue, _) => Some(queue),
                    _ => None,
                };
                if gives_no_more.is_some() {
                    self.count_allowances(what_if);
                }
                if failure.has_room && self.action.needs_all() {
                    self.note_roomy(set.clone());
                }
                let ends = self.note_failure(failure, &cost);
                if !(ends && self.is_decided(branch)) {
                    self.split(branch, gives_no_more, what_if);
                }
            }
        }
    }

    /// Where counting has taken a set that costs more than it has counted, looks once for a cheaper
    /// one without a search.
    fn be_greedy(&mut self, what_if: &mut WhatIf<'_>) {
        if self.has_been_greedy || self.action == Action::Consolidate {
            return;
        }
        self.has_been_greedy = true;
        let Some(set) = greedy::cheapest(&self.tables, &self.units.all, &mut what_if.work) else {
            return;
        };
        let cost = self.cost_of(&set, &Cost::default());
        if self.best.as_ref().is_none_or(|(.., best)| cost < *best) {
            self.largest = Largest::Enough(set);
        }
    }

    /// Notes a set that leaves room for the claimant and breaks a rule. A larger set may have been
    /// taken for a plan: the bounds of branches can be far below what their sets cost.
    fn note_roomy(&mut self, set: Vec<usize>) {
        self.roomy.push(set);
        let best = self.best.take();
        self.best = best.filter(|(set, ..)| !self.has_more_than_room(set));
    }

    /// Whether the claimant has room, perhaps on other nodes, if some unit of a set stays.
    fn has_more_than_room(&self, set: &[usize]) -> bool {
        let units = &self.units.all;
        let is_part = |roomy: &&Vec<usize>| {
            let mut roomy = roomy.iter();
            roomy.all(|unit| set.binary_search(unit).is_ok())
        };
        let mut parts = self.roomy.iter().filter(is_part);
        parts.any(|part| {
            let mut others = set.iter().filter(|unit| part.binary_search(unit).is_err());
            others.any(|unit| !follows(units, set, *unit))
        })
    }

    /// Notes why a set is no plan. Returns whether no larger set is one.
    fn note_failure(&mut self, failure: Failure, cost: &Cost) -> bool {
        if !failure.is_proved && self.doubted.as_ref().is_none_or(|doubted| cost < doubted) {
            self.doubted = Some(cost.clone());
        }
        let ends = match failure.why {
            Why::Budget(_) => true,
            _ => failure.has_room && self.action.needs_all(),
        };
        // The first set is the one that counting finds cheapest: what is in its way says most.
        self.why.get_or_insert(failure.why);
        ends
    }

    /// Looks which of all units still have to leave, see [`WhatIf::trimmed`].
    fn trim_all(&mut self, what_if: &mut WhatIf<'_>) -> Result<(), ()> {
        self.has_trimmed_all = true;
        let goes = |unit: &usize| self.units.all[*unit].goes;
        let all: Vec<usize> = (0..self.units.all.len()).filter(goes).collect();
        match what_if.trimmed(&self.units.all, &all) {
            Ok(set) => self.largest = Largest::Enough(set),
            Err((refused, is_proved)) => {
                self.why = Some(Why::Room(refused));
                if is_proved {
                    return Err(());
                }
            }
        }
        Ok(())
    }

    /// Tries a set that is enough. Where fewer units leave, the claimant may be given other places,
    /// for which not all of the set need leave.
    fn try_trimmed(&mut self, set: Vec<usize>, what_if: &mut WhatIf<'_>) {
        match what_if.try_set(&self.units.all, &set, self.action) {
            Ok(end) => self.largest = Largest::Plan(set, end, 0),
            Err(failure) if failure.why == Why::Unneeded => self.trim(&set, set.len(), what_if),
            Err(_) => {}
        }
    }

    /// Lets the units of a set be tried that still have to leave, if they are fewer than `size`.
    fn trim(&mut self, set: &[usize], size: usize, what_if: &mut WhatIf<'_>) {
        let fewer = what_if.trimmed(&self.units.all, set).ok();
        if let Some(fewer) = fewer.filter(|fewer| fewer.len() < size) {
            self.largest = Largest::Enough(fewer);
        }
    }

    /// Looks at the next units of a plan, whether each is needed. Where the claimant could be
    /// placed elsewhere if one unit stays, the others are tried without it.
    fn look_for_unneeded(
        &mut self,
        mut set: Vec<usize>,
        end: End,
        next: usize,
        what_if: &mut WhatIf<'_>,
    ) {
        let needed = match self.action.needs_all() {
            false => Needed::All,
            true => what_if.needed(&self.units.all, &set, next),
        };
        match needed {
            Needed::All => {
                let cost = self.cost_of(&set, &Cost::default());
                if self.best.as_ref().is_none_or(|(.., best)| cost < *best) {
                    self.best = Some((set, end, cost));
                }
            }
            Needed::Before(next) if self.work <= NEEDED_WORK_MAX => {
                self.largest = Largest::Plan(set, end, next);
            }
            Needed::Before(_) => {}
            Needed::Not(at) => {
                let size = set.len();
                set.remove(at);
                self.trim(&set, size, what_if);
            }
        }
    }

    fn cost_of(&self, set: &[usize], like: &Cost) -> Cost {
        let zero = match set.first() {
            Some(first) => self.units.all[*first].cost.none(),
            None => like.none(),
        };
        cost_of(&self.units.all, set, zero)
    }

    /// Whether all units of a branch's set leave in any case.
    fn is_decided(&self, branch: &Branch) -> bool {
        let Some(all) = self.all_decided(&branch.decided) else {
            return true;
        };
        let set = branch.bounded.set.iter();
        set.into_iter()
            .all(|unit| all.get(unit) == Some(&Decided::Leaves))
    }

    /// Counts what may be taken from each queue.
    fn count_allowances(&mut self, what_if: &WhatIf<'_>) {
        let (Action::Reclaim(kind) | Action::Mixed(kind)) = self.action else {
            return;
        };
        let to = what_if.claimant.queue;
        let units = &self.units.all;
        let count = || Allowances::of(what_if.state, to, units, kind);
        self.allowances.get_or_insert_with(count);
    }

    /// Decides one more unit of a branch, both ways. `of`: a queue of which too much leaves, so one
    /// of its units is decided, if any of the branch's set is open.
    fn split(&mut self, branch: &Branch, of: Option<QueueId>, what_if: &mut WhatIf<'_>) {
        let Some(all) = self.all_decided(&branch.decided) else {
            return;
        };
        let is_open = |unit: &usize| self.units.all[*unit].goes && !all.contains_key(unit);
        let of_set = branch.bounded.set.iter().copied().filter(is_open);
        let is_of = |unit: &usize| of.is_some_and(|queue| self.units.all[*unit].queue == queue);
        let of_queue = of_set.clone().find(is_of);
        // Gangs on several nodes are where counting errs.
        let dearest = of_set.max_by(|one, other| {
            let key = |unit: usize| (self.units.all[unit].frees.len(), &self.units.all[unit].cost);
            key(*one).cmp(&key(*other)).then(other.cmp(one))
        });
        let next = of_queue.or(dearest).or_else(|| {
            let open = (0..self.units.all.len()).filter(is_open);
            open.min_by(|one, other| self.units.all[*one].cost.cmp(&self.units.all[*other].cost))
        });
        let Some(next) = next else { return };
        for how in [Decided::Stays, Decided::Leaves] {
            let mut decided = branch.decided.clone();
            decided.push((next, how));
            self.push(decided, what_if);
        }
    }
}

/// Lets units stay whose pods would all come back to the nodes where they are, unless all would.
fn let_stay(units: &[Unit], set: Vec<usize>, mut end: End) -> (Vec<usize>, End) {
    let moved: BTreeSet<(PodId, NodeId)> = end.moved.iter().copied().collect();
    let mut by_depth = set.clone();
    by_depth.sort_by_key(|unit| units[*unit].depth);
    let mut stays = BTreeSet::new();
    for unit in by_depth {
        let mut leaders = units[unit].leaders.iter();
        let goes = |leader: &usize| set.binary_search(leader).is_ok() && !stays.contains(leader);
        let returns = units[unit].pods.iter().all(|place| moved.contains(place));
        if returns && !leaders.any(goes) {
            stays.insert(unit);
        }
    }
    if stays.len() < set.len() {
        let pods = stays.iter().flat_map(|unit| &units[*unit].pods);
        let pods: BTreeSet<PodId> = pods.map(|(pod, _)| *pod).collect();
        end.moved.retain(|(pod, _)| !pods.contains(pod));
        let set = set.into_iter().filter(|unit| !stays.contains(unit));
        return (set.collect(), end);
    }
    (set, end)
}
