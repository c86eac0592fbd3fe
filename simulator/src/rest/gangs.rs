//! Which pods belong to which gang, worked out from the objects alone.

use super::groups::{self, Group};
use crate::cluster::Cluster;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{GroupSource, PodFacts, PodGroupFacts, Uid};
use std::collections::BTreeMap;

/// A gang at rest.
#[derive(Debug, Default)]
pub(super) struct Gang<'world> {
    /// The name of the gang, as in the engine's reports.
    pub(super) name: String,
    /// The gang itself and its sub-groups.
    pub(super) groups: Vec<Group>,
    pub(super) queue: Box<str>,
    /// Whether the PodGroup's spec was changed.
    pub(super) changed: bool,
    pub(super) never_stale: bool,
    /// Whether the gang is not preemptible, and so must stay within quota.
    pub(super) protected: bool,
    /// Whether the PodGroup that the members name does not exist.
    pub(super) unknown: bool,
    pub(super) bound: Vec<&'world PodFacts>,
    /// Members on nodes that are being deleted: they do not count for the minimum, and still hold
    /// their room.
    pub(super) leaving: Vec<&'world PodFacts>,
    pub(super) waiting: Vec<&'world PodFacts>,
    pub(super) succeeded: Vec<&'world PodFacts>,
    /// Members that succeeded and were cleaned away.
    pub(super) done: Vec<&'world PodFacts>,
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
            gang.succeeded.push(facts);
        } else if facts.phase.ended() {
            // A failed pod does not count and holds no room.
        } else if facts.deleting {
            gang.leaving.extend(facts.node.is_some().then_some(facts));
        } else if facts.node.is_some() {
            gang.bound.push(facts);
        } else {
            gang.waiting.push(facts);
        }
    }
    for facts in cluster.done.iter().filter(|facts| facts.ours) {
        let (name, _) = describe(facts, &groups, &jobs);
        if let Some(gang) = gangs.get_mut(&name) {
            gang.done.push(facts);
        }
    }
    for gang in gangs.values_mut() {
        // Members that this scheduler has bound come first: they say where the gang is, not members
        // that another scheduler has bound.
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
        groups: groups::without_sub_groups(1),
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
        return (format!("{namespace}/{name}"), of_group(group));
    }
    let Some(owner) = &facts.owner else {
        return (format!("{namespace}/pod/{}", facts.name), alone);
    };
    let minimum = facts.hints.min_member.filter(|minimum| *minimum > 1);
    let Some(minimum) = minimum.or(jobs.get(&owner.uid).copied()) else {
        return (format!("{namespace}/pod/{}", facts.name), alone);
    };
    let gang = Gang {
        groups: groups::without_sub_groups(minimum as usize),
        ..alone
    };
    let name = match &facts.deployment {
        Some(deployment) => format!("{namespace}/deployment/{deployment}"),
        None => {
            let kind = owner.kind.to_ascii_lowercase();
            format!("{namespace}/{kind}/{}", owner.name)
        }
    };
    (name, gang)
}

fn of_group<'world>(group: &PodGroupFacts) -> Gang<'world> {
    Gang {
        groups: groups::of(group),
        queue: group.queue.clone().unwrap_or_else(|| "default".into()),
        changed: group.generation > 1,
        never_stale: group.staleness_grace_ms.is_some_and(|grace| grace < 0),
        protected: group.preemptible == Some(false),
        ..Gang::default()
    }
}

impl Gang<'_> {
    /// The leaf that a member belongs to; `None`: the member names no leaf.
    pub(super) fn leaf_of(&self, facts: &PodFacts) -> Option<usize> {
        let named = |group: &Group| facts.sub_group.as_deref().unwrap_or("") == &*group.name;
        let leaf = self.groups.iter().position(named)?;
        self.groups[leaf].children.is_empty().then_some(leaf)
    }

    /// How many of these members belong to each leaf, by index of the group.
    pub(super) fn by_leaf<'pod>(&self, pods: impl Iterator<Item = &'pod PodFacts>) -> Vec<usize> {
        let mut sums = vec![0; self.groups.len()];
        for leaf in pods.filter_map(|facts| self.leaf_of(facts)) {
            sums[leaf] += 1;
        }
        sums
    }

    /// How many members are bound or have succeeded, by leaf.
    pub(super) fn held(&self) -> Vec<usize> {
        self.by_leaf(self.bound.iter().chain(&self.succeeded).copied())
    }

    /// Whether a member of the gang belongs to a leaf that is this group or below it.
    pub(super) fn is_below(&self, facts: &PodFacts, group: usize) -> bool {
        let leaf = self.leaf_of(facts);
        group == 0 || leaf.is_some_and(|leaf| groups::path(&self.groups, leaf).any(|g| g == group))
    }
}
