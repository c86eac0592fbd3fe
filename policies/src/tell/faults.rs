//! Faults: a Kubernetes event for whatever is wrong with a Queue, Topology, Node, Namespace or
//! PodDisruptionBudget, for a Job that evictions make fail, and for keys of ours that mean nothing
//! where they stand: on pods, PodGroups, Jobs and Queues.
//!
//! Why a gang waits is told in the gang's own status, not here. The leader tells each fault once,
//! as an event on the object.
//!
//! An event on a Job, and one about keys, has a name that follows from its words, so that the API
//! server keeps it once even if it is published again after a restart.

use crate::bind::outbox::Outbox;
use crate::command::{Announcement, ObjectReference};
use crate::event::{Event, Kind, Listing, Object, ObjectKey};
use crate::facts::{JobFacts, NodeFacts, NumaFacts, PodGroupFacts, Problem, Uid, amount};
use crate::ids::GangId;
use crate::numa::contradiction;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::gang::Gang;
use crate::state::pod::{Pod, Stage};
use crate::status::QueueStatus;
use crate::topology::Unlabelled;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The reason of the event on a queue with an entry for a resource or GPU model that no node has.
const NOT_THERE: &str = "ResourceNotFound";

/// The reason of the event on a node whose pods use more than it has.
const OVERCOMMITTED: &str = "Overcommitted";

/// The reason of the event on a Topology with a level whose label no node has.
const LABEL_NOT_FOUND: &str = "LabelNotFound";

/// The reason of the event on an object with a label or annotation of ours that means nothing.
const UNKNOWN_KEY: &str = "UnknownKey";

/// The reason of the event on a Job that evictions make fail.
const FAILS_WHEN_EVICTED: &str = "FailsWhenEvicted";

/// The message to the owner of a Job that evictions make fail.
const FRAGILE: &str = "each pod that is evicted counts as failed, and the Job fails for good once they \
     are more than its backoffLimit, or at once by a FailJob rule: it has no podFailurePolicy that \
     ignores the condition DisruptionTarget before all else. A Job that has one, with \
     restartPolicy: Never, waits again instead; see docs/jobs.md";

/// What a fault of an object is about; there may be one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// What the object asks for or holds.
    Object,
    /// Its labels and annotations of ours.
    Keys,
}

/// The faults of objects as they are now: faults that were told, and faults still to be told.
#[derive(Debug, Default)]
pub(super) struct Faults {
    announced: BTreeMap<(ObjectKey, About), Announcement>,
    unannounced: BTreeMap<(ObjectKey, About), Announcement>,
}

impl Faults {
    /// Notes the fault of an object, or that it has none. A fault that was told and has not changed
    /// is not told again.
    fn note(&mut self, key: ObjectKey, about: About, fault: Option<Announcement>) {
        let key = (key, about);
        if fault.as_ref() != self.announced.get(&key) {
            self.announced.remove(&key);
        }
        match fault.filter(|_| !self.announced.contains_key(&key)) {
            Some(fault) => self.unannounced.insert(key, fault),
            None => self.unannounced.remove(&key),
        };
    }

    /// Notes the labels and annotations of ours on an object that mean nothing there.
    fn note_keys(&mut self, key: ObjectKey, regarding: ObjectReference, unknown: &[Problem]) {
        let said: Vec<String> = unknown.iter().map(in_words).collect();
        let fault = (!said.is_empty()).then(|| Announcement {
            once: true,
            ..fault(regarding, UNKNOWN_KEY, said.join("; "))
        });
        self.note(key, About::Keys, fault);
    }

    fn forget(&mut self, key: &ObjectKey) {
        for about in [About::Object, About::Keys] {
            self.note(key.clone(), about, None);
        }
    }

    /// Forgets the objects of a listed kind that are not in the list: they are gone.
    fn keep_listed(&mut self, listing: &Listing) {
        let of_kind = |key: &ObjectKey| key.kind() == listing.kind;
        let mut noted = self.announced.keys().chain(self.unannounced.keys());
        if !noted.any(|(key, _)| of_kind(key)) {
            return;
        }
        let listed: BTreeSet<ObjectKey> = listing.objects.iter().map(Object::key).collect();
        let stays = |key: &ObjectKey| !of_kind(key) || listed.contains(key);
        self.announced.retain(|(key, _), _| stays(key));
        self.unannounced.retain(|(key, _), _| stays(key));
    }

    /// Notes the faults that can be seen in the objects of an event. The state has not taken in the
    /// event yet.
    pub(super) fn hear(&mut self, state: &ClusterState, event: &Event) {
        match event {
            Event::Applied(object) => self.note_object(state, object),
            Event::Deleted(key) => self.forget(key),
            Event::Listed(listing) => {
                self.keep_listed(listing);
                for object in &listing.objects {
                    self.note_object(state, object);
                }
            }
            Event::Outcome(..)
            | Event::Configured(_)
            | Event::BindAsked { .. }
            | Event::Continue => {}
        }
    }

    fn note_object(&mut self, state: &ClusterState, object: &Object) {
        let mut namespace = "";
        let (kind, name, uid, problems) = match object {
            Object::Node(node) => (Kind::Node, &node.name, node.uid, &node.problems),
            Object::Topology(facts) => (Kind::Topology, &facts.name, facts.uid, &facts.problems),
            Object::Namespace(facts) => (Kind::Namespace, &facts.name, facts.uid, &facts.problems),
            Object::DisruptionBudget(facts) => {
                namespace = &facts.namespace;
                (object.kind(), &facts.name, facts.uid, &facts.problems)
            }
            Object::Numa(facts) => return self.note_numa(facts, state.node_facts(&facts.name)),
            _ => return self.note_keys_of(object),
        };
        if let Object::Node(node) = object
            && let Some(numa) = state.numa.find(&node.name)
        {
            self.note_numa(numa, Some(node));
        }
        let fault = match problems.first() {
            Some(problem) => {
                let regarding = kind.reference(namespace, name, uid);
                let reason = Reason::InvalidSpec.as_str();
                Some(fault(regarding, reason, in_words(problem)))
            }
            None if kind == Kind::Node => overcommitment(state, object),
            // Labels that no node has are looked for once the state has taken in the event: see
            // `note_topologies`.
            None if kind == Kind::Topology => return,
            None => None,
        };
        self.note(object.key(), About::Object, fault);
    }

    /// Notes what is wrong with an object about NUMA nodes, also in view of the node that has its
    /// name.
    fn note_numa(&mut self, facts: &NumaFacts, node: Option<&NodeFacts>) {
        let of_node = || contradiction(facts, node?);
        let problem = facts.problems.first().cloned().or_else(of_node);
        let fault = problem.map(|problem| {
            let regarding = Kind::Numa.reference("", &facts.name, facts.uid);
            fault(regarding, Reason::InvalidSpec.as_str(), in_words(&problem))
        });
        self.note(ObjectKey::Numa(facts.name.clone()), About::Object, fault);
    }

    /// Notes the keys of an object that mean nothing. Keys of Jobs and PodGroups wait for the gang:
    /// see [`Faults::note_gang`].
    fn note_keys_of(&mut self, object: &Object) {
        let (regarding, unknown) = match object {
            Object::Pod(pod) if pod.ours => {
                let unknown = pod.unknown_keys.as_slice();
                let told = if pod.phase.ended() { &[] } else { unknown };
                (
                    Kind::Pod.reference(&pod.namespace, &pod.name, pod.uid),
                    told,
                )
            }
            Object::Queue(queue) => {
                let regarding = Kind::Queue.reference("", &queue.name, queue.uid);
                (regarding, queue.unknown_keys.as_slice())
            }
            Object::Job(JobFacts { unknown_keys, .. })
            | Object::PodGroup(PodGroupFacts { unknown_keys, .. })
                if unknown_keys.is_empty() =>
            {
                return self.note(object.key(), About::Keys, None);
            }
            _ => return,
        };
        self.note_keys(object.key(), regarding, unknown);
    }

    /// Notes the faults of the Jobs and of the PodGroup of a gang that has members: the Jobs that
    /// evictions of its pods would make fail, so that their owners hear of it before anything is
    /// evicted, and keys that mean nothing where they stand.
    pub(super) fn note_gang(&mut self, state: &ClusterState, id: GangId) {
        let gang = &state.gangs[id];
        for job in state.fragile_jobs(gang) {
            let key = (ObjectKey::Job(job.uid), About::Object);
            if self.announced.contains_key(&key) || self.unannounced.contains_key(&key) {
                continue;
            }
            let fault = Announcement {
                once: true,
                ..fault(reference_of(job), FAILS_WHEN_EVICTED, FRAGILE)
            };
            self.unannounced.insert(key, fault);
        }
        for job in state
            .jobs_of(gang)
            .filter(|job| !job.unknown_keys.is_empty())
        {
            self.note_keys(
                ObjectKey::Job(job.uid),
                reference_of(job),
                &job.unknown_keys,
            );
        }
        if let Some(group) = &gang.object
            && !group.unknown_keys.is_empty()
        {
            let (namespace, name) = (group.namespace.clone(), group.name.clone());
            let regarding = Kind::from(group.source).reference(&namespace, &name, group.uid);
            let key = ObjectKey::PodGroup(group.source, namespace, name);
            self.note_keys(key, regarding, &group.unknown_keys);
        }
    }

    /// Notes the fault that a queue's new status tells.
    pub(super) fn note_queue(&mut self, name: &str, uid: Uid, status: &QueueStatus) {
        let regarding = || Kind::Queue.reference("", name, uid);
        let wrong = status.fault.as_ref();
        let wrong = wrong.map(|(wrong, said)| fault(regarding(), wrong.as_str(), said.clone()));
        // No warning: nodes that have the resource or model may still come.
        let absent = status.note.as_ref().map(|note| Announcement {
            warning: false,
            ..fault(regarding(), NOT_THERE, note.clone())
        });
        let fault = wrong.or(absent);
        self.note(ObjectKey::Queue(name.into()), About::Object, fault);
    }

    /// Notes every readable Topology that has a level whose label no node has. To be called when
    /// nodes or Topologies have changed.
    pub(super) fn note_topologies(&mut self, state: &ClusterState) {
        for (name, uid, unlabelled) in state.topology_notes() {
            let fault = unlabelled.map(|Unlabelled { sentence, splits }| Announcement {
                warning: splits,
                ..fault(
                    Kind::Topology.reference("", &name, uid),
                    LABEL_NOT_FOUND,
                    sentence,
                )
            });
            self.note(ObjectKey::Topology(name), About::Object, fault);
        }
    }

    /// Publishes the faults that were not told yet. Only the leader may call this.
    pub(super) fn announce(&mut self, outbox: &mut Outbox) {
        for (key, fault) in core::mem::take(&mut self.unannounced) {
            outbox.announce(fault.clone());
            self.announced.insert(key, fault);
        }
    }
}

/// What the owner of a gang should know although it does not hold the gang up, a sentence each.
pub(super) fn notes(state: &ClusterState, gang: &Gang) -> Vec<String> {
    let jobs = state.fragile_jobs(gang);
    let mut notes: Vec<String> = jobs
        .map(|job| format!("Job {}: {FRAGILE}", job.name))
        .collect();
    let of_job = |job: &JobFacts| keys_in_words("Job", &job.name, &job.unknown_keys);
    notes.extend(state.jobs_of(gang).flat_map(of_job));
    if let Some(group) = &gang.object {
        notes.extend(keys_in_words("PodGroup", &group.name, &group.unknown_keys));
    }
    let members = gang.members.iter().map(|id| &state.pods[*id]);
    let mut members: Vec<&Pod> = members.collect();
    members.sort_by_key(|pod| &pod.name);
    if let Some(group) = &gang.object
        && !members.is_empty()
        && members.iter().all(|pod| pod.stage != Stage::Waiting)
    {
        // The first unreadable field of a PodGroup is why its members wait, if any do.
        notes.extend(keys_in_words("PodGroup", &group.name, &group.problems));
    }
    let mut known: Vec<&Problem> = Vec::new();
    for pod in members {
        let own = || pod.own.iter();
        // A field of a member that waits is why it waits. On a member that has a place it is told
        // here: an unreadable `last-checkpoint` counts as none.
        let unread = own().filter(|_| pod.stage.node().is_some());
        let unread = unread.flat_map(|own| &own.problems);
        for problem in own().flat_map(|own| &own.unknown_keys).chain(unread) {
            if !known.contains(&problem) {
                known.push(problem);
                notes.push(format!("pod {}: {}", pod.name, in_words(problem)));
            }
        }
    }
    notes
}

fn keys_in_words(kind: &str, name: &str, unknown: &[Problem]) -> Vec<String> {
    let said = unknown.iter().map(in_words);
    said.map(|said| format!("{kind} {name}: {said}")).collect()
}

fn reference_of(job: &JobFacts) -> ObjectReference {
    Kind::Job.reference(&job.namespace, &job.name, job.uid)
}

/// The fault of a node whose pods use more than the node says that it has.
fn overcommitment(state: &ClusterState, object: &Object) -> Option<Announcement> {
    let Object::Node(facts) = object else {
        return None;
    };
    let node = &state.nodes[*state.node_ids.get(&facts.name)?];
    // With another UID it is a new machine under an old name: the known pods are on the old
    // machine.
    let same = node.known.as_ref()?.facts.uid == facts.uid;
    let (resource, used, has) = node
        .resources()
        .map(|(resource, _, used)| {
            let resource = state.resource_names.name(resource);
            (resource, used, amount(&facts.allocatable, resource))
        })
        .find(|(_, used, has)| same && used > has)?;
    let message = format!(
        "the pods here use {used} {resource} and {has} are allocatable; no more are placed here"
    );
    let regarding = Kind::Node.reference("", &facts.name, facts.uid);
    Some(fault(regarding, OVERCOMMITTED, message))
}

/// A warning about an object.
fn fault(
    regarding: ObjectReference,
    reason: &'static str,
    message: impl Into<Box<str>>,
) -> Announcement {
    Announcement {
        regarding,
        warning: true,
        reason: reason.into(),
        message: message.into(),
        once: false,
    }
}

fn in_words(problem: &Problem) -> String {
    format!("{}: {}", problem.field, problem.message)
}
