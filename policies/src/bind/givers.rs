//! The queues that give, looked at once more before the first pod is asked to leave.
//!
//! Between the plan and the first eviction lie the nominations, and the API server may take its
//! time for them. A queue whose pods have ended meanwhile, or whose bound has risen, may hold no
//! more than what is its own: then its gangs are protected now, and the plan ends (I9, R9). Other
//! plans do not bring that about: until a pod may have been evicted for a plan, each other plan
//! leaves the queues that give over their bounds, or ends the plan at once.

use crate::facts::Uid;
use crate::ids::{GangId, PodId};
use crate::queues::{ClaimKind, Demand, Giver, QueueId, add_demand};
use crate::state::ClusterState;
use crate::state::sets::{put_in, take_out};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The queues from which a plan reclaims.
#[derive(Debug)]
pub(crate) struct Givers {
    kind: ClaimKind,
    /// The queue of the gang for which the plan is.
    to: Box<str>,
    /// The queues, by name, that were over their bounds when the plan was made.
    above_bounds: BTreeSet<Box<str>>,
    /// The queues of `above_bounds` that a pod is still to leave, each with the largest amounts
    /// that one of its victims holds.
    now: Vec<Giver>,
}

/// What queues give for all takings for which no pod may have been evicted yet. It is kept and not
/// worked out for each plan: there can be thousands of takings, and every plan is compared with all
/// of them.
#[derive(Debug, Default)]
pub(crate) struct Giving {
    /// Each giver, with the gangs of the takings for which it gives. Takings with equal givers
    /// share one entry.
    takers: BTreeMap<Giver, BTreeSet<GangId>>,
    /// For which gang each pod that is reclaimed is to leave.
    reclaimed: BTreeMap<Uid, GangId>,
}

impl Giving {
    /// Takes in a taking that has begun.
    pub(crate) fn add(
        &mut self,
        to: GangId,
        givers: &Givers,
        reclaimed: impl Iterator<Item = Uid>,
    ) {
        self.reclaimed.extend(reclaimed.map(|pod| (pod, to)));
        self.count(to, givers);
    }

    /// Takes in that a taking has ended, or that it goes on to its end whatever the queues that
    /// give hold.
    pub(crate) fn remove(
        &mut self,
        to: GangId,
        givers: &Givers,
        reclaimed: impl Iterator<Item = Uid>,
    ) {
        for pod in reclaimed {
            self.reclaimed.remove(&pod);
        }
        self.uncount(to, givers);
    }

    /// Counts what queues give for a taking.
    pub(crate) fn count(&mut self, to: GangId, givers: &Givers) {
        for giver in &givers.now {
            put_in(&mut self.takers, giver.clone(), to);
        }
    }

    /// The exact reverse of [`Giving::count`].
    pub(crate) fn uncount(&mut self, to: GangId, givers: &Givers) {
        for giver in &givers.now {
            take_out(&mut self.takers, giver, &to);
        }
    }

    /// The gangs for which some of these pods are to leave.
    pub(crate) fn takers_of(&self, pods: &[Uid]) -> BTreeSet<GangId> {
        let takers = pods.iter().filter_map(|uid| self.reclaimed.get(uid));
        takers.copied().collect()
    }

    /// Every giver, each with the first of the gangs for which it gives that `counts` picks.
    pub(crate) fn givers(
        &self,
        counts: impl Fn(GangId) -> bool,
    ) -> impl Iterator<Item = (&Giver, GangId)> {
        self.takers.iter().filter_map(move |(giver, takers)| {
            let to = takers.iter().find(|to| counts(**to))?;
            Some((giver, *to))
        })
    }

    /// Whether what is kept is what queues give for these takings.
    pub(crate) fn is_of<'a>(&self, takings: impl Iterator<Item = (GangId, &'a Givers)>) -> bool {
        let mut anew = Self::default();
        for (to, givers) in takings {
            anew.count(to, givers);
        }
        anew.takers == self.takers
    }
}

impl Givers {
    /// The queues from which these pods, which count as leaving, are reclaimed for a gang of the
    /// queue `to`.
    pub(crate) fn of(
        state: &ClusterState,
        to: QueueId,
        reclaimed: impl Iterator<Item = PodId>,
        kind: ClaimKind,
    ) -> Self {
        let givers = givers(state, to, reclaimed, kind).into_values();
        let now: Vec<Giver> = givers.filter(|giver| state.queues.is_over(giver)).collect();
        let above = now.iter();
        let above = above.map(|giver| state.queues.name(giver.queue).into());
        Self {
            kind,
            to: state.queues.name(to).into(),
            above_bounds: above.collect(),
            now,
        }
    }

    /// The first queue that does not stand over its bound any more, so that it gives nothing.
    pub(crate) fn gives_no_more(&self, state: &ClusterState) -> Option<QueueId> {
        let mut givers = self.now.iter();
        let within = givers.find(|giver| !state.queues.is_over(giver));
        within.map(|giver| giver.queue)
    }

    /// Looks anew at the queues that were over their bounds. `reclaimed`: the pods that are still
    /// to be reclaimed.
    pub(crate) fn renew(&mut self, state: &ClusterState, reclaimed: impl Iterator<Item = PodId>) {
        self.now = self.anew(state, reclaimed);
    }

    /// Whether [`Givers::renew`] would change nothing.
    pub(crate) fn are_current(
        &self,
        state: &ClusterState,
        reclaimed: impl Iterator<Item = PodId>,
    ) -> bool {
        self.now == self.anew(state, reclaimed)
    }

    fn anew(&self, state: &ClusterState, reclaimed: impl Iterator<Item = PodId>) -> Vec<Giver> {
        let Some(to) = state.queues.find(&self.to) else {
            return Vec::new();
        };
        let givers = givers(state, to, reclaimed, self.kind).into_values();
        let was_over = |giver: &Giver| self.above_bounds.contains(state.queues.name(giver.queue));
        givers.filter(was_over).collect()
    }
}

/// The queues that give these pods, each with the largest amounts that one gang loses there.
fn givers(
    state: &ClusterState,
    to: QueueId,
    reclaimed: impl Iterator<Item = PodId>,
    kind: ClaimKind,
) -> BTreeMap<QueueId, Giver> {
    let mut victims: BTreeMap<(QueueId, Option<GangId>), Demand> = BTreeMap::new();
    for pod in reclaimed.map(|id| &state.pods[id]) {
        if let Some(account) = pod.account() {
            let victim = victims.entry((account.queue, pod.gang())).or_default();
            add_demand(victim, &account.demand);
        }
    }
    let gives = |(leaf, _): &(QueueId, _)| state.queues.below_common(*leaf, to);
    let giver = |queue| Giver {
        queue,
        kind,
        largest: Demand::new(),
    };
    let mut givers: BTreeMap<QueueId, Giver> = victims
        .keys()
        .flat_map(gives)
        .map(|queue| (queue, giver(queue)))
        .collect();
    let holds = victims.iter().map(|((leaf, _), holds)| (*leaf, holds));
    for ((queue, key), amount) in state.queues.largest_of(holds) {
        if let Some(giver) = givers.get_mut(&queue) {
            giver.largest.push((key, amount));
        }
    }
    givers
}
