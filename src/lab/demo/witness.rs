//! An observer that follows the pods of the demo at the API server by itself and keeps the books.
//!
//! The witness shares nothing with the scheduler, so that what it says is evidence: which gang
//! started when and where, what each node holds, and whether any rule was broken at any moment.

mod follow;

pub(super) use follow::{Books, follow};

use super::seen::{Container, Node, Pod};
use super::setting::GANG_LABEL;
use super::workload::{Gang, Traits};
use crate::kube::convert::quantity;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The resource that the demo is about.
pub(super) const GPU: &str = "nvidia.com/gpu";

/// How long a gang may have some members bound, but fewer than its minimum.
const PARTIAL_WITHIN: Duration = Duration::from_secs(10);
/// As [`PARTIAL_WITHIN`], where requests get lost: a lost request is noticed only after 4 s, and
/// several can be lost in a row.
pub(super) const PARTIAL_WITHIN_CHAOS: Duration = Duration::from_secs(40);
/// How long a part of a gang may stay after others were evicted or lost: the default of
/// `stalenessGracePeriod`, which is one minute, and as long again as a part may take to begin.
pub(super) const REMNANT_WITHIN: Duration = Duration::from_secs(60);

/// Amounts by resource, in base units (thousandths of a core, bytes, pieces).
pub(super) type Amounts = BTreeMap<String, u64>;

/// What became of one gang.
#[derive(Debug, Clone)]
pub(super) struct Course {
    pub(super) gang: Gang,
    pub(super) submitted: Option<Instant>,
    /// When the gang's first member was bound.
    pub(super) first_bound: Option<Instant>,
    /// When the gang's minimum was bound for the first time.
    pub(super) started: Option<Instant>,
    /// When the gang's last pod ended.
    pub(super) ended: Option<Instant>,
    /// How many members have a node; members that ended well count, failed ones do not.
    pub(super) bound: u32,
    /// How many members have ended well.
    pub(super) finished: u32,
    /// How many of the members that count as bound are on each node.
    pub(super) nodes: BTreeMap<String, u32>,
    /// How many members that hold room now are in each rack.
    pub(super) racks: BTreeMap<String, u32>,
    /// The racks of the members at a time when they were in several, though the gang requires one.
    pub(super) scattered: Option<String>,
    /// The minimum has been bound since the gang last had no member on a node: what it lacks since
    /// then was taken from it.
    pub(super) is_complete: bool,
    /// When the gang came to have some members bound, but fewer than the minimum.
    pub(super) partial_since: Option<Instant>,
    /// The longest time that the gang had begun in part.
    pub(super) longest_partial: Duration,
    /// The longest time that a part of the gang stayed after others had been taken from it.
    pub(super) longest_remnant: Duration,
}

impl Course {
    pub(super) fn is_waiting(&self) -> bool {
        self.submitted.is_some() && self.bound < self.gang.minimum
    }

    pub(super) fn is_running(&self) -> bool {
        self.bound >= self.gang.minimum && self.ended.is_none()
    }

    /// The time from the gang's submission to its start, or to now.
    pub(super) fn waited(&self, now: Instant) -> Duration {
        self.submitted.map_or(Duration::ZERO, |submitted| {
            self.started
                .unwrap_or(now)
                .saturating_duration_since(submitted)
        })
    }

    /// The longest times so far that the gang had begun in part, and that a part of it stayed after
    /// others had been taken from it.
    pub(super) fn longest_until(&self, now: Instant) -> (Duration, Duration) {
        let since = self.partial_since.unwrap_or(now);
        let lasts = now.saturating_duration_since(since);
        match self.is_complete {
            false => (self.longest_partial.max(lasts), self.longest_remnant),
            true => (self.longest_partial, self.longest_remnant.max(lasts)),
        }
    }

    fn settle(&mut self, now: Instant) {
        let longest = self.longest_until(now);
        (self.longest_partial, self.longest_remnant) = longest;
        if self.bound >= self.gang.minimum {
            self.started.get_or_insert(now);
            self.is_complete = true;
        }
        self.is_complete &= self.bound > 0;
        let partial = (1..self.gang.minimum).contains(&self.bound);
        self.partial_since = partial.then_some(self.partial_since.unwrap_or(now));
        let ended = self.finished >= self.gang.pods;
        self.ended = ended.then(|| self.ended.unwrap_or(now));
    }
}

/// A node and what it holds.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeUse {
    pub(super) zone: String,
    pub(super) rack: String,
    pub(super) capacity: Amounts,
    pub(super) used: Amounts,
    /// GPUs held, by queue.
    pub(super) gpus_by_queue: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct Member {
    gang: String,
    pod: String,
    node: Option<String>,
    ended: bool,
    /// Whether the pod ended badly: it counts for nothing, and another pod takes its place.
    failed: bool,
    /// Whether the pod was asked to leave: it fails when its containers have stopped.
    evicted: bool,
    requests: Amounts,
}

impl Member {
    /// The node on which the member works or worked.
    fn place(&self) -> Option<&String> {
        self.node.as_ref().filter(|_| !self.failed)
    }
}

/// The books of the witness.
#[derive(Debug, Default)]
pub(super) struct Witness {
    pub(super) courses: BTreeMap<String, Course>,
    pub(super) nodes: BTreeMap<String, NodeUse>,
    /// The pods that exist, by UID.
    members: BTreeMap<String, Member>,
    /// Pods that were seen to get a node.
    pub(super) binds: u64,
    /// Pods that went away with a node, before they ended, by the queue of their gang.
    pub(super) evictions: BTreeMap<&'static str, u64>,
    /// How many changes of pods were noted. After each, all nodes were within capacity, or a
    /// violation was noted.
    pub(super) changes: u64,
    /// Rules that were broken, in words.
    pub(super) violations: Vec<String>,
    /// How long a gang may have some members bound, but fewer than its minimum.
    pub(super) partial_within: Duration,
}

impl Witness {
    pub(super) fn new(gangs: Vec<Gang>, nodes: &[Node]) -> Self {
        let course = |gang: Gang| {
            let course = Course {
                submitted: None,
                first_bound: None,
                started: None,
                ended: None,
                bound: 0,
                finished: 0,
                nodes: BTreeMap::new(),
                racks: BTreeMap::new(),
                scattered: None,
                is_complete: false,
                partial_since: None,
                longest_partial: Duration::ZERO,
                longest_remnant: Duration::ZERO,
                gang,
            };
            (course.gang.name.clone(), course)
        };
        Self {
            courses: gangs.into_iter().map(course).collect(),
            nodes: nodes.iter().map(node_use).collect(),
            partial_within: PARTIAL_WITHIN,
            ..Self::default()
        }
    }

    /// Notes that a gang was handed to the API server.
    pub(super) fn submitted(&mut self, gang: &str, now: Instant) {
        if let Some(course) = self.courses.get_mut(gang) {
            course.submitted = Some(now);
        }
    }

    /// Notes a pod as it is now.
    pub(super) fn saw(&mut self, pod: &Pod, now: Instant) {
        let Some(uid) = pod.metadata.uid.clone() else {
            return;
        };
        let new = member(pod);
        let Some(old) = self.members.remove(&uid) else {
            self.enter(&new, None, now);
            self.members.insert(uid, new);
            return;
        };
        if let (Some(from), Some(to)) = (&old.node, &new.node)
            && from != to
        {
            self.violations
                .push(format!("pod {} was bound to {from}, then to {to}", new.pod));
        }
        self.enter(&new, Some(&old), now);
        self.members.insert(uid, new);
    }

    /// Notes all pods that exist now, after changes that were not seen one by one.
    pub(super) fn saw_all(&mut self, pods: &[Pod], now: Instant) {
        let listed: BTreeSet<&String> = pods
            .iter()
            .filter_map(|it| it.metadata.uid.as_ref())
            .collect();
        let known: Vec<String> = self.members.keys().cloned().collect();
        for uid in known.iter().filter(|uid| !listed.contains(uid)) {
            self.gone(uid, now);
        }
        // A list is in the order of names. Pods that have ended come first, whatever they are
        // called: others may have their room now.
        let (ended, others): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(|pod| has_ended(pod));
        for pod in ended.into_iter().chain(others) {
            self.saw(pod, now);
        }
    }

    /// Notes that a pod is gone.
    pub(super) fn gone(&mut self, uid: &str, now: Instant) {
        let Some(old) = self.members.remove(uid) else {
            return;
        };
        self.changes += 1;
        let Some(node) = &old.node else { return };
        if (!old.ended || (old.evicted && old.failed))
            && let Some(course) = self.courses.get(&old.gang)
        {
            *self.evictions.entry(course.gang.queue).or_default() += 1;
        }
        if old.ended {
            // The work of a pod that ended well stays done: its Job makes no other one.
            return;
        }
        self.hold(&old, node, false);
        if let Some(course) = self.courses.get_mut(&old.gang) {
            course.bound = course.bound.saturating_sub(1);
            course.leave(node);
            course.settle(now);
        }
    }

    /// The pods of a gang that have not ended, by name, with their nodes.
    pub(super) fn unended(&self, gang: &str) -> BTreeMap<&str, Option<&str>> {
        let members = self.members.values();
        let unended = members.filter(|member| member.gang == gang && !member.ended);
        unended
            .map(|member| (member.pod.as_str(), member.node.as_deref()))
            .collect()
    }

    /// Whether a gang waits for room: it lacks members on nodes, and has pods for them. A gang
    /// whose pods were evicted waits for its Job first, which makes them anew after a pause.
    pub(super) fn is_short_of_room(&self) -> bool {
        let mut unplaced: BTreeMap<&str, u32> = BTreeMap::new();
        let members = self.members.values();
        for member in members.filter(|member| member.node.is_none() && !member.ended) {
            *unplaced.entry(&member.gang).or_default() += 1;
        }
        self.courses.values().any(|course| {
            let gang = &course.gang;
            let pods = unplaced.get(&*gang.name).copied().unwrap_or(0);
            course.is_waiting() && !gang.hopeless && course.bound + pods >= gang.minimum
        })
    }

    /// How many GPUs are held, and how many there are.
    pub(super) fn gpus(&self) -> (u64, u64) {
        let sum = |of: fn(&NodeUse) -> &Amounts| {
            let nodes = self.nodes.values();
            nodes
                .map(|node| of(node).get(GPU).copied().unwrap_or(0))
                .sum()
        };
        (sum(|node| &node.used), sum(|node| &node.capacity))
    }

    /// Takes a change of a pod into the books.
    fn enter(&mut self, new: &Member, old: Option<&Member>, now: Instant) {
        self.changes += 1;
        let old_node = old.and_then(|old| old.node.as_ref());
        let was_held = old.is_some_and(|old| old.node.is_some() && !old.ended);
        let is_held = new.node.is_some() && !new.ended;
        if let Some(node) = &new.node
            && was_held != is_held
        {
            self.hold(new, node, is_held);
        }
        let bound = old_node.is_none() && new.node.is_some();
        let finished = new.ended && !new.failed && old.is_none_or(|old| !old.ended);
        self.binds += u64::from(bound);
        let Some(course) = self.courses.get_mut(&new.gang) else {
            return;
        };
        match (old.and_then(Member::place), new.place()) {
            (None, Some(node)) => {
                course.first_bound.get_or_insert(now);
                course.bound += 1;
                *course.nodes.entry(node.clone()).or_insert(0) += 1;
            }
            (Some(node), None) => {
                course.bound = course.bound.saturating_sub(1);
                course.leave(node);
            }
            _ => {}
        }
        course.finished += u32::from(finished);
        course.settle(now);
    }

    /// Takes room for a member on a node, or gives it back.
    fn hold(&mut self, member: &Member, node: &str, takes: bool) {
        let Some(place) = self.nodes.get_mut(node) else {
            self.violations.push(format!(
                "pod {} is on {node}, which is no node of the demo",
                member.pod
            ));
            return;
        };
        for (resource, amount) in &member.requests {
            let used = place.used.entry(resource.clone()).or_insert(0);
            *used = change(*used, *amount, takes);
            let capacity = place.capacity.get(resource).copied().unwrap_or(0);
            if takes && *used > capacity {
                self.violations
                    .push(format!("{node} holds {used} {resource} and has {capacity}"));
            }
        }
        if let Some(course) = self.courses.get_mut(&member.gang) {
            course.hold(&place.rack, takes);
            let gpus = member.requests.get(GPU).copied().unwrap_or(0);
            let held = place.gpus_by_queue.entry(course.gang.queue).or_insert(0);
            *held = change(*held, gpus, takes);
        }
    }
}

impl Course {
    /// Notes that a member takes room in a rack, or gives it back.
    fn hold(&mut self, rack: &str, takes: bool) {
        let members = self.racks.entry(rack.to_owned()).or_insert(0);
        *members = if takes {
            *members + 1
        } else {
            members.saturating_sub(1)
        };
        self.racks.retain(|_, members| *members > 0);
        if self.gang.traits == Traits::OneRack && self.racks.len() > 1 {
            let racks: Vec<&str> = self.racks.keys().map(String::as_str).collect();
            self.scattered = Some(racks.join(", "));
        }
    }

    fn leave(&mut self, node: &str) {
        if let Some(members) = self.nodes.get_mut(node) {
            *members -= 1;
            if *members == 0 {
                self.nodes.remove(node);
            }
        }
    }
}

fn change(held: u64, amount: u64, takes: bool) -> u64 {
    if takes {
        held.saturating_add(amount)
    } else {
        held.saturating_sub(amount)
    }
}

/// The name of a node, and the node without pods.
pub(super) fn node_use(node: &Node) -> (String, NodeUse) {
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
    let allocatable = node
        .status
        .as_ref()
        .and_then(|status| status.allocatable.as_ref());
    let place = NodeUse {
        zone: label(super::setting::ZONE_LABEL),
        rack: label(super::setting::RACK_LABEL),
        capacity: allocatable.map(amounts).unwrap_or_default(),
        ..NodeUse::default()
    };
    (node.metadata.name.clone().unwrap_or_default(), place)
}

fn member(pod: &Pod) -> Member {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let labels = pod.metadata.labels.as_ref();
    Member {
        gang: labels
            .and_then(|labels| labels.get(GANG_LABEL).cloned())
            .unwrap_or_default(),
        pod: format!(
            "{}/{}",
            name(&pod.metadata.namespace),
            name(&pod.metadata.name)
        ),
        node: node_of(pod).map(str::to_owned),
        ended: has_ended(pod),
        failed: has_failed(pod),
        evicted: is_evicted(pod),
        requests: requests(pod),
    }
}

/// The node of a pod, if it has one.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    (!node.is_empty()).then_some(node)
}

/// Whether a pod has ended, so that it holds nothing any more.
pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), Some("Succeeded" | "Failed"))
}

/// Whether a pod ended badly.
pub(super) fn has_failed(pod: &Pod) -> bool {
    phase(pod) == Some("Failed")
}

/// Whether the Eviction API was asked to take a pod away.
fn is_evicted(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| {
        condition.kind == "DisruptionTarget"
            && condition.reason.as_deref() == Some("EvictionByEvictionAPI")
    })
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// What a pod of plain containers takes on its node.
pub(super) fn requests(pod: &Pod) -> Amounts {
    let mut sum = Amounts::from([("pods".to_owned(), 1)]);
    let containers: &[Container] = pod.spec.as_ref().map_or(&[], |spec| &spec.containers);
    for container in containers {
        let requests = container.resources.as_ref();
        let Some(requests) = requests.and_then(|resources| resources.requests.as_ref()) else {
            continue;
        };
        for (resource, amount) in amounts(requests) {
            *sum.entry(resource).or_insert(0) += amount;
        }
    }
    sum
}

/// Amounts in base units. A quantity that cannot be read counts as 0; the API server writes none.
fn amounts(quantities: &BTreeMap<String, Quantity>) -> Amounts {
    let read = |(resource, quantity): (&String, &Quantity)| {
        let amount = quantity::amount(resource, &quantity.0).unwrap_or(0);
        (resource.clone(), amount)
    };
    quantities.iter().map(read).collect()
}

#[cfg(test)]
mod tests;
