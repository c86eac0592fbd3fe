//! Finds places for a whole gang: first the domain, then the nodes.
//!
//! With members of one shape the answer is exact: a table says how many fit on each node, sums say
//! how many fit in each domain, and counting decides. With several shapes, packing by size comes
//! first; then two shapes are counted, too (`two_shapes`), and more are searched within a bound
//! (`search`). Sub-groups with domains of their own are packed domain by domain (`nested`), then
//! searched. A refusal says whether it is proved.

mod choices;
mod domains;
mod exact;
mod fill;
mod greedy;
mod lane;
mod memo;
mod most;
mod nested;
mod pack;
mod problem;
mod region;
mod rooms;
mod search;
mod tree;
mod two_shapes;
mod world;

pub(crate) use choices::{CHOICES_MAX, selections};
pub(crate) use domains::all_nodes_of;
pub(crate) use exact::single;
pub(crate) use memo::{Memo, SLICE_STEPS};
pub(crate) use most::{Most, most, places};
pub(crate) use nested::{counted_of_tree, place_tree};
pub(crate) use pack::counted_of;
pub(crate) use rooms::Rooms;
pub(crate) use tree::{Choice, Tree, TreeGroup, merged, pods_of};
pub(crate) use world::World;

use crate::facts::{Amount, Placement};
use crate::ids::{ClassId, DomainId, NodeId, PodId, TopologyId};
use crate::queues::QueueId;
use crate::state::ClusterState;
use crate::topology::Level;
use crate::txn::Txn;
use alloc::{boxed::Box, string::String, vec::Vec};

/// The members that are to be placed, and under which conditions.
#[derive(Debug)]
pub(crate) struct Request {
    /// The pods that wait, by class, the largest class first.
    pub(crate) groups: Vec<Group>,
    /// How many of them must be placed; all that exist take part in the choice of the domain.
    pub(crate) need: usize,
    /// Where they must or should be together.
    pub(crate) near: Option<Near>,
    /// The node of a member that already has a place: the others join it.
    pub(crate) anchor: Option<NodeId>,
    /// Nodes must be in each of these areas, too.
    pub(crate) inside: Vec<Area>,
    /// The queue whose limits on GPU models hold, if it has any.
    pub(crate) model_limits: Option<QueueId>,
    /// For pods that ask for a GPU, and for all others.
    pub(crate) placement: (Placement, Placement),
    /// Nodes of members that have a place, for spreading.
    pub(crate) occupied: Vec<NodeId>,
    /// Nodes with GPUs are left out: for members without a GPU, as long as there is other room.
    pub(crate) plain_only: bool,
}

/// The waiting pods of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) class: ClassId,
    pub(crate) pods: Vec<PodId>,
}

/// A resolved topology request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Near {
    pub(crate) topology: TopologyId,
    pub(crate) required: Option<Level>,
    pub(crate) preferred: Option<Level>,
    /// Set where the gang did not ask: near suits most gangs. Members that spread do without it.
    pub(crate) implied: bool,
}

/// A part of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Area {
    /// All of it.
    Cluster,
    /// One domain.
    Domain(TopologyId, DomainId),
    /// One node.
    Node(NodeId),
}

/// Where pods must fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Anywhere.
    Cluster,
    /// In any one domain of a level.
    Level(TopologyId, usize),
    /// In the domain of a level in which this node is: running members are there.
    DomainOf(TopologyId, usize, NodeId),
    /// On any one node.
    OneNode,
    /// On this node.
    Node(NodeId),
}

/// Why nothing was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Counting proves it: so many pods of the class fit in the best area, and more are needed.
    TooFew {
        class: ClassId,
        /// Where they would have to fit together.
        scope: Scope,
        /// The area that comes nearest.
        best: Option<Area>,
        fits: u64,
        need: u64,
    },
    /// Each shape alone would fit, all together do not.
    NotTogether {
        /// Whether the search looked at everything.
        proved: bool,
    },
    /// So many of these sub-groups, by path, do not fit together.
    SubGroupsNotTogether {
        paths: Vec<String>,
        need: usize,
        /// Whether the search looked at everything.
        proved: bool,
    },
    /// A sub-group that is needed would not even fit if it were alone.
    OfSubGroup {
        path: String,
        /// Its pods that wait, and how many of them are needed.
        groups: Vec<Group>,
        need: usize,
        /// Where they must be together.
        place: (Option<Near>, Option<NodeId>),
        refusal: Box<Refusal>,
    },
}

impl Refusal {
    /// The refusal of the sub-group in question, or of the gang itself.
    pub(crate) fn innermost(&self) -> &Self {
        match self {
            Self::OfSubGroup { refusal, .. } => refusal.innermost(),
            other => other,
        }
    }

    /// Whether it is certain that there is no place.
    pub(crate) fn is_proved(&self) -> bool {
        match self {
            Self::TooFew { .. } => true,
            Self::NotTogether { proved } | Self::SubGroupsNotTogether { proved, .. } => *proved,
            Self::OfSubGroup { refusal, .. } => refusal.is_proved(),
        }
    }
}

/// Places `need` of the pods in the transaction, or none of them.
///
/// The work done is added to `work`, in units of about ten nanoseconds.
pub(crate) fn place(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &mut Request,
    memo: &mut Memo,
    work: &mut u64,
) -> Result<(), Refusal> {
    if let Some(node) = lane::only_pod(state, request, work) {
        let (pod, node) = node?;
        let placement = request.placement_of(state, state.pods[pod].class);
        txn.place(state, pod, node, placement);
        return Ok(());
    }
    let without_gpus = |group: &Group| !state.classes[group.class].accelerated;
    if request.groups.iter().all(without_gpus) {
        request.plain_only = true;
        let placed = place_groups(state, txn, request, memo, work);
        request.plain_only = false;
        if placed.is_ok() {
            return Ok(());
        }
    }
    place_groups(state, txn, request, memo, work)
}

fn place_groups(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    memo: &mut Memo,
    work: &mut u64,
) -> Result<(), Refusal> {
    for group in &request.groups {
        state.refresh(group.class);
    }
    *work += (state.nodes.len() * request.groups.len()) as u64;
    let start = txn.checkpoint();
    let placed = match request.groups.as_slice() {
        [group] => fill::one_class(state, txn, request, group, work),
        _ => pack::several_classes(state, txn, request, memo, work),
    };
    if placed.is_err() {
        txn.rollback(state, start);
    }
    placed
}

/// The widest scope in which members may be placed.
pub(crate) fn widest_scope(
    state: &ClusterState,
    near: Option<Near>,
    anchor: Option<NodeId>,
) -> Scope {
    let scopes = domains::scopes(state, near, anchor);
    scopes.last().copied().unwrap_or(Scope::Cluster)
}

/// The areas of the widest scope in which members may be placed.
pub(crate) fn widest_areas(
    state: &ClusterState,
    near: Option<Near>,
    anchor: Option<NodeId>,
) -> Vec<Area> {
    domains::areas(state, widest_scope(state, near, anchor))
}

/// Whether the members were refused for the limits on GPU models alone: without them they would
/// fit.
pub(crate) fn only_limits_refuse(
    state: &mut ClusterState,
    request: &mut Request,
    refusal: &Refusal,
) -> bool {
    let &Refusal::TooFew {
        class, scope, need, ..
    } = refusal.innermost()
    else {
        return false;
    };
    let Some(limits) = request.model_limits.take() else {
        return false;
    };
    state.refresh(class);
    let fits = domains::areas(state, scope)
        .into_iter()
        .any(|area| domains::room(state, request, class, area) >= need);
    request.model_limits = Some(limits);
    fits
}

impl Request {
    /// How many pods wait.
    fn members(&self) -> usize {
        self.groups.iter().map(|group| group.pods.len()).sum()
    }

    pub(crate) fn placement_of(&self, state: &ClusterState, class: ClassId) -> Placement {
        if state.classes[class].accelerated {
            self.placement.0
        } else {
            self.placement.1
        }
    }

    /// Whether a node is left out for its GPUs.
    fn spares(&self, state: &ClusterState, node: NodeId) -> bool {
        self.plain_only && state.nodes[node].has_gpus()
    }

    /// Whether the limits on GPU models may keep one of these pods from a node.
    pub(crate) fn is_limited(&self, state: &ClusterState) -> bool {
        let left = |queue| state.queues.least_model_budget(queue);
        let Some(left) = self.model_limits.and_then(left) else {
            return false;
        };
        let asked = self.groups.iter().map(|group| {
            let gpus = state.classes[group.class].gpus;
            gpus.saturating_mul(group.pods.len() as u64)
        });
        asked.fold(0, Amount::saturating_add) > left
    }

    /// How many more pods of a class the limits on a node's GPU model allow.
    fn model_allows(&self, state: &ClusterState, class: ClassId, node: NodeId) -> u64 {
        let Some(queue) = self.model_limits else {
            return u64::MAX;
        };
        let gpus: Amount = state.classes[class].gpus;
        let model = state.nodes[node]
            .known
            .as_ref()
            .and_then(|known| known.model);
        match model.and_then(|model| state.queues.budget(queue, model)) {
            Some(budget) if gpus > 0 => budget / gpus,
            _ => u64::MAX,
        }
    }
}
