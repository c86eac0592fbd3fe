//! One attempt to place a gang: its minimum, or one more of its surplus.
//!
//! A gang with more members than it needs may begin with any of them. All members are offered at
//! once if the queue has room for the first of them. Otherwise, or if the members that found a
//! place are too much for the queue, one choice of members is tried after the other.

use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Refused, Shortfall, Wake};
use crate::gangs::{demand, request, wanted};
use crate::ids::ById;
use crate::ids::{GangId, PodId};
use crate::place::{Choice, Memo, Refusal, Request, SLICE_STEPS, place, pods_of};
use crate::plan::bounds;
use crate::plan::refusal;
use crate::queues::{Demand, Excess, QueueId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A gang that is to be placed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) progress: &'a ById<GangId, Progress>,
    pub(crate) gang: GangId,
    /// The queue in whose line the gang stands.
    pub(crate) queue: QueueId,
    /// The members of the gang, counted now.
    pub(crate) counts: Counts,
    pub(crate) now_ms: UnixMs,
}

/// One attempt to place a gang.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) state: &'a mut ClusterState,
    /// The transaction in which members are placed.
    pub(crate) txn: &'a mut Txn,
    /// What the search of this gang remembers from slice to slice.
    pub(crate) memo: &'a mut Memo,
    /// The work done, in units of about ten nanoseconds.
    pub(crate) work: &'a mut u64,
}

/// Whether members were placed in the transaction; else why none was, and what must change before
/// the gang is tried again.
pub(crate) type Attempted = Result<(), (Refused, Wake)>;

/// Places what a gang wants next, with a search of no more than one slice.
///
/// # Errors
/// Why there is no place, as far as the search has come.
pub(crate) fn in_one_slice(
    state: &mut ClusterState,
    txn: &mut Txn,
    asker: Asker<'_>,
    work: &mut u64,
) -> Attempted {
    let mut memo = Memo::default();
    memo.begin_slice(SLICE_STEPS);
    let attempt = Attempt {
        asker,
        state,
        txn,
        memo: &mut memo,
        work,
    };
    attempt.run()
}

impl Attempt<'_> {
    /// Places what the gang wants next, with members that its queue has room for, or nothing.
    ///
    /// # Errors
    /// Why there is no place.
    pub(crate) fn run(mut self) -> Attempted {
        if self.state.gangs[self.asker.gang].tree().is_some() {
            return self.try_sub_groups();
        }
        let pods = demand::waiting_pods(self.state, self.asker.gang, self.asker.now_ms);
        let need = self.asker.counts.needed.max(1) as usize;
        *self.work += 20 * pods.len() as u64;
        let first = demand::demand_of_pods(self.state, pods.iter().take(need));
        let within = self.check_queue(&first);
        if let Err(excess) = within
            && pods.len() == need
        {
            return Err((excess.into(), Wake::Eased(excess.into())));
        }
        let Asker {
            settings,
            gang,
            queue,
            ..
        } = self.asker;
        let request = request::request(self.state, settings, gang, queue, pods, need);
        self.try_request(request, None, (&first, within))
    }

    /// Tries what a gang with sub-groups wants to place next, one alternative after the other.
    fn try_sub_groups(&mut self) -> Attempted {
        let Asker {
            settings,
            progress,
            gang,
            queue: leaf,
            now_ms,
            ..
        } = self.asker;
        let (mut first, mut classes, mut full) = (None, Vec::new(), None);
        for request in wanted::requests(self.state, settings, progress, gang, leaf, now_ms) {
            *self.work += 20 * request.groups.len() as u64;
            let choices = request.choices(self.state).0;
            let pods: Vec<PodId> = choices.first().into_iter().flat_map(pods_of).collect();
            let demand = self.demand_of(&pods);
            let within = self.check_queue(&demand);
            let (refused, wake) = match self.try_request(request, Some(choices), (&demand, within))
            {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            match wake {
                Wake::Eased(Shortfall::Room { class, .. }) => classes.push(class),
                Wake::AnyRoom(more, limited) => {
                    classes.extend(more);
                    if let Some(queue) = limited {
                        full = bounds::highest(self.state, leaf, full, queue);
                    }
                }
                Wake::Queue(queue) | Wake::Eased(Shortfall::Bound { queue, .. }) => {
                    full = bounds::highest(self.state, leaf, full, queue);
                }
                // An attempt knows nothing of promises.
                Wake::Promises => {}
            }
            first.get_or_insert(refused);
        }
        classes.sort_unstable();
        classes.dedup();
        let wake = match full {
            Some(full) if classes.is_empty() => Wake::Queue(full),
            full => Wake::AnyRoom(classes, full),
        };
        Err((first.unwrap_or_else(Refused::without_choice), wake))
    }

    /// Places what is requested, with members that both the queue and the nodes have room for.
    ///
    /// `choices`: the choices of members that meet the needs; `None`: they are worked out if they
    /// are needed. `first`: the demand of the first choice, or of the first members where `choices`
    /// is `None`, and whether the queue has room for it.
    ///
    /// # Errors
    /// The refusal by nodes, if the queue has room for some choice; else the bound of the queue.
    fn try_request(
        &mut self,
        mut request: Request,
        choices: Option<Vec<Choice>>,
        first: (&Demand, Result<(), Excess>),
    ) -> Attempted {
        let queue = self.asker.queue;
        let mut full = self.state.queues.highest_model_limit(queue);
        let (mut exceeded, mut refused) = (None, None::<Refused>);
        let mut note = |state: &ClusterState, excess: Excess| {
            exceeded.get_or_insert(excess);
            full = bounds::highest(state, queue, full, excess.queue);
        };
        match first {
            (first, Ok(())) => match self.place(&mut request, first) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(refusal) => return Err(self.refused(&request, choices, refusal)),
            },
            (_, Err(beyond)) if choices.is_some() => note(self.state, beyond),
            // The choices of a plain gang do not begin with the first members.
            (_, Err(_)) => {}
        }
        let tried_all = choices.as_ref().is_some_and(|choices| choices.len() == 1);
        let choices = choices.unwrap_or_else(|| request.choices(self.state).0);
        for choice in choices.iter().filter(|_| !tried_all) {
            let demand = self.demand_of(&pods_of(choice).collect::<Vec<_>>());
            if let Err(beyond) = self.check_queue(&demand) {
                note(self.state, beyond);
                continue;
            }
            let mut chosen = request.chosen(choice);
            match self.place(&mut chosen, &demand) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(refusal) => {
                    let refusal = chosen.told_by_sub_groups(refusal);
                    let (why, _) = self.judge(&request.flat_choice(choice), refusal);
                    refused.get_or_insert(why);
                }
            }
        }
        Err(match (refused, exceeded, full) {
            (None, Some(excess), Some(full)) => (excess.into(), Wake::Queue(full)),
            (refused, exceeded, full) => {
                let refused = refused.or(exceeded.map(Refused::from));
                let refused = refused.unwrap_or_else(Refused::without_choice);
                (refused, Wake::AnyRoom(request.classes(), full))
            }
        })
    }

    /// The refusal of all choices at once; of a gang with sub-groups, in the words of the first
    /// choice.
    fn refused(
        &mut self,
        request: &Request,
        choices: Option<Vec<Choice>>,
        refusal: Refusal,
    ) -> (Refused, Wake) {
        let refusal = request.told_by_sub_groups(refusal);
        let first = choices.as_ref().and_then(|choices| choices.first());
        let first = first.map(|first| request.flat_choice(first));
        let worded = first.as_ref().unwrap_or(request);
        let (refused, wake) = self.judge(worded, refusal);
        let wake = match wake {
            // All choices were tried: their classes may be more than those of the first choice.
            // tests plant bugs here: wake-of-other-choices
            Wake::AnyRoom(_, full) => Wake::AnyRoom(request.classes(), full),
            wake => wake,
        };
        (refused, wake)
    }

    /// Why nodes have refused members, and what must change before the gang is tried again.
    fn judge(&mut self, request: &Request, refusal: Refusal) -> (Refused, Wake) {
        let wake = refusal::wake(self.state, request, &refusal);
        let progress = &self.asker.progress[self.asker.gang];
        let refused = Refused {
            reason: refusal::reason(self.state, progress, &self.asker.counts, request, &refusal),
            by_nodes: Some(Box::new(refusal)),
            behind: None,
        };
        (refused, wake)
    }

    /// Places what is requested. `checked`: the demand that the queue has room for. `false`: the
    /// members that found a place have another demand, for which the queue has no room.
    fn place(&mut self, request: &mut Request, checked: &Demand) -> Result<bool, Refusal> {
        let start = self.txn.checkpoint();
        place(self.state, self.txn, request, self.memo, self.work)?;
        if !self.state.has_volumes_for(self.txn.placed_since(start)) {
            self.txn.rollback(self.state, start);
            return Err(Refusal::NotTogether { proved: false });
        }
        // Members of one shape have one demand, whichever of them are placed.
        let of_one_shape = request.is_plain() && request.root().pods.len() == 1;
        let gang = (self.asker.gang, self.asker.queue);
        let kept = of_one_shape
            || bounds::keeps_to_queue(self.state, gang, request, checked, start, self.txn);
        Ok(kept)
    }

    fn demand_of(&mut self, pods: &[PodId]) -> Demand {
        *self.work += 20 * pods.len() as u64;
        demand::demand_of_pods(self.state, pods.iter())
    }

    fn check_queue(&self, demand: &Demand) -> Result<(), Excess> {
        bounds::within_bounds(self.state, self.asker.gang, self.asker.queue, demand)
    }
}
