//! What of a quota other queues cannot take back.

use super::{Demand, GovernedId, QueueId, QueueTree};
use crate::facts::Amount;

impl QueueTree {
    /// How much of a key the quota of a queue guarantees, in base units: the quota, or what the
    /// division of the cluster leaves of it where the quotas of the queue and its siblings, as far
    /// as they are wanted, promise more of the key than there is. Where they do not, the quota
    /// holds, although the fair share may be less: something else that the queue asks for is gone.
    ///
    /// The fair share in one GPU model counts only members that can run on no other model. So of
    /// the quotas in one model that promise too much, each guarantees its part in proportion.
    ///
    /// The trap: fair shares are those that were last worked out, see [`QueueTree::divide`].
    pub(crate) fn guaranteed(&self, queue: QueueId, key: GovernedId) -> Amount {
        let node = self.structure.node(queue);
        let Some(terms) = node.terms_of(key) else {
            return 0;
        };
        let parent = self.structure.parent_id(queue);
        if !self.is_model(key) {
            let fair = self.fair.last_of(queue, key);
            let fair = fair.filter(|_| self.fair.is_overcommitted(parent, key));
            return fair.map_or(terms.quota, |fair| terms.quota.min(fair));
        }
        let parent = self.structure.node(parent);
        let siblings = parent.children.iter();
        let quotas = siblings.filter_map(|id| self.structure.node(*id).terms_of(key));
        let promised: u128 = quotas.map(|terms| u128::from(terms.quota)).sum();
        let there_is = u128::from(terms.reach.min(self.ledger.capacity(key)));
        if promised <= there_is {
            return terms.quota;
        }
        let part = u128::from(terms.quota) * there_is / promised;
        let part = Amount::try_from(part).unwrap_or(terms.quota);
        self.ledger.grains.cut(key, part)
    }

    /// The sum of the quotas of a queue's children in a key that is divided among them, as far as
    /// they are wanted.
    pub(super) fn promised_below(&self, parent: QueueId, key: GovernedId) -> u128 {
        let children = self.structure.node(parent).children.iter();
        let promised = children.filter_map(|id| {
            let terms = self.structure.node(*id).terms_of(key)?;
            let waits = self.ledger.requested.row(*id).get(key.index());
            let wanted = self.allocated_of(*id, key).saturating_add(waits.copied()?);
            Some(u128::from(terms.quota.min(wanted)))
        });
        promised.sum()
    }

    /// How much of a key there is for the children of a queue for certain: what the cluster has, or
    /// what quotas guarantee to the queue, and no more than limits let it have.
    pub(super) fn there_is(&self, parent: QueueId, key: GovernedId) -> Amount {
        let path = self.structure.path(parent);
        let mut divided = path.filter(|id| self.structure.node(*id).terms_of(key).is_some());
        let guaranteed = divided.next().map(|id| self.guaranteed(id, key));
        let there_is = guaranteed.unwrap_or_else(|| self.ledger.capacity(key));
        there_is.min(self.structure.reach(parent, key))
    }

    /// What the quotas of a queue guarantee, by key, without zeros.
    pub(crate) fn guarantees(&self, queue: QueueId) -> Demand {
        let terms = self.structure.node(queue).terms.iter();
        let all = terms.map(|(key, _)| (*key, self.guaranteed(queue, *key)));
        all.filter(|(_, amount)| *amount > 0).collect()
    }

    /// Keeps, of what is held in a queue, the keys in which other queues may have a claim to it:
    /// those that are divided among the queue and its siblings; of GPUs the keys of their models,
    /// as far as those are divided, and the plain one for all others.
    pub(crate) fn keep_deciding(&self, queue: QueueId, holds: &mut Demand) {
        let node = self.structure.node(queue);
        holds.retain(|(key, _)| node.terms_of(*key).is_some());
        for place in 0..holds.len() {
            let (key, amount) = holds[place];
            let Some(plain) = self.keys.plain(key) else {
                continue;
            };
            if let Some((_, left)) = holds.iter_mut().find(|(known, _)| *known == plain) {
                *left = left.saturating_sub(amount);
            }
        }
        holds.retain(|(_, amount)| *amount > 0);
    }
}
