//! News of what is wrong with Queues, Topologies, Nodes and Namespaces: a Kubernetes event for each
//! fault.
//!
//! A gang says in its own status why it waits. These objects are wrong for everybody; who made them
//! hears of it once, from the engine that leads.

use super::Engine;
use crate::command::{Announcement, ObjectReference};
use crate::event::{Event, Kind, Object, ObjectKey};
use crate::facts::{Problem, Uid, amount};
use crate::reason::Reason;
use crate::status::QueueStatus;
use crate::topology::Unlabelled;
use alloc::{boxed::Box, collections::BTreeMap, collections::BTreeSet, format};

/// The reason of the event on a queue with entries that count what no node has.
const NOT_THERE: &str = "ResourceNotFound";
/// The reason of the event on a node of which more is used than it has.
const OVERCOMMITTED: &str = "Overcommitted";
/// The reason of the event on a Topology with a level whose label no node has.
const LABEL_NOT_FOUND: &str = "LabelNotFound";

/// What is wrong now, by kind and name: what was said, and what is still to be said.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    told: BTreeMap<(Kind, Box<str>), Announcement>,
    untold: BTreeMap<(Kind, Box<str>), Announcement>,
}

impl Faults {
    /// An object was looked at. The same fault is not told twice.
    fn note(&mut self, kind: Kind, name: &str, fault: Option<Announcement>) {
        let key = (kind, Box::from(name));
        if fault.as_ref() != self.told.get(&key) {
            self.told.remove(&key);
        }
        match fault.filter(|_| !self.told.contains_key(&key)) {
            Some(fault) => self.untold.insert(key, fault),
            None => self.untold.remove(&key),
        };
    }

    /// A kind was listed: whoever is not in the list is gone.
    fn keep_listed(&mut self, kind: Kind, names: &BTreeSet<&str>) {
        let stays = |of: Kind, name: &str| of != kind || names.contains(name);
        self.told.retain(|(of, name), _| stays(*of, name));
        self.untold.retain(|(of, name), _| stays(*of, name));
    }
}

impl Engine {
    /// Looks at an event that the state has not taken in yet for objects that are wrong by
    /// themselves.
    pub(crate) fn note_faults(&mut self, event: &Event) {
        match event {
            Event::Applied(object) => self.note_object(object),
            Event::Deleted(ObjectKey::Node(name, _)) => self.faults.note(Kind::Node, name, None),
            Event::Deleted(ObjectKey::Topology(name)) => {
                self.faults.note(Kind::Topology, name, None);
            }
            Event::Deleted(ObjectKey::Namespace(name)) => {
                self.faults.note(Kind::Namespace, name, None);
            }
            Event::Deleted(ObjectKey::Queue(name)) => self.faults.note(Kind::Queue, name, None),
            Event::Listed(listing) => {
                let names = listing.objects.iter().filter_map(|object| match object {
                    Object::Node(node) => Some(&*node.name),
                    Object::Topology(topology) => Some(&*topology.name),
                    Object::Queue(queue) => Some(&*queue.name),
                    Object::Namespace(namespace) => Some(&*namespace.name),
                    _ => None,
                });
                self.faults.keep_listed(listing.kind, &names.collect());
                for object in &listing.objects {
                    self.note_object(object);
                }
            }
            Event::Deleted(_) | Event::Outcome(..) | Event::Configured(_) | Event::Continue => {}
        }
    }

    fn note_object(&mut self, object: &Object) {
        let (kind, name, uid, problems) = match object {
            Object::Node(node) => (Kind::Node, &node.name, node.uid, &node.problems),
            Object::Topology(facts) => (Kind::Topology, &facts.name, facts.uid, &facts.problems),
            Object::Namespace(facts) => (Kind::Namespace, &facts.name, facts.uid, &facts.problems),
            _ => return,
        };
        let fault = match problems.first() {
            Some(Problem { field, message }) => {
                let message = format!("{field}: {message}").into();
                Some(fault(
                    kind,
                    name,
                    uid,
                    Reason::InvalidSpec.as_str(),
                    message,
                ))
            }
            None if kind == Kind::Node => self.overcommitment(object),
            // What nodes make of a Topology is looked at once the state has taken all in.
            None if kind == Kind::Topology => return,
            None => None,
        };
        self.faults.note(kind, name, fault);
    }

    /// What pods use of a node beyond what it says that it has.
    fn overcommitment(&self, object: &Object) -> Option<Announcement> {
        let Object::Node(facts) = object else {
            return None;
        };
        let node = &self.state.nodes[*self.state.node_ids.get(&facts.name)?];
        // Another machine under the same name: the pods on it are those of the old one.
        let same = node.known.as_ref()?.facts.uid == facts.uid;
        let (resource, used, has) = node
            .resources()
            .map(|(resource, _, used)| {
                let resource = self.state.resource_names.name(resource);
                (resource, used, amount(&facts.allocatable, resource))
            })
            .find(|(_, used, has)| same && used > has)?;
        let message = format!(
            "the pods here use {used} {resource} and {has} are allocatable; no more are placed here"
        );
        Some(fault(
            Kind::Node,
            &facts.name,
            facts.uid,
            OVERCOMMITTED,
            message.into(),
        ))
    }

    /// A queue's status was worked out.
    pub(crate) fn note_queue(&mut self, name: &str, uid: Uid, status: &QueueStatus) {
        let wrong = status
            .fault
            .as_ref()
            .map(|(wrong, message)| fault(Kind::Queue, name, uid, wrong.as_str(), message.clone()));
        // Nodes may come that have it, so this is no warning.
        let absent = status.note.as_ref().map(|note| Announcement {
            warning: false,
            ..fault(Kind::Queue, name, uid, NOT_THERE, note.clone())
        });
        let fault = wrong.or(absent);
        self.faults.note(Kind::Queue, name, fault);
        self.announce_faults();
    }

    /// Nodes or Topologies have changed: looks at every Topology that can be read for a level whose
    /// label no node has.
    pub(crate) fn note_topologies(&mut self) {
        let notes = self.state.topology_notes();
        for (name, uid, unlabelled) in notes {
            let fault = unlabelled.map(|Unlabelled { sentence, splits }| Announcement {
                warning: splits,
                ..fault(Kind::Topology, &name, uid, LABEL_NOT_FOUND, sentence.into())
            });
            self.faults.note(Kind::Topology, &name, fault);
        }
    }

    /// Says what has not been said yet; only who leads speaks.
    pub(crate) fn announce_faults(&mut self) {
        for (key, fault) in core::mem::take(&mut self.faults.untold) {
            self.outbox.announce(fault.clone());
            self.faults.told.insert(key, fault);
        }
    }
}

/// An event about an object without a namespace.
fn fault(
    kind: Kind,
    name: &str,
    uid: Uid,
    reason: &'static str,
    message: Box<str>,
) -> Announcement {
    let (api_version, kind) = kind.api_type();
    Announcement {
        regarding: ObjectReference {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: "".into(),
            name: name.into(),
            uid,
        },
        warning: true,
        reason: reason.into(),
        message,
    }
}
