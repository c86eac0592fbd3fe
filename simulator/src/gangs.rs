//! Which pods belong to which gang, worked out from the objects alone.

mod groups;

pub(crate) use groups::{Group, contradict, is_met, path};

use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{GroupSource, PodFacts, PodGroupFacts, Uid};
use std::collections::BTreeMap;

/// A gang at rest.
#[derive(Debug, Default)]
pub(crate) struct Gang<'world> {
    /// The name of the gang, as in the engine's reports.
    pub(crate) name: String,
    /// The gang itself and its sub-groups.
    pub(crate) groups: Vec<Group>,
    pub(crate) queue: Box<str>,
    /// Whether the PodGroup's spec was changed.
    pub(crate) changed: bool,
    pub(crate) never_stale: bool,
    /// Whether the gang is not preemptible, and so must stay within quota.
    pub(crate) protected: bool,
    pub(crate) priority: i32,
    /// Whether the PodGroup that the members name does not exist.
    pub(crate) unknown: bool,
    pub(crate) bound: Vec<&'world PodFacts>,
    /// Members on nodes that are being deleted: they do not count for the minimum, and still hold
    /// their room.
    pub(crate) leaving: Vec<&'world PodFacts>,
    pub(crate) waiting: Vec<&'world PodFacts>,
    pub(crate) succeeded: Vec<&'world PodFacts>,
    /// Members that succeeded and were cleaned away.
    pub(crate) done: Vec<&'world PodFacts>,
}

/// The gangs of the pods among these objects, by name. `done`: pods that succeeded and were cleaned
/// away.
pub(crate) fn gangs_of<'world>(
    objects: impl Iterator<Item = &'world Object>,
    done: &'world [PodFacts],
) -> Vec<Gang<'world>> {
    let mut described = Described::default();
    let mut pods: Vec<&PodFacts> = Vec::new();
    for object in objects {
        match object {
            Object::PodGroup(facts) => {
                let key = (facts.source, &*facts.name);
                described.groups.insert(key, facts);
            }
            Object::Job(facts) if facts.indexed && facts.parallelism > 1 => {
                described.jobs.insert(facts.uid, facts.parallelism);
            }
            Object::PriorityClass(facts) => {
                described.priorities.insert(&facts.name, facts.value);
            }
            Object::Pod(facts) if facts.ours => pods.push(facts),
            _ => {}
        }
    }
    let mut gangs: BTreeMap<String, Gang<'_>> = BTreeMap::new();
    for facts in pods {
        let (name, gang) = described.gang_of(facts);
        let gang = gangs.entry(name.clone()).or_insert(gang);
        gang.name = name;
        if facts.phase == gpu_batch_policies::facts::PodPhase::Succeeded {
            gang.succeeded.push(facts);
        } else if facts.phase.ended() {
            // A failed pod does not count and holds no room.
        } else if facts.deletion_ms.is_some() {
            gang.leaving.extend(facts.node.is_some().then_some(facts));
        } else if facts.node.is_some() {
            gang.bound.push(facts);
        } else {
            gang.waiting.push(facts);
        }
    }
    for facts in done.iter().filter(|facts| facts.ours) {
        let (name, _) = described.gang_of(facts);
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

/// What describes gangs beside their pods.
#[derive(Debug, Default)]
struct Described<'world> {
    groups: BTreeMap<(GroupSource, &'world str), &'world PodGroupFacts>,
    /// The parallelism of Jobs that are gangs.
    jobs: BTreeMap<Uid, u32>,
    priorities: BTreeMap<&'world str, i32>,
}

impl<'world> Described<'world> {
    /// The gang that a pod is a member of, without members, and its name.
    fn gang_of(&self, facts: &PodFacts) -> (String, Gang<'world>) {
        let namespace = &facts.namespace;
        let own_queue = facts.queue.clone().unwrap_or_else(|| "default".into());
        let alone = Gang {
            groups: groups::without_sub_groups(1),
            queue: own_queue,
            priority: facts.priority,
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
            let Some(group) = self.groups.get(&(source, &**name)) else {
                let unknown = true;
                return (format!("{namespace}/{name}"), Gang { unknown, ..alone });
            };
            return (format!("{namespace}/{name}"), self.of_group(group));
        }
        let Some(owner) = &facts.owner else {
            return (format!("{namespace}/pod/{}", facts.name), alone);
        };
        let minimum = facts.hints.min_member.filter(|minimum| *minimum > 1);
        let Some(minimum) = minimum.or(self.jobs.get(&owner.uid).copied()) else {
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

    fn of_group(&self, group: &PodGroupFacts) -> Gang<'world> {
        let class = group.priority_class.as_deref();
        let of_class = || class.and_then(|class| self.priorities.get(class)).copied();
        Gang {
            groups: groups::of(group),
            queue: group.queue.clone().unwrap_or_else(|| "default".into()),
            changed: group.generation > 1,
            never_stale: group.staleness_grace_ms.is_some_and(|grace| grace < 0),
            protected: group.preemptible == Some(false),
            priority: group.priority.or_else(of_class).unwrap_or(0),
            ..Gang::default()
        }
    }
}

impl Gang<'_> {
    /// The leaf that a member belongs to; `None`: the member names no leaf.
    pub(crate) fn leaf_of(&self, facts: &PodFacts) -> Option<usize> {
        let named = |group: &Group| facts.sub_group.as_deref().unwrap_or("") == &*group.name;
        let leaf = self.groups.iter().position(named)?;
        self.groups[leaf].children.is_empty().then_some(leaf)
    }

    /// How many of these members belong to each leaf, by index of the group.
    pub(crate) fn by_leaf<'pod>(&self, pods: impl Iterator<Item = &'pod PodFacts>) -> Vec<usize> {
        let mut sums = vec![0; self.groups.len()];
        for leaf in pods.filter_map(|facts| self.leaf_of(facts)) {
            sums[leaf] += 1;
        }
        sums
    }

    /// How many members are bound or have succeeded, by leaf.
    pub(crate) fn held(&self) -> Vec<usize> {
        self.by_leaf(self.bound.iter().chain(&self.succeeded).copied())
    }

    /// Whether a member of the gang belongs to a leaf that is this group or below it.
    pub(crate) fn is_below(&self, facts: &PodFacts, group: usize) -> bool {
        let leaf = self.leaf_of(facts);
        group == 0 || leaf.is_some_and(|leaf| path(&self.groups, leaf).any(|g| g == group))
    }
}
