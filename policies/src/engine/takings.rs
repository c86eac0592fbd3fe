//! Within phases 3 and 4: what becomes of takings, the eviction plans that are being carried out.

use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::request;
use crate::ids::{GangId, NodeId};
use crate::state::holds::Holder;
use crate::state::node::Node;
use crate::tell::taken;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

impl Engine {
    /// Follows the takings: gangs whose room has come are tried; takings whose room does not come
    /// are ended.
    pub(super) fn follow_takings(&mut self, now_ms: UnixMs) {
        for (gang, failure) in self.binder.take_failed() {
            // Several requests of one taking may have failed: the first one has ended it.
            if self.binder.takings.get(gang).is_some() {
                self.tell_failure(gang, &taken::why_failed(&failure));
                self.fail_taking(gang, now_ms);
            }
        }
        let queues_changed = self.state.holds.take_change_of_queues();
        self.binder.renew_givers(&mut self.state, queues_changed);
        if queues_changed {
            self.end_takings_beyond_bounds(now_ms);
        }
        if self.binder.take_begun() {
            self.planner.note_chance_to_claim();
        }
        self.state.end_old_holds(now_ms);
        let stirred = self.state.holds.take_stirred();
        let mut holders: BTreeSet<Holder> = BTreeSet::new();
        for node in stirred {
            let lost = !self.state.nodes.get(node).is_some_and(Node::keeps_holds);
            for holder in self.state.holds.on_node(node).collect::<Vec<_>>() {
                match holder {
                    Holder::Gang(gang) if lost => self.lose_room(gang, node, now_ms),
                    Holder::Owner(_) if lost => self.state.end_hold(holder),
                    holder => drop(holders.insert(holder)),
                }
            }
        }
        for holder in holders {
            if let Holder::Gang(gang) = holder
                && self.state.is_room_there(holder)
            {
                let (state, settings) = (&mut self.state, &self.settings);
                self.planner.wake(state, settings, &self.progress, gang);
            }
        }
    }

    /// Does not count any more on pods that should have been gone for a minute. A gang that holds
    /// room on the node of such a pod may still get that room from other pods: the status of the
    /// gang names those that leave.
    pub(super) fn give_up_stuck(&mut self, now_ms: UnixMs) {
        for node in self.state.give_up_stuck(now_ms) {
            for holder in self.state.holds.on_node(node).collect::<Vec<_>>() {
                if let Holder::Gang(gang) = holder {
                    let counts = count(&self.state, gang, now_ms);
                    self.report_anew(gang, &counts);
                }
            }
        }
    }

    /// Ends the takings of gangs that bounds of queues now keep from starting, whatever leaves.
    fn end_takings_beyond_bounds(&mut self, now_ms: UnixMs) {
        for gang in self.binder.takings.gangs().collect::<Vec<_>>() {
            let hold = self.state.holds.get(Holder::Gang(gang));
            let Some((queue, demand)) = hold.and_then(|hold| hold.booked.as_ref()) else {
                continue;
            };
            let preemptible = self.state.gangs[gang].spec.preemptible;
            let queues = &mut self.state.queues;
            if !queues.keeps_bounds(*queue, demand, preemptible) {
                self.end_taking(gang, now_ms);
                self.planner.note_change_of_claim(gang);
                // The gang is refused for the bound now.
                let (state, settings) = (&mut self.state, &self.settings);
                self.planner.wake(state, settings, &self.progress, gang);
            }
        }
    }

    /// Ends the taking of a gang that asks for something else now, or for nothing.
    pub(super) fn follow_taking(&mut self, gang: GangId, now_ms: UnixMs) {
        let Some(taking) = self.binder.takings.get(gang) else {
            return;
        };
        let waits = self.planner.waiting()[gang].place.is_some();
        if !waits || taking.asks != request::asks(&self.state, gang) {
            self.end_taking(gang, now_ms);
            self.planner.note_change_of_claim(gang);
        }
    }

    /// Ends the taking of a gang that will not have its room on a node, and says so.
    fn lose_room(&mut self, gang: GangId, node: NodeId, now_ms: UnixMs) {
        if self.binder.takings.get(gang).is_none() {
            return;
        }
        let sentence = taken::why_lost(&self.state, gang, node);
        self.tell_failure(gang, &sentence);
        self.fail_taking(gang, now_ms);
    }

    fn tell_failure(&mut self, gang: GangId, sentence: &str) {
        if let Some(news) = taken::plan_failed(&self.state, gang, sentence) {
            self.binder.outbox.announce(news);
        }
    }

    /// Ends the taking of a gang for `first`, which comes before it: the gang is planned anew at
    /// once. If pods were evicted for the gang, an event on it names `first`, which gets that room.
    pub(super) fn displace(&mut self, gang: GangId, first: GangId, now_ms: UnixMs) {
        let taking = self.binder.takings.get(gang);
        if taking.is_some_and(|taking| taking.has_evicted) {
            let sentence = taken::why_displaced(&self.state, first);
            self.tell_failure(gang, &sentence);
        }
        self.end_taking(gang, now_ms);
        self.planner.claim_once_more(gang, first, now_ms);
    }

    /// Ends the taking of a gang that was refused although the room that is held for it is there:
    /// something else keeps the gang from starting. While a pod is still to leave for the gang, the
    /// taking goes on: what keeps the gang from starting may be the hold for a gang that moves,
    /// whose place is to come out of the room of that pod.
    pub(super) fn give_up_taking(&mut self, gang: GangId, now_ms: UnixMs) {
        let holder = Holder::Gang(gang);
        let hold = self.state.holds.get(holder);
        let awaits = hold.is_some_and(|hold| self.state.to_leave(hold).next().is_some());
        if self.state.is_room_there(holder) && !awaits {
            self.fail_taking(gang, now_ms);
        }
    }

    /// Ends the taking of a gang, which has come to nothing: the gang makes a pause.
    fn fail_taking(&mut self, gang: GangId, now_ms: UnixMs) {
        if self.binder.takings.get(gang).is_none() {
            return;
        }
        let pause_ms = self.settings.retry_after_ms;
        self.planner.pause_claim(gang, pause_ms, now_ms);
        self.end_taking(gang, now_ms);
    }

    /// Ends the taking of a gang that is to be planned anew, or that needs the taking no more.
    pub(super) fn end_taking(&mut self, gang: GangId, now_ms: UnixMs) {
        if !self.binder.end_taking(&mut self.state, gang, true) {
            return;
        }
        self.planner.note_ended_plan(gang, now_ms);
        if self.state.gangs.get(gang).is_some() {
            let (state, settings) = (&mut self.state, &self.settings);
            self.planner
                .offer_promise(state, settings, &self.progress, gang);
            let counts = count(&self.state, gang, now_ms);
            self.report_anew(gang, &counts);
        }
    }
}
