//! Nodes that say that their GPUs have failed.

use super::Run;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{ConditionStatus, NodeCondition};

impl Run<'_> {
    /// Lets the node with this number in its name, if it is there, show a condition, or not any
    /// more.
    pub(super) fn ail(&mut self, number: u64, kind: &str, shows: bool) {
        let Some(mut facts) = self.cluster.node(&format!("n{number}")).cloned() else {
            return;
        };
        facts
            .conditions
            .retain(|condition| &*condition.kind != kind);
        if shows {
            facts.conditions.push(NodeCondition {
                kind: kind.into(),
                status: ConditionStatus::True,
                since_ms: Some(self.now_ms),
            });
        }
        self.cluster.put_status(Object::Node(facts), self.now_ms);
    }
}
