//! What people see: statuses, conditions and events of gangs, queues and other objects, reports and
//! explanations. Nothing here decides anything.

mod cards;
pub(crate) mod explain;
mod faults;
mod gang;
pub(crate) mod gpus;
mod others;
mod protection;
mod queues;
pub(crate) mod reports;
mod review;
mod status;
pub(crate) mod taken;
mod told;
pub(crate) mod why;
mod words;

use crate::event::{Event, Object, ObjectKey};
use crate::facts::UnixMs;
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId};
use crate::plan::waiting::Waiting;
use crate::queues::QueueId;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::status::QueueStatus;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use cards::FailedCards;
use faults::Faults;
use protection::Protection;
use review::Review;
use told::Told;
use words::Descriptions;
pub(crate) use words::bound_in_words;

/// What users were last told, and what is still to be told. Only the teller changes that: the
/// engine tells it what has happened.
#[derive(Debug)]
pub(crate) struct Teller {
    /// The status and the events that users were last told of each gang.
    told: ById<GangId, Told>,
    /// Which sentences about refused gangs are made again.
    review: Review,
    descriptions: Descriptions,
    faults: Faults,
    failed_cards: FailedCards,
    /// Something has changed that a queue's status may say.
    dirty_queues: bool,
    /// Fair shares are being worked out, for the statuses of queues.
    dividing: bool,
    /// The version of the fair shares in the statuses of queues. Others work out fair shares, too,
    /// for plans and for people who ask.
    told_shares: Option<u64>,
    /// When the statuses of queues may be looked at again.
    queues_due_ms: UnixMs,
    /// The status of each queue that was last handed out to be written.
    reported_queues: BTreeMap<QueueId, QueueStatus>,
    /// How often another gpu-batch took the status of a queue from us, by the queue's name.
    taken_queues: BTreeMap<Box<str>, u32>,
    /// How many gangs wait and how many run, by queue.
    gangs_by_queue: BTreeMap<QueueId, (u32, u32)>,
    /// In which queues it is to be worked out which gangs are protected.
    protection: Protection,
}

impl Teller {
    pub(crate) fn new() -> Self {
        Self {
            told: ById::default(),
            review: Review::default(),
            descriptions: Descriptions::default(),
            faults: Faults::default(),
            failed_cards: FailedCards::default(),
            dirty_queues: true,
            dividing: false,
            told_shares: None,
            queues_due_ms: 0,
            reported_queues: BTreeMap::new(),
            taken_queues: BTreeMap::new(),
            gangs_by_queue: BTreeMap::new(),
            protection: Protection::default(),
        }
    }

    /// Begins to tell users of these gangs and of all queues: another process may have led
    /// meanwhile, and written other statuses.
    pub(crate) fn begin_to_lead(&mut self, gangs: impl IntoIterator<Item = GangId>) {
        for gang in gangs {
            let told = &mut self.told[gang];
            told.reported = None;
            told.scheduled = (false, 0);
        }
        self.reported_queues.clear();
        self.dirty_queues = true;
    }

    /// Makes no more sentences again, because another process leads.
    pub(crate) fn stand_down(&mut self) {
        self.review = Review::default();
    }

    /// Takes in an event, for the faults that can be seen in its objects, and for who tells of
    /// queues. The state has not taken it in yet.
    pub(crate) fn hear(&mut self, state: &ClusterState, event: &Event) {
        self.faults.hear(state, event);
        for object in event.objects() {
            if let Object::Queue(queue) = object {
                self.hear_of_queue(state, queue);
            }
        }
        if let Event::Deleted(ObjectKey::Queue(name)) = event {
            self.taken_queues.remove(name);
        }
    }

    /// Takes in that something has happened that may make sentences about refused gangs untrue.
    pub(crate) fn doubt_sentences(&mut self) {
        self.review.note();
    }

    /// Takes in that a gang asks for something else now.
    pub(crate) fn note_spec(&mut self, gang: GangId, now_ms: UnixMs) {
        self.told[gang].specified_ms = now_ms;
    }

    /// Notes the faults of the Jobs and of the PodGroup of a gang that has members, and on which
    /// failed cards it runs.
    pub(crate) fn note_faults(&mut self, state: &ClusterState, gang: GangId) {
        self.faults.note_gang(state, gang);
        self.failed_cards.note(state, gang);
    }

    /// Takes in that nodes offer something else now, or that Topologies have changed.
    pub(crate) fn note_offered(&mut self, state: &ClusterState) {
        self.dirty_queues = true;
        self.faults.note_topologies(state);
    }

    /// Forgets a gang that is gone: its number may be given to another gang.
    pub(crate) fn forget_gang(&mut self, gang: GangId) {
        self.told.forget(gang);
        self.failed_cards.forget(gang);
        self.dirty_queues = true;
    }

    /// Notes that something may have changed that a queue's status says.
    pub(crate) fn note_queues(&mut self, has_changed: bool) {
        self.dirty_queues |= has_changed;
    }

    /// Forgets a queue that has gone.
    pub(crate) fn forget_queue(&mut self, queue: QueueId) {
        self.gangs_by_queue.remove(&queue);
        self.reported_queues.remove(&queue);
        self.protection.forget(queue);
    }

    /// Forgets all queues, because they have other numbers now.
    pub(crate) fn forget_queues(&mut self) {
        self.gangs_by_queue.clear();
        self.reported_queues.clear();
        self.protection = Protection::default();
        self.dirty_queues = true;
    }
}

/// What is read of the engine to tell anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) state: &'a ClusterState,
    pub(crate) settings: &'a Settings,
    /// How far each gang has come.
    pub(crate) progress: &'a ById<GangId, Progress>,
    /// What each gang waits for, and its place in the line of its queue.
    pub(crate) waiting: &'a ById<GangId, Waiting>,
    pub(crate) now_ms: UnixMs,
}

/// What a [`View`] has, with a state in which things can be tried.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) state: &'a mut ClusterState,
    pub(crate) settings: &'a Settings,
    /// How far each gang has come.
    pub(crate) progress: &'a ById<GangId, Progress>,
    /// What each gang waits for, and its place in the line of its queue.
    pub(crate) waiting: &'a ById<GangId, Waiting>,
    pub(crate) now_ms: UnixMs,
}

impl Scene<'_> {
    pub(crate) fn view(&self) -> View<'_> {
        View {
            state: self.state,
            settings: self.settings,
            progress: self.progress,
            waiting: self.waiting,
            now_ms: self.now_ms,
        }
    }
}
