//! What the engine makes of a case, and whether that keeps the rules.

use super::case::{Case, Group, LEVELS, Node, Pod};
use gpu_batch_policies::facts::{
    HostPort, NodeFacts, PodFacts, PodGroupFacts, Protocol, SubGroupFacts, TopologyConstraint,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{GPU, Sketch, World, amounts, gang, node, pod, topology};

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
    let nodes = case.nodes.iter().enumerate();
    let pods = case.pods.iter().enumerate();
    let world = World::of((
        topology("default", &LEVELS.join(" ")),
        nodes.map(node_of).collect::<Vec<_>>(),
        group_of(case),
        pods.map(pod_of).collect::<Vec<_>>(),
    ));
    let place = |pod| {
        let node = world.node_of(&format!("p{pod}"))?;
        Some(node[1..].parse().unwrap())
    };
    let places: Vec<Option<usize>> = (0..case.pods.len()).map(place).collect();
    // Each is bound once.
    assert_eq!(places.iter().flatten().count(), world.binds);
    if world.binds > 0 {
        return Answer::Placed(places);
    }
    let message = world.message("gang");
    match world.reason("gang") {
        Some(Reason::DoesNotFit) => Answer::Proved(message),
        Some(Reason::NotFoundWithinBound) => Answer::Bounded,
        reason => panic!("{reason:?} {message}: {case:#?}"),
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
        // A gang that begins is complete.
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

fn node_of((number, drawn): (usize, &Node)) -> Sketch<NodeFacts> {
    let mut sketch = node(&format!("n{number}"), drawn.gpus).has("cpu", drawn.cpus * 1_000);
    if drawn.fast {
        sketch = sketch.label("fast", "yes");
    }
    for (level, value) in LEVELS.iter().zip(&drawn.labels) {
        if let Some(value) = value {
            sketch = sketch.label(level, &value.to_string());
        }
    }
    sketch
}

fn topology_constraint(group: &Group) -> Option<TopologyConstraint> {
    let name = |level: usize| LEVELS.get(level).copied().unwrap_or("node").into();
    let (required, preferred) = (group.required, group.preferred);
    (required.is_some() || preferred.is_some()).then(|| TopologyConstraint {
        name: None,
        required: required.map(name),
        preferred: preferred.map(name),
    })
}

fn group_of(case: &Case) -> Sketch<PodGroupFacts> {
    let count = |group: &Group| u32::try_from(group.minimum).unwrap();
    let root = &case.groups[0];
    let flat = case.groups.len() == 1;
    let sub_groups = case.groups.iter().enumerate().skip(1);
    let sub_groups = sub_groups.map(|(index, group)| {
        let (name, leaf) = (format!("g{index}"), case.is_leaf(index));
        let parent = match group.parent {
            0 => String::new(),
            parent => format!("g{parent}"),
        };
        SubGroupFacts {
            min_sub_groups: (!leaf).then(|| count(group)),
            topology: topology_constraint(group),
            ..SubGroupFacts::new(&name, &parent, leaf.then(|| count(group)))
        }
    });
    let sub_groups: Vec<_> = sub_groups.collect();
    gang("gang", if flat { count(root) } else { 1 }).with(|gang| {
        gang.sub_groups.clone_from(&sub_groups);
        gang.min_sub_groups = (!flat).then(|| count(root));
        gang.topology = topology_constraint(root);
    })
}

fn pod_of((number, drawn): (usize, &Pod)) -> Sketch<PodFacts> {
    let name = format!("p{number}");
    let sketch = match drawn.leaf {
        0 => pod(&name, drawn.gpus).of("gang"),
        leaf => pod(&name, drawn.gpus).of_leaf("gang", &format!("g{leaf}")),
    };
    sketch.shape(|shape| {
        shape.requests = amounts(&[("cpu", drawn.cpus * 1_000), (GPU, drawn.gpus), ("pods", 1)]);
        if drawn.port {
            shape.host_ports.push(HostPort {
                port: 8080,
                protocol: Protocol::Tcp,
                host_ip: "".into(),
            });
        }
        if drawn.fast {
            shape.node_selector.push(("fast".into(), "yes".into()));
        }
    })
}
