//! How the shell is doing, for `/healthz` and `/readyz`. Written by the driver and the watches.

use gpu_batch_policies::event::Kind;
use gpu_batch_policies::facts::UnixMs;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How the watch of one kind is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchState {
    /// Its first list is being read.
    Listing,
    /// It is listed and watched.
    Watching,
    /// The API server does not serve the kind; it counts as listed empty.
    NotServed,
    /// It fails, and is tried again. The message says what is missing.
    Failing(String),
}

#[derive(Debug)]
pub(crate) struct Health {
    last_turn_ms: AtomicU64,
    synced: AtomicBool,
    leader: AtomicBool,
    watches: Mutex<BTreeMap<Kind, WatchState>>,
    /// Why nobody can write the lease here.
    lease_refused: Mutex<Option<String>>,
}

impl Health {
    pub(crate) fn new(now_ms: UnixMs) -> Self {
        Self {
            last_turn_ms: AtomicU64::new(now_ms),
            synced: AtomicBool::new(false),
            leader: AtomicBool::new(false),
            watches: Mutex::new(Kind::ALL.map(|kind| (kind, WatchState::Listing)).into()),
            lease_refused: Mutex::default(),
        }
    }

    pub(crate) fn turned(&self, now_ms: UnixMs, synced: bool, leader: bool) {
        self.last_turn_ms.store(now_ms, Ordering::Relaxed);
        self.synced.store(synced, Ordering::Relaxed);
        self.leader.store(leader, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, kind: Kind, state: WatchState) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.insert(kind, state);
    }

    /// What the API server said of the lease; `None`: it could be read or written.
    pub(crate) fn lease_answered(&self, refused: Option<&str>) {
        let lock = self.lease_refused.lock();
        *lock.unwrap_or_else(PoisonError::into_inner) = refused.map(str::to_owned);
    }

    pub(crate) fn last_turn_ms(&self) -> UnixMs {
        self.last_turn_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.leader.load(Ordering::Relaxed)
    }

    /// What is missing before decisions are made, a line each; empty: ready. A replica that is not
    /// the leader is ready too.
    pub(crate) fn missing(&self) -> Vec<String> {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing: Vec<String> = watches
            .iter()
            .filter_map(|(kind, state)| match state {
                WatchState::Watching | WatchState::NotServed => None,
                WatchState::Listing => Some(format!("{kind:?}: the first list is being read")),
                WatchState::Failing(message) => Some(format!("{kind:?}: {message}")),
            })
            .collect();
        if missing.is_empty() && !self.synced.load(Ordering::Relaxed) {
            missing.push("the engine has not taken in every list yet".to_owned());
        }
        let lock = self.lease_refused.lock();
        let refused = lock.unwrap_or_else(PoisonError::into_inner);
        missing.extend(
            refused
                .iter()
                .map(|message| format!("the lease: {message}")),
        );
        missing
    }
}
