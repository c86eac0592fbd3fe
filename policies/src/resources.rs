//! Resource vectors: short, sorted lists of amounts by [`ResourceId`].

use crate::facts::{Amount, Amounts};
use crate::ids::{Id, Interner, ResourceId};
use smallvec::SmallVec;

/// Amounts by resource, sorted, each resource once, no amount zero.
pub(crate) type Resources = SmallVec<[(ResourceId, Amount); 5]>;

/// The names of resources. CPU and memory come first, because every index looks at them.
#[derive(Debug)]
pub(crate) struct ResourceNames {
    names: Interner<ResourceId>,
    /// With so many names, those that nothing uses are looked for.
    many: usize,
}

/// Fewer names are never too many.
const MANY: usize = 256;

pub(crate) use crate::gpu::GPU;

impl ResourceNames {
    pub(crate) fn new() -> Self {
        let mut names = Interner::new();
        names.intern("cpu");
        names.intern("memory");
        names.intern(GPU);
        Self { names, many: MANY }
    }

    /// How many names there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// Whether there are so many names that it is worth to look for those that nothing uses.
    pub(crate) fn are_many(&self) -> bool {
        self.names.len() >= self.many
    }

    /// Forgets the names that are not to be kept. No resource vector may have them any more.
    pub(crate) fn retain(&mut self, keeps: impl Fn(ResourceId, &str) -> bool) {
        self.names.retain(keeps);
        self.many = MANY.max(2 * self.names.len());
    }

    pub(crate) fn cpu() -> ResourceId {
        ResourceId::new(0)
    }

    pub(crate) fn memory() -> ResourceId {
        ResourceId::new(1)
    }

    pub(crate) fn gpu() -> ResourceId {
        ResourceId::new(2)
    }

    pub(crate) fn name(&self, id: ResourceId) -> &str {
        self.names.name(id)
    }

    /// The place of a resource in an order that does not depend on which resource was named first:
    /// CPU, memory, GPUs, then all others by name.
    pub(crate) fn place(&self, id: ResourceId) -> impl Ord + use<'_> {
        (id.index().min(Self::gpu().index() + 1), self.name(id))
    }

    /// Sorts amounts in the order of [`Self::place`].
    pub(crate) fn in_order(&self, mut vector: Resources) -> Resources {
        vector.sort_by(|(one, _), (other, _)| self.place(*one).cmp(&self.place(*other)));
        vector
    }

    pub(crate) fn vector(&mut self, amounts: &Amounts) -> Resources {
        let mut vector: Resources = amounts
            .iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(name, amount)| (self.names.intern(name), *amount))
            .collect();
        vector.sort_unstable_by_key(|(resource, _)| *resource);
        vector.dedup_by_key(|(resource, _)| *resource);
        vector
    }
}

/// The amount of one resource in a vector; 0 where it is absent.
pub(crate) fn amount_of(vector: &[(ResourceId, Amount)], resource: ResourceId) -> Amount {
    vector
        .iter()
        .find(|(id, _)| *id == resource)
        .map_or(0, |(_, amount)| *amount)
}

#[cfg(test)]
mod tests;
