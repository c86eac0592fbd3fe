//! A greedy packer: places as many members as it can, as a start for finding the largest subset.
//!
//! Members go to the tightest node first, groups to the domain that holds most of their members.
//! The result is a valid placement; a better one may exist.

use super::problem::{Problem, Step, fits};
use crate::facts::Amount;
use alloc::{collections::BTreeMap, vec, vec::Vec};

/// The packer, and after it has run, its result.
pub(super) struct Greedy<'a> {
    problem: &'a Problem,
    /// By group: its children that have something to place.
    children: Vec<Vec<usize>>,
    /// By group: the steps of its own pods.
    pods: Vec<Vec<usize>>,
    free: Vec<Amount>,
    budgets: Vec<Amount>,
    /// The steps of members that have a place, and the positions of their nodes.
    pub(super) placed: Vec<(usize, usize)>,
    /// The steps of needed members that have no place.
    pub(super) left: Vec<usize>,
}

/// The lengths of `placed` and `left` at a moment, to return to.
type Mark = (usize, usize);

impl<'a> Greedy<'a> {
    /// Packs a problem as far as it goes.
    pub(super) fn of(problem: &'a Problem) -> Self {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); problem.groups.len()];
        for (group, rule) in problem.groups.iter().enumerate().skip(1) {
            if rule.offered > 0 {
                children[rule.parent].push(group);
            }
        }
        let mut pods: Vec<Vec<usize>> = vec![Vec::new(); problem.groups.len()];
        for (position, step) in problem.steps.iter().enumerate() {
            if let Step::Member { leaf, .. } = step {
                pods[*leaf].push(position);
            }
        }
        let mut greedy = Self {
            problem,
            children,
            pods,
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

    /// Places a group on these nodes; if it must be in one domain, in the one that leaves the
    /// fewest members without a place.
    fn group(&mut self, group: usize, nodes: &[usize]) {
        let rule = &self.problem.groups[group];
        let Some(domains) = &rule.domains else {
            return self.inside(group, nodes);
        };
        // Nodes come tightest first: of equally good domains, the one with the tightest node is
        // taken.
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut known: BTreeMap<u32, usize> = BTreeMap::new();
        for node in nodes {
            let domain = domains[*node];
            if rule.fixed.is_some_and(|fixed| fixed != domain) {
                continue;
            }
            let part = *known.entry(domain).or_insert(parts.len());
            if part == parts.len() {
                parts.push(Vec::new());
            }
            parts[part].push(*node);
        }
        let start = self.mark();
        let mut best: Option<(usize, usize)> = None;
        for (position, part) in parts.iter().enumerate() {
            self.inside(group, part);
            let left = self.left.len() - start.1;
            if left == 0 {
                return;
            }
            self.take_back(start);
            if best.is_none_or(|(fewest, _)| left < fewest) {
                best = Some((left, position));
            }
        }
        let best = best.map_or(&[] as &[usize], |(_, position)| &parts[position]);
        self.inside(group, best);
    }

    fn inside(&mut self, group: usize, nodes: &[usize]) {
        let rule = &self.problem.groups[group];
        let children = self.children[group].clone();
        if children.is_empty() {
            return self.leaf(group, nodes);
        }
        // If not all children are needed, complete ones are taken first, then those that lack
        // least.
        let (mut need, more) = (rule.need, children.len() > rule.need);
        let mut skipped: Vec<(usize, usize)> = Vec::new();
        for child in children {
            if need == 0 {
                return;
            }
            let start = self.mark();
            self.group(child, nodes);
            let left = self.left.len() - start.1;
            if left > 0 && more {
                self.take_back(start);
                skipped.push((left, child));
            } else {
                need -= 1;
            }
        }
        skipped.sort_unstable();
        for (_, child) in skipped.into_iter().take(need) {
            self.group(child, nodes);
        }
    }

    /// Places the pods of a leaf shape by shape, on each node as many as fit.
    fn leaf(&mut self, leaf: usize, nodes: &[usize]) {
        let problem = self.problem;
        let steps = self.pods[leaf].clone();
        let mut need = problem.groups[leaf].need;
        let mut left: Vec<usize> = Vec::new();
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
            left.extend(run);
        }
        self.left.extend(left.into_iter().take(need));
    }

    fn shape(&self, step: usize) -> usize {
        match self.problem.steps[step] {
            Step::Member { shape, .. } => shape,
            Step::Enter { .. } => 0,
        }
    }

    /// How many pods of a shape fit on a node, up to `most`.
    fn room(&self, shape: usize, node: usize, most: usize) -> usize {
        let problem = self.problem;
        let shape = &problem.shapes[shape];
        if most == 0 || !shape.eligible[node] {
            return 0;
        }
        let row = Problem::row(&self.free, problem.dimensions, node);
        let fit = fits(row, &shape.amounts, most) as usize;
        let allowed = problem.models[node]
            .and_then(|model| self.budgets[model].checked_div(shape.counted[node]));
        allowed.map_or(fit, |allowed| {
            fit.min(usize::try_from(allowed).unwrap_or(usize::MAX))
        })
    }

    /// Takes the room of a pod on a node, or gives it back.
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
            change(&mut self.budgets[model], shape.counted[node]);
        }
    }
}
