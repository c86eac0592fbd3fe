//! What a PodDisruptionBudget says.

use super::{LabelSelector, PodFacts, Problem, Uid};
use alloc::{boxed::Box, vec::Vec};

/// A PodDisruptionBudget of `policy/v1` as it was last seen: how many running pods may be evicted.
///
/// The API server asks it before it evicts a pod that runs and is not being deleted. It refuses a
/// pod that two budgets select. Which pods are ready decides nothing here: the API server may evict
/// a pod that is not ready although nothing is allowed (`spec.unhealthyPodEvictionPolicy`).
///
/// Source: `pkg/registry/core/pod/storage/eviction.go` of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudgetFacts {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.namespace`: the budget selects pods of this namespace alone.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.selector`; `None`: the budget selects no pod. The empty selector selects all pods of
    /// the namespace.
    pub selector: Option<LabelSelector>,
    /// How many evictions the API server still allows: `status.disruptionsAllowed`. 0 while the
    /// status is of an older spec (`status.observedGeneration` is below `metadata.generation`),
    /// because evictions are then refused.
    pub allowed: u32,
    /// What could not be read. A budget whose selector could not be read selects no pod.
    pub problems: Vec<Problem>,
}

impl DisruptionBudgetFacts {
    /// Whether the budget selects a pod.
    #[must_use]
    pub fn selects(&self, pod: &PodFacts) -> bool {
        let value_of = |key: &str| pod.labels.value(key, &pod.name, pod.owner.as_ref());
        let selector = self.selector.as_ref();
        self.namespace == pod.namespace && selector.is_some_and(|it| it.selects(value_of))
    }
}
