//! The state as it is expected to be at later times.
//!
//! Gangs that run leave when they are expected to end, and gangs with reservations are placed when
//! they are to start, all in one Txn that is rolled back. Room that is held for others stays held.

use super::Reservation;
use super::ends::Ends;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::gangs::{demand, wanted};
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::place::place_again;
use crate::plan::attempt::{Asker, in_one_slice};
use crate::plan::bounds;
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::{Checkpoint, Txn};
use alloc::collections::{BTreeMap, BTreeSet, btree_set};
use alloc::vec::Vec;
use core::iter::{Copied, Peekable};

/// How much work it is to end a pod, in units of about ten nanoseconds.
const END_WORK: u64 = 50;
/// How long a pod that is being deleted is expected to stay, at least.
const LEAVING_MS: u64 = 1_000;

/// What the future is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis<'a> {
    pub(super) settings: &'a Settings,
    pub(super) progress: &'a ById<GangId, Progress>,
    pub(super) ends: &'a Ends,
    /// The promises, with the places where the gangs were last laid out.
    pub(super) promised: &'a [Reservation],
    pub(super) now_ms: UnixMs,
}

/// A gang that starts at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) gang: GangId,
    pub(super) queue: QueueId,
    pub(super) at_ms: UnixMs,
    /// How long the gang runs; `None`: for ever.
    pub(super) runtime_ms: Option<u64>,
}

impl Start {
    /// The start of a gang at the present.
    pub(super) fn now(state: &ClusterState, asker: Asker<'_>) -> Self {
        Self {
            gang: asker.gang,
            queue: asker.queue,
            at_ms: asker.now_ms,
            runtime_ms: state.expectation(asker.gang).map(|it| it.runtime_ms),
        }
    }

    /// By which gangs are sorted in the order of their starts. Of those that start at one time,
    /// gangs that take no time come first: the others keep the room.
    pub(super) fn in_order(&self) -> impl Ord + use<> {
        (self.at_ms, self.runtime_ms != Some(0))
    }

    /// When the gang is expected to end: at its start if it takes no time, far in the future if it
    /// never does.
    pub(super) fn end_ms(&self, ends: &Ends) -> UnixMs {
        self.end_from(self.at_ms, ends)
    }

    /// When the gang is expected to end if it starts at another time. Members that replace lost
    /// ones end with those that run, if these still run then.
    pub(super) fn end_from(&self, at_ms: UnixMs, ends: &Ends) -> UnixMs {
        let end_ms = at_ms.saturating_add(self.runtime_ms.unwrap_or(UnixMs::MAX));
        // tests plant bugs here: end-of-replaced-members
        let run_end_ms = ends.of(self.gang).filter(|end_ms| *end_ms > at_ms);
        run_end_ms.map_or(end_ms, |run_end_ms| run_end_ms.min(end_ms))
    }
}

/// The members of a gang, each with its node.
pub(super) type Places = Vec<(PodId, NodeId)>;

/// On which nodes gangs with promises are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nodes {
    /// On nodes that are chosen anew.
    Anew,
    /// On those where they were to be, if they fit there.
    Kept,
}

/// Gangs that run, by the time of their ends.
type Running<'a> = Peekable<Copied<btree_set::Iter<'a, (UnixMs, GangId)>>>;

/// The state at one time after the other.
pub(super) struct Future<'a> {
    pub(super) state: &'a mut ClusterState,
    basis: Basis<'a>,
    nodes: Nodes,
    txn: Txn,
    began: Checkpoint,
    /// The gangs that run and have not ended yet.
    running: Running<'a>,
    /// Pods that are leaving, and gangs that were placed here, by the time of their ends.
    others: BTreeMap<UnixMs, Vec<PodId>>,
    /// Gangs that do not end as a whole: those of these pods, and those that are placed here, which
    /// may run already and have lost members.
    divided: BTreeSet<GangId>,
    pub(super) work: u64,
}

impl<'a> Future<'a> {
    /// The present. `starts`: the gangs that will be placed.
    pub(super) fn begin<'b>(
        state: &'a mut ClusterState,
        basis: Basis<'a>,
        nodes: Nodes,
        starts: impl Iterator<Item = &'b Start>,
    ) -> Self {
        let txn = Txn::default();
        let mut future = Self {
            began: txn.checkpoint(),
            work: 0,
            state,
            basis,
            nodes,
            txn,
            running: basis.ends.in_order().peekable(),
            others: BTreeMap::new(),
            divided: starts.map(|start| start.gang).collect(),
        };
        for pod in future.state.holds.leaving().collect::<Vec<_>>() {
            let deletion_ms = future.state.pods[pod].deletion_ms.unwrap_or(0);
            future.let_leave(leaves_ms(deletion_ms, basis.now_ms), &[pod]);
        }
        future
    }

    /// When the future begins.
    pub(super) fn now_ms(&self) -> UnixMs {
        self.basis.now_ms
    }

    /// When the next pods leave.
    pub(super) fn next_end_ms(&mut self) -> Option<UnixMs> {
        let running = self.running.peek().map(|(end_ms, _)| *end_ms);
        let others = self.others.first_key_value().map(|(end_ms, _)| *end_ms);
        running.into_iter().chain(others).min()
    }

    /// Lets pods leave at a time that have a place.
    pub(super) fn let_leave(&mut self, at_ms: UnixMs, pods: &[PodId]) {
        let gangs = pods.iter().filter_map(|pod| self.state.pods[*pod].gang());
        self.divided.extend(gangs);
        self.others.entry(at_ms).or_default().extend(pods);
    }

    /// Lets everything leave that is expected to leave by a time.
    pub(super) fn advance(&mut self, to_ms: UnixMs) {
        while let Some((_, gang)) = self.running.next_if(|(end_ms, _)| *end_ms <= to_ms) {
            let members = &self.state.gangs[gang].members;
            if self.divided.contains(&gang) {
                let members = members.clone();
                self.end(&members);
            } else {
                self.work += END_WORK * members.len() as u64;
                self.txn.end_gang(self.state, gang);
            }
        }
        while let Some(entry) = self.others.first_entry()
            && *entry.key() <= to_ms
        {
            let pods = entry.remove();
            self.end(&pods);
        }
    }

    fn end(&mut self, pods: &[PodId]) {
        self.txn.end_together(self.state, pods);
        self.work += END_WORK * pods.len() as u64;
    }

    /// Places what a gang wants next, at the time that has been reached.
    ///
    /// # Errors
    /// Why there is no place.
    pub(super) fn place(&mut self, start: &Start) -> Result<(), Reason> {
        let begin = self.txn.checkpoint();
        self.txn.give_up_own(self.state, start.gang);
        let counts = count(self.state, start.gang, self.basis.now_ms);
        if counts.short {
            // The gang has lost members, and is expected to end with the others before this time.
            self.txn.rollback(self.state, begin);
            return Err(Reason::MembersLost);
        }
        let asker = Asker {
            settings: self.basis.settings,
            progress: self.basis.progress,
            gang: start.gang,
            queue: start.queue,
            counts,
            now_ms: self.basis.now_ms,
        };
        let (promised, work) = (self.basis.promised, &mut self.work);
        let is_kept = self.nodes == Nodes::Kept
            && place_where_promised(self.state, &mut self.txn, promised, asker, work);
        if !is_kept
            && let Err((refused, _)) =
                in_one_slice(self.state, &mut self.txn, asker, &mut self.work)
        {
            self.txn.rollback(self.state, begin);
            return Err(refused.reason);
        }
        // A gang whose promise could not be kept starts now at the earliest: an end in the past
        // would promise its room to another gang that has to wait for it.
        let end_ms = start.end_from(start.at_ms.max(self.basis.now_ms), self.basis.ends);
        if end_ms < UnixMs::MAX {
            let placed = self.txn.placed_since(begin).iter();
            let pods: Vec<PodId> = placed.map(|(pod, _)| *pod).collect();
            self.let_leave(end_ms, &pods);
        }
        Ok(())
    }

    /// Where each of these gangs was placed.
    pub(super) fn places_of<'b>(&self, starts: impl Iterator<Item = &'b Start>) -> Vec<Places> {
        let mut by_gang: BTreeMap<Option<GangId>, Places> = BTreeMap::new();
        for (pod, node) in self.txn.placed() {
            let places = by_gang.entry(self.state.pods[*pod].gang()).or_default();
            places.push((*pod, *node));
        }
        let places = starts.map(|start| by_gang.remove(&Some(start.gang)));
        places.map(Option::unwrap_or_default).collect()
    }

    /// Undoes everything. Returns the work that was done, in units of about ten nanoseconds.
    pub(super) fn finish(mut self) -> u64 {
        self.txn.rollback(self.state, self.began);
        self.work
    }
}

/// When a pod is expected to have left that is to be deleted at a time.
pub(super) fn leaves_ms(deletion_ms: UnixMs, now_ms: UnixMs) -> UnixMs {
    deletion_ms.max(now_ms.saturating_add(LEAVING_MS))
}

/// Places what a gang wants next where it was to be. Returns whether the gang still wants just
/// that, and it fits there and within the bounds of its queue.
pub(super) fn place_where_promised(
    state: &mut ClusterState,
    txn: &mut Txn,
    promised: &[Reservation],
    asker: Asker<'_>,
    work: &mut u64,
) -> bool {
    let Asker {
        settings,
        progress,
        gang,
        queue,
        now_ms,
        ..
    } = asker;
    let mut promised = promised.iter();
    let Some(known) = promised.find(|known| known.start.gang == gang) else {
        return false;
    };
    let known = &known.places;
    *work += 20 * known.len() as u64;
    let waiting = demand::first_waiting(state, gang, now_ms, usize::MAX);
    let waiting: BTreeSet<PodId> = waiting.into_iter().collect();
    if !known.iter().all(|(pod, _)| waiting.contains(pod)) {
        return false;
    }
    let demand = demand::demand_of_pods(state, known.iter().map(|(pod, _)| pod));
    let requests = wanted::requests(state, settings, progress, gang, queue, now_ms);
    let has_room = bounds::within_bounds(state, gang, queue, &demand).is_ok();
    let request = requests.first().filter(|_| has_room);
    let request = request.filter(|request| request.fewest(0) <= known.len());
    request.is_some_and(|request| place_again(state, txn, request, known))
}
