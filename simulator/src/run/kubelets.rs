//! What must hold of the pods that kubelets reject.

use super::{Run, SHARING_SEEDS_FROM};
use crate::faults::FaultKind;

/// The first seed of worlds in which kubelets align pods to NUMA nodes.
pub const ALIGNED_SEEDS_FROM: u64 = 1 << 57;

pub(super) fn aligns(seed: u64) -> bool {
    (ALIGNED_SEEDS_FROM..SHARING_SEEDS_FROM).contains(&seed)
}

impl Run<'_> {
    /// Whether kubelets may reject pods for want of room without a mistake of the scheduler.
    ///
    /// A bind may be lost, not be found when the API server is asked, be sent again and then
    /// refused. The first request may still arrive after the room was given back, which was right,
    /// because a gang must not be left in part.
    pub(super) fn explains_rejections(&self) -> bool {
        self.striking.explains_overcommit || self.faults.struck(FaultKind::WebhookRefuses) > 0
    }

    /// I2: no kubelet rejects a pod for want of room, or because it could not have aligned the pod
    /// beside the others, whatever these had got.
    pub(super) fn judge_rejections(&self, violations: &mut Vec<String>) {
        if self.explains_rejections() || self.starts > 1 {
            return;
        }
        let rejected = self.cluster.rejected;
        if rejected > 0 {
            violations.push(format!("I2: kubelets had no room for {rejected} pods"));
        }
        let misaligned = self.cluster.misaligned;
        if misaligned > 0 {
            violations.push(format!("I2: kubelets could not align {misaligned} pods"));
        }
    }
}
