//! The tree of a gang with sub-groups, as it is placed: a request for each group, and which groups
//! may be chosen.

use super::choices::{CHOICES_MAX, selections};
use super::{Group, Near, Refusal, Request};
use crate::facts::Placement;
use crate::ids::{ClassId, NodeId, PodId};
use crate::queues::QueueId;
use alloc::{boxed::Box, collections::BTreeSet, format, string::String, vec::Vec};
use core::hash::{Hash, Hasher};

/// A gang with sub-groups. Group 0 is the gang itself; parents stand before their children.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) groups: Vec<TreeGroup>,
    /// The queue whose limits on GPU models hold, if it has any.
    pub(crate) model_limits: Option<QueueId>,
    /// For pods that ask for a GPU, and for all others.
    pub(crate) placement: (Placement, Placement),
}

/// One group of the tree.
#[derive(Debug, Clone)]
pub(crate) struct TreeGroup {
    pub(crate) name: Box<str>,
    pub(crate) parent: usize,
    /// The children of which some are to be placed now; those that need nothing are not among them.
    pub(crate) children: Vec<usize>,
    /// How many of the children, or of a leaf's pods.
    pub(crate) need: usize,
    /// The pods of a leaf that wait, by class, the largest class first.
    pub(crate) pods: Vec<Group>,
    /// Where they must or should be together.
    pub(crate) near: Option<Near>,
    /// The node of a member that has a place: the others join it.
    pub(crate) anchor: Option<NodeId>,
    /// Nodes of members that have a place, for spreading.
    pub(crate) occupied: Vec<NodeId>,
}

/// Which pods of which leaves: one way to meet the needs.
pub(crate) type Choice = Vec<(usize, Vec<Group>)>;

impl Tree {
    /// Whether any group below the gang itself must be in one domain.
    pub(crate) fn is_nested(&self) -> bool {
        let required = |group: &TreeGroup| group.near.is_some_and(|near| near.required.is_some());
        self.groups.iter().skip(1).any(required)
    }

    /// Whether any group below the gang itself says where it should be.
    pub(super) fn has_wishes(&self) -> bool {
        self.groups.iter().skip(1).any(|group| group.near.is_some())
    }

    /// The leaves below a group that may be placed, in the order of the tree.
    pub(super) fn leaves(&self, group: usize) -> Vec<usize> {
        let mut leaves = Vec::new();
        let mut open = Vec::from([group]);
        while let Some(index) = open.pop() {
            let group = &self.groups[index];
            open.extend(group.children.iter().rev());
            if !group.pods.is_empty() {
                leaves.push(index);
            }
        }
        leaves
    }

    /// All waiting pods below a group by class.
    pub(crate) fn pods_below(&self, group: usize) -> Vec<Group> {
        let leaves = self.leaves(group).into_iter();
        let choice = leaves.map(|leaf| (leaf, self.groups[leaf].pods.clone()));
        merged(&choice.collect())
    }

    /// The name of a group with those of the groups above it: `slices/a`; empty for the gang.
    pub(crate) fn path(&self, mut index: usize) -> String {
        let mut path = String::new();
        while index != 0 {
            let group = &self.groups[index];
            let below = if path.is_empty() { "" } else { "/" };
            path = format!("{}{below}{path}", group.name);
            index = group.parent;
        }
        path
    }

    /// A refusal told by the sub-groups that it is about.
    pub(crate) fn told_by_sub_groups(&self, refusal: Refusal) -> Refusal {
        match refusal {
            Refusal::TooFew { class, .. } => {
                let mut leaves = self.leaves(0);
                let of_class = |group: &Group| group.class == class;
                leaves.retain(|leaf| self.groups[*leaf].pods.iter().any(of_class));
                match self.smallest_above(&leaves) {
                    0 => refusal,
                    group => Refusal::OfSubGroup {
                        path: self.path(group),
                        groups: self.pods_below(group),
                        need: self.fewest(group),
                        place: (self.groups[group].near, self.groups[group].anchor),
                        refusal: Box::new(refusal),
                    },
                }
            }
            Refusal::NotTogether { proved } if self.is_nested() => {
                let mut above = &self.groups[0];
                while let [only] = above.children.as_slice() {
                    above = &self.groups[*only];
                }
                if above.children.is_empty() {
                    return refusal;
                }
                let paths = above.children.iter().map(|child| self.path(*child));
                Refusal::SubGroupsNotTogether {
                    paths: paths.collect(),
                    need: above.need,
                    proved,
                }
            }
            other => other,
        }
    }

    /// A group and all above it.
    pub(crate) fn above(&self, index: usize) -> impl Iterator<Item = usize> {
        let parent = |index: &usize| (*index != 0).then(|| self.groups[*index].parent);
        core::iter::successors(Some(index), parent)
    }

    /// The smallest group that has all of these leaves.
    pub(crate) fn smallest_above(&self, leaves: &[usize]) -> usize {
        let holds = |group: usize, leaf: usize| self.above(leaf).any(|above| above == group);
        let first = leaves.first().copied().unwrap_or(0);
        let mut groups = self.above(first);
        let smallest = groups.find(|group| leaves.iter().all(|leaf| holds(*group, *leaf)));
        smallest.unwrap_or(0)
    }

    /// The classes of all pods that may be placed.
    pub(crate) fn classes(&self) -> Vec<ClassId> {
        let groups = self.pods_below(0).into_iter();
        groups.map(|group| group.class).collect()
    }

    /// The fewest pods that meet what a group needs.
    pub(crate) fn fewest(&self, index: usize) -> usize {
        let group = &self.groups[index];
        if group.children.is_empty() {
            return group.need;
        }
        let mut below: Vec<usize> = group.children.iter().map(|c| self.fewest(*c)).collect();
        below.sort_unstable();
        below.iter().take(group.need).sum()
    }

    /// The ways to meet the needs, those of the first children and the largest pods first, and
    /// whether these are all.
    pub(crate) fn choices(&self) -> (Vec<Choice>, bool) {
        let mut complete = true;
        let choices = self.choices_of(0, &mut complete);
        (choices, complete)
    }

    fn choices_of(&self, index: usize, complete: &mut bool) -> Vec<Choice> {
        let group = &self.groups[index];
        if group.children.is_empty() {
            return self.choices_of_leaf(index, complete);
        }
        let mut choices: Vec<Choice> = Vec::new();
        for chosen in combinations(group.children.len(), group.need) {
            let mut products: Vec<Choice> = Vec::from([Choice::new()]);
            for child in chosen {
                let below = self.choices_of(group.children[child], complete);
                products = products
                    .iter()
                    .flat_map(|product| {
                        below.iter().map(|choice| {
                            let mut both = product.clone();
                            both.extend(choice.iter().cloned());
                            both
                        })
                    })
                    .take(CHOICES_MAX + 1)
                    .collect();
            }
            choices.extend(products);
            if choices.len() > CHOICES_MAX {
                break;
            }
        }
        if choices.len() > CHOICES_MAX {
            choices.truncate(CHOICES_MAX);
            *complete = false;
        }
        choices
    }

    fn choices_of_leaf(&self, index: usize, complete: &mut bool) -> Vec<Choice> {
        let group = &self.groups[index];
        let sizes: Vec<usize> = group.pods.iter().map(|group| group.pods.len()).collect();
        let (ways, all) = selections(&sizes, group.need);
        *complete &= all;
        let choice = |taken: Vec<usize>| -> Choice {
            let classes = group.pods.iter().zip(taken).filter(|(_, taken)| *taken > 0);
            let taken = classes.map(|(class, taken)| Group {
                class: class.class,
                pods: class.pods[..taken].to_vec(),
            });
            Vec::from([(index, taken.collect())])
        };
        ways.into_iter().map(choice).collect()
    }

    /// The tree in which exactly the pods of a choice are to be placed.
    pub(crate) fn chosen(&self, choice: &Choice) -> Self {
        let mut tree = self.clone();
        let mut keep: BTreeSet<usize> = BTreeSet::from([0]);
        for group in &mut tree.groups {
            group.pods.clear();
        }
        for (leaf, pods) in choice {
            tree.groups[*leaf].pods.clone_from(pods);
            tree.groups[*leaf].need = pods.iter().map(|group| group.pods.len()).sum();
            let mut next = *leaf;
            while keep.insert(next) {
                next = tree.groups[next].parent;
            }
        }
        for group in &mut tree.groups {
            group.children.retain(|child| keep.contains(child));
            if !group.children.is_empty() {
                group.need = group.children.len();
            }
        }
        tree
    }

    /// A number that is the same for trees that ask for the same.
    pub(super) fn signature(&self) -> u64 {
        let mut hasher = rustc_hash::FxHasher::default();
        self.model_limits.hash(&mut hasher);
        for group in &self.groups {
            let near = group.near.map(|near| (near.topology, near.required));
            (group.parent, &group.children, group.need).hash(&mut hasher);
            (near, group.anchor).hash(&mut hasher);
            for pods in &group.pods {
                (pods.class, &pods.pods).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// The request for these pods, wherever the gang itself may be.
    pub(crate) fn flat(&self, groups: Vec<Group>, need: usize) -> Request {
        let root = &self.groups[0];
        Request {
            groups,
            need,
            near: root.near,
            anchor: root.anchor,
            inside: Vec::new(),
            plain_only: false,
            model_limits: self.model_limits,
            placement: self.placement,
            occupied: root.occupied.clone(),
        }
    }
}

/// The pods of a choice by class, classes in the order in which they first come.
pub(crate) fn merged(choice: &Choice) -> Vec<Group> {
    let mut merged: Vec<Group> = Vec::new();
    for group in choice.iter().flat_map(|(_, pods)| pods) {
        match merged.iter_mut().find(|known| known.class == group.class) {
            Some(known) => known.pods.extend(&group.pods),
            None => merged.push(group.clone()),
        }
    }
    merged
}

/// How many pods of each class, sorted: what two choices have in common that need the same room.
pub(super) fn sizes(groups: &[Group]) -> Vec<(ClassId, usize)> {
    let mut sizes: Vec<(ClassId, usize)> = groups
        .iter()
        .map(|group| (group.class, group.pods.len()))
        .collect();
    sizes.sort_unstable();
    sizes
}

/// All pods of a choice.
pub(crate) fn pods_of(choice: &Choice) -> impl Iterator<Item = PodId> {
    let groups = choice.iter().flat_map(|(_, groups)| groups);
    groups.flat_map(|group| group.pods.iter().copied())
}

/// All ways to take `take` of `of` things in order, the first things first; a few more than
/// [`CHOICES_MAX`] at most.
pub(super) fn combinations(of: usize, take: usize) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    if take > of {
        return found;
    }
    let mut taken: Vec<usize> = (0..take).collect();
    loop {
        found.push(taken.clone());
        if found.len() > CHOICES_MAX {
            return found;
        }
        // The last that can move on does, and those behind it follow.
        let Some(position) = (0..take).rev().find(|p| taken[*p] < of - take + *p) else {
            return found;
        };
        taken[position] += 1;
        for next in position + 1..take {
            taken[next] = taken[next - 1] + 1;
        }
    }
}
