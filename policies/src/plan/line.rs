//! The lines of queues: which gangs come into them and leave them, and which heads the tree of
//! queues compares.

use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::progress::Start;
use crate::gangs::wait::{Refused, Wait, Wake};
use crate::gangs::{request, sub_groups, wanted};
use crate::ids::ById;
use crate::ids::GangId;
use crate::plan::Planner;
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::queues::{Demand, LineUp, QueueId};
use crate::settings::LeafOrder;
use crate::settings::Settings;
use crate::state::ClusterState;

impl Planner {
    /// Puts the gang where it now belongs: among the candidates, or parked, or nowhere.
    pub(crate) fn enter(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
        wait: Wait,
        counts: &Counts,
    ) {
        let waiting = &self.waiting[id];
        if wait == Wait::Turn
            && waiting.is_parked()
            && waiting.tried == request::fingerprint(state, id, counts)
        {
            return;
        }
        self.leave_agenda(state, settings, progress, id);
        let turn = wait == Wait::Turn;
        self.waiting[id].wait = wait;
        if !turn {
            self.waiting[id].claim.blocked_ms = None;
        }
        if !turn {
            return;
        }
        let gang = &state.gangs[id];
        let Some(queue) = state.queues.find(&gang.spec.queue) else {
            return;
        };
        let own = &progress[id];
        let unfinished = counts.needed > 0 && own.is_unfinished();
        let kind = if unfinished || !sub_groups::unfinished_of(state, progress, id).is_empty() {
            CandidateKind::Unfinished
        } else if counts.needed > 0 && own.bereaved {
            CandidateKind::Replacement
        } else {
            CandidateKind::Ordinary
        };
        // Surplus begins to wait when the minimum is met.
        let since_ms = match own.start {
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
            aged_ms: settings.aging_ms.map_or(0, aged_ms),
            priority_descending: -i64::from(gang.spec.priority),
            surplus: counts.needed == 0,
            runtime_ms: match settings.leaf_order {
                LeafOrder::Age => 0,
                LeafOrder::ShortestFirst => gang.spec.expected_runtime_ms.unwrap_or(u64::MAX),
            },
            created_ms: gang.spec.created_ms,
            name: gang.name.clone(),
            namesake: gang.key.namesake(),
        };
        self.agenda.add(queue, key.clone(), id);
        if self.waiting[id].claim.awaited.is_some() {
            self.claims.note_holder(queue, &key, id);
        }
        self.waiting[id].place = Some((queue, key));
        self.show_heads(state, settings, progress, queue);
    }

    /// Follows what has been freed. Where counting says that it helps, a shortfall may be eased;
    /// gangs of which counting says nothing are tried again.
    pub(crate) fn follow_freed(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
    ) {
        if !state.freed.is_empty() || !state.released.is_empty() {
            self.claims.note();
            self.reservations.note_freed();
        }
        let stirred = self.agenda.take_freed(state, &self.waiting);
        for queue in stirred.queues {
            self.show_heads(state, settings, progress, queue);
        }
        for gang in stirred.gangs {
            self.wake(state, settings, progress, gang);
        }
    }

    /// Whether pods have come or gone on which the places of refused gangs depend.
    pub(crate) fn is_related_anew(&self, state: &ClusterState) -> bool {
        self.agenda.is_related_anew(state)
    }

    /// Forgets what was freed, once all gangs that it may help have been tried.
    pub(super) fn forget_freed(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
    ) {
        for queue in self.agenda.forget_freed() {
            self.show_heads(state, settings, progress, queue);
        }
    }

    /// The line-up of all gangs that may be tried now.
    pub(super) fn line_up(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        work: &mut u64,
    ) -> LineUp {
        let (line_up, queues) = self.agenda.line_up();
        *work += 50 * queues.len() as u64;
        for queue in queues {
            self.show_head(state, settings, progress, line_up, queue);
        }
        line_up
    }

    /// Tells the tree of queues, in every line-up, what the next gang of a leaf asks for.
    fn show_heads(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        queue: QueueId,
    ) {
        for line_up in self.agenda.line_ups() {
            self.show_head(state, settings, progress, line_up, queue);
        }
    }

    /// Tells the tree of queues what the next gang of a leaf asks for. The demand of a gang does
    /// not change while the gang keeps its place.
    pub(super) fn show_head(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        line_up: LineUp,
        queue: QueueId,
    ) {
        let head = self.agenda.head(line_up, queue).map(|(gang, _)| gang);
        if head == self.agenda.shown(line_up, queue) {
            return;
        }
        let demand = head.map(|gang| -> Demand {
            let before = state.in_hand.replace(gang);
            let demand = wanted::demand_of(state, settings, progress, gang, queue, UnixMs::MAX);
            state.in_hand = before;
            demand
        });
        state.queues.set_candidate(line_up, queue, demand);
        self.agenda.show(line_up, queue, head);
    }

    /// Takes a gang off the agenda, from wherever it stands there.
    pub(super) fn leave_agenda(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
    ) {
        self.reservations.drop_of(id);
        self.leave_behind(state, settings, progress, id);
        if let Some((queue, key)) = &self.waiting[id].place {
            self.reservations.leave_line(*queue, key, id);
        }
        if let Some(queue) = self.leave_line(id) {
            self.show_heads(state, settings, progress, queue);
            self.advance(state, settings, progress, queue);
        }
    }

    /// Takes a gang out of its line. Returns the queue, which may have another head now.
    fn leave_line(&mut self, id: GangId) -> Option<QueueId> {
        let waiting = &mut self.waiting[id];
        let (queue, key) = waiting.place.take()?;
        match &waiting.wait {
            Wait::Room(_, wake) => self.agenda.unpark(id, wake, queue, &key),
            _ => self.agenda.remove(queue, key, id),
        }
        Some(queue)
    }

    /// Keeps a gang that was refused in its place until what the refusal names changes.
    pub(super) fn park(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
        (refused, wake): (Refused, Wake),
        now_ms: UnixMs,
    ) {
        let place = self.waiting[id].place.clone();
        self.leave_line(id);
        if let Some((queue, key)) = &place {
            self.agenda.park(state, id, &wake, (*queue, key));
        }
        let waiting = &mut self.waiting[id];
        waiting.place = place;
        waiting.wait = Wait::Room(refused, wake);
        waiting.claim.blocked_ms.get_or_insert(now_ms);
        self.claims.note();
        if let Some((queue, _)) = waiting.place {
            self.show_heads(state, settings, progress, queue);
        }
    }

    /// Lets a parked gang wait for its turn, because something that it waits for has changed. The
    /// gang itself has not changed, so it is not assessed anew.
    pub(crate) fn wake(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
    ) {
        let waiting = &mut self.waiting[id];
        let (Some((queue, key)), Wait::Room(_, wake)) = (&waiting.place, &waiting.wait) else {
            return;
        };
        let (queue, key) = (*queue, key.clone());
        self.reservations.leave_line(queue, &key, id);
        self.agenda.unpark(id, wake, queue, &key);
        self.agenda.add(queue, key, id);
        waiting.wait = Wait::Turn;
        self.has_woken = true;
        self.show_heads(state, settings, progress, queue);
    }

    /// A gang has left the line of a queue. Where no gang may pass refused ones, the gang that is
    /// first now is tried: what was freed while it stood behind others was not offered to it.
    fn advance(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        queue: QueueId,
    ) {
        if let Some(gang) = self.agenda.blocker(queue) {
            self.wake(state, settings, progress, gang);
        }
    }
}
