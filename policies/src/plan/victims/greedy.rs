//! A set of units that makes room, found without a search: node by node, the cheapest for each pod
//! that it gains.
//!
//! Where gangs stand on several nodes, the choice of [`super::bound`] takes a part of a gang's cost
//! on each of its nodes, and so takes many gangs of which it needs one node. Here a gang that was
//! taken costs nothing on its other nodes. On the node where a gang is taken first, all of its cost
//! counts, or its part for one node: sometimes the one finds a cheaper set, sometimes the other.

use super::bound::{AllDecided, AreaRoom, BoundTables, Decided, Members};
use super::cost::Cost;
use super::units::{Unit, cost_of};
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use smallvec::SmallVec;

/// The cheapest way, for each pod that it gains, to have more room on a node.
#[derive(Debug)]
struct Offer {
    node: usize,
    /// How often the node had been looked at when the offer was made: an offer is out of date once
    /// the node was looked at again.
    version: u32,
    gains: u64,
    cost: Cost,
    units: SmallVec<[usize; 4]>,
}

/// What a unit costs on a node on which it is taken.
#[derive(Debug, Clone, Copy)]
enum Counted {
    /// All that its leaving costs.
    Whole,
    /// One of as many equal parts of that cost as the unit has nodes.
    Part,
}

/// Room in an area, and the units that have left for it.
#[derive(Debug)]
struct Greedy<'a> {
    area: &'a AreaRoom,
    counted: Counted,
    members: &'a Members,
    units: &'a [Unit],
    left: AllDecided,
    /// For how many pods each node has room.
    fits: Vec<u64>,
    versions: Vec<u32>,
    /// For how many pods all nodes have room.
    total: u64,
    offers: BinaryHeap<Offer>,
}

/// The cheapest set that is found node by node; `None`: members of several shapes need room, or
/// there is too little even without all units that may leave.
pub(super) fn cheapest(tables: &BoundTables, units: &[Unit], work: &mut u64) -> Option<Vec<usize>> {
    let [need] = tables.needs.as_slice() else {
        return None;
    };
    let ways = [Counted::Whole, Counted::Part];
    let areas = need.areas.iter();
    let pairs = areas.flat_map(|area| ways.map(|counted| (area, counted)));
    let sets = pairs
        .filter_map(|(area, counted)| set(area, counted, &need.members, units, &tables.zero, work));
    sets.min_by_key(|set| cost_of(units, set, tables.zero.clone()))
}

/// The units that leave for room in one area.
fn set(
    area: &AreaRoom,
    counted: Counted,
    members: &Members,
    units: &[Unit],
    zero: &Cost,
    work: &mut u64,
) -> Option<Vec<usize>> {
    let mut greedy = Greedy {
        area,
        counted,
        members,
        units,
        left: AllDecided::new(),
        fits: vec![0; area.nodes.len()],
        versions: vec![0; area.nodes.len()],
        total: 0,
        offers: BinaryHeap::new(),
    };
    for node in 0..area.nodes.len() {
        greedy.look_at(node, zero, work);
    }
    while greedy.total < members.count {
        let offer = greedy.offers.pop()?;
        if offer.version == greedy.versions[offer.node] {
            greedy.decide(&offer.units, true, zero, work);
        }
    }
    greedy.give_back(zero, work);
    Some(greedy.left.into_keys().collect())
}

impl Greedy<'_> {
    /// Counts the room on a node, and finds the cheapest way to have more.
    fn look_at(&mut self, node: usize, zero: &Cost, work: &mut u64) {
        let of_unit = |unit: usize| match (self.left.get(&unit), self.counted) {
            (Some(decided), _) => Err(*decided),
            (None, Counted::Whole) => Ok(self.units[unit].cost.clone()),
            (None, Counted::Part) => {
                let nodes = self.area.stands_on[&unit].len();
                Ok(self.units[unit].cost.part(nodes))
            }
        };
        let costs = (self.area).node_costs(node, self.members, zero, &of_unit, work);
        let fits = costs.steps.first().map_or(0, |step| step.fits);
        self.total = self.total - self.fits[node] + fits;
        self.fits[node] = fits;
        self.versions[node] += 1;
        let offers = costs.steps.into_iter().skip(1).map(|step| Offer {
            node,
            version: self.versions[node],
            gains: step.fits - fits,
            cost: step.cost,
            units: step.units,
        });
        self.offers.extend(offers.max());
    }

    /// Lets units leave with all that leaves with them, or come back.
    fn decide(&mut self, units: &[usize], leave: bool, zero: &Cost, work: &mut u64) {
        let with_followers = units.iter().flat_map(|unit| {
            let followers = self.units[*unit].followers.iter();
            followers.chain([unit]).copied()
        });
        for unit in with_followers.collect::<Vec<_>>() {
            match leave {
                true => drop(self.left.insert(unit, Decided::Leaves)),
                false => drop(self.left.remove(&unit)),
            }
            for node in self.area.stands_on.get(&unit).into_iter().flatten() {
                self.look_at(*node, zero, work);
            }
        }
    }

    /// Lets the dearest units stay without which there is room enough.
    fn give_back(&mut self, zero: &Cost, work: &mut u64) {
        let mut by_cost: Vec<usize> = self.left.keys().copied().collect();
        by_cost.sort_by(|one, other| self.units[*other].cost.cmp(&self.units[*one].cost));
        for unit in by_cost {
            let leaves = |leader: &usize| self.left.contains_key(leader);
            let follows = self.units[unit].leaders.iter().any(leaves);
            if follows || !self.left.contains_key(&unit) {
                continue;
            }
            self.decide(&[unit], false, zero, work);
            if self.total < self.members.count {
                self.decide(&[unit], true, zero, work);
            }
        }
    }
}

/// The greatest offer costs least for each pod that it gains.
impl Ord for Offer {
    fn cmp(&self, other: &Self) -> Ordering {
        let zero = self.cost.none();
        let by_cost = Cost::compare_rises(
            (&zero, &other.cost, other.gains),
            (&zero, &self.cost, self.gains),
        );
        by_cost.then_with(|| (other.node, other.version).cmp(&(self.node, self.version)))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Offer {}
