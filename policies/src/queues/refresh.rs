//! Definitions become effective.

use super::keys::GovernedKeys;
use super::tree::{Change, Definitions, Edited, Structure};
use super::{GovernedId, QueueId, QueueTree};
use crate::facts::{QueueFacts, UnixMs};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};

/// More changes than this at once build the hierarchy anew.
const EDITS_MAX: usize = 16;

/// What a refresh has done.
#[derive(Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing: no definition has changed.
    Unchanged,
    /// Single queues were changed, created or deleted; everything else is as it was.
    Edited {
        /// Queues of which gangs may fare otherwise than before: admission, placement, models.
        rules: Vec<QueueId>,
        /// Queues whose bounds may leave more room than before.
        bounds: Vec<QueueId>,
    },
    /// The hierarchy was built anew: any gang may fare otherwise than before. If
    /// [`QueueTree::governed_epoch`] has risen, everything must be entered again.
    Rebuilt,
}

impl QueueTree {
    /// The leaves that the next [`QueueTree::refresh`] will take away while everything else stays.
    /// Amounts that were charged to them and asked for in them must be taken back before.
    #[must_use]
    pub fn leaving(&self) -> Vec<QueueId> {
        let simple = simple(
            &self.changed,
            &self.definitions,
            &self.structure,
            &self.keys,
        );
        let Some((changes, _)) = simple else {
            return Vec::new();
        };
        let gone = changes.iter().filter(|change| change.after.is_none());
        gone.filter_map(|change| self.find(change.name)).collect()
    }

    /// Makes the changes of definitions effective. Costs nothing if there are none, and for single
    /// queues about as much as what they change.
    pub fn refresh(&mut self, now_ms: UnixMs) -> Refreshed {
        if self.changed.is_empty() {
            return Refreshed::Unchanged;
        }
        self.edits += 1;
        let changed: Vec<Box<str>> = self.changed.keys().cloned().collect();
        let edited = self.edit(now_ms);
        if edited.is_none() {
            self.rebuild(now_ms);
        }
        for name in changed {
            let facts = self.definitions.get(&name);
            if facts.is_none() {
                self.past.forget(&name);
            }
            if let Some(past) = facts.and_then(|facts| facts.past_use.clone()) {
                self.adopt_past(&name, &past);
            }
        }
        let Some(Edited {
            rules,
            bounds,
            weighed,
            ..
        }) = edited
        else {
            self.adjust_weights();
            return Refreshed::Rebuilt;
        };
        self.adjust_weights_below(weighed);
        Refreshed::Edited { rules, bounds }
    }

    /// Carries out the changes one by one, if that is all that is needed.
    fn edit(&mut self, now_ms: UnixMs) -> Option<Edited> {
        let (changes, named) = simple(
            &self.changed,
            &self.definitions,
            &self.structure,
            &self.keys,
        )?;
        let mut edited = Edited::default();
        Arc::make_mut(&mut self.keys).rename(named);
        let structure = Arc::make_mut(&mut self.structure);
        for change in &changes {
            structure.edit(change, &self.definitions, &self.keys, now_ms, &mut edited);
        }
        for &id in &edited.rules {
            structure.set_rules(id, self.edits);
        }
        self.changed.clear();
        self.ledger.grow(self.structure.len());
        for order in &mut self.orders {
            order.grow(&self.structure);
            for (leaf, parent) in &edited.no_leaves {
                order.forget(*leaf, *parent);
            }
        }
        for &id in &edited.order {
            self.mark(id);
        }
        self.fair.outdated();
        Some(edited)
    }

    /// Builds the hierarchy anew. Amounts held survive a change of quotas, limits, weights,
    /// priorities or admission. They do not survive one of the queues that exist, of their parents
    /// or of the governed keys.
    pub(super) fn rebuild(&mut self, now_ms: UnixMs) {
        self.changed.clear();
        let same_keys = !Arc::make_mut(&mut self.keys).govern(&self.definitions);
        let built = Structure::build(&self.definitions, &self.structure, &self.keys, now_ms);
        let old = core::mem::replace(&mut self.structure, Arc::new(built));
        self.fair.outdated();
        if !(same_keys && self.structure.same_tree(&old)) {
            self.epoch += 1;
            self.ledger
                .reset(self.structure.len(), self.keys.interned());
            self.orders.truncate(1);
            for order in &mut self.orders {
                order.reset(&self.structure, self.keys.interned());
            }
        }
        self.mark_all();
    }

    /// Rises with every change of the rules by which the gangs of a queue fare.
    pub(crate) fn rules(&self, queue: QueueId) -> u64 {
        self.structure.node(queue).rules
    }
}

/// The changes one by one, and how often keys are named after them, if that is all that is needed.
fn simple<'a>(
    changed: &'a BTreeMap<Box<str>, Option<QueueFacts>>,
    definitions: &'a Definitions,
    structure: &Structure,
    keys: &GovernedKeys,
) -> Option<(Vec<Change<'a>>, BTreeMap<GovernedId, usize>)> {
    if changed.len() > EDITS_MAX {
        return None;
    }
    let changes = changed.iter().map(|(name, before)| Change {
        name,
        before: before.as_ref(),
        after: definitions.get(name),
    });
    let changes: Vec<Change<'_>> = changes.collect();
    let simple = Structure::are_independent(&changes)
        && changes
            .iter()
            .all(|change| structure.is_simple(change, definitions));
    let named = keys.renamed(&changes).filter(|_| simple)?;
    Some((changes, named))
}
