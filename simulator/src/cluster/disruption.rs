//! The disruption controller: it says in the status of each budget how many evictions are allowed.
//!
//! A pod is healthy if it runs and is not being deleted. Read in the source of Kubernetes 1.36:
//! `pkg/controller/disruption`.

use super::{Cluster, Task};
use crate::api_server::{Name, Request, Status};
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{DisruptionBudgetFacts, PodPhase, UnixMs};
use std::collections::BTreeMap;

/// What the controller knows beside the objects.
#[derive(Debug, Default)]
pub(super) struct Disruption {
    /// `spec.minAvailable` of each budget, which the facts leave out.
    minima: BTreeMap<Name, u32>,
    /// Whether a count is planned.
    is_planned: bool,
}

impl Cluster {
    /// Creates a budget that wants so many healthy pods, or changes the selector of the one that
    /// has its name.
    pub(crate) fn guard(
        &mut self,
        budget: DisruptionBudgetFacts,
        min_available: u32,
        now_ms: UnixMs,
    ) {
        let object = Object::DisruptionBudget(budget);
        let minima = &mut self.disruption.minima;
        minima.insert(Name::of(&object), min_available);
        self.put(object, now_ms);
    }

    /// Deletes the budgets that may select pods.
    pub(crate) fn unguard(&mut self, now_ms: UnixMs) {
        let selecting = self.api.budgets().filter(|(_, it)| it.selector.is_some());
        let names: Vec<Name> = selecting.map(|(it, _)| Name::of(&it.object)).collect();
        for name in names {
            self.delete(name, None, now_ms);
        }
    }

    /// Lets the controller count soon, if there are budgets.
    pub(super) fn plan_count(&mut self, random: &mut Random, now_ms: UnixMs) {
        if !self.disruption.is_planned && self.api.budgets().next().is_some() {
            self.disruption.is_planned = true;
            let at_ms = now_ms + random.between(10, 800);
            self.tasks.push((at_ms, Task::CountHealthy));
        }
    }

    /// Brings the status of every budget up to date.
    pub(super) fn count_healthy(&mut self, now_ms: UnixMs) {
        self.disruption.is_planned = false;
        let mut requests = Vec::new();
        for (stored, budget) in self.api.budgets() {
            let pods = self.api.pods().filter(|pod| budget.selects(pod));
            let healthy =
                pods.filter(|pod| pod.phase == PodPhase::Running && pod.deletion_ms.is_none());
            let healthy = u32::try_from(healthy.count()).unwrap_or(u32::MAX);
            let minimum = self.disruption.minima.get(&Name::of(&stored.object));
            let allowed = healthy.saturating_sub(minimum.copied().unwrap_or(0));
            let observed = stored.status == Status::DisruptionBudget { observed: true };
            if !observed || budget.allowed != allowed {
                requests.push(Request::ReplaceStatus {
                    object: Object::DisruptionBudget(DisruptionBudgetFacts {
                        allowed,
                        ..budget.clone()
                    }),
                    version: Some(stored.version),
                });
            }
        }
        for request in requests {
            self.api.handle(request, now_ms);
        }
    }
}
