//! Reservations: when and where refused gangs will start, so that gangs behind them do not keep
//! them waiting for ever.
//!
//! The first refused gangs in the order of queues that wait for room only get a reservation: the
//! earliest time at which they fit, by when gangs that run are expected to end, and a place on
//! nodes. Other gangs start only where all reservations are kept (backfilling).
//!
//! ```text
//!  REFUSED --it is among the first--> PROMISED --its time has come, or there is room--> started
//!     ^                                |    ^
//!     |                                |    +-- pulled forward: room came earlier than expected
//!     +-- another gang goes before it, a gang overruns its time, a node is lost --+
//! ```
//!
//! A promise is kept and only pulled forward, in the order of promises (conservative backfilling;
//! with one reservation: EASY; Mu'alem and Feitelson, TPDS 2001). After an overrun or a
//! loss all promises are made anew, after a change of the order those of later gangs. A reservation
//! evicts no pod.
//!
//! | file | what is in it |
//! |---|---|
//! | `ends` | when gangs that run are expected to end |
//! | `future` | the state at later times, in a Txn |
//! | `lay_out` | where gangs with promises will be |
//! | `rooms` | how much room there is at later times |
//! | `startless` | gangs for which no start was found |
//! | `earliest` | when a gang fits beside other promises |
//! | `room_news` | whether room that has come may be of use to promises |
//! | `pull` | promises that are pulled forward |
//! | `beside` | whether a gang may start now |
//! | `sums` | starts that sums over all nodes rule out |
//! | `behind` | gangs that may not, but for promises |
//! | `doubts` | whether what has changed may keep promises from being kept |
//! | `foresight` | when a gang is expected to start, for those who ask |

mod behind;
mod beside;
mod doubts;
mod earliest;
pub(crate) mod ends;
pub(crate) mod foresight;
mod future;
mod lay_out;
mod pull;
mod room_news;
mod rooms;
mod startless;
mod sums;

use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Wait;
use crate::ids::{ById, GangId};
use crate::plan::attempt::Asker;
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::plan::{Planner, SLICE_WORK};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::sets::take_out;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use behind::{Alike, Behind};
use doubts::Seen;
use earliest::{Asked, Found, Tries, earliest};
use ends::{EndedRun, Ends, News};
use future::{Basis, Places, Start};
use pull::Round;
use room_news::RoomNews;
use rooms::Rooms;
use startless::Startless;

/// A gang that will start at a time.
#[derive(Debug, Clone)]
pub(crate) struct Reservation {
    start: Start,
    /// Where the members that it needs will be.
    places: Places,
    /// When it was made.
    made_ms: UnixMs,
}

/// What becomes of the wish of a gang for a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The gang has a reservation.
    Granted,
    /// The gang has none.
    Refused,
    /// Not known yet: the slice ended first.
    SliceEnded,
}

/// What refused gangs were promised.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    ends: Ends,
    /// The reservations, in the order in which they were promised.
    promised: Vec<Reservation>,
    /// The gangs that wait for room only and for which there was no reservation left, by queue.
    unpromised: BTreeMap<QueueId, BTreeSet<(CandidateKey, GangId)>>,
    behind: Behind,
    /// The gangs that wait for room only and for which no start was found.
    startless: Startless,
    /// Promises have ended or were pulled forward since these gangs were last tried.
    is_changed: bool,
    /// Room is there earlier than expected, and may be of use to promises.
    room_came: bool,
    /// Room that has come on some nodes, of use or not.
    room_news: RoomNews,
    /// When promises may be pulled forward again.
    pull_due_ms: UnixMs,
    /// Promises are being pulled forward.
    round: Option<Round>,
    /// The times that were tried in earlier slices for the gang that is to have a reservation.
    tries: Option<(GangId, Tries)>,
    /// Nodes, or what other schedulers have on them, have changed since promises were looked at.
    may_have_room: bool,
    /// Something has happened that may keep promises from being kept, on whichever nodes.
    is_doubtful: bool,
    /// What promises were last held against.
    seen: Seen,
    /// A gang overran its time, or its room will be there later for another reason.
    is_late: bool,
    /// The gangs whose promises were made, moved or ended since users were last told.
    news: BTreeSet<GangId>,
}

impl Reservations {
    /// The run of a gang that has just ended well, before [`Self::follow`] forgets it.
    pub(crate) fn ended(&self, id: GangId, counts: &Counts, now_ms: UnixMs) -> Option<EndedRun> {
        self.ends.ended(id, counts, now_ms)
    }

    /// Takes in what has become of a gang, see [`Ends::follow`].
    pub(crate) fn follow(
        &mut self,
        state: &ClusterState,
        id: GangId,
        counts: &Counts,
        is_complete: bool,
        now_ms: UnixMs,
    ) {
        let news = self.ends.follow(state, id, counts, is_complete, now_ms);
        if news == News::Left {
            self.room_news.note_members(state, id);
        }
        self.note(news);
    }

    fn note(&mut self, news: News) {
        self.room_came |= news == News::Earlier;
        if news == News::Left {
            self.room_news.note();
        }
        self.is_late |= news == News::Later;
        // What was promised nobody may be free now beside the promises.
        self.is_changed |= news == News::OnTime;
        if news != News::Nothing {
            self.ask_again();
        }
    }

    /// Notes that room or quota was freed: gangs behind promises may start beside them now.
    pub(crate) fn note_freed(&mut self) {
        self.is_changed = true;
    }

    fn note_room(&mut self) {
        self.room_came = true;
        self.is_changed = true;
        self.ask_again();
    }

    /// Notes that there may be starts for gangs without one, if the end of any gang is known.
    fn ask_again(&mut self) {
        if self.ends.next_ms().is_some() {
            self.startless.ask_again();
        }
    }

    /// Notes that nodes, or what other schedulers have on them, have changed. Which nodes these are
    /// is in the log of changed nodes.
    pub(crate) fn note_nodes(&mut self) {
        self.may_have_room = true;
    }

    /// Notes that something has happened that may keep promises from being kept.
    pub(crate) fn doubt(&mut self) {
        self.is_doubtful = true;
    }

    /// Forgets a gang that has gone: its number may be given to another gang.
    pub(crate) fn forget(&mut self, id: GangId, now_ms: UnixMs) {
        let news = self.ends.forget(id, now_ms);
        self.note(news);
        self.drop_of(id);
    }

    /// Forgets all promises, because the queues have other numbers now.
    pub(crate) fn forget_promises(&mut self) {
        let promised = self.promised.iter().map(|it| it.start.gang);
        let news = promised.chain(self.news.iter().copied()).collect();
        *self = Self {
            ends: core::mem::take(&mut self.ends),
            news,
            ..Self::default()
        };
    }

    /// Takes back what a gang was promised: it asks for something else, or for nothing.
    pub(crate) fn drop_of(&mut self, id: GangId) {
        self.room_came |= self.end_of(id).is_some();
    }

    /// Ends a promise that is kept: the gang starts now. If that is earlier than it was promised,
    /// it ends earlier, too.
    pub(crate) fn keep(&mut self, id: GangId, now_ms: UnixMs) {
        let start_ms = self.end_of(id);
        self.room_came |= start_ms.is_some_and(|start_ms| start_ms > now_ms);
    }

    /// Ends the promise to a gang. Returns the start that it was promised.
    fn end_of(&mut self, id: GangId) -> Option<UnixMs> {
        let place = self.promised.iter().position(|it| it.start.gang == id)?;
        let ended = self.promised.remove(place);
        self.is_changed = true;
        self.news.insert(id);
        self.room_news.note_promises();
        self.ask_again();
        Some(ended.start.at_ms)
    }

    /// Takes a gang that is to be tried out of the lines of those that wait for promises.
    pub(crate) fn leave_line(&mut self, queue: QueueId, key: &CandidateKey, id: GangId) {
        self.behind.ask(id);
        self.startless.forget(id);
        self.tries.take_if(|(gang, _)| *gang == id);
        if !self.unpromised.is_empty() {
            take_out(&mut self.unpromised, &queue, &(key.clone(), id));
        }
    }

    /// When something happens by itself; `None`: never.
    pub(crate) fn deadline(&self, now_ms: UnixMs) -> Option<UnixMs> {
        let nobody_waits = self.promised.is_empty() && self.behind.is_empty();
        if nobody_waits && self.unpromised.is_empty() && self.startless.is_empty() {
            return None;
        }
        let starts = self.promised.iter().map(|it| it.start.at_ms);
        let overdue = self.ends.next_ms().map(|end_ms| end_ms.saturating_add(1));
        let pull = self.room_came.then_some(self.pull_due_ms);
        let ask = self.startless.due_ms();
        let times = starts.chain(overdue).chain(pull).chain(ask);
        times.filter(|at_ms| *at_ms > now_ms).min()
    }

    /// When a gang is to start; `None`: it was promised nothing.
    pub(crate) fn start_ms(&self, id: GangId) -> Option<UnixMs> {
        let mut promised = self.promised.iter();
        promised
            .find(|it| it.start.gang == id)
            .map(|it| it.start.at_ms)
    }

    /// Whether any gang is promised a start.
    pub(crate) fn has_promises(&self) -> bool {
        !self.promised.is_empty()
    }

    /// The gangs with promises and when each is to start, in the order of promises.
    pub(crate) fn promised_starts(&self) -> impl Iterator<Item = (GangId, UnixMs)> + '_ {
        let promised = self.promised.iter();
        promised.map(|it| (it.start.gang, it.start.at_ms))
    }

    /// The gangs that would fit now, but for promises to others.
    pub(crate) fn behind(&self) -> impl Iterator<Item = GangId> + '_ {
        self.behind.gangs()
    }

    /// Whether promises are to be looked at once more now.
    pub(crate) fn is_unfinished(&self, now_ms: UnixMs) -> bool {
        let pulls = self.room_came && self.has_promises() && self.pull_due_ms <= now_ms;
        let asks = self.startless.due_ms();
        self.round.is_some() || pulls || asks.is_some_and(|due_ms| due_ms <= now_ms)
    }

    fn starts(&self) -> Vec<Start> {
        self.promised.iter().map(|it| it.start).collect()
    }

    /// The promises to all gangs but one.
    fn others(&self, id: GangId) -> Vec<Start> {
        earliest::others_of(&self.starts(), id)
    }

    /// Takes in where the gangs with reservations are to be, in the order of promises.
    fn adopt(&mut self, starts: &[Start], places: Vec<Places>, now_ms: UnixMs) {
        for (start, places) in starts.iter().zip(places) {
            let mut promised = self.promised.iter_mut();
            match promised.find(|it| it.start.gang == start.gang) {
                Some(known) => {
                    if known.start.at_ms != start.at_ms {
                        self.news.insert(start.gang);
                        self.room_news.note_promises();
                    }
                    (known.start, known.places) = (*start, places);
                }
                None => {
                    self.news.insert(start.gang);
                    self.room_news.note_promises();
                    self.promised.push(Reservation {
                        start: *start,
                        places,
                        made_ms: now_ms,
                    });
                }
            }
        }
    }
}

impl Planner {
    /// Keeps promises true before gangs are tried: they are made anew or pulled forward where
    /// something has happened that was not expected, and gangs whose time has come are tried.
    pub(crate) fn keep_promises(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        now_ms: UnixMs,
        work: &mut u64,
    ) {
        if settings.reservations == 0 {
            return;
        }
        let is_doubtful = self.reservations.are_doubtful(state);
        let known = &mut self.reservations;
        known.is_late |= known.ends.take_overdue(now_ms);
        let is_late = core::mem::take(&mut known.is_late);
        if is_doubtful {
            known.note_room();
        }
        known.weigh_room(state, now_ms);
        let mut pulls = false;
        if is_late
            || (is_doubtful && !self.are_promises_kept(state, settings, progress, now_ms, work))
        {
            self.promise_anew(state, settings, progress, |_| true);
            self.reservations.room_came = false;
            self.reservations.round = None;
        } else {
            pulls = self.pull_forward(state, settings, progress, now_ms, work);
            if self.reservations.room_came && self.reservations.seen.has_news() {
                // Room that is enough for a promised gang now goes to no other gang.
                for start in self.reservations.starts() {
                    self.wake(state, settings, progress, start.gang);
                }
            }
        }
        self.reservations.is_changed |= is_late || is_doubtful || pulls;
        for gang in self.reservations.startless.take_due(now_ms) {
            self.wake(state, settings, progress, gang);
        }
        let due = self.reservations.promised.iter().map(|it| it.start);
        let due = due.filter(|start| start.at_ms <= now_ms);
        for start in due.collect::<Vec<_>>() {
            self.wake(state, settings, progress, start.gang);
        }
    }

    /// Takes in that planning has ended in this step: what it changed was held against promises.
    pub(crate) fn note_planned(&mut self, state: &ClusterState) {
        self.reservations.note_planned(state);
    }

    /// Enters the promises that have changed where users are told of them. Returns their gangs.
    pub(crate) fn take_promise_news(&mut self) -> Vec<GangId> {
        let news = core::mem::take(&mut self.reservations.news);
        for gang in &news {
            let promised_ms = self.reservations.start_ms(*gang);
            self.waiting[*gang].note_promise(promised_ms);
        }
        news.into_iter().collect()
    }

    /// Whether all promises can be kept as they are. Places may be others.
    fn are_promises_kept(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        now_ms: UnixMs,
        work: &mut u64,
    ) -> bool {
        let starts = self.reservations.starts();
        let basis = self.basis(settings, progress, now_ms);
        let places = lay_out::lay_out(state, basis, &starts, None, work);
        let are_kept = places.is_some();
        self.reservations
            .adopt(&starts, places.unwrap_or_default(), now_ms);
        are_kept
    }

    /// Takes back the promises that `which` picks, and lets their gangs be tried once more.
    fn promise_anew(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        which: impl Fn(&Start) -> bool,
    ) {
        for start in self.reservations.starts() {
            if which(&start) {
                self.reservations.drop_of(start.gang);
                self.wake(state, settings, progress, start.gang);
            }
        }
    }

    /// Gives a refused gang a reservation, if it waits for room only and comes early enough in the
    /// order. Reservations of gangs that come after it are made anew.
    pub(crate) fn reserve(
        &mut self,
        state: &mut ClusterState,
        asker: Asker<'_>,
        reason: Reason,
        work: &mut u64,
    ) -> Wish {
        let Asker {
            settings,
            progress,
            gang: id,
            queue,
            counts,
            now_ms,
        } = asker;
        // When rules about other pods will let a gang in is not foreseen.
        let for_room = waits_for_room(reason) && !state.has_related_members(id);
        let place = self.waiting[id].place.clone();
        let Some((_, key)) = place.filter(|(_, key)| key.kind != CandidateKind::Unfinished) else {
            return Wish::Refused;
        };
        let mut promised = self.reservations.promised.iter();
        let own = promised.find(|known| known.start.gang == id);
        if own.is_some_and(|own| own.start.at_ms < now_ms) {
            // The promise could not be kept. One for the present may still be: the gang whose end
            // makes room for it is expected to end now.
            self.reservations.drop_of(id);
        }
        let claim = &mut self.waiting[id].claim;
        if reason == Reason::Reserved {
            // The gang has room behind promises, and takes none from others.
            claim.delayed_until_ms = None;
        }
        // The room of an eviction plan is held already.
        let claims = claim.awaited.is_some();
        if settings.reservations == 0 || !for_room || claims {
            return Wish::Refused;
        }
        if counts.needed == 0 {
            // Surplus waits behind promises, and gets none.
            return Wish::Refused;
        }
        let start = Start::now(state, asker);
        if self.reservations.start_ms(id).is_some() {
            // Promises are pulled forward together, see [`Self::keep_promises`].
            return Wish::Granted;
        }
        let mut later = self.promised_after(state, settings, progress, (queue, id));
        // Across queues the order has circles: a small gang comes before the gang of another queue
        // that comes before the large one in front of it. So what was promised just now stays.
        let made = self.reservations.promised.iter();
        let made = made.filter(|known| known.made_ms == now_ms);
        for known in made {
            later.remove(&known.start.gang);
        }
        let left = self.reservations.promised.len() - later.len();
        if left >= settings.reservations as usize {
            let line = self.reservations.unpromised.entry(queue).or_default();
            line.insert((key, id));
            return Wish::Refused;
        }
        self.promise_before(state, asker, start, &later, work)
    }

    /// Promises a gang the earliest start beside all promises but later ones, which are made anew
    /// if one is found: a gang that never fits takes nothing from others.
    fn promise_before(
        &mut self,
        state: &mut ClusterState,
        asker: Asker<'_>,
        mut start: Start,
        later: &BTreeSet<GangId>,
        work: &mut u64,
    ) -> Wish {
        let (settings, progress, now_ms) = (asker.settings, asker.progress, asker.now_ms);
        let mut starts = self.reservations.starts();
        starts.retain(|known| !later.contains(&known.gang));
        let basis = self.basis(settings, progress, now_ms);
        let known = self.reservations.tries;
        let known = known.filter(|(gang, _)| *gang == start.gang);
        let mut tries = known.map(|(_, tries)| tries).unwrap_or_default();
        // A gang that may take room from others when its delay ends starts then without a promise.
        let taken_ms = self.waiting[start.gang].claim.delayed_until_ms;
        let taken_ms = taken_ms.filter(|_| settings.evictions.in_flight > 0);
        let asked = Asked {
            start: &start,
            before_ms: taken_ms.unwrap_or(UnixMs::MAX),
            tries: &mut tries,
            work_max: SLICE_WORK,
        };
        let rooms = &mut Rooms::default();
        let found = earliest(state, basis, asked, &starts, rooms, work);
        let (at_ms, places) = match found {
            Found::At(at_ms, places) => (at_ms, places),
            Found::Never => {
                self.reservations.tries = None;
                self.reservations.startless.add(start.gang);
                return Wish::Refused;
            }
            Found::SliceEnded => {
                self.reservations.tries = Some((start.gang, tries));
                return Wish::SliceEnded;
            }
        };
        self.reservations.tries = None;
        self.promise_anew(state, settings, progress, |known| {
            later.contains(&known.gang)
        });
        start.at_ms = at_ms;
        starts.push(start);
        self.reservations.adopt(&starts, places, now_ms);
        Wish::Granted
    }

    /// Lets gangs be tried that promises kept from starting, if these have changed, and the first
    /// gangs of all queues that wait for a reservation, if there are reservations left.
    pub(crate) fn offer_reservations(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
    ) {
        if core::mem::take(&mut self.reservations.is_changed) {
            for gang in self.reservations.behind.first() {
                self.wake(state, settings, progress, gang);
            }
        }
        let known = &self.reservations;
        if known.unpromised.is_empty() || known.promised.len() >= settings.reservations as usize {
            return;
        }
        let first = known.unpromised.values().filter_map(BTreeSet::first);
        for gang in first.map(|(_, gang)| *gang).collect::<Vec<_>>() {
            self.wake(state, settings, progress, gang);
        }
    }

    /// Takes in why a gang was refused. If it was tried because promises have changed, the next
    /// gang that is alike is tried, too, unless it has to wait for the reason that it was told.
    pub(crate) fn note_refused(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        (id, reason): (GangId, Reason),
    ) {
        let (promised, waiting) = (&self.reservations.promised, &self.waiting);
        let is_promised = |gang: GangId| promised.iter().any(|it| it.start.gang == gang);
        let is_told_truly = |gang: GangId| match &waiting[gang].wait {
            Wait::Room(refused, _) => refused.behind.is_some_and(is_promised),
            _ => false,
        };
        let runtime_ms = |gang: GangId| state.expectation(gang).map(|it| it.runtime_ms);
        let behind = &mut self.reservations.behind;
        let next = behind.take_asked(id).and_then(|place| {
            let own_ms = runtime_ms(id).unwrap_or(UnixMs::MAX);
            let ends_earlier = |other| runtime_ms(other).is_some_and(|other_ms| other_ms < own_ms);
            let is_to_be_tried = |other: &GangId| match reason {
                // tests plant bugs here: one-of-those-alike-that-ends-earlier
                Reason::Reserved => ends_earlier(*other) || !is_told_truly(*other),
                // What is alike has no room either. Not each of these gangs changes its reason
                // whenever a gang comes or goes: they wait behind promises all the same.
                Reason::DoesNotFit => !is_told_truly(*other),
                _ => true,
            };
            behind.after(&place).find(is_to_be_tried)
        });
        let place = waiting[id].place.as_ref();
        if let Some((queue, key)) = place.filter(|_| reason == Reason::Reserved) {
            let alike = Alike::of(state, *queue, id, is_promised(id));
            behind.add(id, alike, key.clone());
        }
        if let Some(next) = next {
            self.wake(state, settings, progress, next);
        }
    }

    /// Gangs that are told to wait behind a gang to which nothing is promised, although promises
    /// have not changed since gangs were last tried, as sentences.
    pub(crate) fn wrongly_behind(&self, state: &ClusterState) -> Vec<String> {
        let known = &self.reservations;
        let is_settled = |_: &GangId| !known.is_changed;
        let wrong = known.behind.gangs().filter(is_settled).filter(|gang| {
            let Wait::Room(refused, _) = &self.waiting[*gang].wait else {
                return false;
            };
            let ahead = refused.behind;
            ahead.is_some_and(|ahead| known.start_ms(ahead).is_none())
        });
        let told = wrong.map(|gang| {
            let name = &state.gangs[gang].name;
            format!("gang {name} waits behind one that is promised nothing")
        });
        told.collect()
    }

    /// Takes in that a gang has left its line, and lets the next gang be tried that is alike, if
    /// this one was tried because promises have changed.
    pub(crate) fn leave_behind(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
    ) {
        if let Some(next) = self.reservations.behind.leave(id) {
            self.wake(state, settings, progress, next);
        }
    }

    /// Ends the promise to a gang for which an eviction plan begins: its room is held from now on.
    pub(crate) fn end_promise(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
    ) {
        if self.reservations.start_ms(id).is_some() {
            self.reservations.drop_of(id);
            // It has waited for the promised time, and waits for room now.
            self.wake(state, settings, progress, id);
        }
    }

    /// Ends the promise to a gang with an eviction plan that is carried out no later than the
    /// promised start, see [`ClaimState::delayed_until_ms`].
    ///
    /// [`ClaimState::delayed_until_ms`]: crate::plan::waiting::ClaimState::delayed_until_ms
    pub(crate) fn end_promise_in_vain(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
    ) {
        let taken_ms = self.waiting[id].claim.delayed_until_ms;
        let start_ms = self.reservations.start_ms(id);
        if start_ms
            .zip(taken_ms)
            .is_some_and(|(start, taken)| taken <= start)
        {
            self.end_promise(state, settings, progress, id);
        }
    }

    /// Lets a gang be tried whose eviction plan has ended, or that can make none any more: it may
    /// be promised a start again.
    pub(crate) fn offer_promise(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        id: GangId,
    ) {
        if settings.reservations > 0 {
            self.wake(state, settings, progress, id);
        }
    }

    /// The gangs whose reservations give way to a gang that comes before them.
    fn promised_after(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        (queue, id): (QueueId, GangId),
    ) -> BTreeSet<GangId> {
        let others = self.reservations.others(id).into_iter();
        let others = others.map(|start| (start.queue, start.gang));
        let others: Vec<_> = others.collect();
        let after = others
            .into_iter()
            .filter(|other| self.ends_promise(state, settings, progress, (queue, id), *other));
        after.map(|(_, gang)| gang).collect()
    }

    fn basis<'a>(
        &'a self,
        settings: &'a Settings,
        progress: &'a ById<GangId, Progress>,
        now_ms: UnixMs,
    ) -> Basis<'a> {
        Basis {
            settings,
            progress,
            ends: &self.reservations.ends,
            promised: &self.reservations.promised,
            now_ms,
        }
    }
}

/// Whether a gang that was refused for this reason waits for room only: a promise may help it.
pub(crate) fn waits_for_room(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::DoesNotFit | Reason::NotFoundWithinBound | Reason::MembersLost | Reason::Reserved
    )
}
