//! Requests that wait to be sent, and requests under way.
//!
//! The order when the API server is slow: observations, evictions of gangs that are stale or
//! unwound, binds, the nominations and evictions of takings, statuses, Kubernetes events. Evictions
//! of stale and unwound gangs are few and end what must not last; binds can be many. The numbers of
//! actions, status writes and events under way are bounded each by itself, so that statuses and
//! events never delay a bind. A request for the lease is sent at once.

use crate::command::{Action, Announcement, Command, CommandId};
use crate::facts::{Uid, UnixMs};
use crate::ids::GangId;
use crate::queues::QueueId;
use crate::settings::InFlight;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

/// Kubernetes events beyond this number are dropped, oldest first: they are news, not state.
const ANNOUNCEMENTS_MAX: usize = 20_000;

/// A status that may have changed. What is written is worked out when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum StatusKey {
    /// The status of a gang's PodGroup.
    Gang(GangId),
    /// The condition of a pod.
    Pod(Uid),
    /// The status of a queue.
    Queue(QueueId),
}

/// A request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flight {
    Bind(Uid),
    Observe(Uid),
    Evict(Uid),
    /// A planned pod that has a place is nominated, or its gate is lifted.
    Offer(Uid),
    /// A claim is told where its volume is to be, or a volume is kept for it; or that is taken
    /// back.
    Select(Uid),
    /// The lock on the cards of a node is taken.
    Lock,
    /// The lock on the cards of a node is given back.
    Unlock,
    /// The nominated node of a pod that waits is written, or taken back.
    Nominate(Uid),
    Status(StatusKey),
    Announcement,
    Lease,
}

/// Requests to come and requests under way.
#[derive(Debug)]
pub(crate) struct Outbox {
    limits: InFlight,
    last_id: u64,
    pub(super) observations: VecDeque<Uid>,
    pub(super) binds: VecDeque<Uid>,
    pub(super) evictions: VecDeque<Uid>,
    statuses: VecDeque<StatusKey>,
    /// The keys in `statuses`.
    queued_statuses: HashSet<StatusKey, FxBuildHasher>,
    /// The statuses whose writes are under way; true: the status may have changed since. Two writes
    /// of one status must never be under way together, because the older write could arrive last.
    written_statuses: BTreeMap<StatusKey, bool>,
    announcements: VecDeque<Announcement>,
    in_flight: BTreeMap<CommandId, Flight>,
    /// The commands of this step.
    sent: Vec<Command>,
    actions: u32,
    status_writes: u32,
    announcing: u32,
    electing: u32,
}

impl Outbox {
    pub(crate) fn new(limits: InFlight) -> Self {
        Self {
            limits,
            last_id: 0,
            observations: VecDeque::new(),
            binds: VecDeque::new(),
            evictions: VecDeque::new(),
            statuses: VecDeque::new(),
            queued_statuses: HashSet::default(),
            written_statuses: BTreeMap::new(),
            announcements: VecDeque::new(),
            in_flight: BTreeMap::new(),
            sent: Vec::new(),
            actions: 0,
            status_writes: 0,
            announcing: 0,
            electing: 0,
        }
    }

    /// Bounds the number of requests under way from now on.
    pub(crate) fn set_limits(&mut self, limits: InFlight) {
        self.limits = limits;
    }

    /// Whether statuses are written at all.
    pub(crate) fn writes_statuses(&self) -> bool {
        self.limits.statuses > 0
    }

    /// Whether Kubernetes events are published at all.
    pub(crate) fn announces(&self) -> bool {
        self.limits.announcements > 0
    }

    /// Lets a status be looked at. While a write of it is under way, it is looked at afterwards.
    pub(crate) fn status(&mut self, key: StatusKey) {
        if !self.writes_statuses() {
            return;
        }
        if let Some(changed) = self.written_statuses.get_mut(&key) {
            *changed = true;
        } else if self.queued_statuses.insert(key) {
            self.statuses.push_back(key);
        }
    }

    /// The next status to look at, if there is room for a request and nothing more urgent waits.
    pub(crate) fn next_status(&mut self) -> Option<StatusKey> {
        if self.actions_wait() || self.status_writes >= self.limits.statuses {
            return None;
        }
        let key = self.statuses.pop_front()?;
        self.queued_statuses.remove(&key);
        Some(key)
    }

    /// Queues a Kubernetes event, unless none are published.
    pub(crate) fn announce(&mut self, announcement: Announcement) {
        if !self.announces() {
            return;
        }
        if self.announcements.len() == ANNOUNCEMENTS_MAX {
            self.announcements.pop_front();
        }
        self.announcements.push_back(announcement);
    }

    /// The next event, if there is room for a request and nothing more urgent waits.
    pub(crate) fn next_announcement(&mut self) -> Option<Announcement> {
        let free = self.announcing < self.limits.announcements;
        if !free || self.actions_wait() || !self.statuses.is_empty() {
            return None;
        }
        self.announcements.pop_front()
    }

    /// Whether another action may be under way.
    pub(super) fn has_room_for_action(&self) -> bool {
        self.actions < self.limits.actions
    }

    /// Whether actions wait to be sent. Until they are sent, statuses and events are not.
    pub(crate) fn actions_wait(&self) -> bool {
        !(self.observations.is_empty() && self.binds.is_empty() && self.evictions.is_empty())
    }

    /// Gives a request a number, counts it as under way, and adds it to the commands of this step.
    pub(crate) fn send(
        &mut self,
        flight: Flight,
        deadline_ms: UnixMs,
        action: Action,
    ) -> CommandId {
        self.last_id += 1;
        let id = CommandId(self.last_id);
        self.in_flight.insert(id, flight);
        if let Flight::Status(key) = flight {
            self.written_statuses.insert(key, false);
        }
        *self.counter(flight) += 1;
        self.sent.push(Command {
            id,
            deadline_ms,
            action,
        });
        id
    }

    /// The commands of this step.
    pub(crate) fn take_sent(&mut self) -> Vec<Command> {
        core::mem::take(&mut self.sent)
    }

    /// Takes in that a request has ended, and returns what it was. `None`: it is not ours, or it
    /// has ended before.
    pub(crate) fn ended(&mut self, id: CommandId) -> Option<Flight> {
        let flight = self.in_flight.remove(&id)?;
        let counter = self.counter(flight);
        *counter = counter.saturating_sub(1);
        if let Flight::Status(key) = flight
            && self.written_statuses.remove(&key) == Some(true)
        {
            self.status(key);
        }
        Some(flight)
    }

    fn counter(&mut self, flight: Flight) -> &mut u32 {
        match flight {
            Flight::Bind(_)
            | Flight::Observe(_)
            | Flight::Evict(_)
            | Flight::Offer(_)
            | Flight::Select(_)
            | Flight::Lock
            | Flight::Unlock
            | Flight::Nominate(_) => &mut self.actions,
            Flight::Status(_) => &mut self.status_writes,
            Flight::Announcement => &mut self.announcing,
            // The lease has a connection of its own and holds up nothing.
            Flight::Lease => &mut self.electing,
        }
    }

    /// Drops the actions that have not been sent.
    pub(super) fn forget_actions(&mut self) {
        self.observations.clear();
        self.binds.clear();
        self.evictions.clear();
    }

    /// Whether no action is under way or waits to be sent. Statuses and events may be lost, and
    /// takings (see [`takings`](super::takings)) have their own queues.
    pub(crate) fn is_quiet(&self) -> bool {
        self.actions == 0 && !self.actions_wait()
    }

    /// Whether no request of any sort is under way or waits to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
            && !self.actions_wait()
            && self.statuses.is_empty()
            && self.announcements.is_empty()
    }

    /// How many requests of any sort are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::StatusPatch;
    use crate::settings::Settings;
    use crate::status::QueueStatus;

    #[test]
    fn two_writes_of_one_status_are_never_under_way_together() {
        let key = StatusKey::Pod(Uid(1));
        let mut outbox = Outbox::new(Settings::default().in_flight);
        outbox.status(key);
        assert_eq!(outbox.next_status(), Some(key));
        let patch = StatusPatch::Queue {
            name: "q".into(),
            uid: Uid(1),
            status: QueueStatus::default(),
        };
        let write = outbox.send(Flight::Status(key), 0, Action::PatchStatus(patch));
        outbox.status(key);
        outbox.status(StatusKey::Pod(Uid(2)));
        assert_eq!(outbox.next_status(), Some(StatusKey::Pod(Uid(2))));
        assert_eq!(outbox.next_status(), None);
        outbox.ended(write);
        assert_eq!(outbox.next_status(), Some(key));
        assert_eq!(outbox.next_status(), None);
    }
}
