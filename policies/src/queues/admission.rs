//! Which namespaces may submit to which queue, and on what terms a queue's gangs run.

use super::tree::DEFAULT;
use super::{QueueId, QueueTree};
use crate::facts::{LabelSelector, Labels, MatchOperator, PlacementChoice, SelectorRequirement};
use crate::reason::Reason;
use alloc::{format, string::String};

/// Why a gang is not admitted to the queue that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `QueueNotFound`, `QueueNotLeaf`, `QueueClosed` or `NamespaceNotAllowed`.
    pub reason: Reason,
    /// A sentence for people, without the final point.
    pub message: String,
}

impl QueueTree {
    /// Whether new gangs of a namespace (and surplus members of running ones) may enter the queue
    /// of this name. Bound work and its replacements need no admission.
    ///
    /// Closing and selectors of all ancestors hold too. Labels are `None` while the namespace has
    /// not been seen; a selector that asks for any then refuses it.
    ///
    /// # Errors
    /// Says which rule of which queue forbids it.
    pub fn admit(
        &self,
        name: &str,
        namespace: &str,
        namespace_labels: Option<&Labels>,
    ) -> Result<QueueId, Refusal> {
        let refuse = |reason, message| Err(Refusal { reason, message });
        let Some(queue) = self.find(name) else {
            let message = format!("the queue {name} does not exist");
            return refuse(Reason::QueueNotFound, message);
        };
        let node = self.structure.node(queue);
        if let Some((fault, message)) = &node.fault {
            let message = format!(
                "the queue {name} is not Ready: {}: {message}",
                fault.as_str()
            );
            return refuse(Reason::QueueNotFound, message);
        }
        if !node.is_leaf() {
            let message = format!("the queue {name} has children; only leaves take gangs");
            return refuse(Reason::QueueNotLeaf, message);
        }
        for id in self.structure.path(queue) {
            let ancestor = &*self.structure.node(id).name;
            // The queue `default` that nobody has defined has no rules.
            let Some(facts) = self.definitions.get(ancestor) else {
                debug_assert_eq!(ancestor, DEFAULT);
                continue;
            };
            if facts.closed {
                let message = format!("the queue {ancestor} is closed");
                return refuse(Reason::QueueClosed, message);
            }
            let allowed = match (&facts.namespace_selector, namespace_labels) {
                (None, _) => true,
                (Some(selector), Some(labels)) => selects(selector, labels),
                (Some(selector), None) => *selector == LabelSelector::default(),
            };
            if !allowed {
                let message = format!(
                    "the queue {ancestor} does not take gangs of the namespace {namespace}"
                );
                return refuse(Reason::NamespaceNotAllowed, message);
            }
        }
        Ok(queue)
    }

    /// How nodes are chosen for the queue's gangs, where they do not say; `None` where neither the
    /// queue nor an ancestor says.
    #[must_use]
    pub fn placement(&self, queue: QueueId) -> PlacementChoice {
        self.structure.node(queue).placement
    }

    /// How long a gang of the queue runs before a higher-priority gang of the queue may evict it.
    #[must_use]
    pub fn preempt_min_runtime_ms(&self, queue: QueueId) -> u64 {
        self.structure.node(queue).preempt_min_runtime_ms
    }

    /// How long a gang of the queue runs before another queue may reclaim it.
    #[must_use]
    pub fn reclaim_min_runtime_ms(&self, queue: QueueId) -> u64 {
        self.structure.node(queue).reclaim_min_runtime_ms
    }
}

/// Whether the selector holds for the labels (the semantics of Kubernetes' `LabelSelector`).
fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let value_of = |key: &str| {
        let at = labels
            .binary_search_by(|(known, _)| (**known).cmp(key))
            .ok()?;
        Some(&labels[at].1)
    };
    let holds = |requirement: &SelectorRequirement| {
        let value = value_of(&requirement.key);
        let listed = value.is_some_and(|value| requirement.values.contains(value));
        match requirement.operator {
            MatchOperator::In => listed,
            MatchOperator::NotIn => !listed,
            MatchOperator::Exists => value.is_some(),
            MatchOperator::DoesNotExist => value.is_none(),
            // Label selectors have no such operators.
            MatchOperator::Gt | MatchOperator::Lt => false,
        }
    };
    let mut equal = selector.match_labels.iter();
    equal.all(|(key, value)| value_of(key) == Some(value))
        && selector.match_expressions.iter().all(holds)
}
