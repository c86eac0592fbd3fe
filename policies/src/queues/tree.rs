//! The hierarchy: parents and children, what is divided among siblings, what is inherited.

use super::graph::places;
use super::keys::GovernedKeys;
use super::node::{Node, Terms, WEIGHT_ONE};
use super::{GovernedId, QueueId};
use crate::facts::{AMOUNT_MAX, Amount, PlacementChoice, QueueFacts, QueueResource, Uid, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec, vec::Vec};
use core::iter;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// The name of the queue that always exists.
pub(super) const DEFAULT: &str = "default";

/// The definitions of all queues, by name.
pub(super) type Definitions = BTreeMap<Box<str>, QueueFacts>;

/// All queues, by number; the root has number 0.
#[derive(Debug, Clone)]
pub(super) struct Structure {
    nodes: Vec<Node>,
    by_name: HashMap<Arc<str>, QueueId, FxBuildHasher>,
    /// The root and all queues, parents before children, siblings by name.
    order: Vec<QueueId>,
}

impl Default for Structure {
    /// The root alone.
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            by_name: HashMap::default(),
            order: vec![QueueId::ROOT],
        }
    }
}

impl Structure {
    /// What all queues may have, by key.
    pub(super) fn terms(&self) -> impl Iterator<Item = &(GovernedId, Terms)> {
        self.nodes.iter().flat_map(|node| &node.terms)
    }

    /// One more than the highest number that is in use.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<QueueId> {
        self.by_name.get(name).copied()
    }

    /// The node of a number; the root's for a number beyond [`Self::len`].
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

    /// The root and all queues, parents before children, siblings by name.
    pub(super) fn with_root(&self) -> &[QueueId] {
        &self.order
    }

    /// All queues, parents before children, siblings by name.
    pub(super) fn queues(&self) -> &[QueueId] {
        &self.order[1..]
    }

    /// All queues below a queue, parents before children.
    pub(super) fn below(&self, id: QueueId) -> &[QueueId] {
        &self.order[self.node(id).below.clone()]
    }

    /// Whether every queue of the old hierarchy that still exists has its old parent.
    pub(super) fn keeps_parents(&self, old: &Self) -> bool {
        let mut stay = old.queues().iter().filter(|id| self.node(**id).exists);
        stay.all(|id| old.node(*id).parent == self.node(*id).parent)
    }

    /// Builds the hierarchy. A queue of the old one keeps its number, and also the time since which
    /// it is Ready (or is not Ready) if that has not changed.
    pub(super) fn build(
        definitions: &Definitions,
        old: &Self,
        keys: &GovernedKeys,
        now_ms: UnixMs,
    ) -> Self {
        // The queue `default` where nobody has defined it.
        let undefined = QueueFacts {
            generation: 0,
            ..QueueFacts::new(Uid(0), DEFAULT)
        };
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
        let mut by_number = vec![&undefined; count];
        for ((&facts, place), &id) in all.iter().zip(places(&all)).zip(&ids) {
            let parent = place.parent.map_or(QueueId::ROOT, |at| ids[at]);
            structure.nodes[parent.index()].children.push(id);
            by_number[id.index()] = facts;
            let was = Some(old.node(id)).filter(|node| node.exists);
            let name = was.map_or_else(|| (&*facts.name).into(), |was| Arc::clone(&was.name));
            structure.by_name.insert(Arc::clone(&name), id);
            // The queue `default` becomes Ready when it is defined.
            let as_ready =
                |was: &&Node| was.defined && was.fault.is_some() == place.fault.is_some();
            structure.nodes[id.index()] = Node {
                name,
                exists: true,
                defined: !core::ptr::eq(facts, &undefined),
                parent: Some(parent),
                children: core::mem::take(&mut structure.nodes[id.index()].children),
                created_ms: facts.created_ms,
                priority: facts.priority,
                ready_since_ms: was
                    .filter(as_ready)
                    .map_or(now_ms, |was| was.ready_since_ms),
                fault: place.fault,
                rules: was.map_or(0, |was| was.rules),
                ..Node::default()
            };
        }
        structure.put_in_order();
        let order = structure.order.clone();
        for &id in &order[1..] {
            structure.inherit(id, by_number[id.index()]);
        }
        for id in order {
            structure.divide_below(id, &by_number, keys);
        }
        structure
    }

    fn put_in_order(&mut self) {
        self.order.clear();
        let mut ahead = vec![QueueId::ROOT];
        while let Some(id) = ahead.pop() {
            self.order.push(id);
            self.nodes[id.index()].below = self.order.len()..self.order.len();
            ahead.extend(self.node(id).children.iter().rev());
        }
        for id in self.order.iter().rev() {
            if let Some(last) = self.node(*id).children.last() {
                self.nodes[id.index()].below.end = self.node(*last).below.end;
            }
        }
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

    /// Fills what follows from the parent: the depth, and what the queue's definition leaves out.
    fn inherit(&mut self, id: QueueId, facts: &QueueFacts) {
        let parent = self.node(self.parent_id(id));
        let depth = parent.depth + 1;
        let placement = PlacementChoice {
            gpu: facts.placement.gpu.or(parent.placement.gpu),
            cpu: facts.placement.cpu.or(parent.placement.cpu),
        };
        let preempt = facts.preempt_min_runtime_ms;
        let reclaim = facts.reclaim_min_runtime_ms;
        let preempt = preempt.unwrap_or(parent.preempt_min_runtime_ms);
        let reclaim = reclaim.unwrap_or(parent.reclaim_min_runtime_ms);
        let node = &mut self.nodes[id.index()];
        node.depth = depth;
        node.placement = placement;
        node.preempt_min_runtime_ms = preempt;
        node.reclaim_min_runtime_ms = reclaim;
    }

    /// Fills the terms of all children of a queue. `by_number`: the definitions. Entries of a queue
    /// that is not Ready count for nothing.
    fn divide_below(&mut self, parent: QueueId, by_number: &[&QueueFacts], keys: &GovernedKeys) {
        let children = self.node(parent).children.clone();
        let mut entries: Vec<(QueueId, GovernedId, &QueueResource)> = Vec::new();
        for &id in children.iter().filter(|id| self.node(**id).fault.is_none()) {
            for entry in &by_number[id.index()].resources {
                let key = keys.lookup(&entry.name, entry.product.as_deref());
                entries.extend(key.map(|key| (id, key, entry)));
            }
        }
        let mut divided: Vec<GovernedId> = entries.iter().map(|(_, key, _)| *key).collect();
        divided.push(GovernedId::GPU);
        divided.sort_unstable();
        divided.dedup();
        let terms: SmallVec<[(GovernedId, Terms); 2]> = divided
            .into_iter()
            .map(|key| (key, Terms::of(None, self.reach(parent, key))))
            .collect();
        for id in children {
            self.nodes[id.index()].terms.clone_from(&terms);
        }
        for (id, key, entry) in entries {
            let terms = &mut self.nodes[id.index()].terms;
            if let Some((_, terms)) = terms.iter_mut().find(|(known, _)| *known == key) {
                *terms = Terms::of(Some(entry), terms.reach);
            }
        }
    }

    /// Notes that the rules for a queue's gangs have changed.
    pub(super) fn set_rules(&mut self, id: QueueId, edits: u64) {
        self.nodes[id.index()].rules = edits;
    }

    /// Lets every weight count for what the definition says.
    pub(super) fn weigh_as_said(&mut self) {
        for (_, terms) in self.nodes.iter_mut().flat_map(|node| &mut node.terms) {
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

    /// The most that a queue can have of a key by its own limit and those above it.
    pub(super) fn reach(&self, queue: QueueId, key: GovernedId) -> Amount {
        self.path(queue)
            .filter_map(|id| self.node(id).terms_of(key)?.limit)
            .fold(AMOUNT_MAX, Amount::min)
    }
}

/// Gives every queue its number: the one that it has in the old hierarchy, else the lowest that no
/// queue has there.
fn number(definitions: &[&QueueFacts], old: &Structure) -> Vec<QueueId> {
    let mut free = (1..).map(QueueId).filter(|id| !old.node(*id).exists);
    let mut number = |name| old.find(name).or_else(|| free.next());
    let numbers = definitions.iter().map(|facts| number(&facts.name));
    numbers.map(|id| id.unwrap_or(QueueId::ROOT)).collect()
}
