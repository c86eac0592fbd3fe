//! What must hold where HAMi's device plugin gives pods their cards.

use super::{AILING_SEEDS_FROM, Run};
use crate::faults::FaultKind;
use crate::objects::GPU;
use crate::rest;
use crate::shell::Shell;
use gpu_batch_policies::facts::CardLock;

/// The first seed of worlds in which HAMi shares cards.
pub const SHARING_SEEDS_FROM: u64 = 1 << 58;

pub(super) fn shares(seed: u64) -> bool {
    (SHARING_SEEDS_FROM..AILING_SEEDS_FROM).contains(&seed)
}

impl Run<'_> {
    /// Notes pods that started without a lock of their own, and locks that are left, unless lost
    /// answers, or processes that end, explain that.
    pub(super) fn judge_locks(&self, violations: &mut Vec<String>) {
        let misassigned = self.cluster.misassigned;
        if self.explains_rejections() || self.starts > 1 {
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

    /// I8: what queues are told to hold of cards is what their pods count for.
    pub(super) fn judge_books(&mut self, violations: &mut Vec<String>) {
        let held = rest::held(&self.cluster);
        let processes = self.shells.iter_mut().filter_map(Shell::process_mut);
        for process in processes.filter(|process| process.engine.is_leader()) {
            let reports = process.engine.queue_reports();
            for report in reports.into_iter().filter(|report| report.defined) {
                let told = report.status.allocated.iter();
                let told = told.filter(|(name, _)| **name == *GPU);
                let told: u64 = told.map(|(_, amount)| *amount).sum();
                let key = (report.name.clone(), GPU.into());
                let held = held.get(&key).copied().unwrap_or(0);
                if told != held {
                    let name = &report.name;
                    violations.push(format!(
                        "I8: {name} is told to hold {told} thousandths of GPUs, its pods {held}"
                    ));
                }
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
