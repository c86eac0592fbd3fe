//! Finds places for a whole gang: first the domain, then the nodes.
//!
//! With members of one shape the answer is exact: a table says how many fit on each node, sums say
//! how many fit in each domain, and counting decides. With several shapes, packing by size comes
//! first; if it fails, two shapes are counted, too (`two_shapes`), and three or more are searched
//! within a bound (`search`). Sub-groups with domains of their own are packed domain by domain
//! (`nested`), then searched. Members whose places depend on other pods are placed one after the
//! other (`related`). Then members with preferences move to the nodes that they prefer
//! (`preferred`). A refusal says whether it is proved.

mod again;
mod choices;
mod domains;
mod exact;
mod fill;
mod greedy;
mod lane;
mod memo;
mod method;
mod nested;
mod order;
mod pack;
mod preferred;
mod problem;
mod read_set;
mod region;
mod related;
mod request;
mod search;
mod subset;
mod two_shapes;

pub(crate) use again::place_again;
pub(crate) use choices::{CHOICES_MAX, Choice, pods_of};
pub(crate) use domains::{all_nodes_of, counted};
pub(crate) use lane::in_order;
pub(crate) use memo::{Memo, SLICE_STEPS};
pub(crate) use nested::{counted_again, refused_by_counting};
pub(crate) use read_set::ReadSet;
pub(crate) use request::{Request, RequestGroup};
pub(crate) use subset::{Subset, largest_subset, places};

use crate::ids::{ClassId, DomainId, NodeId, PodId, TopologyId};
use crate::state::ClusterState;
use crate::topology::Level;
use crate::txn::Txn;
use alloc::{boxed::Box, string::String, vec::Vec};

/// The waiting pods of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) class: ClassId,
    pub(crate) pods: Vec<PodId>,
}

/// Where a gang or a sub-group must or should be together: its topology request, names resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Near {
    pub(crate) topology: TopologyId,
    pub(crate) required: Option<Level>,
    pub(crate) preferred: Option<Level>,
    /// The request names no level: the finest one is taken as preferred, which suits most gangs.
    /// The placement spread ignores it.
    pub(crate) implied: bool,
}

/// A part of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Area {
    /// The whole cluster.
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
    /// In the domain of a level in which this node is: members already have places there.
    DomainOf(TopologyId, usize, NodeId),
    /// On any one node.
    OneNode,
    /// On this node.
    Node(NodeId),
}

impl Scope {
    /// Whether a node is in the domain, or is the node, that the scope names; true if it names
    /// none.
    pub(crate) fn holds(self, state: &ClusterState, node: NodeId) -> bool {
        match self {
            Self::Cluster | Self::Level(..) | Self::OneNode => true,
            Self::DomainOf(topology, level, anchor) => {
                let of = |node| state.topologies[topology].path(node).get(level);
                of(node).is_some() && of(node) == of(anchor)
            }
            Self::Node(only) => node == only,
        }
    }
}

/// Why nothing was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Counting proves it: `fits` pods of the class fit in the best area, and `need` are needed.
    TooFew {
        class: ClassId,
        /// Where the pods would have to fit together.
        scope: Scope,
        /// The area with room for most of the pods.
        best: Option<Area>,
        fits: u64,
        need: u64,
    },
    /// The members do not fit all together, and counting one class alone does not prove it.
    NotTogether {
        /// Whether the search looked at everything.
        proved: bool,
    },
    /// `need` of the sub-groups with these paths do not fit together.
    SubGroupsNotTogether {
        paths: Vec<String>,
        need: usize,
        /// Whether the search looked at everything.
        proved: bool,
    },
    /// A needed sub-group would not fit even if it were alone.
    OfSubGroup {
        path: String,
        /// The waiting pods of the sub-group, of which `need` are needed.
        groups: Vec<Group>,
        need: usize,
        /// Where the pods must be together, and the node of a member that has a place.
        place: (Option<Near>, Option<NodeId>),
        refusal: Box<Refusal>,
    },
}

impl Refusal {
    /// Why the pods themselves were refused: the refusal without the sub-groups around it.
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

/// Places what the request needs in the transaction, or nothing. A plain gang that needs no GPU at
/// all is tried on nodes without GPUs first.
///
/// The work done is added to `work`, in units of about 10 ns.
///
/// # Errors
/// Why nothing was placed. If [`Memo::is_interrupted`] is true, the search goes on in the next
/// slice, and the refusal is not final.
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
    if request.is_entangled(state) {
        return related::place(state, txn, request, work);
    }
    let start = txn.checkpoint();
    let without_gpus = |group: &Group| !state.classes[group.class].accelerated;
    if request.is_plain() && request.root().pods.iter().all(without_gpus) {
        request.plain_only = true;
        let placed = place_groups(state, txn, request, memo, work);
        request.plain_only = false;
        if placed.is_ok() {
            preferred::follow(state, txn, request, start, work);
            return Ok(());
        }
    }
    let placed = place_groups(state, txn, request, memo, work);
    if let Err(refusal) = placed {
        let may_share = !refusal.is_proved() && request.shares_volumes(state);
        if !may_share || memo.is_interrupted() {
            return Err(refusal);
        }
        // Placed one after the other, members take each volume of a node once.
        let placed = related::place(state, txn, request, work);
        return placed.map_err(|_| refusal);
    }
    preferred::follow(state, txn, request, start, work);
    Ok(())
}

fn place_groups(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    memo: &mut Memo,
    work: &mut u64,
) -> Result<(), Refusal> {
    *work += (state.nodes.len() * request.classes().len()) as u64;
    let start = txn.checkpoint();
    let placed = if request.is_plain() {
        nested::plain(state, txn, request, memo, work)
    } else {
        nested::in_domains(state, txn, request, memo, work)
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

/// Whether the limits on GPU models alone refuse the members: some area has enough room without the
/// limits.
pub(crate) fn only_limits_refuse(
    state: &mut ClusterState,
    request: &Request,
    refusal: &Refusal,
) -> bool {
    let &Refusal::TooFew {
        class, scope, need, ..
    } = refusal.innermost()
    else {
        return false;
    };
    if request.model_limits.is_none() {
        return false;
    }
    let mut areas = domains::areas(state, scope).into_iter();
    areas.any(|area| counted(state, class, area) >= need)
}
