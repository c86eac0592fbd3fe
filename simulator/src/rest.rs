//! What must hold of a world at rest, worked out from the world alone.
//!
//! Feasibility is found by trying everything: slow, and obviously right.

use crate::scenario::LEVELS;
use crate::world::World;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::facts::{Amount, GangMinimum, NodeFacts, PodFacts, PodGroupFacts};
use gpu_batch_policies::reason::Reason;
use std::collections::BTreeMap;

/// Everything that does not hold.
pub(crate) fn violations(world: &World, engine: &Engine) -> Vec<String> {
    let mut found = Vec::new();
    for (uid, binds) in &world.binds {
        if *binds > 1 {
            found.push(format!("I4: pod {uid} was bound {binds} times"));
        }
    }
    let reasons: BTreeMap<String, Option<Reason>> = engine
        .gang_reports()
        .into_iter()
        .map(|gang| (gang.name, gang.status.reason))
        .collect();
    let rooms = rooms(world);
    for group in world.pod_groups.values() {
        gang(world, &rooms, group, &reasons, &mut found);
    }
    for facts in world.pods.values() {
        let waits = facts.node.is_none() && !facts.phase.ended() && facts.pod_group.is_none();
        let name = format!("{}/pod/{}", facts.namespace, facts.name);
        if waits {
            judge(
                world,
                &rooms,
                &[facts],
                1,
                None,
                &name,
                &reasons,
                &mut found,
            );
        }
    }
    found
}

/// What is free on each node.
type Rooms = BTreeMap<Box<str>, BTreeMap<Box<str>, Amount>>;

fn rooms(world: &World) -> Rooms {
    let mut rooms: Rooms = world
        .nodes
        .values()
        .map(|node| {
            (
                node.name.clone(),
                node.allocatable.iter().cloned().collect(),
            )
        })
        .collect();
    for facts in world.pods.values().filter(|facts| !facts.phase.ended()) {
        let Some(room) = facts.node.as_ref().and_then(|node| rooms.get_mut(node)) else {
            continue;
        };
        for (resource, amount) in &facts.shape.requests {
            let left = room.entry(resource.clone()).or_insert(0);
            *left = left.saturating_sub(*amount);
        }
    }
    rooms
}

fn gang(
    world: &World,
    rooms: &Rooms,
    group: &PodGroupFacts,
    reasons: &BTreeMap<String, Option<Reason>>,
    found: &mut Vec<String>,
) {
    let GangMinimum::Together(minimum) = group.minimum else {
        return;
    };
    let minimum = minimum as usize;
    let of = |facts: &&PodFacts| facts.pod_group.as_ref() == Some(&group.name);
    let members: Vec<&PodFacts> = world.pods.values().filter(of).collect();
    let ended = members.iter().filter(|facts| facts.phase.ended()).count();
    let (bound, waiting): (Vec<&PodFacts>, Vec<&PodFacts>) = members
        .into_iter()
        .filter(|facts| !facts.phase.ended())
        .partition(|facts| facts.node.is_some());
    let held = bound.len() + ended;
    if !bound.is_empty() && held < minimum {
        found.push(format!(
            "I5: gang {} rests with {held} of {minimum} members",
            group.name
        ));
    }
    let level = group
        .topology
        .as_ref()
        .and_then(|topology| topology.required.as_deref());
    let domain_of = |facts: &&PodFacts| {
        let node = world.nodes.get(facts.node.as_deref()?)?;
        Some(domain(node, level?))
    };
    let domains: std::collections::BTreeSet<_> = bound.iter().filter_map(domain_of).collect();
    if domains.len() > 1 {
        found.push(format!("I7: gang {} is in {domains:?}", group.name));
    }
    let need = minimum.saturating_sub(held);
    let name = format!("{}/{}", group.namespace, group.name);
    if waiting.len() < need || waiting.is_empty() {
        return;
    }
    let tie = level.map(|level| (level, domains.first().cloned()));
    judge(
        world,
        rooms,
        &waiting,
        need.max(1),
        tie,
        &name,
        reasons,
        found,
    );
}

/// The path of a node down to a level; a node without a label is alone there.
fn domain(node: &NodeFacts, level: &str) -> Vec<String> {
    let mut path = Vec::new();
    for key in LEVELS {
        let label = node.labels.iter().find(|(name, _)| &**name == key);
        path.push(label.map_or_else(|| format!("alone:{}", node.name), |(_, v)| v.to_string()));
        if key == level {
            return path;
        }
    }
    path.push(node.name.to_string());
    path
}

/// A gang that waits must wait for a reason that is true.
#[expect(
    clippy::too_many_arguments,
    reason = "what a judge must know, each once"
)]
fn judge(
    world: &World,
    rooms: &Rooms,
    waiting: &[&PodFacts],
    need: usize,
    tie: Option<(&str, Option<Vec<String>>)>,
    name: &str,
    reasons: &BTreeMap<String, Option<Reason>>,
    found: &mut Vec<String>,
) {
    let reason = reasons.get(name).copied().flatten();
    let fits = possible_domains(world, tie.as_ref())
        .into_iter()
        .any(|nodes| {
            let mut rooms: Vec<_> = rooms
                .iter()
                .filter(|(node, _)| nodes.contains(node))
                .map(|(_, r)| r.clone())
                .collect();
            fits(&mut rooms, waiting, need)
        });
    let queue_holds = matches!(reason, Some(Reason::OverLimit));
    if fits && !queue_holds && !limited(world, waiting) {
        found.push(format!("I18: {name} fits and waits for {reason:?}"));
    }
    if queue_holds && !limited(world, waiting) {
        found.push(format!("I11: {name} waits for a limit that is not reached"));
    }
}

/// The sets of nodes in which all members may be.
fn possible_domains(
    world: &World,
    tie: Option<&(&str, Option<Vec<String>>)>,
) -> Vec<Vec<Box<str>>> {
    let Some((level, fixed)) = tie else {
        return vec![world.nodes.keys().cloned().collect()];
    };
    let mut domains: BTreeMap<Vec<String>, Vec<Box<str>>> = BTreeMap::new();
    for node in world.nodes.values() {
        domains
            .entry(domain(node, level))
            .or_default()
            .push(node.name.clone());
    }
    if let Some(fixed) = fixed {
        domains.retain(|domain, _| domain == fixed);
    }
    domains.into_values().collect()
}

fn fits(rooms: &mut [BTreeMap<Box<str>, Amount>], waiting: &[&PodFacts], need: usize) -> bool {
    if need == 0 {
        return true;
    }
    let Some((first, rest)) = waiting.split_first() else {
        return false;
    };
    for index in 0..rooms.len() {
        let requests = &first.shape.requests;
        if !requests
            .iter()
            .all(|(r, amount)| rooms[index].get(r).is_some_and(|left| left >= amount))
        {
            continue;
        }
        let before = rooms[index].clone();
        for (resource, amount) in requests {
            if let Some(left) = rooms[index].get_mut(resource) {
                *left -= amount;
            }
        }
        if fits(rooms, rest, need - 1) {
            return true;
        }
        rooms[index] = before;
    }
    fits(rooms, rest, need)
}

/// Whether the queue's limit may be what holds the pods: it has one, and the largest of them would
/// exceed it with what runs.
fn limited(world: &World, waiting: &[&PodFacts]) -> bool {
    let queue_of = |facts: &PodFacts| -> Option<Box<str>> {
        match &facts.pod_group {
            Some(group) => world.pod_groups.get(group)?.queue.clone(),
            None => facts.queue.clone(),
        }
    };
    let gpus = |facts: &PodFacts| -> Amount {
        let asked = facts
            .shape
            .requests
            .iter()
            .find(|(name, _)| &**name == "nvidia.com/gpu");
        asked.map_or(0, |(_, amount)| *amount)
    };
    let Some(queue) = waiting.first().and_then(|facts| queue_of(facts)) else {
        return false;
    };
    let entry = world
        .queues
        .get(&queue)
        .and_then(|queue| queue.resources.first());
    let Some(limit) = entry.and_then(|entry| entry.limit) else {
        return false;
    };
    let running = world.pods.values().filter(|facts| {
        facts.node.is_some() && !facts.phase.ended() && queue_of(facts).as_ref() == Some(&queue)
    });
    let held: Amount = running.map(gpus).sum();
    let asked: Amount = waiting.iter().map(|facts| gpus(facts)).sum();
    held + asked > limit
}
