//! The truth as last seen, plus what was assumed since: the fold of all events.
//!
//! The state keeps sums, indexes and memberships current. A tentative change goes through
//! [`crate::txn::Txn`], which can undo it exactly.
//!
//! The state decides nothing, but for the cards of a pod that gets a place. Those are chosen here,
//! as the given placement wants: `place` is built on Txn, and whatever gives a pod a place, also in
//! a what-if, has to know the cards of the pod at once.

pub(crate) mod accounts;
pub(crate) mod ailments;
pub(crate) mod budgets;
pub(crate) mod cards;
pub(crate) mod class;
pub(crate) mod domains;
pub(crate) mod exclusive;
pub(crate) mod footprints;
pub(crate) mod gang;
pub(crate) mod holds;
mod images;
mod kinds;
pub(crate) mod lanes;
mod listing;
pub(crate) mod membership;
pub(crate) mod minima;
pub(crate) mod node;
mod nodes;
pub(crate) mod numa;
pub(crate) mod offered;
pub(crate) mod pod;
mod pods;
mod preferences;
pub(crate) mod reach;
pub(crate) mod relations;
pub(crate) mod runtimes;
mod score;
pub(crate) mod sets;
pub(crate) mod shared;
pub(crate) mod storage;
mod submitted;
pub(crate) mod tables;
pub(crate) mod topologies;

use crate::facts::{JobFacts, Labels, PodShape, PriorityClassFacts, Uid};
use crate::ids::{ClassId, GangId, NodeId, PodId, Slab, TallyId, TopologyId};
use crate::queues::{QueueId, QueueTree};
use crate::resources::ResourceNames;
use crate::topology::{NodeOrder, Topology};
use accounts::Capacity;
use ailments::Ailments;
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::String,
    sync::Arc,
    vec::Vec,
};
use budgets::Budgets;
use cards::MigModels;
use class::Class;
use domains::FreeNodes;
use footprints::Footprints;
use gang::{Gang, GangKey};
use hashbrown::HashMap;
use holds::Holds;
use images::Images;
use kinds::Kinds;
use lanes::Lanes;
use minima::Minima;
use node::Node;
use numa::Numa;
use offered::Offered;
use pod::Pod;
use relations::Relations;
use runtimes::Runtimes;
use rustc_hash::FxBuildHasher;
use score::Scores;
use storage::Storage;
use submitted::Submitted;
use tables::ChangeLog;

/// A map that is only looked up, never iterated where order matters.
pub(crate) type Lookup<K, V> = HashMap<K, V, FxBuildHasher>;

/// All that is known of the cluster, with the indexes over it.
#[derive(Debug)]
pub(crate) struct ClusterState {
    pub(crate) resource_names: ResourceNames,
    pub(crate) nodes: Slab<NodeId, Node>,
    pub(crate) node_ids: Lookup<Box<str>, NodeId>,
    pub(crate) order: NodeOrder,
    pub(crate) lanes: Lanes,
    pub(crate) changes: ChangeLog,
    pub(crate) free_nodes: FreeNodes,
    /// Nodes whose [`Node::standing`] has changed because other nodes of their domain became free
    /// or not.
    pub(crate) reordered: ChangeLog,
    pub(crate) topologies: Slab<TopologyId, Topology>,
    pub(crate) topology_ids: BTreeMap<Box<str>, Result<TopologyId, String>>,
    /// A Topology without levels, for constraints that name the level `node` alone and no Topology.
    bare_topology: TopologyId,
    /// Topologies whose only level is a node label that native groups name, by that label.
    label_topologies: BTreeMap<Box<str>, TopologyId>,
    pub(crate) classes: Slab<ClassId, Class>,
    /// Classes by their shape and by the terms of others' anti-affinity that select their pods.
    class_ids: Lookup<(Arc<PodShape>, Box<[TallyId]>), ClassId>,
    idle_classes: VecDeque<ClassId>,
    pub(crate) kinds: Kinds,
    pub(crate) scores: Scores,
    pub(crate) pods: Slab<PodId, Pod>,
    pub(crate) pod_ids: Lookup<Uid, PodId>,
    pub(crate) gangs: Slab<GangId, Gang>,
    pub(crate) gang_ids: BTreeMap<GangKey, GangId>,
    pub(crate) jobs: BTreeMap<Uid, JobFacts>,
    /// Pods of ours by their controlling owner, which may make them a gang.
    owned: BTreeMap<Uid, BTreeSet<PodId>>,
    budgets: Budgets,
    relations: Relations,
    pub(crate) storage: Storage,
    images: Images,
    /// The profiles of cards in MIG mode.
    pub(crate) mig_models: MigModels,
    /// Nodes that ask pods to go elsewhere if they can.
    softly_tainted: BTreeSet<NodeId>,
    pub(crate) ailments: Ailments,
    pub(crate) numa: Numa,
    /// See [`Settings::time_slices_are_single`](crate::settings::Settings::time_slices_are_single).
    time_slices_are_single: bool,
    pub(crate) minima: Minima,
    pub(crate) footprints: Footprints,
    pub(crate) holds: Holds,
    pub(crate) namespaces: BTreeMap<Box<str>, Labels>,
    pub(crate) priority_classes: BTreeMap<Box<str>, PriorityClassFacts>,
    pub(crate) queues: QueueTree,
    pub(crate) runtimes: Runtimes,
    pub(crate) submitted: Submitted,
    pub(crate) capacity: Capacity,
    pub(crate) offered: Offered,
    /// Whether the reaches of classes are kept, see [`ClusterState::keep_reaches`].
    reaches_kept: bool,
    /// Classes whose reach has changed since [`ClusterState::follow_reaches`] last ran.
    reached_anew: BTreeSet<ClassId>,
    /// Rises when the hierarchy of queues is built anew, and with every change of topologies,
    /// priority classes, namespaces or settings: refused gangs are then worth another try.
    pub(crate) rules_version: u64,
    /// Gangs that must be assessed again, because something that concerns them has changed.
    pub(crate) touched: BTreeSet<GangId>,
    /// Pods with a place whose claims, or the volumes of these, have changed.
    pub(crate) claims_changed: BTreeSet<Uid>,
    /// Gangs with a member that was bound to another node than the one assumed for it.
    pub(crate) overtaken: BTreeSet<GangId>,
    /// Nodes that got more room or other rules since the planner last took this set.
    pub(crate) freed: BTreeSet<NodeId>,
    /// Queues in which less is allocated or asked for than when the planner last took this set, or
    /// whose bounds may leave more room.
    pub(crate) released: BTreeSet<QueueId>,
    /// The gang that is being assessed, tried or told: it is to blame for a panic. It is kept in
    /// the state, which all code that handles gangs has at hand; no decision reads it.
    pub(crate) in_hand: Option<GangId>,
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
            budgets: Budgets::new(),
            relations: Relations::new(),
            storage: Storage::default(),
            images: Images::default(),
            mig_models: MigModels::default(),
            softly_tainted: BTreeSet::new(),
            ailments: Ailments::default(),
            numa: Numa::default(),
            time_slices_are_single: false,
            minima: Minima::default(),
            footprints: Footprints::default(),
            holds: Holds::default(),
            namespaces: BTreeMap::new(),
            priority_classes: BTreeMap::new(),
            queues: QueueTree::new(),
            runtimes: Runtimes::default(),
            submitted: Submitted::default(),
            capacity: Capacity::default(),
            offered: Offered::default(),
            reaches_kept: false,
            reached_anew: BTreeSet::new(),
            rules_version: 0,
            touched: BTreeSet::new(),
            claims_changed: BTreeSet::new(),
            overtaken: BTreeSet::new(),
            freed: BTreeSet::new(),
            released: BTreeSet::new(),
            in_hand: None,
        }
    }

    /// Has every gang assessed again, after a change of something that any gang may depend on.
    pub(crate) fn rules_changed(&mut self) {
        self.rules_version += 1;
        self.touched.extend(self.gangs.iter().map(|(id, _)| id));
    }
}
