//! I10: no gang goes on waiting for a pod that was to be gone long ago.

use super::Run;
use gpu_batch_policies::facts::PodFacts;
use gpu_batch_policies::reason::Reason;

/// How long after its time a pod may be waited for: a minute, and as long as a step may be late.
const WAITED_FOR_MS: u64 = 61_000;

impl Run<'_> {
    /// Judges for what gangs wait once nothing fails any more: then the leader knows at once what
    /// is being deleted. The minute has passed by its clock and by the world's: it does not look
    /// before its next step, however far its clock has jumped.
    pub(super) fn judge_stuck(&self, violations: &mut Vec<String>) {
        let Some(leader) = self.leader().filter(|_| self.healed) else {
            return;
        };
        let now_ms = leader.clock_ms(self.now_ms).min(self.now_ms);
        let is_stuck = |facts: &&PodFacts| {
            let gone_ms = facts.deletion_ms.filter(|_| facts.node.is_some());
            gone_ms.is_some_and(|gone_ms| gone_ms + WAITED_FOR_MS < now_ms)
        };
        let stuck: Vec<&PodFacts> = self.cluster.api.pods().filter(is_stuck).collect();
        if stuck.is_empty() {
            return;
        }
        let mut reports = leader.engine.gang_reports();
        reports.retain(|report| report.status.reason == Some(Reason::WaitingForEviction));
        for report in reports {
            for facts in &stuck {
                let alone = format!("for 1 pod to leave: {}/{}", facts.namespace, facts.name);
                if report.status.message.contains(&alone) {
                    let (gang, pod) = (&report.name, &facts.name);
                    violations.push(format!(
                        "I10: gang {gang} waits for pod {pod}, which is stuck"
                    ));
                }
            }
        }
    }
}
