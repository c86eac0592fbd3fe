//! How the watches, the loop and the lease are doing, for `/healthz`, `/readyz` and the log.
//! Written by the driver, the watches and the executor.
//!
//! A trouble is logged when it begins and when it ends, however often it is met, and stands on
//! `/readyz` in between.

use gpu_batch_policies::event::Kind;
use gpu_batch_policies::facts::UnixMs;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::{info, warn};

/// The kinds that our CustomResourceDefinitions define.
const DEFINED: [Kind; 3] = [Kind::Queue, Kind::PodGroup, Kind::Topology];

/// How the watch of one kind is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchState {
    /// The first list of the kind is being read.
    Listing,
    /// The kind is listed and watched.
    Watching,
    /// The API server does not serve the kind; it counts as listed empty.
    NotServed,
    /// The API server answers nothing; [`Health::outage`] says why.
    CutOff,
    /// The list or the watch fails, and is tried again. The message says what is missing.
    Failing(String),
}

/// Why the API server answers nothing, whatever it is asked for: logged once, and not by each part
/// that sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outage {
    /// There is no connection.
    Unreachable(String),
    /// The API server can be connected to, but its certificate is not trusted.
    Untrusted(String),
    /// The API server, or the program that gives us a token for it, does not accept who we are.
    Unauthorized(String),
}

impl Outage {
    /// Whether two outages are told in the same sentence, but for details that change.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// The sentence that says why the API server at this address serves nothing, and what to do.
    pub(crate) fn sentence(&self, server: &str) -> String {
        match self {
            Self::Unreachable(words) => format!(
                "the API server {server} cannot be reached: {words}; check that it runs, and the \
                 address in the kubeconfig"
            ),
            Self::Untrusted(words) => format!(
                "the API server {server} is not trusted: {words}; the certificate authority in the \
                 kubeconfig must be the one that signed its certificate"
            ),
            Self::Unauthorized(words) => format!(
                "the API server {server} does not accept who we are (401): {words}; the token or \
                 client certificate in the kubeconfig, or of the service account, is wrong or has \
                 expired"
            ),
        }
    }
}

/// Why the lease cannot be written. Each holds the sentence that says so, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseTrouble {
    /// The API server refuses to write it.
    Refused(String),
    /// The API server throttles.
    Throttled(String),
    /// The API server fails, or does not answer in time.
    Unserved(String),
}

impl LeaseTrouble {
    fn sentence(&self) -> &str {
        let (Self::Refused(sentence) | Self::Throttled(sentence) | Self::Unserved(sentence)) = self;
        sentence
    }

    /// Whether the other trouble is no news once this one was logged. Each refusal has a remedy of
    /// its own and is news.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused(one), Self::Refused(other)) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Health {
    /// The address of the API server.
    server: String,
    last_turn_ms: AtomicU64,
    synced: AtomicBool,
    leader: AtomicBool,
    watches: Mutex<BTreeMap<Kind, WatchState>>,
    /// Why the API server answers nothing; `None`: it answers.
    outage: Mutex<Option<Outage>>,
    /// Why the lease cannot be written; `None`: nothing is known to keep it from being written.
    lease_trouble: Mutex<Option<LeaseTrouble>>,
}

impl Health {
    pub(crate) fn new(now_ms: UnixMs) -> Self {
        Self {
            server: String::new(),
            last_turn_ms: AtomicU64::new(now_ms),
            synced: AtomicBool::new(false),
            leader: AtomicBool::new(false),
            watches: Mutex::new(Kind::ALL.map(|kind| (kind, WatchState::Listing)).into()),
            outage: Mutex::default(),
            lease_trouble: Mutex::default(),
        }
    }

    /// Sets the address by which the API server is named to users.
    pub(crate) fn with_server(self, server: String) -> Self {
        Self { server, ..self }
    }

    pub(crate) fn turned(&self, now_ms: UnixMs, synced: bool, leader: bool) {
        self.last_turn_ms.store(now_ms, Ordering::Relaxed);
        self.synced.store(synced, Ordering::Relaxed);
        self.leader.store(leader, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, kind: Kind, state: WatchState) {
        let mut watches = lock(&self.watches);
        let before = undefined(&watches);
        watches.insert(kind, state);
        let now = undefined(&watches);
        match (before, now) {
            (None, Some(sentence)) => warn!("{sentence}"),
            (Some(_), None) => info!("Queue, PodGroup and Topology are defined now"),
            _ => {}
        }
    }

    /// Notes that the API server serves nothing, and why; logged if it is news.
    pub(crate) fn failed(&self, outage: Outage) {
        let mut known = lock(&self.outage);
        let is_news = known.as_ref().is_none_or(|known| !known.is_like(&outage));
        if is_news {
            warn!("{}", outage.sentence(&self.server));
        }
        *known = Some(outage);
    }

    /// Notes that the API server has answered, whatever the answer was.
    pub(crate) fn answered(&self) {
        if lock(&self.outage).take().is_some() {
            info!("the API server {} answers again", self.server);
        }
    }

    /// Why the API server answers nothing; `None`: it answers.
    pub(crate) fn outage(&self) -> Option<String> {
        let outage = lock(&self.outage);
        Some(outage.as_ref()?.sentence(&self.server))
    }

    /// Notes that the lease cannot be written; logged if it is news. Answers to other requests do
    /// not end this: while etcd pauses, the API server still answers some.
    pub(crate) fn lease_failed(&self, trouble: LeaseTrouble) {
        let mut known = lock(&self.lease_trouble);
        if known.as_ref().is_none_or(|known| !known.is_like(&trouble)) {
            warn!("{}", trouble.sentence());
        }
        *known = Some(trouble);
    }

    /// Notes that the lease can be written: a write succeeded, or some process holds it.
    pub(crate) fn lease_served(&self) {
        if lock(&self.lease_trouble).take().is_some() {
            info!("the Lease can be written now");
        }
    }

    /// Why the lease cannot be written, an outage included; `None`: nothing is known to keep it
    /// from being written.
    pub(crate) fn lease_trouble(&self) -> Option<String> {
        self.outage().or_else(|| self.trouble_of_lease_alone())
    }

    fn trouble_of_lease_alone(&self) -> Option<String> {
        let trouble = lock(&self.lease_trouble);
        Some(trouble.as_ref()?.sentence().to_owned())
    }

    pub(crate) fn last_turn_ms(&self) -> UnixMs {
        self.last_turn_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.leader.load(Ordering::Relaxed)
    }

    /// The conditions for decisions that are not met yet, a line each; empty: ready. A replica that
    /// is not the leader is ready too.
    pub(crate) fn missing(&self) -> Vec<String> {
        let outage = self.outage();
        let answers = outage.is_none();
        let mut missing = Vec::from_iter(outage);
        let watches = lock(&self.watches);
        missing.extend(watches.iter().filter_map(|(kind, state)| match state {
            WatchState::Failing(message) => Some(format!("{kind:?}: {message}")),
            WatchState::Listing if answers => {
                Some(format!("{kind:?}: the first list is being read"))
            }
            WatchState::CutOff if answers => Some(format!(
                "{kind:?}: the API server answers again; it is asked in a moment"
            )),
            WatchState::Listing
            | WatchState::CutOff
            | WatchState::Watching
            | WatchState::NotServed => None,
        }));
        if missing.is_empty() && !self.synced.load(Ordering::Relaxed) {
            missing.push("the engine has not taken in every list yet".to_owned());
        }
        missing.extend(undefined(&watches));
        missing.extend(self.trouble_of_lease_alone());
        missing
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to do where definitions of our kinds are missing; `None`: all are there.
fn undefined(watches: &BTreeMap<Kind, WatchState>) -> Option<String> {
    let missing = DEFINED
        .iter()
        .any(|kind| watches[kind] == WatchState::NotServed);
    missing.then(|| {
        "the API server does not know all of the kinds Queue, PodGroup and Topology: define them \
         with `gpu-batch crds | kubectl apply -f -`; until then no queue and no PodGroup counts"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{Health, Outage, WatchState};
    use gpu_batch_policies::event::Kind;

    fn watching() -> Health {
        let health = Health::new(0).with_server("https://10.0.0.1".to_owned());
        for kind in Kind::ALL {
            health.set(kind, WatchState::Watching);
        }
        health.turned(0, true, true);
        assert_eq!(health.missing(), Vec::<String>::new());
        health
    }

    #[test]
    fn an_outage_is_one_line_however_many_meet_it() {
        let health = watching();
        for kind in Kind::ALL {
            health.failed(Outage::Unreachable("nothing listens there".to_owned()));
            health.set(kind, WatchState::CutOff);
        }
        let missing = health.missing();
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].starts_with("the API server https://10.0.0.1 cannot be reached"));
        health.answered();
        assert_eq!(health.missing().len(), Kind::ALL.len());
    }

    #[test]
    fn missing_definitions_are_not_ready_and_say_how_to_make_them() {
        let health = watching();
        for kind in [Kind::Queue, Kind::Topology, Kind::NativePodGroup] {
            health.set(kind, WatchState::NotServed);
        }
        let missing = health.missing();
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].contains("`gpu-batch crds | kubectl apply -f -`"));
    }
}
