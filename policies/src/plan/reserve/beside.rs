//! Whether a gang may start now beside what others were promised.
//!
//! A gang may start where every other gang with a reservation still has a place at its time. Most
//! gangs leave the nodes of reservations alone, or end before these begin. Of the others it is
//! tried whether the reservations fit elsewhere, and then whether the gang fits on what the
//! reservations leave of their nodes. Reservations of gangs that come after it in the order do not
//! keep a gang from starting: they are made anew.

use super::Reservation;
use super::doubts::by_node;
use super::ends::Ends;
use super::future::{self, Start};
use super::lay_out::lay_out;
use crate::facts::UnixMs;
use crate::gangs::progress::Progress;
use crate::gangs::wanted;
use crate::ids::{ById, GangId, NodeId};
use crate::plan::Planner;
use crate::plan::attempt::{Asker, in_one_slice};
use crate::plan::claims;
use crate::plan::order::CandidateKind;
use crate::queues::{Demand, QueueId};
use crate::resources::Resources;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::{Checkpoint, Txn};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

impl Planner {
    /// Lets a gang start in the places that it has been given in the transaction since a
    /// checkpoint, or in others, if all promises can be kept.
    ///
    /// # Errors
    /// The gang behind which it has to wait. Nothing is placed any more.
    pub(crate) fn place_beside_promises(
        &mut self,
        state: &mut ClusterState,
        asker: Asker<'_>,
        txn: &mut Txn,
        begin: Checkpoint,
        work: &mut u64,
    ) -> Result<(), GangId> {
        let mut others = self.reservations.others(asker.gang);
        let Some(first) = others.first().copied() else {
            return Ok(());
        };
        let place = self.waiting[asker.gang].place.as_ref();
        if place.is_some_and(|(_, key)| key.kind == CandidateKind::Unfinished) {
            self.reservations.doubt();
            return Ok(());
        }
        let placed = txn.placed_since(begin).iter();
        let nodes: Vec<NodeId> = placed.map(|(_, node)| *node).collect();
        if self.fits_beside(state, asker, txn, begin, &others, work) {
            return Ok(());
        }
        let (settings, progress) = (asker.settings, asker.progress);
        let own = (asker.queue, asker.gang);
        let is_promised = self.reservations.start_ms(asker.gang).is_some();
        let after = match is_promised {
            true => BTreeSet::new(),
            false => self.promised_after(state, settings, progress, own),
        };
        others.retain(|other| !after.contains(&other.gang));
        let may_start = !after.is_empty()
            && in_one_slice(state, txn, asker, work).is_ok()
            && (others.is_empty() || self.fits_beside(state, asker, txn, begin, &others, work));
        if !may_start {
            txn.rollback(state, begin);
        }
        let may_start = may_start
            || (is_promised
                && self.place_where_promised(state, asker, txn, work)
                && self.fits_beside(state, asker, txn, begin, &others, work));
        if !may_start {
            let own = Start::now(state, asker);
            let delayed = self.delayed_on(&nodes, &own, &others);
            return Err(delayed.unwrap_or(first).gang);
        }
        self.promise_anew(state, settings, progress, |it| after.contains(&it.gang));
        Ok(())
    }

    /// Places a gang with a promise where it was to be, if it fits there now: a search may choose
    /// other nodes, or find none.
    pub(crate) fn place_where_promised(
        &self,
        state: &mut ClusterState,
        asker: Asker<'_>,
        txn: &mut Txn,
        work: &mut u64,
    ) -> bool {
        let promised = &self.reservations.promised;
        future::place_where_promised(state, txn, promised, asker, work)
    }

    /// Whether a gang that was given places keeps these promises there, or in other places that it
    /// is given. If not, it has no places any more.
    fn fits_beside(
        &mut self,
        state: &mut ClusterState,
        asker: Asker<'_>,
        txn: &mut Txn,
        begin: Checkpoint,
        others: &[Start],
        work: &mut u64,
    ) -> bool {
        let own = Start::now(state, asker);
        let uses_up = may_use_up_bounds(state, asker, (&own, &self.reservations.ends), others);
        let placed = txn.placed_since(begin);
        if !uses_up && self.is_apart(placed.iter().map(|(_, node)| *node), &own, others) {
            return true;
        }
        let known = &self.reservations;
        if known.cannot_be_kept(state, others, (&own, placed)) {
            txn.rollback(state, begin);
            return false;
        }
        if self.are_kept_beside(state, asker, (txn, begin), others, work) {
            return true;
        }
        txn.rollback(state, begin);
        for (node, amounts) in self.needed_now(state, &own, others) {
            txn.withhold(state, node, amounts);
        }
        let is_placed = in_one_slice(state, txn, asker, work).is_ok();
        txn.give_back_withheld(state, begin);
        // What is withheld keeps amounts on nodes, but no host ports or cards, and nothing under
        // the bounds of queues.
        let mut placed = txn.placed_since(begin).iter();
        let is_certain =
            !uses_up && placed.all(|(pod, _)| state.counts_by_amounts(state.pods[*pod].class));
        let is_kept = is_placed
            && (is_certain || self.are_kept_beside(state, asker, (txn, begin), others, work));
        if !is_kept {
            txn.rollback(state, begin);
        }
        is_kept
    }

    /// Whether these promises can be kept beside the places that a gang was given since a
    /// checkpoint. If so, the promised gangs may be on other nodes now.
    fn are_kept_beside(
        &mut self,
        state: &mut ClusterState,
        asker: Asker<'_>,
        (txn, begin): (&Txn, Checkpoint),
        others: &[Start],
        work: &mut u64,
    ) -> bool {
        let placed = txn.placed_since(begin).iter();
        let present = placed.map(|(pod, _)| *pod).collect();
        let end_ms = Start::now(state, asker).end_ms(&self.reservations.ends);
        let basis = self.basis(asker.settings, asker.progress, asker.now_ms);
        let places = lay_out(state, basis, others, Some((end_ms, present)), work);
        let are_kept = places.is_some();
        let places = places.unwrap_or_default();
        self.reservations.adopt(others, places, asker.now_ms);
        are_kept
    }

    /// Whether a gang uses none of the nodes of reservations that begin before it ends.
    fn is_apart(&self, nodes: impl Iterator<Item = NodeId>, own: &Start, others: &[Start]) -> bool {
        let end_ms = own.end_ms(&self.reservations.ends);
        let nodes: BTreeSet<NodeId> = nodes.collect();
        // tests plant bugs here: end-of-a-backfilled-gang
        let meets = |other: &&Start| other.at_ms < end_ms;
        let mut others = others.iter().filter(meets).map(|other| other.gang);
        others.all(|gang| {
            let mut promised = self.reservations.promised.iter();
            let known = promised.find(|it| it.start.gang == gang);
            let mut places = known.into_iter().flat_map(|it| &it.places);
            places.all(|(_, node)| !nodes.contains(node))
        })
    }

    /// The first promised gang that a gang would delay on these nodes, or else by a bound.
    fn delayed_on(&self, nodes: &[NodeId], own: &Start, others: &[Start]) -> Option<Start> {
        let end_ms = own.end_ms(&self.reservations.ends);
        let meets = others.iter().filter(|other| other.at_ms < end_ms);
        let mut meets: Vec<Start> = meets.copied().collect();
        meets.sort_by_key(|other| other.at_ms);
        let mut here = meets.iter();
        let here = here.find(|other| !self.is_apart(nodes.iter().copied(), own, &[**other]));
        here.or(meets.first()).copied()
    }

    /// How much of what is free now on each node reservations will need before a gang ends.
    fn needed_now(
        &self,
        state: &ClusterState,
        own: &Start,
        others: &[Start],
    ) -> Vec<(NodeId, Resources)> {
        let ends = &self.reservations.ends;
        let end_ms = own.end_ms(ends);
        let meets = |known: &&Reservation| {
            let counts = others.iter().any(|other| other.gang == known.start.gang);
            counts && known.start.at_ms < end_ms
        };
        let promised = self.reservations.promised.iter().filter(meets);
        let by_node = by_node(state, (promised, ends), |_| true);
        let by_node = by_node.into_iter();
        let needed = by_node
            .map(|(node, promised)| (node, self.reservations.needed_on(state, node, &promised)));
        needed.filter(|(_, amounts)| !amounts.is_empty()).collect()
    }

    /// Whether a gang ends the promise to another one, because it comes before it: in the line of
    /// their queue, or else by quota, by priority or by a weight of 0 of their queues. How much
    /// each of these uses turns round with every start and every end, and no promise would be kept.
    pub(super) fn ends_promise(
        &self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        (queue, gang): (QueueId, GangId),
        (other_queue, other): (QueueId, GangId),
    ) -> bool {
        let key = |gang: GangId| self.waiting[gang].place.as_ref().map(|(_, key)| key);
        if queue == other_queue {
            return key(gang) < key(other);
        }
        let asked = |state: &ClusterState, queue, gang| {
            wanted::demand_of(state, settings, progress, gang, queue, UnixMs::MAX)
        };
        let own = asked(state, queue, gang);
        let theirs = asked(state, other_queue, other);
        claims::goes_before_lastingly(state, (queue, &own), (other_queue, theirs))
    }
}

/// Whether a gang that has been given places may keep promised gangs from starting while it runs,
/// although it is on nodes of its own: by a limit that leaves too little for all, or by a quota.
fn may_use_up_bounds(
    state: &ClusterState,
    asker: Asker<'_>,
    (own, ends): (&Start, &Ends),
    others: &[Start],
) -> bool {
    let end_ms = own.end_ms(ends);
    let meets = |other: &&Start| other.at_ms < end_ms;
    let others = others.iter().filter(meets);
    let is_preemptible = |start: &Start| state.gangs[start.gang].spec.preemptible;
    let shares_queue = |other: &Start| state.queues.common(own.queue, other.queue).next().is_some();
    let has_quota = |other: &Start| !is_preemptible(other) && shares_queue(other);
    if !is_preemptible(own) && others.clone().any(has_quota) {
        return true;
    }
    let asked = asked_by(state, asker.settings, asker.progress, others);
    !state.queues.has_room_for_all(own.queue, &asked)
}

/// What promised gangs ask for, with their queues.
pub(super) fn asked_by<'a>(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    starts: impl Iterator<Item = &'a Start>,
) -> Vec<(QueueId, Demand)> {
    let asked = starts.map(|&Start { gang, queue, .. }| {
        let demand = wanted::demand_of(state, settings, progress, gang, queue, UnixMs::MAX);
        (queue, demand)
    });
    asked.collect()
}
