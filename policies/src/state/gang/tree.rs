//! Sub-groups: a tree of roles or slices with a minimum at each level.

use crate::facts::{PodGroupFacts, Problem, SubGroupFacts, TopologyConstraint};
use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

/// How many sub-groups a gang may have.
const SUB_GROUPS_MAX: usize = 128;
/// How many levels of sub-groups there may be below the gang.
const DEPTH_MAX: usize = 16;

/// The sub-groups of a gang. Group 0 is the gang itself; parents stand before their children.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GroupTree {
    groups: Vec<SubGroup>,
    by_name: BTreeMap<Box<str>, usize>,
}

/// One group of the tree: a leaf, which has pods, or one with children.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SubGroup {
    /// Empty for the gang itself.
    pub(crate) name: Box<str>,
    /// The index of the group above; 0 for the gang itself.
    pub(crate) parent: usize,
    depth: usize,
    /// The indexes of the groups directly below, in the order of the spec.
    pub(crate) children: Vec<usize>,
    /// The minimum: of pods in a leaf, of direct children in other groups.
    pub(crate) minimum: u32,
    /// Where the group must or should be; `None` for the gang itself, whose constraint is in its
    /// spec.
    pub(crate) topology: Option<TopologyConstraint>,
}

impl GroupTree {
    /// The tree that a PodGroup describes; `None` if it has no sub-groups.
    ///
    /// # Errors
    /// The first field that contradicts another.
    pub(crate) fn of(facts: &PodGroupFacts) -> Result<Option<Self>, Problem> {
        let entries = &facts.sub_groups;
        if entries.is_empty() {
            return match facts.min_sub_groups {
                Some(_) => Err(problem("spec.minSubGroups", "there are no subGroups")),
                None => Ok(None),
            };
        }
        if facts.minimum != 1 {
            let message = "does not go with subGroups";
            return Err(problem("spec.minMember", message));
        }
        if entries.len() > SUB_GROUPS_MAX {
            let message = format!("has {} entries, more than {SUB_GROUPS_MAX}", entries.len());
            return Err(problem("spec.subGroups", message));
        }
        check_names(entries)?;
        let mut tree = Self::linked(entries)?;
        tree.set_minima(facts)?;
        Ok(Some(tree))
    }

    /// The groups in the order of the tree, each with its children; minima are not set yet.
    fn linked(entries: &[SubGroupFacts]) -> Result<Self, Problem> {
        let root = SubGroup {
            name: "".into(),
            parent: 0,
            depth: 0,
            children: Vec::new(),
            minimum: 0,
            topology: None,
        };
        let mut tree = Self {
            groups: Vec::from([root]),
            by_name: BTreeMap::new(),
        };
        let mut children: BTreeMap<&str, Vec<(usize, &SubGroupFacts)>> = BTreeMap::new();
        for (position, entry) in entries.iter().enumerate() {
            let siblings = children.entry(&entry.parent).or_default();
            siblings.push((position, entry));
        }
        let mut next = 0;
        while let Some(parent) = tree.groups.get(next) {
            let depth = parent.depth + 1;
            let below = children.remove(&*parent.name).unwrap_or_default();
            for (position, entry) in below {
                if depth > DEPTH_MAX {
                    let message = format!("is more than {DEPTH_MAX} levels below the PodGroup");
                    return Err(field(position, "parent", message));
                }
                let group = tree.groups.len();
                tree.groups[next].children.push(group);
                tree.by_name.insert(entry.name.clone(), group);
                tree.groups.push(SubGroup {
                    name: entry.name.clone(),
                    parent: next,
                    depth,
                    children: Vec::new(),
                    minimum: 0,
                    topology: entry.topology.clone(),
                });
            }
            next += 1;
        }
        // A sub-group that cannot be reached from the top is in a cycle, or below one.
        let lost = children.values().flatten().map(|(position, _)| *position);
        match lost.min() {
            Some(position) => Err(field(position, "parent", "makes a cycle")),
            None => Ok(tree),
        }
    }

    fn set_minima(&mut self, facts: &PodGroupFacts) -> Result<(), Problem> {
        let all = self.groups[0].children.len();
        self.groups[0].minimum = at_most(all, facts.min_sub_groups)
            .map_err(|message| problem("spec.minSubGroups", message))?;
        for (position, entry) in facts.sub_groups.iter().enumerate() {
            let group = &mut self.groups[self.by_name[&entry.name]];
            if group.children.is_empty() {
                if entry.min_sub_groups.is_some() {
                    return Err(field(position, "minSubGroups", "it has no children"));
                }
                // tests plant bugs here: minimum-of-a-sub-group
                group.minimum = entry.min_member.unwrap_or(1);
            } else {
                if entry.min_member.is_some() {
                    let message = "is only for subGroups without children";
                    return Err(field(position, "minMember", message));
                }
                group.minimum = at_most(group.children.len(), entry.min_sub_groups)
                    .map_err(|message| field(position, "minSubGroups", message))?;
            }
        }
        Ok(())
    }

    /// A copy of the tree with other minima of some groups.
    pub(crate) fn with_minima(&self, minima: &BTreeMap<usize, u32>) -> Self {
        let mut tree = self.clone();
        for (group, minimum) in minima {
            tree.groups[*group].minimum = *minimum;
        }
        tree
    }

    /// How many groups there are, the gang itself included.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn group(&self, group: usize) -> &SubGroup {
        &self.groups[group]
    }

    /// All groups, parents before children.
    pub(crate) fn groups(&self) -> impl DoubleEndedIterator<Item = (usize, &SubGroup)> {
        self.groups.iter().enumerate()
    }

    /// The index of the leaf with this name.
    pub(crate) fn leaf(&self, name: &str) -> Option<usize> {
        let group = *self.by_name.get(name)?;
        self.groups[group].is_leaf().then_some(group)
    }

    /// How many more pods each group needs at least, if the leaves hold these numbers of pods. Both
    /// lists are by group.
    pub(crate) fn needs(&self, held: &[u32]) -> Vec<u32> {
        let mut needs = Vec::from_iter(core::iter::repeat_n(0, self.len()));
        for (index, group) in self.groups().rev() {
            needs[index] = if group.is_leaf() {
                group.minimum.saturating_sub(held[index])
            } else {
                let mut below: Vec<u32> = group.children.iter().map(|c| needs[*c]).collect();
                below.sort_unstable();
                let fewest = below.iter().take(group.minimum as usize);
                fewest.fold(0, |sum, need| sum.saturating_add(*need))
            };
        }
        needs
    }

    /// Whether pods in these numbers, by leaf, meet the minima of every level that counts.
    pub(crate) fn is_met(&self, held: &[u32]) -> bool {
        self.needs(held)[0] == 0
    }

    /// The fewest pods with which the gang has its minimum.
    pub(crate) fn fewest(&self) -> u32 {
        let none = Vec::from_iter(core::iter::repeat_n(0, self.len()));
        self.needs(&none)[0]
    }

    /// A group and all above it, up to the gang itself.
    pub(crate) fn path(&self, group: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(Some(group), |group| {
            (*group != 0).then(|| self.groups[*group].parent)
        })
    }

    /// Whether `group` is `above` or somewhere below it.
    pub(crate) fn is_below(&self, group: usize, above: usize) -> bool {
        self.path(group).any(|group| group == above)
    }
}

impl SubGroup {
    pub(crate) fn is_leaf(&self) -> bool {
        self.children.is_empty() && !self.name.is_empty()
    }
}

fn check_names(entries: &[SubGroupFacts]) -> Result<(), Problem> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, entry) in entries.iter().enumerate() {
        if entry.name.is_empty() {
            return Err(field(position, "name", "is missing"));
        }
        if let Some(first) = known.insert(&entry.name, position) {
            let message = format!("is the name of subGroups[{first}], too");
            return Err(field(position, "name", message));
        }
    }
    for (position, entry) in entries.iter().enumerate() {
        if !entry.parent.is_empty() && !known.contains_key(&*entry.parent) {
            let message = format!("there is no sub-group {:?}", entry.parent);
            return Err(field(position, "parent", message));
        }
    }
    Ok(())
}

/// The minimum of a group with a number of direct children: all of them, unless fewer are given.
fn at_most(children: usize, minimum: Option<u32>) -> Result<u32, String> {
    let all = u32::try_from(children).unwrap_or(u32::MAX);
    match minimum {
        None => Ok(all),
        Some(minimum) if minimum <= all => Ok(minimum),
        Some(minimum) => Err(format!("{minimum} is more than its {all} direct children")),
    }
}

fn field(position: usize, name: &str, message: impl ToString) -> Problem {
    problem(&format!("spec.subGroups[{position}].{name}"), message)
}

fn problem(field: &str, message: impl ToString) -> Problem {
    Problem {
        field: field.into(),
        message: message.to_string().into(),
    }
}

#[cfg(test)]
mod tests;
