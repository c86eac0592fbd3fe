//! The filling itself: who is served, how fast, until when.

use super::number::Number;
use crate::facts::Amount;
use crate::queues::ledger::Matrix;
use crate::queues::tree::{Node, Terms};
use crate::queues::{GovernedId, QueueId, View};
use alloc::{vec, vec::Vec};
use core::cmp::Reverse;
use smallvec::SmallVec;

/// Whose turn comes first: within quota (`false`); then by priority; then with a weight other than
/// 0 (`false`).
type Group = (bool, Reverse<i32>, bool);

/// Where a queue stands among its siblings.
#[derive(Debug, Clone, Copy)]
struct Turn {
    group: Group,
    /// Within quota: the largest ratio of amount to quota. Over quota: the weighted dominant share.
    level: Number,
    /// How much the level rises with one flow of the queue; 0: nothing that is divided holds it
    /// back.
    pace: Number,
}

/// One key's part in a level.
struct Gauge {
    level: Number,
    pace: Number,
}

/// A filling. Vectors are by queue, or by queue and key.
pub(super) struct Filling<'a> {
    view: View<'a>,
    keys: usize,
    wanted: &'a Matrix,
    /// What each inner queue has for its children: a larger quota weighs only as much.
    parent_amount: &'a Matrix,
    amount: Vec<Number>,
    /// How many of its flows each leaf has had; 1 is all that it wants.
    progress: Vec<Number>,
    blocked: Vec<bool>,
    /// Which keys have reached a bound of the queue or of one above it.
    full: Vec<bool>,
    /// What a queue gets at a speed of 1: a leaf all that it wants, an inner queue what its served
    /// children get while their levels rise by 1.
    flow: Vec<Number>,
    turn: Vec<Option<Turn>>,
    /// How many flows each queue gets in one unit of time; 0: it waits.
    speed: Vec<Number>,
}

impl<'a> Filling<'a> {
    /// Fills until nobody can be served any more.
    pub(super) fn run(view: View<'a>, wanted: &'a Matrix, parent_amount: &'a Matrix) -> Self {
        let queues = view.structure.len();
        let keys = view.ledger.keys();
        let mut filling = Self {
            view,
            keys,
            wanted,
            parent_amount,
            amount: vec![Number::ZERO; queues * keys],
            progress: vec![Number::ZERO; queues],
            blocked: vec![false; queues],
            full: vec![false; queues * keys],
            flow: vec![Number::ZERO; queues * keys],
            turn: vec![None; queues],
            speed: vec![Number::ZERO; queues],
        };
        // Each event blocks a leaf, uses a quota up, or levels two siblings or two keys. The bound
        // on their number only guards against a sequence of events that rounding would repeat.
        let most_events = (queues + 8) * (keys + 2) * 4;
        for _ in 0..most_events {
            filling.block();
            filling.choose();
            filling.set_speeds();
            let Some(stride) = filling.stride() else {
                return filling;
            };
            filling.grow(stride);
        }
        debug_assert!(false, "the filling does not end");
        filling
    }

    /// What a queue has of a key.
    pub(super) fn amount(&self, id: QueueId, key: usize) -> Number {
        self.amount[self.cell(id, key)]
    }

    fn cell(&self, id: QueueId, key: usize) -> usize {
        id.index() * self.keys + key
    }

    fn node(&self, id: QueueId) -> &'a Node {
        self.view.structure.node(id)
    }

    fn flow(&self, id: QueueId, key: GovernedId) -> Number {
        self.flow[self.cell(id, key.index())]
    }

    fn gets(&self, id: QueueId, key: GovernedId) -> bool {
        !self.flow(id, key).is_zero()
    }

    /// What bounds the amount of a queue: its limit; the capacity bounds the root.
    fn bound(&self, id: QueueId, key: GovernedId) -> Option<Amount> {
        if id == QueueId::ROOT {
            return Some(self.view.ledger.capacity(key));
        }
        self.node(id).terms_of(key)?.limit
    }

    /// Blocks the leaves that have all that they want, or want something of which nothing is left,
    /// and the queues whose children are all blocked.
    fn block(&mut self) {
        for id in self.view.structure.with_root() {
            let parent = self.view.structure.parent_id(id);
            for key in self.view.ledger.all_keys() {
                let cell = self.cell(id, key.index());
                let reached = |bound| self.amount[cell].reaches(Number::from(bound));
                self.full[cell] = self.full[cell]
                    || self.full[self.cell(parent, key.index())]
                    || self.bound(id, key).is_some_and(reached);
            }
        }
        for id in self.view.structure.bottom_up() {
            let node = self.node(id);
            self.blocked[id.index()] = if node.is_leaf() {
                let full = &self.full[self.cell(id, 0)..];
                let wants = self.wanted.row(id);
                wants.iter().all(|&wanted| wanted == 0)
                    || self.progress[id.index()].reaches(Number::ONE)
                    || wants
                        .iter()
                        .zip(full)
                        .any(|(&wanted, &full)| wanted > 0 && full)
            } else {
                node.children
                    .iter()
                    .all(|child| self.blocked[child.index()])
            };
        }
    }

    /// Chooses whom each queue serves, bottom up: the children whose turn is first, all that are
    /// level with the first of them.
    fn choose(&mut self) {
        for id in self.view.structure.bottom_up() {
            self.turn[id.index()] = None;
            if self.blocked[id.index()] {
                continue;
            }
            let node = self.node(id);
            if node.is_leaf() {
                for key in 0..self.keys {
                    let cell = self.cell(id, key);
                    self.flow[cell] = Number::from(self.wanted.row(id)[key]);
                }
            } else {
                self.serve(id);
            }
            if id != QueueId::ROOT {
                self.turn[id.index()] = Some(self.turn_of(id));
            }
        }
    }

    /// Sets the relative speeds of an inner queue's children and its own flow.
    fn serve(&mut self, id: QueueId) {
        for key in 0..self.keys {
            let cell = self.cell(id, key);
            self.flow[cell] = Number::ZERO;
        }
        let children = &self.node(id).children;
        let served = self.served(children);
        for &child in children {
            self.speed[child.index()] = Number::ZERO;
        }
        for (child, speed) in served {
            self.speed[child.index()] = speed;
            for key in 0..self.keys {
                let cell = self.cell(id, key);
                let part = self.flow[self.cell(child, key)].times(speed);
                self.flow[cell] = self.flow[cell].plus(part);
            }
        }
    }

    /// The children that are served, with the speed at which their levels rise by 1 in one unit of
    /// time.
    fn served(&self, children: &[QueueId]) -> SmallVec<[(QueueId, Number); 8]> {
        let turns = || {
            let turn = |&child: &QueueId| Some((child, self.turn[child.index()]?));
            children.iter().filter_map(turn)
        };
        let Some(group) = turns().map(|(_, turn)| turn.group).min() else {
            return SmallVec::new();
        };
        let group = || turns().filter(move |(_, turn)| turn.group == group);
        let first = group()
            .map(|(_, turn)| turn.level)
            .min()
            .unwrap_or(Number::ZERO);
        let level = || group().filter(move |(_, turn)| first.reaches(turn.level));
        let unhindered = level()
            .filter(|(_, turn)| turn.pace.is_zero())
            .min_by_key(|(child, _)| self.node(*child).rank);
        match unhindered {
            Some((child, _)) => SmallVec::from_slice(&[(child, Number::ONE)]),
            None => level()
                .map(|(child, turn)| (child, Number::ONE.over(turn.pace)))
                .collect(),
        }
    }

    fn turn_of(&self, id: QueueId) -> Turn {
        let node = self.node(id);
        let weightless =
            |(key, terms): &(GovernedId, Terms)| terms.weight == 0 && self.gets(id, *key);
        let within_quota = self.within_quota(id);
        let group = if within_quota {
            (false, Reverse(0), false)
        } else {
            (
                true,
                Reverse(node.priority),
                node.terms.iter().any(weightless),
            )
        };
        let gauges = self.gauges(id, within_quota);
        let level = gauges.iter().map(|gauge| gauge.level).max();
        let level = level.unwrap_or(Number::ZERO);
        let leading = gauges.iter().filter(|gauge| gauge.level.reaches(level));
        Turn {
            group,
            level,
            pace: leading
                .map(|gauge| gauge.pace)
                .max()
                .unwrap_or(Number::ZERO),
        }
    }

    /// Whether every divided key that the queue gets has quota left, and there is one.
    fn within_quota(&self, id: QueueId) -> bool {
        let mut terms = self
            .node(id)
            .quota_terms(self.view.keys, |key| self.gets(id, key))
            .peekable();
        terms.peek().is_some()
            && terms.all(|(key, terms)| {
                let quota = Number::from(terms.quota);
                !self.amount(id, key.index()).reaches(quota)
            })
    }

    /// The parts of a queue's level: by quota, or by capacity and weight.
    fn gauges(&self, id: QueueId, within_quota: bool) -> SmallVec<[Gauge; 4]> {
        let node = self.node(id);
        let gauge = |key: GovernedId, unit: Number| Gauge {
            level: self.amount(id, key.index()).over(unit),
            pace: self.flow(id, key).over(unit),
        };
        if within_quota {
            let most = self.parent_amount.row(self.view.structure.parent_id(id));
            node.quota_terms(self.view.keys, |key| self.gets(id, key))
                .map(|(key, terms)| {
                    let quota = terms.quota.min(most[key.index()]).max(1);
                    gauge(*key, Number::from(quota))
                })
                .collect()
        } else {
            let all = node.is_leaf() || !node.terms.iter().any(|(key, _)| self.gets(id, *key));
            node.terms
                .iter()
                .filter(|(key, _)| all || self.gets(id, *key))
                .map(|(key, terms)| {
                    let capacity = Number::from(self.view.ledger.capacity(*key).max(1));
                    let weight = Number::from(Amount::from(terms.weight.max(1)));
                    gauge(*key, capacity.times(weight))
                })
                .collect()
        }
    }

    /// Turns the relative speeds into absolute ones, top down.
    fn set_speeds(&mut self) {
        self.speed[0] = Number::ONE;
        for &id in &self.view.structure.top_down {
            let parent = self.view.structure.parent_id(id);
            self.speed[id.index()] = self.speed[id.index()].times(self.speed[parent.index()]);
        }
    }

    /// The time until the next event; `None`: nobody is served.
    fn stride(&self) -> Option<Number> {
        self.moving().filter_map(|id| self.next_event(id)).min()
    }

    /// The queues that are served.
    fn moving(&self) -> impl Iterator<Item = QueueId> {
        let served = |&id: &QueueId| !self.blocked[id.index()] && !self.speed[id.index()].is_zero();
        self.view.structure.with_root().filter(served)
    }

    /// The time until the first event of one served queue.
    fn next_event(&self, id: QueueId) -> Option<Number> {
        let node = self.node(id);
        let speed = self.speed[id.index()];
        let mut first: Option<Number> = None;
        let mut note = |distance: Number, pace: Number| {
            let time = distance.over(pace.times(speed));
            first = Some(first.map_or(time, |first| first.min(time)));
        };
        if node.is_leaf() {
            note(Number::ONE.minus(self.progress[id.index()]), Number::ONE);
        }
        for key in self.view.ledger.all_keys() {
            let flow = self.flow(id, key);
            if let Some(bound) = self.bound(id, key).filter(|_| !flow.is_zero()) {
                note(
                    Number::from(bound).minus(self.amount(id, key.index())),
                    flow,
                );
            }
        }
        if let Some(turn) = self.turn[id.index()] {
            if !turn.group.0 {
                for (key, terms) in node.quota_terms(self.view.keys, |key| self.gets(id, key)) {
                    let left = Number::from(terms.quota).minus(self.amount(id, key.index()));
                    note(left, self.flow(id, *key));
                }
            }
            for gauge in self.gauges(id, !turn.group.0) {
                if gauge.pace > turn.pace && !gauge.level.reaches(turn.level) {
                    note(turn.level.minus(gauge.level), gauge.pace.minus(turn.pace));
                }
            }
        }
        if let Some(distance) = self.next_to_be_served(id) {
            note(distance, Number::ONE);
        }
        first
    }

    /// How far the levels of the served children are below that of the next one in turn.
    fn next_to_be_served(&self, id: QueueId) -> Option<Number> {
        let turns = || {
            let children = self.node(id).children.iter();
            children.filter_map(|child| self.turn[child.index()])
        };
        let group = turns().map(|turn| turn.group).min()?;
        let levels = || turns().filter(move |turn| turn.group == group);
        let first = levels().map(|turn| turn.level).min()?;
        let ahead = |turn: &Turn| !first.reaches(turn.level);
        let next = levels().filter(ahead).map(|turn| turn.level).min()?;
        Some(next.minus(first))
    }

    /// Lets everybody that is served grow for a time.
    fn grow(&mut self, time: Number) {
        for id in self.moving().collect::<Vec<_>>() {
            let flows = self.speed[id.index()].times(time);
            if self.node(id).is_leaf() {
                self.progress[id.index()] = self.progress[id.index()].plus(flows);
            }
            for key in 0..self.keys {
                let cell = self.cell(id, key);
                let gained = self.flow[cell].times(flows);
                self.amount[cell] = self.amount[cell].plus(gained);
            }
        }
    }
}
