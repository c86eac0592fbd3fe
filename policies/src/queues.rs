//! The queues: who is admitted, what each queue holds, who is served next, what would be fair.
//!
//! [`QueueTree`] owns it all. The engine tells it what queues exist, what their gangs hold and ask
//! for, and which leaves have a gang to be tried; the tree answers. It starts nothing by itself.
//!
//! ```text
//!  apply, delete, replace ──> definitions ──refresh──> structure ─────┬──> admit
//!  charge, release ─────────> ledger ─────────────────────────────────┼──> room, budget
//!  set_candidate ───────────> orders (keys of what changed, lazily) ──┼──> next_leaf
//!  add_wanted, ... ─────────> ledger ─────────────────────────────────┴──> divide, status
//! ```
//!
//! A *governed key* is a resource, or one model of it, that some Ready queue has an entry for. Only
//! those are accounted. Plain `nvidia.com/gpu` is always one of them.

mod admission;
mod fair;
mod filling;
mod graph;
mod keys;
mod ledger;
mod node;
mod order;
mod past;
mod refresh;
mod report;
mod shares;
mod tree;
mod view;

#[cfg(test)]
mod tests;
pub use admission::Refusal;
pub use keys::{Demand, GovernedId};
pub use ledger::{Bound, Excess};
pub use order::{Claim, DecidedBy, DominantShare, Level, LineUp, QuotaClaim, Sibling};
pub use refresh::Refreshed;

use crate::facts::{Amount, QueueFacts};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};
use fair::FairShares;
use keys::GovernedKeys;
use ledger::Ledger;
use order::Order;
use past::Past;
use refresh::Changed;
use tree::{Definitions, Structure};

/// A queue, as a small number. It stays the same while a queue of that name exists; afterwards it
/// may be given to another queue, so nobody may keep one that was among
/// [`QueueTree::leaving`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(u32);

impl QueueId {
    /// The implicit root. It is nobody's queue and is never handed out.
    const ROOT: Self = Self(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// All queues and what they hold.
///
/// The trap: changes of definitions take effect with [`QueueTree::refresh`], not before.
#[derive(Debug)]
pub struct QueueTree {
    definitions: Definitions,
    /// Since the last refresh.
    changed: Changed,
    keys: Arc<GovernedKeys>,
    structure: Arc<Structure>,
    /// Rises whenever queues change.
    edits: u64,
    ledger: Ledger,
    /// By line-up.
    orders: Vec<Order>,
    fair: FairShares,
    past: Past,
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
        let definitions = Definitions::new();
        let keys = GovernedKeys::new();
        let structure = Structure::build(&definitions, &Structure::default(), &keys, 0);
        let mut tree = Self {
            definitions,
            changed: Changed::new(),
            keys: Arc::new(keys),
            structure: Arc::new(structure),
            edits: 0,
            ledger: Ledger::default(),
            orders: Vec::from([Order::default()]),
            fair: FairShares::default(),
            past: Past::default(),
        };
        tree.reset();
        tree
    }

    /// Takes in a queue that was created or changed. Cheap: the work is done by
    /// [`QueueTree::refresh`], once for all changes. The status is not among the facts, so that our
    /// own writes change nothing.
    pub fn apply(&mut self, facts: QueueFacts) {
        let unchanged = |old: &QueueFacts| {
            let same_object = QueueFacts {
                uid: facts.uid,
                generation: facts.generation,
                past_use: facts.past_use.clone(),
                ..old.clone()
            };
            same_object == facts
        };
        let changed = !self.definitions.get(&facts.name).is_some_and(unchanged);
        let name = facts.name.clone();
        let before = self.definitions.insert(name.clone(), facts);
        if changed {
            self.changed.entry(name).or_insert(before);
        }
    }

    /// Takes in that a queue is gone.
    pub fn delete(&mut self, name: &str) {
        if let Some(before) = self.definitions.remove(name) {
            self.changed.entry(name.into()).or_insert(Some(before));
        }
    }

    /// Takes in a list of all queues: those that are missing are gone.
    pub fn replace(&mut self, queues: Vec<QueueFacts>) {
        let listed: BTreeMap<Box<str>, QueueFacts> = queues
            .into_iter()
            .map(|facts| (facts.name.clone(), facts))
            .collect();
        for name in self.defined_names() {
            if !listed.contains_key(&name) {
                self.delete(&name);
            }
        }
        for facts in listed.into_values() {
            self.apply(facts);
        }
    }

    /// The key under which a resource (or one model of it) is accounted; `None`: no queue names
    /// it. A GPU counts under its plain key and under its model's.
    #[must_use]
    pub fn governed_id(&self, resource: &str, product: Option<&str>) -> Option<GovernedId> {
        self.keys.find(resource, product)
    }

    /// Whether a key is one model of a resource.
    #[must_use]
    pub fn is_model(&self, key: GovernedId) -> bool {
        self.keys.plain(key).is_some()
    }

    /// Whether any model is governed.
    #[must_use]
    pub fn names_models(&self) -> bool {
        self.keys.names_models()
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
            self.mark_all();
            self.fair.outdated();
        }
    }
}
