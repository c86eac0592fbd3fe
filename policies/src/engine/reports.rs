//! Views for `plan`, `queues`, metrics and tests.

use crate::engine::Engine;
use crate::facts::{Amount, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId};
use crate::plan::waiting::Waiting;
use crate::queues::QueueId;
use crate::report::{Fragmentation, GangReport, Inventory, PodReport, PodState, QueueReport};
use crate::state::ClusterState;
use crate::state::pod::{Pod, Stage};
use crate::status::{Phase, QueueStatus};
use crate::tell::told::Told;
use crate::tell::why::failure;
use crate::tell::{gang, why};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl Engine {
    /// All pods of ours, in the order of namespace, name and UID.
    #[must_use]
    pub fn pod_reports(&self) -> Vec<PodReport> {
        let own = self.state.pods.iter().filter(|(_, pod)| pod.own.is_some());
        let mut reports: Vec<PodReport> = own
            .map(|(_, pod)| pod_report(&self.state, &self.planner.waiting, pod))
            .collect();
        let key = |report: &PodReport| (report.namespace.clone(), report.name.clone(), report.uid);
        reports.sort_by_cached_key(key);
        reports
    }

    /// All gangs, in the order of their names.
    #[must_use]
    pub fn gang_reports(&self) -> Vec<GangReport> {
        let now_ms = self.now_ms;
        let mut ids = self.state.gangs.ids();
        ids.retain(|id| !self.state.gangs[*id].is_others());
        ids.sort_by_cached_key(|id| {
            let gang = &self.state.gangs[*id];
            (gang.name.clone(), gang.key.namesake())
        });
        let reports = ids.into_iter().map(|id| {
            gang_report(
                &self.state,
                &self.told,
                &self.planner.waiting,
                &self.progress,
                id,
                now_ms,
            )
        });
        reports.collect()
    }

    /// All queues, parents before children, siblings by name.
    #[must_use]
    pub fn queue_reports(&mut self) -> Vec<QueueReport> {
        self.state.queues.divide_all();
        let ids = self.state.queues.ids();
        ids.into_iter()
            .map(|id| QueueReport {
                name: self.state.queues.name(id).into(),
                parent: self.state.queues.parent_name(id).map(Into::into),
                defined: self.state.queues.object(id).is_some(),
                status: self.queue_status(id),
            })
            .collect()
    }

    /// The status of a queue, with its gangs and with what no node has of its entries.
    pub(crate) fn queue_status(&self, queue: QueueId) -> QueueStatus {
        let mut status = self.state.queues.status(queue);
        let (pending, running) = self.gangs_by_queue.get(&queue).copied().unwrap_or_default();
        (status.pending, status.running) = (pending, running);
        if status.fault.is_none() {
            let missing = self.state.offered.missing(self.state.queues.entries(queue));
            status.note = missing.map(Into::into);
        }
        status
    }

    /// How many gangs are in each phase, with the reason of those that wait.
    #[must_use]
    pub fn gang_counts(&self) -> BTreeMap<(Phase, Option<crate::reason::Reason>), u32> {
        let mut counts = BTreeMap::new();
        for (id, _) in self
            .state
            .gangs
            .iter()
            .filter(|(_, gang)| !gang.is_others())
        {
            let members = count(&self.state, id, 0);
            let status = gang::gang_status(
                &self.state,
                &self.told,
                &self.planner.waiting,
                &self.progress,
                id,
                &members,
                0,
            );
            *counts.entry((status.phase, status.reason)).or_insert(0) += 1;
        }
        counts
    }

    /// Where every pod is, those of other schedulers included, and what every node holds.
    ///
    /// Looks at the whole state, as [`Engine::audit`] does.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        let pods = self.state.pods.iter().map(|(_, pod)| {
            let place = match pod.stage {
                Stage::Waiting => "without a node".to_owned(),
                Stage::Ended { .. } => "ended".to_owned(),
                Stage::Assumed(node) | Stage::Bound(node) => {
                    format!("on {}", self.state.nodes[node].name)
                }
            };
            let key = format!("pod {}/{} {}", pod.namespace, pod.name, pod.uid);
            (key, place)
        });
        let nodes = self.state.nodes.iter().map(|(_, node)| {
            let mut amounts: Vec<String> = node
                .resources()
                // A resource that no node has any more may be remembered for a while.
                .filter(|(_, allocatable, used)| *allocatable > 0 || *used > 0)
                .map(|(resource, allocatable, used)| {
                    let name = self.state.resource_names.name(resource);
                    format!("{used} of {allocatable} {name} taken")
                })
                .collect();
            amounts.extend(node.cards.describe());
            amounts.sort();
            (format!("node {}", node.name), amounts.join(", "))
        });
        pods.chain(nodes).collect()
    }

    /// How much of the cluster's free GPUs is of no use for the target workload: for the one of the
    /// settings, or else for the pods of ours that were seen since the engine began. That one is
    /// worked out again each time when they have become more by an eighth; when many are counted,
    /// every count is halved.
    ///
    /// Looks at the nodes that have changed since the last call.
    #[must_use]
    pub fn fragmentation(&mut self) -> Fragmentation {
        self.state.fragmentation()
    }

    /// How many requests are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.binder.outbox.in_flight()
    }
}

pub(crate) fn pod_report(
    state: &ClusterState,
    waiting: &ById<GangId, Waiting>,
    pod: &Pod,
) -> PodReport {
    let gated = pod.own.as_ref().is_some_and(|own| !own.gates.is_empty());
    let reached = match pod.stage {
        Stage::Ended { succeeded: true } => PodState::Succeeded,
        Stage::Ended { succeeded: false } => PodState::Failed,
        _ if pod.deleting => PodState::Leaving,
        Stage::Waiting if gated => PodState::Gated,
        Stage::Waiting => PodState::Pending,
        Stage::Bound(_) if pod.running => PodState::Running,
        Stage::Bound(_) | Stage::Assumed(_) => PodState::Bound,
    };
    let gang = pod.own.as_ref().and_then(|own| own.gang);
    let binding = matches!(pod.stage, Stage::Assumed(_));
    let waits = (pod.stage == Stage::Waiting || failure(pod).is_some()) && !pod.deleting;
    let verdict = gang
        .filter(|_| waits)
        .and_then(|gang| why::why_it_waits(state, waiting, gang));
    PodReport {
        uid: pod.uid,
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        state: reached,
        node: pod.stage.node().map(|node| state.nodes[node].name.clone()),
        binding,
        reason: verdict.as_ref().map(|verdict| verdict.reason),
        message: verdict.map_or_else(String::new, |verdict| verdict.message.clone()),
    }
}

fn gang_report(
    state: &ClusterState,
    told: &ById<GangId, Told>,
    waiting: &ById<GangId, Waiting>,
    progress: &ById<GangId, Progress>,
    id: GangId,
    now_ms: UnixMs,
) -> GangReport {
    let gang = &state.gangs[id];
    let counts = count(state, id, now_ms);
    let mut nodes: Vec<Box<str>> = Vec::new();
    let (mut gpus_held, mut gpus_asked): (Amount, Amount) = (0, 0);
    for member in &gang.members {
        let pod = &state.pods[*member];
        let gpus = state.classes[pod.class].gpus;
        match pod.stage {
            Stage::Bound(node) | Stage::Assumed(node) => {
                nodes.push(state.nodes[node].name.clone());
                gpus_held = gpus_held.saturating_add(gpus);
            }
            Stage::Waiting => gpus_asked = gpus_asked.saturating_add(gpus),
            Stage::Ended { .. } => {}
        }
    }
    nodes.sort();
    nodes.dedup();
    GangReport {
        name: (&*state.name_of(gang)).into(),
        queue: (&*gang.spec.queue).into(),
        explicit: gang.is_explicit(),
        status: gang::gang_status(state, told, waiting, progress, id, &counts, now_ms),
        created_ms: gang.spec.created_ms,
        bound_ms: progress[id].start.complete_ms(),
        gpus_held,
        gpus_asked,
        nodes,
    }
}
