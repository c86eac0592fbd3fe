//! Copies of the state, for whoever asks the driver.

use gpu_batch_policies::explain::{Explanation, NotFound};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::report::{GangReport, Inventory, QueueReport};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A copy of what users see, taken from the engine on demand and at most once a second.
#[derive(Debug, Clone, Default)]
pub struct Reports {
    /// When it was taken.
    pub taken_ms: UnixMs,
    /// Whether every kind has been listed, so that decisions are made.
    pub is_synced: bool,
    /// Whether this process may act.
    pub is_leader: bool,
    /// All gangs, in the order of their names.
    pub gangs: Vec<GangReport>,
    /// All queues, parents before children, siblings by name.
    pub queues: Vec<QueueReport>,
}

/// What others may ask the driver; only the driver touches the engine.
#[derive(Debug)]
pub(crate) enum Question {
    Reports(oneshot::Sender<Arc<Reports>>),
    Audit(oneshot::Sender<Vec<String>>),
    Inventory(oneshot::Sender<Inventory>),
    Explain(Asked, oneshot::Sender<Explained>),
}

/// Of what an explanation is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A gang by its name.
    Gang(String),
    /// A pod, `NS/NAME`.
    Pod(String),
}

/// An explanation, or why there is none.
#[derive(Debug)]
pub(crate) enum Explained {
    Explanation(Box<Explanation>),
    NotFound(NotFound),
    /// This process decides nothing now: it has not read everything, or another one leads.
    NotLeading,
}
