//! Which gangs are certainly protected from other queues: those that fit the quota of their queue
//! together with everything that comes before them there.
//!
//! The engine's rule lets a gang that does not fit leave its room to the next one, and divides
//! quotas that promise more than there is. Neither is repeated here: what is said to be protected
//! is, whichever gangs are being placed or are leaving at the moment; of the rest nothing is said.
//! Nothing is said either where any queue has an entry for CPUs: what the others are given of GPUs
//! then depends on the CPUs that there are.

use crate::gangs::{Gang, is_met};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{Amount, CARD, PodFacts, QueueFacts, Uid, UnixMs, amount};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const GPU: &str = "nvidia.com/gpu";

/// The queues of a process, and how many GPUs there are.
#[derive(Default)]
struct Quotas<'a> {
    queues: BTreeMap<&'a str, &'a QueueFacts>,
    capacity: Amount,
}

/// The names of the gangs among these that are certainly protected. `sent`: the pods that the
/// process has sent to nodes, whether or not it has been told what became of them.
pub(super) fn gangs<'a>(
    objects: impl Iterator<Item = &'a Object>,
    gangs: &[Gang<'_>],
    sent: &BTreeSet<Uid>,
) -> BTreeSet<String> {
    let quotas = Quotas::of(objects);
    if !quotas.divide_gpus_only() {
        return BTreeSet::new();
    }
    let is_protected = |gang: &&Gang<'_>| {
        let (Some(queue), Some(core)) = (quotas.queues.get(&*gang.queue), core(gang)) else {
            return false;
        };
        // A bind without an answer holds its room from the moment in which it was sent.
        let is_sent = |other: &Gang<'_>| other.waiting.iter().any(|it| sent.contains(&it.uid));
        let may_be_first = |other: &Gang<'_>| order(other) <= order(gang) || is_sent(other);
        let before = gangs.iter().filter(|other| {
            other.queue == gang.queue && other.name != gang.name && may_be_first(other)
        });
        let before = before.flat_map(|other| {
            let on_nodes = other.bound.iter().chain(&other.leaving);
            on_nodes.chain(&other.waiting).copied()
        });
        let asks = |facts: &PodFacts| amount(&facts.shape.requests, GPU);
        let asked: Amount = before.chain(core).map(asks).sum();
        let mut queues = gang.bound.iter().map(|facts| facts.bound_queue.as_ref());
        queues.all(|queue| queue == Some(&gang.queue))
            && quotas.are_kept(queue)
            && asked <= quota(queue)
    };
    let protected = gangs.iter().filter(is_protected);
    protected.map(|gang| gang.name.clone()).collect()
}

/// The place of a gang in the order in which quota is given; gangs of one place may go either way.
fn order(gang: &Gang<'_>) -> (bool, Reverse<i32>, UnixMs) {
    let since_ms = gang.bound.iter().filter_map(|facts| since_ms(facts));
    let oldest_ms = since_ms.min().unwrap_or(UnixMs::MAX);
    (!gang.protected, Reverse(gang.priority), oldest_ms)
}

/// The time from which a pod counts as being on its node: its binding, or its start where a late
/// status has overwritten the time of the binding. `None`: neither is known.
fn since_ms(facts: &PodFacts) -> Option<UnixMs> {
    facts.bound_ms.or(facts.started_ms)
}

/// The members on nodes that a gang cannot lose without going below its minimum: the newest are
/// surplus. `None`: the gang does not have its minimum.
fn core<'world>(gang: &Gang<'world>) -> Option<Vec<&'world PodFacts>> {
    let ended = || gang.succeeded.iter().chain(&gang.done).copied();
    let is_enough = |pods: &[&PodFacts]| {
        let held = gang.by_leaf(pods.iter().copied().chain(ended()));
        is_met(&gang.groups, 0, &held)
    };
    let mut core = gang.bound.clone();
    core.sort_by_key(|facts| (Reverse(since_ms(facts)), Reverse(facts.name.clone())));
    if gang.bound.is_empty() || !is_enough(&core) {
        return None;
    }
    for facts in core.clone() {
        let without: Vec<&PodFacts> = core
            .iter()
            .copied()
            .filter(|it| it.uid != facts.uid)
            .collect();
        if is_enough(&without) {
            core = without;
        }
    }
    Some(core)
}

fn quota(queue: &QueueFacts) -> Amount {
    let entries = queue.resources.iter();
    let of_gpus = entries.filter(|entry| *entry.name == *GPU);
    of_gpus.map(|entry| entry.quota / CARD).sum()
}

impl<'a> Quotas<'a> {
    fn of(objects: impl Iterator<Item = &'a Object>) -> Self {
        let mut quotas = Self::default();
        for object in objects {
            match object {
                Object::Queue(facts) => {
                    quotas.queues.insert(&facts.name, facts);
                }
                Object::Node(facts) if !facts.unschedulable && facts.taints.is_empty() => {
                    quotas.capacity += amount(&facts.allocatable, GPU);
                }
                _ => {}
            }
        }
        quotas
    }

    /// Whether queues have entries for GPUs alone.
    fn divide_gpus_only(&self) -> bool {
        let mut entries = self.queues.values().flat_map(|it| &it.resources);
        entries.all(|entry| *entry.name == *GPU)
    }

    /// Whether no GPU is promised twice to a queue, its siblings and those above them.
    fn are_kept(&self, queue: &QueueFacts) -> bool {
        let siblings = self.queues.values().filter(|it| it.parent == queue.parent);
        let promised: Amount = siblings.map(|it| quota(it)).sum();
        let there_is = match &queue.parent {
            None => self.capacity,
            Some(parent) => match self.queues.get(&**parent) {
                Some(parent) if self.are_kept(parent) => quota(parent),
                _ => return false,
            },
        };
        promised <= there_is
    }
}
