//! Free room on nodes and below the limits of queues, worked out from the objects alone.

use super::Binder;
use crate::cluster::Cluster;
use crate::gangs::Gang;
use crate::objects::GPU;
use crate::scenario::Part;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    Amount, CARD, NodeFacts, PodShape, QueueFacts, TaintEffect, Uid, amount,
};
use std::collections::BTreeMap;

mod cards;

use cards::CardRoom;

/// The resources of these worlds. A host port counts as one more resource, of which a node has one.
const RESOURCES: [&str; 3] = ["cpu", GPU, "pods"];
pub(super) type Vector = [Amount; 4];

/// What nodes have free, and what queues hold.
#[derive(Debug)]
pub(super) struct Rooms {
    /// Of GPUs slots, where HAMi shares the cards.
    nodes: BTreeMap<Box<str>, Vector>,
    /// The cards of nodes where HAMi shares them.
    cards: BTreeMap<Box<str>, Vec<CardRoom>>,
    queues: BTreeMap<Box<str>, QueueFacts>,
    held: BTreeMap<Box<str>, Vector>,
}

impl Rooms {
    pub(super) fn of(cluster: &Cluster, gangs: &[Gang<'_>]) -> Self {
        let mut rooms = Self {
            nodes: BTreeMap::new(),
            cards: BTreeMap::new(),
            queues: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        for node in cluster.nodes() {
            let [cpu, gpu, pods] = RESOURCES.map(|resource| amount(&node.allocatable, resource));
            rooms.nodes.insert(node.name.clone(), [cpu, gpu, pods, 1]);
            if !node.cards.is_empty() {
                let cards = node
                    .cards
                    .iter()
                    .map(|card| CardRoom::of(cluster, node, card));
                rooms.cards.insert(node.name.clone(), cards.collect());
            }
        }
        for stored in cluster.api.objects(Kind::Queue) {
            if let Object::Queue(facts) = &stored.object {
                rooms.queues.insert(facts.name.clone(), facts.clone());
            }
        }
        for facts in cluster.api.pods().filter(|facts| !facts.phase.ended()) {
            let Some(node) = &facts.node else { continue };
            let asked = asked(&facts.shape);
            if let Some(free) = rooms.nodes.get_mut(node) {
                take(free, &asked);
            }
        }
        let held = gangs.iter().flat_map(|gang| {
            let held = gang.bound.iter().chain(&gang.leaving);
            held.map(|facts| (*facts, &gang.queue))
        });
        for (facts, queue) in held {
            // A pod that another scheduler has bound counts in the queue of its gang.
            let queue = facts.bound_queue.as_ref().unwrap_or(queue);
            let counted = counted(&facts.shape);
            let path: Vec<Box<str>> = rooms.queue_path(queue).map(|q| q.name.clone()).collect();
            for ancestor in path {
                let held = rooms.held.entry(ancestor).or_default();
                for (held, counted) in held.iter_mut().zip(counted) {
                    *held += counted;
                }
            }
        }
        rooms
    }

    /// What each queue holds, by queue and resource: GPUs, in thousandths of a card, and resources
    /// that some queue has an entry for.
    pub(super) fn held(&self) -> BTreeMap<(Box<str>, Box<str>), Amount> {
        let entries = || self.queues.values().flat_map(|queue| &queue.resources);
        let is_accounted = |name: &str| name == GPU || entries().any(|entry| *entry.name == *name);
        let amounts = self.held.iter().flat_map(|(queue, held)| {
            let named = RESOURCES
                .iter()
                .zip(held)
                .filter(|(name, _)| is_accounted(name));
            named.map(|(name, held)| ((queue.clone(), Box::from(*name)), *held))
        });
        amounts.collect()
    }

    /// A queue and all queues above it.
    fn queue_path(&self, queue: &str) -> impl Iterator<Item = &QueueFacts> {
        let parent = |queue: &&QueueFacts| self.queues.get(queue.parent.as_deref()?);
        std::iter::successors(self.queues.get(queue), parent)
    }

    /// Whether the queue, or one above it, is closed.
    pub(super) fn is_closed(&self, queue: &str) -> bool {
        self.queue_path(queue).any(|queue| queue.closed)
    }

    /// Whether the queue, or one above it, takes gangs of selected namespaces only.
    pub(super) fn selects_namespaces(&self, queue: &str) -> bool {
        self.queue_path(queue)
            .any(|queue| queue.namespace_selector.is_some())
    }

    /// I8: queues that hold more than their limit by the binds of one process.
    pub(super) fn over_limits(
        &self,
        gangs: &[Gang<'_>],
        binders: &BTreeMap<Uid, Binder>,
    ) -> Vec<String> {
        let mut held: BTreeMap<(Binder, &str), Vector> = BTreeMap::new();
        for facts in gangs.iter().flat_map(|gang| &gang.bound) {
            let (Some(binder), Some(queue)) = (binders.get(&facts.uid), &facts.bound_queue) else {
                continue;
            };
            for ancestor in self.queue_path(queue) {
                let held = held.entry((*binder, &*ancestor.name)).or_default();
                for (held, counted) in held.iter_mut().zip(counted(&facts.shape)) {
                    *held += counted;
                }
            }
        }
        let mut found = Vec::new();
        for ((_, name), held) in held {
            for entry in &self.queues[name].resources {
                let index = RESOURCES.iter().position(|it| **it == *entry.name);
                if let (Some(index), Some(limit)) = (index, entry.limit)
                    && held[index] > limit
                {
                    let (held, resource) = (held[index], &entry.name);
                    found.push(format!("I8: {name} holds {held} {resource}, limit {limit}"));
                }
            }
        }
        found
    }

    /// Whether HAMi shares the cards of a node.
    pub(super) fn has_slots(&self) -> bool {
        !self.cards.is_empty()
    }

    /// The free amounts of a node: of GPUs, where HAMi shares the cards, how many parts find room.
    pub(super) fn free(&self, node: &NodeFacts, part: Option<Part>) -> Vector {
        let mut free = self.nodes[&node.name];
        if let Some(cards) = self.cards.get(&node.name) {
            let parts = |part| cards.iter().map(|card| card.parts(part)).sum();
            free[1] = free[1].min(part.map_or(0, parts));
        }
        free
    }

    /// The amounts that the limits of the queue, and of each queue above it, still allow.
    pub(super) fn limits(&self, queue: &str) -> Vec<Vector> {
        let left = |queue: &QueueFacts| {
            let held = self.held.get(&queue.name).copied().unwrap_or_default();
            let mut left = [Amount::MAX; 4];
            for entry in &queue.resources {
                let index = RESOURCES.iter().position(|name| **name == *entry.name);
                if let (Some(index), Some(limit)) = (index, entry.limit) {
                    left[index] = limit.saturating_sub(held[index]);
                }
            }
            left
        };
        self.queue_path(queue).map(left).collect()
    }
}

/// What a pod counts for in queues: of GPUs thousandths of a card, and of each card of which it
/// gets a part, that part.
pub(super) fn counted(shape: &PodShape) -> Vector {
    let mut counted = asked(shape);
    counted[1] *= Part::of(shape).map_or(CARD, |part| part.counted);
    counted
}

pub(super) fn asked(shape: &PodShape) -> Vector {
    let [cpu, gpu, pods] = RESOURCES.map(|resource| amount(&shape.requests, resource));
    [cpu, gpu, pods, u64::from(!shape.host_ports.is_empty())]
}

pub(super) fn has(free: &Vector, asked: &Vector) -> bool {
    free.iter().zip(asked).all(|(free, asked)| asked <= free)
}

pub(super) fn take(free: &mut Vector, asked: &Vector) {
    for (free, asked) in free.iter_mut().zip(asked) {
        *free = free.saturating_sub(*asked);
    }
}

/// Whether a node's taints, labels and cordon allow a pod. A pod with a toleration tolerates
/// everything in these worlds.
pub(super) fn eligible(shape: &PodShape, node: &NodeFacts) -> bool {
    let tolerant = !shape.tolerations.is_empty();
    let kept_out = node.unschedulable
        || node
            .taints
            .iter()
            .any(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    let selected = shape
        .node_selector
        .iter()
        .all(|wanted| node.labels.contains(wanted));
    // Pods that ask for parts of cards go where cards are shared, and other pods with GPUs do not.
    let is_mig = node.cards.iter().any(|card| !card.profiles.is_empty());
    let modes = shape.card_terms.as_ref().map(|terms| terms.modes);
    let suits = shape.cards.is_some() != node.cards.is_empty()
        && (node.cards.is_empty() || modes.unwrap_or_default().allow(is_mig))
        || amount(&shape.requests, RESOURCES[1]) == 0;
    (tolerant || !kept_out) && selected && suits
}
