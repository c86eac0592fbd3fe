//! What a gang needs and whether it can be tried: looked at whenever an event touches it.

use crate::bind::timers::Timer;
use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::counts::{Counts, count};
use crate::gangs::progress::Tally;
use crate::gangs::wait::Wait;
use crate::gangs::{accounts, judge, spec};
use crate::ids::GangId;

impl Engine {
    /// Looks at every gang that was touched since the last time.
    pub(crate) fn assess_touched(&mut self, now_ms: UnixMs) {
        while let Some(gang) = self.state.touched.pop_first() {
            if self.state.gangs.get(gang).is_some() {
                self.in_hand(gang, |engine| engine.assess(gang, now_ms));
            }
        }
    }

    fn assess(&mut self, id: GangId, now_ms: UnixMs) {
        let gang = &self.state.gangs[id];
        if gang.members.is_empty() && gang.object.is_none() {
            self.remove_gang(id);
            return;
        }
        let spec = spec::spec_of(&self.state, &self.state.gangs[id]);
        let gang = &mut self.state.gangs[id];
        if gang.spec != spec {
            gang.specified_ms = now_ms;
            gang.spec = spec;
        }
        self.state.note_submitted(id);
        self.assess_as_specified(id, now_ms);
    }

    /// Looks at a gang that asks for the same as before: only what has become of its members may
    /// be something else.
    pub(crate) fn assess_as_specified(&mut self, id: GangId, now_ms: UnixMs) {
        let counts = count(&self.state, id, now_ms);
        if counts.bound + counts.assumed + counts.waiting > 0 {
            self.teller.faults.note_jobs(&self.state, id);
        }
        let quarantined = self.quarantined(id);
        let is_followed = quarantined.is_none();
        let wait = match quarantined {
            Some(verdict) => Wait::Held(verdict),
            None => self.follow_and_judge(id, &counts, now_ms),
        };
        accounts::settle_accounts(&mut self.state, id, &wait, &counts);
        let (state, settings) = (&mut self.state, &self.settings);
        self.planner
            .enter(state, settings, &self.progress, id, wait, &counts);
        if is_followed {
            self.follow_unfinished(id, &counts, now_ms);
        }
        self.tally(id, &counts);
        self.report(id, &counts);
    }

    /// Follows what has become of the members, and what the gang waits for then.
    fn follow_and_judge(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) -> Wait {
        self.follow_members(id, counts, now_ms);
        let (wait, again_ms) = judge::judge(&mut self.state, &self.progress, id, counts, now_ms);
        if let Some(again_ms) = again_ms {
            self.binder.timers.set(again_ms, Timer::Gang(id));
        }
        wait
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

    /// Sees to it that what has become of the gang is told.
    pub(crate) fn report(&mut self, id: GangId, counts: &Counts) {
        let (teller, view, binder) = self.telling();
        teller.report(view, &mut binder.outbox, id, counts);
    }
}
