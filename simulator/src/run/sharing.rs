//! What must hold where HAMi's device plugin gives pods their cards.

use super::{AILING_SEEDS_FROM, Run};
use crate::faults::FaultKind;
use gpu_batch_policies::facts::CardLock;

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
        for node in self.cluster.nodes().filter(|_| has_leader) {
            let left = node.card_lock.as_ref();
            if let Some(lock) = left.filter(|lock| self.keeps_others_waiting(lock)) {
                let node = &node.name;
                violations.push(format!("C2: the lock on {node} is left: {lock:?}"));
            }
        }
    }

    /// Whether a lock names a pod that is still to be served. One of a pod that has ended or is
    /// gone is replaced at once: the pod was evicted before the plugin served it. One of a pod that
    /// was served may have been written once more by a request that came late or twice.
    fn keeps_others_waiting(&self, lock: &CardLock) -> bool {
        let Some((namespace, name)) = &lock.holder else {
            return true;
        };
        let late = [FaultKind::RequestRepeated, FaultKind::RequestLate];
        let mut struck = late.iter().map(|kind| self.faults.struck(*kind));
        let may_come_late = struck.any(|struck| struck > 0);
        let mut pods = self.cluster.api.pods();
        let pod = pods.find(|pod| pod.namespace == *namespace && pod.name == *name);
        pod.is_some_and(|pod| match pod.started_ms {
            Some(_) => !may_come_late && !pod.phase.ended(),
            None => !pod.phase.ended(),
        })
    }
}
