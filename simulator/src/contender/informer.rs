//! List and watch of one kind, as the live shell does it, over a network with faults.
//!
//! ```text
//!    +--------------- 410 Gone ----------------+
//!    v                                         |
//! Listing ---one event---> Watching ---cut---> Cut ---after a while---> Watching where it was
//! ```
//!
//! News of one kind arrives in order, even if it is late; news of several kinds arrives in any
//! order. A list that is older than what the process has seen is dropped, and asked for again.

use crate::api_server::{Answer, ApiServer, Change, Request, Sort, Stored, Version};
use crate::faults::{FaultKind, Faults};
use crate::random::Random;
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey};
use gpu_batch_policies::facts::UnixMs;
use std::collections::VecDeque;
use std::sync::Arc;

/// List and watch of one kind for one process.
#[derive(Debug)]
pub(crate) struct Informer {
    kind: Kind,
    state: State,
    /// The newest version that the process was told.
    delivered: Version,
    /// The newest version that was sent to the process; its news may still be under way.
    fetched: Version,
    under_way: VecDeque<(UnixMs, News)>,
    /// Until when news to the process is late.
    late_until_ms: UnixMs,
    /// The store has never had an object of the kind, which is about volumes. Then nothing is drawn
    /// for it, so that a world without volumes goes on as it did before they were known.
    is_idle: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A list is asked for at this time.
    Listing(UnixMs),
    Watching,
    /// The watch is asked for again at this time.
    Cut(UnixMs),
}

/// News under way to a process.
#[derive(Debug, Clone)]
pub(crate) enum News {
    Listed(Version, Vec<Arc<Stored>>),
    Changed(Change),
}

impl Informer {
    pub(crate) fn new(kind: Kind, at_ms: UnixMs) -> Self {
        Self {
            kind,
            state: State::Listing(at_ms),
            delivered: 0,
            fetched: 0,
            under_way: VecDeque::new(),
            late_until_ms: 0,
            is_idle: matches!(kind, Kind::Storage(_) | Kind::Numa),
        }
    }

    /// Whether the store has never had an object of the kind, which faults then do not strike.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the watch runs and no news is under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_idle || self.state == State::Watching && self.under_way.is_empty()
    }

    /// The empty list of an idle kind, once.
    pub(crate) fn idle_list(&mut self) -> Option<Event> {
        let is_first = self.is_idle && self.state != State::Watching;
        is_first.then(|| {
            self.state = State::Watching;
            listed(self.kind, &[], 0)
        })
    }

    /// Ends the watch. News under way is lost; it is asked for again at `again_ms`.
    pub(crate) fn cut(&mut self, again_ms: UnixMs) {
        if self.state == State::Watching && !self.is_idle {
            let lists = self.under_way.iter();
            let lost = lists
                .filter(|(_, news)| matches!(news, News::Listed(..)))
                .count();
            self.under_way.clear();
            self.fetched = self.delivered;
            self.state = match lost {
                0 => State::Cut(again_ms),
                _ => State::Listing(again_ms),
            };
        }
    }

    /// Delivers nothing before this time.
    pub(crate) fn hold(&mut self, until_ms: UnixMs) {
        self.late_until_ms = until_ms;
    }

    /// When the informer next has something to ask for or to deliver.
    pub(crate) fn due_ms(&self) -> Option<UnixMs> {
        match self.state {
            _ if self.is_idle => None,
            State::Listing(at_ms) | State::Cut(at_ms) => Some(at_ms),
            State::Watching => {
                let (at_ms, _) = self.under_way.front()?;
                Some((*at_ms).max(self.late_until_ms))
            }
        }
    }

    /// Lists or watches if that is due, and sends new changes on their way.
    pub(crate) fn advance(
        &mut self,
        server: &mut ApiServer,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) {
        if self.is_idle {
            if !server.has_had(self.kind) {
                self.fetched = server.revision();
                self.delivered = self.fetched;
                return;
            }
            self.is_idle = false;
        }
        match self.state {
            State::Listing(at_ms) if at_ms <= now_ms => self.list(server, faults, random, now_ms),
            State::Cut(at_ms) if at_ms <= now_ms => self.state = State::Watching,
            _ => {}
        }
        if self.state != State::Watching {
            return;
        }
        let (kind, after) = (self.kind, self.fetched);
        match server.handle(Request::Watch { kind, after }, now_ms) {
            Answer::Changes { changes, version } => {
                self.fetched = version;
                for change in changes {
                    self.send(change, faults, random, now_ms);
                }
                // A bookmark: an idle kind is not behind.
                if self.under_way.is_empty() {
                    self.delivered = self.delivered.max(version);
                }
            }
            _ => {
                self.under_way.clear();
                self.state = State::Listing(now_ms);
                self.list(server, faults, random, now_ms);
            }
        }
    }

    fn send(&mut self, change: Change, faults: &mut Faults, random: &mut Random, now_ms: UnixMs) {
        let mut at_ms = now_ms + random.between(1, 20);
        if faults.strikes(FaultKind::NewsLate, random) {
            at_ms += random.between(100, 5_000);
        }
        // News of a kind never overtakes earlier news of that kind.
        let at_ms = at_ms.max(self.under_way.back().map_or(0, |(last_ms, _)| *last_ms));
        if faults.strikes(FaultKind::NewsRepeated, random) {
            let news = News::Changed(change.clone());
            self.under_way.push_back((at_ms, news));
        }
        self.under_way.push_back((at_ms, News::Changed(change)));
    }

    fn list(
        &mut self,
        server: &mut ApiServer,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) {
        let again_ms = now_ms + random.between(200, 1_000);
        self.state = State::Listing(again_ms);
        if faults.strikes(FaultKind::ListFails, random) {
            return;
        }
        let stale = faults.strikes(FaultKind::ListStale, random);
        let back = if stale { random.between(1, 40) } else { 0 };
        let at = stale.then(|| server.revision().saturating_sub(back));
        let kind = self.kind;
        let Answer::Listed { version, objects } = server.handle(Request::List { kind, at }, now_ms)
        else {
            return;
        };
        if version < self.delivered {
            return;
        }
        self.state = State::Watching;
        self.fetched = version;
        let at_ms = now_ms + random.between(1, 100);
        self.under_way
            .push_back((at_ms, News::Listed(version, objects)));
    }

    /// Takes the next news that has arrived.
    pub(crate) fn arrived(&mut self, now_ms: UnixMs) -> Option<News> {
        if self.state != State::Watching || self.due_ms()? > now_ms {
            return None;
        }
        let (_, news) = self.under_way.pop_front()?;
        self.delivered = match &news {
            News::Listed(version, _) => *version,
            News::Changed(change) => change.object.version,
        };
        Some(news)
    }
}

/// A change as an event; `now_ms` is the clock of the process that reads it.
pub(crate) fn changed(change: &Change, now_ms: UnixMs) -> (ObjectKey, Event) {
    let key = change.object.key();
    let object = (change.sort != Sort::Deleted)
        .then(|| read(&change.object, now_ms))
        .flatten();
    let event = object.map_or_else(
        || Event::Deleted(key.clone()),
        |object| Event::Applied(Box::new(object)),
    );
    (key, event)
}

/// A list as an event.
pub(crate) fn listed(kind: Kind, objects: &[Arc<Stored>], now_ms: UnixMs) -> Event {
    let objects = objects.iter().filter_map(|stored| read(stored, now_ms));
    Event::Listed(Listing {
        kind,
        objects: objects.collect(),
    })
}

/// What the live shell makes of an object: pods of other schedulers that have ended are dropped,
/// and a time in the future counts as now.
fn read(stored: &Stored, now_ms: UnixMs) -> Option<Object> {
    let mut object = stored.object.clone();
    match &mut object {
        Object::Pod(facts) => {
            if !facts.ours && facts.phase.ended() {
                return None;
            }
            facts.created_ms = facts.created_ms.min(now_ms);
            facts.started_ms = facts.started_ms.map(|at_ms| at_ms.min(now_ms));
            facts.bound_ms = facts.bound_ms.map(|at_ms| at_ms.min(now_ms));
        }
        Object::PodGroup(facts) => facts.created_ms = facts.created_ms.min(now_ms),
        Object::Queue(facts) => facts.created_ms = facts.created_ms.min(now_ms),
        _ => {}
    }
    Some(object)
}
