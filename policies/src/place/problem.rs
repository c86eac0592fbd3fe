//! A part of the cluster and what is to be placed in it, as plain numbers.
//!
//! The exact methods work on this copy. So they can stop and go on, and they change nothing in the
//! state before they have found an answer.

use super::Area;
use super::domains::nodes_of;
use super::request::{Request, RequestGroup};
use crate::facts::Amount;
use crate::ids::{ClassId, Id, NodeId, PodId, ResourceId};
use crate::state::ClusterState;
use crate::state::exclusive::Exclusive;
use crate::topology::Level;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::cmp::Reverse;

/// Stands for the domain of a node that counts as part of every domain, see
/// [`Problem::leaving_out`].
pub(super) const ANY_DOMAIN: u32 = u32::MAX - 1;

/// A placement problem as numbers: nodes, free amounts, shapes and groups.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    /// The nodes, in the order in which they are tried.
    pub(super) nodes: Vec<NodeId>,
    /// How many amounts describe what a node has free, and what a pod takes.
    pub(super) dimensions: usize,
    /// The free amounts, `dimensions` of them for each node, node by node.
    pub(super) free: Vec<Amount>,
    /// By node, the number of its kind. Nodes of one kind differ only in their free amounts.
    pub(super) kinds: Vec<u32>,
    /// By node, the entry of its GPU model in `budgets`, if the queue has a limit on that model.
    pub(super) models: Vec<Option<usize>>,
    /// How much more of each limited model the queue may use, in thousandths of a card.
    pub(super) budgets: Vec<Amount>,
    pub(super) shapes: Vec<Shape>,
    pub(super) steps: Vec<Step>,
    pub(super) groups: Vec<Rule>,
    /// Whether the numbers say everything. If not (fractions of cards), what fits by the numbers
    /// may not fit in truth; what does not fit by the numbers never does.
    pub(super) exact: bool,
}

/// All pods of one class.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) class: ClassId,
    pub(super) amounts: Vec<Amount>,
    /// By node: whether one pod fits before any member is placed.
    pub(super) eligible: Vec<bool>,
    /// By node: what one pod counts for under limits on GPU models, in thousandths of a card; empty
    /// where there are no such limits.
    pub(super) counted: Vec<Amount>,
}

/// One decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Whether a group is placed whose parent does not need all its children. `end`: the first step
    /// after those of the group.
    Enter { group: usize, end: usize },
    /// Where a pod goes.
    Member {
        leaf: usize,
        shape: usize,
        pod: PodId,
    },
}

/// The rule of a group.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) parent: usize,
    /// How many of its children (of a leaf: pods) are needed, and how many there are.
    pub(super) need: usize,
    pub(super) offered: usize,
    /// By node, the number of its domain (`u32::MAX`: in no domain), if all pods of the group must
    /// be in one domain.
    pub(super) domains: Option<Vec<u32>>,
    /// The domain in which members of the group already have places.
    pub(super) fixed: Option<u32>,
    /// An earlier leaf under its parent that asks for exactly what this leaf asks for.
    pub(super) twin: Option<usize>,
    /// The first step after those of the group.
    pub(super) end: usize,
}

/// The result of an exact method after a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SliceResult {
    /// The members fit: each with its node.
    Found(Vec<(PodId, NodeId)>),
    /// It is proved that the members do not fit.
    Impossible,
    /// Not known yet.
    Unfinished,
}

/// A host port or a disk as an amount: how much a node has of it. Any number of pods may read a
/// disk, each with one part of it.
fn whole(one: &Exclusive) -> Amount {
    match one {
        Exclusive::Port(_) => 1,
        Exclusive::Disk(_) => 1 << 32,
    }
}

/// How much of a port or a disk a pod takes with what it has.
fn part_of(own: &Exclusive, wanted: &Exclusive) -> Amount {
    let takes = match own {
        // A port on all addresses takes that port on each single address, too.
        Exclusive::Port(port) => {
            own == wanted || (port.host_ip.is_empty() && own.conflicts(wanted))
        }
        Exclusive::Disk(_) => is_one_disk(own, wanted),
    };
    match own {
        _ if !takes => 0,
        Exclusive::Disk(disk) if disk.read_only => 1,
        _ => whole(wanted),
    }
}

/// Whether both are one disk, whoever only reads it.
fn is_one_disk(one: &Exclusive, other: &Exclusive) -> bool {
    match (one, other) {
        (Exclusive::Disk(one), Exclusive::Disk(other)) => one.name == other.name,
        _ => false,
    }
}

impl Problem {
    /// The problem of placing what a request needs in an area.
    pub(super) fn of(state: &mut ClusterState, tree: &Request, area: Area) -> Self {
        let classes = tree.classes();
        tree.refresh(state);
        let nodes = useful_nodes(state, &classes, tree, area);
        let mut problem = Self {
            dimensions: 0,
            free: Vec::new(),
            kinds: Vec::new(),
            models: Vec::new(),
            budgets: Vec::new(),
            shapes: Vec::new(),
            steps: Vec::new(),
            groups: Vec::new(),
            exact: true,
            nodes,
        };
        problem.measure(state, &classes);
        problem.limit(state, tree);
        problem.rule(state, tree);
        problem.enter(tree, 0);
        problem.classify();
        problem
    }

    /// Fills in the amounts that nodes have free and pods take: of resources, host ports, disks and
    /// cards.
    fn measure(&mut self, state: &ClusterState, classes: &[ClassId]) {
        let mut resources: BTreeSet<ResourceId> = BTreeSet::new();
        let mut exclusive: Vec<Exclusive> = Vec::new();
        for class in classes {
            let class = &state.classes[*class];
            resources.extend(class.requests.iter().map(|(id, _)| *id));
            for one in &class.exclusive {
                let is_known = |known: &Exclusive| known == one || is_one_disk(known, one);
                if !exclusive.iter().any(is_known) {
                    exclusive.push(one.clone());
                }
            }
        }
        let cards = Cards::of(state, classes, &self.nodes);
        let aligns = |node: &NodeId| state.nodes[*node].cells.is_some();
        let is_aligned = self.nodes.iter().any(aligns);
        // Each pod counts a volume that others use, too: more than it may take.
        let shares = |class: &ClassId| state.classes[*class].shared.is_some();
        let is_shared = classes.iter().any(shares);
        self.exact = !is_aligned && !is_shared && cards.as_ref().is_none_or(|cards| cards.exact);
        self.dimensions = resources.len() + exclusive.len() + usize::from(cards.is_some());
        for node in &self.nodes {
            let node = &state.nodes[*node];
            self.free.extend(resources.iter().map(|id| node.free(*id)));
            self.free.extend(exclusive.iter().map(whole));
            if let Some(cards) = &cards {
                self.free.push(cards.free(node));
            }
        }
        for id in classes {
            let class = &state.classes[*id];
            let amount = |resource| crate::resources::amount_of(&class.requests, resource);
            let mut amounts: Vec<Amount> = resources.iter().map(|id| amount(*id)).collect();
            amounts.extend(exclusive.iter().map(|one| {
                let takes = class.exclusive.iter().map(|own| part_of(own, one));
                takes.max().unwrap_or(0)
            }));
            if cards.is_some() {
                amounts.push(class.cards.map_or(0, |_| class.scarcest()));
            }
            let fits = |node: &NodeId| state.fits_on(*id, *node) > 0;
            self.shapes.push(Shape {
                class: *id,
                amounts,
                eligible: self.nodes.iter().map(fits).collect(),
                counted: Vec::new(),
            });
        }
    }

    /// Fills in what the limits on GPU models leave.
    fn limit(&mut self, state: &ClusterState, request: &Request) {
        self.models.resize(self.nodes.len(), None);
        let Some(queue) = request.model_limits else {
            return;
        };
        for shape in &mut self.shapes {
            let counted = |node: &NodeId| state.counted(shape.class, Some(*node));
            shape.counted = self.nodes.iter().map(counted).collect();
        }
        let mut known: BTreeMap<crate::queues::GovernedId, usize> = BTreeMap::new();
        for (position, node) in self.nodes.iter().enumerate() {
            let facts = state.nodes[*node].known.as_ref();
            let Some(model) = facts.and_then(|known| known.model) else {
                continue;
            };
            let Some(budget) = state.queues.budget(queue, model) else {
                continue;
            };
            let entry = *known.entry(model).or_insert_with(|| {
                self.budgets.push(budget);
                self.budgets.len() - 1
            });
            self.models[position] = Some(entry);
        }
    }

    /// Fills in the rules of all groups. The gang itself has no domains in its rule: the area is
    /// the domain that it must be in.
    fn rule(&mut self, state: &ClusterState, tree: &Request) {
        for (index, group) in tree.groups.iter().enumerate() {
            let near = group.near.filter(|_| index > 0);
            let required = near.and_then(|near| Some((near.topology, near.required?)));
            let domain = |node: NodeId| -> u32 {
                let Some((topology, level)) = required else {
                    return 0;
                };
                let domain = match level {
                    Level::Node => Some(node.index()),
                    Level::Domain(level) => {
                        let path = state.topologies[topology].path(node);
                        path.get(level).map(|domain| domain.index())
                    }
                };
                domain.map_or(u32::MAX, |domain| u32::try_from(domain).unwrap_or(u32::MAX))
            };
            let fixed = group.anchor.filter(|_| required.is_some()).map(domain);
            let domains = required.map(|_| self.nodes.iter().map(|node| domain(*node)).collect());
            let children = group.children.len();
            let pods = group.pods.iter().map(|group| group.pods.len()).sum();
            self.groups.push(Rule {
                parent: group.parent,
                need: group.need,
                offered: if children > 0 { children } else { pods },
                domains,
                fixed,
                twin: twin(tree, index),
                end: 0,
            });
        }
    }

    /// Appends the steps of a group and of all groups below it.
    fn enter(&mut self, tree: &Request, index: usize) {
        let group = &tree.groups[index];
        let parent = &self.groups[group.parent];
        let optional = index > 0 && parent.offered > parent.need;
        let entry = self.steps.len();
        if optional {
            let group = index;
            self.steps.push(Step::Enter { group, end: 0 });
        }
        for pods in &group.pods {
            let shape = self.shapes.iter().position(|s| s.class == pods.class);
            let Some(shape) = shape else { continue };
            let members = pods.pods.iter().map(|pod| Step::Member {
                leaf: index,
                shape,
                pod: *pod,
            });
            self.steps.extend(members);
        }
        for child in &group.children {
            self.enter(tree, *child);
        }
        let behind = self.steps.len();
        self.groups[index].end = behind;
        if optional && let Step::Enter { end, .. } = &mut self.steps[entry] {
            *end = behind;
        }
    }

    /// Puts nodes that differ only in their free amounts into one kind.
    fn classify(&mut self) {
        let mut kinds: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
        for node in 0..self.nodes.len() {
            let mut key: Vec<u64> = Vec::new();
            key.extend(self.shapes.iter().map(|s| u64::from(s.eligible[node])));
            if let Some(model) = self.models[node] {
                key.push(model as u64);
                key.extend(self.shapes.iter().map(|shape| shape.counted[node]));
            }
            let rules = self.groups.iter().filter_map(|rule| rule.domains.as_ref());
            key.extend(rules.map(|domains| u64::from(domains[node])));
            let next = u32::try_from(kinds.len()).unwrap_or(u32::MAX);
            self.kinds.push(*kinds.entry(key).or_insert(next));
        }
    }

    /// A copy of the problem with one more node, the last, that takes any `pods` pods and counts as
    /// part of every domain. A pod on it has no place: the node is [`nowhere`].
    pub(super) fn leaving_out(&self, pods: usize) -> Self {
        let mut problem = self.clone();
        let rows = (0..self.nodes.len()).map(|node| Self::row(&self.free, self.dimensions, node));
        // One more amount, of which each pod takes 1: only on the new node is it limited.
        let mut free: Vec<Amount> = Vec::with_capacity(self.free.len() + self.nodes.len());
        for row in rows {
            free.extend(row);
            free.push(Amount::MAX);
        }
        free.extend((0..self.dimensions).map(|_| Amount::MAX));
        free.push(pods as u64);
        problem.free = free;
        problem.dimensions += 1;
        for shape in &mut problem.shapes {
            shape.amounts.push(1);
            shape.eligible.push(true);
        }
        for rule in &mut problem.groups {
            if let Some(domains) = &mut rule.domains {
                domains.push(ANY_DOMAIN);
            }
        }
        problem.nodes.push(nowhere());
        problem.models.push(None);
        let kinds = problem.kinds.iter().max().map_or(0, |most| most + 1);
        problem.kinds.push(kinds);
        problem
    }

    /// The part of `free` that belongs to a node.
    pub(super) fn row(free: &[Amount], dimensions: usize, node: usize) -> &[Amount] {
        &free[node * dimensions..(node + 1) * dimensions]
    }
}

/// Whether one more pod that takes `amounts` fits into what is left.
pub(super) fn has(left: &[Amount], amounts: &[Amount]) -> bool {
    left.iter()
        .zip(amounts)
        .all(|(left, amount)| amount <= left)
}

/// How many pods that take `amounts` each fit into what is left, up to `most`.
pub(super) fn fits(left: &[Amount], amounts: &[Amount], most: usize) -> u32 {
    let all = u64::try_from(most).unwrap_or(u64::MAX);
    let asked = left.iter().zip(amounts).filter(|(_, amount)| **amount > 0);
    let fewest = asked.fold(all, |fewest, (left, amount)| {
        // Often the bound so far holds for this amount, too: comparing is cheaper than dividing.
        if *left < amount.saturating_mul(fewest) {
            left / amount
        } else {
            fewest
        }
    });
    u32::try_from(fewest).unwrap_or(u32::MAX)
}

/// The id of the node that stands for no place, see [`Problem::leaving_out`].
pub(super) fn nowhere() -> NodeId {
    NodeId::new(u32::MAX)
}

/// The nodes on which a pod of any of the classes fits, those with the least free first, as a
/// greedy packer would choose them.
fn useful_nodes(
    state: &ClusterState,
    classes: &[ClassId],
    request: &Request,
    area: Area,
) -> Vec<NodeId> {
    let mut nodes = nodes_of(state, request, area);
    nodes.retain(|node| classes.iter().any(|class| state.fits_on(*class, *node) > 0));
    if let Some(first) = classes.first() {
        let class = &state.classes[*first];
        let free = |node: &NodeId| state.nodes[*node].free_scarcest(class);
        nodes.sort_by_key(|node| (free(node), Reverse(state.nodes[*node].rank)));
    }
    nodes
}

/// The nearest earlier leaf under the parent of this leaf that asks for exactly what this leaf asks
/// for: by symmetry it may take the earlier nodes.
fn twin(tree: &Request, index: usize) -> Option<usize> {
    let alike = |other: &RequestGroup, group: &RequestGroup| {
        let classes = |group: &RequestGroup| -> Vec<(ClassId, usize)> {
            let pods = group.pods.iter();
            pods.map(|pods| (pods.class, pods.pods.len())).collect()
        };
        let free = |group: &RequestGroup| group.anchor.is_none() && group.children.is_empty();
        other.parent == group.parent
            && other.need == group.need
            && other.near.map(|near| (near.topology, near.required))
                == group.near.map(|near| (near.topology, near.required))
            && free(other)
            && free(group)
            && !group.pods.is_empty()
            && classes(other) == classes(group)
    };
    let group = &tree.groups[index];
    let siblings = &tree.groups[group.parent].children;
    let position = siblings.iter().position(|child| *child == index)?;
    let before = siblings[..position].iter().rev();
    before
        .copied()
        .find(|other| alike(&tree.groups[*other], group))
}

/// How cards are counted: exactly if all classes that ask for cards ask for whole cards, and for as
/// much memory of each, say nothing else of cards, and no node gives a whole card away more than
/// once.
struct Cards {
    whole: Option<crate::facts::CardNeed>,
    exact: bool,
}

impl Cards {
    fn of(state: &ClusterState, classes: &[ClassId], nodes: &[NodeId]) -> Option<Self> {
        let requests = classes
            .iter()
            .filter_map(|class| state.classes[*class].cards);
        let requests: Vec<_> = requests.collect();
        let first = requests.first()?;
        let alike = requests
            .iter()
            .all(|request| !request.is_fraction() && request.memory() == first.memory());
        let stretches = |node: &NodeId| state.nodes[*node].cards.stretches_power();
        let has_terms = |class: &ClassId| state.classes[*class].shape.card_terms.is_some();
        let alike = alike && !nodes.iter().any(stretches) && !classes.iter().any(has_terms);
        Some(Self {
            whole: alike.then_some(*first),
            exact: alike,
        })
    }

    /// What is free of the cards of a node, in thousandths of a card.
    fn free(&self, node: &crate::state::node::Node) -> Amount {
        match self.whole {
            Some(request) => {
                let cards = node.cards.fitting(request, None).count();
                Amount::from(crate::facts::WHOLE_CARD) * cards as u64
            }
            None => node.cards.free_thousandths(),
        }
    }
}
