//! Definitions become effective: the hierarchy is built anew, and compared with the old one.
//!
//! Queues that stay keep their numbers. As long as they keep their parents, too, and the governed
//! keys stay as they are, ledger and orders go on, and what has changed is named queue by queue.

use super::graph::invalid;
use super::node::Node;
use super::tree::{DEFAULT, Structure};
use super::{GovernedId, QueueId, QueueTree};
use crate::facts::{Amount, QueueFacts, UnixMs};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{boxed::Box, sync::Arc, vec::Vec};

/// The queues that were changed since the last refresh, and their definitions as of then; `None`:
/// the queue was not defined.
pub(super) type Changed = BTreeMap<Box<str>, Option<QueueFacts>>;

/// What a refresh has done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// Nothing: no definition has changed.
    Unchanged,
    /// Queues were changed, created or deleted. The charges, requests and candidates of all others
    /// are as they were.
    Edited {
        /// Queues for whose gangs other rules may hold now: admission, placement, limits on models.
        rules: BTreeSet<QueueId>,
        /// Queues whose quotas or limits may leave more room than before.
        bounds: BTreeSet<QueueId>,
    },
    /// A queue has another parent, or other keys are governed. All charges, requests and candidates
    /// are gone (capacities stay), and the engine must enter them again, with keys that it gets
    /// anew from [`QueueTree::governed_id`].
    Rebuilt,
}

impl QueueTree {
    /// The queues that the next [`QueueTree::refresh`] will take away.
    ///
    /// The trap: everything that was charged, requested or wanted in these queues must be taken
    /// back before that refresh.
    pub(crate) fn leaving(&self) -> Vec<QueueId> {
        let names = self.changed.keys();
        let gone =
            names.filter(|name| !self.definitions.contains_key(*name) && &***name != DEFAULT);
        gone.filter_map(|name| self.find(name)).collect()
    }

    /// Makes the changes of definitions effective. Costs nothing without changes, else O(queues),
    /// however many gangs the queues have.
    pub(crate) fn refresh(&mut self, now_ms: UnixMs) -> Refreshed {
        if self.changed.is_empty() {
            return Refreshed::Unchanged;
        }
        let changed = core::mem::take(&mut self.changed);
        let valid = self
            .definitions
            .values()
            .filter(|facts| invalid(facts).is_none());
        let entries = valid.flat_map(|facts| &facts.resources);
        let same_keys = !Arc::make_mut(&mut self.keys).govern(entries);
        let built = Structure::build(&self.definitions, &self.structure, &self.keys, now_ms);
        let old = core::mem::replace(&mut self.structure, Arc::new(built));
        let goes_on = same_keys && self.structure.keeps_parents(&old);
        if goes_on {
            self.ledger.grow(self.structure.len());
            let regrained = self.ledger.grains.promise(&self.structure);
            for order in &mut self.orders {
                order.grow(&self.structure);
            }
            if regrained {
                self.grain_changed();
            }
        } else {
            self.reset();
        }
        for name in changed.keys() {
            if !self.definitions.contains_key(name) {
                self.past.forget(old.find(name).unwrap_or(QueueId::ROOT));
            } else if let Some(queue) = self.find(name) {
                self.adopt_past(queue);
            }
        }
        self.adjust_weights();
        self.fair.outdated();
        if goes_on {
            self.take_over(&old, &changed)
        } else {
            Refreshed::Rebuilt
        }
    }

    /// Forgets all charges, requests and candidates.
    pub(super) fn reset(&mut self) {
        let keys = self.keys.interned();
        self.ledger.reset(self.structure.len(), &self.keys);
        self.ledger.grains.promise(&self.structure);
        self.orders.truncate(1);
        for order in &mut self.orders {
            order.reset(&self.structure, keys);
        }
    }

    /// Goes on with ledger and orders in a hierarchy in which queues have changed, come or gone.
    fn take_over(&mut self, old: &Structure, changed: &Changed) -> Refreshed {
        let structure = Arc::clone(&self.structure);
        let (mut rules, mut bounds) = (BTreeSet::new(), BTreeSet::new());
        let gone = old.queues().iter();
        for &id in gone.filter(|id| !structure.node(**id).exists) {
            let parent = old.parent_id(id);
            self.forget_candidate(id, parent);
            self.mark(parent);
            bounds.insert(parent);
        }
        for &id in structure.queues() {
            let (was, is) = (old.node(id), structure.node(id));
            if !was.exists {
                self.mark(id);
                rules.insert(id);
                continue;
            }
            let parent = structure.parent_id(id);
            if (was.priority, was.created_ms, &was.terms) != (is.priority, is.created_ms, &is.terms)
            {
                self.mark(id);
            }
            if was.is_leaf() && !is.is_leaf() {
                self.forget_candidate(id, parent);
            }
            if bounds_of(was).ne(bounds_of(is)) {
                bounds.insert(id);
            }
            if rules.contains(&parent) || self.rules_differ(was, is, changed) {
                rules.insert(id);
            }
        }
        drop(structure);
        self.edits += 1;
        for id in &rules {
            Arc::make_mut(&mut self.structure).set_rules(*id, self.edits);
        }
        Refreshed::Edited { rules, bounds }
    }

    /// Whether other rules than before may hold for the gangs of a queue and of all queues below
    /// it.
    fn rules_differ(&self, was: &Node, is: &Node, changed: &Changed) -> bool {
        let of_node = |node: &Node| {
            let runtimes = (node.preempt_min_runtime_ms, node.reclaim_min_runtime_ms);
            (node.is_leaf(), node.fault.clone(), node.placement, runtimes)
        };
        let model_limits = |node: &Node| -> Vec<(GovernedId, Option<Amount>)> {
            let terms = node.terms.iter().map(|(key, terms)| (*key, terms.limit));
            let is_model = |key| self.keys.plain(key).is_some();
            terms
                .filter(|(key, limit)| limit.is_some() && is_model(*key))
                .collect()
        };
        let admits = |facts: &QueueFacts| (facts.closed, facts.namespace_selector.clone());
        let now = self.definitions.get(&*is.name);
        let before = changed
            .get(&*is.name)
            .map(|before| before.as_ref().map(admits));
        of_node(was) != of_node(is)
            || model_limits(was) != model_limits(is)
            || before.is_some_and(|before| before != now.map(admits))
    }

    /// A number that rises with every change of the rules for the gangs of a queue.
    pub(crate) fn rules(&self, queue: QueueId) -> u64 {
        self.structure.node(queue).rules
    }
}

/// What bounds the gangs of a queue and of all queues below it.
fn bounds_of(node: &Node) -> impl Iterator<Item = (GovernedId, bool, Amount, Option<Amount>)> {
    let terms = node.terms.iter();
    terms.map(|(key, terms)| (*key, terms.written, terms.quota, terms.limit))
}
