//! What nodes have: which resources and GPU models there are, and on how many nodes.

use super::node::KnownNode;
use crate::facts::QueueResource;
use crate::names::suggestion;
use crate::resources::GPU;
use alloc::{boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};

/// How many of the things that there are a sentence names.
const NAMED: usize = 3;

/// Names, each with the number of nodes that have it.
#[derive(Debug, Default)]
struct Census(BTreeMap<Box<str>, u32>);

impl Census {
    fn add(&mut self, name: &str) {
        match self.0.get_mut(name) {
            Some(nodes) => *nodes += 1,
            None => {
                self.0.insert(name.into(), 1);
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(nodes) = self.0.get_mut(name) {
            *nodes -= 1;
            if *nodes == 0 {
                self.0.remove(name);
            }
        }
    }

    /// `did you mean A?`, or else `there are A and B`.
    fn instead(&self, name: &str, is_alike: impl Fn(&str) -> bool) -> Option<String> {
        let names = || self.0.keys().map(|known| &**known);
        if let Some(meant) = suggestion(name, names()) {
            return Some(meant);
        }
        let alike: Vec<&str> = names().filter(|known| is_alike(known)).collect();
        let (first, others) = alike.split_first()?;
        let mut text = format!("there are {first}");
        for name in others.iter().take(NAMED - 1) {
            text = format!("{text}, {name}");
        }
        if alike.len() > NAMED {
            text = format!("{text} and {} more", alike.len() - NAMED);
        }
        Some(text)
    }
}

/// What nodes have, whether they are ready or not.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    resources: Census,
    models: Census,
    /// A node came or went, or has other labels or resources, since somebody has taken this away.
    pub(crate) changed: bool,
}

impl Offered {
    pub(crate) fn add(&mut self, node: &KnownNode) {
        self.changed = true;
        for (resource, _) in &node.facts.allocatable {
            self.resources.add(resource);
        }
        if let Some(product) = &node.gpu.product {
            self.models.add(product);
        }
    }

    /// The exact reverse of [`Offered::add`].
    pub(crate) fn remove(&mut self, node: &KnownNode) {
        self.changed = true;
        for (resource, _) in &node.facts.allocatable {
            self.resources.remove(resource);
        }
        if let Some(product) = &node.gpu.product {
            self.models.remove(product);
        }
    }

    /// What is wrong with entries of a queue that count what no node has, with what there is
    /// instead. While there are no nodes at all nothing is said.
    pub(crate) fn missing(&self, entries: &[QueueResource]) -> Option<String> {
        if self.resources.0.is_empty() {
            return None;
        }
        let sentences = entries.iter().filter_map(|entry| self.absent(entry));
        let sentences: Vec<String> = sentences.take(NAMED).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    fn absent(&self, entry: &QueueResource) -> Option<String> {
        let name = &*entry.name;
        let (what, instead) = match &entry.product {
            Some(product) if name == GPU && self.resources.0.contains_key(GPU) => {
                if self.models.0.contains_key(product) {
                    return None;
                }
                let what = format!("no node has the model {product} of {name}");
                (what, self.models.instead(product, |_| true))
            }
            _ if self.resources.0.contains_key(name) => return None,
            // Every node has CPU and memory, which nobody means by another name.
            _ => {
                let instead = self.resources.instead(name, |known| known.contains('/'));
                (format!("no node has {name}"), instead)
            }
        };
        Some(match instead {
            Some(instead) => format!("{what}; {instead}"),
            None => what,
        })
    }
}
