//! What must hold at the end, judged by new lists from the API server and by the witness's books.

use super::seen::{Node, Pod};
use super::setting::RACK_LABEL;
use super::witness::{
    Amounts, Course, REMNANT_WITHIN, Witness, has_ended, has_failed, node_of, node_use, requests,
};
use super::workload::Traits;
use crate::lab::demo::setting::GANG_LABEL;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A promise, and whether it was kept.
#[derive(Debug, Default)]
pub(super) struct Check {
    pub(super) promise: &'static str,
    /// How much the check has looked at.
    pub(super) extent: String,
    /// What breaks the promise, in words.
    pub(super) violations: Vec<String>,
}

/// All promises. `nodes` and `pods` are what the API server lists now.
pub(super) fn all(witness: &Witness, nodes: &[Node], pods: &[Pod], now: Instant) -> Vec<Check> {
    vec![
        whole_gangs(witness, pods, now),
        capacity(witness, nodes, pods),
        bound_once(witness, pods),
        racks(witness, nodes, pods),
    ]
}

fn whole_gangs(witness: &Witness, pods: &[Pod], now: Instant) -> Check {
    // Of each gang, the pods that are on nodes or have ended well there, and those that have not.
    let mut bound: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let holds = |pod: &&Pod| node_of(pod).is_some() && !has_failed(pod);
    for pod in pods.iter().filter(holds) {
        let (all, unended) = bound.entry(gang_of(pod)).or_default();
        *all += 1;
        *unended += u32::from(!has_ended(pod));
    }
    let mut violations = Vec::new();
    let mut slowest = Duration::ZERO;
    for (name, course) in &witness.courses {
        let (all, unended) = bound.get(name.as_str()).copied().unwrap_or_default();
        let minimum = course.gang.minimum;
        // A pod that ended well may have been removed since: its Job makes no other one.
        let has = match all {
            0 => 0,
            _ => all.max(unended + course.finished),
        };
        // Of a gang that is known to start or to leave, time decides.
        if (1..minimum).contains(&has) && course.partial_since.is_none() {
            violations.push(format!(
                "{name} has {has} members on nodes and needs {minimum}"
            ));
        }
        let (partial, remnant) = course.longest_until(now);
        if partial > witness.partial_within {
            let seconds = partial.as_secs();
            violations.push(format!("{name} was partly on nodes for {seconds} s"));
        }
        if remnant > REMNANT_WITHIN + witness.partial_within {
            let seconds = remnant.as_secs();
            violations.push(format!("{name} ran below its minimum for {seconds} s"));
        }
        slowest = slowest.max(partial);
    }
    let courses = witness.courses.values();
    let started = courses.filter(|course| course.started.is_some()).count();
    Check {
        promise: "no gang started in part",
        extent: format!(
            "{started} gangs; first to last member within {:.1} s",
            slowest.as_secs_f64()
        ),
        violations,
    }
}

fn capacity(witness: &Witness, nodes: &[Node], pods: &[Pod]) -> Check {
    let mut used: BTreeMap<&str, Amounts> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !has_ended(pod)) {
        let Some(node) = node_of(pod) else { continue };
        let sum = used.entry(node).or_default();
        for (resource, amount) in requests(pod) {
            *sum.entry(resource).or_insert(0) += amount;
        }
    }
    let mut violations = witness.violations.clone();
    for (name, node) in nodes.iter().map(node_use) {
        for (resource, amount) in used.remove(name.as_str()).into_iter().flatten() {
            let capacity = node.capacity.get(&resource).copied().unwrap_or(0);
            if amount > capacity {
                violations.push(format!(
                    "{name} holds {amount} {resource} and has {capacity}"
                ));
            }
        }
    }
    violations.extend(
        used.keys()
            .map(|node| format!("pods are on {node}, which is no node")),
    );
    Check {
        promise: "no node over its capacity",
        extent: format!(
            "{} nodes, after each of {} changes",
            nodes.len(),
            witness.changes
        ),
        violations,
    }
}

fn bound_once(witness: &Witness, pods: &[Pod]) -> Check {
    let mut members: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let mut bound = 0;
    for pod in pods.iter().filter(|pod| node_of(pod).is_some()) {
        bound += 1;
        let labels = pod.metadata.labels.as_ref();
        let index =
            labels.and_then(|labels| labels.get("batch.kubernetes.io/job-completion-index"));
        let member = (gang_of(pod), index.map_or("", String::as_str));
        *members.entry(member).or_insert(0) += u32::from(!has_ended(pod));
    }
    let twice = members.iter().filter(|(_, pods)| **pods > 1);
    let violations = twice
        .map(|((gang, index), pods)| format!("member {index} of {gang} holds {pods} places"))
        .collect();
    Check {
        promise: "no member in two places",
        extent: format!("{bound} pods on nodes, {} bindings seen", witness.binds),
        violations,
    }
}

/// Members of a gang are in one rack. A member that has ended does not count: a pod that is made in
/// its place may go to another rack.
fn racks(witness: &Witness, nodes: &[Node], pods: &[Pod]) -> Check {
    let rack = |node: &Node| {
        let labels = node.metadata.labels.as_ref()?;
        Some((node.metadata.name.clone()?, labels.get(RACK_LABEL)?.clone()))
    };
    let rack_of: BTreeMap<String, String> = nodes.iter().filter_map(rack).collect();
    let mut racks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !has_ended(pod)) {
        let Some(node) = node_of(pod) else { continue };
        let rack = rack_of.get(node).map_or(node, String::as_str);
        racks.entry(gang_of(pod)).or_default().insert(rack);
    }
    let courses = witness.courses.values();
    let bound_to_one: Vec<&Course> = courses
        .filter(|course| course.gang.traits == Traits::OneRack)
        .filter(|course| course.first_bound.is_some() || racks.contains_key(&*course.gang.name))
        .collect();
    let scattered = |course: &&Course| {
        let name = &*course.gang.name;
        let now = racks.get(name).filter(|racks| racks.len() > 1);
        let now = now.map(|racks| racks.iter().copied().collect::<Vec<_>>().join(", "));
        let racks = now.or_else(|| course.scattered.clone())?;
        Some(format!("{name} requires one rack and is in {racks}"))
    };
    Check {
        promise: "required racks kept",
        extent: format!("{} gangs that require one rack", bound_to_one.len()),
        violations: bound_to_one.iter().filter_map(scattered).collect(),
    }
}

fn gang_of(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(GANG_LABEL))
        .map_or("", String::as_str)
}

#[cfg(test)]
mod tests;
