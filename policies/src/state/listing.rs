//! Objects are applied and deleted, one at a time or by a list. A list has all objects of a kind:
//! an object that it does not name is gone.

use super::ClusterState;
use super::gang::GangKey;
use crate::event::{Kind, Listing, Object, ObjectKey};
use crate::facts::{GroupSource, Uid, UnixMs};
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};

impl ClusterState {
    pub(crate) fn apply(&mut self, object: Object, now_ms: UnixMs) {
        match object {
            Object::Node(facts) => self.apply_node(facts, now_ms),
            Object::Pod(facts) => self.apply_pod(facts),
            Object::Queue(mut facts) => {
                self.runtimes.adopt(&mut facts);
                self.queues.apply(facts);
            }
            Object::PodGroup(facts) => self.apply_pod_group(facts),
            Object::Topology(facts) => self.apply_topology(facts),
            Object::PriorityClass(facts) => {
                let name = facts.name.clone();
                let before = self.priority_classes.insert(name.clone(), facts);
                if before.as_ref() != self.priority_classes.get(&name) {
                    self.rules_changed();
                }
            }
            Object::Namespace(facts) => {
                let before = self.namespaces.insert(facts.name.clone(), facts.labels);
                if before.as_ref() != self.namespaces.get(&facts.name) {
                    self.note_namespace();
                    self.rules_changed();
                }
            }
            Object::Job(facts) => self.apply_job(facts),
            Object::DisruptionBudget(facts) => self.budgets.apply(facts),
            Object::Storage(facts) => self.apply_storage(facts),
            Object::Numa(facts) => self.apply_numa(facts),
        }
    }

    pub(crate) fn delete(&mut self, key: ObjectKey) {
        match key {
            ObjectKey::Node(name, uid) => {
                // The deleted node may be an earlier one of this name.
                let current = self
                    .node_ids
                    .get(&name)
                    .and_then(|id| self.nodes[*id].known.as_ref());
                if current.is_some_and(|known| known.facts.uid == uid) {
                    self.delete_node(&name);
                }
            }
            ObjectKey::Pod(uid) => self.delete_pod(uid),
            ObjectKey::Queue(name) => {
                self.runtimes.forget(&name);
                self.queues.delete(&name);
            }
            ObjectKey::PodGroup(source, namespace, name) => {
                self.delete_pod_group(source, &namespace, &name);
            }
            ObjectKey::Topology(name) => self.delete_topology(&name),
            ObjectKey::PriorityClass(name) => {
                self.priority_classes.remove(&name);
                self.rules_changed();
            }
            ObjectKey::Namespace(name) => {
                self.namespaces.remove(&name);
                self.note_namespace();
            }
            ObjectKey::Job(uid) => self.delete_job(uid),
            ObjectKey::DisruptionBudget(namespace, name) => self.budgets.delete(&namespace, &name),
            ObjectKey::Storage(kind, namespace, name) => {
                self.delete_storage(kind, &(namespace, name));
            }
            ObjectKey::Numa(name) => self.delete_numa(&name),
        }
    }

    pub(crate) fn apply_listing(&mut self, listing: Listing, now_ms: UnixMs) {
        let kind = listing.kind;
        let objects: Vec<Object> = listing
            .objects
            .into_iter()
            .filter(|object| object.kind() == kind)
            .collect();
        let listed: BTreeSet<ObjectKey> = objects.iter().map(Object::key).collect();
        for key in self.keys(kind) {
            // tests plant bugs here: implied-delete
            if !listed.contains(&key) {
                self.delete(key);
            }
        }
        // tests plant bugs here: listed-objects
        for object in objects {
            self.apply(object, now_ms);
        }
        if kind == Kind::Pod {
            self.explain_cells();
        }
    }

    /// The keys of all known objects of a kind.
    fn keys(&self, kind: Kind) -> Vec<ObjectKey> {
        let named = |names: Vec<Box<str>>, key: fn(Box<str>) -> ObjectKey| -> Vec<ObjectKey> {
            names.into_iter().map(key).collect()
        };
        let groups = |source: GroupSource| -> Vec<ObjectKey> {
            let known = self
                .gang_ids
                .iter()
                .filter(|(_, gang)| self.gangs[**gang].object.is_some());
            known
                .filter_map(|(key, _)| match key {
                    GangKey::Group(from, namespace, name) if *from == source => {
                        Some(ObjectKey::PodGroup(source, namespace.clone(), name.clone()))
                    }
                    _ => None,
                })
                .collect()
        };
        match kind {
            Kind::Node => self
                .nodes
                .iter()
                .filter_map(|(_, node)| {
                    let uid = node.known.as_ref()?.facts.uid;
                    Some(ObjectKey::Node(node.name.clone(), uid))
                })
                .collect(),
            Kind::Pod => {
                let uids: BTreeSet<Uid> = self.pods.iter().map(|(_, pod)| pod.uid).collect();
                uids.into_iter().map(ObjectKey::Pod).collect()
            }
            Kind::Queue => named(self.queues.defined_names(), ObjectKey::Queue),
            Kind::PodGroup => groups(GroupSource::GpuBatch),
            Kind::NativePodGroup => groups(GroupSource::Native),
            Kind::Topology => named(
                self.topology_ids.keys().cloned().collect(),
                ObjectKey::Topology,
            ),
            Kind::PriorityClass => named(
                self.priority_classes.keys().cloned().collect(),
                ObjectKey::PriorityClass,
            ),
            Kind::Namespace => named(
                self.namespaces.keys().cloned().collect(),
                ObjectKey::Namespace,
            ),
            Kind::Job => self.jobs.keys().map(|uid| ObjectKey::Job(*uid)).collect(),
            Kind::DisruptionBudget => {
                let names = self.budgets.names();
                names
                    .map(|(namespace, name)| ObjectKey::DisruptionBudget(namespace, name))
                    .collect()
            }
            Kind::Numa => named(self.numa.names().collect(), ObjectKey::Numa),
            Kind::Storage(kind) => {
                let names = self.storage.names(kind).into_iter();
                names
                    .map(|(namespace, name)| ObjectKey::Storage(kind, namespace, name))
                    .collect()
            }
        }
    }
}
