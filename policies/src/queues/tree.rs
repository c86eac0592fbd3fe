//! The hierarchy: who is whose parent, what is divided among whom, what is inherited.

mod edit;
mod walk;

use super::graph::{Place, places};
use super::keys::GovernedKeys;
use super::node::{Node, Terms, WEIGHT_ONE};
use super::{GovernedId, QueueId};
use crate::facts::{AMOUNT_MAX, Amount, PlacementChoice, QueueFacts, QueueResource, Uid, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec, vec::Vec};
use core::iter;
pub(super) use edit::{Change, Edited};
use smallvec::SmallVec;
pub(super) use walk::Walk;

/// The queue that always exists.
pub(super) const DEFAULT: &str = "default";

/// The definitions of all queues, by name.
pub(super) type Definitions = BTreeMap<Box<str>, QueueFacts>;

/// All queues, by number; the root is number 0.
#[derive(Debug, Clone)]
pub(super) struct Structure {
    nodes: Vec<Node>,
    by_name: BTreeMap<Arc<str>, QueueId>,
    /// How many queues are not Ready.
    faults: usize,
}

impl Default for Structure {
    /// The root alone.
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            by_name: BTreeMap::new(),
            faults: 0,
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
                .by_name
                .values()
                .all(|&id| self.node(id).parent == other.node(id).parent)
    }

    /// Builds the hierarchy. Numbers and times of readiness are taken over from the old one.
    pub(super) fn build(
        definitions: &Definitions,
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
            let name: Arc<str> = (&*facts.name).into();
            structure.by_name.insert(Arc::clone(&name), id);
            structure.faults += usize::from(place.fault.is_some());
            let parent = place.parent.map_or(QueueId::ROOT, |at| ids[at]);
            structure.nodes[parent.index()].children.push(id);
            structure.nodes[id.index()] = Node {
                name,
                exists: true,
                defined: definitions.contains_key(&facts.name),
                parent: Some(parent),
                children: core::mem::take(&mut structure.nodes[id.index()].children),
                created_ms: facts.created_ms,
                priority: facts.priority,
                ready_since_ms: old.ready_since(&facts.name, &place, now_ms),
                fault: place.fault,
                ..Node::default()
            };
        }
        let walk = structure.walk();
        for &id in &walk.top_down {
            let depth = structure.node(structure.parent_id(id)).depth + 1;
            structure.nodes[id.index()].depth = depth;
            structure.inherit(id, definitions);
        }
        for id in walk.with_root() {
            structure.divide_below(id, definitions, keys);
        }
        structure
    }

    /// When a queue became as Ready as it is, seen from the structure that is replaced.
    fn ready_since(&self, name: &str, place: &Place, now_ms: UnixMs) -> UnixMs {
        let old = self.find(name).map(|id| self.node(id));
        let as_ready = |old: &&Node| old.defined && old.fault.is_some() == place.fault.is_some();
        old.filter(as_ready)
            .map_or(now_ms, |old| old.ready_since_ms)
    }

    /// The parent's number; the root's own for the root.
    pub(super) fn parent_id(&self, id: QueueId) -> QueueId {
        self.node(id).parent.unwrap_or(QueueId::ROOT)
    }

    /// The keys that are divided among a queue's children.
    pub(super) fn divided_below(&self, id: QueueId) -> impl Iterator<Item = GovernedId> {
        let first = self.node(id).children.first();
        let terms = first.map_or(&[][..], |&child| &self.node(child).terms);
        terms.iter().map(|(key, _)| *key)
    }

    /// Fills what a queue that does not say takes from its parent.
    fn inherit(&mut self, id: QueueId, definitions: &Definitions) {
        let Some(facts) = definitions.get(&*self.node(id).name) else {
            return;
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

    /// A queue's entries; those of a queue that is not Ready count for nothing.
    fn entries_of<'a>(&self, id: QueueId, definitions: &'a Definitions) -> &'a [QueueResource] {
        let node = self.node(id);
        let facts = definitions.get(&*node.name);
        facts
            .filter(|_| node.fault.is_none())
            .map_or(&[], |facts| &facts.resources)
    }

    /// Fills the terms of all children of a queue.
    fn divide_below(&mut self, parent: QueueId, definitions: &Definitions, keys: &GovernedKeys) {
        let children = self.node(parent).children.clone();
        let named = children
            .iter()
            .flat_map(|&id| self.entries_of(id, definitions));
        let mut divided: Vec<GovernedId> = named
            .filter_map(|entry| keys.lookup(&entry.name, entry.product.as_deref()))
            .chain(iter::once(GovernedId::GPU))
            .collect();
        divided.sort_unstable();
        divided.dedup();
        let columns = self.columns(parent, divided);
        for id in children {
            let terms = terms_of_entries(self.entries_of(id, definitions), &columns, keys);
            self.nodes[id.index()].terms = terms;
        }
    }

    /// Every weight of a queue counts for what it says.
    pub(super) fn weigh_as_said(&mut self, id: QueueId) {
        for (_, terms) in &mut self.nodes[id.index()].terms {
            terms.weight = u64::from(terms.said_weight) * WEIGHT_ONE;
        }
    }

    /// Sets what a queue's weight counts for, in parts of [`WEIGHT_ONE`].
    pub(super) fn set_weight(&mut self, id: QueueId, key: GovernedId, weight: u64) {
        let terms = &mut self.nodes[id.index()].terms;
        if let Some((_, terms)) = terms.iter_mut().find(|(known, _)| *known == key) {
            terms.weight = weight;
        }
    }

    /// These keys with the most that a queue can have of each.
    fn columns(&self, queue: QueueId, keys: Vec<GovernedId>) -> Columns {
        let keys = keys.into_iter();
        keys.map(|key| (key, self.reach(queue, key))).collect()
    }

    /// The most that a queue can have of a key by its own limit and those above.
    pub(super) fn reach(&self, queue: QueueId, key: GovernedId) -> Amount {
        self.path(queue)
            .filter_map(|id| self.node(id).terms_of(key)?.limit)
            .fold(AMOUNT_MAX, Amount::min)
    }
}

/// The keys that are divided among siblings, sorted, each with the most that their parent can have
/// of it.
type Columns = SmallVec<[(GovernedId, Amount); 4]>;

fn terms_of_entries(
    entries: &[QueueResource],
    columns: &Columns,
    keys: &GovernedKeys,
) -> SmallVec<[(GovernedId, Terms); 2]> {
    let mut terms: SmallVec<[(GovernedId, Terms); 2]> = columns
        .iter()
        .map(|&(key, reach)| (key, Terms::of(None, reach)))
        .collect();
    for entry in entries {
        let key = keys.lookup(&entry.name, entry.product.as_deref());
        if let Some((_, terms)) = terms.iter_mut().find(|(known, _)| Some(*known) == key) {
            *terms = Terms::of(Some(entry), terms.reach);
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
        generation: 0,
        ..QueueFacts::new(Uid(0), DEFAULT)
    }
}
