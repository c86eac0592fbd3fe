//! What nodes have: which resources and GPU models there are, and on how many nodes.
//!
//! Each class keeps whether nodes have what it asks for (`is_offered`). That is worked out again
//! only when the first node with some resource or GPU model comes, or the last such node goes.

use super::ClusterState;
use super::node::KnownNode;
use crate::facts::{Amounts, QueueResource};
use crate::ids::ClassId;
use crate::names::{suggestion, there_are};
use crate::resources::GPU;
use crate::state::pod::{Pod, Stage};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

/// How many missing resources and GPU models the sentence about a queue names at most.
const NAMED: usize = 3;

/// Names of resources or GPU models, each with the number of nodes that have it.
#[derive(Debug, Default)]
struct Census(BTreeMap<Box<str>, u32>);

impl Census {
    /// Counts one more node with a name. Returns whether it is the first.
    fn add(&mut self, name: &str) -> bool {
        if let Some(nodes) = self.0.get_mut(name) {
            *nodes += 1;
            return false;
        }
        self.0.insert(name.into(), 1);
        true
    }

    /// Counts one node less with a name. Returns whether it was the last.
    fn remove(&mut self, name: &str) -> bool {
        let Some(nodes) = self.0.get_mut(name) else {
            return false;
        };
        *nodes -= 1;
        let gone = *nodes == 0;
        if gone {
            self.0.remove(name);
        }
        gone
    }

    /// What to suggest for a name that no node has: `did you mean A?`, or else `there are A, B and
    /// C` of the names that are alike.
    fn instead(&self, name: &str, is_alike: impl Fn(&str) -> bool) -> Option<String> {
        let names = || self.0.keys().map(|known| &**known);
        if let Some(meant) = suggestion(name, names()) {
            return Some(meant);
        }
        let alike: Vec<&str> = names().filter(|known| is_alike(known)).collect();
        there_are(&alike)
    }
}

/// The resources and GPU models that nodes have, ready or not.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    resources: Census,
    models: Census,
    /// How many nodes offer HAMi's slots instead of GPUs, under the name [`GPU`].
    slots: Census,
    /// A node came or went or has other labels or resources, or a Topology has changed, since this
    /// flag was last taken.
    pub(super) changed: bool,
    /// The first node with some resource or GPU model came, or the last one went, since
    /// [`ClusterState::follow_offered`] last ran.
    names_changed: bool,
}

impl Offered {
    /// Whether a node came or went or has other labels or resources, or a Topology has changed,
    /// since the last call.
    pub(crate) fn take_change(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    pub(crate) fn add(&mut self, node: &KnownNode) {
        self.change(node, Census::add);
    }

    /// The exact reverse of [`Offered::add`].
    pub(crate) fn remove(&mut self, node: &KnownNode) {
        self.change(node, Census::remove);
    }

    fn change(&mut self, node: &KnownNode, by: fn(&mut Census, &str) -> bool) {
        self.changed = true;
        for (resource, amount) in &node.facts.allocatable {
            // Slots are offered to pods that ask for parts of cards.
            let is_offered = node.gpu.offers(resource) || !node.facts.cards.is_empty();
            if *amount > 0 && is_offered {
                self.names_changed |= by(&mut self.resources, resource);
            }
        }
        if node.gpu.slots > 0 {
            self.names_changed |= by(&mut self.slots, GPU);
        }
        if let Some(product) = &node.gpu.product {
            self.names_changed |= by(&mut self.models, product);
        }
    }

    /// Whether some node has each of these resources and, where models are named, some node one of
    /// them; perhaps not the same node.
    pub(crate) fn has(&self, requests: &Amounts, models: &[Box<str>]) -> bool {
        let has_model = |model| self.models.0.contains_key(model);
        let mut resources = requests.iter().filter(|(_, amount)| *amount > 0);
        resources.all(|(resource, _)| self.resources.0.contains_key(resource))
            && (models.is_empty() || models.iter().any(has_model))
    }

    /// Whether a node offers slots instead of GPUs.
    pub(crate) fn has_slots(&self) -> bool {
        !self.slots.0.is_empty()
    }

    /// Whether `is_offered` is current in all classes.
    pub(crate) fn is_told(&self) -> bool {
        !self.names_changed
    }

    /// A sentence for the entries of a queue that count resources or models that no node has, with
    /// what there is instead. While there are no nodes at all nothing is said.
    pub(crate) fn missing(&self, entries: &[QueueResource]) -> Option<String> {
        if self.resources.0.is_empty() {
            return None;
        }
        let mut sentences: Vec<String> = Vec::new();
        for sentence in entries.iter().filter_map(|entry| self.absent(entry)) {
            // Entries for several models of one missing resource give one sentence.
            if !sentences.contains(&sentence) && sentences.len() < NAMED {
                sentences.push(sentence);
            }
        }
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    /// A sentence for each resource that a shape asks for and no node has, with what there is.
    /// While there are no nodes at all nothing is said.
    pub(crate) fn unknown_resources(&self, requests: &Amounts) -> Vec<String> {
        if self.resources.0.is_empty() {
            return Vec::new();
        }
        let requests = requests.iter().filter(|(_, amount)| *amount > 0);
        requests
            .filter_map(|(resource, _)| self.absent_resource(resource))
            .collect()
    }

    fn absent_resource(&self, name: &str) -> Option<String> {
        if self.resources.0.contains_key(name) {
            return None;
        }
        let what = format!("no node has {name}");
        // Free volumes of another class or size are no other word for these.
        if name.contains(' ') {
            return Some(what);
        }
        // `gpu` is `nvidia.com/gpu` without its domain, and not a slip of the pen for `cpu`.
        let known = self.resources.0.keys().map(|known| &**known).chain([GPU]);
        let mut whole =
            known.filter(|known| known.split_once('/').is_some_and(|(_, end)| end == name));
        if let Some(whole) = whole.next() {
            return Some(format!("{what}; did you mean {whole}?"));
        }
        // CPU and memory are not listed: every node has them, under well-known names.
        let instead = self.resources.instead(name, |known| known.contains('/'));
        Some(with_instead(what, instead))
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
            _ => return self.absent_resource(name),
        };
        Some(with_instead(what, instead))
    }
}

fn with_instead(what: String, instead: Option<String>) -> String {
    match instead {
        Some(instead) => format!("{what}; {instead}"),
        None => what,
    }
}

impl ClusterState {
    /// Works out `is_offered` of all classes anew, if the first node with some resource or GPU
    /// model came or the last one went, which is seldom. Touches the gangs with waiting members of
    /// the classes for which it has changed.
    pub(crate) fn follow_offered(&mut self) {
        if !core::mem::take(&mut self.offered.names_changed) {
            return;
        }
        self.keep_reaches();
        let mut changed: BTreeSet<ClassId> = BTreeSet::new();
        for id in self.classes.ids() {
            let class = &mut self.classes[id];
            let is_offered = self.offered.has(&class.shape.requests, &class.models);
            if core::mem::replace(&mut class.is_offered, is_offered) != is_offered {
                changed.insert(id);
            }
        }
        if changed.is_empty() {
            return;
        }
        let pods = self.pods.iter().map(|(_, pod)| pod);
        let waiting = pods.filter(|pod| pod.stage == Stage::Waiting);
        let affected = waiting.filter(|pod| changed.contains(&pod.class));
        let gangs = affected.filter_map(Pod::gang);
        self.touched.extend(gangs);
    }
}
