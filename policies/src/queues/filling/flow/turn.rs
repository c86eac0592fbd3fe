//! Which of a queue's children are served, in a filling.

use super::Filling;
use crate::queues::filling::number::Number;
use crate::queues::node::Terms;
use crate::queues::{GovernedId, QueueId};
use core::cmp::Reverse;
use smallvec::SmallVec;

/// What is compared first: queues within quota (`false`) are served before others; then the higher
/// priority; then queues with a weight other than 0 (`false`).
type Group = (bool, Reverse<i32>, bool);

/// Where a queue stands among its siblings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) group: Group,
    /// Of a queue within quota: the largest ratio of amount to quota. Of another: the dominant
    /// share over its weight.
    pub(super) level: Number,
    /// How much the level rises with one tick of the queue's clock; 0: what the queue gets now does
    /// not raise its level.
    pub(super) pace: Number,
}

/// The level and pace that one key alone gives a queue; the largest level counts.
pub(super) struct Gauge {
    pub(super) level: Number,
    pub(super) pace: Number,
}

impl Filling<'_> {
    /// The children that are served, with their rates: the first in turn and all that are level
    /// with it. If one of these has a pace of 0, the oldest such child alone.
    pub(super) fn served(&self, turns: &[(QueueId, Turn)]) -> SmallVec<[(QueueId, Number); 8]> {
        let Some(first) = first(turns) else {
            return SmallVec::new();
        };
        let level = || {
            let level = |turn: &Turn| turn.group == first.group && first.level.reaches(turn.level);
            turns.iter().filter(move |(_, turn)| level(turn))
        };
        let unhindered = level()
            .filter(|(_, turn)| turn.pace.is_zero())
            .min_by_key(|(child, _)| self.node(*child).age());
        match unhindered {
            Some((child, _)) => SmallVec::from_slice(&[(*child, Number::ONE)]),
            None => level()
                .map(|(child, turn)| (*child, Number::ONE.divided_by(turn.pace)))
                .collect(),
        }
    }

    /// Where a queue stands; it must be up to date.
    pub(super) fn turn_of(&self, id: QueueId) -> Turn {
        let node = self.node(id);
        let weightless =
            |(key, terms): &(GovernedId, Terms)| terms.weight == 0 && self.gets(id, *key);
        let within_quota = self.within_quota(id);
        let group = if within_quota {
            (false, Reverse(0), false)
        } else {
            let weightless = node.terms.iter().any(weightless);
            (true, Reverse(node.priority), weightless)
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

    /// Whether the queue has quota left of every divided key that it gets; `false` if it gets none.
    fn within_quota(&self, id: QueueId) -> bool {
        let mut terms = self
            .node(id)
            .quota_terms(&self.given.keys, |key| self.gets(id, key))
            .peekable();
        terms.peek().is_some()
            && terms.all(|(key, terms)| {
                let quota = Number::from(terms.quota);
                !self.amount(id, key.index()).reaches(quota)
            })
    }

    /// The gauges of a queue: amounts over quotas, or over capacities and weights.
    pub(super) fn gauges(&self, id: QueueId, within_quota: bool) -> SmallVec<[Gauge; 4]> {
        let node = self.node(id);
        let gauge = |key: GovernedId, unit: Number| Gauge {
            level: self.amount(id, key.index()).divided_by(unit),
            pace: self.flow(id, key).divided_by(unit),
        };
        if within_quota {
            let most = self
                .given
                .parent_amount
                .row(self.given.structure.parent_id(id));
            node.quota_terms(&self.given.keys, |key| self.gets(id, key))
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
                    let capacity = Number::from(self.given.capacity(*key).max(1));
                    let weight = Number::from(terms.divisor());
                    gauge(*key, capacity.times(weight))
                })
                .collect()
        }
    }
}

/// The turn that is served first.
pub(super) fn first(turns: &[(QueueId, Turn)]) -> Option<Turn> {
    let turns = turns.iter().map(|(_, turn)| *turn);
    turns.min_by_key(|turn| (turn.group, turn.level))
}

/// By how much the level of the children that are served must rise to reach the next child of their
/// group; `None`: their level does not rise, or their group has no other child.
pub(super) fn next_to_be_served(turns: &[(QueueId, Turn)]) -> Option<Number> {
    let first = first(turns)?;
    let group = || {
        let turns = turns.iter().map(|(_, turn)| turn);
        turns.filter(|turn| turn.group == first.group)
    };
    let is_level = |turn: &&Turn| first.level.reaches(turn.level);
    if group().filter(is_level).any(|turn| turn.pace.is_zero()) {
        return None;
    }
    let waiting = group().filter(|turn| !is_level(turn));
    let next = waiting.map(|turn| turn.level).min()?;
    Some(next.minus(first.level))
}
