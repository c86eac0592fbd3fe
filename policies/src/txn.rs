//! Changes of the state that can be undone exactly.
//!
//! The state is not cloned for an attempt: changes are made in place and noted in a journal, and a
//! rollback walks the journal backwards.

use crate::facts::{Placement, Uid};
use crate::ids::{ClassId, GangId, NodeId, PodId};
use crate::numa::CellShare;
use crate::resources::Resources;
use crate::state::ClusterState;
use crate::state::cards::Held;
use crate::state::footprints::{Footprint, add_account};
use crate::state::holds::{Hold, Holder};
use crate::state::pod::{Account, Stage};
use alloc::collections::BTreeSet;
use alloc::{boxed::Box, sync::Arc, vec::Vec};

/// The journal of one attempt. It must be committed or rolled back.
#[derive(Debug, Default)]
pub(crate) struct Txn {
    placed: Vec<(PodId, NodeId)>,
    ended: Vec<Ended>,
    /// What nodes got back for gangs that have ended as a whole.
    given_back: Vec<Arc<Footprint>>,
    /// What queues got back for pods that have ended together.
    released: Vec<Account>,
    holds: Vec<HoldChange>,
    /// The amounts on nodes that count as taken for every gang, in the order in which they were
    /// withheld.
    withheld: Vec<(NodeId, Resources)>,
}

/// A change of the holds.
#[derive(Debug)]
enum HoldChange {
    Began(Holder),
    /// With the pods that are leaving for the hold, whose room counts as staying meanwhile.
    GaveUp(Hold, Vec<PodId>),
}

/// A pod that has ended or was displaced in a transaction, with its place before that.
#[derive(Debug)]
struct Ended {
    pod: PodId,
    node: NodeId,
    stage: Stage,
    cards: Held,
    cells: Option<Box<[CellShare]>>,
    /// How many pods had been placed before.
    placed_before: usize,
    /// Whether the pod itself was booked anew, as waiting.
    is_booked: bool,
}

/// A point in the journal to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    placed: usize,
    ended: usize,
    given_back: usize,
    released: usize,
    holds: usize,
    withheld: usize,
}

impl Txn {
    /// Puts a waiting pod on a node: chooses its cards, takes the room and charges the queue.
    ///
    /// The caller must make sure that the pod waits and fits: only debug builds check it.
    pub(crate) fn place(
        &mut self,
        state: &mut ClusterState,
        pod: PodId,
        node: NodeId,
        placement: Placement,
    ) {
        debug_assert_eq!(
            state.pods[pod].stage,
            Stage::Waiting,
            "only waiting pods are placed"
        );
        debug_assert!(
            {
                let class = &state.classes[state.pods[pod].class];
                state.nodes[node].multiplicity(class) > 0
            },
            "I2: a node is never filled above its capacity"
        );
        state.pods[pod].cards = state.choose_cards(pod, node, placement);
        state.pods[pod].stage = Stage::Assumed(node);
        state.occupy(pod, node);
        self.placed.push((pod, node));
    }

    /// Ends a pod that has a place: its node and its queue get back what the pod takes. A pod
    /// without a place is left alone. If a node has less of a resource than its pods use, an end
    /// frees less of that resource, or nothing.
    ///
    /// The demand of the queue still includes the pod: fair shares are not divided anew for a
    /// what-if.
    pub(crate) fn end(&mut self, state: &mut ClusterState, pod: PodId) {
        self.leave(state, pod, Stage::Ended { succeeded: false });
    }

    /// Takes a pod off its node as if it had been evicted and made anew at once: it waits, and may
    /// be placed again. A pod without a place is left alone.
    pub(crate) fn displace(&mut self, state: &mut ClusterState, pod: PodId) {
        self.leave(state, pod, Stage::Waiting);
    }

    fn leave(&mut self, state: &mut ClusterState, pod: PodId, becomes: Stage) {
        let stage = state.pods[pod].stage;
        let Some(node) = stage.node() else { return };
        state.pods[pod].stage = becomes;
        state.vacate(pod, node, false);
        self.note_end(state, pod, (stage, node), true);
    }

    /// Ends pods as [`Txn::end`] does, only faster: queues get back what all of them take at once,
    /// and no pod is booked as waiting. So the accounts of these pods, and what queues ask for, are
    /// not to be looked at before a rollback.
    pub(crate) fn end_together(&mut self, state: &mut ClusterState, pods: &[PodId]) {
        let mut accounts = Vec::new();
        for pod in pods {
            let stage = state.pods[*pod].stage;
            let Some(node) = stage.node() else { continue };
            state.pods[*pod].stage = Stage::Ended { succeeded: false };
            state.take_off(*pod, node, false);
            let account = state.pods[*pod].account();
            if let Some(account) = account.filter(|account| account.allocated) {
                add_account(&mut accounts, account);
            }
            self.note_end(state, *pod, (stage, node), false);
        }
        self.release(state, accounts);
    }

    /// Ends all members of a gang that have places, as [`Txn::end_together`] does, only faster
    /// where sums say what they take.
    ///
    /// The members keep their places on paper: none of them may have ended in the transaction, or
    /// end or be placed in it later.
    pub(crate) fn end_gang(&mut self, state: &mut ClusterState, gang: GangId) {
        let Some(footprint) = state.footprint(gang) else {
            let members = state.gangs[gang].members.clone();
            self.end_together(state, &members);
            return;
        };
        state.shift_footprint(&footprint, false);
        self.release(state, footprint.accounts.clone());
        self.given_back.push(footprint);
    }

    fn release(&mut self, state: &mut ClusterState, accounts: Vec<Account>) {
        for account in &accounts {
            state.release(account);
        }
        self.released.extend(accounts);
    }

    fn note_end(
        &mut self,
        state: &mut ClusterState,
        pod: PodId,
        (stage, node): (Stage, NodeId),
        is_booked: bool,
    ) {
        let cards = core::mem::take(&mut state.pods[pod].cards);
        let cells = state.pods[pod].cells.take();
        self.ended.push(Ended {
            pod,
            node,
            stage,
            cards,
            cells,
            placed_before: self.placed.len(),
            is_booked,
        });
    }

    /// Holds room, of which a part may be leaving still. The holder has no hold yet.
    pub(crate) fn hold(&mut self, state: &mut ClusterState, hold: Hold) {
        self.holds.push(HoldChange::Began(hold.holder));
        state.begin_hold(hold);
    }

    /// Counts amounts on a node as taken for every gang.
    pub(crate) fn withhold(&mut self, state: &mut ClusterState, node: NodeId, amounts: Resources) {
        state.nodes[node].count_withheld(&amounts, true);
        state.node_changed(node, false);
        self.withheld.push((node, amounts));
    }

    /// Ends what was begun by [`Txn::withhold`] since a checkpoint. Pods that were placed meanwhile
    /// stay.
    pub(crate) fn give_back_withheld(&mut self, state: &mut ClusterState, since: Checkpoint) {
        let kept = since.withheld.min(self.withheld.len());
        for (node, amounts) in self.withheld.split_off(kept) {
            state.nodes[node].count_withheld(&amounts, false);
            state.node_changed(node, false);
        }
    }

    /// Gives up what is held for a holder, if anything is: the pods that are placed take the room
    /// themselves.
    pub(crate) fn give_up(&mut self, state: &mut ClusterState, holder: Holder) {
        if let Some(hold) = state.take_hold(holder, false) {
            let leavers = state.uncount_leavers(&hold);
            self.holds.push(HoldChange::GaveUp(hold, leavers));
        }
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            placed: self.placed.len(),
            ended: self.ended.len(),
            given_back: self.given_back.len(),
            released: self.released.len(),
            holds: self.holds.len(),
            withheld: self.withheld.len(),
        }
    }

    /// Undoes everything since the checkpoint: the state is as it was when the checkpoint was
    /// taken.
    pub(crate) fn rollback(&mut self, state: &mut ClusterState, to: Checkpoint) {
        self.give_back_withheld(state, to);
        // Before a pod is undone that was placed here and has ended: no sum may fall below zero.
        let kept = to.released.min(self.released.len());
        for account in self.released.drain(kept..) {
            state.charge_again(&account);
        }
        // What nodes give back and take again are sums, so their order means nothing.
        let kept = to.given_back.min(self.given_back.len());
        for footprint in self.given_back.drain(kept..) {
            state.shift_footprint(&footprint, true);
        }
        // The last change goes first: a pod may be placed after it was displaced, and end after it
        // was placed.
        loop {
            let placed = self.placed.len();
            let is_last = |ended: &mut Ended| ended.placed_before == placed;
            if self.ended.len() > to.ended
                && let Some(ended) = self.ended.pop_if(is_last)
            {
                state.pods[ended.pod].stage = ended.stage;
                state.pods[ended.pod].cards = ended.cards;
                state.pods[ended.pod].cells = ended.cells;
                match ended.is_booked {
                    true => state.occupy(ended.pod, ended.node),
                    false => state.put_on(ended.pod, ended.node),
                }
            } else if placed > to.placed
                && let Some((pod, node)) = self.placed.pop()
            {
                state.pods[pod].stage = Stage::Waiting;
                state.vacate(pod, node, false);
                state.pods[pod].cards = Held::default();
                state.pods[pod].cells = None;
            } else {
                break;
            }
        }
        // What is held and what is taken are sums of their own, so their order means nothing.
        while self.holds.len() > to.holds {
            match self.holds.pop() {
                Some(HoldChange::Began(holder)) => {
                    if let Some(hold) = state.take_hold(holder, false) {
                        state.forget_hold(&hold);
                    }
                }
                Some(HoldChange::GaveUp(hold, leavers)) => {
                    state.count_leavers(&leavers, false);
                    state.put_hold(hold);
                }
                None => {}
            }
        }
    }

    /// The pods placed so far, each with its node.
    pub(crate) fn placed(&self) -> &[(PodId, NodeId)] {
        &self.placed
    }

    /// The pods placed since a checkpoint, each with its node.
    pub(crate) fn placed_since(&self, checkpoint: Checkpoint) -> &[(PodId, NodeId)] {
        self.placed.get(checkpoint.placed..).unwrap_or_default()
    }

    /// Gives up what is held for a gang, for the pods that its members stand for, and for foreign
    /// pods of a lower priority.
    pub(crate) fn give_up_own(&mut self, state: &mut ClusterState, gang: GangId) {
        if state.holds.is_empty() {
            return;
        }
        let priority = state.gangs[gang].spec.priority;
        for lower in state.holds.foreign_below(priority).collect::<Vec<_>>() {
            self.give_up(state, lower);
        }
        self.give_up(state, Holder::Gang(gang));
        let members = state.gangs[gang].members.iter();
        let waiting = members.filter(|pod| state.pods[**pod].stage == Stage::Waiting);
        let owners = waiting.filter_map(|pod| Some(state.pods[*pod].owner()?.uid));
        for owner in owners.collect::<BTreeSet<Uid>>() {
            self.give_up(state, Holder::Owner(owner));
        }
    }

    /// Keeps all changes, and returns the placed pods, each with its node. Refused gangs hear of
    /// room that was held and is not taken. Nothing may be withheld any more.
    pub(crate) fn commit(self, state: &mut ClusterState) -> Vec<(PodId, NodeId)> {
        debug_assert!(
            self.withheld.is_empty(),
            "what was withheld for an attempt is given back before it is kept"
        );
        for change in self.holds {
            if let HoldChange::GaveUp(mut hold, leavers) = change {
                if let Holder::Foreign(..) = hold.holder {
                    state.put_hold(hold);
                    continue;
                }
                state.count_leavers(&leavers, true);
                state.announce_hold(&hold);
                state.forget_hold(&hold);
                if let Holder::Owner(owner) = hold.holder {
                    leave_to_others(state, &mut hold, owner, &self.placed);
                }
            }
        }
        self.placed
    }
}

/// Holds the places for pods of an owner that are still to come, after some were placed.
fn leave_to_others(
    state: &mut ClusterState,
    hold: &mut Hold,
    owner: Uid,
    placed: &[(PodId, NodeId)],
) {
    for (pod, node) in placed {
        let pod = &state.pods[*pod];
        if pod.owner().is_none_or(|of| of.uid != owner) {
            continue;
        }
        let of_class = |(class, _): &(ClassId, NodeId)| *class == pod.class;
        let here = |room: &(ClassId, NodeId)| of_class(room) && room.1 == *node;
        let places = &mut hold.places;
        let taken = places.iter().position(here);
        if let Some(taken) = taken.or_else(|| places.iter().position(of_class)) {
            places.remove(taken);
        }
    }
    if !hold.places.is_empty() {
        let places = core::mem::take(&mut hold.places);
        state.begin_hold(Hold::new(hold.holder, hold.to, places));
    }
}
