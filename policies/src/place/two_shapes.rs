//! Counts members of two shapes: exact, however many members there are.
//!
//! Of one node it only matters how many pods of the second shape fit beside each number of pods of
//! the first: these numbers are its staircase. Several nodes together have the (max, +) convolution
//! of their staircases. Nodes with equal staircases form a group; doubling makes blocks of 1, 2, 4
//! and so on of them, and the blocks are added up one after the other:
//!
//! ```text
//! nodes --staircases--> groups of equals --doubled--> blocks of 1, 2, 4, ... --added--> the most
//! ```
//!
//! There are `n` nodes in `g` groups and `a` pods of the rarer shape, which is the first; at most
//! `p` of them fit on a node, and at `c` of these numbers the staircase goes down. The staircases
//! take `n p` steps, and the sums at most `n c a`, or `g a² log n` if that is less. For the way
//! back, `g log n` rows of `a` numbers are kept, at most `n` rows.

use super::problem::{Problem, SliceResult, Step, fits, has};
use crate::facts::Amount;
use crate::ids::{NodeId, PodId};
use alloc::{collections::BTreeMap, vec, vec::Vec};

/// How large a problem may be: nodes times pods of the rarer shape. The largest takes 128 MiB if no
/// two nodes are alike.
const SIZE_MAX: usize = 1 << 25;
/// How many additions of the sums are as much work as one step of a search.
const SUMS_PER_STEP: usize = 64;

/// A staircase. Entry `i`: the most pods of the second shape that fit beside `i` pods of the first.
/// It ends where no more pods of the first shape fit, and its entries never rise.
type Row = Vec<u32>;

/// The state of the computation between two slices.
#[derive(Debug)]
pub(super) struct TwoShapes {
    problem: Problem,
    /// The rarer shape (here: the first) and the other (the second).
    order: [usize; 2],
    /// The pods of the first and of the second shape, at most `need` of each.
    pods: [Vec<PodId>; 2],
    need: usize,
    /// How many nodes have been put into their groups.
    grouped: usize,
    groups: Vec<Group>,
    /// The group of each staircase.
    known: BTreeMap<Row, usize>,
    /// The group at work.
    group: usize,
    /// The power at work: blocks of two to the power of this many nodes.
    doubled: usize,
    /// The sum under way.
    sum: Option<Sum>,
    /// The staircase of all blocks that have been added.
    staircase: Row,
    added: Vec<Block>,
}

/// Nodes with equal staircases.
#[derive(Debug)]
struct Group {
    nodes: Vec<NodeId>,
    /// The staircases of 1, 2, 4, ... nodes of the group together.
    powers: Vec<Row>,
}

/// Nodes of one group that were added at once.
#[derive(Debug)]
struct Block {
    group: usize,
    /// The block has two to the power of this many nodes.
    power: usize,
    /// The position of its first node in the group.
    from: usize,
    /// The staircase of the blocks that were added before it.
    before: Row,
}

/// A convolution under way.
#[derive(Debug)]
struct Sum {
    /// How many entries of the first row have been added.
    done: usize,
    into: Row,
}

impl TwoShapes {
    /// Whether a problem has one group, two shapes, no limits on GPU models and exact numbers, and
    /// is not too large.
    pub(super) fn suits(problem: &Problem) -> bool {
        let [rule] = problem.groups.as_slice() else {
            return false;
        };
        let size = problem.nodes.len().saturating_mul(rule.offered / 2 + 1);
        problem.shapes.len() == 2 && problem.budgets.is_empty() && problem.exact && size <= SIZE_MAX
    }

    /// Begins with a problem for which [`TwoShapes::suits`] is true.
    pub(super) fn new(problem: Problem) -> Self {
        let mut pods = [Vec::new(), Vec::new()];
        for step in &problem.steps {
            if let Step::Member { shape, pod, .. } = step {
                pods[*shape].push(*pod);
            }
        }
        let mut order = [0, 1];
        if pods[1].len() < pods[0].len() {
            order.reverse();
            pods.reverse();
        }
        let need = problem.groups[0].need;
        for pods in &mut pods {
            pods.truncate(need);
        }
        Self {
            need,
            problem,
            order,
            pods,
            grouped: 0,
            groups: Vec::new(),
            known: BTreeMap::new(),
            group: 0,
            doubled: 0,
            sum: None,
            staircase: vec![0],
            added: Vec::new(),
        }
    }

    /// Counts on until there is an answer or `steps` are used up; takes those used from `steps`.
    pub(super) fn run(&mut self, steps: &mut u64) -> SliceResult {
        loop {
            if *steps == 0 {
                return SliceResult::Unfinished;
            }
            if self.grouped < self.problem.nodes.len() {
                self.put_into_group(steps);
            } else if let Some(group) = self.groups.get(self.group) {
                // Each pod is on one node: more nodes than needed pods are of no use.
                let nodes = group.nodes.len().min(self.need);
                if let Some(progress) = self.go_on(nodes, steps) {
                    return progress;
                }
            } else {
                return self.answer().unwrap_or(SliceResult::Impossible);
            }
        }
    }

    /// The members with their nodes, if the blocks so far have room for enough.
    fn answer(&self) -> Option<SliceResult> {
        let enough = |(first, second): (usize, &u32)| first + *second as usize >= self.need;
        let mut numbers = self.staircase.iter().enumerate().rev();
        let first = numbers.find_map(|(first, second)| enough((first, second)).then_some(first))?;
        Some(SliceResult::Found(self.way_back(first)))
    }

    /// Puts the next node into the group of its staircase.
    fn put_into_group(&mut self, steps: &mut u64) {
        let stairs = self.stairs(self.grouped);
        *steps = steps.saturating_sub(1 + stairs.len() as u64 / 2);
        let node = self.problem.nodes[self.grouped];
        self.grouped += 1;
        let next = self.groups.len();
        let group = *self.known.entry(stairs.clone()).or_insert(next);
        if group == next {
            self.groups.push(Group {
                nodes: Vec::new(),
                powers: vec![stairs],
            });
        }
        self.groups[group].nodes.push(node);
    }

    /// Does the next doubling or adding for the group at work, of which `nodes` nodes count.
    /// Returns an answer as soon as there is room for enough.
    fn go_on(&mut self, nodes: usize, steps: &mut u64) -> Option<SliceResult> {
        let (group, power) = (self.group, self.doubled);
        let wanted = self.pods.each_ref().map(Vec::len);
        let is_made = self.groups[group].powers.len() > power;
        let adds = is_made && nodes >> power & 1 == 1;
        if is_made && !adds {
            self.next_power(nodes);
            return None;
        }
        let powers = &self.groups[group].powers;
        let (first, second) = if adds {
            (&powers[power], &self.staircase)
        } else {
            (&powers[power - 1], &powers[power - 1])
        };
        let sum = self
            .sum
            .get_or_insert_with(|| Sum::new(first, second, wanted));
        if !sum.go_on(first, second, steps) {
            return None;
        }
        let sum = self.sum.take()?.finished(wanted);
        if !adds {
            self.groups[group].powers.push(sum);
            return None;
        }
        let before = core::mem::replace(&mut self.staircase, sum);
        self.added.push(Block {
            group,
            power,
            // The blocks of the group that were added before are smaller.
            from: nodes & ((1 << power) - 1),
            before,
        });
        self.next_power(nodes);
        self.answer()
    }

    /// Goes on with the next power of two, or with the next group if that power exceeds `nodes`.
    fn next_power(&mut self, nodes: usize) {
        self.doubled += 1;
        if nodes >> self.doubled == 0 {
            self.group += 1;
            self.doubled = 0;
        }
    }

    /// The staircase of a node.
    fn stairs(&self, node: usize) -> Row {
        let [first, second] = self.order.map(|shape| &self.problem.shapes[shape]);
        let row = Problem::row(&self.problem.free, self.problem.dimensions, node);
        let mut left: Vec<Amount> = row.to_vec();
        let mut stairs = Vec::new();
        loop {
            stairs.push(if second.eligible[node] {
                fits(&left, &second.amounts, self.pods[1].len())
            } else {
                0
            });
            let more = first.eligible[node]
                && stairs.len() <= self.pods[0].len()
                && has(&left, &first.amounts);
            if !more {
                return stairs;
            }
            for (left, amount) in left.iter_mut().zip(&first.amounts) {
                *left -= amount;
            }
        }
    }

    /// The pods with their nodes: `first` pods of the first shape, and as many of the second as
    /// then fit. Blocks are taken apart from the last to the first.
    fn way_back(&self, first: usize) -> Vec<(PodId, NodeId)> {
        let mut firsts = self.pods[0].iter();
        let mut seconds = self.pods[1].iter();
        let mut placed = Vec::new();
        let (mut first, mut second) = (first, self.staircase[first]);
        for block in self.added.iter().rev() {
            let group = &self.groups[block.group];
            let (here, more) = split(&group.powers[block.power], &block.before, first, second);
            first -= here;
            second -= more;
            // The block is halved until each piece is one node.
            let mut open = vec![(block.power, block.from, here, more)];
            while let Some((power, from, here, more)) = open.pop() {
                if power > 0 {
                    let half = &group.powers[power - 1];
                    let (left, beside) = split(half, half, here, more);
                    open.push((power - 1, from, left, beside));
                    let from = from + (1 << (power - 1));
                    open.push((power - 1, from, here - left, more - beside));
                    continue;
                }
                let node = group.nodes[from];
                placed.extend(firsts.by_ref().take(here).map(|pod| (*pod, node)));
                placed.extend(seconds.by_ref().take(more as usize).map(|pod| (*pod, node)));
            }
        }
        placed
    }
}

/// How many pods of each shape are in `part`, if `first` and `second` pods are in `part` and
/// `other` together.
fn split(part: &Row, other: &Row, first: usize, second: u32) -> (usize, u32) {
    let ways = part.iter().enumerate().take(first + 1);
    let mut ways = ways.filter_map(|(here, beside)| {
        let there = *other.get(first - here)?;
        (there.saturating_add(*beside) >= second).then(|| (here, second - there.min(second)))
    });
    ways.next().unwrap_or((0, 0))
}

impl Sum {
    fn new(first: &Row, second: &Row, wanted: [usize; 2]) -> Self {
        let entries = (first.len() + second.len() - 1).min(wanted[0] + 1);
        Self {
            done: 0,
            into: vec![0; entries],
        }
    }

    /// Adds until the sum is complete or `steps` are used up; returns whether it is complete.
    fn go_on(&mut self, first: &Row, second: &Row, steps: &mut u64) -> bool {
        while self.done < first.len().min(self.into.len()) {
            if *steps == 0 {
                return false;
            }
            let here = self.done;
            self.done += 1;
            // An entry equal to the next is skipped: one more pod of the first shape costs nothing.
            if first.get(here + 1) == Some(&first[here]) {
                continue;
            }
            for (entry, there) in self.into[here..].iter_mut().zip(second) {
                *entry = (*entry).max(first[here] + there);
            }
            *steps = steps.saturating_sub(1 + (second.len() / SUMS_PER_STEP) as u64);
        }
        true
    }

    fn finished(mut self, wanted: [usize; 2]) -> Row {
        let most = u32::try_from(wanted[1]).unwrap_or(u32::MAX);
        let mut behind = 0;
        for entry in self.into.iter_mut().rev() {
            behind = behind.max(*entry).min(most);
            *entry = behind;
        }
        self.into
    }
}

#[cfg(test)]
mod tests;
