//! What `plan` prints.

use crate::kube::api::Members;
use crate::kube::convert::CardContainers;
use crate::kube::format::seconds;
use crate::views::queues::{self, QueueView};
use crate::views::table::{self, Entry, Screen, Tone};
use gpu_batch_policies::command::Evict;
use gpu_batch_policies::facts::{CardPart, QueueFacts, Uid};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::{GangReport, PodReport, PodState, QueueReport};
use gpu_batch_policies::status::Phase;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The state during the last cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// How many cycles there were.
    pub cycles: u32,
    /// The scheduler's pods by `namespace/name`.
    pub pods: BTreeMap<String, PodView>,
    /// The evictions of all cycles, in the order in which they were sent.
    pub evictions: Vec<EvictionView>,
    /// Gangs by `namespace/name`; those without a PodGroup as `NS/job/NAME` or `NS/pod/NAME`.
    pub pod_groups: BTreeMap<String, GroupView>,
    /// Queues by name.
    pub queues: BTreeMap<String, QueueView>,
}

/// One pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PodView {
    /// Running, Bound, Evicted, Pending, Gated, Leaving, Succeeded or Failed.
    pub state: &'static str,
    /// The pod's node; of an evicted or leaving pod, the node that it leaves.
    pub node: Option<String>,
    /// The pod's cards, where the scheduler chooses them; for plain `nvidia.com/gpu` the kubelet
    /// does.
    pub devices: Vec<DeviceView>,
    /// Why the pod waits.
    pub reason: Option<&'static str>,
    /// The reason as a sentence.
    pub message: String,
}

/// What a pod gets of one card: a part of it, or an instance of MIG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DeviceView {
    /// The container that gets it; `None`: not known.
    pub container: Option<Box<str>>,
    /// The place of the container among those of the pod, init containers first; `None`: not known.
    #[serde(skip)]
    position: Option<usize>,
    /// What the device plugin calls the card.
    pub id: Box<str>,
    /// The memory, in MiB.
    #[serde(rename = "memoryMi")]
    pub memory_mib: u64,
    /// The computing power, in percent of a card; 0: what others leave.
    pub cores: u32,
    /// The profile of the instance of MIG, and its first memory slice; absent: it is none.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceView>,
}

/// An instance of MIG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InstanceView {
    /// The name of its profile.
    pub profile: Box<str>,
    /// The first of its memory slices.
    pub start: u8,
}

/// One eviction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EvictionView {
    /// The cycle in which it was sent, from 1.
    pub cycle: u32,
    /// The pod as `namespace/name`.
    pub pod: String,
    /// Reclaim, Preempt, Consolidate, Stale, Unwind or CardFailed.
    pub cause: &'static str,
    /// The gang that gets the room; `None` where the cause is a rule about the pod's own gang.
    #[serde(rename = "for")]
    pub beneficiary: Option<String>,
    /// Optimal: it is proved that no other set of victims costs less; else Feasible. `None` where
    /// the eviction is for nobody.
    pub verdict: Option<&'static str>,
}

/// One gang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct GroupView {
    /// Pending, Binding, Running, Succeeded or Failed.
    pub phase: &'static str,
    /// Why the gang waits.
    pub reason: Option<&'static str>,
    /// The reason as a sentence.
    pub message: String,
    /// When the gang is promised to start; absent: it was promised nothing.
    #[serde(rename = "estimatedStart", skip_serializing_if = "Option::is_none")]
    pub estimated_start: Option<String>,
    /// The queue that the gang names, existing or not.
    pub queue: String,
    /// How many members the gang has, by what has become of them.
    pub members: Members,
    /// The nodes of the bound members, each once.
    pub nodes: Vec<String>,
}

impl Plan {
    /// The plan that the engine's reports make. With the pods comes what the containers of those
    /// got that were bound to cards. `evicted`: pods that were evicted in the last cycle;
    /// `evictions`: those of all cycles; `facts`: the Queue objects.
    pub(crate) fn of(
        cycles: u32,
        (pods, entries): (Vec<PodReport>, &BTreeMap<Uid, Vec<Vec<CardPart>>>),
        gangs: Vec<GangReport>,
        queues: Vec<QueueReport>,
        evicted: &BTreeSet<Uid>,
        evictions: Vec<EvictionView>,
        facts: &BTreeMap<Box<str>, QueueFacts>,
    ) -> Self {
        Self {
            cycles,
            pods: pods
                .into_iter()
                .map(|pod| {
                    let name = format!("{}/{}", pod.namespace, pod.name);
                    (name, PodView::of(&pod, entries.get(&pod.uid), evicted))
                })
                .collect(),
            evictions,
            pod_groups: gangs
                .into_iter()
                .map(|gang| (gang.name.clone(), GroupView::of(gang)))
                .collect(),
            queues: queues
                .into_iter()
                .map(|queue| {
                    let view = QueueView::of_report(&queue, facts.get(&queue.name));
                    (queue.name.into(), view)
                })
                .collect(),
        }
    }

    /// Names the containers that get cards, by `namespace/name` of their pods.
    pub(crate) fn name_containers(&mut self, containers: &BTreeMap<String, CardContainers>) {
        for (pod, view) in &mut self.pods {
            let Some(containers) = containers.get(pod) else {
                continue;
            };
            let is_known = view.devices.iter().all(|device| device.position.is_some());
            if !is_known && !containers.held.is_empty() {
                view.devices = DeviceView::of_entries(&containers.held);
            }
            for device in &mut view.devices {
                let position = device.position.or(containers.only);
                let name = position.and_then(|position| containers.names.get(position));
                device.container = name.cloned();
            }
        }
    }
}

impl PodView {
    fn of(pod: &PodReport, entries: Option<&Vec<Vec<CardPart>>>, evicted: &BTreeSet<Uid>) -> Self {
        let devices = match entries {
            _ if pod.cards.is_empty() => Vec::new(),
            Some(entries) => DeviceView::of_entries(entries),
            None => pod
                .cards
                .iter()
                .map(|part| DeviceView::of(part, None))
                .collect(),
        };
        let state = match pod.state {
            _ if evicted.contains(&pod.uid) => "Evicted",
            PodState::Pending => "Pending",
            PodState::Gated => "Gated",
            PodState::Bound => "Bound",
            PodState::Running => "Running",
            PodState::Leaving => "Leaving",
            PodState::Succeeded => "Succeeded",
            PodState::Failed => "Failed",
        };
        Self {
            state,
            node: pod.node.as_deref().map(str::to_owned),
            devices,
            reason: pod.reason.map(Reason::as_str),
            message: pod.message.clone(),
        }
    }

    fn tone(&self) -> Tone {
        match self.state {
            "Running" | "Bound" | "Succeeded" => Tone::Good,
            "Failed" | "Evicted" => Tone::Bad,
            _ => Tone::Waiting,
        }
    }
}

impl DeviceView {
    /// What each container gets, init containers first.
    fn of_entries(entries: &[Vec<CardPart>]) -> Vec<Self> {
        let entries = entries.iter().enumerate();
        let devices = entries.flat_map(|(position, parts)| {
            let parts = parts.iter();
            parts.map(move |part| Self::of(part, Some(position)))
        });
        devices.collect()
    }

    fn of(part: &CardPart, position: Option<usize>) -> Self {
        // Where it is not known which container has what, a part may consist of several instances.
        let instance = match &*part.instances {
            [instance] => Some(InstanceView {
                profile: instance.profile.clone(),
                start: instance.placement.start,
            }),
            _ => None,
        };
        Self {
            container: None,
            position,
            id: part.card.clone(),
            memory_mib: part.memory_mib,
            cores: part.thousandths / 10,
            instance,
        }
    }
}

impl EvictionView {
    /// The view of an eviction that is sent in a cycle.
    pub(crate) fn of(cycle: u32, evict: Evict) -> Self {
        let Evict {
            pod,
            cause,
            beneficiary,
        } = evict;
        let verdict = beneficiary.as_ref().map(|of| match of.is_optimal {
            true => "Optimal",
            false => "Feasible",
        });
        Self {
            cycle,
            pod: format!("{}/{}", pod.namespace, pod.name),
            cause: cause.as_str(),
            beneficiary: beneficiary.map(|of| of.gang.into()),
            verdict,
        }
    }
}

impl GroupView {
    fn of(gang: GangReport) -> Self {
        let status = gang.status;
        Self {
            phase: status.phase.as_str(),
            reason: status.reason.map(Reason::as_str),
            message: status.message.into(),
            estimated_start: status.estimated_start_ms.map(seconds),
            queue: gang.queue.into(),
            members: status.members.into(),
            nodes: gang.nodes.into_iter().map(String::from).collect(),
        }
    }

    /// The message, if any member waits.
    fn told(&self) -> &str {
        let members = &self.members;
        let settled = members.bound + members.succeeded + members.failed;
        if self.reason.is_none() && settled >= members.created && members.created > 0 {
            return "";
        }
        &self.message
    }

    fn tone(&self) -> Tone {
        if self.phase == Phase::Failed.as_str() {
            Tone::Bad
        } else if self.reason.is_some() || self.phase == Phase::Pending.as_str() {
            Tone::Waiting
        } else {
            Tone::Good
        }
    }
}

/// Draws the plan for people: pods, evictions, gangs with why they wait, queues.
#[must_use]
pub(crate) fn draw(plan: &Plan, screen: Screen) -> String {
    let mut parts = vec![summary(plan)];
    if !plan.pods.is_empty() {
        parts.push(pods(plan, screen));
    }
    if !plan.evictions.is_empty() {
        parts.push(evictions(plan, screen));
    }
    if !plan.pod_groups.is_empty() {
        parts.push(groups(plan, screen));
    }
    parts.push(queues::draw(&plan.queues, screen));
    parts.join("\n")
}

/// `After 1 cycle: 4 Bound, 2 Pending`.
fn summary(plan: &Plan) -> String {
    let mut states: BTreeMap<&str, u32> = BTreeMap::new();
    for pod in plan.pods.values() {
        *states.entry(pod.state).or_default() += 1;
    }
    let counts: Vec<String> = states
        .into_iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let counts = if counts.is_empty() {
        "no pods".to_owned()
    } else {
        counts.join(", ")
    };
    match plan.cycles {
        1 => format!("After 1 cycle: {counts}\n"),
        cycles => format!("After {cycles} cycles: {counts}\n"),
    }
}

fn pods(plan: &Plan, screen: Screen) -> String {
    let rows = plan.pods.iter().map(|(name, pod)| {
        vec![
            name.as_str().into(),
            Entry::new(pod.state, pod.tone()),
            pod.node.as_deref().unwrap_or("-").into(),
            pod.reason.unwrap_or_default().into(),
        ]
    });
    table::draw(&["POD", "STATE", "NODE", "REASON"], rows.collect(), screen)
}

/// The table of evictions, in their order.
fn evictions(plan: &Plan, screen: Screen) -> String {
    let rows = plan.evictions.iter().map(|eviction| {
        vec![
            eviction.pod.as_str().into(),
            eviction.cycle.to_string().into(),
            eviction.cause.into(),
            eviction.beneficiary.as_deref().unwrap_or("-").into(),
            eviction.verdict.unwrap_or_default().into(),
        ]
    });
    let headings = ["EVICTED", "CYCLE", "CAUSE", "FOR", "VERDICT"];
    table::draw(&headings, rows.collect(), screen)
}

/// The table of gangs. Messages stand here and not with the pods, because all waiting members of a
/// gang have one message.
fn groups(plan: &Plan, screen: Screen) -> String {
    let rows = plan.pod_groups.iter().map(|(name, group)| {
        let members = &group.members;
        let met = members.bound + members.succeeded;
        vec![
            name.as_str().into(),
            group.queue.as_str().into(),
            Entry::new(group.phase, group.tone()),
            format!("{met}/{}", members.expected).into(),
            group.reason.unwrap_or_default().into(),
            group.estimated_start.as_deref().unwrap_or_default().into(),
            group.told().into(),
        ]
    });
    let headings = [
        "GANG",
        "QUEUE",
        "PHASE",
        "BOUND/MIN",
        "REASON",
        "ESTIMATED START",
        "MESSAGE",
    ];
    table::draw(&headings, rows.collect(), screen)
}
