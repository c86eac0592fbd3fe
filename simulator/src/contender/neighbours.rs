//! Judges where a pod with rules or preferences about other pods was placed, by a plain reading of
//! them and of what the process was told.
//!
//! Only a pod that alone got a place in a step is judged, and only if no other pod lost its place
//! in that step: else nobody outside of the engine can tell what stood where when it was placed.

use crate::objects::GPU;
use crate::rules::{has_labels, near, selects};
use gpu_batch_policies::command::{Action, Command, CommandId};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::{
    NodeFacts, PodFacts, PodSelection, PodTerm, SpreadRule, Uid, amount, label,
};
use gpu_batch_policies::report::PodState;
use std::collections::{BTreeMap, BTreeSet};

/// The node label that names the GPU model.
const MODEL: &str = "nvidia.com/gpu.product";

/// What one process was told of nodes and pods, and where its engine saw pods after the last step.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    nodes: BTreeMap<Box<str>, NodeFacts>,
    pods: BTreeMap<Uid, PodFacts>,
    /// PodGroups that ask for no domain, by namespace and name.
    anywhere: BTreeSet<(Box<str>, Box<str>)>,
    places: BTreeMap<Uid, Box<str>>,
    /// The pods that evictions under way ask for.
    asked: BTreeMap<CommandId, Uid>,
    /// The pods whose eviction the API server took: they are being deleted, though the news of it
    /// may still be on its way.
    evicted: BTreeSet<Uid>,
}

/// A pod, its node, and all other pods that have a node.
struct Placed<'a> {
    pod: &'a PodFacts,
    node: &'a NodeFacts,
    others: Vec<(&'a PodFacts, &'a NodeFacts)>,
    evicted: &'a BTreeSet<Uid>,
}

impl Neighbours {
    /// Takes in an event that the engine is about to be told.
    pub(super) fn told(&mut self, event: &Event) {
        match event {
            Event::Applied(object) => self.shown(object),
            Event::Deleted(ObjectKey::Pod(uid)) => drop(self.pods.remove(uid)),
            Event::Deleted(ObjectKey::Node(name, _)) => drop(self.nodes.remove(name)),
            Event::Outcome(id, outcome) => {
                let asked = self.asked.remove(id);
                let leaves = matches!(outcome, Outcome::Done | Outcome::NotFound);
                self.evicted.extend(asked.filter(|_| leaves));
            }
            Event::Listed(listing) => {
                match listing.kind {
                    Kind::Pod => self.pods.clear(),
                    Kind::Node => self.nodes.clear(),
                    _ => {}
                }
                listing.objects.iter().for_each(|object| self.shown(object));
            }
            _ => {}
        }
    }

    fn shown(&mut self, object: &Object) {
        match object {
            Object::Node(facts) => drop(self.nodes.insert(facts.name.clone(), facts.clone())),
            Object::Pod(facts) => drop(self.pods.insert(facts.uid, facts.clone())),
            Object::PodGroup(facts) => {
                let name = (facts.namespace.clone(), facts.name.clone());
                let asks = facts.topology.is_some() || facts.required_label.is_some();
                match asks || !facts.sub_groups.is_empty() {
                    true => drop(self.anywhere.remove(&name)),
                    false => drop(self.anywhere.insert(name)),
                }
            }
            _ => {}
        }
    }

    /// Judges the pod that got a place in the step that the engine has just made, if it was one.
    /// `commands`: what that step asks for.
    pub(super) fn stepped(&mut self, engine: &Engine, commands: &[Command]) -> Vec<String> {
        let evictions = commands.iter().filter_map(|command| match &command.action {
            Action::Evict(evict) => Some((command.id, evict.pod.uid)),
            _ => None,
        });
        self.asked.extend(evictions);
        let concerns =
            |pod: &PodFacts| pod.shape.relations.is_some() || pod.shape.preferences.is_some();
        if !self.pods.values().any(concerns) {
            return Vec::new();
        }
        let now = self.places_of(engine);
        let before = std::mem::replace(&mut self.places, now);
        let has_moved = before.iter().any(|(uid, node)| {
            let is_told = self.pods.get(uid).is_some_and(|pod| !pod.phase.ended());
            is_told && self.places.get(uid) != Some(node)
        });
        if has_moved {
            return Vec::new();
        }
        let came = self.places.iter().filter(|(uid, _)| {
            let told = self.pods.get(*uid).and_then(|pod| pod.node.as_ref());
            !before.contains_key(*uid) && told.is_none()
        });
        let came: Vec<_> = came.collect();
        let [(uid, node)] = came.as_slice() else {
            return Vec::new();
        };
        let (Some(pod), Some(node)) = (self.pods.get(*uid), self.nodes.get(*node)) else {
            return Vec::new();
        };
        let others = self.places.iter().filter(|(other, _)| other != uid);
        let others =
            others.filter_map(|(uid, node)| Some((self.pods.get(uid)?, self.nodes.get(node)?)));
        let placed = Placed {
            pod,
            node,
            others: others.collect(),
            evicted: &self.evicted,
        };
        let mut found = placed.broken_rules(self.nodes.values());
        let is_free = self.goes_anywhere(pod) && !engine.holds_room();
        if is_free && !placed.is_drawn_most(self.nodes.values()) {
            found.push("it is drawn more to another node that takes it");
        }
        let (name, node) = (&pod.name, &node.name);
        let found = found.into_iter();
        found
            .map(|what| format!("pod {name} is placed on {node}, but {what}"))
            .collect()
    }

    /// Whether a pod is alone, or of a gang that asks for no domain.
    fn goes_anywhere(&self, pod: &PodFacts) -> bool {
        match pod.pod_group.as_ref().or(pod.native_group.as_ref()) {
            Some(group) => {
                let name = (pod.namespace.clone(), group.clone());
                self.anywhere.contains(&name)
            }
            None => {
                let hints = &pod.hints;
                hints.topology_required.is_none() && hints.topology_preferred.is_none()
            }
        }
    }

    /// The node of each pod that has one: as the engine says of ours, as was told of others.
    fn places_of(&self, engine: &Engine) -> BTreeMap<Uid, Box<str>> {
        let told = self
            .pods
            .values()
            .filter(|pod| !pod.ours && !pod.phase.ended());
        let told = told.filter_map(|pod| Some((pod.uid, pod.node.clone()?)));
        let reports = engine.pod_reports().into_iter();
        let ours = reports
            .filter(|report| !matches!(report.state, PodState::Succeeded | PodState::Failed));
        let ours = ours.filter_map(|report| Some((report.uid, report.node?)));
        told.chain(ours).collect()
    }
}

impl<'a> Placed<'a> {
    /// The rules that do not hold.
    fn broken_rules(&self, nodes: impl Iterator<Item = &'a NodeFacts>) -> Vec<&'static str> {
        let mut found = Vec::new();
        let mut keeping_off = self.keeping_off();
        if keeping_off.any(|(term, at)| near(&term.topology_key, at, self.node)) {
            found.push("a pod there keeps it off");
        }
        let Some(rules) = self.pod.shape.relations.as_deref() else {
            return found;
        };
        if !self.likes(&rules.affinity) {
            found.push("no pod is there that it wants to be near");
        }
        let mut apart = rules.anti_affinity.iter();
        if apart.any(|term| self.count(&term.selection, &term.topology_key) > 0) {
            found.push("it keeps off a pod there");
        }
        let nodes: Vec<&NodeFacts> = nodes.collect();
        let mut spread = rules.spread.iter();
        if spread.any(|rule| !self.is_even(rule, &rules.spread, &nodes)) {
            found.push("that spreads pods too unevenly");
        }
        found
    }

    /// The terms of anti-affinity of other pods that select the pod, each with the node of its pod.
    fn keeping_off(&self) -> impl Iterator<Item = (&'a PodTerm, &'a NodeFacts)> {
        let terms = self.others.iter().flat_map(|(other, at)| {
            let rules = other.shape.relations.as_deref();
            let terms = rules.into_iter().flat_map(|rules| &rules.anti_affinity);
            terms.map(move |term| (term, *at))
        });
        terms.filter(|(term, _)| selects(&term.selection, self.pod))
    }

    /// Whether the pods that all terms of the affinity select are near, or there is none anywhere.
    fn likes(&self, terms: &[PodTerm]) -> bool {
        let liked = |pod: &PodFacts| terms.iter().all(|term| selects(&term.selection, pod));
        let others = || self.others.iter().filter(|(other, _)| liked(other));
        let has_label =
            |at: &NodeFacts, term: &PodTerm| label(&at.labels, &term.topology_key).is_some();
        let none = terms
            .iter()
            .all(|term| !others().any(|(_, at)| has_label(at, term)));
        terms.iter().all(|term| has_label(self.node, term))
            && (none && liked(self.pod)
                || terms
                    .iter()
                    .all(|term| others().any(|(_, at)| near(&term.topology_key, at, self.node))))
    }

    /// How many other pods in the domain of the node a term selects.
    fn count(&self, selection: &PodSelection, key: &str) -> usize {
        let near = self
            .others
            .iter()
            .filter(|(other, at)| selects(selection, other) && near(key, at, self.node));
        near.count()
    }

    /// Whether a topology spread constraint lets the pod in. Rules that ask for more than labels of
    /// nodes are not judged.
    fn is_even(&self, rule: &SpreadRule, all: &[SpreadRule], nodes: &[&NodeFacts]) -> bool {
        let shape = &self.pod.shape;
        if shape.node_affinity.is_some() || rule.honors_taints {
            return true;
        }
        let counts = |node: &NodeFacts| {
            let is_selected = !rule.honors_affinity
                || shape
                    .node_selector
                    .iter()
                    .all(|(key, value)| label(&node.labels, key) == Some(value));
            let mut keys = all.iter().map(|rule| &rule.topology_key);
            is_selected && keys.all(|key| label(&node.labels, key).is_some())
        };
        let domain = |node: &'a NodeFacts| label(&node.labels, &rule.topology_key);
        let mut domains: BTreeMap<&str, u32> = BTreeMap::new();
        for node in nodes.iter().filter(|node| counts(node)) {
            domains
                .entry(label(&node.labels, &rule.topology_key).unwrap_or_default())
                .or_insert(0);
        }
        let is_counted = |pod: &PodFacts| {
            pod.namespace == self.pod.namespace && has_labels(pod, rule.labels.as_ref())
        };
        for (other, at) in &self.others {
            let stays = other.deletion_ms.is_none() && !self.evicted.contains(&other.uid);
            if stays && is_counted(other) && counts(at) {
                *domains.entry(domain(at).unwrap_or_default()).or_insert(0) += 1;
            }
        }
        let fewest = match (domains.len() as u64) < u64::from(rule.min_domains) {
            true => 0,
            false => domains.values().min().copied().unwrap_or(0),
        };
        domain(self.node).is_some_and(|domain| {
            let there = domains.get(domain).copied().unwrap_or(0);
            there + u32::from(is_counted(self.pod)) <= fewest + rule.max_skew
        })
    }

    /// Whether a pod that has no preferences but those about pods is drawn to no other node more,
    /// by its own terms and those of other pods, that would take it as well.
    fn is_drawn_most(&self, mut nodes: impl Iterator<Item = &'a NodeFacts>) -> bool {
        let shape = &self.pod.shape;
        let about_pods = shape.preferences.as_deref().is_none_or(|preferences| {
            preferences.nodes.is_empty() && preferences.spread.is_empty()
        });
        let is_plain = shape.relations.is_none()
            && shape.host_ports.is_empty()
            && shape.node_selector.is_empty()
            && shape.node_affinity.is_none();
        if !about_pods || !is_plain {
            return true;
        }
        let here = self.drawn(self.node);
        nodes.all(|node| !self.is_like(node) || self.drawn(node) <= here)
    }

    /// Whether a node takes the pod and is as good as that of the pod to all that asks for no pod.
    fn is_like(&self, node: &NodeFacts) -> bool {
        let asks_for_gpus = amount(&self.pod.shape.requests, GPU) > 0;
        let same_model = label(&node.labels, MODEL) == label(&self.node.labels, MODEL);
        let same = node.taints.is_empty()
            && self.node.taints.is_empty()
            && (same_model || !asks_for_gpus)
            && node.readiness.is_ready()
            && !node.unschedulable;
        let taken = |name: &str| -> u64 {
            let there = self.others.iter().filter(|(_, at)| at.name == node.name);
            there
                .map(|(pod, _)| amount(&pod.shape.requests, name))
                .sum()
        };
        let mut wanted = self.pod.shape.requests.iter();
        same && self.keeping_off().next().is_none()
            && wanted.all(|(name, amount_of_pod)| {
                taken(name) + *amount_of_pod <= amount(&node.allocatable, name)
            })
    }

    /// What the preferred terms of the pod, and those of others that select it, give a node.
    fn drawn(&self, node: &NodeFacts) -> i64 {
        let mut sum = 0;
        for (other, at) in &self.others {
            let own = self.pod.shape.preferences.iter().flat_map(|it| &it.pods);
            let own = own.filter(|term| selects(&term.selection, other));
            let of_other = other.shape.preferences.iter().flat_map(|it| &it.pods);
            let of_other = of_other.filter(|term| selects(&term.selection, self.pod));
            let given = own
                .chain(of_other)
                .filter(|term| near(&term.topology_key, at, node));
            sum += given.map(|term| i64::from(term.weight)).sum::<i64>();
            let rules = other.shape.relations.iter().flat_map(|it| &it.affinity);
            let required = rules.filter(|term| {
                selects(&term.selection, self.pod) && near(&term.topology_key, at, node)
            });
            sum += i64::try_from(required.count()).unwrap_or(0);
        }
        sum
    }
}
