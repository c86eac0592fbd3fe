//! What must hold where HAMi's device plugin gives pods their cards.

use super::{AILING_SEEDS_FROM, Run};

/// The first seed of worlds in which HAMi shares cards.
pub const SHARING_SEEDS_FROM: u64 = 1 << 58;

pub(super) fn shares(seed: u64) -> bool {
    (SHARING_SEEDS_FROM..AILING_SEEDS_FROM).contains(&seed)
}

impl Run<'_> {
    /// Notes pods that started without a lock of their own, and locks that are left, unless lost
    /// answers, or processes that end, explain that.
    pub(super) fn judge_locks(&self, is_explained: bool, violations: &mut Vec<String>) {
        let misassigned = self.cluster.misassigned;
        if is_explained || self.starts > 1 {
            return;
        }
        if misassigned > 0 {
            violations.push(format!(
                "C1: {misassigned} pods started without locks of their own"
            ));
        }
        let has_leader = self.leader().is_some();
        let locked = self.cluster.nodes().filter(|node| node.card_lock.is_some());
        for node in locked.filter(|_| has_leader) {
            let (node, lock) = (&node.name, &node.card_lock);
            violations.push(format!("C2: the lock on {node} is left: {lock:?}"));
        }
    }
}
