//! Room and quantities that have been freed, and the shortfalls that may be eased by them.
//!
//! A gang whose members of several shapes do not fit together stands in no line of a shortfall. It
//! is tried when what is freed holds a member of any of its shapes; if it was not proved that the
//! members do not fit, also when a node is freed that any of them may use. A gang that limits on
//! GPU models concern is also tried when something is released under the highest of these limits:
//! then there may be room where nothing was freed.

use super::Agenda;
use crate::gangs::wait::Shortfall;
use crate::ids::{ById, ClassId, GangId, Id, NodeId};
use crate::place::Scope;
use crate::plan::waiting::Waiting;
use crate::queues::{Bound, GovernedId, QueueId};
use crate::reason::Reason;
use crate::state::ClusterState;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// Nodes that have been freed since every gang that they may help was last tried, and the
/// shortfalls that may be eased by them.
#[derive(Debug, Default)]
pub(super) struct Freed {
    nodes: BTreeSet<NodeId>,
    /// Shortfalls that may be eased. Each of them was eased once; pods that have taken room since
    /// are noticed when the shortfall is looked at again.
    eased: BTreeSet<Shortfall>,
    /// The queues in which a gang was tried and was refused for this shortfall once more: counting
    /// overlooks something, such as limits on GPU models.
    in_vain: BTreeMap<Shortfall, BTreeSet<QueueId>>,
}

impl Freed {
    /// The shortfalls that may be eased.
    pub(super) fn eased(&self) -> &BTreeSet<Shortfall> {
        &self.eased
    }

    /// Whether a gang of the queue was tried already, and the shortfall turned out to stand.
    pub(super) fn in_vain(&self, shortfall: Shortfall, queue: QueueId) -> bool {
        self.in_vain
            .get(&shortfall)
            .is_some_and(|queues| queues.contains(&queue))
    }

    /// Notes that a gang of this queue was tried, and that the shortfall stands.
    pub(super) fn refused(&mut self, shortfall: Shortfall, queue: QueueId) {
        if self.eased.contains(&shortfall) {
            self.in_vain.entry(shortfall).or_default().insert(queue);
        }
    }
}

/// Gangs and queues that something freed concerns at once.
#[derive(Debug, Default)]
pub(crate) struct Stirred {
    /// Refused gangs that may be helped where counting says nothing: all of them are tried.
    pub(crate) gangs: BTreeSet<GangId>,
    /// Queues that may have another head.
    pub(crate) queues: BTreeSet<QueueId>,
}

impl Agenda {
    /// Takes in what has been freed.
    pub(crate) fn take_freed(
        &mut self,
        state: &mut ClusterState,
        waiting: &ById<GangId, Waiting>,
    ) -> Stirred {
        let nodes = core::mem::take(&mut state.freed);
        let released = core::mem::take(&mut state.released);
        let mut stirred = Stirred {
            gangs: self.take_related(state),
            ..Stirred::default()
        };
        if nodes.is_empty() && released.is_empty() {
            return stirred;
        }
        let mut eased = self.rooms_eased(state, &nodes);
        for (class, gangs) in &self.any_room {
            if fits(state, *class, Scope::Cluster, &nodes, 1) > 0 {
                stirred.gangs.extend(gangs);
            } else if may_use(state, *class, &nodes) {
                let open = |gang: &&GangId| !needs_more_room(state, &waiting[**gang]);
                stirred.gangs.extend(gangs.iter().filter(open));
            }
        }
        let paths = released.into_iter().map(|queue| state.queues.path(queue));
        for queue in paths.flatten().collect::<BTreeSet<_>>() {
            eased.extend(self.bounds_eased(state, queue));
            stirred
                .gangs
                .extend(self.queues.get(&queue).into_iter().flatten());
        }
        for shortfall in &eased {
            let tried = self.freed.in_vain.remove(shortfall);
            stirred.queues.extend(tried.into_iter().flatten());
        }
        self.freed.nodes.extend(nodes);
        self.freed.eased.extend(eased);
        self.line_ups.changed();
        for (gang, shortfall) in &self.unfinished_lacking {
            if self.freed.may_be_eased(state, *shortfall) {
                stirred.gangs.insert(*gang);
            }
        }
        stirred
    }

    /// Whether pods have come or gone on which the places of refused gangs depend.
    pub(crate) fn is_related_anew(&self, state: &ClusterState) -> bool {
        let mut stamps = self.relation_stamps.iter();
        stamps.any(|(class, stamp)| state.relation_stamp(*class) != *stamp)
    }

    /// The gangs that were refused before other pods came or went on which their places depend.
    fn take_related(&mut self, state: &ClusterState) -> BTreeSet<GangId> {
        let mut gangs = BTreeSet::new();
        for (class, stamp) in &mut self.relation_stamps {
            let now = state.relation_stamp(*class);
            // tests plant bugs here: related-gang-wakes
            if core::mem::replace(stamp, now) != now {
                gangs.extend(self.any_room.get(class).into_iter().flatten());
            }
        }
        gangs
    }

    /// The shortfalls of room that these nodes ease.
    fn rooms_eased(&self, state: &mut ClusterState, nodes: &BTreeSet<NodeId>) -> Vec<Shortfall> {
        let (mut eased, mut last) = (Vec::new(), None);
        for shortfall in self.lacking.keys() {
            let Shortfall::Room { class, scope, need } = *shortfall else {
                // Shortfalls of room come first.
                break;
            };
            let fits = match last {
                Some((same, fits)) if same == (class, scope) => fits,
                _ => fits(state, class, scope, nodes, u64::MAX),
            };
            last = Some(((class, scope), fits));
            if need <= fits {
                eased.push(*shortfall);
            }
        }
        eased
    }

    /// The shortfalls under the bounds of a queue that are eased.
    fn bounds_eased(
        &self,
        state: &ClusterState,
        queue: QueueId,
    ) -> impl Iterator<Item = Shortfall> {
        let first = Shortfall::Bound {
            queue,
            key: GovernedId::LOWEST,
            bound: Bound::Limit,
            asked: 0,
        };
        let of_queue = move |shortfall: &&Shortfall| match shortfall {
            Shortfall::Bound { queue: of, .. } => *of == queue,
            Shortfall::Room { .. } => false,
        };
        let lacking = self.lacking.range(first..).map(|(shortfall, _)| shortfall);
        let eased = lacking.take_while(of_queue).copied();
        eased.filter(|shortfall| bound_is_eased(state, *shortfall))
    }

    /// Whether a shortfall is still eased; if not, all eased shortfalls are checked again.
    pub(crate) fn is_eased(&mut self, state: &mut ClusterState, shortfall: Shortfall) -> bool {
        if self.freed.may_be_eased(state, shortfall) {
            return true;
        }
        let mut eased = core::mem::take(&mut self.freed.eased);
        eased.retain(|shortfall| self.freed.may_be_eased(state, *shortfall));
        self.freed.eased = eased;
        self.line_ups.changed();
        false
    }

    /// Forgets what was freed, once all gangs that it may help have been tried. Returns the queues
    /// that may have another head.
    pub(crate) fn forget_freed(&mut self) -> BTreeSet<QueueId> {
        let freed = core::mem::take(&mut self.freed);
        self.line_ups.changed();
        freed.in_vain.into_values().flatten().collect()
    }
}

impl Freed {
    fn may_be_eased(&self, state: &mut ClusterState, shortfall: Shortfall) -> bool {
        match shortfall {
            Shortfall::Room { class, scope, need } => {
                fits(state, class, scope, &self.nodes, need) >= need
            }
            Shortfall::Bound { .. } => bound_is_eased(state, shortfall),
        }
    }
}

fn bound_is_eased(state: &ClusterState, shortfall: Shortfall) -> bool {
    match shortfall {
        Shortfall::Bound {
            queue,
            key,
            bound,
            asked,
        } => state.queues.bound_allows(queue, key, bound, asked),
        Shortfall::Room { .. } => false,
    }
}

/// Whether only more room for one of its classes can help a refused gang: it is proved that the
/// gang does not fit. A place that was not found within the bound may be found by another search,
/// and limits on GPU models may leave room elsewhere.
fn needs_more_room(state: &ClusterState, waiting: &Waiting) -> bool {
    let proved = waiting.wait.reason() == Some(Reason::DoesNotFit);
    let limited = |queue| state.queues.has_model_limits(queue);
    proved
        && waiting
            .place
            .as_ref()
            .is_some_and(|(queue, _)| !limited(*queue))
}

/// Whether a class may use any of the nodes, as far as the static filters say.
fn may_use(state: &mut ClusterState, class: ClassId, nodes: &BTreeSet<NodeId>) -> bool {
    if nodes.is_empty() || state.classes.get(class).is_none() {
        return false;
    }
    state.refresh(class);
    let table = state.table_as_of(class);
    table.is_some_and(|table| nodes.iter().any(|node| table.is_eligible(*node)))
}

/// How many pods of a class fit in a scope to which one of the nodes adds room; 0: no node does.
/// Counting stops at `enough`.
fn fits(
    state: &mut ClusterState,
    class: ClassId,
    scope: Scope,
    nodes: &BTreeSet<NodeId>,
    enough: u64,
) -> u64 {
    if nodes.is_empty() {
        return 0;
    }
    if state.classes.get(class).is_none() {
        // The gangs that lack room for the class have changed, and are about to be assessed.
        return 0;
    }
    state.refresh(class);
    let Some(mut table) = state.classes[class].table.take() else {
        return 0;
    };
    let mut most = 0;
    for node in nodes {
        if table.total == 0 || most >= enough {
            break;
        }
        if table.count(*node) == 0 {
            continue;
        }
        let fits = match scope {
            Scope::Cluster => table.total,
            Scope::OneNode => u64::from(table.count(*node)),
            Scope::Node(only) => u64::from(table.count(only)),
            Scope::Level(id, level) | Scope::DomainOf(id, level, _) => {
                let anchor = match scope {
                    Scope::DomainOf(_, _, anchor) => anchor,
                    _ => *node,
                };
                state.topologies.get(id).map_or(0, |topology| {
                    let domain = topology.path(anchor).get(level);
                    domain.map_or(0, |domain| table.sums(id, topology)[domain.index()])
                })
            }
        };
        most = most.max(fits);
        if matches!(scope, Scope::Cluster | Scope::Node(_) | Scope::DomainOf(..)) {
            // In these scopes the count does not depend on the node.
            break;
        }
    }
    state.classes[class].table = Some(table);
    most
}
