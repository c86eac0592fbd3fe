//! Which pods belong together, worked out from the objects alone.

use crate::cluster::Cluster;
use crate::scenario::LEVELS;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    GangMinimum, GroupSource, NodeFacts, PodFacts, PodGroupFacts, Uid, label,
};
use std::collections::BTreeMap;

/// A gang at rest.
#[derive(Debug, Default)]
pub(super) struct Gang<'world> {
    /// As the engine's reports name it.
    pub(super) name: String,
    pub(super) minimum: usize,
    pub(super) queue: Box<str>,
    /// Node labels from the top; all members are in one domain of the last.
    required: Option<Vec<Box<str>>>,
    /// Its spec was changed.
    pub(super) changed: bool,
    pub(super) never_stale: bool,
    /// It is not preemptible: only ever within quota.
    pub(super) protected: bool,
    /// Its description is missing.
    pub(super) unknown: bool,
    pub(super) bound: Vec<&'world PodFacts>,
    pub(super) waiting: Vec<&'world PodFacts>,
    pub(super) succeeded: usize,
    /// Members that succeeded and were cleaned away.
    pub(super) done: usize,
}

/// All gangs that have pods.
pub(super) fn gangs(cluster: &Cluster) -> Vec<Gang<'_>> {
    let mut gangs: BTreeMap<String, Gang<'_>> = BTreeMap::new();
    let mut groups: BTreeMap<(GroupSource, &str), &PodGroupFacts> = BTreeMap::new();
    for kind in [Kind::PodGroup, Kind::NativePodGroup] {
        for stored in cluster.api.objects(kind) {
            if let Object::PodGroup(facts) = &stored.object {
                groups.insert((facts.source, &facts.name), facts);
            }
        }
    }
    let jobs: BTreeMap<Uid, u32> = cluster
        .api
        .objects(Kind::Job)
        .filter_map(|stored| match &stored.object {
            Object::Job(facts) if facts.indexed && facts.parallelism > 1 => {
                Some((facts.uid, facts.parallelism))
            }
            _ => None,
        })
        .collect();
    for facts in cluster.api.pods().filter(|facts| facts.ours) {
        let (name, described) = describe(facts, &groups, &jobs);
        let gang = gangs.entry(name.clone()).or_insert(described);
        gang.name = name;
        if facts.phase == gpu_batch_policies::facts::PodPhase::Succeeded {
            gang.succeeded += 1;
        } else if facts.phase.ended() || facts.deleting {
            // Neither counts.
        } else if facts.node.is_some() {
            gang.bound.push(facts);
        } else {
            gang.waiting.push(facts);
        }
    }
    for facts in cluster.done.iter().filter(|facts| facts.ours) {
        let (name, _) = describe(facts, &groups, &jobs);
        if let Some(gang) = gangs.get_mut(&name) {
            gang.done += 1;
        }
    }
    for gang in gangs.values_mut() {
        // The scheduler's own members say where the gang is, whatever another one adds.
        gang.bound.sort_by_key(|facts| facts.bound_queue.is_none());
    }
    gangs.into_values().collect()
}

fn describe<'world>(
    facts: &PodFacts,
    groups: &BTreeMap<(GroupSource, &str), &PodGroupFacts>,
    jobs: &BTreeMap<Uid, u32>,
) -> (String, Gang<'world>) {
    let namespace = &facts.namespace;
    let own_queue = facts.queue.clone().unwrap_or_else(|| "default".into());
    let alone = Gang {
        minimum: 1,
        queue: own_queue,
        ..Gang::default()
    };
    let named = facts
        .pod_group
        .as_ref()
        .map(|name| (GroupSource::GpuBatch, name))
        .or(facts
            .native_group
            .as_ref()
            .map(|name| (GroupSource::Native, name)));
    if let Some((source, name)) = named {
        let Some(group) = groups.get(&(source, &**name)) else {
            let unknown = true;
            return (format!("{namespace}/{name}"), Gang { unknown, ..alone });
        };
        let mut gang = of_group(group);
        if group.minimum == GangMinimum::Single {
            gang.minimum = 1;
            return (format!("{namespace}/pod/{}", facts.name), gang);
        }
        return (format!("{namespace}/{name}"), gang);
    }
    let Some(owner) = &facts.owner else {
        return (format!("{namespace}/pod/{}", facts.name), alone);
    };
    let minimum = facts.hints.min_member.filter(|minimum| *minimum > 1);
    let Some(minimum) = minimum.or(jobs.get(&owner.uid).copied()) else {
        return (format!("{namespace}/pod/{}", facts.name), alone);
    };
    let kind = owner.kind.to_ascii_lowercase();
    let gang = Gang {
        minimum: minimum as usize,
        ..alone
    };
    (format!("{namespace}/{kind}/{}", owner.name), gang)
}

fn of_group<'world>(group: &PodGroupFacts) -> Gang<'world> {
    let minimum = match group.minimum {
        GangMinimum::Together(minimum) => minimum as usize,
        GangMinimum::Single => 1,
    };
    let topology = group.topology.as_ref();
    let by_level = topology.and_then(|topology| {
        let levels = match topology.name.as_deref() {
            Some("zones") => &LEVELS[..1],
            _ => &LEVELS[..],
        };
        let required = topology.required.as_deref()?;
        let depth = levels.iter().position(|level| *level == required);
        let mut path: Vec<Box<str>> = levels.iter().map(|level| (*level).into()).collect();
        match depth {
            Some(depth) => path.truncate(depth + 1),
            None => path.push("kubernetes.io/hostname".into()),
        }
        Some(path)
    });
    Gang {
        minimum,
        queue: group.queue.clone().unwrap_or_else(|| "default".into()),
        required: by_level.or(group.required_label.clone().map(|label| vec![label])),
        changed: group.generation > 1,
        never_stale: group.staleness_grace_ms.is_some_and(|grace| grace < 0),
        protected: group.preemptible == Some(false),
        ..Gang::default()
    }
}

/// The domain in which the gang's members must be together, if a node is in it; a node without a
/// label is alone there. `None`: anywhere.
pub(super) fn level_domain(gang: &Gang<'_>, node: &NodeFacts) -> Option<Vec<String>> {
    let path = gang.required.as_ref()?.iter().map(|key| {
        label(&node.labels, key).map_or_else(|| format!("alone:{}", node.name), ToOwned::to_owned)
    });
    Some(path.collect())
}
