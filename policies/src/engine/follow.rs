//! What has become of a gang: how far it has come, what it waits for, and what follows from that.
//!
//! Two phases follow gangs: settle follows the gangs that an event or the time has touched, and
//! plan the gangs whose members it has given places or refused.

use crate::bind::timers::Timer;
use crate::engine::Engine;
use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::lifecycle::Consequences;
use crate::gangs::progress::Tally;
use crate::gangs::wait::Wait;
use crate::gangs::{accounts, judge, lifecycle};
use crate::ids::GangId;
use crate::tell::taken;

impl Engine {
    /// Takes in how far a gang has come by what has become of its members, and what it waits for
    /// now.
    pub(super) fn follow(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        let leading = self.binder.is_leading();
        let (state, settings, progress) = (&self.state, &self.settings, &mut self.progress);
        let consequences =
            lifecycle::follow_members(state, settings, progress, id, counts, leading, now_ms);
        self.carry_out(id, consequences);
        let consequences = lifecycle::follow_failed_cards(&self.state, id, counts, leading, now_ms);
        self.carry_out(id, consequences);
        // A gang that is being bound gives no room to claimants; once it is bound, it may.
        if self.progress[id].note_binding(counts.assumed > 0) {
            self.planner.note_chance_to_claim();
        }
        if self.settings.reservations > 0 {
            if let Some(run) = self.planner.ended_run(id, counts, now_ms) {
                self.state.note_runtime(id, run.runtime_ms);
                // A replica that does not lead learns runtimes, too; the forecast counts once,
                // where the leader is.
                if leading {
                    self.forecasts.note_run(run);
                }
            }
            let is_complete = self.progress[id].start.complete_ms().is_some();
            self.planner
                .follow_run(&self.state, id, counts, is_complete, now_ms);
        }
        let (wait, again_ms) = judge::judge(&mut self.state, &self.progress, id, counts, now_ms);
        if let Some(again_ms) = again_ms {
            self.binder.timers.set(again_ms, Timer::Gang(id));
        }
        self.stand(id, wait, counts);
        self.follow_unfinished(id, counts, now_ms);
    }

    /// Unwinds an unfinished gang, or unfinished sub-groups, that cannot be completed.
    pub(super) fn follow_unfinished(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) {
        let leading = self.binder.is_leading();
        let has_turn = self.planner.waiting()[id].wait == Wait::Turn;
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
            let (state, progress) = (&self.state, &mut self.progress);
            let pods = self.binder.evict_below(state, progress, id, group, cause);
            if let Some(news) = taken::members_evicted(state, id, group, cause, pods) {
                self.binder.outbox.announce(news);
            }
        }
    }

    /// Enters what a gang waits for: in the accounts of its queue, in the queue's line, in the
    /// numbers of gangs, and in what is to be told.
    pub(super) fn stand(&mut self, id: GangId, wait: Wait, counts: &Counts) {
        accounts::settle_accounts(&mut self.state, id, &wait, counts);
        let (state, settings) = (&mut self.state, &self.settings);
        self.planner
            .enter(state, settings, &self.progress, id, wait, counts);
        self.tally(id, counts);
        self.report(id, counts);
    }

    /// Counts the gang in its queue and the queues above it, as a waiting or a running gang.
    fn tally(&mut self, id: GangId, counts: &Counts) {
        let gang = &self.state.gangs[id];
        let waits = counts.needed > 0 && self.planner.waiting()[id].wait != Wait::Nothing;
        let runs = counts.needed == 0 && counts.bound > 0;
        let queue = self.state.queues.find(&gang.spec.queue);
        let now = queue
            .filter(|_| waits || runs)
            .map(|queue| Tally { queue, runs });
        self.replace_tally(id, now);
    }

    /// Lets a gang count as `now` in its queue and the queues above it; `None`: it does not count.
    pub(crate) fn replace_tally(&mut self, id: GangId, now: Option<Tally>) {
        let before = self.progress[id].replace_tally(now);
        if before != now {
            self.teller.note_tally(&self.state, before, now);
        }
    }

    /// Lets the statuses of the gang and its pods be looked at in phase 6.
    pub(crate) fn report(&mut self, id: GangId, counts: &Counts) {
        let (teller, scene, binder) = self.telling();
        teller.report(scene.view(), &mut binder.outbox, id, counts);
    }

    /// Lets the statuses of the gang and its pods be looked at in phase 6. If the gang was refused,
    /// its sentence is made again.
    pub(super) fn report_anew(&mut self, id: GangId, counts: &Counts) {
        let (teller, scene, binder) = self.telling();
        teller.report_anew(scene.view(), &mut binder.outbox, id, counts);
    }
}
