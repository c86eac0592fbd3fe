//! The truth as last seen, plus what was assumed since: the fold of all events.
//!
//! Everything here is mechanism: it keeps sums, indexes and memberships current, and decides
//! nothing. A tentative change goes through [`crate::txn::Txn`], which can undo it exactly.

pub(crate) mod accounts;
pub(crate) mod cards;
pub(crate) mod class;
pub(crate) mod domains;
pub(crate) mod gang;
pub(crate) mod kinds;
pub(crate) mod lanes;
mod listing;
pub(crate) mod membership;
pub(crate) mod node;
mod nodes;
pub(crate) mod offered;
pub(crate) mod pod;
mod pods;
pub(crate) mod reach;
mod score;
pub(crate) mod submitted;
pub(crate) mod tables;
pub(crate) mod topologies;

use crate::facts::{JobFacts, Labels, PodShape, PriorityClassFacts, Uid};
use crate::ids::{ClassId, GangId, NodeId, PodId, Slab, TopologyId};
use crate::queues::{QueueId, QueueTree};
use crate::resources::ResourceNames;
use crate::topology::{NodeOrder, Topology};
use accounts::Capacity;
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::String,
    sync::Arc,
    vec::Vec,
};
use class::Class;
use domains::FreeNodes;
use gang::{Gang, GangKey};
use hashbrown::HashMap;
use kinds::Kinds;
use lanes::Lanes;
use node::Node;
use offered::Offered;
use pod::Pod;
use rustc_hash::FxBuildHasher;
use score::Scores;
use submitted::Submitted;
use tables::ChangeLog;

/// A map that is only looked up, never iterated where order matters.
pub(crate) type Lookup<K, V> = HashMap<K, V, FxBuildHasher>;

/// Everything that is known.
#[derive(Debug)]
pub(crate) struct ClusterState {
    pub(crate) resource_names: ResourceNames,
    pub(crate) nodes: Slab<NodeId, Node>,
    pub(crate) node_ids: Lookup<Box<str>, NodeId>,
    pub(crate) order: NodeOrder,
    pub(crate) lanes: Lanes,
    pub(crate) changes: ChangeLog,
    pub(crate) free_nodes: FreeNodes,
    /// Nodes that have another place among equals, though nothing has changed but their domain.
    pub(crate) reordered: ChangeLog,
    pub(crate) topologies: Slab<TopologyId, Topology>,
    pub(crate) topology_ids: BTreeMap<Box<str>, Result<TopologyId, String>>,
    /// A Topology without levels, for those who need the level `node` alone.
    bare_topology: TopologyId,
    /// Topologies of one level that only native groups ask for, by node label.
    label_topologies: BTreeMap<Box<str>, TopologyId>,
    pub(crate) classes: Slab<ClassId, Class>,
    class_ids: Lookup<Arc<PodShape>, ClassId>,
    idle_classes: VecDeque<ClassId>,
    pub(crate) kinds: Kinds,
    pub(crate) scores: Scores,
    pub(crate) pods: Slab<PodId, Pod>,
    pub(crate) pod_ids: Lookup<Uid, PodId>,
    pub(crate) gangs: Slab<GangId, Gang>,
    pub(crate) gang_ids: BTreeMap<GangKey, GangId>,
    pub(crate) jobs: BTreeMap<Uid, JobFacts>,
    /// Pods by their owner, where the owner may make them a gang.
    owned: BTreeMap<Uid, BTreeSet<PodId>>,
    pub(crate) namespaces: BTreeMap<Box<str>, Labels>,
    pub(crate) priority_classes: BTreeMap<Box<str>, PriorityClassFacts>,
    pub(crate) queues: QueueTree,
    pub(crate) submitted: Submitted,
    pub(crate) capacity: Capacity,
    pub(crate) offered: Offered,
    /// Whether reaches of classes are followed.
    reaches_kept: bool,
    /// Classes whose reach has changed since that was last taken in.
    reached_anew: BTreeSet<ClassId>,
    /// Rises when the hierarchy of queues is built anew, and with every change of topologies,
    /// priority classes or namespaces: refused gangs are then worth another try.
    pub(crate) rules_version: u64,
    /// Gangs that an event has touched since the last look.
    pub(crate) touched: BTreeSet<GangId>,
    /// Gangs of which a member was bound to another node than the one that it was given.
    pub(crate) overtaken: BTreeSet<GangId>,
    /// Nodes that got more room since the last look.
    pub(crate) freed: BTreeSet<NodeId>,
    /// Queues in which less is allocated or asked for than at the last look, or whose bounds may
    /// leave more room.
    pub(crate) released: BTreeSet<QueueId>,
}

impl ClusterState {
    pub(crate) fn new() -> Self {
        let mut topologies = Slab::new();
        let bare_topology = topologies.insert(Topology::new(Vec::new(), Uid(0)));
        Self {
            resource_names: ResourceNames::new(),
            nodes: Slab::new(),
            node_ids: Lookup::default(),
            order: NodeOrder::default(),
            lanes: Lanes::default(),
            changes: ChangeLog::default(),
            free_nodes: FreeNodes::default(),
            reordered: ChangeLog::default(),
            topologies,
            topology_ids: BTreeMap::new(),
            bare_topology,
            label_topologies: BTreeMap::new(),
            classes: Slab::new(),
            class_ids: Lookup::default(),
            idle_classes: VecDeque::new(),
            kinds: Kinds::new(),
            scores: Scores::default(),
            pods: Slab::new(),
            pod_ids: Lookup::default(),
            gangs: Slab::new(),
            gang_ids: BTreeMap::new(),
            jobs: BTreeMap::new(),
            owned: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            priority_classes: BTreeMap::new(),
            queues: QueueTree::new(),
            submitted: Submitted::default(),
            capacity: Capacity::default(),
            offered: Offered::default(),
            reaches_kept: false,
            reached_anew: BTreeSet::new(),
            rules_version: 0,
            touched: BTreeSet::new(),
            overtaken: BTreeSet::new(),
            freed: BTreeSet::new(),
            released: BTreeSet::new(),
        }
    }

    /// Every gang is looked at again: something changed that any of them may name.
    pub(crate) fn rules_changed(&mut self) {
        self.rules_version += 1;
        self.touched.extend(self.gangs.iter().map(|(id, _)| id));
    }
}
