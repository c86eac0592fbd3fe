//! Which gangs no other queue can reclaim: the gangs within the quota of their queue.
//!
//! Of the gangs of a queue, taken in the order non-preemptible, priority, oldest bind, each whose
//! minimum still fits the quota beside the minima before it is *protected*. What these minima leave
//! of the quota then protects surplus of the same gangs, the oldest members first; so surplus never
//! pushes out a gang. Where quotas promise more than there is, a quota is what the division of the
//! cluster leaves of it.
//!
//! A gang that is not preemptible is never evicted. Where such a gang does not fit the quota,
//! because the quota was lowered, it uses up all that is left of the quota. Else more gangs would
//! be protected beside it, and other queues could not get back their own quotas.
//!
//! What each gang holds is kept ([`crate::state::minima`]) and worked out anew only for gangs that
//! have changed.
//!
//! On GPUs of a model for which there is an entry, that entry decides, and the plain one on all
//! others. What the entry of a model protects counts in the plain quota, too: of two quotas for the
//! same GPUs each is promised once.
//!
//! Each resource that is divided is looked at by itself: reclaim takes what is over the quota of
//! the resource that is short. A gang that is over in one resource can be reclaimed for that one.

use crate::facts::{Amount, UNREADABLE_MS, UnixMs};
use crate::gangs::needed;
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId, PodId};
use crate::queues::{Demand, GovernedId, QueueId, add_demand, amount_in};
use crate::state::ClusterState;
use crate::state::minima::{Minimum, Surplus};
use crate::state::pod::{Pod, Stage};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use smallvec::SmallVec;

/// A gang that holds something in a queue, and what of it is protected from every other queue.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) minimum: Arc<Minimum>,
    /// Whether the minimum is protected. A gang that is not preemptible is never evicted, so its
    /// minimum always is.
    pub(crate) is_protected: bool,
    /// By place in [`Minimum::surplus`], what is protected of the surplus; empty: nothing is. Only
    /// gangs with a protected minimum have such surplus: no surplus stays where its gang may go.
    pub(crate) protected_surplus: Vec<bool>,
}

impl Holding {
    /// Whether the surplus at a place of [`Minimum::surplus`] is protected.
    pub(crate) fn protects(&self, place: usize) -> bool {
        self.protected_surplus.get(place) == Some(&true)
    }
}

/// The gangs that hold something in a queue, in the order in which they get quota. All minima must
/// be current, see [`follow`].
///
/// The trap: the division of over-committed quotas is the one that was last worked out, see
/// [`QueueTree::divide`](crate::queues::QueueTree::divide).
pub(crate) fn holdings(state: &ClusterState, queue: QueueId) -> Vec<Holding> {
    let mut quota = Quota::of(state, queue);
    let stays = |minimum: &Minimum| !minimum.is_preemptible();
    let minima = state.minima.of_queue(queue);
    let holdings = minima.map(|minimum| Holding {
        is_protected: quota.protects(&minimum.holds, stays(minimum)),
        protected_surplus: Vec::new(),
        minimum: Arc::clone(minimum),
    });
    let mut holdings: Vec<Holding> = holdings.collect();
    for holding in holdings.iter_mut().filter(|holding| holding.is_protected) {
        let minimum = &holding.minimum;
        holding.protected_surplus = protected_surplus(&mut quota, minimum, stays(minimum));
    }
    holdings
}

/// By place, which surplus of a gang is protected. Surplus that leaves with other surplus is
/// protected only if the other surplus is, too.
fn protected_surplus(quota: &mut Quota<'_>, minimum: &Minimum, stays: bool) -> Vec<bool> {
    if minimum.surplus.is_empty() {
        return Vec::new();
    }
    let mut protected = vec![false; minimum.surplus.len()];
    for place in minimum.surplus_order.iter().copied() {
        let Surplus { pods, leaves_with } = &minimum.surplus[place];
        let holds = held_in(quota.state, quota.queue, pods);
        let mut others = leaves_with.iter();
        protected[place] = others.all(|other| protected[*other]) && quota.protects(&holds, stays);
    }
    protected
}

/// The quota of a queue, less what the gangs that were looked at have used up of it.
struct Quota<'a> {
    state: &'a ClusterState,
    queue: QueueId,
    /// By governed key, how much of the quota no gang has used up; a key that no gang holds is not
    /// in it.
    left: Demand,
}

impl<'a> Quota<'a> {
    fn of(state: &'a ClusterState, queue: QueueId) -> Self {
        let left = Demand::new();
        Self { state, queue, left }
    }

    /// How much of the quota of a key no gang has used up yet.
    fn left_of(&mut self, key: GovernedId) -> &mut Amount {
        let known = self.left.iter().position(|(known, _)| *known == key);
        let place = known.unwrap_or_else(|| {
            let guaranteed = self.state.queues.guaranteed(self.queue, key);
            self.left.push((key, guaranteed));
            self.left.len() - 1
        });
        &mut self.left[place].1
    }

    /// Whether what is left protects amounts, which then are no longer left. Amounts of which
    /// `stays` is true are never reclaimed: where they do not fit, they use up all that is left.
    fn protects(&mut self, holds: &Demand, stays: bool) -> bool {
        let mut deciding = Demand::from_slice(holds);
        self.state.queues.keep_deciding(self.queue, &mut deciding);
        let mut fits = true;
        for (key, amount) in &deciding {
            let left = self.left_of(*key);
            match left.checked_sub(*amount) {
                Some(rest) => *left = rest,
                None if stays => *left = 0,
                None => fits = false,
            }
        }
        // What the quota of a model protects uses up the plain quota, too.
        for (key, amount) in holds.iter().filter(|_| fits) {
            let undecided = amount.saturating_sub(amount_in(&deciding, *key));
            let left = self.left_of(*key);
            *left = left.saturating_sub(undecided);
        }
        fits
    }
}

/// The time, in Unix ms, from which on a min-runtime that cannot be read lets gangs be evicted: it
/// never comes.
pub(crate) const NEVER_MS: UnixMs = UnixMs::MAX;

/// From when on min-runtimes let the minimum of a gang be evicted, or [`NEVER_MS`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct EvictableFrom {
    pub(crate) preempt_ms: UnixMs,
    pub(crate) reclaim_ms: UnixMs,
    /// A move is a restart, so both min-runtimes must have passed.
    pub(crate) move_ms: UnixMs,
}

/// Whether others may take the room of a gang, as far as what has become of the gang decides: it
/// has had its minimum. A PodGroup that was deleted protects nothing: whether its gang had its
/// minimum is not known to a process that has not seen the PodGroup.
pub(crate) fn may_lose_room(
    state: &ClusterState,
    progress: &ById<GangId, Progress>,
    id: GangId,
) -> bool {
    progress[id].start.complete_ms().is_some() || state.gangs[id].lacks_object()
}

/// Whether all these pods have a controller, which makes them anew when they are evicted.
pub(crate) fn come_back(state: &ClusterState, pods: &[PodId]) -> bool {
    pods.iter().all(|pod| state.pods[*pod].owner().is_some())
}

/// From when on min-runtimes let a minimum be evicted. A minimum that does not say when it was
/// bound counts from now.
pub(crate) fn evictable_from(
    state: &ClusterState,
    minimum: &Minimum,
    now_ms: UnixMs,
) -> EvictableFrom {
    // tests plant bugs here: min-runtime
    let since_ms = minimum.since_ms.min(now_ms);
    let (preempt_ms, reclaim_ms) = state.queues.min_runtimes_ms(minimum.queue);
    let after = |ms: u64| match ms {
        UNREADABLE_MS => NEVER_MS,
        ms => since_ms.saturating_add(ms),
    };
    EvictableFrom {
        preempt_ms: after(preempt_ms),
        reclaim_ms: after(reclaim_ms),
        move_ms: after(preempt_ms.max(reclaim_ms)),
    }
}

/// Works out anew what the gangs hold that have changed.
pub(crate) fn follow(state: &mut ClusterState) {
    follow_some(state, usize::MAX);
}

/// Works out anew what some of the gangs hold that have changed, at most so many. Returns how many
/// these were.
pub(crate) fn follow_some(state: &mut ClusterState, gangs_max: usize) -> usize {
    let changed = state.minima.take_changed(gangs_max);
    let count = changed.len();
    for gang in changed {
        let minima = match state.gangs.get(gang) {
            Some(_) => minima_of(state, gang),
            None => SmallVec::new(),
        };
        state.minima.replace(gang, minima);
    }
    count
}

/// What a gang holds, by queue.
pub(crate) fn minima_of(state: &ClusterState, id: GangId) -> SmallVec<[Arc<Minimum>; 1]> {
    let members = state.gangs[id].members.iter();
    let members = members.copied().filter(|pod| state.pods[*pod].stays());
    let mut members: SmallVec<[PodId; 4]> = members.collect();
    let account = |pod: &PodId| state.pods[*pod].account();
    let queues = members.iter().filter_map(|pod| Some(account(pod)?.queue));
    let mut queues: SmallVec<[QueueId; 2]> = queues.collect();
    queues.sort_unstable();
    queues.dedup();
    if queues.is_empty() {
        return SmallVec::new();
    }
    members.sort_unstable_by(|one, other| by_age(&state.pods[*one], &state.pods[*other]));
    let core = needed::core(state, id, &members);
    let minima = queues.into_iter();
    minima
        .map(|queue| Arc::new(minimum(state, id, queue, &members, &core)))
        .collect()
}

/// What a gang with these members and this core holds in a queue. `members`: the oldest first.
fn minimum(
    state: &ClusterState,
    id: GangId,
    queue: QueueId,
    members: &[PodId],
    core: &[PodId],
) -> Minimum {
    let gang = &state.gangs[id];
    let is_here = |pod: &Pod| pod.account().is_some_and(|account| account.queue == queue);
    let pods = members.iter().map(|pod| &state.pods[*pod]);
    let oldest = pods.clone().find(|pod| is_here(pod));
    let holds = held_in(state, queue, core);
    let since_ms = core.iter().map(|pod| bound_ms(&state.pods[*pod])).max();
    let is_settled = |pod: &Pod| matches!(pod.stage, Stage::Bound(_)) && is_here(pod);
    let surplus = needed::surplus(state, id, members, core);
    Minimum {
        gang: id,
        queue,
        order: (
            gang.spec.preemptible,
            Reverse(gang.spec.priority),
            oldest.map_or(UnixMs::MAX, bound_ms),
            Arc::clone(&gang.name),
            gang.key.namesake(),
            id,
        ),
        core: core.iter().copied().collect(),
        surplus_order: order_of(state, &surplus),
        surplus,
        holds,
        since_ms: since_ms.unwrap_or(UnixMs::MAX),
        is_settled: pods.into_iter().all(is_settled),
    }
}

/// The order in which quota protects surplus, see [`Minimum::surplus_order`].
fn order_of(state: &ClusterState, surplus: &[Surplus]) -> SmallVec<[usize; 2]> {
    let mut order: SmallVec<[usize; 2]> = (0..surplus.len()).collect();
    order.sort_by_cached_key(|place| {
        let Surplus { pods, leaves_with } = &surplus[*place];
        let pods = pods.iter().map(|pod| &state.pods[*pod]);
        let oldest = pods.map(|pod| (bound_ms(pod), &pod.name)).min();
        (leaves_with.len(), oldest)
    });
    order
}

/// What these pods hold in a queue.
fn held_in(state: &ClusterState, queue: QueueId, pods: &[PodId]) -> Demand {
    let mut holds = Demand::new();
    for account in pods.iter().filter_map(|pod| state.pods[*pod].account()) {
        if account.queue == queue {
            add_demand(&mut holds, &account.demand);
        }
    }
    holds
}

/// The order of age, the oldest first: the newest could be surplus, which leaves first.
fn by_age(one: &Pod, other: &Pod) -> core::cmp::Ordering {
    let by_age = bound_ms(one).cmp(&bound_ms(other));
    by_age.then_with(|| one.name.cmp(&other.name))
}

/// When a member was bound; a member that is being bound is the newest.
fn bound_ms(pod: &Pod) -> UnixMs {
    let bound_ms = pod.own.as_ref().and_then(|own| own.bound_ms);
    bound_ms.unwrap_or(UnixMs::MAX)
}
