//! The resources and models that queues name, as small numbers.

use super::graph;
use super::tree::{Change, Definitions};
use crate::facts::{Amount, QueueFacts};
use alloc::{boxed::Box, collections::BTreeMap, format, vec::Vec};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

pub(super) use crate::gpu::GPU;

/// A governed key: a resource, or one model of it. The numbers are given in the order of first
/// appearance and never again to another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GovernedId(u32);

impl GovernedId {
    pub(super) const GPU: Self = Self(0);

    /// Not after any key.
    pub(crate) const LOWEST: Self = Self(0);

    /// The keys with the lowest numbers, so many of them.
    pub(super) fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..u32::try_from(count).unwrap_or(u32::MAX)).map(Self)
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Amounts by governed key, sorted by key, each once, no zero.
///
/// What a gang *asks for* has the plain key of a resource, and its model's key only if it can run
/// on that model alone. What a pod *holds* has both keys of the GPUs that it was given.
pub type Demand = SmallVec<[(GovernedId, Amount); 4]>;

#[derive(Debug, Clone)]
struct Key {
    /// `resource` or `resource@product`.
    name: Box<str>,
    /// The plain key of a model's resource, if that has ever been named.
    plain: Option<GovernedId>,
    /// How many entries of valid queues name it now.
    named: usize,
}

impl Key {
    /// Plain GPUs are governed even where nobody names them.
    fn is_governed(&self) -> bool {
        self.named > 0 || &*self.name == GPU
    }
}

/// Models of one resource, and the resource as a whole under `None`.
type Products = Vec<(Option<Box<str>>, GovernedId)>;

/// Every key that was ever named, and which are governed now.
#[derive(Debug, Clone)]
pub(super) struct GovernedKeys {
    keys: Vec<Key>,
    by_resource: HashMap<Box<str>, Products, FxBuildHasher>,
}

impl GovernedKeys {
    pub(super) fn new() -> Self {
        let mut keys = Self {
            keys: Vec::new(),
            by_resource: HashMap::default(),
        };
        let gpu = keys.intern(GPU, None);
        debug_assert_eq!(gpu, GovernedId::GPU);
        keys
    }

    /// How many keys have numbers.
    pub(super) fn interned(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn name(&self, key: GovernedId) -> &str {
        self.keys.get(key.index()).map_or("", |known| &known.name)
    }

    /// The place of a key in an order that does not depend on which was named first: plain GPUs,
    /// then all others by name.
    pub(super) fn place(&self, key: GovernedId) -> impl Ord + use<'_> {
        (key != GovernedId::GPU, self.name(key))
    }

    /// The plain key of a model's resource; `None` for plain keys.
    pub(super) fn plain(&self, key: GovernedId) -> Option<GovernedId> {
        self.keys.get(key.index())?.plain
    }

    /// Whether any model is governed.
    pub(super) fn names_models(&self) -> bool {
        let mut models = self.keys.iter().filter(|key| key.plain.is_some());
        models.any(Key::is_governed)
    }

    pub(super) fn find(&self, resource: &str, product: Option<&str>) -> Option<GovernedId> {
        self.lookup(resource, product)
            .filter(|key| self.keys[key.index()].is_governed())
    }

    /// The key's number, governed now or not.
    pub(super) fn lookup(&self, resource: &str, product: Option<&str>) -> Option<GovernedId> {
        self.by_resource
            .get(resource)?
            .iter()
            .find(|(known, _)| known.as_deref() == product)
            .map(|(_, key)| *key)
    }

    /// Takes the keys from the entries of all valid queues. Says whether the governed set changed.
    pub(super) fn govern(&mut self, definitions: &Definitions) -> bool {
        let before: Vec<bool> = self.keys.iter().map(Key::is_governed).collect();
        for key in &mut self.keys {
            key.named = 0;
        }
        let valid = definitions
            .values()
            .filter(|facts| graph::invalid(facts).is_none());
        for entry in valid.flat_map(|facts| &facts.resources) {
            let key = self.intern(&entry.name, entry.product.as_deref());
            self.keys[key.index()].named += 1;
        }
        self.keys.len() != before.len()
            || !self
                .keys
                .iter()
                .zip(before)
                .all(|(key, was)| key.is_governed() == was)
    }

    /// How often each key is named after these changes of valid queues, where that changes;
    /// `None`: other keys would be governed than before.
    pub(super) fn renamed(&self, changes: &[Change<'_>]) -> Option<BTreeMap<GovernedId, usize>> {
        let mut named = BTreeMap::new();
        let mut count = |facts: Option<&QueueFacts>, by: isize| {
            for entry in facts.iter().flat_map(|facts| &facts.resources) {
                let key = self.lookup(&entry.name, entry.product.as_deref())?;
                let count = named
                    .entry(key)
                    .or_insert_with(|| self.keys[key.index()].named);
                *count = count.saturating_add_signed(by);
            }
            Some(())
        };
        for change in changes {
            count(change.after, 1)?;
        }
        for change in changes {
            count(change.before, -1)?;
        }
        let stays = |(key, count): (&GovernedId, &usize)| {
            let known = &self.keys[key.index()];
            *key == GovernedId::GPU || (known.named > 0) == (*count > 0)
        };
        named.iter().all(stays).then_some(named)
    }

    pub(super) fn rename(&mut self, named: BTreeMap<GovernedId, usize>) {
        for (key, count) in named {
            self.keys[key.index()].named = count;
        }
    }

    fn intern(&mut self, resource: &str, product: Option<&str>) -> GovernedId {
        if let Some(key) = self.lookup(resource, product) {
            return key;
        }
        let plain = product.map(|_| self.intern(resource, None));
        let key = GovernedId(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
        let name = product.map_or_else(
            || resource.into(),
            |product| format!("{resource}@{product}").into(),
        );
        self.keys.push(Key {
            name,
            plain,
            named: 0,
        });
        self.by_resource
            .entry(resource.into())
            .or_default()
            .push((product.map(Into::into), key));
        key
    }
}
