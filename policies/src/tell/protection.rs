//! Which gangs are protected from other queues, worked out for statuses.
//!
//! One gang that starts or ends may change whether any gang of its queue is protected. So the gangs
//! of a queue are looked at together, at most as often as fair shares are divided, and only if one
//! of them, or what the quota guarantees, has changed.

use crate::bind::outbox::{Outbox, StatusKey};
use crate::gangs::protected::{follow_some, holdings};
use crate::queues::{Demand, QueueId};
use crate::state::ClusterState;
use crate::tell::Teller;
use alloc::collections::{BTreeMap, BTreeSet};

/// How many gangs one step looks at, at most, which takes about a millisecond; the gangs of one
/// queue are never parted, so that it may be more.
const GANGS_LOOKED_AT: usize = 200;

/// The queues whose gangs are to be looked at.
#[derive(Debug, Default)]
pub(super) struct Protection {
    /// Queues of which a gang has changed.
    changed: BTreeSet<QueueId>,
    /// Queues whose turn it is, since fair shares were last divided.
    due: BTreeSet<QueueId>,
    /// What the quotas of each queue guaranteed when its gangs were last looked at.
    guaranteed: BTreeMap<QueueId, Demand>,
}

impl Protection {
    /// Notes that a gang of a queue has changed: what it holds, or its place in the order.
    pub(super) fn note(&mut self, queue: Option<QueueId>) {
        self.changed.extend(queue);
    }

    /// Forgets a queue that is gone: its number may be given to another one.
    pub(super) fn forget(&mut self, queue: QueueId) {
        self.changed.remove(&queue);
        self.due.remove(&queue);
        self.guaranteed.remove(&queue);
    }

    /// Fair shares have been divided: all queues of which something has changed are due.
    pub(super) fn begin(&mut self, state: &ClusterState) {
        self.due.append(&mut self.changed);
        for queue in state.queues.ids() {
            let guarantees = state.queues.guarantees(queue);
            if self.guaranteed.get(&queue) != Some(&guarantees) {
                self.guaranteed.insert(queue, guarantees);
                self.due.insert(queue);
            }
        }
    }
}

impl Teller {
    /// Works out which gangs of the next queues are protected, and lets the status of each gang be
    /// looked at of which the answer has changed. Returns whether queues are left.
    pub(super) fn protect_some(&mut self, state: &mut ClusterState, outbox: &mut Outbox) -> bool {
        // The answer is for statuses, and none is sent while binds wait to be sent. So what a gang
        // holds is worked out once in a burst of starts, after its bind.
        if self.protection.due.is_empty() || outbox.actions_wait() {
            return false;
        }
        let mut looked_at = follow_some(state, GANGS_LOOKED_AT);
        let state = &*state;
        while looked_at < GANGS_LOOKED_AT
            && let Some(queue) = self.protection.due.pop_first()
        {
            for holding in holdings(state, queue) {
                let (gang, is_protected) = (holding.minimum.gang, holding.is_protected);
                looked_at += 1;
                let told = &mut self.told[gang];
                if told.protected == Some(is_protected) {
                    continue;
                }
                if state.queues.find(&state.gangs[gang].spec.queue) == Some(queue) {
                    told.protected = Some(is_protected);
                    outbox.status(StatusKey::Gang(gang));
                }
            }
        }
        !self.protection.due.is_empty()
    }
}
