//! The one way into the loop: watch events, outcomes, settings and questions; and what answers
//! them.

use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, ObjectKey};
use gpu_batch_policies::explain::{Explanation, NotFound};
use gpu_batch_policies::extender::{BindAnswer, NodeAnswer, Unanswered};
use gpu_batch_policies::facts::{Uid, UnixMs};
use gpu_batch_policies::report::{GangReport, GpuReport, Inventory, QueueReport};
use gpu_batch_policies::settings::Settings;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};

/// How many events may wait before the watches are held back.
const CAPACITY: usize = 1 << 16;

/// A bounded channel that keeps only the latest news of each object, and loses no object.
///
/// The latest news of an object stands where the first news of it stood; a list of a kind replaces
/// all news of that kind. Outcomes, settings, binds that were asked for and questions are never
/// coalesced.
///
/// Memory is bounded by the objects that exist. If the driver falls behind and 65,536 different
/// objects wait, [`Inbox::watched`] waits too: then the watches read no more, the API server ends
/// watches that lag, and they go on from where they were (or list again). News of an object that
/// waits already always gets in, and so do outcomes: the engine bounds how many there are.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pending: Mutex<Pending>,
    arrived: Condvar,
    taken: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    /// In the order of arrival; `None` where a list has replaced the news.
    events: Vec<Option<Event>>,
    /// Where in `events` the news of an object waits.
    places: HashMap<ObjectKey, usize>,
    questions: Vec<Question>,
    stopping: bool,
}

/// What the driver takes out at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    pub(crate) questions: Vec<Question>,
    /// Whether the driver was asked to stop, now or earlier.
    pub(crate) stopping: bool,
}

/// A copy of what users see, taken from the engine on demand and at most once a second.
#[derive(Debug, Clone, Default)]
pub struct Reports {
    /// When the copy was taken, in Unix milliseconds.
    pub taken_ms: UnixMs,
    /// Whether every kind has been listed, so that decisions are made.
    pub is_synced: bool,
    /// Whether this process may act.
    pub is_leader: bool,
    /// All gangs, in the order of their names.
    pub gangs: Vec<GangReport>,
    /// All queues, parents before children, siblings by name.
    pub queues: Vec<QueueReport>,
    /// All GPUs, in the order of models and resources.
    pub gpus: Vec<GpuReport>,
}

impl Reports {
    /// Takes the copy.
    pub(crate) fn take(engine: &mut Engine, now_ms: UnixMs) -> Self {
        Self {
            taken_ms: now_ms,
            is_synced: engine.is_synced(),
            is_leader: engine.is_leader(),
            gangs: engine.gang_reports(),
            queues: engine.queue_reports(),
            gpus: engine.gpu_reports(),
        }
    }
}

/// A question to the loop, which alone touches the engine.
#[derive(Debug)]
pub(crate) enum Question {
    Reports(oneshot::Sender<Arc<Reports>>),
    Audit(oneshot::Sender<Vec<String>>),
    Inventory(oneshot::Sender<Inventory>),
    Explain(Asked, oneshot::Sender<Explained>),
    Filter(OfNodes, oneshot::Sender<Answer<Vec<NodeAnswer>>>),
    Score(OfNodes, oneshot::Sender<Answer<Vec<u8>>>),
    Victims(OfVictims, oneshot::Sender<Answer<Vec<bool>>>),
    /// Put in by [`Inbox::bind`] alone.
    Bind(BindAsker),
}

/// What the engine answers as an extender of kube-scheduler.
pub(crate) type Answer<T> = Result<T, Unanswered>;

/// Nodes that kube-scheduler asks about for a pod. Shared, because the question may be put again.
#[derive(Debug, Clone)]
pub(crate) struct OfNodes {
    pub(crate) pod: Uid,
    pub(crate) nodes: Arc<[Box<str>]>,
}

/// Groups of pods that kube-scheduler would evict for a pod.
#[derive(Debug, Clone)]
pub(crate) struct OfVictims {
    pub(crate) pod: Uid,
    pub(crate) groups: Arc<[Vec<Uid>]>,
}

/// A request for a bind, which waits until the pod is bound, or will not be.
#[derive(Debug)]
pub(crate) struct BindAsker {
    pub(crate) pod: Uid,
    pub(crate) node: Box<str>,
    pub(crate) asker: oneshot::Sender<Answer<BindAnswer>>,
    /// A place among those who may wait; it is free again when this is dropped.
    pub(crate) _place: OwnedSemaphorePermit,
}

/// The gang or the pod that is to be explained.
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
    /// This process decides nothing now: it has not listed everything, or another process leads.
    NotLeading,
}

impl Inbox {
    /// Puts in an event of a watch; waits while the inbox is full.
    pub(crate) async fn watched(&self, event: Event) {
        let mut event = event;
        loop {
            // Made before the attempt, so that a `take` in between is not missed.
            let taken = self.taken.notified();
            match self.lock().watched(event) {
                Ok(()) => break,
                Err(back) => event = back,
            }
            taken.await;
        }
        self.arrived.notify_one();
    }

    /// Puts in the outcome of a command.
    pub(crate) fn ended(&self, outcome: Event) {
        self.lock().events.push(Some(outcome));
        self.arrived.notify_one();
    }

    /// Puts in settings that have changed.
    pub(crate) fn configured(&self, settings: Settings) {
        let event = Event::Configured(Box::new(settings));
        self.lock().events.push(Some(event));
        self.arrived.notify_one();
    }

    /// Puts in a bind that kube-scheduler asks for, and who waits for it: together, so that one
    /// batch has both. How many wait is bounded by the places that they have.
    pub(crate) fn bind(&self, asker: BindAsker) {
        let event = Event::BindAsked {
            pod: asker.pod,
            node: asker.node.clone(),
        };
        let mut pending = self.lock();
        pending.events.push(Some(event));
        pending.questions.push(Question::Bind(asker));
        drop(pending);
        self.arrived.notify_one();
    }

    /// Puts in a question.
    pub(crate) fn ask(&self, question: Question) {
        self.lock().questions.push(question);
        self.arrived.notify_one();
    }

    /// Asks the driver to stop.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.arrived.notify_one();
    }

    /// Takes everything out; waits for at most `wait` if the inbox is empty. `known_stopping`: the
    /// driver knows already that it is to stop, so that this does not end the wait.
    pub(crate) fn take(&self, wait: Duration, known_stopping: bool) -> Batch {
        let nothing = |pending: &mut Pending| {
            pending.events.is_empty()
                && pending.questions.is_empty()
                && (known_stopping || !pending.stopping)
        };
        let guard = self.lock();
        let (mut pending, _) = self
            .arrived
            .wait_timeout_while(guard, wait, nothing)
            .unwrap_or_else(PoisonError::into_inner);
        pending.places.clear();
        let batch = Batch {
            events: std::mem::take(&mut pending.events)
                .into_iter()
                .flatten()
                .collect(),
            questions: std::mem::take(&mut pending.questions),
            stopping: pending.stopping,
        };
        drop(pending);
        self.taken.notify_waiters();
        batch
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // Nothing panics while it holds this lock, so the entries behind it are whole.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Puts in an event; gives it back if there is no room for it.
    fn watched(&mut self, event: Event) -> Result<(), Event> {
        let key = match &event {
            Event::Applied(object) => object.key(),
            Event::Deleted(key) => key.clone(),
            Event::Listed(listing) => {
                self.forget(listing.kind);
                self.events.push(Some(event));
                return Ok(());
            }
            Event::Outcome(..)
            | Event::Configured(_)
            | Event::BindAsked { .. }
            | Event::Continue => {
                self.events.push(Some(event));
                return Ok(());
            }
        };
        if let Some(&place) = self.places.get(&key) {
            self.events[place] = Some(event);
        } else if self.events.len() >= CAPACITY {
            return Err(event);
        } else {
            self.places.insert(key, self.events.len());
            self.events.push(Some(event));
        }
        Ok(())
    }

    /// Drops the waiting news of a kind, because a list replaces it.
    fn forget(&mut self, kind: Kind) {
        self.places.retain(|key, _| key.kind() != kind);
        for slot in &mut self.events {
            let replaced = match slot {
                Some(Event::Applied(object)) => object.kind() == kind,
                Some(Event::Deleted(key)) => key.kind() == kind,
                Some(Event::Listed(listing)) => listing.kind == kind,
                Some(
                    Event::Outcome(..)
                    | Event::Configured(_)
                    | Event::BindAsked { .. }
                    | Event::Continue,
                )
                | None => false,
            };
            if replaced {
                *slot = None;
            }
        }
    }
}

#[cfg(test)]
mod tests;
