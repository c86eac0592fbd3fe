//! The hierarchy: who is whose parent, what is divided among whom, what is inherited.

use super::graph::{Place, places};
use super::keys::GovernedKeys;
use super::node::{Node, Terms};
use super::{GovernedId, QueueId};
use crate::facts::{AMOUNT_MAX, Amount, PlacementChoice, QueueFacts, QueueResource, Uid, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};
use core::iter;
use smallvec::SmallVec;

/// The queue that always exists.
pub(super) const DEFAULT: &str = "default";

/// All queues, by number; the root is number 0.
#[derive(Debug)]
pub(super) struct Structure {
    nodes: Vec<Node>,
    by_name: BTreeMap<Box<str>, QueueId>,
    /// Parents before children, siblings by name, without the root.
    pub(super) top_down: Vec<QueueId>,
    /// The longest path.
    pub(super) depth: usize,
}

impl Default for Structure {
    /// The root alone.
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            by_name: BTreeMap::new(),
            top_down: Vec::new(),
            depth: 0,
        }
    }
}

impl Structure {
    /// How many numbers are in use or were.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<QueueId> {
        self.by_name.get(name).copied()
    }

    /// The node of a number; the root's for one that was never given.
    pub(super) fn node(&self, queue: QueueId) -> &Node {
        self.nodes.get(queue.index()).unwrap_or(&self.nodes[0])
    }

    /// The queue and its ancestors, without the root; nothing for a number that is not in use.
    pub(super) fn path(&self, queue: QueueId) -> impl Iterator<Item = QueueId> {
        self.path_to_root(queue).filter(|&id| id != QueueId::ROOT)
    }

    /// The queue, its ancestors and the root; nothing for a number that is not in use.
    pub(super) fn path_to_root(&self, queue: QueueId) -> impl Iterator<Item = QueueId> {
        let first = Some(queue).filter(|_| self.node(queue).exists);
        iter::successors(first, |&id| self.node(id).parent)
    }

    /// Whether the same numbers stand for the same queues under the same parents.
    pub(super) fn same_tree(&self, other: &Self) -> bool {
        self.by_name == other.by_name
            && self
                .top_down
                .iter()
                .all(|&id| self.node(id).parent == other.node(id).parent)
    }

    /// Builds the hierarchy. Numbers and times of readiness are taken over from the old one.
    pub(super) fn build(
        definitions: &BTreeMap<Box<str>, QueueFacts>,
        old: &Self,
        keys: &GovernedKeys,
        now_ms: UnixMs,
    ) -> Self {
        let undefined = undefined_default();
        let mut all: Vec<&QueueFacts> = definitions.values().collect();
        if let Err(at) = all.binary_search_by(|facts| (*facts.name).cmp(DEFAULT)) {
            all.insert(at, &undefined);
        }
        let ids = number(&all, old);
        let count = ids.iter().map(|id| id.index() + 1).max().unwrap_or(1);
        let mut structure = Self {
            nodes: vec![Node::default(); count],
            ..Self::default()
        };
        for ((facts, place), &id) in all.iter().zip(places(&all)).zip(&ids) {
            structure.by_name.insert(facts.name.clone(), id);
            let parent = place.parent.map_or(QueueId::ROOT, |at| ids[at]);
            structure.nodes[parent.index()].children.push(id);
            structure.nodes[id.index()] = Node {
                name: facts.name.clone(),
                exists: true,
                defined: definitions.contains_key(&facts.name),
                parent: Some(parent),
                children: core::mem::take(&mut structure.nodes[id.index()].children),
                priority: facts.priority,
                ready_since_ms: old.ready_since(&facts.name, &place, now_ms),
                fault: place.fault,
                ..Node::default()
            };
        }
        structure.walk();
        let mut facts_of = vec![None; count];
        for (facts, id) in all.into_iter().zip(ids) {
            facts_of[id.index()] = Some(facts);
        }
        structure.inherit(&facts_of);
        structure.divide(&facts_of, keys);
        structure
    }

    /// Since when a queue is as Ready as it is, seen from the structure that is replaced.
    fn ready_since(&self, name: &str, place: &Place, now_ms: UnixMs) -> UnixMs {
        let old = self.find(name).map(|id| self.node(id));
        let as_ready = |old: &&Node| old.defined && old.fault.is_some() == place.fault.is_some();
        old.filter(as_ready)
            .map_or(now_ms, |old| old.ready_since_ms)
    }

    /// Fills `top_down`, `depth`, and of every node its depth and what is below it.
    fn walk(&mut self) {
        let mut ahead: Vec<QueueId> = self.nodes[0].children.iter().rev().copied().collect();
        while let Some(id) = ahead.pop() {
            let depth = self.node(self.parent_id(id)).depth + 1;
            self.nodes[id.index()].depth = depth;
            self.depth = self.depth.max(depth);
            self.top_down.push(id);
            let node = &mut self.nodes[id.index()];
            node.below = self.top_down.len()..self.top_down.len();
            ahead.extend(node.children.iter().rev());
        }
        for &id in self.top_down.iter().rev() {
            let end = self.nodes[id.index()].below.end;
            let parent = self.nodes[id.index()].parent.unwrap_or(QueueId::ROOT);
            let below = &mut self.nodes[parent.index()].below;
            below.end = below.end.max(end);
        }
    }

    /// The parent's number; the root's own for the root.
    pub(super) fn parent_id(&self, id: QueueId) -> QueueId {
        self.node(id).parent.unwrap_or(QueueId::ROOT)
    }

    /// The root and all queues, parents before children.
    pub(super) fn with_root(&self) -> impl Iterator<Item = QueueId> {
        iter::once(QueueId::ROOT).chain(self.top_down.iter().copied())
    }

    /// All queues below a queue, parents before children.
    pub(super) fn below(&self, id: QueueId) -> &[QueueId] {
        &self.top_down[self.nodes[id.index()].below.clone()]
    }

    /// What is divided among a queue's children.
    pub(super) fn divided_below(&self, id: QueueId) -> impl Iterator<Item = GovernedId> {
        let first = self.node(id).children.first();
        let terms = first.map_or(&[][..], |&child| &self.node(child).terms);
        terms.iter().map(|(key, _)| *key)
    }

    /// Fills what a queue that does not say takes from its parent.
    fn inherit(&mut self, facts_of: &[Option<&QueueFacts>]) {
        for at in 0..self.top_down.len() {
            let id = self.top_down[at];
            let Some(facts) = facts_of[id.index()] else {
                continue;
            };
            let parent = self.node(self.parent_id(id));
            let placement = PlacementChoice {
                gpu: facts.placement.gpu.or(parent.placement.gpu),
                cpu: facts.placement.cpu.or(parent.placement.cpu),
            };
            let preempt = facts.preempt_min_runtime_ms;
            let reclaim = facts.reclaim_min_runtime_ms;
            let preempt = preempt.unwrap_or(parent.preempt_min_runtime_ms);
            let reclaim = reclaim.unwrap_or(parent.reclaim_min_runtime_ms);
            let node = &mut self.nodes[id.index()];
            node.placement = placement;
            node.preempt_min_runtime_ms = preempt;
            node.reclaim_min_runtime_ms = reclaim;
        }
    }

    /// Fills the terms and ranks of all siblings, parents first. Entries of a queue that is not
    /// Ready count for nothing.
    fn divide(&mut self, facts_of: &[Option<&QueueFacts>], keys: &GovernedKeys) {
        let parents = iter::once(QueueId::ROOT).chain(self.top_down.clone());
        for parent in parents
            .filter(|&id| !self.node(id).is_leaf())
            .collect::<Vec<_>>()
        {
            let siblings = self.nodes[parent.index()].children.clone();
            let entries_of = |id: QueueId| -> &[QueueResource] {
                let ready = self.node(id).fault.is_none();
                facts_of[id.index()]
                    .filter(|_| ready)
                    .map_or(&[], |facts| &facts.resources)
            };
            let named = siblings.iter().flat_map(|&id| entries_of(id));
            let mut columns: BTreeMap<GovernedId, Amount> = named
                .filter_map(|entry| keys.lookup(&entry.name, entry.product.as_deref()))
                .chain(iter::once(GovernedId::GPU))
                .map(|key| (key, AMOUNT_MAX))
                .collect();
            for (key, reach) in &mut columns {
                *reach = self.reach(parent, *key);
            }
            let terms: Vec<_> = siblings
                .iter()
                .map(|&id| terms_of_entries(entries_of(id), &columns, keys))
                .collect();
            for (&id, terms) in siblings.iter().zip(terms) {
                self.nodes[id.index()].terms = terms;
            }
            let mut by_age = siblings;
            by_age.sort_by_key(|id| {
                let facts = facts_of[id.index()];
                facts.map(|facts| (facts.created_ms, &facts.name))
            });
            for (rank, id) in (0..).zip(by_age) {
                self.nodes[id.index()].rank = rank;
            }
        }
    }

    /// The most that a queue can have of a key by its own limit and those above.
    pub(super) fn reach(&self, queue: QueueId, key: GovernedId) -> Amount {
        self.path(queue)
            .filter_map(|id| self.node(id).terms_of(key)?.limit)
            .fold(AMOUNT_MAX, Amount::min)
    }
}

fn terms_of_entries(
    entries: &[QueueResource],
    columns: &BTreeMap<GovernedId, Amount>,
    keys: &GovernedKeys,
) -> SmallVec<[(GovernedId, Terms); 2]> {
    let mut terms: SmallVec<[(GovernedId, Terms); 2]> = columns
        .iter()
        .map(|(&key, &reach)| (key, Terms::of(None, reach)))
        .collect();
    for entry in entries {
        let key = keys.lookup(&entry.name, entry.product.as_deref());
        if let Some((key, terms)) = terms.iter_mut().find(|(known, _)| Some(*known) == key) {
            *terms = Terms::of(Some(entry), columns[key]);
        }
    }
    terms
}

/// Gives every queue its number: the one that it had, else the lowest free one.
fn number(definitions: &[&QueueFacts], old: &Structure) -> Vec<QueueId> {
    let mut taken = vec![false; old.nodes.len() + definitions.len() + 1];
    taken[0] = true;
    let kept: Vec<Option<QueueId>> = definitions
        .iter()
        .map(|facts| old.find(&facts.name))
        .collect();
    for id in kept.iter().flatten() {
        taken[id.index()] = true;
    }
    let mut free = (0u32..)
        .zip(taken)
        .filter(|(_, taken)| !taken)
        .map(|(number, _)| QueueId(number));
    kept.into_iter()
        .map(|id| id.or_else(|| free.next()).unwrap_or(QueueId::ROOT))
        .collect()
}

/// The queue `default` where nobody has defined it.
fn undefined_default() -> QueueFacts {
    QueueFacts {
        name: DEFAULT.into(),
        uid: Uid(0),
        generation: 0,
        created_ms: 0,
        parent: None,
        priority: 0,
        resources: Vec::new(),
        preempt_min_runtime_ms: None,
        reclaim_min_runtime_ms: None,
        placement: PlacementChoice::default(),
        namespace_selector: None,
        closed: false,
        problems: Vec::new(),
    }
}
