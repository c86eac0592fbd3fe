//! Requests: which members are to be placed, how many of them are needed, and where.
//!
//! The gang is a tree of groups; a plain gang, without sub-groups, is a tree of one leaf.

use super::{Area, Group, Near, Refusal};
use crate::facts::{Amount, Placement};
use crate::ids::{ClassId, NodeId};
use crate::queues::QueueId;
use crate::state::ClusterState;
use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::hash::{Hash, Hasher};

/// The members that are to be placed at once, and where. Group 0 is the gang itself; parents come
/// before their children.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) groups: Vec<RequestGroup>,
    /// The queue whose limits on GPU models hold, if it has any.
    pub(crate) model_limits: Option<QueueId>,
    /// The placement of pods that ask for a GPU, and that of all others.
    pub(crate) placement: (Placement, Placement),
    /// Only nodes that are in all of these areas are used.
    pub(super) inside: Vec<Area>,
    /// Nodes with GPUs are left out: a first try for a gang that needs no GPU.
    pub(super) plain_only: bool,
}

/// One group of a request: the gang, or one of its sub-groups.
#[derive(Debug, Clone)]
pub(crate) struct RequestGroup {
    pub(crate) name: Box<str>,
    pub(crate) parent: usize,
    /// The children of which `need` are to be placed now, without those that need nothing.
    pub(crate) children: Vec<usize>,
    /// How many of the children, or of a leaf's pods, must be placed. A domain is chosen with all
    /// waiting pods in mind, not only the needed ones.
    pub(crate) need: usize,
    /// The waiting pods of a leaf by class, the class with the largest pods first.
    pub(crate) pods: Vec<Group>,
    /// Where the pods must or should be together.
    pub(crate) near: Option<Near>,
    /// The node of a member that has a place: waiting members join it in its domains.
    pub(crate) anchor: Option<NodeId>,
    /// Nodes of members that have a place, for spreading.
    pub(crate) occupied: Vec<NodeId>,
}

impl Request {
    /// Whether members of several classes, or of several groups, use volumes that others use, too:
    /// then a place of one of them may leave less to be taken by others.
    pub(super) fn shares_volumes(&self, state: &ClusterState) -> bool {
        let classes = self.classes();
        let uses = |class: &ClassId| state.classes[*class].shared.is_some();
        (classes.len() > 1 || !self.is_plain()) && classes.iter().any(uses)
    }

    pub(crate) fn new(
        groups: Vec<RequestGroup>,
        model_limits: Option<QueueId>,
        placement: (Placement, Placement),
    ) -> Self {
        Self {
            groups,
            model_limits,
            placement,
            inside: Vec::new(),
            plain_only: false,
        }
    }

    /// The gang itself.
    pub(crate) fn root(&self) -> &RequestGroup {
        &self.groups[0]
    }

    /// Whether the gang has no sub-groups.
    pub(crate) fn is_plain(&self) -> bool {
        self.groups.len() == 1
    }

    /// Brings the tables of the request's classes up to date.
    pub(crate) fn refresh(&self, state: &mut ClusterState) {
        for group in self.groups.iter().flat_map(|group| &group.pods) {
            state.refresh(group.class);
        }
    }

    /// How many pods of a plain gang wait.
    pub(super) fn members(&self) -> usize {
        self.root().pods.iter().map(|group| group.pods.len()).sum()
    }

    /// Whether any sub-group must be in one domain.
    pub(crate) fn is_nested(&self) -> bool {
        let required =
            |group: &RequestGroup| group.near.is_some_and(|near| near.required.is_some());
        self.groups.iter().skip(1).any(required)
    }

    /// Whether any sub-group must or should be in one domain.
    pub(super) fn has_wishes(&self) -> bool {
        self.groups.iter().skip(1).any(|group| group.near.is_some())
    }

    /// The leaves at or below a group that have pods to place, in the order of the tree.
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

    /// All waiting pods of a group and of the groups below it, by class.
    pub(crate) fn pods_below(&self, group: usize) -> Vec<Group> {
        let leaves = self.leaves(group).into_iter();
        merged(leaves.flat_map(|leaf| &self.groups[leaf].pods))
    }

    /// The name of a group behind the names of the sub-groups above it: `slices/a`; empty for the
    /// gang.
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

    /// The refusal, with the sub-groups named that it is about.
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

    /// A group and all groups above it, up to the gang.
    pub(crate) fn above(&self, index: usize) -> impl Iterator<Item = usize> {
        let parent = |index: &usize| (*index != 0).then(|| self.groups[*index].parent);
        core::iter::successors(Some(index), parent)
    }

    /// The lowest group that has all of these leaves at or below it.
    pub(crate) fn smallest_above(&self, leaves: &[usize]) -> usize {
        let holds = |group: usize, leaf: usize| self.above(leaf).any(|above| above == group);
        let first = leaves.first().copied().unwrap_or(0);
        let mut groups = self.above(first);
        let smallest = groups.find(|group| leaves.iter().all(|leaf| holds(*group, *leaf)));
        smallest.unwrap_or(0)
    }

    /// The classes of all waiting pods, each once.
    pub(crate) fn classes(&self) -> Vec<ClassId> {
        let mut classes: Vec<ClassId> = Vec::new();
        for leaf in self.leaves(0) {
            for group in &self.groups[leaf].pods {
                if !classes.contains(&group.class) {
                    classes.push(group.class);
                }
            }
        }
        classes
    }

    /// Whether it is certain how many pods fit on a node. Of pods with cards in several containers
    /// it is not: they are placed one after the other, and a single one is searched for a while.
    pub(crate) fn is_counted_exactly(&self, state: &ClusterState) -> bool {
        let is_alone = self.members() == 1;
        self.classes().iter().all(|class| {
            let terms = state.classes[*class].shape.card_terms.as_deref();
            terms.is_none_or(|terms| {
                terms.containers.is_empty() || is_alone && terms.is_searched_whole()
            })
        })
    }

    /// The fewest pods with which a group has what it needs.
    pub(crate) fn fewest(&self, index: usize) -> usize {
        let group = &self.groups[index];
        if group.children.is_empty() {
            return group.need;
        }
        let mut below: Vec<usize> = group.children.iter().map(|c| self.fewest(*c)).collect();
        below.sort_unstable();
        below.iter().take(group.need).sum()
    }

    /// The least that a group holds of something, whichever of its members are placed. `amount`:
    /// how much of it a pod of a class holds.
    pub(crate) fn least(&self, index: usize, amount: &impl Fn(ClassId) -> Amount) -> u128 {
        let group = &self.groups[index];
        if !group.children.is_empty() {
            let below = group.children.iter();
            let mut below: Vec<u128> = below.map(|child| self.least(*child, amount)).collect();
            below.sort_unstable();
            return below.iter().take(group.need).sum();
        }
        let pods = group.pods.iter();
        let mut amounts: Vec<(Amount, usize)> = pods
            .map(|pods| (amount(pods.class), pods.pods.len()))
            .collect();
        amounts.sort_unstable();
        let mut lacking = group.need;
        let sums = amounts.into_iter().map(|(amount, pods)| {
            let taken = pods.min(lacking);
            lacking -= taken;
            u128::from(amount) * taken as u128
        });
        sums.sum()
    }

    /// A hash of all that decides whether the needed members fit: equal for requests that ask for
    /// equal things. What only decides between places (`placement`, preferred levels) is not part
    /// of it, nor are `inside` and `plain_only`.
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

    /// The request for these pods as a plain gang, of which `need` are needed.
    pub(crate) fn flat(&self, pods: Vec<Group>, need: usize) -> Self {
        let root = self.root();
        let leaf = RequestGroup {
            name: root.name.clone(),
            parent: 0,
            children: Vec::new(),
            need,
            pods,
            near: root.near,
            anchor: root.anchor,
            occupied: root.occupied.clone(),
        };
        Self::new(Vec::from([leaf]), self.model_limits, self.placement)
    }

    pub(crate) fn placement_of(&self, state: &ClusterState, class: ClassId) -> Placement {
        if state.classes[class].accelerated {
            self.placement.0
        } else {
            self.placement.1
        }
    }

    /// Whether a node is left out because it has GPUs.
    pub(super) fn spares(&self, state: &ClusterState, node: NodeId) -> bool {
        self.plain_only && state.nodes[node].has_gpus()
    }

    /// Whether the limits on GPU models may keep one of the pods off a node: together the pods ask
    /// for more GPUs than the tightest limit leaves.
    pub(crate) fn is_limited(&self, state: &ClusterState) -> bool {
        let left = |queue| state.queues.least_model_budget(queue);
        let Some(left) = self.model_limits.and_then(left) else {
            return false;
        };
        let asked = self.groups.iter().flat_map(|group| &group.pods);
        let asked = asked.map(|group| {
            let counted = state.counted(group.class, None);
            counted.saturating_mul(group.pods.len() as u64)
        });
        asked.fold(0, Amount::saturating_add) > left
    }

    /// How many more pods of a class the limits on the node's GPU model allow; `u64::MAX` without a
    /// limit.
    pub(crate) fn model_allows(&self, state: &ClusterState, class: ClassId, node: NodeId) -> u64 {
        let Some(queue) = self.model_limits else {
            return u64::MAX;
        };
        let model = state.nodes[node]
            .known
            .as_ref()
            .and_then(|known| known.model);
        match model.and_then(|model| state.queues.budget(queue, model)) {
            Some(budget) => {
                let counted = state.counted(class, Some(node));
                budget.checked_div(counted).unwrap_or(u64::MAX)
            }
            None => u64::MAX,
        }
    }
}

/// The groups with those of equal class put together, classes in the order of their first groups.
pub(super) fn merged<'a>(groups: impl Iterator<Item = &'a Group>) -> Vec<Group> {
    let mut merged: Vec<Group> = Vec::new();
    for group in groups {
        match merged.iter_mut().find(|known| known.class == group.class) {
            Some(known) => known.pods.extend(&group.pods),
            None => merged.push(group.clone()),
        }
    }
    merged
}
