//! The changes to the objects of one kind that have not been compacted.

use super::exchange::{Change, Name, Sort, Stored, Version};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The objects of one kind as they are now, and the changes that led there.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    now: BTreeMap<Name, Arc<Stored>>,
    changes: VecDeque<Entry>,
}

/// One change, with the object as it was before the change.
#[derive(Debug, Clone)]
struct Entry {
    change: Change,
    name: Name,
    before: Option<Arc<Stored>>,
}

impl History {
    pub(super) fn get(&self, name: &Name) -> Option<&Arc<Stored>> {
        self.now.get(name)
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.now.values()
    }

    /// Stores an object under its version.
    pub(super) fn put(&mut self, name: Name, stored: Arc<Stored>) {
        let before = self.now.insert(name.clone(), Arc::clone(&stored));
        let sort = match before {
            None => Sort::Added,
            Some(_) => Sort::Modified,
        };
        let object = stored;
        let change = Change { sort, object };
        self.changes.push_back(Entry {
            change,
            name,
            before,
        });
    }

    /// Removes an object; the deletion gets this version.
    pub(super) fn remove(&mut self, name: &Name, version: Version) {
        let Some(before) = self.now.remove(name) else {
            return;
        };
        let object = Arc::new(Stored {
            version,
            ..(*before).clone()
        });
        let sort = Sort::Deleted;
        self.changes.push_back(Entry {
            change: Change { sort, object },
            name: name.clone(),
            before: Some(before),
        });
    }

    /// All changes after a version.
    pub(super) fn after(&self, version: Version) -> Vec<Change> {
        let newer = self.entries_after(version);
        newer.map(|entry| entry.change.clone()).collect()
    }

    /// The objects as they were at a version.
    pub(super) fn at(&self, version: Version) -> Vec<Arc<Stored>> {
        let mut then = self.now.clone();
        for entry in self.entries_after(version).rev() {
            match &entry.before {
                Some(before) => then.insert(entry.name.clone(), Arc::clone(before)),
                None => then.remove(&entry.name),
            };
        }
        then.into_values().collect()
    }

    /// Forgets the changes before a version.
    pub(super) fn compact(&mut self, version: Version) {
        let forgotten = self
            .changes
            .partition_point(|entry| entry.change.object.version < version);
        self.changes.drain(..forgotten);
    }

    fn entries_after(&self, version: Version) -> impl DoubleEndedIterator<Item = &Entry> {
        let from = self
            .changes
            .partition_point(|entry| entry.change.object.version <= version);
        self.changes.range(from..)
    }
}
