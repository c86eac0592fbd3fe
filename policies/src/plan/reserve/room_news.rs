//! Whether room that has come may let a gang with a promise start earlier.
//!
//! To pull promises forward takes a look at all nodes, and most room that comes is of no use for
//! that: a node has room for a member only when the last of several gangs has left it. So it is
//! asked first whether a node with news could have room for a member at the promised start, or
//! before, if all leave that are expected to. If none could, places could be found for no promise
//! that were not there before the news.
//!
//! That rests on what the last round of pulling has found out. So all room counts as useful after
//! promises were made, moved or ended since, and wherever something other than amounts on nodes may
//! decide: bounds of queues, holds, cards, host ports, volumes.

use super::beside::asked_by;
use super::future::Start;
use super::sums::taken;
use super::{Reservation, Reservations};
use crate::facts::UnixMs;
use crate::gangs::progress::Progress;
use crate::ids::{ById, ClassId, GangId, NodeId, PodId};
use crate::plan::Planner;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::pod::{Pod, Stage};
use alloc::collections::BTreeSet;

/// Room that has come on some nodes.
#[derive(Debug, Default)]
pub(super) struct RoomNews {
    has_come: bool,
    /// The nodes on which it may have come since promises were last held against news.
    nodes: BTreeSet<NodeId>,
    /// Any node may be one of these.
    is_anywhere: bool,
    /// More than the room on nodes with news may decide whether promises can be pulled forward.
    more_decides: bool,
}

impl RoomNews {
    /// Notes that room has come on nodes that have changed.
    pub(super) fn note(&mut self) {
        self.has_come = true;
    }

    /// Notes nodes that have changed, whether room has come there or not; `None`: any may have.
    pub(super) fn note_changed(&mut self, changed: Option<&BTreeSet<NodeId>>) {
        match changed {
            Some(changed) => self.nodes.extend(changed),
            None => self.is_anywhere = true,
        }
    }

    fn forget_nodes(&mut self) {
        self.nodes.clear();
        self.is_anywhere = false;
    }

    /// Notes that room comes on the nodes of a gang, of which members are leaving.
    pub(super) fn note_members(&mut self, state: &ClusterState, id: GangId) {
        let members = state.gangs[id].members.iter();
        let nodes = members.filter_map(|pod| state.pods[*pod].stage.node());
        self.nodes.extend(nodes);
    }

    /// Notes that a promise was made, moved or ended: what keeps other gangs from earlier starts
    /// than they are promised is not known any more.
    pub(super) fn note_promises(&mut self) {
        self.more_decides = true;
    }
}

impl Reservations {
    /// Takes in whether the room that has come may be of use to a gang with a promise.
    pub(super) fn weigh_room(&mut self, state: &ClusterState, now_ms: UnixMs) {
        let has_come = core::mem::take(&mut self.room_news.has_come);
        // Gangs that wait behind promises may start beside them now.
        self.is_changed |= has_come;
        if !self.has_promises() {
            self.room_news.forget_nodes();
            return;
        }
        self.room_news.note_changed(self.seen.changed.as_ref());
        if !has_come {
            return;
        }
        let news = &self.room_news;
        let mut later = self.promised.iter().filter(|it| it.start.at_ms > now_ms);
        self.room_came |= news.more_decides
            || news.is_anywhere
            || !state.holds.is_empty()
            || later.any(|promised| self.may_use(state, promised, &news.nodes));
        self.room_news.forget_nodes();
    }

    /// Whether one of these nodes may have room for a member of a promised gang by its start.
    fn may_use(
        &self,
        state: &ClusterState,
        promised: &Reservation,
        nodes: &BTreeSet<NodeId>,
    ) -> bool {
        let Start { gang, at_ms, .. } = promised.start;
        let members = state.gangs[gang].members.iter();
        let members = members.map(|pod| &state.pods[*pod]);
        let waiting = members.filter(|pod| pod.stage == Stage::Waiting);
        let counts_amounts = |pod: &Pod| pod.claims.is_none() && state.counts_by_amounts(pod.class);
        if waiting.clone().any(|pod| !counts_amounts(pod)) {
            return true;
        }
        let classes: BTreeSet<ClassId> = waiting.map(|pod| pod.class).collect();
        let mut classes = classes.into_iter();
        classes.any(|class| {
            let mut nodes = nodes.iter();
            nodes.any(|node| self.has_room_by(state, *node, class, at_ms))
        })
    }

    /// Whether a node has amounts for a pod of a class at a time, if all leave it that are expected
    /// to by then.
    fn has_room_by(&self, state: &ClusterState, id: NodeId, class: ClassId, at_ms: UnixMs) -> bool {
        let Some(node) = state.nodes.get(id) else {
            return false;
        };
        let leaves = |pod: &&PodId| {
            let pod = &state.pods[**pod];
            let end_ms = pod.gang().and_then(|gang| self.ends.of(gang));
            pod.leaving || end_ms.is_some_and(|end_ms| end_ms <= at_ms)
        };
        let left = || node.pods.iter().filter(leaves).copied();
        let mut requests = state.classes[class].requests.iter();
        // tests plant bugs here: room-that-is-of-use
        requests.all(|(resource, amount)| {
            let room = u128::from(node.free(*resource)) + taken(state, *resource, left());
            room >= u128::from(*amount)
        })
    }
}

impl Planner {
    /// Takes in that a round of pulling promises forward begins, which finds out about all of them,
    /// and whether holds or bounds of queues may decide when promised gangs start.
    pub(super) fn note_round(
        &mut self,
        state: &ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
    ) {
        let starts = self.reservations.starts();
        let asked = asked_by(state, settings, progress, starts.iter());
        let is_bounded = |start: &Start| {
            let is_preemptible = state.gangs[start.gang].spec.preemptible;
            !is_preemptible || !state.queues.has_room_for_all(start.queue, &asked)
        };
        let is_bounded = starts.iter().any(is_bounded);
        self.reservations.room_news.more_decides = is_bounded || !state.holds.is_empty();
    }
}
