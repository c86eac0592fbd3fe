//! Room that is coming, and the gangs for which it is held.
//!
//! A pod *is leaving* while it is being deleted, and from the moment at which its eviction for a
//! gang that waits was decided. A *hold* keeps room for such a gang. For all other gangs a node,
//! and a limit, counts as taken
//!
//! ```text
//! what stays + the larger of what is leaving and what is held
//! ```
//!
//! so that no other gang gets the room of a hold, and none is kept from room that is free beside
//! it. The gang itself gives its hold up in the Txn in which it is placed.
//!
//! A pod that is not gone a minute after its time is *stuck*: its room is not coming any more.

use super::ClusterState;
use super::pod::Pod;
use super::sets::take_out;
use crate::facts::{Uid, UnixMs};
use crate::ids::{ClassId, GangId, NodeId, PodId, ResourceId};
use crate::queues::{Demand, QueueId, add_demand};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How long after the time by which a pod was to be gone its room still counts as coming.
const STUCK_AFTER_MS: u64 = 60_000;

/// A gang, an owner or a foreign pod for which room is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// A gang that waits.
    Gang(GangId),
    /// The pods that a controller makes in the place of pods that were moved.
    Owner(Uid),
    /// A foreign pod of this priority, for which its scheduler makes room on a node. Gangs of a
    /// higher priority give the hold up before they are placed, as kube-scheduler does.
    Foreign(i32, Uid),
}

/// Room that is held.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) holder: Holder,
    /// The queue that is charged, and whether for a gang that is preemptible; `None` for a foreign
    /// pod.
    pub(crate) to: Option<(QueueId, bool)>,
    /// Each is room for a pod of a class on a node.
    pub(crate) places: Vec<(ClassId, NodeId)>,
    /// The pods whose leaving makes the room, evicted or by themselves; some may be gone. What is
    /// held for others does not come out of the room of these pods when the holder is placed: no
    /// holder takes the room of another's leavers first and leaves that other to wait for its own.
    pub(crate) leavers: Vec<Uid>,
    /// What the queue is charged for, while the hold is in force.
    pub(crate) booked: Option<(QueueId, Demand)>,
}

/// All holds, and what is leaving.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    holds: BTreeMap<Holder, Hold>,
    /// The holders that have a hold on each node.
    by_node: BTreeMap<NodeId, BTreeSet<Holder>>,
    /// The pods that are leaving.
    leaving: BTreeSet<PodId>,
    /// The nodes on which more is leaving than is held.
    outgoing: BTreeSet<NodeId>,
    /// When pods that are being deleted become stuck.
    stuck_at: BTreeSet<(UnixMs, PodId)>,
    /// When holds for owners end.
    ends: BTreeMap<Uid, UnixMs>,
    /// Nodes whose holds may not be kept, and nodes with holds that a pod has left, since takings
    /// were last followed.
    pub(super) stirred: BTreeSet<NodeId>,
    /// Queues have changed since takings were last followed.
    pub(super) queues_changed: bool,
    /// Pods that count elsewhere, for something else, or nowhere, since takings were last followed:
    /// some of them may be pods that a taking reclaims.
    pub(super) rebooked: Vec<Uid>,
}

impl Holds {
    pub(crate) fn get(&self, holder: Holder) -> Option<&Hold> {
        self.holds.get(&holder)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values()
    }

    /// Whether anything is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    /// The holders that have a hold on a node.
    pub(crate) fn on_node(&self, node: NodeId) -> impl Iterator<Item = Holder> {
        self.by_node.get(&node).into_iter().flatten().copied()
    }

    /// The foreign pods below a priority for which room is held.
    pub(crate) fn foreign_below(&self, priority: i32) -> impl Iterator<Item = Holder> {
        let first = Holder::Foreign(i32::MIN, Uid(0));
        let holds = self.holds.range(first..Holder::Foreign(priority, Uid(0)));
        holds.map(|(holder, _)| *holder)
    }

    /// The pods that are leaving, in no order that means anything; some have no place.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = PodId> {
        self.leaving.iter().copied()
    }

    /// The nodes on which more is leaving than is held.
    pub(crate) fn outgoing(&self) -> impl Iterator<Item = NodeId> {
        self.outgoing.iter().copied()
    }

    /// Notes whether more is leaving on a node than is held.
    pub(super) fn note_outgoing(&mut self, node: NodeId, is_outgoing: bool) {
        match is_outgoing {
            true => self.outgoing.insert(node),
            false => self.outgoing.remove(&node),
        };
    }

    /// When the next pod becomes stuck, or the next hold ends.
    pub(crate) fn deadline(&self) -> Option<UnixMs> {
        let stuck = self.stuck_at.first().map(|(at_ms, _)| *at_ms);
        self.ends.values().copied().chain(stuck).min()
    }

    /// Takes the nodes whose holds may not be kept, and the nodes with holds that a pod has left.
    pub(crate) fn take_stirred(&mut self) -> BTreeSet<NodeId> {
        core::mem::take(&mut self.stirred)
    }

    /// Puts back what [`Holds::take_stirred`] has returned, after all changes since were undone.
    pub(crate) fn restore_stirred(&mut self, stirred: BTreeSet<NodeId>) {
        self.stirred = stirred;
    }

    /// Whether queues have changed since this was last asked.
    pub(crate) fn take_change_of_queues(&mut self) -> bool {
        core::mem::take(&mut self.queues_changed)
    }

    /// Whether queues have changed since [`Holds::take_change_of_queues`].
    pub(crate) fn have_queues_changed(&self) -> bool {
        self.queues_changed
    }

    /// Takes the pods that count elsewhere, for something else, or nowhere, since the last call.
    pub(crate) fn take_rebooked(&mut self) -> Vec<Uid> {
        core::mem::take(&mut self.rebooked)
    }

    /// The pods that [`Holds::take_rebooked`] would return.
    pub(crate) fn rebooked(&self) -> &[Uid] {
        &self.rebooked
    }

    /// Lets the hold for the pods of an owner end at a time.
    pub(crate) fn end_at(&mut self, owner: Uid, at_ms: UnixMs) {
        self.ends.insert(owner, at_ms);
    }

    /// When a hold for an owner ends at the latest.
    pub(crate) fn ends_ms(&self, owner: Uid) -> Option<UnixMs> {
        self.ends.get(&owner).copied()
    }
}

impl Hold {
    pub(crate) fn new(
        holder: Holder,
        to: Option<(QueueId, bool)>,
        places: Vec<(ClassId, NodeId)>,
    ) -> Self {
        Self {
            holder,
            to,
            places,
            leavers: Vec::new(),
            booked: None,
        }
    }
}

impl ClusterState {
    /// Begins to hold room. The classes are kept until [`ClusterState::forget_hold`].
    pub(crate) fn begin_hold(&mut self, hold: Hold) {
        for (class, _) in &hold.places {
            self.classes[*class].pods += 1;
        }
        self.put_hold(hold);
    }

    /// Takes the room of a hold.
    pub(crate) fn put_hold(&mut self, mut hold: Hold) {
        for (class, node) in &hold.places {
            self.nodes[*node].count_held(&self.classes[*class], true);
            let on_node = self.holds.by_node.entry(*node).or_default();
            on_node.insert(hold.holder);
            self.node_changed(*node, false);
        }
        self.book_hold(&mut hold);
        self.holds.holds.insert(hold.holder, hold);
    }

    /// Gives back the room of a hold: the exact reverse of [`ClusterState::put_hold`]. `announce`:
    /// whether refused gangs are to hear of the room.
    pub(crate) fn take_hold(&mut self, holder: Holder, announce: bool) -> Option<Hold> {
        let mut hold = self.holds.holds.remove(&holder)?;
        let preemptible = hold.to.is_some_and(|(_, preemptible)| preemptible);
        if let Some((queue, demand)) = hold.booked.take() {
            self.queues.release_coming(queue, &demand, preemptible);
            if announce {
                self.released.insert(queue);
            }
        }
        for (class, node) in &hold.places {
            self.nodes[*node].count_held(&self.classes[*class], false);
            take_out(&mut self.holds.by_node, node, &holder);
            self.node_changed(*node, announce);
        }
        Some(hold)
    }

    /// Lets the classes of a hold go that is not in force any more.
    pub(crate) fn forget_hold(&mut self, hold: &Hold) {
        for (class, _) in &hold.places {
            self.leave_class(*class);
        }
    }

    /// Takes one place out of what is held for the owner of a pod: the pod is to have that place.
    /// Nothing happens where no room for its class is held on the node.
    pub(crate) fn take_place_of_owner(&mut self, pod: PodId, node: NodeId) {
        let Some(owner) = self.pods[pod].owner().map(|owner| owner.uid) else {
            return;
        };
        let room = (self.pods[pod].class, node);
        self.drop_place_of_owner(owner, |place| *place == room);
    }

    /// Where a node does not keep its holds, takes one place there, for whatever class, out of what
    /// is held for the owner of a pod: the pod was given room that was held for its owner.
    pub(crate) fn yield_place_of_owner(&mut self, pod: PodId, node: NodeId) {
        if !self.nodes[node].keeps_holds()
            && let Some(owner) = self.pods[pod].owner().map(|owner| owner.uid)
        {
            self.drop_place_of_owner(owner, |(_, on)| *on == node);
        }
    }

    /// Takes the first place that `which` picks out of what is held for an owner.
    fn drop_place_of_owner(&mut self, owner: Uid, which: impl Fn(&(ClassId, NodeId)) -> bool) {
        let held = self.holds.get(Holder::Owner(owner));
        let Some(place) = held.and_then(|hold| hold.places.iter().position(which)) else {
            return;
        };
        if let Some(mut hold) = self.take_hold(Holder::Owner(owner), false) {
            let (class, _) = hold.places.remove(place);
            self.leave_class(class);
            if !hold.places.is_empty() {
                self.put_hold(hold);
            }
        }
    }

    /// Ends a hold. Refused gangs hear of the room.
    pub(crate) fn end_hold(&mut self, holder: Holder) {
        if let Some(hold) = self.take_hold(holder, true) {
            self.bury_hold(&hold);
        }
    }

    /// Ends the holds whose time has come.
    pub(crate) fn end_old_holds(&mut self, now_ms: UnixMs) {
        let ends = self.holds.ends.iter();
        let old = ends.filter(|(_, at_ms)| **at_ms <= now_ms);
        for owner in old.map(|(owner, _)| *owner).collect::<Vec<_>>() {
            self.holds.ends.remove(&owner);
            self.end_hold(Holder::Owner(owner));
        }
    }

    /// Ends all holds that are booked in a queue.
    pub(crate) fn end_holds_in(&mut self, queue: QueueId) {
        let is_here = |hold: &&Hold| hold.to.is_some_and(|(to, _)| to == queue);
        let here = self.holds.iter().filter(is_here);
        for holder in here.map(|hold| hold.holder).collect::<Vec<_>>() {
            self.end_hold(holder);
        }
    }

    /// Lets refused gangs hear of the room of a hold that was given up.
    pub(crate) fn announce_hold(&mut self, hold: &Hold) {
        self.freed.extend(hold.places.iter().map(|(_, node)| *node));
        self.released.extend(hold.to.map(|(queue, _)| queue));
    }

    /// Forgets a hold for good, after it was given up.
    pub(crate) fn bury_hold(&mut self, hold: &Hold) {
        self.forget_hold(hold);
        for (_, node) in &hold.places {
            self.drop_node_if_unused(*node);
        }
    }

    /// Counts the room of the leavers of a hold as staying, and returns the pods of which it was
    /// counted as coming.
    pub(crate) fn uncount_leavers(&mut self, hold: &Hold) -> Vec<PodId> {
        let pods = hold.leavers.iter().filter_map(|uid| self.pod_ids.get(uid));
        let leaving = pods.copied().filter(|pod| self.pods[*pod].leaving);
        let leaving: Vec<PodId> = leaving.collect();
        for pod in &leaving {
            self.count_leaving(*pod, false, false);
        }
        leaving
    }

    /// Counts the room of these leavers of a hold as coming again. `announce`: whether refused
    /// gangs are to hear of room that this leaves beside holds.
    pub(crate) fn count_leavers(&mut self, leavers: &[PodId], announce: bool) {
        for pod in leavers {
            self.count_leaving(*pod, true, announce);
        }
    }

    /// Whether a holder could take now what is held for it.
    pub(crate) fn is_room_there(&self, holder: Holder) -> bool {
        let Some(hold) = self.holds.get(holder) else {
            return false;
        };
        let mut needed: BTreeMap<(NodeId, ResourceId), u128> = BTreeMap::new();
        let mut volumes: BTreeSet<(NodeId, ResourceId, &str)> = BTreeSet::new();
        for (class, node) in &hold.places {
            let class = &self.classes[*class];
            for (resource, amount) in class.apart() {
                *needed.entry((*node, *resource)).or_default() += u128::from(*amount);
            }
            for (resource, handle) in class.shared.iter().flat_map(|shared| shared.volumes()) {
                if !self.nodes[*node].shared.is_used(resource, handle)
                    && volumes.insert((*node, resource, handle))
                {
                    *needed.entry((*node, resource)).or_default() += 1;
                }
            }
        }
        let mut needed = needed.into_iter();
        needed.all(|((node, resource), amount)| self.nodes[node].is_unused(resource, amount))
    }

    /// The leavers of a hold that are still to leave their nodes.
    pub(crate) fn to_leave(&self, hold: &Hold) -> impl Iterator<Item = &Pod> {
        let pods = hold.leavers.iter().filter_map(|uid| self.pod_ids.get(uid));
        let pods = pods.map(|pod| &self.pods[*pod]);
        pods.filter(|pod| pod.leaving && pod.stage.node().is_some())
    }

    fn book_hold(&mut self, hold: &mut Hold) {
        let Some((queue, preemptible)) = hold.to else {
            return;
        };
        let mut booked = Demand::new();
        for (class, node) in &hold.places {
            add_demand(&mut booked, &self.demand(*class, Some(*node)));
        }
        booked.sort_unstable_by_key(|(key, _)| *key);
        self.queues.charge_coming(queue, &booked, preemptible);
        hold.booked = Some((queue, booked));
    }

    /// Books all holds anew, because the hierarchy of queues was built anew: its books are empty,
    /// and its numbers are others.
    pub(super) fn book_holds_anew(&mut self) {
        let holders: Vec<Holder> = self.holds.holds.keys().copied().collect();
        for holder in holders {
            let Some(mut hold) = self.holds.holds.remove(&holder) else {
                continue;
            };
            hold.booked = None;
            let named = match holder {
                Holder::Gang(gang) => {
                    let gang = self.gangs.get(gang);
                    gang.and_then(|gang| self.queues.find(&gang.spec.queue))
                }
                Holder::Owner(_) | Holder::Foreign(..) => None,
            };
            if let (Some(queue), Some((to, _))) = (named, &mut hold.to) {
                *to = queue;
                self.book_hold(&mut hold);
            }
            self.holds.holds.insert(holder, hold);
        }
    }

    /// Notes by when a pod is to be gone. A deletion is never taken back: facts that do not say it
    /// are older.
    pub(super) fn note_deletion(&mut self, pod: PodId, deletion_ms: Option<UnixMs>) {
        let Some(deletion_ms) = deletion_ms else {
            return;
        };
        let stuck_ms = |deletion_ms: UnixMs| deletion_ms.saturating_add(STUCK_AFTER_MS);
        let before_ms = self.pods[pod].deletion_ms.replace(deletion_ms);
        if before_ms != Some(deletion_ms) {
            if let Some(before_ms) = before_ms {
                self.holds.stuck_at.remove(&(stuck_ms(before_ms), pod));
            }
            self.holds.stuck_at.insert((stuck_ms(deletion_ms), pod));
        }
        self.begin_deletion(pod);
    }

    /// Takes in that a pod is being deleted.
    pub(crate) fn begin_deletion(&mut self, pod: PodId) {
        if self.pods[pod].deleting {
            return;
        }
        // Rules about other pods may count pods no more that are being deleted.
        let node = self.pods[pod].stage.node();
        if let Some(node) = node {
            self.relate(pod, node, false);
        }
        self.pods[pod].deleting = true;
        if let Some(node) = node {
            self.relate(pod, node, true);
        }
        self.set_leaving(pod, true);
    }

    /// Counts the room of a pod as coming, if it has a place or gets one, or not any more.
    pub(crate) fn set_leaving(&mut self, pod: PodId, leaves: bool) {
        self.count_leaving(pod, leaves, true);
    }

    /// `announce`: whether refused gangs are to hear of room that this leaves beside holds.
    fn count_leaving(&mut self, pod: PodId, leaves: bool, announce: bool) {
        if self.pods[pod].leaving == leaves {
            return;
        }
        self.pods[pod].leaving = leaves;
        match leaves {
            true => self.holds.leaving.insert(pod),
            false => self.holds.leaving.remove(&pod),
        };
        let Some(node) = self.pods[pod].stage.node() else {
            return;
        };
        let class = self.pods[pod].class;
        self.nodes[node].count_leaving(&self.classes[class], leaves);
        self.charge(pod, Some(node));
        let is_held = self.nodes[node].is_held();
        self.node_changed(node, is_held && leaves && announce);
    }

    /// Takes in that a pod has left its node, or has gone.
    pub(super) fn cease_leaving(&mut self, pod: PodId) {
        self.pods[pod].leaving = false;
        self.holds.leaving.remove(&pod);
        if let Some(deletion_ms) = self.pods[pod].deletion_ms.take() {
            let stuck_ms = deletion_ms.saturating_add(STUCK_AFTER_MS);
            self.holds.stuck_at.remove(&(stuck_ms, pod));
        }
    }

    /// Does not count on the room of pods any more that should have been gone for a minute. Returns
    /// the nodes of these pods.
    pub(crate) fn give_up_stuck(&mut self, now_ms: UnixMs) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        while let Some((at_ms, pod)) = self.holds.stuck_at.first().copied()
            && at_ms <= now_ms
        {
            self.holds.stuck_at.remove(&(at_ms, pod));
            // tests plant bugs here: stuck-pod
            self.set_leaving(pod, false);
            nodes.extend(self.pods[pod].stage.node());
        }
        nodes
    }
}
