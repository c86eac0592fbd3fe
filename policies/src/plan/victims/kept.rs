//! The search for an eviction plan between two slices, and what claimants after this one can use.

use super::branch::Search;
use super::shelf::Shelves;
use super::units::Units;
use super::{Action, NoPlan, Others, Plan, Why};
use crate::ids::GangId;
use crate::queues::{ClaimKind, QueueId};
use alloc::vec::Vec;

/// A search for an eviction plan, kept from one slice to the next.
///
/// ```text
///   BEGUN --the slice is used up--> KEPT --nothing has changed--> goes on
///     ^                               |
///     +--- something has changed -----+   after a few times with a longer slice each time
/// ```
///
/// Between two slices nothing of the search is in the state.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) gang: GangId,
    pub(crate) queue: QueueId,
    /// The takings of other gangs in the last slice.
    pub(super) others: Others,
    /// How far the log of changed nodes went when the last slice ended.
    pub(super) cursor: u64,
    /// Something has changed that the log of changed nodes does not tell.
    pub(crate) is_disturbed: bool,
    /// How often the search has begun anew.
    pub(super) restarts: u32,
    /// It is proved that there is no room as long as no victim leaves.
    pub(super) has_no_room: bool,
    pub(super) units: Units,
    /// The actions that were looked at, each with its plan, or why it has none.
    pub(super) found: Vec<(Action, Result<Plan, NoPlan>)>,
    /// The search for a plan of the action that is being looked at.
    pub(super) running: Option<Search>,
}

/// How often a search begins anew before its slices get longer: twice as long with each further
/// restart, so that a busy cluster keeps no search from ending, and no step takes much longer than
/// it has to.
pub(super) const RESTARTS_FREE: u32 = 2;
/// How often a slice is doubled, at most: it is longer then than any search.
pub(super) const DOUBLINGS_MAX: u32 = 10;

/// Tables and a search that go on from claimant to claimant, and from slice to slice.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) shelves: Shelves,
    pub(crate) search: Option<Kept>,
}

impl Known {
    /// Takes in that something has happened that the log of changed nodes does not tell.
    pub(crate) fn disturb(&mut self) {
        self.shelves.clear();
        if let Some(search) = &mut self.search {
            search.is_disturbed = true;
        }
    }

    /// Takes in that all changes in the log of changed nodes between two positions were undone.
    pub(crate) fn note_undone(&mut self, from: u64, to: u64) {
        if let Some(search) = &mut self.search
            && search.cursor == from
        {
            search.cursor = to;
        }
    }
}

impl Kept {
    fn of(&self, action: Action) -> Option<&Result<Plan, NoPlan>> {
        let mut found = self.found.iter();
        let found = found.find(|(looked_at, _)| *looked_at == action);
        found.map(|(_, result)| result)
    }

    /// The plan, or why there is none.
    ///
    /// # Errors
    /// The action that has to be looked at first.
    pub(super) fn answer(&self) -> Result<Result<Plan, NoPlan>, Action> {
        let moved = self.of(Action::Consolidate).ok_or(Action::Consolidate)?;
        let reclaimed = self.reclaimed(Action::Reclaim)?;
        let taken = match reclaimed.clone() {
            Ok(taken) => Ok(taken),
            Err(_) => self.of(Action::Preempt).ok_or(Action::Preempt)?.clone(),
        };
        Ok(match (moved, taken) {
            (Ok(moved), Ok(taken)) if moved.cost.broken() <= taken.cost.broken() => {
                Ok(moved.clone())
            }
            (_, Ok(taken)) => Ok(taken),
            (Ok(moved), Err(_)) => Ok(moved.clone()),
            (Err(no_move), Err(no_taking)) => {
                let is_proved = self.has_no_room && no_move.is_proved && no_taking.is_proved;
                self.reclaimed(Action::Mixed)?.map_err(|no_mix| NoPlan {
                    why: most_telling(
                        [
                            Some(&no_mix),
                            reclaimed.err().as_ref(),
                            Some(&no_taking),
                            Some(no_move),
                        ]
                        .into_iter()
                        .flatten(),
                    ),
                    is_proved: no_mix.is_proved && is_proved,
                    ..no_mix
                })
            }
        })
    }

    /// The cheaper plan of those for the two kinds of claims.
    fn reclaimed(&self, action: fn(ClaimKind) -> Action) -> Result<Result<Plan, NoPlan>, Action> {
        let of = |kind| self.of(action(kind)).ok_or(action(kind));
        let quota = of(ClaimKind::Quota)?;
        // A queue that is over its fair share is over its quota, too, so no plan of the other kind
        // costs less. A mixed plan may reclaim nothing, because its queue may not claim its quota.
        let is_best = |plan: &Plan| plan.is_optimal() && matches!(plan.action, Action::Reclaim(_));
        if quota.as_ref().is_ok_and(is_best) {
            return Ok(quota.clone());
        }
        Ok(match (quota, of(ClaimKind::FairShare)?) {
            (Ok(quota), Ok(share)) if share.cost < quota.cost => Ok(share.clone()),
            (Ok(quota), _) => Ok(quota.clone()),
            (Err(_), Ok(share)) => Ok(share.clone()),
            (Err(quota), Err(share)) => Err(NoPlan {
                is_proved: quota.is_proved && share.is_proved,
                ..share.clone()
            }),
        })
    }
}

/// The cause that tells users most; of equals the first.
fn most_telling<'a>(no_plans: impl Iterator<Item = &'a NoPlan>) -> Why {
    let causes = no_plans.map(|no_plan| &no_plan.why);
    let most = causes.reduce(|first, other| match other.tells() > first.tells() {
        true => other,
        false => first,
    });
    most.cloned().unwrap_or(Why::Nobody)
}
