//! Nodes ordered by what is free on them, for pods that can go anywhere.
//!
//! A *lane* holds all nodes that have a resource, in buckets of equal free amounts, least first.
//! Binpack reads it upwards, spread downwards; the first node that fits is the best one.

use crate::facts::Amount;
use crate::ids::{ById, ClassId, NodeId, ResourceId, Slab};
use crate::resources::ResourceNames;
use crate::state::node::{Node, Standing};
use alloc::{collections::BTreeMap, collections::BTreeSet, vec::Vec};
use smallvec::SmallVec;

/// Which nodes a lane holds, and how they are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Nodes that have an extended resource, by how much of it is free, then by free CPU, then
    /// memory.
    Extended(ResourceId),
    /// Nodes that name their cards, by how much of all cards is free, then by free CPU, then
    /// memory.
    Cards,
    /// Nodes without GPUs, by free CPU, then memory.
    Plain,
    /// Nodes with GPUs, for work that needs none: by free GPUs, then by free CPU, then memory.
    Beside,
}

/// The free amounts of a node, in the order that matters in the lane.
pub(crate) type FreeKey = [Amount; 3];

/// The highest key of a lane. A search that begins here finds no node.
pub(crate) const HIGHEST: FreeKey = [Amount::MAX; 3];

/// The nodes of one bucket, in the order of [`Node::standing`].
pub(crate) type Bucket = BTreeSet<(Standing, NodeId)>;

/// All lanes that were opened. Nodes are put into their places when a lane is read: what is tried
/// and undone changes nodes many times between two looks.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<LaneIndex>,
    /// The nodes that have changed since a lane was last read, each once.
    changed: Vec<NodeId>,
    is_changed: ById<NodeId, bool>,
    searched: ById<ClassId, Searched>,
}

/// The lanes that were searched upwards for a class, each with a key: nodes with a lower one had no
/// room when the table of the class was last brought up to date.
#[derive(Debug, Default)]
pub(crate) struct Searched(SmallVec<[(Lane, FreeKey); 1]>);

#[derive(Debug)]
struct LaneIndex {
    lane: Lane,
    buckets: Buckets,
}

/// Nodes by a key; nodes of one key in the order of [`Node::standing`].
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    buckets: BTreeMap<FreeKey, Bucket>,
    /// The key and the standing under which each node is entered.
    keys: ById<NodeId, Option<(FreeKey, Standing)>>,
}

impl Lanes {
    /// The buckets of a lane, if [`Lanes::refresh`] has opened it.
    pub(crate) fn get(&self, lane: Lane) -> Option<&BTreeMap<FreeKey, Bucket>> {
        let index = self.lanes.iter().find(|index| index.lane == lane);
        index.map(|index| &index.buckets.buckets)
    }

    /// Opens a lane over these nodes, if it is not open, and puts all nodes that have changed into
    /// their places in every lane.
    pub(crate) fn refresh(&mut self, lane: Lane, nodes: &Slab<NodeId, Node>) {
        for id in self.changed.drain(..) {
            self.is_changed[id] = false;
            for index in &mut self.lanes {
                index.update(id, nodes.get(id));
            }
        }
        if self.lanes.iter().any(|index| index.lane == lane) {
            return;
        }
        let mut index = LaneIndex {
            lane,
            buckets: Buckets::default(),
        };
        for (id, node) in nodes.iter() {
            index.update(id, Some(node));
        }
        self.lanes.push(index);
    }

    /// Where searches for places of a class begin.
    pub(crate) fn searched(&self, class: ClassId) -> &Searched {
        &self.searched[class]
    }

    pub(crate) fn searched_mut(&mut self, class: ClassId) -> &mut Searched {
        &mut self.searched[class]
    }

    /// Notes that a node has another place in the lanes now, or is gone.
    pub(crate) fn note(&mut self, id: NodeId) {
        if !self.lanes.is_empty() && !core::mem::replace(&mut self.is_changed[id], true) {
            self.changed.push(id);
        }
    }
}

impl Searched {
    /// The key of a lane at which a search begins.
    pub(crate) fn start(&self, lane: Lane) -> FreeKey {
        let mut searched = self.0.iter();
        let known = searched.find(|(searched, _)| *searched == lane);
        known.map_or(FreeKey::default(), |(_, key)| *key)
    }

    /// Notes that a lane was searched: no node with a key below this one has room.
    pub(crate) fn note(&mut self, lane: Lane, key: FreeKey) {
        match self.0.iter_mut().find(|(known, _)| *known == lane) {
            Some(searched) => searched.1 = key,
            None => self.0.push((lane, key)),
        }
    }

    /// Notes that a node has room, and that its keys may have changed.
    pub(crate) fn note_open(&mut self, node: &Node) {
        for (lane, key) in &mut self.0 {
            // tests plant bugs here: node-that-opens
            *key = lane.key(node).map_or(*key, |open| open.min(*key));
        }
    }

    /// Whether searches begin behind a node.
    pub(crate) fn passes(&self, node: &Node) -> bool {
        let is_below = |(lane, key): &(Lane, FreeKey)| lane.key(node).is_some_and(|at| at < *key);
        self.0.iter().any(is_below)
    }
}

impl Lane {
    /// The key of a node in the lane; `None`: the lane does not hold it.
    fn key(self, node: &Node) -> Option<FreeKey> {
        node.known.as_ref()?;
        let cpu = node.free(ResourceNames::cpu());
        let memory = node.free(ResourceNames::memory());
        match self {
            Self::Extended(resource) => {
                (node.allocatable(resource) > 0).then(|| [node.free(resource), cpu, memory])
            }
            Self::Cards => {
                (!node.cards.is_empty()).then(|| [node.cards.free_thousandths(), cpu, memory])
            }
            Self::Plain => (!node.has_gpus()).then_some([cpu, memory, 0]),
            Self::Beside => node
                .has_gpus()
                .then(|| [node.free(ResourceNames::gpu()), cpu, memory]),
        }
    }
}

impl LaneIndex {
    fn update(&mut self, id: NodeId, node: Option<&Node>) {
        let now = node.and_then(|node| Some((self.lane.key(node)?, node.standing())));
        self.buckets.set(id, now);
    }
}

impl Buckets {
    /// Puts a node under a key, with its standing; `None`: takes the node out.
    pub(crate) fn set(&mut self, id: NodeId, now: Option<(FreeKey, Standing)>) {
        let before = core::mem::replace(&mut self.keys[id], now);
        if before == now {
            return;
        }
        if let Some((key, standing)) = before
            && let Some(bucket) = self.buckets.get_mut(&key)
        {
            bucket.remove(&(standing, id));
            if bucket.is_empty() {
                self.buckets.remove(&key);
            }
        }
        if let Some((key, standing)) = now {
            self.buckets.entry(key).or_default().insert((standing, id));
        }
    }

    /// The buckets, the least key first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Bucket> {
        self.buckets.values()
    }
}
