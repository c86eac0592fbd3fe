//! What it costs to make room for one pod, node by node, for claimants of one pod that are alike.
//!
//! Where thousands of single pods claim room, nearly all that a search reads stays as it was from
//! one claimant to the next. A *shelf* has the nodes in the order of what room for one pod costs
//! there, and follows the log of changed nodes. Its first node is the cheapest plan, if that plan
//! also keeps all rules that counting does not see; otherwise the search decides.
//!
//! ```text
//! no shelf --read: all units, all nodes--> CURRENT --a node has changed--> that node is read again
//!    ^                                        |
//!    +-- any other news, or a second later ---+
//! ```
//!
//! While a shelf is in use, queues only come nearer to their bounds, so room on a node that has not
//! changed gets dearer, never cheaper. What the first node costs is worked out once more before it
//! is believed.

use super::node_costs::{Amounts, Item, NodeCosts, Step};
use super::units::{Unit, Units};
use super::what_if::WhatIf;
use super::{Action, Cost, Judge};
use crate::facts::UnixMs;
use crate::ids::{ClassId, NodeId, ResourceId};
use crate::place::{Request, Scope, widest_scope};
use crate::queues::{ClaimKind, QueueId};
use crate::resources::amount_of;
use crate::state::ClusterState;
use crate::state::pod::Stage;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;
use smallvec::SmallVec;

/// How long a shelf is believed: what evictions lose, and which gangs have run for long enough, is
/// as of the time at which the shelf was read.
const KEPT_MS: u64 = 1_000;
/// How many shelves are kept. Queues take turns, so one shelf alone would be read again and again.
const SHELVES_MAX: usize = 16;

/// The claimants that a shelf is for: the queue, the priority of the gang, the class of its pod,
/// whether the pod is surplus, and what the queue claims.
type Key = (QueueId, i32, ClassId, bool, ClaimKind);

/// The shelves of a round of claimants.
#[derive(Debug, Default)]
pub(crate) struct Shelves(BTreeMap<Key, Shelf>);

/// What one pod would cost on every node.
#[derive(Debug)]
struct Shelf {
    as_of_ms: UnixMs,
    /// How far the shelf has read the log of changed nodes.
    cursor: u64,
    /// What the class asks for, and of which resources.
    asked: Amounts,
    resources: Vec<ResourceId>,
    units: Units,
    nodes: BTreeMap<NodeId, OnNode>,
    /// The nodes by cost. Of nodes that cost as much the last comes first, as in
    /// [`super::bound::BoundTables`].
    order: BTreeSet<(Cost, Reverse<usize>, NodeId)>,
    /// The free amounts of all nodes together, of each resource that the class asks for.
    free: Vec<u128>,
}

/// What a shelf knows of one node.
#[derive(Debug)]
struct OnNode {
    /// The place of the node among all.
    place: usize,
    /// Whether the class can run there, as far as static filters say.
    is_eligible: bool,
    /// The units that may leave, and stand on the node.
    units: Vec<usize>,
    free: Amounts,
    /// The cost under which the node stands in the order.
    cost: Option<Cost>,
}

/// The cheapest room for one pod.
#[derive(Debug)]
pub(super) struct Cheapest<'a> {
    pub(super) units: &'a [Unit],
    pub(super) set: Vec<usize>,
    pub(super) cost: Cost,
    pub(super) as_of_ms: UnixMs,
}

impl Shelves {
    /// Forgets all shelves: something has happened that the log of changed nodes does not tell.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The cheapest room for a claimant's one pod of a class by a claim; `None`: counting does not
    /// tell, or gangs could move instead.
    pub(super) fn cheapest(
        &mut self,
        what_if: &mut WhatIf<'_>,
        class: ClassId,
        kind: ClaimKind,
        read: impl FnOnce(&mut WhatIf<'_>) -> Units,
    ) -> Option<Cheapest<'_>> {
        let claimant = what_if.claimant;
        let priority = what_if.state.gangs[claimant.gang].spec.priority;
        let key = (claimant.queue, priority, class, claimant.is_surplus, kind);
        let is_current = |shelf: &Shelf| what_if.now_ms.saturating_sub(shelf.as_of_ms) <= KEPT_MS;
        if !self.0.get(&key).is_some_and(is_current) {
            if self.0.len() >= SHELVES_MAX {
                self.clear();
            }
            let units = read(what_if);
            self.0.insert(key, Shelf::new(what_if, class, kind, units));
        }
        let shelf = self.0.get_mut(&key)?;
        shelf.follow(what_if, kind);
        // Moving comes before taking where it breaks no more gangs.
        let lacks = |(free, asked): (&u128, &u64)| *free < u128::from(*asked);
        if !shelf.free.iter().zip(&shelf.asked).any(lacks) {
            return None;
        }
        shelf.first(what_if, kind)
    }
}

impl Shelf {
    fn new(what_if: &mut WhatIf<'_>, class: ClassId, kind: ClaimKind, units: Units) -> Self {
        let state = &mut *what_if.state;
        state.refresh(class);
        let requests = state.classes[class].apart();
        let mut shelf = Self {
            as_of_ms: what_if.now_ms,
            cursor: state.changes.end(),
            asked: requests.iter().map(|(_, amount)| *amount).collect(),
            resources: requests.iter().map(|(resource, _)| *resource).collect(),
            free: requests.iter().map(|_| 0).collect(),
            units,
            nodes: BTreeMap::new(),
            order: BTreeSet::new(),
        };
        for (place, node) in state.nodes_in_order().enumerate() {
            let table = state.table_as_of(class);
            let on_node = OnNode {
                place,
                is_eligible: table.is_some_and(|table| table.is_eligible(node)),
                units: Vec::new(),
                free: Amounts::from_elem(0, shelf.asked.len()),
                cost: None,
            };
            shelf.nodes.insert(node, on_node);
        }
        for (index, unit) in shelf.units.all.iter().enumerate() {
            for (node, _) in &unit.frees {
                if let Some(on_node) = shelf.nodes.get_mut(node) {
                    on_node.units.push(index);
                }
            }
        }
        let all: Vec<NodeId> = shelf.nodes.keys().copied().collect();
        what_if.work += READ_WORK * (all.len() + shelf.units.all.len()) as u64;
        for node in all {
            shelf.read(what_if, kind, node);
        }
        shelf
    }

    /// Reads all nodes again that have changed, and those where kin of the units there stand: a
    /// core whose surplus has left may leave alone. Where the log does not reach back far enough,
    /// all nodes are read: how far it reaches also depends on what explanations have tried.
    fn follow(&mut self, what_if: &mut WhatIf<'_>, kind: ClaimKind) {
        let mut changed: BTreeSet<NodeId> = match what_if.state.changes.since(self.cursor) {
            Some(changed) => changed.collect(),
            None => self.nodes.keys().copied().collect(),
        };
        let all = &self.units.all;
        let there = changed.iter().filter_map(|node| self.nodes.get(node));
        let units = there.flat_map(|node| &node.units).map(|unit| &all[*unit]);
        let kin = units.flat_map(|unit| unit.leaders.iter().chain(&unit.followers));
        let of_kin = kin.flat_map(|unit| &all[*unit].pods).map(|(_, node)| *node);
        changed.extend(of_kin.collect::<Vec<_>>());
        self.cursor = what_if.state.changes.end();
        what_if.work += READ_WORK * changed.len() as u64;
        for node in changed {
            self.read(what_if, kind, node);
        }
    }

    /// Reads what is free on a node, and puts the node where it belongs in the order.
    fn read(&mut self, what_if: &WhatIf<'_>, kind: ClaimKind, node: NodeId) {
        let state = &*what_if.state;
        let cost = self.step(what_if, kind, node).map(|step| step.cost);
        let Some(on_node) = self.nodes.get_mut(&node) else {
            return;
        };
        let free = free_on(state, &self.resources, node);
        for (sum, (now, before)) in self.free.iter_mut().zip(free.iter().zip(&on_node.free)) {
            *sum = (*sum + u128::from(*now)).saturating_sub(u128::from(*before));
        }
        on_node.free = free;
        if let Some(before) = on_node.cost.take() {
            self.order.remove(&(before, Reverse(on_node.place), node));
        }
        on_node.cost.clone_from(&cost);
        if let Some(cost) = cost {
            self.order.insert((cost, Reverse(on_node.place), node));
        }
    }

    /// The cheapest way to have room for one pod on a node; `None`: there is none. Where counting
    /// does not tell, the way fits no pod, and its cost is the least that any way there could have.
    fn step(&self, what_if: &WhatIf<'_>, kind: ClaimKind, node: NodeId) -> Option<Step> {
        let on_node = self.nodes.get(&node).filter(|node| node.is_eligible)?;
        let mut judge = Judge::of_kind(what_if, kind).of_units();
        let mut may_leave = |unit: &Unit| judge(unit, unit.can).leave(Action::Reclaim(kind));
        let is_there = |unit: &Unit| stands(what_if.state, unit);
        let all = &self.units.all;
        let mut items = Vec::with_capacity(on_node.units.len());
        for index in &on_node.units {
            let unit = &all[*index];
            // A core leaves with what is left of its surplus. What of that may not leave alone is
            // counted with the core, where it stands on this node: elsewhere, the core costs more
            // than counting sees.
            let followers = unit.followers.iter().map(|follower| &all[*follower]);
            let left: Vec<&Unit> = followers.filter(|one| is_there(one)).collect();
            let follows = |unit: &Unit| unit.can.leave(Action::Reclaim(kind));
            if !is_there(unit) || !may_leave(unit) || !left.iter().all(|one| follows(one)) {
                continue;
            }
            let mut item = self.item(*index, node)?;
            let with_the_core = left.into_iter().filter(|one| !may_leave(one));
            for follower in with_the_core.filter_map(|one| self.freed_by(one, node)) {
                let (frees, cost) = follower;
                for (sum, more) in item.frees.iter_mut().zip(frees) {
                    *sum = sum.saturating_add(more);
                }
                item.cost.add(&cost);
            }
            items.push(item);
        }
        let free = free_on(what_if.state, &self.resources, node);
        let costs = NodeCosts::new(&free, &self.asked, 1, &items, &self.units.zero);
        if costs.is_exact {
            return costs.steps.into_iter().find(|step| step.fits > 0);
        }
        let least = items.into_iter().map(|item| item.cost).min()?;
        Some(Step {
            fits: 0,
            cost: least,
            units: SmallVec::new(),
        })
    }

    /// What a unit gives back on a node, and its part of the unit's cost.
    fn freed_by(&self, unit: &Unit, node: NodeId) -> Option<(Amounts, Cost)> {
        let frees = unit.frees.iter().find(|(on, _)| *on == node);
        let resources = self.resources.iter();
        let amounts = |frees| resources.map(|id| amount_of(frees, *id)).collect();
        frees.map(|(_, frees)| (amounts(frees), unit.cost.part(unit.frees.len())))
    }

    fn item(&self, unit: usize, node: NodeId) -> Option<Item> {
        let (frees, cost) = self.freed_by(&self.units.all[unit], node)?;
        Some(Item { unit, frees, cost })
    }

    /// The units of the first node, if the room there is certain to be the cheapest.
    fn first(&mut self, what_if: &mut WhatIf<'_>, kind: ClaimKind) -> Option<Cheapest<'_>> {
        let step = loop {
            what_if.work += READ_WORK;
            let (cost, _, node) = self.order.first()?;
            let node = *node;
            match self.step(what_if, kind, node) {
                Some(step) if step.cost == *cost => break step,
                // The node has become dearer.
                _ => self.read(what_if, kind, node),
            }
        };
        if step.fits == 0 {
            return None;
        }
        let mut set: Vec<usize> = step.units.to_vec();
        let units = &self.units.all;
        let followers = step.units.iter().flat_map(|unit| &units[*unit].followers);
        let followers = followers.copied();
        set.extend(followers.filter(|unit| stands(what_if.state, &units[*unit])));
        set.sort_unstable();
        set.dedup();
        let mut cost = self.units.zero.clone();
        for unit in &set {
            cost.add(&units[*unit].cost);
        }
        let is_certain = cost == step.cost && !set.is_empty();
        is_certain.then_some(Cheapest {
            units,
            set,
            cost,
            as_of_ms: self.as_of_ms,
        })
    }
}

/// How much work it is to read one node, in units of about ten nanoseconds.
const READ_WORK: u64 = 100;

/// The class of the one pod that a request asks for, anywhere in the cluster; `None`: it asks for
/// something else.
pub(super) fn class_of_one(state: &ClusterState, request: &Request) -> Option<ClassId> {
    let root = request.root();
    let [pods] = root.pods.as_slice() else {
        return None;
    };
    let is_of_one = request.is_plain() && root.need == 1 && pods.pods.len() == 1;
    let is_anywhere = || widest_scope(state, root.near, root.anchor) == Scope::Cluster;
    (is_of_one && is_anywhere()).then_some(pods.class)
}

/// Whether the pods of a unit still stand where they stood, and none of them is leaving.
fn stands(state: &ClusterState, unit: &Unit) -> bool {
    unit.pods.iter().all(|(pod, node)| {
        let pod = state.pods.get(*pod);
        pod.is_some_and(|pod| pod.stays() && pod.stage == Stage::Bound(*node))
    })
}

fn free_on(state: &ClusterState, resources: &[ResourceId], node: NodeId) -> Amounts {
    let node = state.nodes.get(node);
    let free = |resource: &ResourceId| node.map_or(0, |node| node.free(*resource));
    resources.iter().map(free).collect()
}
