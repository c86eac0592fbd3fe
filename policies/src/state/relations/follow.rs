//! The table of a class follows other pods: only the nodes of domains are judged anew whose counts
//! have changed in a way that may change the verdict.

use super::verdict::{fewest, left};
use super::{ClassRelations, Counted, SpreadTallies};
use crate::facts::SpreadRule;
use crate::ids::{ClassId, Id, NodeId};
use crate::state::ClusterState;
use alloc::{collections::VecDeque, vec::Vec};

/// How many changes the log of a tally keeps. A reader that has fallen behind by more counts anew.
const LOGGED: usize = 1024;

/// The slots of a tally whose counts have changed in a way that decides, in order.
#[derive(Debug, Default)]
pub(super) struct SlotLog {
    start: u64,
    /// The slots, and whether a pod came.
    slots: VecDeque<(u32, bool)>,
}

/// How far the table of a class has followed other pods.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// The version of the nodes; `None`: nothing was followed yet.
    as_of: Option<u64>,
    /// The position in the log of each tally that decides.
    cursors: Vec<u64>,
    /// A pod of the class could be the first of its kind anywhere.
    may_be_first: bool,
}

/// The pods in the domains of a topology spread constraint.
#[derive(Debug, Default)]
pub(super) struct DomainCounts {
    /// The version of the nodes, and the position in the log of the tally.
    as_of: Option<(u64, u64)>,
    /// One more than the pods in each domain, by its number; 0: no node of the domain counts.
    found: Vec<u32>,
    /// Whether each domain took one more pod when that was last looked at.
    is_open: Vec<bool>,
}

/// The nodes on which other pods may say something else of a class than before.
#[derive(Debug)]
pub(crate) enum Stirred {
    /// Some, perhaps more than once.
    Nodes(Vec<NodeId>),
    All,
}

impl SlotLog {
    pub(super) fn push(&mut self, slot: usize, takes: bool) {
        let slot = u32::try_from(slot).unwrap_or(u32::MAX);
        if self.slots.len() == LOGGED {
            self.slots.pop_front();
            self.start += 1;
        }
        self.slots.push_back((slot, takes));
    }

    fn end(&self) -> u64 {
        self.start + self.slots.len() as u64
    }

    /// The changes since a position; `None`: the log begins later.
    fn since(&self, cursor: u64) -> Option<impl Iterator<Item = (u32, bool)> + '_> {
        let skip = usize::try_from(cursor.checked_sub(self.start)?).ok()?;
        Some(self.slots.range(skip.min(self.slots.len())..).copied())
    }
}

impl DomainCounts {
    /// Notes which domains take one more pod now. Returns those that did otherwise before.
    fn reopen(&mut self, rule: &SpreadRule) -> Vec<usize> {
        let fewest = fewest(rule, &self.found);
        self.is_open.resize(self.found.len(), false);
        let mut turned = Vec::new();
        for (value, (found, was_open)) in self.found.iter().zip(&mut self.is_open).enumerate() {
            let is_open = left(rule, found.saturating_sub(1), fewest) > 0;
            // tests plant bugs here: domain-opens
            if core::mem::replace(was_open, is_open) != is_open {
                turned.push(value);
            }
        }
        turned
    }
}

impl ClusterState {
    /// Brings what is kept of other pods for the table of a class up to date. Returns the nodes on
    /// which they may say something else than when this was last called.
    pub(crate) fn follow_relations(&mut self, id: ClassId) -> Stirred {
        let Some(mut class) = self.classes[id].relations.take() else {
            return Stirred::Nodes(Vec::new());
        };
        let shape = self.classes[id].shape.clone();
        let rules = shape.relations.as_deref();
        let rules = rules.map_or(&[] as &[SpreadRule], |rules| &rules.spread);
        let crossed = self.crossed(&class);
        let turned = self.turned(rules, &mut class.spread);
        let relations = &self.relations;
        let deciding = class.deciding();
        let cursors = deciding.map(|tally| relations.tallies[tally].log.end());
        class.followed = Followed {
            as_of: Some(relations.version),
            cursors: cursors.collect(),
            may_be_first: relations.may_be_first(&class),
        };
        self.classes[id].relations = Some(class);
        match crossed {
            Some(mut nodes) => {
                nodes.extend(turned);
                Stirred::Nodes(nodes)
            }
            None => Stirred::All,
        }
    }

    /// The nodes of the domains to which pods came, or which they left, that keep pods of a class
    /// near or away; `None`: any node.
    fn crossed(&self, class: &ClassRelations) -> Option<Vec<NodeId>> {
        let (relations, followed) = (&self.relations, &class.followed);
        let is_behind = followed.as_of != Some(relations.version);
        if is_behind || followed.may_be_first != relations.may_be_first(class) {
            return None;
        }
        let mut nodes = Vec::new();
        for (tally, cursor) in class.deciding().zip(&followed.cursors) {
            let tally = &relations.tallies[tally];
            if matches!(*tally.of, Counted::Spread(..)) {
                continue;
            }
            let key = &relations.keys[tally.of.key()];
            for (value, _) in tally.log.since(*cursor)? {
                nodes.extend_from_slice(key.nodes_of(value as usize));
            }
        }
        Some(nodes)
    }

    /// Counts the pods in the domains of all constraints. Returns the nodes of the domains that
    /// take one more pod, or take none, other than before.
    fn turned(&self, rules: &[SpreadRule], spread: &mut SpreadTallies) -> Vec<NodeId> {
        let mut domains = core::mem::take(&mut spread.domains);
        domains.resize_with(rules.len(), DomainCounts::default);
        let mut nodes = Vec::new();
        for ((at, rule), domains) in rules.iter().enumerate().zip(&mut domains) {
            let key = self.relations.tallies[spread.tallies[at]].of.key();
            let key = &self.relations.keys[key];
            if self.follow_spread(spread, at, domains) {
                let turned = domains.reopen(rule).into_iter();
                nodes.extend(turned.flat_map(|value| key.nodes_of(value)));
            }
        }
        spread.domains = domains;
        nodes
    }

    /// Counts the pods in the domains of a constraint. Returns whether there was anything to count.
    fn follow_spread(&self, spread: &SpreadTallies, at: usize, domains: &mut DomainCounts) -> bool {
        let tally = &self.relations.tallies[spread.tallies[at]];
        let key = &self.relations.keys[tally.of.key()];
        let now = (self.relations.version, tally.log.end());
        let before = domains.as_of.replace(now);
        if before == Some(now) {
            return false;
        }
        let cursor = before.filter(|(version, _)| *version == now.0);
        match cursor.and_then(|(_, cursor)| tally.log.since(cursor)) {
            None => domains.found = self.counts_by_domain(spread, at),
            Some(changes) => {
                for (node, takes) in changes {
                    let node = NodeId::new(node);
                    let found = &mut domains.found[key.of_node[node] as usize];
                    match spread.included[node] & (1 << at) {
                        0 => {}
                        _ if takes => *found += 1,
                        _ => *found -= 1,
                    }
                }
            }
        }
        true
    }

    /// The counts that are kept for a constraint, if they are those of now.
    pub(super) fn followed_domains<'a>(
        &'a self,
        spread: &'a SpreadTallies,
        at: usize,
    ) -> Option<&'a [u32]> {
        let tally = &self.relations.tallies[spread.tallies[at]];
        let now = (self.relations.version, tally.log.end());
        let domains = spread.domains.get(at)?;
        (domains.as_of == Some(now)).then_some(&*domains.found)
    }
}
