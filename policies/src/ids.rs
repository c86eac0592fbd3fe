//! Dense numbers for things that have names, so that names stay out of the hot path.
//!
//! Numbers are given in the order of arrival, so they decide nothing: among equals the first is the
//! first by name, and nodes and domains come in the order of [`crate::topology::NodeOrder`] or of
//! their paths. Equal states, promises and pauses give equal decisions and equal words, which
//! `policies/tests/engine/histories.rs` checks.

use alloc::{boxed::Box, vec::Vec};
use core::marker::PhantomData;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A number that stands for one thing of a kind.
pub(crate) trait Id: Copy + Eq + Ord {
    /// The id with a number.
    fn new(number: u32) -> Self;
    /// The number of the id, as an index.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl Id for $name {
            fn new(number: u32) -> Self {
                Self(number)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A resource name.
    ResourceId;
    /// A node, known or only referred to.
    NodeId;
    /// A pod.
    PodId;
    /// A class: all pods of one shape.
    ClassId;
    /// A gang.
    GangId;
    /// A Topology object.
    TopologyId;
    /// A domain inside one topology.
    DomainId;
    /// A kind of pods, as scores see them.
    KindId;
    /// A GPU model.
    ModelId;
    /// A set of labels that pods in one namespace have in common.
    LabelSetId;
    /// A count of pods by domain or by node.
    TallyId;
    /// A node label whose values are domains to pods.
    DomainKeyId;
    /// A disruption budget.
    BudgetId;
}

/// Names to numbers and back; no number is ever given up.
#[derive(Debug)]
pub(crate) struct Interner<I> {
    ids: HashMap<Box<str>, u32, FxBuildHasher>,
    names: Vec<Box<str>>,
    /// The numbers of names that were forgotten.
    free: Vec<u32>,
    kind: PhantomData<I>,
}

impl<I: Id> Interner<I> {
    pub(crate) fn new() -> Self {
        Self {
            ids: HashMap::with_hasher(FxBuildHasher),
            names: Vec::new(),
            free: Vec::new(),
            kind: PhantomData,
        }
    }

    /// The number of a name; a new name gets one that was given back, else the next.
    pub(crate) fn intern(&mut self, name: &str) -> I {
        if let Some(&number) = self.ids.get(name) {
            return I::new(number);
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.names[number as usize] = name.into();
                number
            }
            None => {
                self.names.push(name.into());
                number_of(self.names.len() - 1)
            }
        };
        self.ids.insert(name.into(), number);
        I::new(number)
    }

    /// How many names have a number.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Forgets the names that are not to be kept. Nothing may refer to their numbers any more.
    pub(crate) fn retain(&mut self, keeps: impl Fn(I, &str) -> bool) {
        let Self {
            ids, names, free, ..
        } = self;
        ids.retain(|name, number| {
            let is_kept = keeps(I::new(*number), name);
            if !is_kept {
                names[*number as usize] = "".into();
                free.push(*number);
            }
            is_kept
        });
        // Not in the order of a hash map, which is no order.
        free.sort_unstable_by(|one, other| other.cmp(one));
    }

    pub(crate) fn name(&self, id: I) -> &str {
        &self.names[id.index()]
    }
}

/// Values under dense ids; the ids of removed values are used again.
#[derive(Debug)]
pub(crate) struct Slab<I, T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
    kind: PhantomData<I>,
}

impl<I: Id, T> Slab<I, T> {
    pub(crate) fn new() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
            kind: PhantomData,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> I {
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = Some(value);
            return I::new(number);
        }
        let number = number_of(self.values.len());
        self.values.push(Some(value));
        I::new(number)
    }

    pub(crate) fn remove(&mut self, id: I) -> Option<T> {
        let value = self.values.get_mut(id.index())?.take()?;
        self.free.push(number_of(id.index()));
        Some(value)
    }

    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.values.get(id.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.values.get_mut(id.index())?.as_mut()
    }

    /// All ids that were ever given, also those of values that were removed.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..number_of(self.values.len())).map(I::new)
    }

    /// One more than the largest id that was ever given.
    pub(crate) fn bound(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.values
            .iter()
            .enumerate()
            .filter_map(|(index, value)| Some((I::new(number_of(index)), value.as_ref()?)))
    }

    pub(crate) fn ids(&self) -> Vec<I> {
        self.iter().map(|(id, _)| id).collect()
    }
}

impl<I: Id, T> core::ops::Index<I> for Slab<I, T> {
    type Output = T;

    /// The trap: panics for an id that was removed. Ids that may be stale go through `get`.
    fn index(&self, id: I) -> &T {
        self.values[id.index()]
            .as_ref()
            .expect("the id is live: its owner removes it with the value")
    }
}

impl<I: Id, T> core::ops::IndexMut<I> for Slab<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        self.values[id.index()]
            .as_mut()
            .expect("the id is live: its owner removes it with the value")
    }
}

/// A record for each id, where the things with these ids belong to another owner. A record that was
/// never written is the default.
///
/// Records are made a chunk at a time and stay where they are: nothing waits until all of them have
/// been copied to a larger place.
#[derive(Debug)]
pub(crate) struct ById<I, T> {
    chunks: Vec<Box<[T]>>,
    unwritten: T,
    kind: PhantomData<I>,
}

/// How many records are made at once.
const CHUNK: usize = 64;

impl<I, T: Default> Default for ById<I, T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            unwritten: T::default(),
            kind: PhantomData,
        }
    }
}

impl<I: Id, T: Default> ById<I, T> {
    /// Resets the record of a thing that is gone: its id may be given to another thing.
    pub(crate) fn forget(&mut self, id: I) {
        if let Some(chunk) = self.chunks.get_mut(id.index() / CHUNK) {
            chunk[id.index() % CHUNK] = T::default();
        }
    }

    /// All records that were made, those of things that are gone and some defaults among them.
    pub(crate) fn made_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }
}

impl<I: Id, T: Default> core::ops::Index<I> for ById<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        let chunk = self.chunks.get(id.index() / CHUNK);
        chunk.map_or(&self.unwritten, |chunk| &chunk[id.index() % CHUNK])
    }
}

impl<I: Id, T: Default> core::ops::IndexMut<I> for ById<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        let chunk = id.index() / CHUNK;
        while self.chunks.len() <= chunk {
            let records = core::iter::repeat_with(T::default);
            self.chunks.push(records.take(CHUNK).collect());
        }
        &mut self.chunks[chunk][id.index() % CHUNK]
    }
}

/// Memory ends long before ids do: each takes more than one byte, and there are 2^32 of them.
fn number_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
