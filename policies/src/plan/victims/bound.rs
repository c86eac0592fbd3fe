//! The least that any plan costs, by counting room, and the units that counting would take.
//!
//! Counting looks at one shape of the claimant's members at a time, and at nothing but amounts and
//! static filters. So what it finds too little room for has none, and no plan is cheaper.

use super::choose::{AllCosts, Changed, Chosen};
use super::cost::Cost;
use super::node_costs::{Amounts, Item, NodeCosts, add};
use super::units::{Unit, cost_of};
use crate::ids::{ById, ClassId, Id, NodeId};
use crate::place::{Request, Scope, widest_scope};
use crate::resources::amount_of;
use crate::state::ClusterState;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// How much work it is to find the costs of one node without units, in units of about ten
/// nanoseconds.
const NODE_WORK: u64 = 20;
/// How much work each unit on a node adds to that, in units of about ten nanoseconds.
const ITEM_WORK: u64 = 50;

/// Whether a unit leaves in all sets of a branch of the search, or stays in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decided {
    Leaves,
    Stays,
}

/// The units of which a branch of the search has decided whether they leave. A unit that is not
/// among them is open: it may leave or stay.
pub(super) type AllDecided = BTreeMap<usize, Decided>;

/// The nodes of one area in which members of one shape must have room.
#[derive(Debug)]
pub(super) struct AreaRoom {
    pub(super) nodes: Vec<NodeRoom>,
    /// On which of these nodes each unit stands.
    pub(super) stands_on: BTreeMap<usize, SmallVec<[usize; 2]>>,
    /// What room costs while nothing is decided; `None`: nothing was bounded yet.
    costs: Option<AllCosts>,
}

#[derive(Debug)]
pub(super) struct NodeRoom {
    free: Amounts,
    /// The units on the node, and what each gives back.
    units: Vec<(usize, Amounts)>,
}

/// Members of one shape: what each asks for, and how many of them need room.
#[derive(Debug)]
pub(super) struct Members {
    asked: Amounts,
    pub(super) count: u64,
}

/// Members of one shape, and the areas of which one must have room for them.
#[derive(Debug)]
pub(super) struct Need {
    pub(super) members: Members,
    pub(super) areas: Vec<AreaRoom>,
}

/// The least that a plan costs, and the units that counting takes for it.
#[derive(Debug, Clone)]
pub(super) struct Bounded {
    pub(super) cost: Cost,
    /// Sorted; includes the units that leave in any case.
    pub(super) set: Vec<usize>,
}

/// The tables from which bounds are computed.
#[derive(Debug)]
pub(super) struct BoundTables {
    pub(super) needs: Vec<Need>,
    pub(super) zero: Cost,
}

impl BoundTables {
    /// Reads the room that a request needs, with all units where they are.
    pub(super) fn read(
        state: &mut ClusterState,
        request: &Request,
        units: &[Unit],
        zero: Cost,
    ) -> Self {
        let mut needs = Vec::new();
        let root = request.root();
        if request.is_plain() {
            let members: usize = root.pods.iter().map(|group| group.pods.len()).sum();
            for group in &root.pods {
                // Any of the others may stand for a member of this shape.
                let others = members - group.pods.len();
                let count = root.need.saturating_sub(others) as u64;
                if count > 0 {
                    let scope = widest_scope(state, root.near, root.anchor);
                    needs.push(need(state, (group.class, count), scope, units));
                }
            }
        }
        Self { needs, zero }
    }

    /// The least that a plan costs in which these units leave and stay; `None`: there is none.
    pub(super) fn bound(
        &mut self,
        units: &[Unit],
        decided: &AllDecided,
        work: &mut u64,
    ) -> Option<Bounded> {
        let leave = decided.iter().filter(|(_, how)| **how == Decided::Leaves);
        let mut set: Vec<usize> = leave.map(|(unit, _)| *unit).collect();
        let base = cost_of(units, &set, self.zero.clone());
        let side = Side {
            units,
            decided,
            base: &base,
            zero: &self.zero,
        };
        let mut cost = base.clone();
        for need in &mut self.needs {
            let members = &need.members;
            let areas = need.areas.iter_mut();
            let chosen = areas.filter_map(|area| area.cheapest(members, &side, work));
            let best = chosen.min_by(|one, other| one.cost.cmp(&other.cost))?;
            cost = cost.max(best.cost);
            set.extend(best.units);
        }
        let followers = set.iter().flat_map(|unit| &units[*unit].followers);
        let followers: Vec<usize> = followers.copied().collect();
        set.extend(followers);
        set.sort_unstable();
        set.dedup();
        Some(Bounded { cost, set })
    }
}

fn need(
    state: &mut ClusterState,
    (class, count): (ClassId, u64),
    scope: Scope,
    units: &[Unit],
) -> Need {
    state.refresh(class);
    let requests = state.classes[class].apart().clone();
    let asked = requests.iter().map(|(_, amount)| *amount).collect();
    let mut on_node: ById<NodeId, Vec<(usize, Amounts)>> = ById::default();
    for (index, unit) in units.iter().enumerate().filter(|(_, unit)| unit.goes) {
        for (node, frees) in &unit.frees {
            let resources = requests.iter();
            let frees: Amounts = resources.map(|(id, _)| amount_of(frees, *id)).collect();
            if frees.iter().any(|amount| *amount > 0) {
                on_node[*node].push((index, frees));
            }
        }
    }
    let mut areas: BTreeMap<usize, AreaRoom> = BTreeMap::new();
    let nodes: Vec<NodeId> = state.nodes_in_order().collect();
    for node in nodes {
        let eligible = state.table_as_of(class);
        let eligible = eligible.is_some_and(|table| table.is_eligible(node));
        let Some(area) = area_of(state, scope, node).filter(|_| eligible) else {
            continue;
        };
        let resources = requests.iter();
        let free = resources.map(|(id, _)| state.nodes[node].free(*id));
        let room = NodeRoom {
            free: free.collect(),
            units: core::mem::take(&mut on_node[node]),
        };
        let area = areas.entry(area).or_insert_with(|| AreaRoom {
            nodes: Vec::new(),
            stands_on: BTreeMap::new(),
            costs: None,
        });
        for (unit, _) in &room.units {
            let on = area.stands_on.entry(*unit).or_default();
            on.push(area.nodes.len());
        }
        area.nodes.push(room);
    }
    Need {
        members: Members { asked, count },
        areas: areas.into_values().collect(),
    }
}

/// The area of a scope in which a node is, by number; `None`: in none.
fn area_of(state: &ClusterState, scope: Scope, node: NodeId) -> Option<usize> {
    let domain = |topology, level: usize, node| {
        let path: &[_] = state.topologies[topology].path(node);
        path.get(level).copied()
    };
    match scope {
        Scope::Cluster => Some(0),
        Scope::Level(topology, level) => domain(topology, level, node).map(Id::index),
        Scope::DomainOf(topology, level, of) => {
            let same = domain(topology, level, node) == domain(topology, level, of);
            same.then_some(0)
        }
        Scope::OneNode => Some(node.index()),
        Scope::Node(only) => (only == node).then_some(0),
    }
}

/// One branch of the search: the units, and of which of them it is decided that they leave or stay.
struct Side<'a> {
    units: &'a [Unit],
    decided: &'a AllDecided,
    /// What the units cost that leave in any case.
    base: &'a Cost,
    zero: &'a Cost,
}

impl AreaRoom {
    /// The cheapest way to have room in this area for members of one shape, beside what leaves in
    /// any case; `None`: there is not enough even without all units that may leave.
    fn cheapest(&mut self, members: &Members, side: &Side<'_>, work: &mut u64) -> Option<Chosen> {
        if self.costs.is_none() {
            let nodes = 0..self.nodes.len();
            let of_unit = |unit| Ok(self.part(side, unit));
            let costs = nodes.map(|node| self.node_costs(node, members, side.zero, &of_unit, work));
            self.costs = Some(AllCosts::new(costs.collect(), members.count));
        }
        let mut changed = Changed::new();
        for unit in side.decided.keys() {
            for node in self.stands_on.get(unit).into_iter().flatten() {
                changed.entry(*node).or_insert_with(|| {
                    let of_unit = |unit| match side.decided.get(&unit) {
                        Some(decided) => Err(*decided),
                        None => Ok(self.part(side, unit)),
                    };
                    self.node_costs(*node, members, side.zero, &of_unit, work)
                });
            }
        }
        self.costs.as_ref()?.cheapest(&changed, side.base, work)
    }

    /// What a unit costs on each of the nodes on which it stands.
    fn part(&self, side: &Side<'_>, unit: usize) -> Cost {
        side.units[unit].cost.part(self.stands_on[&unit].len())
    }

    /// What room on one node costs. `of_unit`: what a unit costs on the node, or what is decided of
    /// the unit.
    pub(super) fn node_costs(
        &self,
        node: usize,
        members: &Members,
        zero: &Cost,
        of_unit: &dyn Fn(usize) -> Result<Cost, Decided>,
        work: &mut u64,
    ) -> NodeCosts {
        let node = &self.nodes[node];
        *work += NODE_WORK + ITEM_WORK * node.units.len() as u64;
        let mut free = node.free.clone();
        let mut items = Vec::with_capacity(node.units.len());
        for (unit, frees) in &node.units {
            match of_unit(*unit) {
                Err(Decided::Stays) => {}
                Err(Decided::Leaves) => add(&mut free, frees),
                Ok(cost) => items.push(Item {
                    unit: *unit,
                    frees: frees.clone(),
                    cost,
                }),
            }
        }
        NodeCosts::new(&free, &members.asked, members.count, &items, zero)
    }
}
