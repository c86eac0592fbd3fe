//! Changes of single queues, at a cost that follows what they change.
//!
//! Most changes are simple: a queue that is Ready gets other terms, or a leaf that makes sense
//! comes or goes. Whatever touches what is not Ready, moves a queue below another parent or
//! changes what is governed builds the hierarchy anew.
//!
//! An edited hierarchy is the one that would be built anew: a property test compares both after
//! every change.

use super::{DEFAULT, Definitions, Structure, terms_of_entries};
use crate::facts::{Amount, QueueFacts, UnixMs};
use crate::queues::graph::invalid;
use crate::queues::keys::GovernedKeys;
use crate::queues::node::Node;
use crate::queues::{GovernedId, QueueId};
use alloc::{collections::BTreeSet, sync::Arc, vec::Vec};

/// One queue's definition before and after.
#[derive(Debug, Clone, Copy)]
pub(in crate::queues) struct Change<'a> {
    pub(in crate::queues) name: &'a str,
    pub(in crate::queues) before: Option<&'a QueueFacts>,
    pub(in crate::queues) after: Option<&'a QueueFacts>,
}

impl Change<'_> {
    fn parent(&self) -> Option<&str> {
        let facts = self.after.or(self.before)?;
        facts.parent.as_deref()
    }

    /// Whether a queue that stays has other limits than before.
    fn limits_differ(&self) -> bool {
        self.before
            .zip(self.after)
            .is_some_and(|(before, after)| limits(before) != limits(after))
    }

    /// Whether a queue comes or goes.
    fn is_structural(&self) -> bool {
        self.before.is_none() || self.after.is_none()
    }
}

/// What an edit has changed.
#[derive(Debug, Default)]
pub(in crate::queues) struct Edited {
    /// Queues whose place in the order may be another one.
    pub(in crate::queues) order: Vec<QueueId>,
    /// Leaves that are none any more, or are gone: with their parents.
    pub(in crate::queues) no_leaves: Vec<(QueueId, QueueId)>,
    /// Queues of which gangs may fare otherwise than before: who may submit, on what terms.
    pub(in crate::queues) rules: Vec<QueueId>,
    /// Queues whose bounds may leave more room than before.
    pub(in crate::queues) bounds: Vec<QueueId>,
    /// Queues below which some weights count for what they say again.
    pub(in crate::queues) weighed: BTreeSet<QueueId>,
}

/// What holds for the gangs of all queues below, too.
fn passed_on(facts: &QueueFacts) -> impl PartialEq {
    (
        facts.closed,
        facts.namespace_selector.clone(),
        facts.placement,
        facts.preempt_min_runtime_ms,
        facts.reclaim_min_runtime_ms,
    )
}

/// What bounds the gangs of all queues below.
fn bounds(facts: &QueueFacts) -> Vec<(&str, Option<&str>, Amount, Option<Amount>)> {
    let entries = facts.resources.iter();
    entries
        .map(|entry| {
            (
                &*entry.name,
                entry.product.as_deref(),
                entry.quota,
                entry.limit,
            )
        })
        .collect()
}

fn limits(facts: &QueueFacts) -> Vec<(&str, Option<&str>, Amount)> {
    let bounds = bounds(facts).into_iter();
    bounds
        .filter_map(|(name, product, _, limit)| Some((name, product, limit?)))
        .collect()
}

/// The limits that nodes are filtered by.
fn model_limits(facts: &QueueFacts) -> Vec<(&str, Option<&str>, Amount)> {
    let mut limits = limits(facts);
    limits.retain(|(_, product, _)| product.is_some());
    limits
}

impl Structure {
    /// Whether a change touches nothing but the queue, what it passes on, and its siblings' terms.
    pub(in crate::queues) fn is_simple(
        &self,
        change: &Change<'_>,
        definitions: &Definitions,
    ) -> bool {
        let is_sound = |facts: &QueueFacts| invalid(facts).is_none();
        let is_ready = |name: &str| {
            let found = self.find(name);
            found.is_some_and(|id| self.node(id).fault.is_none())
        };
        if change.name == DEFAULT || !change.after.is_none_or(is_sound) {
            return false;
        }
        match (change.before, change.after) {
            (Some(before), Some(after)) => before.parent == after.parent && is_ready(change.name),
            (None, Some(after)) => {
                after.parent.as_deref().is_none_or(is_ready)
                    && !self.concerns_faults(change, definitions)
            }
            (Some(_), None) => {
                let leaf = self.find(change.name).map(|id| self.node(id));
                leaf.is_some_and(|node| node.is_leaf() && node.fault.is_none())
                    && !self.concerns_faults(change, definitions)
            }
            (None, None) => true,
        }
    }

    /// Whether a queue that comes or goes is the parent or a sibling of one that is not Ready: the
    /// place of that one may change.
    fn concerns_faults(&self, change: &Change<'_>, definitions: &Definitions) -> bool {
        let parent = change.parent();
        self.faults > 0
            && definitions.values().any(|facts| {
                let named = facts.parent.as_deref();
                let is_faulty = || {
                    let id = self.find(&facts.name);
                    id.is_some_and(|id| self.node(id).fault.is_some())
                };
                named == Some(change.name) || (named.is_some() && named == parent && is_faulty())
            })
    }

    /// Whether changes that are simple one by one are so together.
    pub(in crate::queues) fn are_independent(changes: &[Change<'_>]) -> bool {
        let names = |change: &Change<'_>| {
            let structural = changes.iter().filter(|change| change.is_structural());
            let parent = change.parent();
            structural
                .filter(|other| parent == Some(other.name))
                .count()
        };
        changes.iter().all(|change| names(change) == 0)
    }

    /// Carries out a simple change.
    pub(in crate::queues) fn edit(
        &mut self,
        change: &Change<'_>,
        definitions: &Definitions,
        keys: &GovernedKeys,
        now_ms: UnixMs,
        edited: &mut Edited,
    ) {
        let changed = match (change.before, change.after) {
            (None, Some(after)) => Some(self.insert(after, now_ms, edited)),
            (Some(_), None) => self.remove(change.name, edited),
            (Some(before), Some(after)) => self.alter(before, after, definitions, edited),
            (None, None) => None,
        };
        if let Some(id) = changed {
            self.inherit(id, definitions);
            self.settle_terms(id, definitions, keys, edited);
            if change.limits_differ() {
                self.settle_reach(id, definitions, keys, edited);
            }
        }
    }

    fn insert(&mut self, facts: &QueueFacts, now_ms: UnixMs, edited: &mut Edited) -> QueueId {
        let parent = facts.parent.as_deref().and_then(|name| self.find(name));
        let parent = parent.unwrap_or(QueueId::ROOT);
        let free = self.nodes.iter().skip(1).position(|node| !node.exists);
        let index = free.map_or(self.nodes.len(), |at| at + 1);
        let id = QueueId(u32::try_from(index).unwrap_or(u32::MAX));
        let node = Node {
            name: (&*facts.name).into(),
            exists: true,
            defined: true,
            parent: Some(parent),
            depth: self.node(parent).depth + 1,
            created_ms: facts.created_ms,
            priority: facts.priority,
            ready_since_ms: now_ms,
            ..Node::default()
        };
        self.by_name.insert(Arc::clone(&node.name), id);
        if index == self.nodes.len() {
            self.nodes.push(node);
        } else {
            self.nodes[index] = node;
        }
        if self.node(parent).is_leaf() && parent != QueueId::ROOT {
            edited.no_leaves.push((parent, self.parent_id(parent)));
        }
        let at = self.position(parent, &facts.name);
        self.nodes[parent.index()].children.insert(at, id);
        edited.order.push(id);
        // The rules change for gangs that waited for a queue of this name, and for those in the
        // parent.
        edited.rules.extend([id, parent]);
        id
    }

    /// Where a child of this name stands, or would.
    fn position(&self, parent: QueueId, name: &str) -> usize {
        let children = &self.node(parent).children;
        children.partition_point(|&child| *self.node(child).name < *name)
    }

    /// Takes a leaf away. A sibling of it, if there is one.
    fn remove(&mut self, name: &str, edited: &mut Edited) -> Option<QueueId> {
        let id = self.by_name.remove(name)?;
        let parent = self.parent_id(id);
        let at = self.position(parent, name);
        self.nodes[parent.index()].children.remove(at);
        self.nodes[id.index()] = Node::default();
        edited.no_leaves.push((id, parent));
        edited.order.push(parent);
        edited.rules.push(parent);
        edited.bounds.push(parent);
        self.node(parent).children.first().copied()
    }

    fn alter(
        &mut self,
        before: &QueueFacts,
        after: &QueueFacts,
        definitions: &Definitions,
        edited: &mut Edited,
    ) -> Option<QueueId> {
        let id = self.find(&after.name)?;
        let node = &mut self.nodes[id.index()];
        node.priority = after.priority;
        node.created_ms = after.created_ms;
        edited.order.push(id);
        if bounds(before) != bounds(after) {
            edited.bounds.push(id);
        }
        if passed_on(before) != passed_on(after) || model_limits(before) != model_limits(after) {
            let below = self.subtree(id);
            for &id in &below {
                self.inherit(id, definitions);
            }
            edited.rules.extend(below);
        }
        Some(id)
    }

    /// Notes that the rules by which a queue's gangs fare have changed.
    pub(in crate::queues) fn set_rules(&mut self, id: QueueId, edits: u64) {
        self.nodes[id.index()].rules = edits;
    }

    /// Fills a queue's terms; and where what is divided among its siblings has changed, theirs;
    /// and where what anybody can have has, those of all below.
    fn settle_terms(
        &mut self,
        id: QueueId,
        definitions: &Definitions,
        keys: &GovernedKeys,
        edited: &mut Edited,
    ) {
        let parent = self.parent_id(id);
        edited.weighed.insert(parent);
        match self.divided_as_before(id, definitions, keys) {
            Some(divided) => {
                let columns = self.columns(parent, divided);
                let terms = terms_of_entries(self.entries_of(id, definitions), &columns, keys);
                self.nodes[id.index()].terms = terms;
            }
            None => {
                self.divide_below(parent, definitions, keys);
                edited.order.extend(&self.node(parent).children);
            }
        }
    }

    /// Fills the terms of all below a queue, whose limits have changed.
    fn settle_reach(
        &mut self,
        id: QueueId,
        definitions: &Definitions,
        keys: &GovernedKeys,
        edited: &mut Edited,
    ) {
        for below in self.subtree(id) {
            self.divide_below(below, definitions, keys);
            edited.weighed.insert(below);
            edited.order.extend(&self.node(below).children);
        }
    }

    /// The keys that have been divided among a queue's siblings, if they are those to be divided
    /// now.
    fn divided_as_before(
        &self,
        id: QueueId,
        definitions: &Definitions,
        keys: &GovernedKeys,
    ) -> Option<Vec<GovernedId>> {
        let own = self.entries_of(id, definitions).iter();
        let own: Vec<GovernedId> = own
            .filter_map(|entry| keys.lookup(&entry.name, entry.product.as_deref()))
            .collect();
        let siblings = self.node(self.parent_id(id)).children.iter();
        let siblings = || siblings.clone().filter(|&&sibling| sibling != id);
        let terms = &self.node(*siblings().next()?).terms;
        let divided: Vec<GovernedId> = terms.iter().map(|(key, _)| *key).collect();
        let is_written = |key: GovernedId, sibling: QueueId| {
            let terms = self.node(sibling).terms_of(key);
            terms.is_some_and(|terms| terms.written)
        };
        let is_named = |key: GovernedId| {
            key == GovernedId::GPU
                || own.contains(&key)
                || siblings().any(|&sibling| is_written(key, sibling))
        };
        let same =
            own.iter().all(|key| divided.contains(key)) && divided.iter().all(|key| is_named(*key));
        same.then_some(divided)
    }
}
