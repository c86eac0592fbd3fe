//! As many members as a greedy packer places: a start for those who look for the most.
//!
//! Members go to the tightest node first, groups to the domain that holds most of them. What is
//! placed is a possible placement; that nothing better exists is not said.

use super::problem::{Problem, Step};
use super::two_shapes::fits;
use crate::facts::Amount;
use alloc::{collections::BTreeSet, vec::Vec};

/// How much of a problem was placed.
pub(super) struct Greedy<'a> {
    problem: &'a Problem,
    free: Vec<Amount>,
    budgets: Vec<Amount>,
    /// Steps of members, and where they go.
    pub(super) placed: Vec<(usize, usize)>,
    /// Steps of members that are needed and have no place.
    pub(super) left: Vec<usize>,
}

/// How much there was at a moment.
type Mark = (usize, usize);

impl<'a> Greedy<'a> {
    /// Places what it can.
    pub(super) fn of(problem: &'a Problem) -> Self {
        let mut greedy = Self {
            problem,
            free: problem.free.clone(),
            budgets: problem.budgets.clone(),
            placed: Vec::new(),
            left: Vec::new(),
        };
        let nodes: Vec<usize> = (0..problem.nodes.len()).collect();
        greedy.group(0, &nodes);
        greedy
    }

    fn mark(&self) -> Mark {
        (self.placed.len(), self.left.len())
    }

    fn take_back(&mut self, (placed, left): Mark) {
        while self.placed.len() > placed
            && let Some((step, node)) = self.placed.pop()
        {
            self.charge(step, node, false);
        }
        self.left.truncate(left);
    }

    /// Places a group on these nodes, in the best of their domains.
    fn group(&mut self, group: usize, nodes: &[usize]) {
        let rule = &self.problem.groups[group];
        let Some(domains) = &rule.domains else {
            return self.inside(group, nodes);
        };
        let found: BTreeSet<u32> = match rule.fixed {
            Some(domain) => BTreeSet::from([domain]),
            None => nodes.iter().map(|node| domains[*node]).collect(),
        };
        // The domain of the tightest node goes first where several hold as many.
        let first = |domain: &u32| nodes.iter().position(|node| domains[*node] == *domain);
        let mut found: Vec<u32> = found.into_iter().collect();
        found.sort_by_cached_key(first);
        let of = |domain: u32| -> Vec<usize> {
            let inside = nodes.iter().copied();
            inside.filter(|node| domains[*node] == domain).collect()
        };
        let start = self.mark();
        let mut best: Option<(usize, u32)> = None;
        for domain in found {
            self.inside(group, &of(domain));
            let left = self.left.len() - start.1;
            self.take_back(start);
            if best.is_none_or(|(fewest, _)| left < fewest) {
                best = Some((left, domain));
            }
            if left == 0 {
                break;
            }
        }
        let nodes = best.map_or_else(Vec::new, |(_, domain)| of(domain));
        self.inside(group, &nodes);
    }

    fn inside(&mut self, group: usize, nodes: &[usize]) {
        let rule = &self.problem.groups[group];
        let children: Vec<usize> = (1..self.problem.groups.len())
            .filter(|child| self.problem.groups[*child].parent == group)
            .filter(|child| self.problem.groups[*child].end > 0)
            .filter(|child| self.problem.groups[*child].offered > 0)
            .collect();
        if children.is_empty() {
            return self.leaf(group, nodes);
        }
        if rule.need >= children.len() {
            for child in children {
                self.group(child, nodes);
            }
            return;
        }
        // Those that come nearest, one after the other.
        let mut open = children;
        for _ in 0..rule.need {
            let start = self.mark();
            let mut best: Option<(usize, usize)> = None;
            for (position, child) in open.iter().enumerate() {
                self.group(*child, nodes);
                let left = self.left.len() - start.1;
                self.take_back(start);
                if best.is_none_or(|(fewest, _)| left < fewest) {
                    best = Some((left, position));
                }
            }
            let Some((_, position)) = best else { return };
            let child = open.remove(position);
            self.group(child, nodes);
        }
    }

    /// Places the pods of a leaf: of each shape as many on a node as fit.
    fn leaf(&mut self, leaf: usize, nodes: &[usize]) {
        let problem = self.problem;
        let of_leaf = |(_, step): &(usize, &Step)| matches!(step, Step::Member { leaf: of, .. } if *of == leaf);
        let steps = problem.steps.iter().enumerate().filter(of_leaf);
        let steps: Vec<usize> = steps.map(|(position, _)| position).collect();
        let mut need = problem.groups[leaf].need;
        let mut out: Vec<usize> = Vec::new();
        let mut rest = steps.as_slice();
        while let Some(first) = rest.first() {
            let shape = self.shape(*first);
            let alike = rest.iter().take_while(|step| self.shape(**step) == shape);
            let (run, others) = rest.split_at(alike.count());
            rest = others;
            let mut run = run.iter();
            for node in nodes {
                let most = run.len().min(need);
                for step in run.by_ref().take(self.room(shape, *node, most)) {
                    self.charge(*step, *node, true);
                    self.placed.push((*step, *node));
                    need -= 1;
                }
            }
            out.extend(run);
        }
        self.left.extend(out.into_iter().take(need));
    }

    fn shape(&self, step: usize) -> usize {
        match self.problem.steps[step] {
            Step::Member { shape, .. } => shape,
            Step::Enter { .. } => 0,
        }
    }

    /// How many of a shape fit on a node, up to `most`.
    fn room(&self, shape: usize, node: usize, most: usize) -> usize {
        let problem = self.problem;
        let shape = &problem.shapes[shape];
        if most == 0 || !shape.eligible[node] {
            return 0;
        }
        let row = Problem::row(&self.free, problem.dimensions, node);
        let fit = fits(row, &shape.amounts, most) as usize;
        let budget = problem.models[node].map(|model| self.budgets[model]);
        let allowed = budget.and_then(|budget| budget.checked_div(shape.gpus));
        allowed.map_or(fit, |allowed| {
            fit.min(usize::try_from(allowed).unwrap_or(usize::MAX))
        })
    }

    /// Takes the room of a pod, or gives it back.
    fn charge(&mut self, step: usize, node: usize, takes: bool) {
        let dimensions = self.problem.dimensions;
        let shape = &self.problem.shapes[self.shape(step)];
        let change = |left: &mut Amount, amount: Amount| {
            *left = if takes {
                *left - amount
            } else {
                *left + amount
            };
        };
        let row = &mut self.free[node * dimensions..(node + 1) * dimensions];
        for (left, amount) in row.iter_mut().zip(&shape.amounts) {
            change(left, *amount);
        }
        if let Some(model) = self.problem.models[node] {
            change(&mut self.budgets[model], shape.gpus);
        }
    }
}
