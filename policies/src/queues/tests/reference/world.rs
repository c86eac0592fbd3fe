//! Queues, amounts and demands for the reference: as plain numbers, and for the tree under test.

use super::super::{GPU, QueueTree, entry, queue, with};
use super::ROOT;
use crate::facts::{PastUse, QueueFacts};
use crate::queues::past::GRID_MS;
use std::vec::Vec;
use std::{format, string::String};

/// What a queue may have of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Entry {
    pub(in super::super) key: usize,
    pub(in super::super) quota: u64,
    pub(in super::super) limit: Option<u64>,
    pub(in super::super) weight: u16,
}

/// One queue; of all this the root has only children.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Queue {
    pub(in super::super) parent: usize,
    pub(in super::super) children: Vec<usize>,
    pub(in super::super) priority: i32,
    pub(in super::super) entries: Vec<Entry>,
    /// The parts of what a leaf wants, each by key: for any GPU, and for one model alone. Empty for
    /// inner queues.
    pub(in super::super) wants: Vec<Vec<u64>>,
    /// The average past use, by key, in thousandths of a unit; 0 where there is no number.
    pub(in super::super) used: Vec<u64>,
}

/// All that fair shares depend on. Older queues have lower numbers, so parents have lower numbers
/// than their children.
#[derive(Debug, Clone)]
pub(in super::super) struct World {
    /// The names of the keys, `resource` or `resource@product`; the first is plain GPUs.
    pub(in super::super) names: Vec<&'static str>,
    /// For each key of a model, the plain key of its resource.
    pub(in super::super) plain: Vec<Option<usize>>,
    pub(in super::super) capacity: Vec<u64>,
    pub(in super::super) queues: Vec<Queue>,
    /// The half-life in minutes; `None`: past use does not count.
    pub(in super::super) half_life: Option<u64>,
}

/// The keys of worlds, each with its plain key if it is one of a model; a world has the first few.
const KEYS: [(&str, Option<usize>); 6] = [
    (GPU, None),
    ("cpu", None),
    ("nvidia.com/gpu@H100", Some(0)),
    ("memory", None),
    ("nvidia.com/gpu@A100", Some(0)),
    ("example.com/license", None),
];

impl World {
    /// The weights of two more queues below the root, `default` and one that is not Ready: 1 each.
    /// Neither wants or has used anything.
    pub(in super::super) const IDLE_AT_ROOT: u64 = 2;

    /// A world of the root alone, with as many keys as there are capacities (six at most).
    pub(in super::super) fn new(capacity: &[u64]) -> Self {
        let keys = &KEYS[..capacity.len()];
        Self {
            names: keys.iter().map(|(name, _)| *name).collect(),
            plain: keys.iter().map(|(_, plain)| *plain).collect(),
            capacity: capacity.to_vec(),
            queues: std::vec![Queue::default()],
            half_life: None,
        }
    }

    /// Adds a queue; all that it wants is one part.
    pub(in super::super) fn add(
        &mut self,
        parent: usize,
        entries: Vec<Entry>,
        wants: &[u64],
    ) -> usize {
        let q = self.queues.len();
        self.queues[parent].children.push(q);
        self.queues.push(Queue {
            parent,
            entries,
            wants: Vec::from_iter((!wants.is_empty()).then(|| wants.to_vec())),
            ..Queue::default()
        });
        q
    }

    pub(in super::super) fn keys(&self) -> usize {
        self.capacity.len()
    }

    pub(in super::super) fn indices(&self) -> core::ops::Range<usize> {
        0..self.queues.len()
    }

    pub(in super::super) fn leaves(&self) -> impl Iterator<Item = usize> {
        self.indices().skip(1).filter(|&q| self.is_leaf(q))
    }

    pub(in super::super) fn is_leaf(&self, q: usize) -> bool {
        self.queues[q].children.is_empty()
    }

    /// A queue, its ancestors and the root.
    pub(in super::super) fn path(&self, q: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(Some(q), |&q| (q != ROOT).then(|| self.queues[q].parent))
    }

    /// The depth of a queue; the root has 0.
    pub(in super::super) fn level(&self, q: usize) -> usize {
        self.path(q).count() - 1
    }

    pub(in super::super) fn depth(&self) -> usize {
        self.indices().map(|q| self.level(q)).max().unwrap_or(0)
    }

    fn entry(&self, q: usize, key: usize) -> Option<&Entry> {
        self.queues[q].entries.iter().find(|entry| entry.key == key)
    }

    pub(in super::super) fn names(&self, q: usize, key: usize) -> bool {
        self.entry(q, key).is_some()
    }

    /// Whether a key is divided among a queue and its siblings: one of these names it, or it is
    /// plain GPUs.
    pub(in super::super) fn is_divided(&self, q: usize, key: usize) -> bool {
        let siblings = &self.queues[self.queues[q].parent].children;
        q != ROOT && (key == 0 || siblings.iter().any(|&sibling| self.names(sibling, key)))
    }

    pub(in super::super) fn divided_below(&self, q: usize) -> Vec<usize> {
        let Some(&child) = self.queues[q].children.first() else {
            return Vec::new();
        };
        let keys = 0..self.keys();
        keys.filter(|&key| self.is_divided(child, key)).collect()
    }

    pub(in super::super) fn quota(&self, q: usize, key: usize) -> u64 {
        self.entry(q, key).map_or(0, |entry| entry.quota)
    }

    pub(in super::super) fn weight(&self, q: usize, key: usize) -> u16 {
        self.entry(q, key).map_or(1, |entry| entry.weight)
    }

    /// The average past use of a queue; 0 where past use does not count.
    pub(in super::super) fn used(&self, q: usize, key: usize) -> u64 {
        let used = self.half_life.and_then(|_| self.queues[q].used.get(key));
        used.copied().unwrap_or(0)
    }

    pub(in super::super) fn limit(&self, q: usize, key: usize) -> Option<u64> {
        self.entry(q, key)?.limit
    }

    /// What a queue never exceeds: its limit; the root the capacity.
    pub(in super::super) fn bound(&self, q: usize, key: usize) -> Option<u64> {
        if q == ROOT {
            Some(self.capacity[key])
        } else {
            self.limit(q, key)
        }
    }

    /// The most that a queue can have, by key: the least of the limits on its path and the
    /// capacity.
    pub(in super::super) fn most(&self, q: usize) -> Vec<u64> {
        let most = |key: usize| self.path(q).filter_map(|q| self.bound(q, key)).min();
        (0..self.keys()).map(|key| most(key).unwrap_or(0)).collect()
    }

    /// What a queue and the queues below it want, by key.
    pub(in super::super) fn wants_of(&self, q: usize) -> Vec<u64> {
        let mut wants = std::vec![0u64; self.keys()];
        for part in &self.queues[q].wants {
            for (sum, wanted) in wants.iter_mut().zip(part) {
                *sum += wanted;
            }
        }
        for &child in &self.queues[q].children {
            for (sum, wanted) in wants.iter_mut().zip(self.wants_of(child)) {
                *sum += wanted;
            }
        }
        wants
    }

    pub(in super::super) fn name(q: usize) -> String {
        format!("q{q:03}")
    }

    /// The queues of this world as facts for the tree under test.
    pub(in super::super) fn definitions(&self) -> Vec<QueueFacts> {
        let one = |(q, it): (usize, &Queue)| {
            let parent = match it.parent {
                ROOT => String::new(),
                parent => Self::name(parent),
            };
            let entries: Vec<_> = it
                .entries
                .iter()
                .map(|e| entry(self.names[e.key], e.quota, e.limit, e.weight))
                .collect();
            let mut facts = with(queue(&Self::name(q), &parent), &entries);
            facts.priority = it.priority;
            facts.created_ms = q as u64;
            let used = (0..self.keys()).map(|key| (self.names[key].into(), self.used(q, key)));
            facts.past_use = self.half_life.map(|_| PastUse {
                at_ms: 0,
                averages: used.collect(),
            });
            facts
        };
        let mut definitions: Vec<_> = self.queues.iter().enumerate().skip(1).map(one).collect();
        // Every key must be governed, whichever queues divide it.
        let all: Vec<_> = self
            .names
            .iter()
            .map(|name| entry(name, 0, None, 1))
            .collect();
        definitions.push(with(queue("nobody's parent", "q999 is missing"), &all));
        definitions
    }

    /// A tree without capacities and demands.
    pub(in super::super) fn empty_tree(&self) -> QueueTree {
        let mut tree = QueueTree::new();
        tree.set_half_life(self.half_life.map(|minutes| minutes * GRID_MS));
        tree.count_use(0);
        tree
    }

    pub(in super::super) fn tree(&self) -> QueueTree {
        let mut tree = self.empty_tree();
        tree.replace(self.definitions());
        tree.refresh(5);
        self.fill(&mut tree);
        tree
    }

    /// Tells a tree the capacities and what leaves want.
    pub(in super::super) fn fill(&self, tree: &mut QueueTree) {
        let named = |amounts: &[u64]| -> Vec<(&'static str, u64)> {
            let amounts = self.names.iter().copied().zip(amounts.iter().copied());
            amounts.filter(|(_, amount)| *amount > 0).collect()
        };
        tree.capacities(&named(&self.capacity));
        for q in self.leaves() {
            for part in &self.queues[q].wants {
                tree.want(&Self::name(q), &named(part));
            }
        }
    }

    /// The fair shares that the tree under test gives each queue, by key.
    pub(in super::super) fn shares(&self, tree: &mut QueueTree) -> Vec<Vec<u64>> {
        tree.divide_all();
        self.last_shares(tree)
    }

    /// The fair shares of all queues as the tree last worked them out.
    pub(in super::super) fn last_shares(&self, tree: &QueueTree) -> Vec<Vec<u64>> {
        let keys: Vec<_> = self
            .names
            .iter()
            .map(|name| tree.demand(&[(name, 1)])[0].0)
            .collect();
        let of = |q: usize| -> Vec<u64> {
            let id = tree.at(&Self::name(q));
            keys.iter().map(|&key| tree.fair.of(id, key)).collect()
        };
        let mut shares = std::vec![Vec::new()];
        shares.extend(self.indices().skip(1).map(of));
        shares
    }
}
