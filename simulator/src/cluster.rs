//! Everything but schedulers: the API server, kubelets, owners of pods, garbage collection, the
//! disruption controller, the provisioner of volumes, the device plugin of HAMi, and exporters of
//! NUMA nodes.
//!
//! Controllers are late, but never wrong: each sees the API server's changes at once, and acts on
//! them after a while, in a [`Task`].

mod alignment;
mod disruption;
mod kubelet;
mod owners;
mod plugin;
mod provisioner;

pub(crate) use owners::{Farewell, Recipe};

use crate::api_server::{Answer, ApiServer, Expected, Name, Request, Sort, Stored, Version};
use crate::faults::{FaultKind, Faults};
use crate::random::Random;
use alignment::Alignment;
use disruption::Disruption;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{GANG_GATE, NodeFacts, PodFacts, PodPhase, Uid, UnixMs};
use owners::Owners;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Garbage collection looks for pods without a node every 20 s, and waits 40 s for a node to come
/// back.
const COLLECT_PERIOD_MS: u64 = 20_000;
const QUARANTINE_MS: u64 = 40_000;

/// What a controller does later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// The kubelet starts a pod, or fails it.
    Admit(Uid),
    /// The containers of a pod that is being deleted have ended.
    Terminated(Uid),
    /// The containers of a pod have ended without an error.
    Succeed(Uid),
    /// Garbage collection deletes a pod whose node is gone.
    Collect(Uid),
    /// The owner with this index makes its pod.
    Recreate(usize),
    /// The disruption controller counts healthy pods.
    CountHealthy,
    /// The provisioner looks at a claim.
    Provision(Name),
    /// Claims of ephemeral volumes are made for pods, and deleted after them.
    KeepEphemeral,
    /// The exporter on a node looks at its NUMA nodes.
    Export(Box<str>),
}

/// The API server and the controllers that act on its changes.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) api: ApiServer,
    /// New tasks that the run has not planned yet, each with its time.
    pub(crate) tasks: Vec<(UnixMs, Task)>,
    owners: Owners,
    disruption: Disruption,
    alignment: Alignment,
    /// Pods whose start by a kubelet was begun, or whose garbage collection, if their node is gone.
    admitted: BTreeSet<Uid>,
    /// Pods that are being deleted and whose containers have been told to end.
    terminating: BTreeSet<Uid>,
    names: BTreeMap<Uid, Name>,
    seen: Version,
    settling: bool,
    /// Pods that kubelets failed for want of room.
    pub(crate) rejected: u32,
    /// Pods that kubelets could not have aligned beside the others on the node.
    pub(crate) misaligned: u32,
    /// Pods that started under the lock of another pod, so that the device plugin gave them its
    /// cards.
    pub(crate) misassigned: u32,
    /// Pods that a new machine under the name of theirs has started again.
    restarted: BTreeSet<Uid>,
    /// Pods that succeeded and were cleaned away.
    pub(crate) done: Vec<PodFacts>,
}

impl Cluster {
    /// A pod by UID.
    pub(crate) fn pod(&self, uid: Uid) -> Option<&PodFacts> {
        let stored = self.api.get(self.names.get(&uid)?)?;
        match &stored.object {
            Object::Pod(facts) if facts.uid == uid => Some(facts),
            _ => None,
        }
    }

    /// An object without a namespace, by name.
    fn object(&self, kind: Kind, name: &str) -> Option<&Object> {
        let name = Name {
            kind,
            namespace: "".into(),
            name: name.into(),
        };
        Some(&self.api.get(&name)?.object)
    }

    /// A node by name.
    pub(crate) fn node(&self, name: &str) -> Option<&NodeFacts> {
        match self.object(Kind::Node, name)? {
            Object::Node(facts) => Some(facts),
            _ => None,
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeFacts> {
        let nodes = self.api.objects(Kind::Node);
        nodes.filter_map(|stored| match &stored.object {
            Object::Node(facts) => Some(facts),
            _ => None,
        })
    }

    /// Creates an object, or replaces the spec of the one that has its name.
    pub(crate) fn put(&mut self, object: Object, now_ms: UnixMs) -> Option<Arc<Stored>> {
        let version = self
            .api
            .get(&Name::of(&object))
            .map(|stored| stored.version);
        let request = match version {
            None => Request::Create(object),
            version => Request::Replace { object, version },
        };
        match self.api.handle(request, now_ms) {
            Answer::Created(stored) | Answer::Found(stored) => Some(stored),
            _ => None,
        }
    }

    /// Writes the status of a pod or a node.
    pub(crate) fn put_status(&mut self, object: Object, now_ms: UnixMs) {
        let version = None;
        self.api
            .handle(Request::ReplaceStatus { object, version }, now_ms);
    }

    /// Deletes an object.
    pub(crate) fn delete(&mut self, name: Name, grace_s: Option<u64>, now_ms: UnixMs) {
        let request = Request::Delete {
            name,
            expected: Expected::default(),
            grace_s,
        };
        self.api.handle(request, now_ms);
    }

    /// Adds an owner, which makes its pod at once, and a new one whenever its pod is gone or fails.
    pub(crate) fn own(&mut self, recipe: Recipe, now_ms: UnixMs) {
        let owner = self.owners.add(recipe);
        self.recreate(owner, now_ms);
    }

    /// Lets all controllers see what has changed since the last call.
    pub(crate) fn react(&mut self, faults: &mut Faults, random: &mut Random, now_ms: UnixMs) {
        if self.seen == self.api.revision() {
            return;
        }
        let after = std::mem::replace(&mut self.seen, self.api.revision());
        let mut disrupted = false;
        self.plan_provision(after, random, now_ms);
        for kind in [Kind::Node, Kind::Pod, Kind::DisruptionBudget] {
            let Answer::Changes { changes, .. } =
                self.api.handle(Request::Watch { kind, after }, now_ms)
            else {
                continue;
            };
            disrupted |= kind != Kind::Node && !changes.is_empty();
            for change in changes {
                match &change.object.object {
                    Object::Node(facts) => self.node_changed(change.sort, facts, now_ms),
                    Object::Pod(facts) => {
                        self.plan_export(facts, random, now_ms);
                        self.pod_changed(change.sort, facts, faults, random, now_ms);
                    }
                    _ => {}
                }
            }
        }
        if disrupted {
            self.plan_count(random, now_ms);
        }
    }

    fn node_changed(&mut self, sort: Sort, node: &NodeFacts, now_ms: UnixMs) {
        let here =
            |facts: &&PodFacts| facts.node.as_deref() == Some(&*node.name) && !facts.phase.ended();
        let pods: Vec<(Uid, bool)> = self
            .api
            .pods()
            .filter(here)
            .map(|facts| (facts.uid, facts.deletion_ms.is_some()))
            .collect();
        for (uid, deleting) in pods {
            match sort {
                Sort::Deleted => self.orphaned(uid, now_ms),
                // The kubelet of a new machine starts the pods that are bound to the node's name.
                Sort::Added if deleting => {
                    self.tasks.push((now_ms + 500, Task::Terminated(uid)));
                }
                Sort::Added => {
                    self.admitted.remove(&uid);
                    self.restarted.insert(uid);
                    self.tasks.push((now_ms + 500, Task::Admit(uid)));
                }
                Sort::Modified => {}
            }
        }
    }

    fn orphaned(&mut self, uid: Uid, now_ms: UnixMs) {
        let at_ms = (now_ms + QUARANTINE_MS).next_multiple_of(COLLECT_PERIOD_MS);
        self.tasks.push((at_ms, Task::Collect(uid)));
    }

    fn pod_changed(
        &mut self,
        sort: Sort,
        facts: &PodFacts,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) {
        let uid = facts.uid;
        if sort == Sort::Deleted {
            self.names.remove(&uid);
            self.admitted.remove(&uid);
            self.terminating.remove(&uid);
            if facts.phase == PodPhase::Succeeded {
                self.done.push(facts.clone());
            }
            self.pod_lost(facts, faults, random, now_ms);
            return;
        }
        let known = self
            .names
            .insert(uid, Name::pod(&facts.namespace, &facts.name))
            .is_some();
        if facts.phase == PodPhase::Failed {
            self.pod_lost(facts, faults, random, now_ms);
        }
        let Some(node) = &facts.node else { return };
        let begins = !known || !self.admitted.contains(&uid);
        if self.node(node).is_none() {
            if begins && !facts.phase.ended() {
                self.admitted.insert(uid);
                self.orphaned(uid, now_ms);
            }
        } else if facts.deletion_ms.is_some() {
            if self.terminating.insert(uid) {
                let mut at_ms = now_ms + random.between(100, 1_000);
                if faults.strikes(FaultKind::TerminationSlow, random) {
                    at_ms += random.between(1_000, 29_000);
                }
                at_ms += self
                    .owners
                    .farewell(uid)
                    .map_or(0, |farewell| farewell.stays_ms);
                self.tasks.push((at_ms, Task::Terminated(uid)));
            }
        } else if begins && facts.phase == PodPhase::Pending {
            self.admitted.insert(uid);
            let mut at_ms = now_ms + random.between(50, 500);
            if faults.strikes(FaultKind::KubeletSlow, random) {
                at_ms += random.between(1_000, 10_000);
            }
            self.tasks.push((at_ms, Task::Admit(uid)));
        }
    }

    /// Carries out a task that is due.
    pub(crate) fn perform(
        &mut self,
        task: &Task,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) {
        match task {
            Task::Admit(uid) => self.admit(*uid, faults, random, now_ms),
            Task::Terminated(uid) => self.terminated(*uid, now_ms),
            Task::Succeed(uid) => self.end(*uid, PodPhase::Succeeded, now_ms),
            Task::Collect(uid) => self.collect(*uid, now_ms),
            Task::Recreate(owner) => self.recreate(*owner, now_ms),
            Task::CountHealthy => self.count_healthy(now_ms),
            Task::Provision(claim) => self.provision(claim, random, now_ms),
            Task::KeepEphemeral => self.keep_ephemeral(now_ms),
            Task::Export(node) => self.export(node, now_ms),
        }
    }

    /// Ends a bound pod with this phase, unless it has ended already.
    pub(crate) fn end(&mut self, uid: Uid, phase: PodPhase, now_ms: UnixMs) {
        if let Some(mut facts) = self.pod(uid).cloned()
            && facts.node.is_some()
            && !facts.phase.ended()
        {
            facts.phase = phase;
            self.put_status(Object::Pod(facts), now_ms);
        }
    }

    fn collect(&mut self, uid: Uid, now_ms: UnixMs) {
        let Some(facts) = self.pod(uid).cloned() else {
            return;
        };
        let Some(node) = &facts.node else { return };
        if self.node(node).is_some() {
            return;
        }
        self.end(uid, PodPhase::Failed, now_ms);
        self.delete(Name::pod(&facts.namespace, &facts.name), Some(0), now_ms);
    }

    /// Removes the gates of all pods whose names begin with `prefix`, but for those that schedulers
    /// lift.
    pub(crate) fn open_gates(&mut self, prefix: &str, now_ms: UnixMs) {
        let gated = self
            .api
            .pods()
            .filter(|facts| facts.name.starts_with(prefix))
            .filter(|facts| facts.holding_gates().next().is_some());
        let gated: Vec<PodFacts> = gated.cloned().collect();
        for mut facts in gated {
            facts.gates.retain(|gate| **gate == *GANG_GATE);
            self.put(Object::Pod(facts), now_ms);
        }
    }

    /// Pods that start from now on run for ever, so that the world can come to rest.
    pub(crate) fn settle(&mut self) {
        self.settling = true;
    }

    /// How many pods owners have made.
    pub(crate) fn made(&self) -> u32 {
        self.owners.made()
    }
}
