//! The queues: who is admitted, what each queue holds, who is served next, what would be fair.
//!
//! [`QueueTree`] owns it all. The engine tells it what queues exist, what their gangs hold and ask
//! for, and which leaves have a gang to be tried; the tree answers. It starts nothing by itself.
//!
//! ```text
//!  apply, delete, replace ──> definitions ──refresh──> structure ─────┬──> admit
//!  charge, release ─────────> ledger ─────────────────────────────────┼──> room, budget
//!  set_candidate ───────────> order (keys of what changed, lazily) ───┼──> next_leaf
//!  add_requested ───────────> ledger ─────────────────────────────────┴──> fair shares, reports
//! ```
//!
//! A *governed key* is a resource, or one model of it, that some Ready queue has an entry for. Only
//! those are accounted. Plain `nvidia.com/gpu` is always one of them.

mod admission;
mod filling;
mod graph;
mod keys;
mod ledger;
mod node;
mod order;
mod report;
mod shares;
mod tree;
mod view;

#[cfg(test)]
mod tests;
pub use admission::Refusal;
pub use keys::{Demand, GovernedId};
pub use ledger::{Bound, Excess};
pub use order::{Claim, DecidedBy, Level};

use crate::facts::{Amount, QueueFacts, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use keys::GovernedKeys;
use ledger::{Ledger, Matrix};
use order::Order;
use tree::Structure;

/// A queue, as a small number. It stays the same while a queue of that name exists; afterwards it
/// may be given to another queue, so nobody may keep one over a change of
/// [`QueueTree::governed_epoch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(u32);

impl QueueId {
    /// The implicit root. It is nobody's queue and is never handed out.
    const ROOT: Self = Self(0);

    /// Not before any queue.
    pub(crate) const LAST: Self = Self(u32::MAX);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// All queues and what they hold.
///
/// The trap: changes of definitions take effect with [`QueueTree::refresh`], not before. If
/// [`QueueTree::governed_epoch`] has risen then, every charge, request and candidate is forgotten,
/// and the engine enters them again.
#[derive(Debug)]
pub struct QueueTree {
    definitions: BTreeMap<Box<str>, QueueFacts>,
    definitions_changed: bool,
    keys: GovernedKeys,
    structure: Structure,
    epoch: u64,
    ledger: Ledger,
    order: Order,
    /// The fair shares, until something changes that they depend on.
    fair_shares: Option<Matrix>,
}

/// What orders and shares are computed from.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    structure: &'a Structure,
    keys: &'a GovernedKeys,
    ledger: &'a Ledger,
}

impl Default for QueueTree {
    fn default() -> Self {
        Self::new()
    }
}

impl QueueTree {
    /// A tree with the queue `default` alone.
    #[must_use]
    pub fn new() -> Self {
        let mut tree = Self {
            definitions: BTreeMap::new(),
            definitions_changed: true,
            keys: GovernedKeys::new(),
            structure: Structure::default(),
            epoch: 0,
            ledger: Ledger::default(),
            order: Order::default(),
            fair_shares: None,
        };
        tree.refresh(0);
        tree
    }

    /// Takes in a queue that was created or changed. Cheap: the work is done by
    /// [`QueueTree::refresh`], once for all changes. Whether it is other than before: its status is
    /// not among the facts, so that our own writes change nothing.
    pub fn apply(&mut self, facts: QueueFacts) -> bool {
        let unchanged = |old: &QueueFacts| {
            let same_object = QueueFacts {
                uid: facts.uid,
                generation: facts.generation,
                ..old.clone()
            };
            same_object == facts
        };
        let changed = !self.definitions.get(&facts.name).is_some_and(unchanged);
        self.definitions_changed |= changed;
        self.definitions.insert(facts.name.clone(), facts);
        changed
    }

    /// Takes in that a queue is gone.
    pub fn delete(&mut self, name: &str) {
        self.definitions_changed |= self.definitions.remove(name).is_some();
    }

    /// Takes in a list of all queues: those that are missing are gone.
    pub fn replace(&mut self, queues: Vec<QueueFacts>) {
        let listed: BTreeMap<Box<str>, QueueFacts> = queues
            .into_iter()
            .map(|facts| (facts.name.clone(), facts))
            .collect();
        let before = self.definitions.len();
        self.definitions.retain(|name, _| listed.contains_key(name));
        self.definitions_changed |= self.definitions.len() != before;
        for facts in listed.into_values() {
            self.apply(facts);
        }
    }

    /// Makes the changes of definitions effective. Costs nothing if there are none.
    ///
    /// Amounts held survive a change of quotas, limits, weights, priorities or admission. They do
    /// not survive one of the queues that exist, of their parents or of the governed keys: then
    /// [`QueueTree::governed_epoch`] rises.
    pub fn refresh(&mut self, now_ms: UnixMs) {
        if !core::mem::take(&mut self.definitions_changed) {
            return;
        }
        let old = core::mem::take(&mut self.structure);
        let same_keys = !self.keys.govern(&self.definitions);
        self.structure = Structure::build(&self.definitions, &old, &self.keys, now_ms);
        self.fair_shares = None;
        if !(same_keys && self.structure.same_tree(&old)) {
            self.epoch += 1;
            self.ledger
                .reset(self.structure.len(), self.keys.interned());
            self.order.reset(&self.structure, self.keys.interned());
        }
        self.order.mark_all(&self.structure);
    }

    /// Rises whenever the set of queues, a parent or the set of governed keys has changed. All
    /// charges, requests and candidates are gone then (capacities stay), [`QueueId`]s may mean
    /// other queues, and amounts must be taken apart anew with [`QueueTree::governed_id`].
    #[must_use]
    pub fn governed_epoch(&self) -> u64 {
        self.epoch
    }

    /// The key under which a resource (or one model of it) is accounted; `None`: no queue names
    /// it. A GPU counts under its plain key and under its model's.
    #[must_use]
    pub fn governed_id(&self, resource: &str, product: Option<&str>) -> Option<GovernedId> {
        self.keys.find(resource, product)
    }

    /// How users see a key: `resource` or `resource@product`.
    #[must_use]
    pub fn governed_name(&self, key: GovernedId) -> &str {
        self.keys.name(key)
    }

    /// The queue of this name, Ready or not.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<QueueId> {
        self.structure.find(name)
    }

    /// A queue's name.
    #[must_use]
    pub fn name(&self, queue: QueueId) -> &str {
        &self.structure.node(queue).name
    }

    /// Sets how much of a key is divided: what Ready nodes have minus what foreign pods take.
    pub fn set_capacity(&mut self, key: GovernedId, capacity: Amount) {
        if self.ledger.set_capacity(key, capacity) {
            self.order.mark_all(&self.structure);
            self.fair_shares = None;
        }
    }
}
