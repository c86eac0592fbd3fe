//! Which of the refused gangs is tried next with the room of others.
//!
//! When all gangs have had their turns, the refused gangs go through a round: in the order of
//! queues and lines, each may make an eviction plan. What one plan takes, the next gang of the
//! round does not find. A round begins when something has changed since the last one began, at
//! most every half second; while nothing changes there is none.

use crate::facts::UnixMs;
use crate::gangs::progress::Progress;
use crate::gangs::request;
use crate::gangs::wait::{Shortfall, Wait, Wake};
use crate::gangs::wanted;
use crate::ids::{ById, GangId};
use crate::plan::Planner;
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::plan::victims::{self, Action, Asked, Known, NoPlan, Plan};
use crate::plan::waiting::{Awaited, Waiting};
use crate::queues::{Demand, LineUp, QueueId};
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// The least time, in ms, between the beginnings of two rounds.
const ROUND_INTERVAL_MS: u64 = 500;
/// The line-up of the gangs that are still to come in a round. The agenda has the line-ups with
/// lower numbers.
const LINE_UP: LineUp = LineUp::new(8);
/// The line-up in which two gangs of different queues are compared. It is empty before and after.
const PAIR: LineUp = LineUp::new(9);
/// How much work, in units of about ten nanoseconds, is done in a millisecond where searches take a
/// tenth of the time.
const WORK_PER_MS: u64 = 10_000;

/// The rounds of refused gangs: what may begin one, and the one that has begun.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Something has happened since the last round began that may make a plan possible.
    is_stale: bool,
    /// When the next round may begin.
    due_ms: UnixMs,
    /// When time alone makes a plan possible: a gang has run for long enough, or a delay or a pause
    /// ends.
    next_ms: Option<UnixMs>,
    /// The round does not go on before this time: searches take a tenth of the time at most.
    paused_until_ms: UnixMs,
    round: Option<Round>,
    /// The gangs with holds by queue and by their places in its line; gangs that have none any more
    /// may be among them.
    holders: BTreeMap<QueueId, BTreeSet<(CandidateKey, GangId)>>,
    /// Tables of claimants that are alike, and the search that goes on in the next slice.
    known: Known,
}

#[derive(Debug, Default)]
struct Round {
    /// The gangs that are still to come, by queue.
    lines: BTreeMap<QueueId, VecDeque<GangId>>,
    /// The kinds of gangs for which no plan was found in this round.
    refused: BTreeSet<Alike>,
}

/// A kind of gangs, of which no gang finds a plan if one has found none: the queue, what counting
/// proves that the gangs lack, whether they ask for surplus, and a hash of what they ask for, see
/// [`request::kind`].
type Alike = (QueueId, Shortfall, bool, u64);

impl Claims {
    /// Notes that something has happened that may make a plan possible.
    pub(super) fn note(&mut self) {
        self.is_stale = true;
    }

    /// Notes that a plan may be possible at a time.
    fn note_time(&mut self, at_ms: Option<UnixMs>) {
        self.next_ms = self.next_ms.into_iter().chain(at_ms).min();
    }

    /// Lets the round go on no sooner than so much work allows.
    fn charge(&mut self, work: u64, now_ms: UnixMs) {
        self.paused_until_ms = now_ms.saturating_add(work / WORK_PER_MS);
    }

    /// Lets the round go on at once. Returns whether it was to wait.
    pub(super) fn go_on(&mut self) -> bool {
        let waits = self.round.is_some() && self.paused_until_ms > 0;
        self.paused_until_ms = 0;
        waits
    }

    /// When the next round begins, or the present one goes on; `None`: not before something
    /// happens.
    fn deadline(&self, has_refused: bool) -> Option<UnixMs> {
        if self.round.is_some() {
            return Some(self.paused_until_ms);
        }
        if !has_refused {
            return None;
        }
        let due_ms = self.is_stale.then_some(self.due_ms);
        let times = due_ms.into_iter().chain(self.next_ms);
        times.min().map(|at_ms| at_ms.max(self.due_ms))
    }

    /// Notes that a gang with a hold stands in the line of a queue.
    pub(super) fn note_holder(&mut self, queue: QueueId, key: &CandidateKey, gang: GangId) {
        let line = self.holders.entry(queue).or_default();
        line.insert((key.clone(), gang));
    }

    /// Forgets the round, because queues have other numbers now.
    pub(super) fn forget_queues(&mut self) {
        self.round = None;
        self.is_stale = true;
        self.holders.clear();
        self.known = Known::default();
    }

    /// The next gang of a queue in this round.
    fn head(&self, queue: QueueId) -> Option<GangId> {
        let line = self.round.as_ref()?.lines.get(&queue)?;
        line.front().copied()
    }

    /// Takes the next gang of a queue out of this round.
    fn pass(&mut self, queue: QueueId, gang: GangId) {
        let round = self.round.as_mut();
        if let Some(line) = round.and_then(|round| round.lines.get_mut(&queue)) {
            debug_assert_eq!(line.front(), Some(&gang));
            line.pop_front();
        }
    }

    /// Lets a gang come once more in this round, as the first of its queue.
    fn once_more(&mut self, queue: QueueId, gang: GangId) {
        match &mut self.round {
            Some(round) => round.lines.entry(queue).or_default().push_front(gang),
            None => self.is_stale = true,
        }
    }
}

impl Planner {
    /// When the next round of refused gangs begins, or the present one goes on; `None`: not before
    /// something happens, or a gang is refused.
    pub(crate) fn claims_deadline(&self) -> Option<UnixMs> {
        // A gang with a promise was refused, too, and waits for nothing in the agenda.
        let has_refused = self.agenda.has_refused() || self.reservations.has_promises();
        self.claims.deadline(has_refused)
    }

    /// Takes in that all changes in the log of changed nodes between two positions were undone, so
    /// that a search that is kept goes on.
    pub(crate) fn note_undone(&mut self, from: u64, to: u64) {
        self.claims.known.note_undone(from, to);
        self.reservations.note_undone(from, to);
    }

    /// The refused gang that is to be tried next with the room of others, and its queue.
    pub(crate) fn next_claim(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        now_ms: UnixMs,
    ) -> Option<(QueueId, GangId)> {
        if self.claims.paused_until_ms > now_ms {
            return None;
        }
        if self.claims.round.is_none() {
            if self.claims_deadline().is_none_or(|at_ms| at_ms > now_ms) {
                return None;
            }
            self.begin_round(state, settings, progress, now_ms);
        }
        if let Some(search) = &self.claims.known.search {
            let (queue, gang) = (search.queue, search.gang);
            if self.may_claim(state, queue, gang) {
                return Some((queue, gang));
            }
            self.claims.known.search = None;
            self.advance_claims(state, settings, progress, queue, now_ms);
        }
        while let Some(queue) = state.queues.next_leaf(LINE_UP) {
            let gang = self.claims.head(queue)?;
            if self.may_claim(state, queue, gang) {
                self.claims.pass(queue, gang);
                return Some((queue, gang));
            }
            // The gang has gone, or changed, since a slice before this one.
            self.advance_claims(state, settings, progress, queue, now_ms);
        }
        self.claims.round = None;
        None
    }

    /// Shows the tree of queues the next gang of a queue, after the queue's first gang was tried.
    pub(crate) fn advance_claims(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        queue: QueueId,
        now_ms: UnixMs,
    ) {
        let mut next = self.claims.head(queue);
        while let Some(gang) = next.filter(|gang| !self.may_claim(state, queue, *gang)) {
            self.claims.pass(queue, gang);
            if self.end_delay(gang).is_some() {
                // A gang like this one has found no plan, so this one has none any more.
                self.offer_promise(state, settings, progress, gang);
                state.touched.insert(gang);
            }
            next = self.claims.head(queue);
        }
        let demand = next.map(|gang| -> Demand {
            wanted::demand_of(state, settings, progress, gang, queue, now_ms)
        });
        state.queues.set_candidate(LINE_UP, queue, demand);
    }

    fn begin_round(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        now_ms: UnixMs,
    ) {
        self.claims = Claims {
            due_ms: now_ms.saturating_add(ROUND_INTERVAL_MS),
            round: Some(Round::default()),
            known: core::mem::take(&mut self.claims.known),
            ..Claims::default()
        };
        for hold in state.holds.iter() {
            if let Holder::Gang(gang) = hold.holder
                && let Some((queue, key)) = &self.waiting[gang].place
            {
                self.claims.note_holder(*queue, key, gang);
            }
        }
        let mut gangs: Vec<(&QueueId, &CandidateKey, GangId)> = Vec::new();
        for (id, _) in state.gangs.iter() {
            let waiting = &self.waiting[id];
            let Some((queue, key)) = &waiting.place else {
                continue;
            };
            if !self.may_claim(state, *queue, id) {
                continue;
            }
            let paused_ms = waiting.claim.paused_until_ms;
            if paused_ms > now_ms {
                let next_ms = self.claims.next_ms.into_iter();
                self.claims.next_ms = next_ms.chain([paused_ms]).min();
            } else {
                gangs.push((queue, key, id));
            }
        }
        gangs.sort_unstable();
        let mut lines: BTreeMap<QueueId, VecDeque<GangId>> = BTreeMap::new();
        for (queue, _, gang) in gangs {
            lines.entry(*queue).or_default().push_back(gang);
        }
        let queues: Vec<QueueId> = lines.keys().copied().collect();
        if let Some(round) = &mut self.claims.round {
            round.lines = lines;
        }
        for queue in queues {
            self.advance_claims(state, settings, progress, queue, now_ms);
        }
    }

    /// Whether a gang may take room from others: it was refused for room or for a limit, and no
    /// plan of it is being carried out. A gang that is bound in part may not: it is unwound within
    /// two seconds, and victims take longer to leave.
    fn may_claim(&self, state: &ClusterState, queue: QueueId, gang: GangId) -> bool {
        if state.gangs.get(gang).is_none() {
            return false;
        }
        let waiting = &self.waiting[gang];
        let (Wait::Room(refused, _), Some((stands_in, key))) = (&waiting.wait, &waiting.place)
        else {
            return false;
        };
        let for_room = matches!(
            refused.reason,
            Reason::DoesNotFit
                | Reason::NotFoundWithinBound
                | Reason::OverLimit
                | Reason::MembersLost
        );
        let is_new = waiting.claim.awaited.is_none() && *stands_in == queue;
        let was_refused = |refused: &BTreeSet<Alike>| {
            alike(state, waiting, queue, gang).is_some_and(|alike| refused.contains(&alike))
        };
        let round = self.claims.round.as_ref();
        let refused = round.map(|round| &round.refused);
        let refused = refused.filter(|refused| !refused.is_empty());
        for_room
            && is_new
            && key.kind != CandidateKind::Unfinished
            // Plans count amounts, and do not see which pods would let the gang in by leaving.
            && !state.has_related_members(gang)
            // Surplus of a gang that waits for volumes may never begin.
            && !state.is_preparing(gang)
            && !refused.is_some_and(was_refused)
    }

    /// The gangs with holds that come after a gang in the order of queues and lines, of each queue
    /// the last first; without those that have ended a plan of the gang, see [`Displaced`], and
    /// without those for which a member of the gang is still to leave. A gang that loses members to
    /// another gang comes before that gang as long as it has members left, and would take back the
    /// room that it is giving.
    ///
    /// [`Displaced`]: crate::plan::displaced::Displaced
    pub(crate) fn holders_after(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        (queue, gang): (QueueId, GangId),
    ) -> Vec<Holder> {
        let Some((_, own)) = self.waiting[gang].place.clone() else {
            return Vec::new();
        };
        let asked_at = |state: &ClusterState, queue, gang| {
            wanted::demand_of(state, settings, progress, gang, queue, UnixMs::MAX)
        };
        let (mut later, mut asked) = (Vec::new(), None);
        let mut released = Vec::new();
        let firsts = self.displaced.firsts_of(gang);
        for other in self.claims.holders.keys().copied().collect::<Vec<_>>() {
            let mut end = None;
            while let Some((key, holder)) = self.holder_before(state, other, end.as_ref()) {
                let stays = firsts.contains(&holder) || loses_to(state, gang, holder);
                let is_after = if other == queue {
                    key > own
                } else {
                    released.extend(release(state, holder));
                    let asked = asked.get_or_insert_with(|| asked_at(state, queue, gang));
                    let asked_by_other = asked_at(state, other, holder);
                    goes_before(state, (queue, asked), (other, asked_by_other))
                };
                if !is_after {
                    break;
                }
                later.extend((!stays).then_some(Holder::Gang(holder)));
                end = Some((key, holder));
            }
        }
        for (queue, demand, preemptible) in released {
            state.queues.charge_coming(queue, &demand, preemptible);
        }
        later
    }

    /// The last gang with a hold in the line of a queue, before the place of another one.
    fn holder_before(
        &mut self,
        state: &ClusterState,
        queue: QueueId,
        end: Option<&(CandidateKey, GangId)>,
    ) -> Option<(CandidateKey, GangId)> {
        let line = self.claims.holders.get_mut(&queue)?;
        loop {
            let last = match end {
                Some(end) => line.range(..end).next_back(),
                None => line.last(),
            };
            let last = last?.clone();
            let place = &self.waiting[last.1].place;
            let stands_there = place
                .as_ref()
                .is_some_and(|(stands_in, key)| *stands_in == queue && *key == last.0);
            if stands_there && state.holds.get(Holder::Gang(last.1)).is_some() {
                return Some(last);
            }
            line.remove(&last);
        }
    }

    /// Notes that something has happened that may let a refused gang take room from others.
    pub(crate) fn note_chance_to_claim(&mut self) {
        self.claims.note();
    }

    /// Takes in that something has happened that the log of changed nodes does not tell: what is
    /// known of plans may be untrue.
    pub(crate) fn disturb_claims(&mut self) {
        self.claims.known.disturb();
    }

    /// The eviction plan of a gang that waits for room, or why there is none, see
    /// [`victims::find`].
    pub(crate) fn find_victims(
        &mut self,
        state: &mut ClusterState,
        asked: &Asked<'_>,
        work: &mut u64,
    ) -> Option<Result<Plan, NoPlan>> {
        victims::find(state, asked, &mut self.claims.known, work)
    }

    /// Lets the next gang of the round, or the search that is kept, come no sooner than so much
    /// work allows. Returns whether a search is kept.
    pub(crate) fn charge_claim(&mut self, work: u64, now_ms: UnixMs) -> bool {
        self.claims.charge(work, now_ms);
        self.claims.known.search.is_some()
    }

    /// Forgets that a plan of a gang waits for the gang's `preemptionDelay`. Returns until when it
    /// did.
    pub(crate) fn end_delay(&mut self, gang: GangId) -> Option<UnixMs> {
        self.waiting[gang].claim.delayed_until_ms.take()
    }

    /// Lets a plan wait until the gang's `preemptionDelay` ends. Returns whether it waits.
    pub(crate) fn delay_plan(
        &mut self,
        state: &ClusterState,
        settings: &Settings,
        gang: GangId,
        plan: &Plan,
        now_ms: UnixMs,
    ) -> bool {
        let claim = &mut self.waiting[gang].claim;
        let ends_ms = claim.delay_ends_ms(&state.gangs[gang].spec, settings, now_ms);
        claim.delayed_until_ms = ends_ms.filter(|_| plan.action != Action::Free);
        self.claims.note_time(claim.delayed_until_ms);
        claim.delayed_until_ms.is_some()
    }

    /// Takes in that a plan of a gang begins to be carried out, and for which pods' room the gang
    /// waits.
    pub(crate) fn note_begun_plan(&mut self, gang: GangId, action: Action, awaited: Awaited) {
        let waiting = &mut self.waiting[gang];
        if action != Action::Free {
            waiting.claim.begin_plan();
        }
        waiting.claim.awaited = Some(awaited);
        if let Some((stands_in, key)) = &waiting.place {
            self.claims.note_holder(*stands_in, key, gang);
        }
    }

    /// Takes in that members of a gang are evicted for another one.
    pub(crate) fn note_loss(&mut self, gang: GangId, now_ms: UnixMs) {
        self.waiting[gang].claim.lose(now_ms);
    }

    /// Takes in that a gang with a plan asks for something else now, or for nothing.
    pub(crate) fn note_change_of_claim(&mut self, gang: GangId) {
        self.displaced.forget(gang);
        self.waiting[gang].claim.change();
    }

    /// Lets no plan be made for a gang for so many ms.
    pub(crate) fn pause_claim(&mut self, gang: GangId, pause_ms: u64, now_ms: UnixMs) {
        self.displaced.forget(gang);
        self.waiting[gang].claim.pause(pause_ms, now_ms);
    }

    /// Lets a gang whose plan was ended for `first` come once more in this round, unless it makes a
    /// pause.
    pub(crate) fn claim_once_more(&mut self, gang: GangId, first: GangId, now_ms: UnixMs) {
        self.displaced.note(gang, first);
        let waiting = &self.waiting[gang];
        if let Some((queue, _)) = waiting.place
            && waiting.claim.paused_until_ms <= now_ms
        {
            self.claims.once_more(queue, gang);
        }
    }

    /// Notes that there is no plan for a gang now.
    pub(crate) fn note_no_plan(
        &mut self,
        state: &ClusterState,
        queue: QueueId,
        gang: GangId,
        no_plan: &NoPlan,
    ) {
        self.claims.note_time(no_plan.next_ms);
        // A gang of which a plan was ended for another one may end fewer plans than gangs like it.
        if !self.displaced.firsts_of(gang).is_empty() {
            return;
        }
        let alike = alike(state, &self.waiting[gang], queue, gang);
        if let (Some(round), Some(alike)) = (&mut self.claims.round, alike) {
            round.refused.insert(alike);
        }
    }

    /// Notes that a plan of a gang is not carried out any more, and did not let the gang start.
    /// After a few such plans the gang makes a pause, which gets longer, whatever ended the plans:
    /// two gangs could take turns in taking room from each other.
    pub(crate) fn note_ended_plan(&mut self, gang: GangId, now_ms: UnixMs) {
        self.disturb_claims();
        let claim = &mut self.waiting[gang].claim;
        claim.awaited = None;
        if let Some(pause_ms) = claim.pause_ms() {
            claim.pause(pause_ms, now_ms);
        }
        self.claims.note_time(Some(claim.paused_until_ms));
        self.claims.note();
    }
}

/// The kind of a refused gang; `None`: counting proves nothing that it lacks.
fn alike(state: &ClusterState, waiting: &Waiting, queue: QueueId, gang: GangId) -> Option<Alike> {
    let Wait::Room(_, Wake::Eased(shortfall)) = &waiting.wait else {
        return None;
    };
    let (_, key) = waiting.place.as_ref()?;
    Some((queue, *shortfall, key.surplus, request::kind(state, gang)))
}

/// Whether a member of a gang is still to leave for a gang with a hold.
fn loses_to(state: &ClusterState, gang: GangId, holder: GangId) -> bool {
    let hold = state.holds.get(Holder::Gang(holder));
    let mut leavers = hold.into_iter().flat_map(|hold| state.to_leave(hold));
    leavers.any(|pod| pod.gang() == Some(gang))
}

/// Takes what is booked for a gang with a hold out of its queue, and returns it: the queue, the
/// demand, and whether the gang is preemptible. The room of the hold stays held.
fn release(state: &mut ClusterState, holder: GangId) -> Option<(QueueId, Demand, bool)> {
    let hold = state.holds.get(Holder::Gang(holder))?;
    let (queue, demand) = hold.booked.clone()?;
    let (_, preemptible) = hold.to?;
    state.queues.release_coming(queue, &demand, preemptible);
    Some((queue, demand, preemptible))
}

/// Whether a gang of the queue `queue` that asks for `asked` goes before a gang of another queue,
/// as things stand.
pub(super) fn goes_before(
    state: &mut ClusterState,
    (queue, asked): (QueueId, &Demand),
    other: (QueueId, Demand),
) -> bool {
    compare(state, (queue, asked), other).0
}

/// Whether a gang goes before a gang of another queue, as in [`goes_before`], by quota, by priority
/// or by a weight of 0, and not only because its queue uses less at the moment.
pub(super) fn goes_before_lastingly(
    state: &mut ClusterState,
    (queue, asked): (QueueId, &Demand),
    other: (QueueId, Demand),
) -> bool {
    compare(state, (queue, asked), other) == (true, true)
}

/// Whether a gang goes before one of another queue, and whether the order of the two is a lasting
/// one.
fn compare(
    state: &mut ClusterState,
    (queue, asked): (QueueId, &Demand),
    (other, asked_by_other): (QueueId, Demand),
) -> (bool, bool) {
    let queues = &mut state.queues;
    queues.set_candidate(PAIR, queue, Some(asked.clone()));
    queues.set_candidate(PAIR, other, Some(asked_by_other));
    let is_first = queues.next_leaf(PAIR) == Some(queue);
    let is_lasting = queues.is_first_lasting(PAIR);
    queues.set_candidate(PAIR, queue, None);
    queues.set_candidate(PAIR, other, None);
    (is_first, is_lasting)
}
