//! Reports of pods, gangs and the whole cluster, for shells, metrics and tests.

use crate::facts::Amount;
use crate::gangs::counts::count;
use crate::ids::{ClassId, GangId, NodeId, PodId};
use crate::reason::Reason;
use crate::report::{GangReport, Inventory, PodReport, PodState, PreferenceScores, Verdicts};
use crate::state::ClusterState;
use crate::state::pod::{Pod, Stage};
use crate::state::relations::View as RelationView;
use crate::status::Phase;
use crate::tell::words::filter_of;
use crate::tell::{Teller, View};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl Teller {
    /// All pods of ours, in the order of namespace, name and UID.
    pub(crate) fn pod_reports(&self, view: View<'_>) -> Vec<PodReport> {
        let own = view.state.pods.iter().filter(|(_, pod)| pod.own.is_some());
        let mut reports: Vec<PodReport> = own.map(|(_, pod)| self.pod_report(view, pod)).collect();
        let key = |report: &PodReport| (report.namespace.clone(), report.name.clone(), report.uid);
        reports.sort_by_cached_key(key);
        reports
    }

    /// Where a pod of ours is, and if it waits, why.
    pub(super) fn pod_report(&self, view: View<'_>, pod: &Pod) -> PodReport {
        let state = view.state;
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
        let waits = (pod.stage == Stage::Waiting || pod.failure().is_some()) && !pod.deleting;
        let verdict = gang
            .filter(|_| waits)
            .and_then(|gang| self.why_it_waits(state, view.waiting, gang));
        PodReport {
            uid: pod.uid,
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            state: reached,
            node: pod.stage.node().map(|node| state.nodes[node].name.clone()),
            cards: pod.cards.to_vec().into(),
            binding,
            reason: verdict.as_ref().map(|verdict| verdict.reason),
            message: verdict.map_or_else(String::new, |verdict| verdict.message.clone()),
        }
    }

    /// All gangs, in the order of their names.
    pub(crate) fn gang_reports(&self, view: View<'_>) -> Vec<GangReport> {
        let gangs = &view.state.gangs;
        let mut ids = gangs.ids();
        ids.retain(|id| !gangs[*id].is_others());
        ids.sort_by_cached_key(|id| (gangs[*id].name.clone(), gangs[*id].key.namesake()));
        let reports = ids.into_iter().map(|id| self.gang_report(view, id));
        reports.collect()
    }

    /// How many gangs are in each phase, with the reason of the gangs that wait.
    pub(crate) fn gang_counts(&self, view: View<'_>) -> BTreeMap<(Phase, Option<Reason>), u32> {
        let mut counts = BTreeMap::new();
        let gangs = view.state.gangs.iter();
        for (id, _) in gangs.filter(|(_, gang)| !gang.is_others()) {
            let status = self.gang_status(view, id, &count(view.state, id, view.now_ms));
            *counts.entry((status.phase, status.reason)).or_insert(0) += 1;
        }
        counts
    }

    fn gang_report(&self, view: View<'_>, id: GangId) -> GangReport {
        let state = view.state;
        let gang = &state.gangs[id];
        let counts = count(state, id, view.now_ms);
        let mut nodes: Vec<Box<str>> = Vec::new();
        let (mut gpus_allocated, mut gpus_asked): (Amount, Amount) = (0, 0);
        for member in &gang.members {
            let pod = &state.pods[*member];
            let gpus = state.classes[pod.class].gpus;
            match pod.stage {
                Stage::Bound(node) | Stage::Assumed(node) => {
                    nodes.push(state.nodes[node].name.clone());
                    gpus_allocated = gpus_allocated.saturating_add(gpus);
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
            status: self.gang_status(view, id, &counts),
            created_ms: gang.spec.created_ms,
            bound_ms: view.progress[id].start.complete_ms(),
            gpus_allocated,
            gpus_asked,
            nodes,
        }
    }
}

/// Where every pod is, also pods of other schedulers, and what every node holds.
pub(crate) fn inventory(state: &ClusterState) -> Inventory {
    let pods = state.pods.iter().map(|(_, pod)| {
        let place = match pod.stage {
            Stage::Waiting => "without a node".to_owned(),
            Stage::Ended { .. } => "ended".to_owned(),
            Stage::Assumed(node) | Stage::Bound(node) => {
                format!("on {}", state.nodes[node].name)
            }
        };
        let key = format!("pod {}/{} {}", pod.namespace, pod.name, pod.uid);
        (key, place)
    });
    let nodes = state.nodes.iter().map(|(_, node)| {
        let mut amounts: Vec<String> = node
            .resources()
            // A resource that no node has any more may be remembered for a while.
            .filter(|(_, allocatable, used)| *allocatable > 0 || *used > 0)
            .map(|(resource, allocatable, used)| {
                let name = state.resource_names.name(resource);
                format!("{used} of {allocatable} {name} taken")
            })
            .collect();
        amounts.extend(node.cards.describe());
        amounts.sort();
        (format!("node {}", node.name), amounts.join(", "))
    });
    pods.chain(nodes).collect()
}

/// What keeps a pod off a node where there is a free volume for each of its claims, not for all.
const TOO_FEW_VOLUMES: &str = "had too few free volumes for all claims";

/// What keeps one more pod of the shape that a pod has off each node, from the table that decisions
/// are made with.
pub(crate) fn verdicts(state: &mut ClusterState, pod: PodId) -> Verdicts {
    let class = state.pods[pod].class;
    state.refresh(class);
    let view = state.view(class);
    let known = state.nodes.iter().filter(|(_, node)| node.known.is_some());
    let verdict = |id| {
        let why_not = why_not_on(state, class, view.as_ref(), id);
        // Tables look at a claim that several pods use apart from the other claims of the pod.
        why_not.or_else(|| (!state.has_volumes_for(&[(pod, id)])).then(|| TOO_FEW_VOLUMES.into()))
    };
    let nodes = known.map(|(id, node)| (node.name.clone(), verdict(id)));
    nodes.collect()
}

/// What a pod prefers of each node that fits one more pod of its class.
pub(crate) fn preferences(
    state: &mut ClusterState,
    pod: PodId,
) -> BTreeMap<Box<str>, PreferenceScores> {
    let class = state.pods[pod].class;
    state.refresh(class);
    let mut nodes: Vec<NodeId> = state.nodes.numbers().collect();
    nodes.retain(|node| state.fits_on(class, *node) > 0);
    let scores = state.preference_scores(pod, &nodes).into_iter();
    let names = nodes.iter().map(|node| state.nodes[*node].name.clone());
    names.zip(scores).collect()
}

/// What keeps one more pod of a class off a node that is known, in words that follow `3 node(s)`;
/// `None`: the pod may run there. The table of the class has been refreshed.
pub(crate) fn why_not_on(
    state: &ClusterState,
    class: ClassId,
    view: Option<&RelationView<'_>>,
    id: NodeId,
) -> Option<String> {
    let node = &state.nodes[id];
    let holds = node.multiplicity(&state.classes[class]) > 0;
    let by_pods = view.filter(|_| holds).map(|view| view.verdict(id));
    match state.static_verdict(class, id)? {
        Err(filter) => Some(filter.to_string()),
        Ok(()) if let Some(Err(filter)) = by_pods => Some(filter.to_string()),
        Ok(()) if state.fits_on(class, id) > 0 => None,
        Ok(()) => Some(lacking_on(state, class, id)),
    }
}

/// What a node has too little of for one more pod of a class, beside what is held, in words that
/// follow `3 node(s)`; `None`: nothing.
pub(crate) fn too_little_on(state: &ClusterState, class: ClassId, id: NodeId) -> Option<String> {
    let holds = state.nodes[id].multiplicity(&state.classes[class]) > 0;
    (!holds).then(|| lacking_on(state, class, id))
}

fn lacking_on(state: &ClusterState, class: ClassId, id: NodeId) -> String {
    filter_of(state, class, &state.nodes[id]).to_string()
}
