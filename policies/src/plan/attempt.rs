//! One attempt to place a gang: its minimum, or one more of its surplus.
//!
//! A gang with more members than it needs may begin with any of them. All are offered at once if
//! the queue has room for the first of them; else, or if too many for the queue have found a place,
//! one choice of members is tried after the other.

use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Shortfall, Verdict, Wake};
use crate::gangs::{demand, request, wanted};
use crate::ids::ById;
use crate::ids::{GangId, NodeId, PodId};
use crate::place::{Choice, Memo, Refusal, Request, place, pods_of};
use crate::plan::bounds;
use crate::plan::refusal::explain_refusal;
use crate::queues::{Demand, Excess, QueueId};
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::vec::Vec;

/// One attempt to place a gang.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) state: &'a mut ClusterState,
    pub(crate) settings: &'a Settings,
    pub(crate) progress: &'a ById<GangId, Progress>,
    pub(crate) gang: GangId,
    /// The queue in which it stands.
    pub(crate) queue: QueueId,
    /// Its members as they are now.
    pub(crate) counts: Counts,
    pub(crate) now_ms: UnixMs,
    /// What the search of this gang remembers from slice to slice.
    pub(crate) memo: &'a mut Memo,
    /// The work done, in units of about ten nanoseconds.
    pub(crate) work: &'a mut u64,
}

/// The members that were placed, and where.
type Placed = Vec<(PodId, NodeId)>;

/// The places of the members that were placed; else why none was, and what must change before the
/// gang is tried again.
pub(crate) type Attempted = Result<Placed, (Verdict, Wake)>;

impl Attempt<'_> {
    /// Places what the gang wants next, with members that its queue has room for, or nothing.
    ///
    /// # Errors
    /// Why there is no place.
    pub(crate) fn run(mut self) -> Attempted {
        if self.state.gangs[self.gang].tree().is_some() {
            return self.try_sub_groups();
        }
        let pods = demand::waiting_pods(self.state, self.gang, self.now_ms);
        let need = self.counts.needed.max(1) as usize;
        *self.work += 20 * pods.len() as u64;
        let first = demand::demand_of_pods(self.state, pods.iter().take(need));
        let within = self.check_queue(&first);
        if let Err((verdict, excess)) = &within
            && pods.len() == need
        {
            return Err((verdict.clone(), Wake::Over(excess.clone().into())));
        }
        let (id, queue) = (self.gang, self.queue);
        let request = request::request(self.state, self.settings, id, queue, pods, need);
        self.try_request(request, None, (&first, within))
    }

    /// Tries what a gang with sub-groups wants to place next, one alternative after the other.
    fn try_sub_groups(&mut self) -> Attempted {
        let (id, leaf) = (self.gang, self.queue);
        let (mut first, mut classes, mut full) = (None, Vec::new(), None);
        let (settings, progress) = (self.settings, self.progress);
        for request in wanted::requests(self.state, settings, progress, id, leaf, self.now_ms) {
            *self.work += 20 * request.groups.len() as u64;
            let choices = request.choices().0;
            let pods: Vec<PodId> = choices.first().into_iter().flat_map(pods_of).collect();
            let demand = self.demand_of(&pods);
            let within = self.check_queue(&demand);
            let (verdict, wake) = match self.try_request(request, Some(choices), (&demand, within))
            {
                Ok(placed) => return Ok(placed),
                Err(refused) => refused,
            };
            match wake {
                Wake::Over(Shortfall::Room { class, .. }) => classes.push(class),
                Wake::AnyRoom(more, limited) => {
                    classes.extend(more);
                    if let Some(queue) = limited {
                        full = bounds::highest(self.state, leaf, full, queue);
                    }
                }
                Wake::Queue(queue) | Wake::Over(Shortfall::Bound { queue, .. }) => {
                    full = bounds::highest(self.state, leaf, full, queue);
                }
            }
            first.get_or_insert(verdict);
        }
        classes.sort_unstable();
        classes.dedup();
        let nothing = || Verdict::new(Reason::NotFoundWithinBound, "no member can be placed");
        let wake = match full {
            Some(full) if classes.is_empty() => Wake::Queue(full),
            full => Wake::AnyRoom(classes, full),
        };
        Err((first.unwrap_or_else(nothing), wake))
    }

    /// Places what is requested, whichever members both the queue and the nodes have room for.
    ///
    /// `choices`: the ways to meet the needs; `None`: they are worked out if it comes to them.
    /// `first`: what the first of them asks for, and whether the queue has room for that.
    ///
    /// # Errors
    /// What the nodes say where the queue agrees to a choice, else what the queue says.
    fn try_request(
        &mut self,
        mut request: Request,
        choices: Option<Vec<Choice>>,
        first: (&Demand, Result<(), (Verdict, Excess)>),
    ) -> Attempted {
        let queue = self.queue;
        let mut full = self.state.queues.highest_model_limit(queue);
        let (mut exceeded, mut refused) = (None, None);
        let mut note = |state: &ClusterState, (verdict, excess): (Verdict, Excess)| {
            exceeded.get_or_insert(verdict);
            full = bounds::highest(state, queue, full, excess.queue);
        };
        match first {
            (first, Ok(())) => match self.place(&mut request, first) {
                Ok(Some(placed)) => return Ok(placed),
                Ok(None) => {}
                Err(refusal) => return Err(self.refused(&request, choices, refusal)),
            },
            (_, Err(beyond)) => note(self.state, beyond),
        }
        let choices = choices.unwrap_or_else(|| request.choices().0);
        for choice in choices.iter().filter(|_| choices.len() > 1) {
            let demand = self.demand_of(&pods_of(choice).collect::<Vec<_>>());
            if let Err(beyond) = self.check_queue(&demand) {
                note(self.state, beyond);
                continue;
            }
            let mut chosen = request.chosen(choice);
            match self.place(&mut chosen, &demand) {
                Ok(Some(placed)) => return Ok(placed),
                Ok(None) => {}
                Err(refusal) => {
                    let refusal = chosen.told_by_sub_groups(refusal);
                    let (verdict, _) =
                        explain_refusal(self, &request.flat_choice(choice), &refusal);
                    refused.get_or_insert(verdict);
                }
            }
        }
        Err(match (refused, exceeded, full) {
            (None, Some(verdict), Some(full)) => (verdict, Wake::Queue(full)),
            (refused, exceeded, full) => {
                let unknown = || Verdict::new(Reason::NotFoundWithinBound, "no choice of members");
                let verdict = refused.or(exceeded).unwrap_or_else(unknown);
                (verdict, Wake::AnyRoom(request.classes(), full))
            }
        })
    }

    /// The refusal of all choices at once. A gang with sub-groups is told by the first of them.
    fn refused(
        &mut self,
        request: &Request,
        choices: Option<Vec<Choice>>,
        refusal: Refusal,
    ) -> (Verdict, Wake) {
        let refusal = request.told_by_sub_groups(refusal);
        let first = choices.as_ref().and_then(|choices| choices.first());
        let first = first.map(|first| request.flat_choice(first));
        let told = first.as_ref().unwrap_or(request);
        let (verdict, wake) = explain_refusal(self, told, &refusal);
        let wake = match wake {
            // All choices were tried, whose classes may be others.
            // tests plant bugs here: wake-of-other-choices
            Wake::AnyRoom(_, full) => Wake::AnyRoom(request.classes(), full),
            wake => wake,
        };
        (verdict, wake)
    }

    /// Places what is requested. `None`: others have found a place than those that `checked` is the
    /// demand of, and they are too many for the queue.
    fn place(
        &mut self,
        request: &mut Request,
        checked: &Demand,
    ) -> Result<Option<Placed>, Refusal> {
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        place(self.state, &mut txn, request, self.memo, self.work)?;
        // Of one shape, all ask for the same.
        let of_one_shape = request.is_plain() && request.root().pods.len() == 1;
        let gang = (self.gang, self.queue);
        let kept = of_one_shape
            || bounds::keeps_to_queue(self.state, gang, request, checked, start, &mut txn);
        Ok(kept.then(|| txn.commit()))
    }

    fn demand_of(&mut self, pods: &[PodId]) -> Demand {
        *self.work += 20 * pods.len() as u64;
        demand::demand_of_pods(self.state, pods.iter())
    }

    fn check_queue(&self, demand: &Demand) -> Result<(), (Verdict, Excess)> {
        bounds::check_queue(self.state, self.gang, self.queue, demand)
    }
}
