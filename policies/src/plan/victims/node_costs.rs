//! What it costs to make room for so many pods of one shape on one node.

use super::cost::Cost;
use crate::facts::Amount;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// How many ways to choose units on one node are looked at, at most.
const WAYS_MAX: u64 = 4_096;

/// Amounts of the resources that one pod of the shape asks for, in their order.
pub(super) type Amounts = SmallVec<[Amount; 4]>;

/// What one unit gives back on a node, and what its leaving costs there.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) unit: usize,
    pub(super) frees: Amounts,
    pub(super) cost: Cost,
}

/// A way to have room for so many pods on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) fits: u64,
    pub(super) cost: Cost,
    pub(super) units: SmallVec<[usize; 4]>,
}

/// All ways that are worth their cost, from the fewest pods up.
#[derive(Debug)]
pub(super) struct NodeCosts {
    pub(super) steps: Vec<Step>,
    /// No cheaper way was left out.
    pub(super) is_exact: bool,
}

/// Items that give back equal amounts, the cheapest first.
struct Alike<'a> {
    frees: &'a Amounts,
    items: Vec<&'a Item>,
}

impl NodeCosts {
    /// The ways to make room on a node with so much free for pods that ask for so much.
    /// `pods_max`: for more of them no room is made.
    pub(super) fn new(
        free: &Amounts,
        asked: &Amounts,
        pods_max: u64,
        items: &[Item],
        zero: &Cost,
    ) -> Self {
        let mut groups: Vec<Alike<'_>> = Vec::new();
        for item in items {
            match groups.iter_mut().find(|group| *group.frees == item.frees) {
                Some(group) => group.items.push(item),
                None => groups.push(Alike {
                    frees: &item.frees,
                    items: Vec::from([item]),
                }),
            }
        }
        let mut ways = 1u64;
        for group in &mut groups {
            group
                .items
                .sort_by(|one, other| (&one.cost, one.unit).cmp(&(&other.cost, other.unit)));
            ways = ways.saturating_mul(group.items.len() as u64 + 1);
        }
        let mut costs = Self {
            steps: Vec::new(),
            is_exact: ways <= WAYS_MAX,
        };
        let mut way = Way {
            asked,
            pods_max,
            units: SmallVec::new(),
        };
        if costs.is_exact {
            way.each(&groups, free, zero, &mut costs);
        } else {
            way.in_order(items, free.clone(), zero.clone(), &mut costs);
        }
        costs.keep_the_cheapest();
        costs
    }

    fn note(&mut self, fits: u64, cost: &Cost, units: &SmallVec<[usize; 4]>) {
        let step = || Step {
            fits,
            cost: cost.clone(),
            units: units.clone(),
        };
        match self.steps.iter_mut().find(|step| step.fits == fits) {
            Some(known) if *cost < known.cost => *known = step(),
            Some(_) => {}
            None => self.steps.push(step()),
        }
    }

    /// Leaves out the ways that make room for no more than a cheaper one.
    fn keep_the_cheapest(&mut self) {
        self.steps
            .sort_by(|one, other| (&one.cost, other.fits).cmp(&(&other.cost, one.fits)));
        let mut fits_so_far = None;
        self.steps.retain(|step| {
            let more = fits_so_far.is_none_or(|fits| step.fits > fits);
            if more {
                fits_so_far = Some(step.fits);
            }
            more
        });
    }
}

/// A way that is being put together.
struct Way<'a> {
    asked: &'a Amounts,
    pods_max: u64,
    units: SmallVec<[usize; 4]>,
}

impl Way<'_> {
    fn fits(&self, free: &Amounts) -> u64 {
        let pairs = free.iter().zip(self.asked).filter(|(_, asked)| **asked > 0);
        let fits = pairs.map(|(free, asked)| free / asked);
        fits.min().unwrap_or(self.pods_max).min(self.pods_max)
    }

    /// Looks at every way: of each group, so many of its cheapest items. Once there is room for all
    /// pods, more items of the group only add to the cost.
    fn each(&mut self, groups: &[Alike<'_>], free: &Amounts, cost: &Cost, costs: &mut NodeCosts) {
        let Some((group, rest)) = groups.split_first() else {
            costs.note(self.fits(free), cost, &self.units);
            return;
        };
        self.each(rest, free, cost, costs);
        let taken = self.units.len();
        let (mut free, mut cost) = (free.clone(), cost.clone());
        for item in &group.items {
            if self.fits(&free) >= self.pods_max {
                break;
            }
            add(&mut free, group.frees);
            cost.add(&item.cost);
            self.units.push(item.unit);
            self.each(rest, &free, &cost, costs);
        }
        self.units.truncate(taken);
    }

    /// Looks at the ways to take the cheapest items, whatever they give back.
    fn in_order(&mut self, items: &[Item], free: Amounts, cost: Cost, costs: &mut NodeCosts) {
        let (mut free, mut cost) = (free, cost);
        let mut items: Vec<&Item> = items.iter().collect();
        items.sort_by(|one, other| (&one.cost, one.unit).cmp(&(&other.cost, other.unit)));
        costs.note(self.fits(&free), &cost, &self.units);
        for item in items {
            add(&mut free, &item.frees);
            cost.add(&item.cost);
            self.units.push(item.unit);
            costs.note(self.fits(&free), &cost, &self.units);
        }
    }
}

pub(super) fn add(sums: &mut Amounts, amounts: &Amounts) {
    for (sum, amount) in sums.iter_mut().zip(amounts) {
        *sum = sum.saturating_add(*amount);
    }
}
