//! What the engine makes of a case, and whether that keeps the rules.

use super::case::{Case, LEVELS, Node, Pod};
use gpu_batch_policies::command::Action;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Listing, Object, Outcome};
use gpu_batch_policies::facts::{
    Amounts, HostPort, NodeFacts, PodFacts, PodGroupFacts, PodShape, Protocol, SubGroupFacts,
    TopologyFacts, TopologyLevel, TopologyRequest, Uid,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use std::sync::Arc;

const NOW_MS: u64 = 1_800_000_000_000;

#[derive(Debug)]
pub(crate) enum Answer {
    /// By pod, the node; pods that are not needed may have none.
    Placed(Vec<Option<usize>>),
    /// It fits nowhere, and that is proved.
    Proved(String),
    /// No place was found within the bound.
    Bounded,
}

/// Runs the engine on the case until it rests.
pub(crate) fn schedule(case: &Case) -> Answer {
    let mut engine = Engine::new(Settings::default());
    let mut places: Vec<Option<usize>> = vec![None; case.pods.len()];
    let mut events: Vec<Event> = Kind::ALL
        .map(|kind| {
            let objects = objects(case, kind);
            Event::Listed(Listing { kind, objects })
        })
        .into();
    for _ in 0..1_000 {
        let commands = engine.step(NOW_MS, std::mem::take(&mut events));
        if commands.is_empty() && engine.is_idle() {
            break;
        }
        for command in commands {
            if let Action::Bind(bind) = &command.action {
                let pod: usize = bind.pod.name[1..].parse().unwrap();
                let node: usize = bind.node[1..].parse().unwrap();
                assert_eq!(places[pod].replace(node), None);
            }
            events.push(Event::Outcome(command.id, Outcome::Done));
        }
        events.push(Event::Continue);
    }
    assert_eq!(engine.audit(), Vec::<String>::new());
    if places.iter().any(Option::is_some) {
        return Answer::Placed(places);
    }
    let reports = engine.gang_reports();
    let status = &reports[0].status;
    match status.reason {
        Some(Reason::DoesNotFit) => Answer::Proved(status.message.to_string()),
        Some(Reason::NotFoundWithinBound) => Answer::Bounded,
        reason => panic!("{reason:?} {}: {case:#?}", status.message),
    }
}

/// Every rule that a placement breaks.
pub(crate) fn faults(case: &Case, places: &[Option<usize>]) -> Vec<String> {
    let mut faults = Vec::new();
    let placed = || {
        places
            .iter()
            .enumerate()
            .filter_map(|(pod, node)| Some((pod, (*node)?)))
    };
    for (number, node) in case.nodes.iter().enumerate() {
        let here: Vec<&Pod> = placed()
            .filter(|(_, there)| *there == number)
            .map(|(pod, _)| &case.pods[pod])
            .collect();
        let full = here.iter().map(|pod| pod.cpus).sum::<u64>() > node.cpus
            || here.iter().map(|pod| pod.gpus).sum::<u64>() > node.gpus
            || here.iter().filter(|pod| pod.port).count() > 1;
        if full {
            faults.push(format!("node {number} is too full"));
        }
        if here.iter().any(|pod| pod.fast && !node.fast) {
            faults.push(format!("node {number} is not selected"));
        }
    }
    let mut pods = vec![0; case.groups.len()];
    for (pod, _) in placed() {
        pods[case.pods[pod].leaf] += 1;
    }
    if !case.is_met(0, &pods) {
        faults.push("a minimum is not met".to_owned());
    }
    for (index, group) in case.groups.iter().enumerate() {
        let members: Vec<usize> = placed()
            .filter(|(pod, _)| case.groups_of(case.pods[*pod].leaf).contains(&index))
            .map(|(_, node)| node)
            .collect();
        // Whoever begins is complete.
        if !members.is_empty() && !case.is_met(index, &pods) {
            faults.push(format!("group {index} is there in part"));
        }
        let Some(level) = group.required else {
            continue;
        };
        let mut domains: Vec<_> = members
            .iter()
            .map(|node| case.domain(*node, level))
            .collect();
        domains.sort();
        domains.dedup();
        if domains.len() > 1 {
            faults.push(format!("group {index} is in {domains:?}"));
        }
    }
    faults
}

fn objects(case: &Case, kind: Kind) -> Vec<Object> {
    match kind {
        Kind::Topology => vec![Object::Topology(TopologyFacts {
            name: "default".into(),
            uid: Uid(1),
            levels: LEVELS
                .map(|level| TopologyLevel {
                    name: level.into(),
                    node_label: level.into(),
                })
                .into(),
            problems: Vec::new(),
        })],
        Kind::Node => {
            let nodes = case.nodes.iter().enumerate();
            nodes
                .map(|(number, node)| Object::Node(node_facts(number, node)))
                .collect()
        }
        Kind::PodGroup => vec![Object::PodGroup(group_facts(case))],
        Kind::Pod => {
            let pods = case.pods.iter().enumerate();
            pods.map(|(number, pod)| Object::Pod(pod_facts(number, pod)))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn amounts(cpus: u64, gpus: u64, pods: u64) -> Amounts {
    let mut amounts: Amounts = vec![("cpu".into(), cpus * 1_000)];
    if gpus > 0 {
        amounts.push(("nvidia.com/gpu".into(), gpus));
    }
    amounts.push(("pods".into(), pods));
    amounts
}

fn node_facts(number: usize, node: &Node) -> NodeFacts {
    let mut labels: Vec<(Box<str>, Box<str>)> = Vec::new();
    if node.fast {
        labels.push(("fast".into(), "yes".into()));
    }
    for (level, value) in LEVELS.iter().zip(&node.labels) {
        if let Some(value) = value {
            labels.push(((*level).into(), format!("{value}").into()));
        }
    }
    labels.sort();
    let allocatable = amounts(node.cpus, node.gpus, 110);
    let uid = Uid(1_000 + number as u128);
    NodeFacts {
        labels,
        ..NodeFacts::new(uid, &format!("n{number}"), allocatable)
    }
}

fn topology(required: Option<usize>, preferred: Option<usize>) -> Option<TopologyRequest> {
    let name = |level: usize| LEVELS.get(level).copied().unwrap_or("node").into();
    (required.is_some() || preferred.is_some()).then(|| TopologyRequest {
        name: None,
        required: required.map(name),
        preferred: preferred.map(name),
    })
}

fn group_facts(case: &Case) -> PodGroupFacts {
    let count = |minimum: usize| u32::try_from(minimum).unwrap();
    let root = &case.groups[0];
    let flat = case.groups.len() == 1;
    let minimum = if flat { count(root.minimum) } else { 1 };
    let sub_groups = case
        .groups
        .iter()
        .enumerate()
        .skip(1)
        .map(|(index, group)| {
            let leaf = case.is_leaf(index);
            SubGroupFacts {
                name: format!("g{index}").into(),
                parent: match group.parent {
                    0 => "".into(),
                    parent => format!("g{parent}").into(),
                },
                min_member: leaf.then(|| count(group.minimum)),
                min_sub_groups: (!leaf).then(|| count(group.minimum)),
                topology: topology(group.required, group.preferred),
            }
        });
    PodGroupFacts {
        created_ms: NOW_MS - 60_000,
        sub_groups: sub_groups.collect(),
        min_sub_groups: (!flat).then(|| count(root.minimum)),
        topology: topology(root.required, root.preferred),
        ..PodGroupFacts::new(Uid(2), "default", "gang", minimum)
    }
}

fn pod_facts(number: usize, pod: &Pod) -> PodFacts {
    let mut shape = PodShape {
        requests: amounts(pod.cpus, pod.gpus, 1),
        ..PodShape::default()
    };
    if pod.port {
        shape.host_ports.push(HostPort {
            port: 8080,
            protocol: Protocol::Tcp,
            host_ip: "".into(),
        });
    }
    if pod.fast {
        shape.node_selector.push(("fast".into(), "yes".into()));
    }
    let (uid, name) = (Uid(10_000 + number as u128), format!("p{number}"));
    PodFacts {
        created_ms: NOW_MS - 60_000,
        pod_group: Some("gang".into()),
        sub_group: (pod.leaf > 0).then(|| format!("g{}", pod.leaf).into()),
        ..PodFacts::new(uid, "default", &name, Arc::new(shape))
    }
}
