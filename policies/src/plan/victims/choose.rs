//! The cheapest choice of one step on each node, so that enough pods have room together.

use super::cost::Cost;
use super::node_costs::{NodeCosts, Step};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::iter::Peekable;
use smallvec::SmallVec;

/// Up to which size the cheapest choice over all nodes is computed exactly.
const TABLE_MAX: u64 = 40_000;
/// How much work it is to add one step in a table, in units of about ten nanoseconds.
const TABLE_WORK: u64 = 4;
/// How much work it is to take one segment, in units of about ten nanoseconds.
const SEGMENT_WORK: u64 = 8;

/// A choice of one step on each node.
#[derive(Debug)]
pub(super) struct Chosen {
    /// No choice costs less.
    pub(super) cost: Cost,
    /// The units that leave for these steps.
    pub(super) units: Vec<usize>,
}

/// What making room costs on each node of an area while nothing is decided. A branch of a search
/// differs on few nodes, and is bounded at the cost of these and of what is chosen.
#[derive(Debug)]
pub(super) struct AllCosts {
    count: u64,
    nodes: Vec<NodeCosts>,
    sums: Sums,
    order: Order,
}

/// The order in which nodes are taken, by a table or by slopes. Each way of choosing needs an order
/// of its own, and all branches of a search use one way.
#[derive(Debug)]
enum Order {
    /// For a table: the nodes that can make room for so many pods more than they have, the cheapest
    /// first, and of those that cost as much the last.
    ByGain(BTreeMap<u64, Vec<usize>>),
    /// Where a table would be too large: the ways from one corner of a node's costs to the next,
    /// the cheapest for each pod first.
    BySlope(Vec<Segment>),
}

/// What the costs of a branch differ in, by the place of the node in the area.
pub(super) type Changed = BTreeMap<usize, NodeCosts>;

/// The way from one corner of a node's costs to the next: the places of two steps of the node.
#[derive(Debug, Clone, Copy)]
struct Segment {
    node: usize,
    from: usize,
    to: usize,
}

/// Sums over nodes.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// For how many pods there is room at no cost.
    fits_at_no_cost: u64,
    /// For how many pods room can be made.
    fits_at_most: u64,
    /// On how many nodes a cheaper way may have been left out.
    inexact: u64,
}

impl Sums {
    fn of(node: &NodeCosts) -> Self {
        Self {
            fits_at_no_cost: fits_at_no_cost(node),
            fits_at_most: node.steps.last().map_or(0, |step| step.fits),
            inexact: u64::from(!node.is_exact),
        }
    }

    fn add(&mut self, other: Self) {
        self.fits_at_no_cost += other.fits_at_no_cost;
        self.fits_at_most += other.fits_at_most;
        self.inexact += other.inexact;
    }

    fn subtract(&mut self, other: Self) {
        self.fits_at_no_cost -= other.fits_at_no_cost;
        self.fits_at_most -= other.fits_at_most;
        self.inexact -= other.inexact;
    }
}

impl AllCosts {
    /// The costs of room for `count` pods together.
    pub(super) fn new(nodes: Vec<NodeCosts>, count: u64) -> Self {
        let mut sums = Sums::default();
        for node in &nodes {
            sums.add(Sums::of(node));
        }
        let steps: u64 = nodes.iter().map(|node| node.steps.len() as u64).sum();
        let order = match steps * count <= TABLE_MAX {
            true => Order::ByGain(by_gain(&nodes)),
            false => Order::BySlope(sorted_segments(nodes.iter().enumerate())),
        };
        Self {
            count,
            nodes,
            sums,
            order,
        }
    }

    /// The least that room costs beyond `base`, and the units that give it; `None`: there is not
    /// enough even if all units leave that may.
    pub(super) fn cheapest(
        &self,
        changed: &Changed,
        base: &Cost,
        work: &mut u64,
    ) -> Option<Chosen> {
        let mut sums = self.sums;
        for (index, node) in changed {
            sums.subtract(Sums::of(&self.nodes[*index]));
            sums.add(Sums::of(node));
        }
        if sums.fits_at_most < self.count {
            return None;
        }
        let choice = Choice {
            all: self,
            changed,
            lacking: self.count.saturating_sub(sums.fits_at_no_cost),
        };
        let mut chosen = match &self.order {
            Order::ByGain(by_gain) => choice.by_table(by_gain, base, work),
            Order::BySlope(segments) => choice.by_slope(segments, base, work),
        };
        if sums.inexact > 0 {
            chosen.cost = base.clone();
        }
        Some(chosen)
    }
}

/// A choice for one branch.
struct Choice<'a> {
    all: &'a AllCosts,
    changed: &'a Changed,
    /// For how many pods room has to be made.
    lacking: u64,
}

impl<'a> Choice<'a> {
    fn node(&self, index: usize) -> &'a NodeCosts {
        let (all, changed) = (self.all, self.changed);
        changed.get(&index).unwrap_or(&all.nodes[index])
    }

    /// The nodes of which some cheapest choice makes use, in their order. It makes room on no more
    /// nodes than pods lack room, so of the nodes that can make equal room as many are enough.
    fn candidates(&self, by_gain: &BTreeMap<u64, Vec<usize>>) -> BTreeSet<usize> {
        let nodes_max = usize::try_from(self.lacking).unwrap_or(usize::MAX);
        let mut changed: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, node) in self.changed {
            for gain in gains(node) {
                changed.entry(gain).or_default().push(*index);
            }
        }
        for (gain, able) in by_gain {
            let is_unchanged = |index: &&usize| !self.changed.contains_key(index);
            let unchanged = able.iter().filter(is_unchanged).take(nodes_max);
            changed.entry(*gain).or_default().extend(unchanged);
        }
        for (gain, able) in &mut changed {
            sort_by_cost(able, *gain, |index| self.node(index));
            able.truncate(nodes_max);
        }
        changed.into_values().flatten().collect()
    }

    /// The cheapest choice, exactly.
    fn by_table(&self, by_gain: &BTreeMap<u64, Vec<usize>>, base: &Cost, work: &mut u64) -> Chosen {
        let size = usize::try_from(self.lacking).unwrap_or(usize::MAX);
        let candidates = self.candidates(by_gain);
        // The cheapest cost so far of room for so many pods, and the step of the last node.
        let mut costs: Vec<Option<Cost>> = vec![None; size + 1];
        costs[0] = Some(base.clone());
        let mut taken: Vec<Vec<usize>> = Vec::with_capacity(candidates.len());
        for node in candidates.iter().map(|index| self.node(*index)) {
            let mut next: Vec<Option<Cost>> = vec![None; size + 1];
            let mut steps = vec![usize::MAX; size + 1];
            for (have, cost) in costs.iter().enumerate() {
                let Some(cost) = cost else { continue };
                *work += TABLE_WORK * node.steps.len() as u64;
                for (index, step) in node.steps.iter().enumerate() {
                    let gain =
                        usize::try_from(step.fits - fits_at_no_cost(node)).unwrap_or(usize::MAX);
                    let now = have.saturating_add(gain).min(size);
                    let is_less = |known| cost.is_less_with(&step.cost, known);
                    if next[now].as_ref().is_none_or(is_less) {
                        let mut sum = cost.clone();
                        sum.add(&step.cost);
                        next[now] = Some(sum);
                        steps[now] = index * (size + 1) + have;
                    }
                }
            }
            costs = next;
            taken.push(steps);
        }
        let (mut at, mut units) = (size, Vec::new());
        for (node, steps) in candidates.iter().zip(&taken).rev() {
            let (index, have) = (steps[at] / (size + 1), steps[at] % (size + 1));
            units.extend(self.node(*node).steps[index].units.iter().copied());
            at = have;
        }
        let cost = costs[size].as_ref().unwrap_or(base);
        let cost = cost.least_whole(base, base, 0, 1);
        Chosen { cost, units }
    }

    /// The cheapest choice where parts of steps may be taken: a bound. The units are of whole
    /// steps, so they may cost more.
    fn by_slope(&self, segments: &[Segment], base: &Cost, work: &mut u64) -> Chosen {
        let mut cost = base.clone();
        let mut at: BTreeMap<usize, &Step> = BTreeMap::new();
        let mut last = (base, base, 0, 1);
        let mut lacking = self.lacking;
        let own = self.changed.iter().map(|(index, node)| (*index, node));
        let own = sorted_segments(own);
        for segment in self.merged(segments, &own) {
            if lacking == 0 {
                break;
            }
            *work += SEGMENT_WORK;
            let (from, to) = self.steps_of(segment);
            let gain = to.fits - from.fits;
            if gain <= lacking {
                lacking -= gain;
                cost.add_rise(&from.cost, &to.cost);
                at.insert(segment.node, to);
                continue;
            }
            last = (&from.cost, &to.cost, lacking, gain);
            *work += SEGMENT_WORK * self.all.nodes.len() as u64;
            let rest = self.cheapest_rest(&at, lacking);
            let (index, step) = rest.unwrap_or((segment.node, to));
            at.insert(index, step);
            break;
        }
        let (from, to, part, whole) = last;
        let cost = cost.least_whole(from, to, part, whole);
        let units = at.values().flat_map(|step| step.units.iter().copied());
        let units = units.collect();
        Chosen { cost, units }
    }

    fn steps_of(&self, segment: Segment) -> (&'a Step, &'a Step) {
        let steps = &self.node(segment.node).steps;
        (&steps[segment.from], &steps[segment.to])
    }

    /// The segments of all nodes in their order. `all`: the segments while nothing is decided;
    /// `own`: the segments of the changed nodes.
    fn merged<'b>(
        &'b self,
        all: &'b [Segment],
        own: &'b [Segment],
    ) -> impl Iterator<Item = Segment> + 'b {
        let all = all.iter().copied();
        let mut all = all
            .filter(|segment| !self.changed.contains_key(&segment.node))
            .peekable();
        let mut own = own.iter().copied().peekable();
        let next_is_own =
            |all: &mut Peekable<_>, own: &mut Peekable<_>| match (all.peek(), own.peek()) {
                (Some(one), Some(other)) => {
                    let order = compare((other, self.steps_of(*other)), (one, self.steps_of(*one)));
                    order.is_lt()
                }
                (one, _) => one.is_none(),
            };
        core::iter::from_fn(move || match next_is_own(&mut all, &mut own) {
            true => own.next(),
            false => all.next(),
        })
    }

    /// The cheapest step on one node that makes room for so many pods more than its step so far.
    fn cheapest_rest(
        &self,
        at: &BTreeMap<usize, &'a Step>,
        lacking: u64,
    ) -> Option<(usize, &'a Step)> {
        let candidates = (0..self.all.nodes.len()).filter_map(|index| {
            let steps = &self.node(index).steps;
            let from = at.get(&index).copied().or(steps.first())?;
            let enough = |step: &&Step| step.fits >= from.fits + lacking;
            steps.iter().find(enough).map(|to| (index, from, to))
        });
        let rise = |(_, from, to): &(usize, &'a Step, &'a Step)| (&from.cost, &to.cost, 1);
        let best = candidates.min_by(|(one, a, b), (other, c, d)| {
            Cost::compare_rises(rise(&(*one, *a, *b)), rise(&(*other, *c, *d))).then(one.cmp(other))
        });
        best.map(|(index, _, to)| (index, to))
    }
}

/// For how many pods a node has room at no cost.
fn fits_at_no_cost(node: &NodeCosts) -> u64 {
    node.steps.first().map_or(0, |step| step.fits)
}

/// The nodes that can make room for so many pods more than they have, by cost.
fn by_gain(nodes: &[NodeCosts]) -> BTreeMap<u64, Vec<usize>> {
    let mut by_gain: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for gain in gains(node) {
            by_gain.entry(gain).or_default().push(index);
        }
    }
    for (gain, able) in &mut by_gain {
        sort_by_cost(able, *gain, |index| &nodes[index]);
    }
    by_gain
}

/// For how many pods more a node can make room.
fn gains(node: &NodeCosts) -> impl Iterator<Item = u64> {
    let at_no_cost = fits_at_no_cost(node);
    node.steps
        .iter()
        .skip(1)
        .map(move |step| step.fits - at_no_cost)
}

/// Sorts nodes by the cost of a gain that all of them have; of nodes that cost as much the last
/// comes first.
fn sort_by_cost<'a>(able: &mut [usize], gain: u64, node: impl Fn(usize) -> &'a NodeCosts) {
    let cost = |index: usize| cost_of_gain(node(index), gain);
    able.sort_by(|one, other| cost(*one).cmp(&cost(*other)).then(other.cmp(one)));
}

fn cost_of_gain(node: &NodeCosts, gain: u64) -> Option<&Cost> {
    let fits = fits_at_no_cost(node) + gain;
    let step = node.steps.iter().find(|step| step.fits == fits);
    step.map(|step| &step.cost)
}

/// The segments of some nodes, the cheapest for each pod first.
fn sorted_segments<'a>(nodes: impl Iterator<Item = (usize, &'a NodeCosts)>) -> Vec<Segment> {
    let mut segments: Vec<(Segment, (&Step, &Step))> = Vec::new();
    for (index, node) in nodes {
        let corners = corners(&node.steps);
        segments.extend(corners.windows(2).map(|pair| {
            let (from, to) = (pair[0], pair[1]);
            let segment = Segment {
                node: index,
                from,
                to,
            };
            (segment, (&node.steps[from], &node.steps[to]))
        }));
    }
    segments
        .sort_by(|(one, of_one), (other, of_other)| compare((one, *of_one), (other, *of_other)));
    segments.into_iter().map(|(segment, _)| segment).collect()
}

/// The order of two segments, each with its steps.
fn compare(
    (one, (a, b)): (&Segment, (&Step, &Step)),
    (other, (c, d)): (&Segment, (&Step, &Step)),
) -> core::cmp::Ordering {
    let order = Cost::compare_rises(
        (&a.cost, &b.cost, b.fits - a.fits),
        (&c.cost, &d.cost, d.fits - c.fits),
    );
    order.then((one.node, one.from).cmp(&(other.node, other.from)))
}

/// The places of the steps on the lower convex hull of cost by room.
fn corners(steps: &[Step]) -> SmallVec<[usize; 4]> {
    let mut hull: SmallVec<[usize; 4]> = SmallVec::new();
    for (index, step) in steps.iter().enumerate() {
        while let [.., before, last] = hull.as_slice() {
            let (before, last) = (&steps[*before], &steps[*last]);
            let bends = Cost::compare_rises(
                (&before.cost, &last.cost, last.fits - before.fits),
                (&last.cost, &step.cost, step.fits - last.fits),
            );
            if bends.is_lt() {
                break;
            }
            hull.pop();
        }
        hull.push(index);
    }
    hull
}

#[cfg(test)]
mod tests;
