//! What users see of the queues.

use super::shares::Fraction;
use super::{GovernedId, QueueId, QueueTree, View};
use crate::facts::Amount;
use crate::status::{GovernedAmounts, QueueStatus};

impl QueueTree {
    /// The status of one queue, amounts in base units. `pending`, `running` and `note` are empty:
    /// the tree knows neither how many gangs wait and run nor what nodes have.
    ///
    /// The dominant share is that of what the queue holds, without weights and rescaling.
    ///
    /// The trap: fair shares are those that were last worked out, see [`QueueTree::divide`].
    pub(crate) fn status(&self, queue: QueueId) -> QueueStatus {
        let view = self.view();
        let node = view.structure.node(queue);
        if !node.exists {
            return QueueStatus::default();
        }
        let allocated = |key: GovernedId| view.ledger.held_now(queue, key);
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
            runtimes: None,
            pending: 0,
            running: 0,
        }
    }
}

/// The amounts that are not 0, sorted by name of the key.
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
