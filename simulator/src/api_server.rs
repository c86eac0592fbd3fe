//! The part of kube-apiserver that a scheduler touches, exactly, and without faults.
//!
//! There is one store with one growing revision. Every write takes the next revision, which becomes
//! the version of the object; a write that changes nothing takes none. Requests are carried out one
//! at a time. Requests are lost, late and repeated outside of this module, and nothing here is
//! random.
//!
//! Left out are admission (objects come with what admission adds: priorities, default tolerations,
//! labels), authorization, validation beyond what these worlds could violate, and pages of lists.
//! Deletions are in the background, the controllers behind finalizers act at once, and a running
//! pod is ready. Read in the sources of Kubernetes 1.36: `pkg/registry/core/pod/storage`,
//! `pkg/registry/core/pod/strategy.go` and `apiserver/pkg/registry`. `tests/it/conformance.rs`
//! compares this model with the real API server.

mod exchange;
mod fields;
mod history;
mod lease;
mod locks;
mod pods;
mod status;
#[cfg(test)]
mod tests;
mod volumes;

pub use exchange::{
    Answer, Change, Conflict, Expected, Name, PodStatus, Request, Sort, Status, Stored, Version,
};

use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{DisruptionBudgetFacts, PodFacts, StorageFacts, Uid, UnixMs};
use history::History;
use lease::Lease;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The store: every object with its history, the lease and flow control.
#[derive(Debug, Clone, Default)]
pub struct ApiServer {
    /// `Some`: flow control turns every request away except those for the lease, and asks the
    /// client to wait for so many seconds.
    pub flow_control_s: Option<u64>,
    revision: Version,
    compacted: Version,
    kinds: BTreeMap<Kind, History>,
    lease: Option<Lease>,
    last_uid: u128,
}

/// The answer to a PUT that must name the version that it replaces, and does not.
const UNVERSIONED: Answer = Answer::Invalid("metadata.resourceVersion must be specified");

impl ApiServer {
    /// Carries out a request.
    pub fn handle(&mut self, request: Request, now_ms: UnixMs) -> Answer {
        if let Some(retry_after_s) = self.flow_control_s
            && !matches!(request, Request::Lease(_))
        {
            return Answer::TooManyRequests {
                retry_after_s,
                by_budget: false,
            };
        }
        match request {
            Request::Create(object) => self.create(object, now_ms),
            Request::Replace { object, version } => self.replace(&object, version),
            Request::ReplaceStatus { object, version } => self.replace_status(&object, version),
            Request::Delete {
                name,
                expected,
                grace_s,
            } => self.delete(&name, expected, grace_s, now_ms),
            Request::Get(name) => self.get(&name).cloned().map_or(Answer::NotFound, found),
            Request::List { kind, at } => self.list(kind, at),
            Request::Watch { kind, after } => self.watch(kind, after),
            Request::Bind(bind) => self.bind(&bind, now_ms),
            Request::Evict(evict) => self.evict(&evict.pod, now_ms),
            Request::Lift(lift) => self.lift(lift, now_ms),
            Request::SelectNode(select) => self.select_node(select),
            Request::KeepVolume(keep) => self.keep_volume(keep),
            Request::LockCards(request) => self.lock_cards(request),
            Request::UnlockCards(request) => self.unlock_cards(&request),
            Request::PatchStatus(patch) => self.patch_status(patch),
            Request::Lease(request) => self.handle_lease(&request, now_ms),
            Request::Publish(_) => {
                self.revision += 1;
                Answer::Done
            }
        }
    }

    /// The newest revision of the store.
    #[must_use]
    pub fn revision(&self) -> Version {
        self.revision
    }

    /// Forgets the changes before a revision, by etcd's rule; a request that still needs them is
    /// answered [`Answer::Gone`]. A watch cache that starts anew forgets all changes up to its
    /// start, as if it were compacted there.
    pub fn compact(&mut self, revision: Version) {
        self.compacted = self.compacted.max(revision.min(self.revision));
        for history in self.kinds.values_mut() {
            history.compact(self.compacted);
        }
    }

    /// An object as it is now.
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&Arc<Stored>> {
        self.kinds.get(&name.kind)?.get(name)
    }

    /// All objects of a kind as they are now, by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Arc<Stored>> {
        self.kinds.get(&kind).into_iter().flat_map(History::objects)
    }

    /// Whether there has ever been an object of a kind.
    pub(crate) fn has_had(&self, kind: Kind) -> bool {
        self.kinds.contains_key(&kind)
    }

    /// All pods as they are now.
    pub fn pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.objects(Kind::Pod)
            .filter_map(|stored| match &stored.object {
                Object::Pod(facts) => Some(facts),
                _ => None,
            })
    }

    /// All disruption budgets as they are now, by namespace and name.
    pub(crate) fn budgets(
        &self,
    ) -> impl Iterator<Item = (&Arc<Stored>, &DisruptionBudgetFacts)> + use<'_> {
        self.objects(Kind::DisruptionBudget)
            .filter_map(|stored| match &stored.object {
                Object::DisruptionBudget(facts) => Some((stored, facts)),
                _ => None,
            })
    }

    /// Creates an object. An invalid object is refused before its name is looked up.
    fn create(&mut self, mut object: Object, now_ms: UnixMs) -> Answer {
        let name = Name::of(&object);
        let uid = Uid(self.last_uid + 1);
        let status = match fields::created(&mut object, uid, whole_seconds(now_ms)) {
            Ok(status) => status,
            Err(why) => return Answer::Invalid(why),
        };
        if self.get(&name).is_some() {
            return Answer::AlreadyExists;
        }
        self.last_uid += 1;
        Answer::Created(self.store(name, object, status))
    }

    fn replace(&mut self, object: &Object, version: Option<Version>) -> Answer {
        let name = Name::of(object);
        let Some(old) = self.get(&name).cloned() else {
            return Answer::NotFound;
        };
        if object
            .uid()
            .is_some_and(|uid| old.object.uid() != Some(uid))
        {
            return Answer::Conflict(Conflict::Uid);
        }
        match version {
            None if !fields::may_replace_any_version(name.kind) => return UNVERSIONED,
            Some(version) if version != old.version => return Answer::Conflict(Conflict::Version),
            _ => {}
        }
        match fields::replaced(&old.object, object) {
            Ok(object) => {
                let status = fields::status_of_replaced(&old, &object);
                found(self.change(name, &old, object, status))
            }
            Err(why) => Answer::Invalid(why),
        }
    }

    fn replace_status(&mut self, object: &Object, version: Option<Version>) -> Answer {
        let name = Name::of(object);
        let Some(old) = self.get(&name).cloned() else {
            return Answer::NotFound;
        };
        if object.uid() != old.object.uid() {
            return Answer::Conflict(Conflict::Uid);
        }
        match version {
            None if !fields::may_replace_any_version(name.kind) => return UNVERSIONED,
            Some(version) if version != old.version => return Answer::Conflict(Conflict::Version),
            _ => {}
        }
        if let (Object::Pod(old), Object::Pod(new)) = (&old.object, object)
            && let Err(why) = fields::may_be_nominated(old, new.nominated.as_deref())
        {
            return Answer::Invalid(why);
        }
        match fields::status_replaced(&old, object) {
            Some((object, status)) => found(self.change(name, &old, object, status)),
            None => Answer::NotFound,
        }
    }

    fn delete(
        &mut self,
        name: &Name,
        expected: Expected,
        grace_s: Option<u64>,
        now_ms: UnixMs,
    ) -> Answer {
        let Some(old) = self.get(name).cloned() else {
            return Answer::NotFound;
        };
        if expected
            .uid
            .is_some_and(|uid| old.object.uid() != Some(uid))
        {
            return Answer::Conflict(Conflict::Uid);
        }
        if expected
            .version
            .is_some_and(|version| version != old.version)
        {
            return Answer::Conflict(Conflict::Version);
        }
        match name.kind {
            Kind::Pod => self.delete_pod(name, grace_s, now_ms),
            // These kinds have finalizers: the object is first marked as being deleted, and then
            // removed by its controller, which in this model happens at once.
            Kind::Namespace | Kind::NativePodGroup => {
                self.store(name.clone(), old.object.clone(), old.status.clone());
                self.remove(name);
            }
            _ => self.remove(name),
        }
        Answer::Done
    }

    fn list(&self, kind: Kind, at: Option<Version>) -> Answer {
        let Some(version) = at else {
            return Answer::Listed {
                version: self.revision,
                objects: self.objects(kind).cloned().collect(),
            };
        };
        if version > self.revision {
            return Answer::TooLarge;
        }
        if version < self.compacted {
            return Answer::Gone;
        }
        let history = self.kinds.get(&kind);
        Answer::Listed {
            version,
            objects: history.map_or_else(Vec::new, |history| history.at(version)),
        }
    }

    /// The changes of a kind after a version. The oldest change that is still known is the one at
    /// the compacted revision.
    fn watch(&self, kind: Kind, after: Version) -> Answer {
        if after + 1 < self.compacted {
            return Answer::Gone;
        }
        let history = self.kinds.get(&kind);
        Answer::Changes {
            changes: history.map_or_else(Vec::new, |history| history.after(after)),
            version: self.revision.max(after),
        }
    }

    /// Writes an object, unless it is equal to what is stored.
    fn change(
        &mut self,
        name: Name,
        old: &Arc<Stored>,
        object: Object,
        status: Status,
    ) -> Arc<Stored> {
        if old.object == object && old.status == status {
            return Arc::clone(old);
        }
        self.store(name, object, status)
    }

    fn store(&mut self, name: Name, mut object: Object, status: Status) -> Arc<Stored> {
        self.revision += 1;
        if let Object::Storage(StorageFacts::Volume(volume)) = &mut object {
            volume.version = self.revision.to_string().into();
        }
        let stored = Arc::new(Stored {
            object,
            version: self.revision,
            status,
        });
        let history = self.kinds.entry(name.kind).or_default();
        history.put(name, Arc::clone(&stored));
        stored
    }

    fn remove(&mut self, name: &Name) {
        self.revision += 1;
        if let Some(history) = self.kinds.get_mut(&name.kind) {
            history.remove(name, self.revision);
        }
    }
}

fn found(stored: Arc<Stored>) -> Answer {
    Answer::Found(stored)
}

/// A time in milliseconds as the API server stores it: in whole seconds.
fn whole_seconds(ms: UnixMs) -> UnixMs {
    ms / 1_000 * 1_000
}
