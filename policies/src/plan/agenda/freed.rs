//! Room and quantities that have been freed, and the shortfalls that may be over because of it.
//!
//! Gangs whose members of several shapes do not fit together stand in no line. Each is tried when
//! what is freed holds a member of any of its shapes; where it was not proved that they do not fit,
//! also when a node is freed that any of them may use. Gangs that limits on GPU models concern are
//! tried when something is released under the highest of these limits, too, for then there may be
//! room where nothing was freed.

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
/// shortfalls that may be over.
#[derive(Debug, Default)]
pub(super) struct Freed {
    nodes: BTreeSet<NodeId>,
    /// Shortfalls that may be over. Each of them was over once; pods that have taken room since are
    /// noticed when the shortfall is looked at again.
    over: BTreeSet<Shortfall>,
    /// The lines in which somebody was tried, and still lacks the same: counting overlooks
    /// something, as limits on GPU models.
    in_vain: BTreeMap<Shortfall, BTreeSet<QueueId>>,
}

impl Freed {
    /// The shortfalls that may be over.
    pub(super) fn over(&self) -> &BTreeSet<Shortfall> {
        &self.over
    }

    /// Whether a line was tried already.
    pub(super) fn in_vain(&self, shortfall: Shortfall, queue: QueueId) -> bool {
        self.in_vain
            .get(&shortfall)
            .is_some_and(|queues| queues.contains(&queue))
    }

    /// Notes that a gang of this queue was tried, and lacks this as before.
    pub(super) fn refused(&mut self, shortfall: Shortfall, queue: QueueId) {
        if self.over.contains(&shortfall) {
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
        let mut stirred = Stirred::default();
        if nodes.is_empty() && released.is_empty() {
            return stirred;
        }
        let mut over = self.rooms_over(state, &nodes);
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
            over.extend(self.bounds_over(state, queue));
            stirred
                .gangs
                .extend(self.queues.get(&queue).into_iter().flatten());
        }
        for shortfall in &over {
            let tried = self.freed.in_vain.remove(shortfall);
            stirred.queues.extend(tried.into_iter().flatten());
        }
        self.freed.nodes.extend(nodes);
        self.freed.over.extend(over);
        self.line_ups.changed();
        for (gang, shortfall) in &self.unfinished_lacking {
            if self.freed.may_be_over(state, *shortfall) {
                stirred.gangs.insert(*gang);
            }
        }
        stirred
    }

    /// The shortfalls of room that these nodes may have ended.
    fn rooms_over(&self, state: &mut ClusterState, nodes: &BTreeSet<NodeId>) -> Vec<Shortfall> {
        let (mut over, mut last) = (Vec::new(), None);
        for shortfall in self.lacking.keys() {
            let Shortfall::Room { class, scope, need } = *shortfall else {
                // Rooms come first.
                break;
            };
            let fits = match last {
                Some((same, fits)) if same == (class, scope) => fits,
                _ => fits(state, class, scope, nodes, u64::MAX),
            };
            last = Some(((class, scope), fits));
            if need <= fits {
                over.push(*shortfall);
            }
        }
        over
    }

    /// The shortfalls under the bounds of a queue that are over.
    fn bounds_over(&self, state: &ClusterState, queue: QueueId) -> impl Iterator<Item = Shortfall> {
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
        let over = lacking.take_while(of_queue).copied();
        over.filter(|shortfall| bound_is_over(state, *shortfall))
    }

    /// Whether so much is still there; if not, everything that may be over is looked at again.
    pub(crate) fn is_over(&mut self, state: &mut ClusterState, shortfall: Shortfall) -> bool {
        if self.freed.may_be_over(state, shortfall) {
            return true;
        }
        let mut over = core::mem::take(&mut self.freed.over);
        over.retain(|shortfall| self.freed.may_be_over(state, *shortfall));
        self.freed.over = over;
        self.line_ups.changed();
        false
    }

    /// Everybody whom it may help has been tried. The queues that may have another head.
    pub(crate) fn forget_freed(&mut self) -> BTreeSet<QueueId> {
        let freed = core::mem::take(&mut self.freed);
        self.line_ups.changed();
        freed.in_vain.into_values().flatten().collect()
    }
}

impl Freed {
    fn may_be_over(&self, state: &mut ClusterState, shortfall: Shortfall) -> bool {
        match shortfall {
            Shortfall::Room { class, scope, need } => {
                fits(state, class, scope, &self.nodes, need) >= need
            }
            Shortfall::Bound { .. } => bound_is_over(state, shortfall),
        }
    }
}

fn bound_is_over(state: &ClusterState, shortfall: Shortfall) -> bool {
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

/// Whether only more room for one of its classes can help a refused gang: it is proved that it does
/// not fit. What was not found within its bound may be found when it is searched again, and limits
/// on GPU models may leave room elsewhere.
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

/// How many pods of a class fit in a scope to which one of the nodes adds room; 0: none does.
/// No more is counted than is enough.
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
        // Whoever lacks room for it has changed, and is about to be looked at.
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
