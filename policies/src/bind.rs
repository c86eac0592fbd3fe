//! Requests to the API server that bind and evict, and what became of each.

mod bindings;
mod evictions;
pub(crate) mod givers;
pub(crate) mod outbox;
pub(crate) mod takings;
pub(crate) mod timers;

use crate::command::EvictionCause;
use crate::facts::Uid;
use crate::ids::GangId;
use crate::settings::InFlight;
use crate::state::Lookup;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bindings::{Binding, Locks, Preparations};
use outbox::Outbox;
use takings::{Failure, Takings};
use timers::Timers;

/// Binds and evictions on their way, and all that waits to be sent or for a time.
///
/// Others send through the outbox and set timers; takings they only read.
#[derive(Debug)]
pub(crate) struct Binder {
    bindings: Lookup<Uid, Binding>,
    /// Planned pods of which a nomination or the lifting of the gate is under way for a binding.
    offers: BTreeSet<Uid>,
    preparations: Preparations,
    locks: Locks,
    /// Pods whose eviction was asked for, and why.
    evicting: BTreeMap<Uid, EvictionCause>,
    pub(crate) takings: Takings,
    pub(crate) outbox: Outbox,
    pub(crate) timers: Timers,
    /// Whether the last step was made as the leader.
    leading: bool,
}

impl Binder {
    pub(crate) fn new(limits: InFlight) -> Self {
        Self {
            bindings: Lookup::default(),
            offers: BTreeSet::new(),
            preparations: Preparations::default(),
            locks: Locks::default(),
            evicting: BTreeMap::new(),
            takings: Takings::default(),
            outbox: Outbox::new(limits),
            timers: Timers::default(),
            leading: false,
        }
    }

    /// Whether the last step was made as the leader: only then is anything sent.
    pub(crate) fn is_leading(&self) -> bool {
        self.leading
    }

    /// This process leads from now on: asks about the bindings that were left uncertain, and lets
    /// the engine adopt the nominations of the last leader.
    pub(crate) fn begin_to_lead(&mut self) {
        self.leading = true;
        self.ask_about_uncertain();
        self.takings.adopts = true;
    }

    /// Whether this process has begun to lead since the last call. Then the nominations of members
    /// that wait are to be adopted: they tell for which gangs the last leader was making room.
    pub(crate) fn take_adoption(&mut self) -> bool {
        core::mem::take(&mut self.takings.adopts)
    }

    /// Whether, since the last call, a taking has had an eviction that may have been carried out.
    /// From then on it goes on to its end even if the queues that give come within their bounds, so
    /// other plans may take from these queues again.
    pub(crate) fn take_begun(&mut self) -> bool {
        core::mem::take(&mut self.takings.has_begun)
    }

    /// The gangs whose taking has come to nothing since the last call, each with the cause.
    pub(crate) fn take_failed(&mut self) -> Vec<(GangId, Failure)> {
        core::mem::take(&mut self.takings.failed)
    }

    /// Whether no action is under way or left to be sent, and no binding is unfinished. Where this
    /// process does not lead, bindings with an unknown outcome do not count: the next leader sees
    /// what became of their pods.
    pub(crate) fn is_drained(&self) -> bool {
        let is_certain = self.bindings.is_empty() && self.locks.is_empty();
        self.outbox.is_quiet() && (is_certain || !self.leading)
    }

    /// Whether no action is under way or left to be sent, and the outcome of every binding is
    /// known.
    pub(crate) fn is_settled(&self) -> bool {
        self.outbox.is_quiet() && self.bindings.is_empty() && self.locks.is_empty()
    }
}
