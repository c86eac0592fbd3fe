//! A depth-first search over all ways to place the members: exact, and bounded in its steps.
//!
//! What differs only by exchange is tried once. Of equal nodes only one is tried; members of one
//! class go to nodes in rising order; and of twin leaves the earlier one begins on the earlier
//! node. Whenever there are solutions, the first one in the order of the search obeys all three
//! rules, so it is found. A branch ends as soon as counting shows that the remaining members cannot
//! fit.

use super::problem::{ANY_DOMAIN, Problem, SliceResult, Step, fits, has};
use crate::facts::Amount;
use crate::ids::{NodeId, PodId};
use alloc::{vec, vec::Vec};

/// Stands for the first node of a leaf that has no pod placed.
const NOWHERE: usize = usize::MAX;

/// The state of the search between two slices.
#[derive(Debug, Clone)]
pub(super) struct Search {
    problem: Problem,
    stack: Vec<Frame>,
    free: Vec<Amount>,
    budgets: Vec<Amount>,
    /// By group, if its rule requires a domain: the domain, and how many members are in it.
    chosen: Vec<Option<(u32, u32)>>,
    /// By group: how many of its pods have been placed, or of its children entered.
    begun: Vec<usize>,
    /// By leaf: the node of its first pod.
    first: Vec<usize>,
    /// By step: how many pods of each shape must be placed from this step on, at least.
    due: Vec<Vec<usize>>,
    started: bool,
}

/// A step on the way to the present decision, and what has been tried at it.
#[derive(Debug, Clone)]
struct Frame {
    step: usize,
    /// The next option to try.
    option: usize,
    /// The nodes that have been tried at this step.
    tried: Vec<usize>,
    made: Option<Made>,
}

/// What was decided in a frame.
#[derive(Debug, Clone, Copy)]
enum Made {
    Entered,
    Placed(usize),
    LeftOut,
}

impl Search {
    pub(super) fn new(problem: Problem) -> Self {
        let fixed = problem.groups.iter();
        Self {
            stack: Vec::new(),
            free: problem.free.clone(),
            budgets: problem.budgets.clone(),
            // A fixed domain counts one member more than it has, so that it is never given up.
            chosen: fixed.map(|rule| Some((rule.fixed?, 1))).collect(),
            begun: vec![0; problem.groups.len()],
            first: vec![NOWHERE; problem.groups.len()],
            due: due(&problem),
            problem,
            started: false,
        }
    }

    /// Searches on until there is an answer or `steps` are used up; takes those used from `steps`.
    pub(super) fn run(&mut self, steps: &mut u64) -> SliceResult {
        if !self.started {
            self.started = true;
            let Some(step) = self.open(0) else {
                return SliceResult::Found(self.placed());
            };
            if self.is_hopeless(step, steps) {
                return SliceResult::Impossible;
            }
            self.push(step);
        }
        while let Some(mut frame) = self.stack.pop() {
            if *steps == 0 {
                self.stack.push(frame);
                return SliceResult::Unfinished;
            }
            self.take_back(&mut frame);
            let Some(next) = self.decide(&mut frame, steps) else {
                continue;
            };
            self.stack.push(frame);
            let Some(next) = self.open(next) else {
                return SliceResult::Found(self.placed());
            };
            if !self.is_hopeless(next, steps) {
                self.push(next);
            }
        }
        SliceResult::Impossible
    }

    fn push(&mut self, step: usize) {
        let option = match self.problem.steps[step] {
            Step::Enter { .. } => 0,
            Step::Member { leaf, .. } => self.first_option(step, leaf),
        };
        self.stack.push(Frame {
            step,
            option,
            tried: Vec::new(),
            made: None,
        });
    }

    /// The position of the first node that a member may go to.
    fn first_option(&self, step: usize, leaf: usize) -> usize {
        let before = step.checked_sub(1).map(|before| self.problem.steps[before]);
        if let (
            Some(Step::Member {
                leaf: other, shape, ..
            }),
            Step::Member { shape: own, .. },
        ) = (before, self.problem.steps[step])
            && other == leaf
        {
            // A member goes to no earlier node than the member of its class before it.
            let made = self.stack.last().and_then(|frame| frame.made);
            return match made {
                Some(Made::Placed(node)) if shape == own => node,
                _ => 0,
            };
        }
        match self.problem.groups[leaf].twin {
            Some(twin) => self.first[twin].min(self.problem.nodes.len()),
            None => 0,
        }
    }

    /// The first step from `step` on at which there is something to decide: groups and pods that
    /// are no longer needed are passed over. `None`: everything is decided.
    fn open(&self, mut step: usize) -> Option<usize> {
        loop {
            step = match *self.problem.steps.get(step)? {
                Step::Enter { group, end } if self.is_served(self.problem.groups[group].parent) => {
                    end
                }
                Step::Member { leaf, .. } if self.is_served(leaf) => self.problem.groups[leaf].end,
                _ => return Some(step),
            };
        }
    }

    fn is_served(&self, group: usize) -> bool {
        self.begun[group] >= self.problem.groups[group].need
    }

    /// Makes the next decision of a frame, and returns the step that follows it; `None`: no option
    /// is left.
    fn decide(&mut self, frame: &mut Frame, steps: &mut u64) -> Option<usize> {
        match self.problem.steps[frame.step] {
            Step::Enter { group, end } => self.decide_group(frame, group, end),
            Step::Member { leaf, shape, .. } => self.decide_member(frame, leaf, shape, steps),
        }
    }

    fn decide_group(&mut self, frame: &mut Frame, group: usize, end: usize) -> Option<usize> {
        frame.option += 1;
        let parent = self.problem.groups[group].parent;
        match frame.option {
            1 => {
                self.begun[parent] += 1;
                frame.made = Some(Made::Entered);
                Some(frame.step + 1)
            }
            2 => {
                let rule = &self.problem.groups[parent];
                let behind = self.offered_from(parent, end);
                frame.made = Some(Made::LeftOut);
                (self.begun[parent] + behind >= rule.need).then_some(end)
            }
            _ => None,
        }
    }

    /// How many optional children of a group begin at a step or after it.
    fn offered_from(&self, parent: usize, from: usize) -> usize {
        let end = self.problem.groups[parent].end;
        let child = |step: &&Step| match step {
            Step::Enter { group, .. } => self.problem.groups[*group].parent == parent,
            Step::Member { .. } => false,
        };
        self.problem.steps[from..end].iter().filter(child).count()
    }

    fn decide_member(
        &mut self,
        frame: &mut Frame,
        leaf: usize,
        shape: usize,
        steps: &mut u64,
    ) -> Option<usize> {
        let nodes = self.problem.nodes.len();
        while frame.option < nodes {
            let node = frame.option;
            frame.option += 1;
            *steps = steps.saturating_sub(1);
            if !self.may_go(leaf, shape, node) || self.is_alike(&frame.tried, node) {
                continue;
            }
            frame.tried.push(node);
            self.place(frame.step, leaf, shape, node);
            frame.made = Some(Made::Placed(node));
            return Some(frame.step + 1);
        }
        if frame.option > nodes {
            return None;
        }
        frame.option += 1;
        // Members of a class are alike: leaving one out leaves out all members of the class after
        // it.
        let rule = &self.problem.groups[leaf];
        let alike = self.problem.steps[frame.step..rule.end].iter();
        let alike = alike.take_while(
            |step| matches!(step, Step::Member { shape: other, .. } if *other == shape),
        );
        let behind = frame.step + alike.count();
        frame.made = Some(Made::LeftOut);
        (self.begun[leaf] + (rule.end - behind) >= rule.need).then_some(behind)
    }

    fn may_go(&self, leaf: usize, shape: usize, node: usize) -> bool {
        let Problem {
            shapes,
            models,
            groups,
            dimensions,
            ..
        } = &self.problem;
        let shape = &shapes[shape];
        if !shape.eligible[node]
            || !has(Problem::row(&self.free, *dimensions, node), &shape.amounts)
            || models[node].is_some_and(|model| self.budgets[model] < shape.counted[node])
        {
            return false;
        }
        let mut group = leaf;
        loop {
            if let (Some(domains), Some((domain, _))) = (&groups[group].domains, self.chosen[group])
                && ![domain, ANY_DOMAIN].contains(&domains[node])
            {
                return false;
            }
            if group == 0 {
                return true;
            }
            group = groups[group].parent;
        }
    }

    /// Whether a node equals one that was tried, in its kind and its free amounts.
    fn is_alike(&self, tried: &[usize], node: usize) -> bool {
        let Problem {
            kinds, dimensions, ..
        } = &self.problem;
        let row = |node| Problem::row(&self.free, *dimensions, node);
        tried
            .iter()
            .any(|other| kinds[*other] == kinds[node] && row(*other) == row(node))
    }

    fn place(&mut self, step: usize, leaf: usize, shape: usize, node: usize) {
        self.charge(leaf, shape, node, true);
        let before = step.checked_sub(1).map(|before| self.problem.steps[before]);
        let first = !matches!(before, Some(Step::Member { leaf: other, .. }) if other == leaf);
        if first {
            self.first[leaf] = node;
        }
        self.begun[leaf] += 1;
    }

    /// Takes the room of a pod on a node, or gives it back.
    fn charge(&mut self, leaf: usize, shape: usize, node: usize, takes: bool) {
        let dimensions = self.problem.dimensions;
        let shape = &self.problem.shapes[shape];
        let row = &mut self.free[node * dimensions..(node + 1) * dimensions];
        for (left, amount) in row.iter_mut().zip(&shape.amounts) {
            *left = if takes {
                *left - amount
            } else {
                *left + amount
            };
        }
        if let Some(model) = self.problem.models[node] {
            let budget = &mut self.budgets[model];
            *budget = if takes {
                *budget - shape.counted[node]
            } else {
                *budget + shape.counted[node]
            };
        }
        let mut group = leaf;
        loop {
            let rule = &self.problem.groups[group];
            if let Some(domains) = &rule.domains
                && domains[node] != ANY_DOMAIN
            {
                let members = self.chosen[group].map_or(0, |(_, members)| members);
                let members = if takes { members + 1 } else { members - 1 };
                self.chosen[group] = (members > 0).then_some((domains[node], members));
            }
            if group == 0 {
                return;
            }
            group = rule.parent;
        }
    }

    /// Undoes the last decision of a frame.
    fn take_back(&mut self, frame: &mut Frame) {
        match (frame.made.take(), self.problem.steps[frame.step]) {
            (Some(Made::Entered), Step::Enter { group, .. }) => {
                self.begun[self.problem.groups[group].parent] -= 1;
            }
            (Some(Made::Placed(node)), Step::Member { leaf, shape, .. }) => {
                self.charge(leaf, shape, node, false);
                self.begun[leaf] -= 1;
                if self.begun[leaf] == 0 {
                    self.first[leaf] = NOWHERE;
                }
            }
            _ => {}
        }
    }

    /// Whether counting shows that the needed members from a step on cannot fit: there is too
    /// little room for those of one shape, or for those of the leaf at this step, each shape
    /// counted alone.
    fn is_hopeless(&self, step: usize, steps: &mut u64) -> bool {
        let due = &self.due[step];
        let nodes = self.problem.nodes.len();
        *steps = steps.saturating_sub((nodes / 4) as u64);
        let room = |shape: usize, most: usize| {
            let Problem {
                shapes, dimensions, ..
            } = &self.problem;
            let shape = &shapes[shape];
            let mut sum = 0;
            for node in 0..nodes {
                if sum >= most {
                    break;
                }
                if shape.eligible[node] {
                    let row = Problem::row(&self.free, *dimensions, node);
                    sum += fits(row, &shape.amounts, most - sum) as usize;
                }
            }
            sum
        };
        let short = |(shape, due): (usize, &usize)| *due > 0 && room(shape, *due) < *due;
        if due.iter().enumerate().any(short) {
            return true;
        }
        let Step::Member { leaf, .. } = self.problem.steps[step] else {
            return false;
        };
        let rule = &self.problem.groups[leaf];
        if rule.offered == rule.need {
            return false;
        }
        let mut waiting = vec![0; self.problem.shapes.len()];
        for step in &self.problem.steps[step..rule.end] {
            if let Step::Member { shape, .. } = step {
                waiting[*shape] += 1;
            }
        }
        let waiting = waiting.iter().enumerate().filter(|(_, pods)| **pods > 0);
        let placeable: usize = waiting.map(|(shape, pods)| room(shape, *pods)).sum();
        self.begun[leaf] + placeable < rule.need
    }

    /// The pods that have been placed, each with its node.
    fn placed(&self) -> Vec<(PodId, NodeId)> {
        let placed = self.stack.iter().filter_map(|frame| {
            match (frame.made, self.problem.steps[frame.step]) {
                (Some(Made::Placed(node)), Step::Member { pod, .. }) => {
                    Some((pod, self.problem.nodes[node]))
                }
                _ => None,
            }
        });
        placed.collect()
    }
}

/// By step: how many pods of each shape must be placed from this step on. Counted are the leaves of
/// which every pod is needed and that are in no group that may be left out.
fn due(problem: &Problem) -> Vec<Vec<usize>> {
    let mut optional_until = 0;
    let mandatory: Vec<bool> = problem
        .steps
        .iter()
        .enumerate()
        .map(|(position, step)| match step {
            Step::Enter { end, .. } => {
                optional_until = optional_until.max(*end);
                false
            }
            Step::Member { leaf, .. } => {
                let rule = &problem.groups[*leaf];
                rule.offered == rule.need && position >= optional_until
            }
        })
        .collect();
    let mut due = vec![vec![0; problem.shapes.len()]; problem.steps.len()];
    let mut sums = vec![0; problem.shapes.len()];
    for (position, step) in problem.steps.iter().enumerate().rev() {
        if let (Step::Member { shape, .. }, true) = (step, mandatory[position]) {
            sums[*shape] += 1;
        }
        due[position].clone_from(&sums);
    }
    due
}

#[cfg(test)]
mod tests;
