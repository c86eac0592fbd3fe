//! What a gang needs and whether it can be tried: looked at whenever an event touches it.

use crate::engine::Engine;
use crate::engine::outbox::StatusKey;
use crate::engine::timers::Timer;
use crate::facts::UnixMs;
use crate::gangs::counts::{Counts, count};
use crate::gangs::progress::{Start, Tally};
use crate::gangs::wait::Wait;
use crate::gangs::{accounts, judge, parts, request, spec};
use crate::ids::GangId;
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::settings::LeafOrder;
use crate::state::pod::Stage;

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
            self.note_jobs(id);
        }
        if let Some(verdict) = self.quarantined(id) {
            let wait = Wait::Held(verdict);
            accounts::settle_accounts(&mut self.state, id, &wait, &counts);
            self.enter(id, wait, &counts);
        } else {
            self.follow_members(id, &counts, now_ms);
            let (wait, again_ms) =
                judge::judge(&mut self.state, &self.progress, id, &counts, now_ms);
            if let Some(again_ms) = again_ms {
                self.timers.set(again_ms, Timer::Gang(id));
            }
            accounts::settle_accounts(&mut self.state, id, &wait, &counts);
            self.enter(id, wait, &counts);
            self.follow_unfinished(id, &counts, now_ms);
        }
        self.tally(id, &counts);
        self.report(id, &counts);
    }

    fn remove_gang(&mut self, id: GangId) {
        self.forget_search_of(id);
        self.forget_cut(id);
        self.leave_agenda(id);
        self.replace_tally(id, None);
        self.state.forget_submitted(id);
        if let Some(gang) = self.state.gangs.remove(id) {
            self.state.gang_ids.remove(&gang.key);
            self.progress.forget(id);
            self.waiting.forget(id);
            self.told.forget(id);
            self.dirty_queues = true;
        }
    }

    /// Puts the gang where it now belongs: among the candidates, or parked, or nowhere.
    fn enter(&mut self, id: GangId, wait: Wait, counts: &Counts) {
        let waiting = &self.waiting[id];
        if wait == Wait::Turn
            && waiting.is_parked()
            && waiting.tried == request::fingerprint(&self.state, id, counts)
        {
            return;
        }
        self.leave_agenda(id);
        let turn = wait == Wait::Turn;
        self.waiting[id].wait = wait;
        if !turn {
            return;
        }
        let gang = &self.state.gangs[id];
        let Some(queue) = self.state.queues.find(&gang.spec.queue) else {
            return;
        };
        let progress = &self.progress[id];
        let unfinished = counts.needed > 0 && progress.is_unfinished();
        let kind = if unfinished || !parts::cut_off(&self.state, &self.progress, id).is_empty() {
            CandidateKind::Unfinished
        } else if counts.needed > 0 && progress.bereaved {
            CandidateKind::Replacement
        } else {
            CandidateKind::Ordinary
        };
        // Surplus begins to wait when the minimum is met.
        let since_ms = match progress.start {
            Start::Complete { since_ms } if counts.needed == 0 => since_ms,
            _ => gang.spec.created_ms,
        };
        let aged_ms = |aging_ms: u64| {
            let earlier_ms = i128::from(gang.spec.priority) * i128::from(aging_ms);
            let aged_ms = i128::from(since_ms) - earlier_ms;
            i64::try_from(aged_ms).unwrap_or(i64::MAX)
        };
        let key = CandidateKey {
            kind,
            aged_ms: self.settings.aging_ms.map_or(0, aged_ms),
            priority_descending: -i64::from(gang.spec.priority),
            surplus: counts.needed == 0,
            runtime_ms: match self.settings.leaf_order {
                LeafOrder::Age => 0,
                LeafOrder::ShortestFirst => gang.spec.expected_runtime_ms.unwrap_or(u64::MAX),
            },
            created_ms: gang.spec.created_ms,
            name: gang.name.clone(),
            namesake: gang.key.namesake(),
        };
        self.agenda.add(queue, key.clone(), id);
        self.waiting[id].place = Some((queue, key));
        self.show_heads(queue);
    }

    /// Counts the gang in its queue and those above it, as one that waits or one that runs.
    fn tally(&mut self, id: GangId, counts: &Counts) {
        let gang = &self.state.gangs[id];
        let waits = counts.needed > 0 && self.waiting[id].wait != Wait::Nothing;
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
                let (pending, running) = self.gangs_by_queue.entry(queue).or_default();
                let count = if runs { running } else { pending };
                *count = count.saturating_add_signed(one);
            }
        }
    }

    /// Sees to it that what has become of the gang is told. Of one that waits for its turn or for
    /// nothing, its pods have nothing to say, nor has anybody but its PodGroup.
    pub(crate) fn report(&mut self, id: GangId, counts: &Counts) {
        self.dirty_queues = true;
        let gang = &self.state.gangs[id];
        let refused = self.waiting[id].wait.verdict().is_some();
        if refused || gang.object.is_some() || self.told[id].announced.is_some() {
            self.outbox.status(StatusKey::Gang(id));
        }
        if !refused || counts.waiting == 0 || !self.outbox.writes_statuses() {
            return;
        }
        for pod in &self.state.gangs[id].members {
            let pod = &self.state.pods[*pod];
            if pod.stage == Stage::Waiting {
                self.outbox.status(StatusKey::Pod(pod.uid));
            }
        }
    }
}
