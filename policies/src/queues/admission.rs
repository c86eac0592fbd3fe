//! Which namespaces may submit to which queue, and on what terms a queue's gangs run.

use super::tree::DEFAULT;
use super::{QueueId, QueueTree};
use crate::facts::{LabelSelector, Labels, PlacementChoice, label};
use crate::reason::Reason;
use alloc::{format, string::String};

/// Why a gang is not admitted to the queue that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `QueueNotFound` (also for a queue that is not Ready), `QueueNotLeaf`, `QueueClosed` or
    /// `NamespaceNotAllowed`.
    pub reason: Reason,
    /// A sentence for people, without the final point.
    pub message: String,
}

impl QueueTree {
    /// Whether what gangs of a queue ask for counts in the division: the queue is a leaf, and
    /// Ready.
    pub(crate) fn takes_part(&self, queue: QueueId) -> bool {
        let node = self.structure.node(queue);
        node.fault.is_none() && node.is_leaf()
    }

    /// Whether new gangs of a namespace, and surplus members of running gangs, may enter the queue
    /// of this name. Bound members and their replacements need no admission.
    ///
    /// The queue and all its ancestors must be open and select the namespace. `namespace_labels` is
    /// `None` while the namespace has not been seen; then every selector refuses it but one that
    /// asks for nothing.
    ///
    /// # Errors
    /// Which rule of which queue forbids it.
    pub(crate) fn admit(
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
                (Some(selector), Some(labels)) => selector.selects(|key| label(labels, key)),
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

    /// How nodes are chosen for the queue's gangs that do not say it themselves; `None` where
    /// neither the queue nor an ancestor says it.
    pub(crate) fn placement(&self, queue: QueueId) -> PlacementChoice {
        self.structure.node(queue).placement
    }
}
