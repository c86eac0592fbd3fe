//! Requests to the API server that bind and evict, and what became of each.

pub(crate) mod bindings;
pub(crate) mod evictions;
pub(crate) mod givers;
pub(crate) mod outbox;
pub(crate) mod takings;
pub(crate) mod timers;

use crate::command::EvictionCause;
use crate::facts::Uid;
use crate::settings::InFlight;
use alloc::collections::BTreeMap;
use bindings::Binding;
use outbox::Outbox;
use takings::Takings;
use timers::Timers;

/// Binds and evictions on their way, and all that waits to be sent or for a time.
#[derive(Debug)]
pub(crate) struct Binder {
    pub(crate) bindings: BTreeMap<Uid, Binding>,
    /// Pods whose eviction was asked for, and why.
    pub(crate) evicting: BTreeMap<Uid, EvictionCause>,
    pub(crate) takings: Takings,
    pub(crate) outbox: Outbox,
    pub(crate) timers: Timers,
    /// Whether the last step was made as the leader: only then is anything sent.
    pub(crate) leading: bool,
}

impl Binder {
    pub(crate) fn new(limits: InFlight) -> Self {
        Self {
            bindings: BTreeMap::new(),
            evicting: BTreeMap::new(),
            takings: Takings::default(),
            outbox: Outbox::new(limits),
            timers: Timers::default(),
            leading: false,
        }
    }

    /// Whether nothing is under way or left to be sent, and the outcome of every binding is known.
    pub(crate) fn is_settled(&self) -> bool {
        self.outbox.is_quiet() && self.bindings.is_empty()
    }
}
