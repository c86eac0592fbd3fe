//! The resources and models that queues name, as small numbers.

use crate::facts::{Amount, QueueResource};
use alloc::{boxed::Box, format, vec::Vec};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

pub(super) use crate::gpu::GPU;

/// A governed key: a resource, or one model of it. Keys are numbered in the order in which they
/// first appear; a number never becomes that of another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GovernedId(u32);

impl GovernedId {
    /// The plain key of GPUs.
    pub(crate) const GPU: Self = Self(0);

    /// The lowest of all keys, where a range of keys begins.
    pub(crate) const LOWEST: Self = Self(0);

    /// The `count` keys with the lowest numbers.
    pub(super) fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..u32::try_from(count).unwrap_or(u32::MAX)).map(Self)
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Amounts in base units (of GPUs, thousandths of a card) by governed key: sorted by key, each key
/// once, no zeros.
///
/// What a gang *asks for* is under the plain key of a resource, and under the key of a model only
/// if the gang can run on that model alone. What a pod *holds* is under both keys of the GPUs that
/// the pod was given.
pub(crate) type Demand = SmallVec<[(GovernedId, Amount); 4]>;

/// How much of a key a demand has, in base units.
pub(crate) fn amount_in(demand: &Demand, key: GovernedId) -> Amount {
    let found = demand.iter().find(|(known, _)| *known == key);
    found.map_or(0, |(_, amount)| *amount)
}

/// Adds a demand to another, key by key.
pub(crate) fn add_demand(sums: &mut Demand, more: &Demand) {
    for (key, amount) in more {
        match sums.iter_mut().find(|(known, _)| known == key) {
            Some((_, sum)) => *sum = sum.saturating_add(*amount),
            None => sums.push((*key, *amount)),
        }
    }
}

#[derive(Debug, Clone)]
struct Key {
    /// `resource` or `resource@product`.
    name: Box<str>,
    /// For the key of a model, the plain key of its resource; `None` for a plain key.
    plain: Option<GovernedId>,
    /// Whether a valid queue has an entry for the key; always `true` for plain GPUs.
    is_governed: bool,
}

/// The keys of one resource: of each model, and under `None` of the resource as a whole.
type Products = Vec<(Option<Box<str>>, GovernedId)>;

/// Every key that was ever named, and which of them are governed now.
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
        let gpu = keys.govern_key(GPU, None);
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

    /// The place of a key in an order that does not depend on which key has the lower number: plain
    /// GPUs, then all others by name.
    pub(super) fn place(&self, key: GovernedId) -> impl Ord + use<'_> {
        (key != GovernedId::GPU, self.name(key))
    }

    /// Whether a key is that of GPUs, of one model or of all.
    pub(super) fn is_gpu(&self, key: GovernedId) -> bool {
        self.plain(key).unwrap_or(key) == GovernedId::GPU
    }

    /// The plain key of a model's resource; `None` for plain keys.
    pub(super) fn plain(&self, key: GovernedId) -> Option<GovernedId> {
        self.keys.get(key.index())?.plain
    }

    /// Whether any model is governed.
    pub(super) fn names_models(&self) -> bool {
        let mut models = self.keys.iter().filter(|key| key.plain.is_some());
        models.any(|key| key.is_governed)
    }

    pub(super) fn find(&self, resource: &str, product: Option<&str>) -> Option<GovernedId> {
        self.lookup(resource, product)
            .filter(|key| self.keys[key.index()].is_governed)
    }

    /// The key's number, governed now or not.
    pub(super) fn lookup(&self, resource: &str, product: Option<&str>) -> Option<GovernedId> {
        self.by_resource
            .get(resource)?
            .iter()
            .find(|(known, _)| known.as_deref() == product)
            .map(|(_, key)| *key)
    }

    /// Governs the keys of these entries, which are those of all valid queues, and no other keys
    /// but plain GPUs. Returns whether the set of governed keys has changed.
    pub(super) fn govern<'a>(&mut self, entries: impl Iterator<Item = &'a QueueResource>) -> bool {
        let is_governed = |key: &Key| key.is_governed;
        let before: Vec<bool> = self.keys.iter().map(is_governed).collect();
        for key in &mut self.keys[1..] {
            key.is_governed = false;
        }
        for entry in entries {
            self.govern_key(&entry.name, entry.product.as_deref());
        }
        self.keys.iter().map(is_governed).ne(before)
    }

    fn govern_key(&mut self, resource: &str, product: Option<&str>) -> GovernedId {
        let key = self.intern(resource, product);
        self.keys[key.index()].is_governed = true;
        key
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
            is_governed: false,
        });
        self.by_resource
            .entry(resource.into())
            .or_default()
            .push((product.map(Into::into), key));
        key
    }
}
