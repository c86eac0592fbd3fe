//! V1 to V4: judges binds by the volumes of pods, as far as the process was told of them.

use crate::volumes::DRIVER;
use gpu_batch_policies::command::{Action, Bind};
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::{
    AccessModes, ClaimFacts, Labels, NodeSelectorTerm, PodFacts, StorageFacts, StorageKind, Uid,
    VolumeFacts, label,
};
use std::collections::{BTreeMap, BTreeSet};

/// What the process was told of volumes, and of what they depend on.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    claims: BTreeMap<(Box<str>, Box<str>), ClaimFacts>,
    volumes: BTreeMap<Box<str>, VolumeFacts>,
    /// How many volumes can be attached to each node.
    limits: BTreeMap<Box<str>, u32>,
    nodes: BTreeMap<Box<str>, Labels>,
    pods: BTreeMap<Uid, PodFacts>,
    /// The node to which each pod was sent last.
    sent: BTreeMap<Uid, Box<str>>,
}

impl Volumes {
    /// Takes in an event that the engine is about to be told.
    pub(super) fn told(&mut self, event: &Event) {
        match event {
            Event::Applied(object) => self.shown(object),
            Event::Deleted(key) => self.gone(key),
            Event::Listed(Listing { kind, objects, .. }) => {
                match kind {
                    Kind::Pod => self.pods.clear(),
                    Kind::Node => self.nodes.clear(),
                    Kind::Storage(StorageKind::Claim) => self.claims.clear(),
                    Kind::Storage(StorageKind::Volume) => self.volumes.clear(),
                    Kind::Storage(StorageKind::CsiNode) => self.limits.clear(),
                    _ => {}
                }
                objects.iter().for_each(|object| self.shown(object));
            }
            _ => {}
        }
    }

    fn shown(&mut self, object: &Object) {
        match object {
            Object::Pod(facts) => drop(self.pods.insert(facts.uid, facts.clone())),
            Object::Node(facts) => {
                let labels = facts.labels.clone();
                self.nodes.insert(facts.name.clone(), labels);
            }
            Object::Storage(StorageFacts::Claim(facts)) => {
                let name = (facts.namespace.clone(), facts.name.clone());
                self.claims.insert(name, facts.clone());
            }
            Object::Storage(StorageFacts::Volume(facts)) => {
                self.volumes.insert(facts.name.clone(), facts.clone());
            }
            Object::Storage(StorageFacts::CsiNode(facts)) => {
                self.limits.remove(&facts.name);
                let mut drivers = facts.drivers.iter();
                let ours = drivers.find(|(driver, _)| **driver == *DRIVER);
                if let Some(limit) = ours.and_then(|(_, limit)| *limit) {
                    self.limits.insert(facts.name.clone(), limit);
                }
            }
            _ => {}
        }
    }

    fn gone(&mut self, key: &ObjectKey) {
        match key {
            ObjectKey::Pod(uid) => drop(self.pods.remove(uid)),
            ObjectKey::Node(name, _) => drop(self.nodes.remove(name)),
            ObjectKey::Storage(kind, namespace, name, ..) => match kind {
                StorageKind::Claim => {
                    self.claims.remove(&(namespace.clone(), name.clone()));
                }
                StorageKind::Volume => drop(self.volumes.remove(name)),
                StorageKind::CsiNode => drop(self.limits.remove(name)),
                _ => {}
            },
            _ => {}
        }
    }

    /// Takes in that a command has ended: a pod may not have been bound, or be gone.
    pub(super) fn ended(&mut self, action: &Action, outcome: &Outcome) {
        match (action, outcome) {
            (Action::Bind(bind), Outcome::Refused { .. } | Outcome::Throttled { .. }) => {
                self.sent.remove(&bind.pod.uid);
            }
            (Action::Observe(pod), Outcome::Observed(PodSeen::Unbound)) => {
                self.sent.remove(&pod.uid);
            }
            (Action::Observe(pod), Outcome::Observed(PodSeen::Bound(node))) => {
                // Another process may have bound the pod elsewhere.
                self.sent.insert(pod.uid, node.clone());
            }
            (Action::Observe(pod), Outcome::Observed(PodSeen::Gone)) => {
                self.pods.remove(&pod.uid);
            }
            _ => {}
        }
    }

    /// Judges a bind that was not sent to this node before.
    pub(super) fn binds(&mut self, bind: &Bind, found: &mut Vec<String>) {
        let uid = bind.pod.uid;
        if let Some(pod) = self.pods.get(&uid) {
            for claim in self.claims_of(pod) {
                if let Err(why) = self.reaches(claim, &bind.node) {
                    let (pod, claim) = (&pod.name, &claim.name);
                    let node = &bind.node;
                    found.push(format!(
                        "V1: pod {pod} goes to {node}, and claim {claim} {why}"
                    ));
                }
            }
            self.attaches(pod, &bind.node, found);
            self.is_alone(pod, found);
            self.has_own_volumes(pod, found);
        }
        self.sent.insert(uid, bind.node.clone());
    }

    fn claims_of(&self, pod: &PodFacts) -> Vec<&ClaimFacts> {
        let names = pod.claims.iter();
        let names = names.map(|used| (pod.namespace.clone(), used.name.clone()));
        names.filter_map(|name| self.claims.get(&name)).collect()
    }

    /// V1: the claims of a pod that is bound have volumes, which can be used on its node.
    fn reaches(&self, claim: &ClaimFacts, node: &str) -> Result<(), &'static str> {
        let volume = claim.volume.as_ref().filter(|_| claim.bind_completed);
        let volume = volume.ok_or("is not bound")?;
        let volume = self.volumes.get(volume).ok_or("has lost its volume")?;
        let Some(labels) = self.nodes.get(node) else {
            return Ok(());
        };
        let holds = |term: &NodeSelectorTerm| {
            term.match_expressions.iter().all(|asked| {
                let value = label(labels, &asked.key);
                value.is_some_and(|value| asked.values.iter().any(|it| **it == *value))
            })
        };
        let can = volume.affinity.as_ref();
        match can.is_none_or(|terms| terms.iter().any(holds)) {
            true => Ok(()),
            false => Err("has its volume elsewhere"),
        }
    }

    /// The pods that are on a node, or were sent there.
    fn pods_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a PodFacts> {
        let at = |pod: &PodFacts| {
            pod.node
                .clone()
                .or_else(|| self.sent.get(&pod.uid).cloned())
        };
        let pods = self.pods.values().filter(|pod| !pod.phase.ended());
        pods.filter(move |pod| at(pod).is_some_and(|at| *at == *node))
    }

    /// V2: no more volumes are attached to a node than it can have.
    fn attaches(&self, pod: &PodFacts, node: &str, found: &mut Vec<String>) {
        let Some(limit) = self.limits.get(node) else {
            return;
        };
        let handles = |pod: &PodFacts| -> Vec<Box<str>> {
            let claims = self.claims_of(pod).into_iter();
            claims.filter_map(|claim| claim.volume.clone()).collect()
        };
        let mut attached: BTreeSet<_> = self.pods_on(node).flat_map(handles).collect();
        let before = attached.len();
        attached.extend(handles(pod));
        let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
        if attached.len() > before && attached.len() > limit {
            let (pod, count) = (&pod.name, attached.len());
            found.push(format!(
                "V2: with pod {pod}, {node} has {count} volumes of {limit}: {attached:?}"
            ));
        }
    }

    /// V4: no volume of the pod is that of another claim, nor kept for one. That it is kept for the
    /// claim of the pod may not have been told yet.
    fn has_own_volumes(&self, pod: &PodFacts, found: &mut Vec<String>) {
        for claim in self.claims_of(pod) {
            let volume = claim.volume.as_ref();
            let volume = volume.and_then(|volume| self.volumes.get(volume));
            let of_another = |volume: &&VolumeFacts| {
                let of = volume.claim.as_ref();
                of.is_some_and(|of| *of != claim.reference())
            };
            let Some(volume) = volume.filter(of_another) else {
                continue;
            };
            let (pod, claim, volume) = (&pod.name, &claim.name, &volume.name);
            found.push(format!(
                "V4: pod {pod} is bound, and its claim {claim} has volume {volume} of another"
            ));
        }
    }

    /// V3: a claim for one pod alone is used by one pod alone.
    fn is_alone(&self, pod: &PodFacts, found: &mut Vec<String>) {
        for claim in self.claims_of(pod) {
            let uses = |other: &&PodFacts| {
                let is_placed = other.node.is_some() || self.sent.contains_key(&other.uid);
                let claims = other.claims.iter();
                other.uid != pod.uid
                    && is_placed
                    && !other.phase.ended()
                    && claims.into_iter().any(|used| used.name == claim.name)
            };
            let other = self.pods.values().find(uses);
            if let Some(other) = other.filter(|_| claim.access == AccessModes::ONE_POD) {
                let (pod, other, claim) = (&pod.name, &other.name, &claim.name);
                found.push(format!(
                    "V3: pod {pod} is bound, and {other} has claim {claim}, which is for one pod"
                ));
            }
        }
    }
}
