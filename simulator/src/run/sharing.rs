//! What must hold where HAMi's device plugin gives pods their cards.

use super::{AILING_SEEDS_FROM, Run};

/// The first seed of worlds in which HAMi shares cards.
pub const SHARING_SEEDS_FROM: u64 = 1 << 58;

pub(super) fn shares(seed: u64) -> bool {
    (SHARING_SEEDS_FROM..AILING_SEEDS_FROM).contains(&seed)
}

impl Run<'_> {
    /// Notes pods that started under locks of others, unless lost answers explain that, and locks
    /// that are left at the end of a world in which nothing fails.
    pub(super) fn judge_locks(
        &self,
        (is_calm, is_explained): (bool, bool),
        violations: &mut Vec<String>,
    ) {
        let misassigned = self.cluster.misassigned;
        if misassigned > 0 && !is_explained && self.starts == 1 {
            violations.push(format!(
                "C1: {misassigned} pods started under locks of others"
            ));
        }
        let has_leader = self.leader().is_some();
        let locked = self.cluster.nodes().filter(|node| node.card_lock.is_some());
        for node in locked.filter(|_| is_calm && has_leader) {
            let (node, lock) = (&node.name, &node.card_lock);
            violations.push(format!("C2: the lock on {node} is left: {lock:?}"));
        }
    }
}
