//! Tests of the whole tree, and the helpers that they share.

mod admission;
mod edits;
mod fair_shares;
mod grain;
mod guarantee;
mod hierarchy;
mod ledger;
mod order;
mod past;
mod reference;
mod speed;

use super::{Demand, LineUp, QueueId, QueueTree};
use crate::facts::{Amount, CARD, PlacementChoice, QueueFacts, QueueResource, Uid};
use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

const GPU: &str = "nvidia.com/gpu";

/// A queue below a parent (`""`: the root).
fn queue(name: &str, parent: &str) -> QueueFacts {
    QueueFacts {
        created_ms: 1000,
        parent: Some(parent)
            .filter(|parent| !parent.is_empty())
            .map(Into::into),
        ..QueueFacts::new(Uid(1), name)
    }
}

/// An entry of a queue. `key`: `resource` or `resource@product`.
fn entry(key: &str, quota: Amount, limit: Option<Amount>, weight: u16) -> QueueResource {
    let (name, product) = match key.split_once('@') {
        Some((name, product)) => (name, Some(product)),
        None => (key, None),
    };
    QueueResource {
        name: name.into(),
        product: product.map(Into::into),
        quota,
        limit,
        weight,
    }
}

/// A queue with entries.
fn with(mut facts: QueueFacts, entries: &[QueueResource]) -> QueueFacts {
    facts.resources.extend_from_slice(entries);
    facts
}

/// A queue with a GPU quota, no limit and weight 1.
fn gpus(name: &str, parent: &str, quota: Amount) -> QueueFacts {
    with(queue(name, parent), &[entry(GPU, quota, None, 1)])
}

fn tree(queues: Vec<QueueFacts>) -> QueueTree {
    let mut tree = QueueTree::new();
    tree.replace(queues);
    tree.refresh(5);
    tree
}

impl QueueTree {
    /// Takes in the list of all queues: queues that are not in the list are deleted.
    fn replace(&mut self, queues: Vec<QueueFacts>) {
        for name in self.defined_names() {
            if !queues.iter().any(|queue| queue.name == name) {
                self.delete(&name);
            }
        }
        for queue in queues {
            self.apply(queue);
        }
    }

    fn at(&self, name: &str) -> QueueId {
        self.find(name).expect(name)
    }

    /// A demand from `resource` or `resource@product` and amounts.
    fn demand(&self, amounts: &[(&str, Amount)]) -> Demand {
        let mut demand: Demand = amounts
            .iter()
            .map(|(key, amount)| {
                let (resource, product) = match key.split_once('@') {
                    Some((resource, product)) => (resource, Some(product)),
                    None => (*key, None),
                };
                let key = self.governed_id(resource, product);
                (key.expect("governed"), *amount)
            })
            .collect();
        demand.sort_unstable();
        demand
    }

    fn capacities(&mut self, amounts: &[(&str, Amount)]) {
        for (key, amount) in self.demand(amounts) {
            self.set_capacity(key, amount);
        }
    }

    fn hold(&mut self, name: &str, amounts: &[(&str, Amount)]) {
        let demand = self.demand(amounts);
        self.charge(self.at(name), &demand, true);
        self.add_wanted(self.at(name), &demand);
    }

    fn want(&mut self, name: &str, amounts: &[(&str, Amount)]) {
        let demand = self.demand(amounts);
        self.add_requested(self.at(name), &demand);
        self.add_wanted(self.at(name), &demand);
    }

    /// Gives a leaf a candidate that asks for these amounts.
    fn wait(&mut self, name: &str, amounts: &[(&str, Amount)]) {
        let demand = self.demand(amounts);
        self.set_candidate(LineUp::FIRST, self.at(name), Some(demand));
    }

    /// What the next gang of a leaf asks for.
    fn order_head(&self, leaf: QueueId) -> Demand {
        self.orders[0].heads[leaf.index()]
            .clone()
            .expect("a candidate")
    }

    /// The name of the leaf that is served next, or `nobody`.
    fn next(&mut self) -> String {
        match self.next_leaf(LineUp::FIRST) {
            Some(leaf) => self.name(leaf).into(),
            None => "nobody".into(),
        }
    }

    /// The fair shares of a queue by key, also of keys that are not divided among its siblings.
    fn fair_row(&mut self, name: &str) -> Vec<Amount> {
        self.divide_all();
        let id = self.at(name);
        let keys = self.ledger.all_keys();
        keys.map(|key| self.fair.of(id, key)).collect()
    }

    /// The fair share of a queue, as its status tells it.
    fn fair(&mut self, name: &str, key: &str) -> Amount {
        self.divide_all();
        let status = self.status(self.at(name));
        let share = status.fair_share.iter().find(|(known, _)| **known == *key);
        share.map_or(0, |(_, amount)| *amount)
    }
}
