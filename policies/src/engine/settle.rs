//! Phase 3: queues, nodes and gangs follow what is known.

use crate::bind::outbox::StatusKey;
use crate::bind::timers::Timer;
use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::counts::{Counts, count};
use crate::gangs::lifecycle::Consequences;
use crate::gangs::progress::Tally;
use crate::gangs::wait::Wait;
use crate::gangs::{accounts, judge, lifecycle, spec};
use crate::ids::GangId;
use crate::state::pod::Stage;

/// What of the planner's work a timer has asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Due {
    /// To look at some refusals again.
    pub(super) review: bool,
    /// To search once more for a gang whose search ended early.
    pub(super) search: bool,
}

impl Engine {
    /// Follows the world, whether this process leads or not.
    pub(super) fn settle(&mut self, now_ms: UnixMs) -> Due {
        self.refresh_queues(now_ms);
        let due = self.take_timers(now_ms);
        self.planner
            .follow_freed(&mut self.state, &self.settings, &self.progress);
        self.state.give_up_lost(now_ms);
        self.state.follow_offered();
        self.state.follow_reaches();
        self.binder.take_back_overtaken(&mut self.state);
        while let Some(gang) = self.state.touched.pop_first() {
            if self.state.gangs.get(gang).is_some() {
                self.in_hand(gang, |engine| engine.assess(gang, now_ms));
            }
        }
        self.state.settle_capacity();
        if core::mem::take(&mut self.state.offered.changed) {
            self.teller.dirty_queues = true;
            self.teller.faults.note_topologies(&self.state);
        }
        self.count_use(now_ms);
        due
    }

    /// Takes in what is due.
    fn take_timers(&mut self, now_ms: UnixMs) -> Due {
        let mut due = Due::default();
        while let Some(timer) = self.binder.timers.due(now_ms) {
            match timer {
                Timer::Gang(gang) => {
                    if self.state.gangs.get(gang).is_some() {
                        self.state.touched.insert(gang);
                    }
                }
                Timer::Binding(uid) => self.binder.binding_due(uid),
                Timer::QueueStatus => {}
                Timer::Review => due.review = true,
                Timer::Search => due.search = self.planner.cut.is_due(),
                // tests plant bugs here: overwritten-status
                Timer::Rewrite(key) => {
                    self.teller
                        .rewrite(&self.state, &mut self.binder.outbox, key);
                }
            }
        }
        due
    }

    /// Looks at a gang that an event, or the time, has touched: what it asks for, and what has
    /// become of it.
    fn assess(&mut self, id: GangId, now_ms: UnixMs) {
        let gang = &self.state.gangs[id];
        if gang.members.is_empty() && gang.object.is_none() {
            self.remove_gang(id);
            return;
        }
        let spec = spec::spec_of(&self.state, gang);
        let gang = &mut self.state.gangs[id];
        if gang.spec != spec {
            gang.specified_ms = now_ms;
            gang.spec = spec;
        }
        self.state.note_submitted(id);
        let counts = count(&self.state, id, now_ms);
        if counts.bound + counts.assumed + counts.waiting > 0 {
            self.teller.faults.note_jobs(&self.state, id);
        }
        match self.quarantined(id) {
            Some(verdict) => self.stand(id, Wait::Held(verdict), &counts),
            None => self.follow(id, &counts, now_ms),
        }
    }

    /// Takes in how far a gang has come by what has become of its members, and what it waits for
    /// now.
    pub(super) fn follow(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        let leading = self.binder.leading;
        let (state, settings, progress) = (&self.state, &self.settings, &mut self.progress);
        let consequences =
            lifecycle::follow_members(state, settings, progress, id, counts, leading, now_ms);
        self.carry_out(id, consequences);
        let (wait, again_ms) = judge::judge(&mut self.state, &self.progress, id, counts, now_ms);
        if let Some(again_ms) = again_ms {
            self.binder.timers.set(again_ms, Timer::Gang(id));
        }
        self.stand(id, wait, counts);
        self.follow_unfinished(id, counts, now_ms);
    }

    /// Unwinds what is bound in part and cannot be completed.
    pub(super) fn follow_unfinished(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        let leading = self.binder.leading;
        let has_turn = self.planner.waiting[id].wait == Wait::Turn;
        let (state, progress) = (&self.state, &mut self.progress);
        let consequences =
            lifecycle::follow_unfinished(state, progress, id, counts, has_turn, leading, now_ms);
        self.carry_out(id, consequences);
    }

    fn carry_out(&mut self, id: GangId, consequences: Consequences) {
        if let Some(again_ms) = consequences.again_ms {
            self.binder.timers.set(again_ms, Timer::Gang(id));
        }
        for (group, cause) in consequences.evict {
            self.binder
                .evict_below(&self.state, &mut self.progress, id, group, cause);
        }
    }

    /// Gives a gang its place: in the accounts of its queue, in the line there, in the numbers of
    /// gangs, and among those of whom something is to be told.
    fn stand(&mut self, id: GangId, wait: Wait, counts: &Counts) {
        accounts::settle_accounts(&mut self.state, id, &wait, counts);
        let (state, settings) = (&mut self.state, &self.settings);
        self.planner
            .enter(state, settings, &self.progress, id, wait, counts);
        self.tally(id, counts);
        self.report(id, counts);
    }

    fn remove_gang(&mut self, id: GangId) {
        self.planner.forget_search_of(id);
        self.planner.forget_cut(id);
        self.planner
            .leave_agenda(&mut self.state, &self.settings, &self.progress, id);
        self.replace_tally(id, None);
        self.state.forget_submitted(id);
        if let Some(gang) = self.state.gangs.remove(id) {
            self.state.gang_ids.remove(&gang.key);
            self.progress.forget(id);
            self.planner.waiting.forget(id);
            self.teller.told.forget(id);
            self.teller.dirty_queues = true;
        }
    }

    /// Counts the gang in its queue and those above it, as one that waits or one that runs.
    fn tally(&mut self, id: GangId, counts: &Counts) {
        let gang = &self.state.gangs[id];
        let waits = counts.needed > 0 && self.planner.waiting[id].wait != Wait::Nothing;
        let runs = counts.needed == 0 && counts.bound > 0;
        let queue = self.state.queues.find(&gang.spec.queue);
        let now = queue
            .filter(|_| waits || runs)
            .map(|queue| Tally { queue, runs });
        self.replace_tally(id, now);
    }

    pub(crate) fn replace_tally(&mut self, id: GangId, now: Option<Tally>) {
        let before = core::mem::replace(&mut self.progress[id].tally, now);
        if before == now {
            return;
        }
        for (tally, one) in [(before, -1), (now, 1)] {
            let Some(Tally { queue, runs }) = tally else {
                continue;
            };
            for queue in self.state.queues.path(queue) {
                let (pending, running) = self.teller.gangs_by_queue.entry(queue).or_default();
                let count = if runs { running } else { pending };
                *count = count.saturating_add_signed(one);
            }
        }
    }

    /// Sees to it that what has become of the gang is told: in its PodGroup, and where it was
    /// refused or is held also in its pods.
    pub(crate) fn report(&mut self, id: GangId, counts: &Counts) {
        self.teller.dirty_queues = true;
        let gang = &self.state.gangs[id];
        let refused = self.planner.waiting[id].wait.verdict().is_some();
        if refused || gang.object.is_some() || self.teller.told[id].announced.is_some() {
            self.binder.outbox.status(StatusKey::Gang(id));
        }
        if !refused || counts.waiting == 0 || !self.binder.outbox.writes_statuses() {
            return;
        }
        for pod in &self.state.gangs[id].members {
            let pod = &self.state.pods[*pod];
            if pod.stage == Stage::Waiting {
                self.binder.outbox.status(StatusKey::Pod(pod.uid));
            }
        }
    }
}
