//! One scheduler at the model API server: what the live shell does with watches and requests, in
//! virtual time and with faults.
//!
//! ```text
//!   ApiServer --list, watch--> events --> Engine --commands--> requests --> ApiServer
//!                                ^                                |
//!                                +----------- outcomes -----------+
//! ```

use crate::api_server::{Answer, ApiServer, Name, Request, Sort, Version};
use crate::faults::Faults;
use crate::random::Random;
use gpu_batch_policies::command::{Action, Command, CommandId, PodReference};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Listing, Object, Outcome, PodSeen};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::Settings;
use std::collections::{BTreeMap, VecDeque};

/// How often each fault has struck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Struck {
    /// Requests that never got there.
    pub requests_lost: u32,
    /// Answers that never came back.
    pub answers_lost: u32,
    /// Requests that flow control turned away.
    pub throttled: u32,
    /// Binds that a webhook refused.
    pub refused: u32,
    /// Kinds that had to be listed anew.
    pub watches_cut: u32,
    /// Crashes.
    pub crashes: u32,
}

/// A scheduler process.
#[derive(Debug)]
pub struct Shell {
    settings: Settings,
    engine: Engine,
    random: Random,
    /// What has been seen of each kind; a kind that is missing is listed next.
    seen: BTreeMap<Kind, Version>,
    /// How late the news of each kind is.
    late_ms: BTreeMap<Kind, UnixMs>,
    /// What the newest revision was, and when.
    revisions: VecDeque<(UnixMs, Version)>,
    outcomes: Vec<(UnixMs, CommandId, Outcome)>,
    struck: Struck,
}

impl Shell {
    /// A process that has just started. The seed is for its faults.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            engine: Engine::new(settings.clone()),
            settings,
            random: Random::new(seed),
            seen: BTreeMap::new(),
            late_ms: BTreeMap::new(),
            revisions: VecDeque::new(),
            outcomes: Vec::new(),
            struck: Struck::default(),
        }
    }

    /// The engine, for whoever wants to know how things stand.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The same for reports that are worked out on demand.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// How often each fault has struck.
    #[must_use]
    pub fn struck(&self) -> Struck {
        self.struck
    }

    /// One turn of the loop: news and outcomes that have arrived, a step, requests. Outcomes of
    /// these requests arrive at the next turn at the earliest.
    pub fn turn(&mut self, api_server: &mut ApiServer, faults: &Faults, now_ms: UnixMs) {
        if self.random.percent(faults.crash) {
            self.crash();
        }
        let mut events = self.news(api_server, faults, now_ms);
        let arrived = self
            .outcomes
            .extract_if(.., |(at_ms, _, _)| *at_ms <= now_ms);
        events.extend(arrived.map(|(_, id, outcome)| Event::Outcome(id, outcome)));
        let deadline_ms = self.engine.next_deadline();
        if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) {
            events.push(Event::Continue);
        }
        if events.is_empty() {
            return;
        }
        for command in self.engine.step(now_ms, events) {
            let id = command.id;
            let outcome = self.request(command, api_server, faults, now_ms);
            let late_ms = self.random.below(faults.late_ms / 4 + 1);
            self.outcomes.push((now_ms + 1 + late_ms, id, outcome));
        }
    }

    /// The process ends; what it had sent has happened. The next one lists everything.
    fn crash(&mut self) {
        self.struck.crashes += 1;
        self.engine = Engine::new(self.settings.clone());
        self.outcomes.clear();
        self.seen.clear();
    }

    /// Lists what was never listed or whose watch was cut, and follows the rest.
    fn news(&mut self, api: &mut ApiServer, faults: &Faults, now_ms: UnixMs) -> Vec<Event> {
        self.revisions.push_back((now_ms, api.revision()));
        let mut events = Vec::new();
        for kind in Kind::ALL {
            if self.seen.contains_key(&kind) && self.random.percent(faults.relist) {
                self.struck.watches_cut += 1;
                self.seen.remove(&kind);
            }
            match self.seen.get(&kind).copied() {
                None => events.extend(self.list(kind, api, faults, now_ms)),
                Some(after) => self.follow(kind, after, api, now_ms, &mut events),
            }
        }
        let longest_ms = self.late_ms.values().copied().max().unwrap_or(0);
        let old = |(at_ms, _): &&(UnixMs, Version)| at_ms + longest_ms < now_ms;
        // The last old one is still what the latest kind has seen.
        let old = self.revisions.iter().take_while(old).count();
        self.revisions.drain(..old.saturating_sub(1));
        events
    }

    fn list(
        &mut self,
        kind: Kind,
        api_server: &mut ApiServer,
        faults: &Faults,
        now_ms: UnixMs,
    ) -> Option<Event> {
        let late_ms = self.random.below(faults.late_ms + 1);
        self.late_ms.insert(kind, late_ms);
        let answer = api_server.handle(Request::List { kind, at: None }, now_ms);
        let Answer::Listed { version, objects } = answer else {
            return None;
        };
        self.seen.insert(kind, version);
        let objects = objects.iter().map(|stored| stored.object.clone()).collect();
        Some(Event::Listed(Listing { kind, objects }))
    }

    fn follow(
        &mut self,
        kind: Kind,
        after: Version,
        api_server: &mut ApiServer,
        now_ms: UnixMs,
        events: &mut Vec<Event>,
    ) {
        let late_ms = self.late_ms.get(&kind).copied().unwrap_or(0);
        let known = |(at_ms, _): &&(UnixMs, Version)| at_ms + late_ms <= now_ms;
        let newest = self.revisions.iter().take_while(known).last();
        let newest = newest.map_or(0, |(_, version)| *version);
        if newest <= after {
            return;
        }
        match api_server.handle(Request::Watch { kind, after }, now_ms) {
            Answer::Changes { changes, .. } => {
                let changes = changes.iter().map(|change| (change.sort, &change.object));
                let changes = changes.filter(|(_, stored)| stored.version <= newest);
                events.extend(changes.map(|(sort, stored)| match sort {
                    Sort::Added | Sort::Modified => stored.object.clone().into(),
                    Sort::Deleted => Event::Deleted(stored.key()),
                }));
                self.seen.insert(kind, newest);
            }
            // 410: the next turn lists anew.
            _ => drop(self.seen.remove(&kind)),
        }
    }

    /// Sends a request, or not, as the faults have it.
    fn request(
        &mut self,
        command: Command,
        api_server: &mut ApiServer,
        faults: &Faults,
        now_ms: UnixMs,
    ) -> Outcome {
        if self.random.percent(faults.request_lost) {
            self.struck.requests_lost += 1;
            return Outcome::Unknown;
        }
        if self.random.percent(faults.throttled) {
            self.struck.throttled += 1;
            let retry_after_ms = 1_000;
            return Outcome::Throttled { retry_after_ms };
        }
        if matches!(command.action, Action::Bind(_)) && self.random.percent(faults.refused) {
            self.struck.refused += 1;
            let message = "a webhook said no".into();
            return Outcome::Refused { message };
        }
        let outcome = carry_out(command.action, api_server, now_ms);
        if self.random.percent(faults.response_lost) {
            self.struck.answers_lost += 1;
            return Outcome::Unknown;
        }
        outcome
    }
}

/// One command is one request, and its answer one outcome.
fn carry_out(action: Action, api_server: &mut ApiServer, now_ms: UnixMs) -> Outcome {
    let request = match action {
        Action::Observe(pod) => return observe(&pod, api_server, now_ms),
        Action::Bind(bind) => Request::Bind(bind),
        Action::Evict(evict) => Request::Evict(evict),
        Action::PatchStatus(patch) => Request::PatchStatus(patch),
        Action::Lease(request) => Request::Lease(request),
        Action::Publish(announcement) => Request::Publish(announcement),
    };
    outcome(api_server.handle(request, now_ms))
}

fn observe(pod: &PodReference, api_server: &mut ApiServer, now_ms: UnixMs) -> Outcome {
    let name = Name::pod(&pod.namespace, &pod.name);
    match api_server.handle(Request::Get(name), now_ms) {
        Answer::Found(stored) => match &stored.object {
            Object::Pod(facts) if facts.uid == pod.uid => {
                let node = facts.node.clone();
                Outcome::Observed(node.map_or(PodSeen::Unbound, PodSeen::Bound))
            }
            _ => Outcome::Observed(PodSeen::Gone),
        },
        Answer::NotFound => Outcome::Observed(PodSeen::Gone),
        answer => outcome(answer),
    }
}

fn outcome(answer: Answer) -> Outcome {
    match answer {
        Answer::Done | Answer::Created(_) | Answer::Found(_) => Outcome::Done,
        Answer::Lease(seen) => Outcome::Lease(seen),
        Answer::Conflict(_) | Answer::AlreadyExists => Outcome::Conflict,
        Answer::NotFound => Outcome::NotFound,
        Answer::Invalid(message) => Outcome::Refused {
            message: message.into(),
        },
        Answer::TooManyRequests {
            by_budget: true, ..
        } => Outcome::Refused {
            message: "a PodDisruptionBudget allows no disruption".into(),
        },
        Answer::TooManyRequests { retry_after_s, .. } => Outcome::Throttled {
            retry_after_ms: retry_after_s * 1_000,
        },
        _ => Outcome::Unknown,
    }
}
