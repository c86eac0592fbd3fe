//! What people see: statuses, conditions and events of gangs, queues and other objects, reports and
//! explanations. Nothing here decides anything.

pub(crate) mod explain;
mod faults;
mod gang;
mod queues;
pub(crate) mod reports;
pub(crate) mod review;
mod status;
mod told;
mod why;

use crate::facts::UnixMs;
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId};
use crate::plan::waiting::Waiting;
use crate::queues::QueueId;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::status::QueueStatus;
use alloc::collections::BTreeMap;
use explain::Descriptions;
use faults::Faults;
use review::Review;
use told::Told;

/// What users were last told, and what is still to be told.
#[derive(Debug)]
pub(crate) struct Teller {
    /// The status and the events that users were last told of each gang.
    pub(crate) told: ById<GangId, Told>,
    /// Which sentences about refused gangs are made again.
    pub(crate) review: Review,
    descriptions: Descriptions,
    pub(crate) faults: Faults,
    /// Something has changed that a queue's status may say.
    pub(crate) dirty_queues: bool,
    /// Fair shares are being worked out, for the statuses of queues.
    dividing: bool,
    /// When the statuses of queues may be looked at again.
    queues_due_ms: UnixMs,
    /// The status of each queue that was last handed out to be written.
    pub(crate) reported_queues: BTreeMap<QueueId, QueueStatus>,
    /// Gangs that wait and gangs that run, by queue.
    pub(crate) gangs_by_queue: BTreeMap<QueueId, (u32, u32)>,
}

impl Teller {
    pub(crate) fn new() -> Self {
        Self {
            told: ById::default(),
            review: Review::default(),
            descriptions: Descriptions::default(),
            faults: Faults::default(),
            dirty_queues: true,
            dividing: false,
            queues_due_ms: 0,
            reported_queues: BTreeMap::new(),
            gangs_by_queue: BTreeMap::new(),
        }
    }
}

/// The engine as it is told of: to be read, and never to be changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) state: &'a ClusterState,
    pub(crate) settings: &'a Settings,
    /// How far each gang has come.
    pub(crate) progress: &'a ById<GangId, Progress>,
    /// Where each gang stands that waits.
    pub(crate) waiting: &'a ById<GangId, Waiting>,
    pub(crate) now_ms: UnixMs,
}
