//! What users see of the queues.

use super::shares::Fraction;
use super::{GovernedId, QueueId, QueueTree, View};
use crate::facts::Amount;
use crate::report::QueueReport;
use crate::status::{GovernedAmounts, QueueStatus};
use alloc::{boxed::Box, vec::Vec};

impl QueueTree {
    /// The status of one queue. How many gangs wait and run, and what nodes have, is not known
    /// here: there are 0, and there is no note.
    ///
    /// The dominant share is that of what the queue holds, without weights and rescaling. The
    /// trap: fair shares are those that were last worked out, see [`QueueTree::divide`].
    #[must_use]
    pub fn status(&self, queue: QueueId) -> QueueStatus {
        let view = self.view();
        let node = view.structure.node(queue);
        if !node.exists {
            return QueueStatus::default();
        }
        let allocated = |key: GovernedId| view.ledger.allocated.row(queue)[key.index()];
        let wanted = |key: GovernedId| {
            allocated(key).saturating_add(view.ledger.requested.row(queue)[key.index()])
        };
        let fair = |key: GovernedId| {
            let divided = node.terms_of(key).is_some();
            if divided { self.fair.of(queue, key) } else { 0 }
        };
        let dominant = node.terms.iter().map(|(key, _)| {
            let capacity = Some(view.ledger.capacity(*key)).filter(|&capacity| capacity > 0);
            Fraction::new(allocated(*key), capacity.unwrap_or(allocated(*key)))
        });
        let facts = self.definitions.get(&*node.name);
        QueueStatus {
            observed_generation: facts.map_or(0, |facts| facts.generation),
            fault: node.fault.clone(),
            note: None,
            ready_since_ms: node.ready_since_ms,
            allocated: by_name(view, allocated),
            requested: by_name(view, wanted),
            fair_share: by_name(view, fair),
            dominant_share_millionths: dominant.max().map_or(0, Fraction::millionths),
            past_use: self.past_use(queue),
            pending: 0,
            running: 0,
        }
    }

    /// All queues, parents before children, siblings by name. A queue on a cycle, or whose parent
    /// does not exist, stands where it is accounted, below the root, and names the parent that its
    /// definition names.
    #[must_use]
    pub fn reports(&mut self) -> Vec<QueueReport> {
        self.divide_all();
        let queues = self.ids();
        let report = |id: QueueId| {
            let name: Box<str> = self.name(id).into();
            let facts = self.definitions.get(&name);
            QueueReport {
                parent: facts.and_then(|facts| facts.parent.clone()),
                defined: self.structure.node(id).defined,
                status: self.status(id),
                name,
            }
        };
        queues.into_iter().map(report).collect()
    }
}

/// The amounts that are not 0, sorted by name.
fn by_name(view: View<'_>, amount_of: impl Fn(GovernedId) -> Amount) -> GovernedAmounts {
    let mut amounts: GovernedAmounts = view
        .ledger
        .all_keys()
        .map(|key| (view.keys.name(key).into(), amount_of(key)))
        .filter(|(_, amount)| *amount > 0)
        .collect();
    amounts.sort();
    amounts
}
