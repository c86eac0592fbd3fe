//! A gang and its sub-groups, as the PodGroup describes them.

use crate::scenario::LEVELS;
use gpu_batch_policies::facts::{
    NodeFacts, PodGroupFacts, SubGroupFacts, TopologyConstraint, label,
};

/// A sub-group, or the gang itself, which is the first group and has no name.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) name: Box<str>,
    /// Index of the group above; of the gang itself 0.
    parent: usize,
    pub(crate) children: Vec<usize>,
    /// Of a leaf: how many pods; of other groups: how many children.
    pub(crate) minimum: usize,
    pub(crate) required: Option<Required>,
}

/// A required domain: all members must be on nodes that agree on these labels, which go from the
/// top level down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Required {
    topology: Box<str>,
    labels: Vec<Box<str>>,
}

/// The groups of a gang without sub-groups.
pub(super) fn without_sub_groups(minimum: usize) -> Vec<Group> {
    vec![Group {
        minimum,
        ..Group::default()
    }]
}

/// The groups of a PodGroup.
pub(super) fn of(facts: &PodGroupFacts) -> Vec<Group> {
    let mut groups = without_sub_groups(facts.minimum as usize);
    let by_label = facts.required_label.as_ref().map(|label| Required {
        topology: "".into(),
        labels: vec![label.clone()],
    });
    groups[0].required = facts.topology.as_ref().and_then(required).or(by_label);
    let entries = &facts.sub_groups;
    let position = |name: &str| entries.iter().position(|entry| *entry.name == *name);
    for entry in entries {
        groups.push(Group {
            name: entry.name.clone(),
            parent: position(&entry.parent).map_or(0, |parent| parent + 1),
            children: Vec::new(),
            minimum: 0,
            required: entry.topology.as_ref().and_then(required),
        });
    }
    for child in 1..groups.len() {
        let parent = groups[child].parent;
        groups[parent].children.push(child);
    }
    for (index, group) in groups.iter_mut().enumerate() {
        let entry = index.checked_sub(1).map(|index| &entries[index]);
        let given = match entry {
            None if group.children.is_empty() => continue,
            None => facts.min_sub_groups,
            Some(SubGroupFacts { min_member, .. }) if group.children.is_empty() => {
                Some(min_member.unwrap_or(1))
            }
            Some(SubGroupFacts { min_sub_groups, .. }) => *min_sub_groups,
        };
        group.minimum = given.map_or(group.children.len(), |minimum| minimum as usize);
    }
    groups
}

fn required(request: &TopologyConstraint) -> Option<Required> {
    let topology = request.name.as_deref().unwrap_or("default");
    let levels = match topology {
        "zones" => &LEVELS[..1],
        _ => &LEVELS[..],
    };
    let required = request.required.as_deref()?;
    let mut labels: Vec<Box<str>> = levels.iter().map(|level| (*level).into()).collect();
    match levels.iter().position(|level| *level == required) {
        Some(depth) => labels.truncate(depth + 1),
        None => labels.push("kubernetes.io/hostname".into()),
    }
    Some(Required {
        topology: topology.into(),
        labels,
    })
}

impl Required {
    /// The domain that a node is in. A node without one of the labels is a domain of its own.
    pub(crate) fn domain(&self, node: &NodeFacts) -> Vec<String> {
        let labels = self.labels.iter().map(|key| {
            let value = label(&node.labels, key).map(ToOwned::to_owned);
            value.unwrap_or_else(|| format!("alone:{}", node.name))
        });
        labels.collect()
    }
}

/// A group and all above it, the gang itself last.
pub(crate) fn path(groups: &[Group], group: usize) -> impl Iterator<Item = usize> {
    let parent = |index: &usize| (*index != 0).then(|| groups[*index].parent);
    std::iter::successors(Some(group), parent)
}

/// Whether a group has its minimum with so many members, by leaf.
pub(crate) fn is_met(groups: &[Group], index: usize, held: &[usize]) -> bool {
    let group = &groups[index];
    if group.children.is_empty() {
        return held[index] >= group.minimum;
    }
    let met = group.children.iter().filter(|c| is_met(groups, **c, held));
    met.count() >= group.minimum
}

/// Whether a sub-group requires a domain that is wider than the domain of a group above it.
pub(crate) fn contradict(groups: &[Group]) -> bool {
    let wider = |index: usize| {
        let own = groups[index].required.as_ref()?;
        let above = path(groups, index).skip(1);
        let mut above = above.filter_map(|above| groups[above].required.as_ref());
        above.find(|above| above.topology == own.topology && above.labels.len() > own.labels.len())
    };
    (1..groups.len()).any(|index| wider(index).is_some())
}
