//! The gangs that are to be tried, and what each refused gang waits for.
//!
//! A refused gang is parked under what its refusal names, and is looked at again only when an event
//! touches what is named. No gang polls.
//!
//! Most refusals are proved by counting: so many pods of a class find no room, so much more of a
//! resource exceeds a limit. The gangs of a queue that have one *shortfall* stand together, and
//! stay together when the shortfall may be eased: only then the first of them is a candidate, and
//! is tried when its queue's turn comes. So room that becomes free is offered in the order of the
//! queues, and a gang whose turn comes after the room has been taken is not looked at:
//!
//! ```text
//! freed ──> shortfalls that may be eased ──> a line-up: the head of each queue ──> one is tried
//!                     ^                                                              │
//!                     └────────── looked at again: what the room still holds <───────┘
//! ```
//!
//! What one freed room costs gangs of one shape does not grow with the number of queues or gangs
//! that wait, and the decisions are as if every gang were tried again at each event: a property
//! test compares the two.

mod freed;
mod line_ups;

use crate::gangs::wait::{Shortfall, Wake};
use crate::ids::{ClassId, GangId};
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::queues::{LineUp, QueueId};
use crate::settings::Queueing;
use crate::state::ClusterState;
use crate::state::sets::{put_in, take_out};
use alloc::collections::{BTreeMap, BTreeSet};
use freed::Freed;
use line_ups::LineUps;

/// Gangs in the order of a queue.
type Line = BTreeSet<(CandidateKey, GangId)>;

/// Candidates by queue, and parked gangs by what wakes them.
#[derive(Debug)]
pub(crate) struct Agenda {
    candidates: BTreeMap<QueueId, Line>,
    /// Candidates of which a part is bound already: they come before every queue's turn.
    unfinished: BTreeSet<(CandidateKey, QueueId, GangId)>,
    /// The refused gangs that keep the gangs behind them in their queue waiting.
    blocking: BTreeMap<QueueId, Line>,
    queueing: Queueing,
    /// The refused gangs of each queue by what they lack.
    lines: BTreeMap<QueueId, BTreeMap<Shortfall, Line>>,
    /// The queues in which gangs lack something.
    lacking: BTreeMap<Shortfall, BTreeSet<QueueId>>,
    /// Refused gangs of which a part is bound, with their shortfall: they wait for no queue's turn.
    unfinished_lacking: BTreeMap<GangId, Shortfall>,
    any_room: BTreeMap<ClassId, BTreeSet<GangId>>,
    /// Of classes in `any_room` whose places depend on other pods: what these said when a gang was
    /// refused that was not tried since.
    relation_stamps: BTreeMap<ClassId, u64>,
    queues: BTreeMap<QueueId, BTreeSet<GangId>>,
    freed: Freed,
    line_ups: LineUps,
}

/// The first gang of a queue, and the shortfall for which it was refused, which may be eased now;
/// `None`: the gang is a candidate.
pub(crate) type Head = (GangId, Option<Shortfall>);

impl Agenda {
    pub(crate) fn new(queueing: Queueing) -> Self {
        Self {
            candidates: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            blocking: BTreeMap::new(),
            queueing,
            lines: BTreeMap::new(),
            lacking: BTreeMap::new(),
            unfinished_lacking: BTreeMap::new(),
            any_room: BTreeMap::new(),
            relation_stamps: BTreeMap::new(),
            queues: BTreeMap::new(),
            freed: Freed::default(),
            line_ups: LineUps::new(),
        }
    }

    pub(crate) fn add(&mut self, queue: QueueId, key: CandidateKey, gang: GangId) {
        if key.kind == CandidateKind::Unfinished {
            self.unfinished.insert((key, queue, gang));
            return;
        }
        put_in(&mut self.candidates, queue, (key, gang));
    }

    pub(crate) fn remove(&mut self, queue: QueueId, key: CandidateKey, gang: GangId) {
        if key.kind == CandidateKind::Unfinished {
            self.unfinished.remove(&(key, queue, gang));
            return;
        }
        let Some(line) = self.candidates.get_mut(&queue) else {
            return;
        };
        // Mostly the gang is the first of its line, and need not be looked for.
        match line.first().is_some_and(|(_, first)| *first == gang) {
            true => drop(line.pop_first()),
            false => drop(line.remove(&(key, gang))),
        }
        if line.is_empty() {
            self.candidates.remove(&queue);
        }
    }

    /// The unfinished gang that is tried next, and its queue.
    pub(crate) fn first_unfinished(&self) -> Option<(QueueId, GangId)> {
        let (_, queue, gang) = self.unfinished.first()?;
        Some((*queue, *gang))
    }

    /// The gang of a queue that is tried next in a line-up.
    pub(crate) fn head(&self, line_up: LineUp, queue: QueueId) -> Option<Head> {
        let turn = self.candidates.get(&queue).and_then(BTreeSet::first);
        let mut first = turn.map(|(key, gang)| (key, (*gang, None)));
        let eased = self.line_ups.eased(line_up);
        let lines = self.lines.get(&queue).filter(|_| !eased.is_empty());
        for (shortfall, line) in lines.into_iter().flatten() {
            let Some((key, gang)) = line.first() else {
                continue;
            };
            let earlier = first.is_none_or(|(first, _)| key < first);
            if earlier && eased.contains(shortfall) && !self.freed.in_vain(*shortfall, queue) {
                first = Some((key, (*gang, Some(*shortfall))));
            }
        }
        let (key, head) = first?;
        let blocker = self.blocking.get(&queue).and_then(BTreeSet::first);
        let blocked = blocker.is_some_and(|(blocker, _)| blocker < key);
        (!blocked).then_some(head)
    }

    /// The first refused gang of a queue that no gang may pass, if it stands before all candidates
    /// of the queue.
    pub(crate) fn blocker(&self, queue: QueueId) -> Option<GangId> {
        let (blocker, gang) = self.blocking.get(&queue)?.first()?;
        let turn = self.candidates.get(&queue).and_then(BTreeSet::first);
        turn.is_none_or(|(key, _)| blocker < key).then_some(*gang)
    }

    /// Keeps a refused gang until what its refusal names changes.
    pub(crate) fn park(
        &mut self,
        state: &ClusterState,
        gang: GangId,
        wake: &Wake,
        (queue, key): (QueueId, &CandidateKey),
    ) {
        match wake {
            Wake::Eased(shortfall) if key.kind == CandidateKind::Unfinished => {
                self.unfinished_lacking.insert(gang, *shortfall);
            }
            Wake::Eased(shortfall) => {
                let lines = self.lines.entry(queue).or_default();
                put_in(lines, *shortfall, (key.clone(), gang));
                if !self.lacking.contains_key(shortfall) {
                    self.line_ups.changed();
                }
                put_in(&mut self.lacking, *shortfall, queue);
                self.freed.refused(*shortfall, queue);
            }
            Wake::AnyRoom(classes, full) => {
                for class in classes {
                    put_in(&mut self.any_room, *class, gang);
                    if state.is_related(*class) {
                        let stamp = state.relation_stamp(*class);
                        self.relation_stamps.entry(*class).or_insert(stamp);
                    }
                }
                if let Some(full) = full {
                    put_in(&mut self.queues, *full, gang);
                }
            }
            Wake::Queue(full) => put_in(&mut self.queues, *full, gang),
            // The reservations know which gangs wait for them.
            Wake::Promises => {}
        }
        if self.queueing == Queueing::Strict {
            put_in(&mut self.blocking, queue, (key.clone(), gang));
        }
    }

    /// Whether a gang that was refused for room or for a bound waits.
    pub(crate) fn has_refused(&self) -> bool {
        let wait_in_line = !self.lacking.is_empty() || !self.unfinished_lacking.is_empty();
        wait_in_line || !self.any_room.is_empty() || !self.queues.is_empty()
    }

    pub(crate) fn unpark(&mut self, gang: GangId, wake: &Wake, queue: QueueId, key: &CandidateKey) {
        // The entry of a parked gang is found by the key with which it was parked.
        let entry = (key.clone(), gang);
        take_out(&mut self.blocking, &queue, &entry);
        match wake {
            Wake::Eased(_) if key.kind == CandidateKind::Unfinished => {
                self.unfinished_lacking.remove(&gang);
            }
            Wake::Eased(shortfall) => self.leave_line(queue, *shortfall, &entry),
            Wake::AnyRoom(classes, full) => {
                for class in classes {
                    take_out(&mut self.any_room, class, &gang);
                    if !self.any_room.contains_key(class) {
                        self.relation_stamps.remove(class);
                    }
                }
                if let Some(full) = full {
                    take_out(&mut self.queues, full, &gang);
                }
            }
            Wake::Queue(full) => take_out(&mut self.queues, full, &gang),
            Wake::Promises => {}
        }
    }

    fn leave_line(&mut self, queue: QueueId, shortfall: Shortfall, entry: &(CandidateKey, GangId)) {
        let Some(lines) = self.lines.get_mut(&queue) else {
            return;
        };
        take_out(lines, &shortfall, entry);
        let remains = lines.contains_key(&shortfall);
        if lines.is_empty() {
            self.lines.remove(&queue);
        }
        if !remains {
            take_out(&mut self.lacking, &shortfall, &queue);
        }
    }
}
