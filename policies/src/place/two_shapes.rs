//! Members of two shapes: exact, however many they are.
//!
//! On one node it only matters how many of the second shape fit beside so many of the first. Node
//! by node this gives, for each number of pods of the first shape, the most of the second that fit
//! on the nodes so far.

use super::problem::{Problem, Step};
use super::search::Progress;
use crate::facts::Amount;
use crate::ids::{NodeId, PodId};
use alloc::{vec, vec::Vec};

/// How large a problem may be: nodes times pods of the first shape.
const SIZE_MAX: usize = 4_000_000;

/// The state of the computation between two slices.
#[derive(Debug, Clone)]
pub(super) struct TwoShapes {
    problem: Problem,
    /// The shape with fewer pods, and the other.
    order: [usize; 2],
    pods: [Vec<PodId>; 2],
    need: usize,
    /// By number of pods of the first shape: the most of the second on the nodes so far.
    most: Vec<Option<u32>>,
    /// The same before each node, to find the way back.
    before: Vec<Vec<Option<u32>>>,
}

impl TwoShapes {
    /// Whether a problem is of this kind, and not too large.
    pub(super) fn suits(problem: &Problem) -> bool {
        let [rule] = problem.groups.as_slice() else {
            return false;
        };
        let size = problem.nodes.len().saturating_mul(rule.offered / 2 + 1);
        problem.shapes.len() == 2 && problem.budgets.is_empty() && problem.exact && size <= SIZE_MAX
    }

    /// For a problem that suits.
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
        let mut most = vec![None; pods[0].len() + 1];
        most[0] = Some(0);
        Self {
            need: problem.groups[0].need,
            problem,
            order,
            pods,
            most,
            before: Vec::new(),
        }
    }

    /// Goes on until `steps` are used up.
    pub(super) fn run(&mut self, steps: &mut u64) -> Progress {
        loop {
            if let Some(first) = self.enough() {
                return Progress::Found(self.way_back(first));
            }
            if self.before.len() == self.problem.nodes.len() {
                return Progress::Impossible;
            }
            if *steps == 0 {
                return Progress::Unfinished;
            }
            self.next_node(steps);
        }
    }

    /// How many pods of the first shape are in a solution that is complete.
    fn enough(&self) -> Option<usize> {
        let enough = |(first, second): (usize, &Option<u32>)| {
            second.is_some_and(|second| first + second as usize >= self.need)
        };
        let mut numbers = self.most.iter().enumerate().rev();
        numbers.find_map(|(first, second)| enough((first, second)).then_some(first))
    }

    fn next_node(&mut self, steps: &mut u64) {
        let node = self.before.len();
        let beside = self.beside(node);
        let mut most = vec![None; self.most.len()];
        let wanted = u32::try_from(self.pods[1].len()).unwrap_or(u32::MAX);
        for (first, second) in self.most.iter().enumerate() {
            let Some(second) = second else { continue };
            for (here, beside) in beside.iter().enumerate() {
                let Some(entry) = most.get_mut(first + here) else {
                    break;
                };
                let sum = second.saturating_add(*beside).min(wanted);
                *entry = (*entry).max(Some(sum));
            }
        }
        // An addition here is far cheaper than a step of the search.
        let cost = (self.most.len() * beside.len()) as u64 / 64 + 1;
        *steps = steps.saturating_sub(cost);
        self.before.push(core::mem::replace(&mut self.most, most));
    }

    /// How many of the second shape fit on a node beside none, one, two, ... of the first.
    fn beside(&self, node: usize) -> Vec<u32> {
        let [first, second] = self.order.map(|shape| &self.problem.shapes[shape]);
        let row = Problem::row(&self.problem.free, self.problem.dimensions, node);
        let mut left: Vec<Amount> = row.to_vec();
        let mut beside = Vec::new();
        loop {
            beside.push(if second.eligible[node] {
                fits(&left, &second.amounts, self.pods[1].len())
            } else {
                0
            });
            let more = first.eligible[node]
                && beside.len() < self.most.len()
                && has(&left, &first.amounts);
            if !more {
                return beside;
            }
            for (left, amount) in left.iter_mut().zip(&first.amounts) {
                *left -= amount;
            }
        }
    }

    /// Who goes where, from the last node back to the first.
    fn way_back(&self, first: usize) -> Vec<(PodId, NodeId)> {
        let mut placed = Vec::new();
        let mut firsts = self.pods[0].iter();
        let mut seconds = self.pods[1].iter();
        let (mut first, mut second) = (first, self.most[first].unwrap_or(0));
        for (position, before) in self.before.iter().enumerate().rev() {
            let beside = self.beside(position);
            let ways = beside.iter().enumerate();
            let way = ways
                .filter(|(here, _)| *here <= first)
                .find_map(|(here, beside)| {
                    let there = before[first - here]?;
                    (there.saturating_add(*beside) >= second)
                        .then(|| (here, second - there.min(second)))
                });
            let Some((here, more)) = way else { continue };
            let node = self.problem.nodes[position];
            placed.extend(firsts.by_ref().take(here).map(|pod| (*pod, node)));
            placed.extend(seconds.by_ref().take(more as usize).map(|pod| (*pod, node)));
            first -= here;
            second -= more;
        }
        placed
    }
}

/// Whether one more pod fits into what is left.
pub(super) fn has(left: &[Amount], amounts: &[Amount]) -> bool {
    left.iter()
        .zip(amounts)
        .all(|(left, amount)| amount <= left)
}

/// How many pods fit into what is left, up to `most`.
pub(super) fn fits(left: &[Amount], amounts: &[Amount], most: usize) -> u32 {
    let all = u64::try_from(most).unwrap_or(u64::MAX);
    let asked = left.iter().zip(amounts).filter(|(_, amount)| **amount > 0);
    let fewest = asked.fold(all, |fewest, (left, amount)| {
        // Most pods take most of a node: a comparison spares most divisions.
        if *left < amount.saturating_mul(fewest) {
            left / amount
        } else {
            fewest
        }
    });
    u32::try_from(fewest).unwrap_or(u32::MAX)
}
