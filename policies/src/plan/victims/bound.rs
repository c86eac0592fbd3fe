//! The least that any plan costs, by counting room, and the units that counting would take.
//!
//! Counting looks at one shape of the claimant's members at a time, and at nothing but amounts and
//! static filters. So what it finds too little room for has none, and no plan is cheaper.

use super::cost::Cost;
use super::node_costs::{Amounts, Item, NodeCosts, Step, add};
use super::units::Unit;
use crate::ids::{ClassId, Id, NodeId};
use crate::place::{Request, Scope, widest_scope};
use crate::resources::amount_of;
use crate::state::ClusterState;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Up to which size the cheapest choice over all nodes is computed exactly.
const TABLE_MAX: u64 = 40_000;

/// What is decided of each unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decided {
    Open,
    Leaves,
    Stays,
}

/// The nodes of one area in which members of one shape must have room.
#[derive(Debug)]
struct AreaRoom {
    nodes: Vec<NodeRoom>,
    /// On how many of these nodes each unit stands.
    spread: BTreeMap<usize, usize>,
}

#[derive(Debug)]
struct NodeRoom {
    free: Amounts,
    /// The units on the node, and what each gives back.
    units: Vec<(usize, Amounts)>,
}

/// Members of one shape, of which so many need room in one of these areas.
#[derive(Debug)]
struct Need {
    asked: Amounts,
    count: u64,
    areas: Vec<AreaRoom>,
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
pub(super) struct Rooms {
    needs: Vec<Need>,
    zero: Cost,
}

impl Rooms {
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
        &self,
        units: &[Unit],
        decided: &[Decided],
        work: &mut u64,
    ) -> Option<Bounded> {
        let leaves = |unit: &usize| decided[*unit] == Decided::Leaves;
        let mut set: Vec<usize> = (0..units.len()).filter(leaves).collect();
        let mut base = self.zero.clone();
        for unit in &set {
            base.add(&units[*unit].cost);
        }
        let mut cost = base.clone();
        for need in &self.needs {
            let areas = need.areas.iter();
            let bounds =
                areas.filter_map(|area| area.bound(need, units, decided, &base, &self.zero, work));
            let best = bounds.min_by(|one, other| one.cost.cmp(&other.cost))?;
            cost = cost.max(best.cost);
            set.extend(best.set);
        }
        let surplus: Vec<usize> = set
            .iter()
            .filter(|unit| units[**unit].is_core)
            .flat_map(|unit| units[*unit].kin.iter().copied())
            .collect();
        set.extend(surplus);
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
    let requests = state.classes[class].requests.clone();
    let asked = requests.iter().map(|(_, amount)| *amount).collect();
    let mut on_node: BTreeMap<NodeId, Vec<(usize, Amounts)>> = BTreeMap::new();
    for (index, unit) in units.iter().enumerate().filter(|(_, unit)| unit.goes) {
        for (node, frees) in &unit.frees {
            let resources = requests.iter();
            let frees: Amounts = resources.map(|(id, _)| amount_of(frees, *id)).collect();
            if frees.iter().any(|amount| *amount > 0) {
                on_node.entry(*node).or_default().push((index, frees));
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
            units: on_node.remove(&node).unwrap_or_default(),
        };
        let area = areas.entry(area).or_insert_with(|| AreaRoom {
            nodes: Vec::new(),
            spread: BTreeMap::new(),
        });
        for (unit, _) in &room.units {
            *area.spread.entry(*unit).or_default() += 1;
        }
        area.nodes.push(room);
    }
    Need {
        asked,
        count,
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

impl AreaRoom {
    /// The least that room in this area costs beyond `base`, and the units that give it; `None`:
    /// there is not enough even without all units that may leave.
    fn bound(
        &self,
        need: &Need,
        units: &[Unit],
        decided: &[Decided],
        base: &Cost,
        zero: &Cost,
        work: &mut u64,
    ) -> Option<Bounded> {
        let nodes: Vec<NodeCosts> = self
            .nodes
            .iter()
            .map(|node| {
                *work += 5 + 20 * node.units.len() as u64;
                let mut free = node.free.clone();
                let mut items = Vec::new();
                for (unit, frees) in &node.units {
                    match decided[*unit] {
                        Decided::Stays => {}
                        Decided::Leaves => add(&mut free, frees),
                        Decided::Open => items.push(Item {
                            unit: *unit,
                            frees: frees.clone(),
                            cost: units[*unit].cost.part(self.spread[unit]),
                        }),
                    }
                }
                NodeCosts::new(&free, &need.asked, need.count, &items, zero)
            })
            .collect();
        let most: u64 = nodes
            .iter()
            .filter_map(|node| node.steps.last().map(|step| step.fits))
            .sum();
        if most < need.count {
            return None;
        }
        let steps: u64 = nodes.iter().map(|node| node.steps.len() as u64).sum();
        let mut chosen = match steps * need.count <= TABLE_MAX {
            true => by_table(&nodes, need.count, base),
            false => by_slope(&nodes, need.count, base),
        };
        if nodes.iter().any(|node| !node.is_exact) {
            chosen.cost = base.clone();
        }
        Some(chosen)
    }
}

/// The cheapest choice of one step on each node, exactly.
fn by_table(nodes: &[NodeCosts], count: u64, base: &Cost) -> Bounded {
    let size = usize::try_from(count).unwrap_or(usize::MAX);
    // The cheapest cost so far of room for so many pods, and the step of the last node.
    let mut costs: Vec<Option<Cost>> = vec![None; size + 1];
    costs[0] = Some(base.clone());
    let mut taken: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let mut next: Vec<Option<Cost>> = vec![None; size + 1];
        let mut steps = vec![usize::MAX; size + 1];
        for (have, cost) in costs.iter().enumerate() {
            let Some(cost) = cost else { continue };
            for (index, step) in node.steps.iter().enumerate() {
                let fits = usize::try_from(step.fits).unwrap_or(usize::MAX);
                let now = have.saturating_add(fits).min(size);
                let mut sum = cost.clone();
                sum.add(&step.cost);
                if next[now].as_ref().is_none_or(|known| sum < *known) {
                    next[now] = Some(sum);
                    steps[now] = index * (size + 1) + have;
                }
            }
        }
        costs = next;
        taken.push(steps);
    }
    let (mut at, mut set) = (size, Vec::new());
    for (node, steps) in nodes.iter().zip(&taken).rev() {
        let (index, have) = (steps[at] / (size + 1), steps[at] % (size + 1));
        set.extend(node.steps[index].units.iter().copied());
        at = have;
    }
    let cost = costs[size].as_ref().unwrap_or(base);
    let cost = cost.least_whole(base, base, 0, 1);
    Bounded { cost, set }
}

/// The cheapest choice where parts of steps may be taken: a bound. The units are those of whole
/// steps, so they may cost more.
fn by_slope(nodes: &[NodeCosts], count: u64, base: &Cost) -> Bounded {
    let mut segments: Vec<(usize, &Step, &Step)> = Vec::new();
    let mut have = 0;
    for (index, node) in nodes.iter().enumerate() {
        let corners = corners(&node.steps);
        have += corners.first().map_or(0, |step| step.fits);
        segments.extend(corners.windows(2).map(|pair| (index, pair[0], pair[1])));
    }
    segments.sort_by(|(one, a, b), (other, c, d)| {
        Cost::compare_rises(
            (&a.cost, &b.cost, b.fits - a.fits),
            (&c.cost, &d.cost, d.fits - c.fits),
        )
        .then(one.cmp(other))
    });
    let mut cost = base.clone();
    let mut at: BTreeMap<usize, &Step> = BTreeMap::new();
    let mut last = (base, base, 0, 1);
    for (index, from, to) in segments {
        if have >= count {
            break;
        }
        let gain = to.fits - from.fits;
        let lacking = count - have;
        have += gain;
        if gain <= lacking {
            cost.add_rise(&from.cost, &to.cost);
            at.insert(index, to);
            continue;
        }
        last = (&from.cost, &to.cost, lacking, gain);
        let (index, step) = cheapest_rest(nodes, &at, lacking).unwrap_or((index, to));
        at.insert(index, step);
    }
    let (from, to, part, whole) = last;
    let cost = cost.least_whole(from, to, part, whole);
    let set = at.values().flat_map(|step| step.units.iter().copied());
    let set = set.collect();
    Bounded { cost, set }
}

/// The cheapest step on one node that makes room for so many pods more than its step so far.
fn cheapest_rest<'a>(
    nodes: &'a [NodeCosts],
    at: &BTreeMap<usize, &'a Step>,
    lacking: u64,
) -> Option<(usize, &'a Step)> {
    let candidates = nodes.iter().enumerate().filter_map(|(index, node)| {
        let from = at.get(&index).copied().or(node.steps.first())?;
        let enough = |step: &&Step| step.fits >= from.fits + lacking;
        node.steps.iter().find(enough).map(|to| (index, from, to))
    });
    let rise = |(_, from, to): &(usize, &'a Step, &'a Step)| (&from.cost, &to.cost, 1);
    let best = candidates.min_by(|(one, a, b), (other, c, d)| {
        Cost::compare_rises(rise(&(*one, *a, *b)), rise(&(*other, *c, *d))).then(one.cmp(other))
    });
    best.map(|(index, _, to)| (index, to))
}

/// The steps on the lower convex hull of cost by room.
fn corners(steps: &[Step]) -> SmallVec<[&Step; 4]> {
    let mut hull: SmallVec<[&Step; 4]> = SmallVec::new();
    for step in steps {
        while let [.., before, last] = hull.as_slice() {
            let bends = Cost::compare_rises(
                (&before.cost, &last.cost, last.fits - before.fits),
                (&last.cost, &step.cost, step.fits - last.fits),
            );
            if bends.is_lt() {
                break;
            }
            hull.pop();
        }
        hull.push(step);
    }
    hull
}
