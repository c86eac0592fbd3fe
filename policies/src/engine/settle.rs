//! Phase 3: queues, nodes and gangs follow what is known.

use crate::bind::timers::Timer;
use crate::engine::Engine;
use crate::event::Kind;
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::spec;
use crate::gangs::wait::Wait;
use crate::ids::GangId;

impl Engine {
    /// Follows the world, whether this process leads or not.
    pub(super) fn settle(&mut self, now_ms: UnixMs) {
        self.refresh_queues(now_ms);
        self.take_timers(now_ms);
        self.state.follow_namespaces();
        self.planner
            .follow_freed(&mut self.state, &self.settings, &self.progress);
        self.state.give_up_lost(now_ms);
        if self.state.follow_ailments(now_ms) {
            self.note_news(Kind::Node);
        }
        self.give_up_stuck(now_ms);
        self.state.follow_storage(now_ms);
        self.state.forget_amounts();
        let (binder, state) = (&mut self.binder, &mut self.state);
        binder.follow_preparations(state, &self.settings, &mut self.progress, now_ms);
        self.state.follow_offered();
        self.state.follow_reaches();
        self.binder.take_back_overtaken(&mut self.state);
        while let Some(gang) = self.state.touched.pop_first() {
            if self.state.gangs.get(gang).is_some() {
                self.in_hand(gang, |engine| engine.assess(gang, now_ms));
            }
        }
        self.follow_takings(now_ms);
        self.state.settle_capacity();
        if self.state.offered.take_change() {
            self.teller.note_offered(&self.state);
        }
        self.teller.note_queues(self.state.runtimes.follow(now_ms));
        self.count_use(now_ms);
    }

    /// Takes in the timers that are due.
    fn take_timers(&mut self, now_ms: UnixMs) {
        while let Some(timer) = self.binder.timers.due(now_ms) {
            match timer {
                Timer::Gang(gang) => {
                    if self.state.gangs.get(gang).is_some() {
                        self.state.touched.insert(gang);
                    }
                }
                Timer::Binding(uid) => self.binder.binding_due(
                    &mut self.state,
                    &self.settings,
                    &mut self.progress,
                    uid,
                    now_ms,
                ),
                Timer::QueueStatus | Timer::Pace => {}
                Timer::Review => self.teller.review_is_due(),
                Timer::Search => self.planner.repeat_is_due(),
                // tests plant bugs here: overwritten-status
                Timer::Rewrite(key) => {
                    self.teller
                        .rewrite(&self.state, &mut self.binder.outbox, key);
                }
            }
        }
    }

    /// Looks at a gang that an event, or the time, has touched: what it asks for, and what has
    /// become of it.
    fn assess(&mut self, id: GangId, now_ms: UnixMs) {
        let gang = &self.state.gangs[id];
        if gang.members.is_empty() && gang.object.is_none() {
            self.remove_gang(id, now_ms);
            return;
        }
        let spec = spec::spec_of(&self.state, gang);
        let gang = &mut self.state.gangs[id];
        if gang.spec != spec {
            gang.spec = spec;
            self.teller.note_spec(id, now_ms);
        }
        self.state.note_submitted(id);
        let counts = count(&self.state, id, now_ms);
        if counts.bound + counts.assumed > 0 || self.state.minima.holds(id) {
            self.state.note_minimum(id);
        }
        if counts.bound + counts.assumed + counts.waiting > 0 {
            self.teller.note_faults(&self.state, id);
        }
        match self.quarantined(id) {
            Some(verdict) => self.stand(id, Wait::Barred(verdict), &counts),
            None => self.follow(id, &counts, now_ms),
        }
        self.follow_taking(id, now_ms);
    }

    fn remove_gang(&mut self, id: GangId, now_ms: UnixMs) {
        self.binder.end_taking(&mut self.state, id, true);
        let (state, settings) = (&mut self.state, &self.settings);
        self.planner
            .forget_gang(state, settings, &self.progress, id, now_ms);
        self.replace_tally(id, None);
        self.state.forget_submitted(id);
        if let Some(gang) = self.state.gangs.remove(id) {
            self.state.gang_ids.remove(&gang.key);
            self.progress.forget(id);
            self.teller.forget_gang(id);
        }
    }
}
