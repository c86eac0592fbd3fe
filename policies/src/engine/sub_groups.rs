//! Gangs with sub-groups: what they need next, and how their topologies nest.
//!
//! Members are counted by leaf ([`super::counts`]), what is lacking becomes a [`Tree`], and that is
//! placed in one transaction. Of a gang that has its minimum, one more pod or one more sub-group as
//! a whole is placed at a time.

use super::Engine;
use super::assess::too_few_members;
use super::counts::{Counts, by_leaf, has_place};
use crate::facts::{TopologyRequest, UnixMs};
use crate::ids::{GangId, NodeId, PodId};
use crate::place::{Memo, Near, Tree, TreeGroup, merged, place_tree, pods_of};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::state::gang::{GroupTree, Shortfall, SubGroup, Verdict, Wake};
use crate::state::pod::{Own, Pod, Stage};
use crate::txn::Txn;
use alloc::{format, string::String, sync::Arc, vec, vec::Vec};

/// How many sub-groups that are short of members a message names.
const SHORT_NAMED: usize = 3;

/// One way to choose members that are placed next: by group, how many of its pods or children, and
/// which children.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    need: Vec<usize>,
    children: Vec<Vec<usize>>,
}

impl Wanted {
    fn nothing(groups: usize) -> Self {
        Self {
            need: vec![0; groups],
            children: vec![Vec::new(); groups],
        }
    }

    /// What a group lacks: of the children that can be completed those that lack least first.
    fn fill(&mut self, tree: &GroupTree, needs: &[u32], able: &[u32], index: usize) {
        let group = tree.group(index);
        if group.is_leaf() {
            self.need[index] = needs[index] as usize;
            return;
        }
        let children = group.children.iter().copied();
        let (complete, lacking): (Vec<usize>, Vec<usize>) =
            children.partition(|child| needs[*child] == 0);
        let mut open: Vec<usize> = lacking.into_iter().filter(|c| able[*c] == 0).collect();
        open.sort_by_key(|child| needs[*child]);
        self.need[index] = (group.minimum as usize).saturating_sub(complete.len());
        for child in &open {
            self.fill(tree, needs, able, *child);
        }
        self.children[index] = open;
    }

    /// Only this group is wanted of all above it.
    fn only(mut self, tree: &GroupTree, mut index: usize) -> Self {
        while index != 0 {
            let parent = tree.group(index).parent;
            self.need[parent] = 1;
            self.children[parent] = Vec::from([index]);
            index = parent;
        }
        self
    }
}

/// The ways to choose members that are placed next: those that the minimum lacks; of a gang that
/// has its minimum the rest of a sub-group that was cut off, else one more pod, or one more
/// sub-group whole, each as an alternative.
fn wanted(tree: &GroupTree, held: &[u32], waiting: &[u32], cut_off: &[usize]) -> Vec<Wanted> {
    let needs = tree.needs(held);
    let all: Vec<u32> = held.iter().zip(waiting).map(|(a, b)| a + b).collect();
    let able = tree.needs(&all);
    let nothing = || Wanted::nothing(tree.len());
    if needs[0] > 0 {
        let mut wanted = nothing();
        wanted.fill(tree, &needs, &able, 0);
        return Vec::from([wanted]);
    }
    let rest = |child: usize| {
        let mut more = nothing();
        more.fill(tree, &needs, &able, child);
        more.only(tree, child)
    };
    if !cut_off.is_empty() {
        let able = cut_off.iter().filter(|group| able[**group] == 0);
        return able.map(|group| rest(*group)).collect();
    }
    let mut surplus = Vec::new();
    let mut open = Vec::from([0]);
    while let Some(index) = open.pop() {
        let group = tree.group(index);
        if group.is_leaf() && waiting[index] > 0 {
            let mut more = nothing();
            more.need[index] = 1;
            surplus.push(more.only(tree, index));
        }
        for child in &group.children {
            if needs[*child] > 0 && able[*child] == 0 {
                surplus.push(rest(*child));
            }
        }
        let complete = group
            .children
            .iter()
            .rev()
            .filter(|child| needs[**child] == 0);
        open.extend(complete);
    }
    surplus
}

impl Engine {
    /// What a gang with sub-groups wants to place next, as alternatives in their order.
    pub(super) fn trees(&self, id: GangId, queue: QueueId, now_ms: UnixMs) -> Vec<Tree> {
        let gang = &self.state.gangs[id];
        let Some(tree) = gang.tree() else {
            return Vec::new();
        };
        let held = by_leaf(&self.state, gang, &has_place);
        let pods = self.waiting_pods(id, now_ms);
        let mut by_leaf: Vec<Vec<PodId>> = vec![Vec::new(); tree.len()];
        for pod in pods {
            if let Some(leaf) = gang.leaf_of(&self.state.pods[pod]) {
                by_leaf[leaf].push(pod);
            }
        }
        let count = |pods: &Vec<PodId>| u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let waiting: Vec<u32> = by_leaf.iter().map(count).collect();
        let groups: Vec<TreeGroup> = tree
            .groups()
            .map(|(index, group)| self.tree_group(id, tree, index, group))
            .collect();
        let all = wanted(tree, &held, &waiting, &self.cut_off(id)).into_iter();
        let trees = all.map(|wanted| {
            let mut groups = groups.clone();
            for (index, group) in groups.iter_mut().enumerate() {
                group.need = wanted.need[index];
                group.children.clone_from(&wanted.children[index]);
                if tree.group(index).is_leaf() && group.need > 0 {
                    group.pods = self.by_size(by_leaf[index].clone());
                }
            }
            Tree {
                groups,
                model_limits: self.model_limits(queue),
                placement: self.placement(id, queue),
            }
        });
        trees.collect()
    }

    fn tree_group(
        &self,
        id: GangId,
        tree: &GroupTree,
        index: usize,
        group: &SubGroup,
    ) -> TreeGroup {
        let near = self.near_of(id, index, group);
        let occupied = self.occupied_below(id, tree, index);
        TreeGroup {
            name: group.name.clone(),
            parent: group.parent,
            children: Vec::new(),
            need: 0,
            pods: Vec::new(),
            near,
            anchor: near.and_then(|near| self.anchor_among(&occupied, Some(near))),
            occupied,
        }
    }

    fn near_of(&self, id: GangId, index: usize, group: &SubGroup) -> Option<Near> {
        if index == 0 {
            return self.resolve_topology_now(id);
        }
        self.near(group.topology.as_ref()?)
    }

    /// The nodes of the members below a group that have places.
    fn occupied_below(&self, id: GangId, tree: &GroupTree, index: usize) -> Vec<NodeId> {
        let gang = &self.state.gangs[id];
        let below = |pod: &Pod| {
            let leaf = gang.leaf_of(pod);
            index == 0 || leaf.is_some_and(|leaf| tree.is_below(leaf, index))
        };
        self.occupied_by(id, &below)
    }

    /// Tries what the gang wants to place next.
    pub(crate) fn try_sub_groups(
        &mut self,
        id: GangId,
        queue: QueueId,
        counts: &Counts,
        now_ms: UnixMs,
        memo: &mut Memo,
        work: &mut u64,
    ) -> Result<Vec<(PodId, NodeId)>, (Verdict, Wake)> {
        let (mut first, mut classes, mut full) = (None, Vec::new(), None);
        for tree in self.trees(id, queue, now_ms) {
            *work += 20 * tree.groups.len() as u64;
            match self.try_tree(id, queue, &tree, counts, memo, work) {
                Ok(placed) => return Ok(placed),
                Err((verdict, wake)) => {
                    match wake {
                        Wake::Over(Shortfall::Room { class, .. }) => classes.push(class),
                        Wake::AnyRoom(more, queues) => {
                            classes.extend(more);
                            if let Some(queues) = queues {
                                full = self.highest(queue, full, queues);
                            }
                        }
                        Wake::Queue(over) | Wake::Over(Shortfall::Bound { queue: over, .. }) => {
                            full = self.highest(queue, full, over);
                        }
                    }
                    first.get_or_insert(verdict);
                }
            }
        }
        classes.sort_unstable();
        classes.dedup();
        let nothing = || Verdict::new(Reason::NotFoundWithinBound, "no member can be placed");
        let wake = match full {
            Some(full) if classes.is_empty() => Wake::Queue(full),
            full => Wake::AnyRoom(classes, full),
        };
        Err((first.unwrap_or_else(nothing), wake))
    }

    /// Places what a tree needs, with members that the queue has room for.
    fn try_tree(
        &mut self,
        id: GangId,
        queue: QueueId,
        tree: &Tree,
        counts: &Counts,
        memo: &mut Memo,
        work: &mut u64,
    ) -> Result<Vec<(PodId, NodeId)>, (Verdict, Wake)> {
        let (choices, _) = tree.choices();
        let mut full = self.state.queues.highest_model_limit(queue);
        let (mut over, mut refused) = (None, None);
        // All choices at once, if the queue has room for the first of them.
        let whole = choices.first().map(|first| (first, tree.clone()));
        let single = choices.len() == 1;
        let each = choices.iter().filter(|_| !single);
        let each = each.map(|choice| (choice, tree.chosen(choice)));
        for (position, (choice, tree)) in whole.into_iter().chain(each).enumerate() {
            let pods: Vec<PodId> = pods_of(choice).collect();
            *work += 20 * pods.len() as u64;
            let demand = self.demand_of_pods(pods.iter());
            if let Err((verdict, excess)) = self.check_queue(id, queue, &demand) {
                over.get_or_insert(verdict);
                full = self.highest(queue, full, excess.queue);
                continue;
            }
            let mut request = tree.flat(merged(choice), pods.len());
            let mut txn = Txn::default();
            let start = txn.checkpoint();
            match place_tree(&mut self.state, &mut txn, &tree, memo, work) {
                Ok(()) if self.keeps_to_queue((id, queue), &request, &demand, start, &mut txn) => {
                    return Ok(txn.commit());
                }
                // Others than those that were checked have found a place.
                Ok(()) => {}
                Err(refusal) => {
                    let refusal = tree.told_by_sub_groups(refusal);
                    let (verdict, wake) = self.explain_refusal(id, &mut request, counts, &refusal);
                    if position == 0 {
                        let wake = match wake {
                            // All choices were tried, whose classes may be others.
                            Wake::AnyRoom(_, full) => Wake::AnyRoom(tree.classes(), full),
                            wake => wake,
                        };
                        return Err((verdict, wake));
                    }
                    refused.get_or_insert(verdict);
                }
            }
        }
        Err(match (refused, over, full) {
            (None, Some(verdict), Some(full)) => (verdict, Wake::Queue(full)),
            (refused, over, full) => {
                let unknown = || Verdict::new(Reason::NotFoundWithinBound, "no choice of members");
                let verdict = refused.or(over).unwrap_or_else(unknown);
                (verdict, Wake::AnyRoom(tree.classes(), full))
            }
        })
    }

    /// The pods that a gang with sub-groups wants to place next, as long as nothing speaks against
    /// the first choice.
    pub(crate) fn next_of_sub_groups(
        &self,
        id: GangId,
        queue: QueueId,
        now_ms: UnixMs,
    ) -> Vec<PodId> {
        let trees = self.trees(id, queue, now_ms);
        let choices = trees.first().map(|tree| tree.choices().0);
        let first = choices.into_iter().flatten().next();
        first.map_or_else(Vec::new, |choice| pods_of(&choice).collect())
    }

    /// Makes sure that what the gang and its sub-groups say of topology means something.
    ///
    /// # Errors
    /// A Topology or level that is not there, or one that is wider than that of a group above.
    pub(crate) fn resolve_topologies(&mut self, id: GangId) -> Result<(), Verdict> {
        let missing = |message| Verdict::new(Reason::TopologyNotFound, message);
        self.resolve_topology(id).map_err(missing)?;
        let Some(tree) = self.state.gangs[id].tree().map(Arc::clone) else {
            return Ok(());
        };
        for (index, group) in tree.groups().skip(1) {
            let Some(request) = &group.topology else {
                continue;
            };
            let name = &group.name;
            self.check_levels(request)
                .map_err(|message| missing(format!("sub-group {name}: {message}")))?;
            if let Some(message) = self.wider_than_above(id, &tree, index, request) {
                return Err(Verdict::new(Reason::InvalidSpec, message));
            }
        }
        Ok(())
    }

    /// A sub-group cannot be kept in a wider domain than the groups above it.
    fn wider_than_above(
        &self,
        id: GangId,
        tree: &GroupTree,
        index: usize,
        request: &TopologyRequest,
    ) -> Option<String> {
        let own = self.near(request)?;
        let level = own.required?;
        let mut above = index;
        while above != 0 {
            above = tree.group(above).parent;
            let group = tree.group(above);
            let near = self.near_of(id, above, group);
            let near = near.filter(|near| near.topology == own.topology);
            if near
                .and_then(|near| near.required)
                .is_some_and(|above| level < above)
            {
                let parent = if above == 0 {
                    "the PodGroup"
                } else {
                    &*group.name
                };
                let level = request.required.as_deref().unwrap_or_default();
                return Some(format!(
                    "sub-group {}: topology.required: {level} is wider than the level that \
                     {parent} requires",
                    tree.group(index).name
                ));
            }
        }
        None
    }

    /// Why nobody knows in which domain a sub-group must stay: all nodes of its members are gone.
    pub(crate) fn sub_domain_unknown(&self, id: GangId) -> Option<Verdict> {
        let gang = &self.state.gangs[id];
        let tree = gang.tree()?;
        let waits = |pod: &Pod| pod.stage == Stage::Waiting && !pod.deleting;
        let waiting = by_leaf(&self.state, gang, &waits);
        for (index, group) in tree.groups().skip(1) {
            let mut leaves = (0..tree.len()).filter(|leaf| waiting[*leaf] > 0);
            let required = self
                .near_of(id, index, group)
                .and_then(|near| near.required);
            if required.is_none() || !leaves.any(|leaf| tree.is_below(leaf, index)) {
                continue;
            }
            let occupied = self.occupied_below(id, tree, index);
            if let (Some(node), None) = (occupied.first(), self.anchor_among(&occupied, None)) {
                let message = format!(
                    "the domain of the members of sub-group {} that run is not known while their \
                     node {} is gone",
                    group.name, self.state.nodes[*node].name
                );
                return Some(Verdict {
                    more_nodes_help: false,
                    ..Verdict::new(Reason::DoesNotFit, message)
                });
            }
        }
        None
    }

    /// Why a pod belongs to no leaf of its gang.
    pub(crate) fn misplaced(&self, pod: &Pod, own: &Own) -> Option<String> {
        let gang = &self.state.gangs[own.gang?];
        if gang.has_group_of(pod) {
            return None;
        }
        let name = &pod.name;
        let Some(sub_group) = &own.sub_group else {
            return Some(format!(
                "pod {name} names no sub-group, and its PodGroup has sub-groups: \
                 the label gpu-batch.io/subgroup is missing"
            ));
        };
        let groups = gang.tree().into_iter().flat_map(|tree| tree.groups());
        let inner = groups
            .map(|(_, group)| &group.name)
            .any(|known| known == sub_group);
        let fault = if inner {
            "which has sub-groups itself: pods belong to a leaf"
        } else {
            "which its PodGroup lacks"
        };
        Some(format!("pod {name} names sub-group {sub_group:?}, {fault}"))
    }

    /// Which members do not exist yet.
    pub(crate) fn waiting_for_members(&self, id: GangId, counts: &Counts) -> Verdict {
        let gang = &self.state.gangs[id];
        let Some(tree) = gang.tree() else {
            return too_few_members(counts);
        };
        let exist = |pod: &Pod| has_place(pod) || (pod.stage == Stage::Waiting && !pod.deleting);
        let exist = by_leaf(&self.state, gang, &exist);
        let leaves = tree
            .groups()
            .filter(|(leaf, group)| group.is_leaf() && exist[*leaf] < group.minimum);
        let short: Vec<String> = leaves
            .map(|(leaf, group)| {
                let SubGroup { name, minimum, .. } = group;
                format!(
                    "{} of at least {minimum} members of sub-group {name} exist",
                    exist[leaf]
                )
            })
            .collect();
        let message = match short.len() {
            0 => String::from("members of its sub-groups cannot be placed yet"),
            1..=SHORT_NAMED => short.join(", "),
            more => format!(
                "{}, and {} more are short",
                short[..SHORT_NAMED].join(", "),
                more - SHORT_NAMED
            ),
        };
        Verdict::new(Reason::WaitingForMembers, message)
    }
}
