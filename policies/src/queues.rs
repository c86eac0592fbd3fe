//! The queues: which gangs they admit, what each holds, which leaf is served next, and what the
//! fair shares are.
//!
//! [`QueueTree`] owns it all. The engine tells it which queues exist, what their gangs hold and ask
//! for, and which leaves have a gang to be tried; the tree answers questions and starts nothing by
//! itself.
//!
//! ```text
//!  apply, delete, replace ──> definitions ──refresh──> structure ─────┬──> admit
//!  charge, release ─────────> ledger ─────────────────────────────────┼──> room, budget
//!  set_candidate ───────────> orders (keys of what changed, lazily) ──┼──> next_leaf
//!  add_wanted, ... ─────────> ledger ─────────────────────────────────┴──> divide, status
//! ```
//!
//! A *governed key* is a resource, or one GPU model of it, that the definition of some valid queue
//! has an entry for. Only governed keys are accounted. Plain `nvidia.com/gpu` is always one of
//! them.

mod admission;
mod claims;
mod fair;
mod filling;
mod grain;
mod graph;
mod guarantee;
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
pub use claims::ClaimKind;
pub(crate) use claims::Giver;
pub(crate) use keys::{Demand, GovernedId, add_demand, amount_in};
pub(crate) use ledger::{Bound, Excess, TightLimit};
pub(crate) use order::LineUp;
pub use order::{ComparedBy, DecidedBy, DecidingQuota, DominantShare, Level, Sibling};
pub(crate) use refresh::Refreshed;

use crate::facts::{Amount, QueueFacts};
use alloc::{sync::Arc, vec::Vec};
use fair::FairShares;
use keys::GovernedKeys;
use ledger::Ledger;
use order::Order;
use past::Past;
use refresh::Changed;
use tree::{Definitions, Structure};

/// A queue, as a small number. The number stays while a queue of that name exists.
///
/// The trap: when that queue is gone, its number may be given to another queue, so forget the
/// numbers that [`QueueTree::leaving`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(u32);

impl QueueId {
    /// The root, which is implicit: it has no object and is never handed out.
    const ROOT: Self = Self(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// All queues and what they hold.
///
/// The trap: changes of definitions take effect with [`QueueTree::refresh`], not before.
#[derive(Debug)]
pub(crate) struct QueueTree {
    definitions: Definitions,
    /// The changes since the last refresh.
    changed: Changed,
    keys: Arc<GovernedKeys>,
    structure: Arc<Structure>,
    /// Rises with each [`QueueTree::refresh`] that is [`Refreshed::Edited`].
    edits: u64,
    ledger: Ledger,
    /// The orders, by number of their line-up.
    orders: Vec<Order>,
    fair: FairShares,
    past: Past,
}

/// What orders and statuses are computed from.
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
    /// A number that rises whenever queues change without the hierarchy being built anew.
    pub(crate) fn edits(&self) -> u64 {
        self.edits
    }

    /// A tree with the queue `default` alone.
    pub(crate) fn new() -> Self {
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

    /// Takes in a queue that was created or changed. Cheap: [`QueueTree::refresh`] does the work
    /// once for all changes. A new UID, generation, past use or writer of the status alone is no
    /// change, so that writing a status does not cause a refresh.
    pub(crate) fn apply(&mut self, facts: QueueFacts) {
        let unchanged = |old: &QueueFacts| {
            let same_object = QueueFacts {
                uid: facts.uid,
                generation: facts.generation,
                past_use: facts.past_use.clone(),
                is_told_by_other: facts.is_told_by_other,
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

    /// Takes in that the queue of this name was deleted.
    pub(crate) fn delete(&mut self, name: &str) {
        if let Some(before) = self.definitions.remove(name) {
            self.changed.entry(name.into()).or_insert(Some(before));
        }
    }

    /// The key under which a resource, or one GPU model of it, is accounted; `None`: no valid queue
    /// names it. A GPU is accounted under the plain key and under the key of its model.
    pub(crate) fn governed_id(&self, resource: &str, product: Option<&str>) -> Option<GovernedId> {
        self.keys.find(resource, product)
    }

    /// Whether a key is one model of a resource, not the resource as a whole.
    pub(crate) fn is_model(&self, key: GovernedId) -> bool {
        self.keys.plain(key).is_some()
    }

    /// Whether any key of a model is governed.
    pub(crate) fn names_models(&self) -> bool {
        self.keys.names_models()
    }

    /// The name by which users see a key: `resource` or `resource@product`.
    pub(crate) fn governed_name(&self, key: GovernedId) -> &str {
        self.keys.name(key)
    }

    /// The queue of this name, Ready or not.
    pub(crate) fn find(&self, name: &str) -> Option<QueueId> {
        self.structure.find(name)
    }

    /// A queue's name.
    pub(crate) fn name(&self, queue: QueueId) -> &str {
        &self.structure.node(queue).name
    }

    /// Sets how much of a key is divided, in base units: what Ready nodes have minus what foreign
    /// pods take.
    pub(crate) fn set_capacity(&mut self, key: GovernedId, capacity: Amount) {
        if self.ledger.set_capacity(key, capacity) {
            self.mark_all();
            self.fair.outdated();
        }
    }
}
