//! The filling itself: which queues are served, how fast, until when.
//!
//! Every queue has a clock of its own. On a leaf's clock, 1 is the time at which the leaf has all
//! that it wants. On an inner queue's clock, 1 is the time in which the levels of the children that
//! it serves rise by 1. So a child's rate (its ticks in one tick of its parent) depends on the
//! child alone, and an event changes only the queues on the path from where it happens up to the
//! root. All other queues are brought up to date when they are next looked at:
//!
//! ```text
//! root   |------------------>|   the clock of each queue on the path is set to the event
//! p      |-------->|         |
//! p1     |-->* event         |
//! p2     |- - - - - - - - - - - ->   not looked at: its amounts follow from rate and clock of p
//! ```

mod turn;

use super::Division;
use super::number::Number;
use crate::facts::Amount;
use crate::queues::node::Node;
use crate::queues::{GovernedId, QueueId};
use alloc::{vec, vec::Vec};
use smallvec::SmallVec;
use turn::{Turn, first, next_to_be_served};

/// The next event at a queue or below it.
#[derive(Debug, Clone, Copy)]
struct Event {
    /// How far away the event is, in ticks of the queue's clock.
    ticks: Number,
    /// The child at or below which the event happens; `None`: at the queue itself.
    child: Option<QueueId>,
}

/// The state of one queue at the time that its clock shows.
#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    clock: Number,
    /// What the parent's clock shows at that time.
    parent_clock: Number,
    /// The ticks of the queue's clock in one tick of its parent's; 0: the queue waits.
    rate: Number,
    /// Where the queue stands among its siblings; `None` for blocked queues and the root.
    turn: Option<Turn>,
    /// The next event; `None` for blocked queues.
    next: Option<Event>,
    /// The level that the children which are served had when the clock was 0.
    level: Number,
    /// The number of the event at which the queue was last visited.
    instant: usize,
}

impl Filled {
    /// How many ticks away the next event is on the parent's clock, when that shows `parent_clock`.
    fn next_from(&self, parent_clock: Number) -> Option<Number> {
        if self.rate.is_zero() {
            return None;
        }
        let ticks = self.next?.ticks.divided_by(self.rate);
        Some(ticks.minus(parent_clock.minus(self.parent_clock)))
    }
}

/// How far a filling has come. The vectors are by queue, or by queue and key.
#[derive(Debug)]
pub(super) struct State {
    queues: Vec<Filled>,
    amount: Vec<Number>,
    /// What a queue gets in one tick of its clock: a leaf all that it wants, but for the parts that
    /// need a key which is full.
    flow: Vec<Number>,
    /// Whether a key is full: it has reached a bound of the queue or of one above it.
    full: Vec<bool>,
    /// How many events have passed.
    instant: usize,
}

/// A filling that runs: its state, and what it divides.
pub(super) struct Filling<'a> {
    given: &'a Division,
    keys: usize,
    state: State,
    /// The cells looked at that are not yet added to the caller's work.
    work: u64,
}

impl<'a> Filling<'a> {
    /// Begins a filling with empty queues.
    pub(super) fn begin(given: &'a Division, work: &mut u64) -> Self {
        let queues = given.structure.len();
        let keys = given.capacity.len();
        let state = State {
            queues: vec![Filled::default(); queues],
            amount: vec![Number::ZERO; queues * keys],
            flow: vec![Number::ZERO; queues * keys],
            full: vec![false; queues * keys],
            instant: 0,
        };
        let mut filling = Self::resume(given, state);
        for &id in given.structure.with_root() {
            filling.note_full(id);
            filling.take_up_parts(id);
        }
        filling.settle_below(QueueId::ROOT);
        filling.settle(QueueId::ROOT);
        *work += core::mem::take(&mut filling.work);
        filling
    }

    /// Goes on with a filling that was interrupted.
    pub(super) fn resume(given: &'a Division, state: State) -> Self {
        Self {
            given,
            keys: given.capacity.len(),
            state,
            work: 0,
        }
    }

    pub(super) fn interrupt(self) -> State {
        self.state
    }

    /// What a queue has of a key at the time that its clock shows.
    pub(super) fn amount(&self, id: QueueId, key: usize) -> Number {
        self.state.amount[self.cell(id, key)]
    }

    fn cell(&self, id: QueueId, key: usize) -> usize {
        id.index() * self.keys + key
    }

    fn node(&self, id: QueueId) -> &'a Node {
        self.given.structure.node(id)
    }

    fn progress(&self, id: QueueId) -> &Filled {
        &self.state.queues[id.index()]
    }

    fn flow(&self, id: QueueId, key: GovernedId) -> Number {
        self.state.flow[self.cell(id, key.index())]
    }

    fn gets(&self, id: QueueId, key: GovernedId) -> bool {
        !self.flow(id, key).is_zero()
    }

    /// What bounds a queue's amount of a key: for the root the capacity, else the queue's limit.
    fn bound(&self, id: QueueId, key: GovernedId) -> Option<Amount> {
        if id == QueueId::ROOT {
            return Some(self.given.capacity(key));
        }
        self.node(id).terms_of(key)?.limit
    }

    /// Goes from event to event until no queue can be served any more, or `work` has reached
    /// `until`. Returns whether the filling is at its end.
    pub(super) fn pass_events(&mut self, work: &mut u64, until: u64) -> bool {
        // Each event blocks a leaf, uses a quota up, or makes two siblings or two keys level. The
        // bound on their number only guards against a series of events that rounding would repeat
        // for ever.
        let most_events = (self.state.queues.len() + 8) * (self.keys + 2) * 4;
        while self.state.instant < most_events {
            if *work >= until {
                return false;
            }
            self.state.instant += 1;
            let instant = self.state.instant;
            let mut path: SmallVec<[QueueId; 8]> = SmallVec::from_slice(&[QueueId::ROOT]);
            let mut next = self.state.queues[0].next;
            while let Some(child) = next.and_then(|event| event.child) {
                self.enter(&mut path, child, instant);
                next = self.progress(child).next;
            }
            let Some(event) = next else { break };
            self.advance(&path, event.ticks);
            self.settle_path(path, instant);
            *work += core::mem::take(&mut self.work);
        }
        self.catch_up_below(QueueId::ROOT);
        true
    }

    /// Extends a path to a child, and brings the child up to date.
    fn enter(&mut self, path: &mut SmallVec<[QueueId; 8]>, child: QueueId, instant: usize) {
        self.catch_up(child);
        self.state.queues[child.index()].instant = instant;
        path.push(child);
    }

    /// Settles all queues of a path, from its end to the root.
    ///
    /// On the way it visits all queues at or below which another event happens at this instant,
    /// children before parents: whether a queue gives way to a sibling may depend on what it serves
    /// after the last of simultaneous events.
    fn settle_path(&mut self, mut path: SmallVec<[QueueId; 8]>, instant: usize) {
        while let Some(&id) = path.last() {
            if let Some(child) = self.simultaneous(id, instant) {
                self.enter(&mut path, child, instant);
                continue;
            }
            if self.note_full(id) {
                self.catch_up_below(id);
                self.settle_below(id);
            }
            self.settle(id);
            if self.simultaneous(id, instant).is_none() {
                path.pop();
            }
        }
    }

    /// A child that is served, that has not been visited at this instant, and that has an event at
    /// this instant as far as rounding lets us know.
    fn simultaneous(&self, id: QueueId, instant: usize) -> Option<QueueId> {
        let Filled { clock, level, .. } = *self.progress(id);
        let level = level.plus(clock);
        let is_now = |&child: &QueueId| {
            let progress = self.progress(child);
            let ticks = progress.next_from(clock);
            progress.instant != instant && ticks.is_some_and(|it| it.is_negligible_to(level))
        };
        self.node(id).children.iter().copied().find(is_now)
    }

    /// Lets `ticks` pass for the last queue of a path, and as much time for the queues above it.
    fn advance(&mut self, path: &[QueueId], mut ticks: Number) {
        for &id in path.iter().rev() {
            let parent_ticks = ticks.divided_by(self.progress(id).rate);
            self.pass(id, ticks, parent_ticks);
            ticks = parent_ticks;
        }
    }

    /// Brings a queue up to date with its parent.
    fn catch_up(&mut self, id: QueueId) {
        let parent_clock = self.progress(self.given.structure.parent_id(id)).clock;
        let Filled {
            parent_clock: before,
            rate,
            ..
        } = *self.progress(id);
        let parent_ticks = parent_clock.minus(before);
        self.pass(id, parent_ticks.times(rate), parent_ticks);
        self.state.queues[id.index()].parent_clock = parent_clock;
    }

    fn catch_up_below(&mut self, id: QueueId) {
        for &below in self.given.structure.below(id) {
            self.catch_up(below);
        }
    }

    /// Lets time pass for a queue: `ticks` of its own clock, `parent_ticks` of its parent's.
    fn pass(&mut self, id: QueueId, ticks: Number, parent_ticks: Number) {
        for cell in self.cell(id, 0)..self.cell(id, self.keys) {
            self.state.amount[cell] =
                self.state.amount[cell].plus(self.state.flow[cell].times(ticks));
        }
        let progress = &mut self.state.queues[id.index()];
        progress.clock = progress.clock.plus(ticks);
        progress.parent_clock = progress.parent_clock.plus(parent_ticks);
        if let Some(turn) = progress.turn.as_mut().filter(|turn| !turn.pace.is_zero()) {
            turn.level = turn.level.plus(turn.pace.times(ticks));
        }
        if let Some(event) = &mut progress.next {
            event.ticks = event.ticks.minus(ticks);
        }
    }

    /// Notes which keys are full: those that have reached a bound of the queue, or are full above
    /// it. Returns whether any has become full now.
    fn note_full(&mut self, id: QueueId) -> bool {
        let parent = self.given.structure.parent_id(id);
        let mut new = false;
        for key in self.given.all_keys() {
            let cell = self.cell(id, key.index());
            let reached = |bound| self.state.amount[cell].reaches(Number::from(bound));
            let full = self.state.full[self.cell(parent, key.index())]
                || self.bound(id, key).is_some_and(reached);
            new |= full && !self.state.full[cell];
            self.state.full[cell] |= full;
        }
        if new {
            self.take_up_parts(id);
        }
        new
    }

    /// Lets a leaf get those parts of what it wants that need no key which is full.
    fn take_up_parts(&mut self, id: QueueId) {
        let cells = self.cell(id, 0)..self.cell(id, self.keys);
        let parts = &self.given.parts[id.index()];
        if parts.is_empty() {
            return;
        }
        self.work += (parts.len() * self.keys) as u64;
        let full = &self.state.full[cells.clone()];
        let is_open = |part: &&Vec<Amount>| {
            let mut wants = part.iter().zip(full);
            !wants.any(|(amount, full)| *amount > 0 && *full)
        };
        let mut sums: SmallVec<[Amount; 8]> = SmallVec::from_elem(0, self.keys);
        for part in parts.iter().filter(is_open) {
            for (sum, amount) in sums.iter_mut().zip(part) {
                *sum = sum.saturating_add(*amount);
            }
        }
        for (flow, sum) in self.state.flow[cells].iter_mut().zip(sums) {
            *flow = Number::from(sum);
        }
    }

    fn settle_below(&mut self, id: QueueId) {
        self.work += self.given.structure.below(id).len() as u64 * self.keys as u64;
        let below = self.given.structure.below(id);
        for &id in below {
            self.note_full(id);
        }
        for &id in below.iter().rev() {
            self.settle(id);
        }
    }

    /// Computes anew what a queue does next, from what its children do; it must be up to date.
    fn settle(&mut self, id: QueueId) {
        self.work += (self.node(id).children.len() + 1) as u64 * self.keys as u64;
        let (blocked, level, next_in_turn) = if self.node(id).is_leaf() {
            (self.is_blocked_leaf(id), Number::ZERO, None)
        } else {
            self.reset_clock(id);
            let turns = self.turns(id);
            let level = first(&turns).map_or(Number::ZERO, |turn| turn.level);
            self.serve(id, &turns);
            (turns.is_empty(), level, next_to_be_served(&turns))
        };
        let turn = (!blocked && id != QueueId::ROOT).then(|| self.turn_of(id));
        let progress = &mut self.state.queues[id.index()];
        progress.turn = turn;
        progress.level = level;
        self.state.queues[id.index()].next = if blocked {
            None
        } else {
            let own = self.next_own_event(id).into_iter().chain(next_in_turn);
            self.next_event(id, own.min())
        };
    }

    /// Whether a leaf is served no more: it has all that it wants, or each part needs a key that is
    /// full.
    fn is_blocked_leaf(&self, id: QueueId) -> bool {
        let cells = self.cell(id, 0)..self.cell(id, self.keys);
        let gets_nothing = self.state.flow[cells].iter().all(|flow| flow.is_zero());
        gets_nothing || self.progress(id).clock.reaches(Number::ONE)
    }

    /// Brings all children up to date and sets an inner queue's clock back to 0: near 0, numbers
    /// can tell apart moments that are very near to each other.
    fn reset_clock(&mut self, id: QueueId) {
        for &child in &self.node(id).children {
            self.catch_up(child);
            self.state.queues[child.index()].parent_clock = Number::ZERO;
        }
        self.state.queues[id.index()].clock = Number::ZERO;
    }

    /// Sets the rates of an inner queue's children and the queue's own flow. `turns`: the children
    /// that are not blocked.
    fn serve(&mut self, id: QueueId, turns: &[(QueueId, Turn)]) {
        let served = self.served(turns);
        let mut served = served.iter().copied().peekable();
        for cell in self.cell(id, 0)..self.cell(id, self.keys) {
            self.state.flow[cell] = Number::ZERO;
        }
        for &child in &self.node(id).children {
            let rate = served
                .next_if(|(next, _)| *next == child)
                .map_or(Number::ZERO, |(_, rate)| rate);
            self.state.queues[child.index()].rate = rate;
            if rate.is_zero() {
                continue;
            }
            for key in 0..self.keys {
                let cell = self.cell(id, key);
                let part = self.state.flow[self.cell(child, key)].times(rate);
                self.state.flow[cell] = self.state.flow[cell].plus(part);
            }
        }
    }

    /// The children that are not blocked, and where they stand.
    fn turns(&self, id: QueueId) -> SmallVec<[(QueueId, Turn); 8]> {
        let turn = |&child: &QueueId| Some((child, self.progress(child).turn?));
        self.node(id).children.iter().filter_map(turn).collect()
    }

    /// The next event at or below a queue, if the next one at the queue itself is `own_ticks` away.
    fn next_event(&self, id: QueueId, own_ticks: Option<Number>) -> Option<Event> {
        let clock = self.progress(id).clock;
        let own = own_ticks.map(|ticks| Event { ticks, child: None });
        let below = self.node(id).children.iter().filter_map(|&child| {
            let ticks = self.progress(child).next_from(clock)?;
            let child = Some(child);
            Some(Event { ticks, child })
        });
        own.into_iter().chain(below).min_by_key(|event| event.ticks)
    }

    /// The ticks until the next event at a queue itself, without the event that another child
    /// becomes level with those served.
    fn next_own_event(&self, id: QueueId) -> Option<Number> {
        let node = self.node(id);
        let mut first: Option<Number> = None;
        let mut note = |distance: Number, pace: Number| {
            let ticks = distance.divided_by(pace);
            first = Some(first.map_or(ticks, |first| first.min(ticks)));
        };
        if node.is_leaf() {
            note(Number::ONE.minus(self.progress(id).clock), Number::ONE);
        }
        for key in self.given.all_keys() {
            let flow = self.flow(id, key);
            if let Some(bound) = self.bound(id, key).filter(|_| !flow.is_zero()) {
                let left = Number::from(bound).minus(self.amount(id, key.index()));
                note(left, flow);
            }
        }
        if let Some(turn) = self.progress(id).turn {
            let (over_quota, ..) = turn.group;
            if !over_quota {
                for (key, terms) in node.quota_terms(&self.given.keys, |key| self.gets(id, key)) {
                    let left = Number::from(terms.quota).minus(self.amount(id, key.index()));
                    note(left, self.flow(id, *key));
                }
            }
            for gauge in self.gauges(id, !over_quota) {
                if gauge.pace > turn.pace && !gauge.level.reaches(turn.level) {
                    let behind = turn.level.minus(gauge.level);
                    note(behind, gauge.pace.minus(turn.pace));
                }
            }
        }
        first
    }
}
