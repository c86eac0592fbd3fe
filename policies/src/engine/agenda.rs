//! Who is to be tried, and who waits for what.
//!
//! A refused gang is parked under what its verdict names and looked at again only when an event
//! touches that. Nobody polls.

use crate::ids::{ClassId, GangId, NodeId};
use crate::queues::QueueId;
use crate::state::ClusterState;
use crate::state::gang::{CandidateKey, CandidateKind, Scope, Wake};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// Candidates by queue, and parked gangs by what wakes them.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    candidates: BTreeMap<QueueId, BTreeSet<(CandidateKey, GangId)>>,
    /// Those of which a part is bound already: they come before every queue's turn.
    unfinished: BTreeSet<(CandidateKey, QueueId, GangId)>,
    /// The refused gangs that keep those behind them in their queue waiting.
    blocking: BTreeMap<QueueId, BTreeSet<(CandidateKey, GangId)>>,
    /// By class and scope, those that need least first.
    fits: BTreeMap<ClassId, BTreeMap<Scope, BTreeSet<(u64, GangId)>>>,
    any_room: BTreeMap<GangId, Vec<ClassId>>,
    queues: BTreeMap<QueueId, BTreeSet<GangId>>,
}

impl Agenda {
    pub(crate) fn add(&mut self, queue: QueueId, key: CandidateKey, gang: GangId) {
        if key.kind == CandidateKind::Unfinished {
            self.unfinished.insert((key, queue, gang));
            return;
        }
        self.candidates
            .entry(queue)
            .or_default()
            .insert((key, gang));
    }

    pub(crate) fn remove(&mut self, queue: QueueId, key: CandidateKey, gang: GangId) {
        if key.kind == CandidateKind::Unfinished {
            self.unfinished.remove(&(key, queue, gang));
            return;
        }
        if let Some(set) = self.candidates.get_mut(&queue) {
            set.remove(&(key, gang));
            if set.is_empty() {
                self.candidates.remove(&queue);
            }
        }
    }

    /// The unfinished gang that is tried next, and its queue.
    pub(crate) fn first_unfinished(&self) -> Option<(QueueId, GangId)> {
        let (_, queue, gang) = self.unfinished.first()?;
        Some((*queue, *gang))
    }

    /// The gang of a queue that is tried next.
    pub(crate) fn head(&self, queue: QueueId) -> Option<GangId> {
        let (key, gang) = self.candidates.get(&queue)?.first()?;
        let blocker = self.blocking.get(&queue).and_then(BTreeSet::first);
        let blocked = blocker.is_some_and(|(blocker, _)| blocker < key);
        (!blocked).then_some(*gang)
    }

    /// Lets nobody of the queue be tried that comes after this gang.
    pub(crate) fn block(&mut self, queue: QueueId, key: CandidateKey, gang: GangId) {
        self.blocking.entry(queue).or_default().insert((key, gang));
    }

    pub(crate) fn unblock(&mut self, queue: QueueId, key: CandidateKey, gang: GangId) {
        if let Some(set) = self.blocking.get_mut(&queue) {
            set.remove(&(key, gang));
            if set.is_empty() {
                self.blocking.remove(&queue);
            }
        }
    }

    pub(crate) fn park(&mut self, gang: GangId, wake: &Wake) {
        match wake {
            Wake::Fits { class, scope, need } => {
                let scopes = self.fits.entry(*class).or_default();
                scopes.entry(*scope).or_default().insert((*need, gang));
            }
            Wake::AnyRoom(classes, queue) => {
                self.any_room.insert(gang, classes.clone());
                if let Some(queue) = queue {
                    self.queues.entry(*queue).or_default().insert(gang);
                }
            }
            Wake::Queue(queue) => {
                self.queues.entry(*queue).or_default().insert(gang);
            }
        }
    }

    pub(crate) fn unpark(&mut self, gang: GangId, wake: &Wake) {
        match wake {
            Wake::Fits { class, scope, need } => {
                let Some(scopes) = self.fits.get_mut(class) else {
                    return;
                };
                if let Some(set) = scopes.get_mut(scope) {
                    set.remove(&(*need, gang));
                    if set.is_empty() {
                        scopes.remove(scope);
                    }
                }
                if scopes.is_empty() {
                    self.fits.remove(class);
                }
            }
            Wake::AnyRoom(_, queue) => {
                self.any_room.remove(&gang);
                if let Some(queue) = queue {
                    self.leave_queue(gang, *queue);
                }
            }
            Wake::Queue(queue) => self.leave_queue(gang, *queue),
        }
    }

    fn leave_queue(&mut self, gang: GangId, queue: QueueId) {
        if let Some(set) = self.queues.get_mut(&queue) {
            set.remove(&gang);
            if set.is_empty() {
                self.queues.remove(&queue);
            }
        }
    }

    /// The gangs that what has been freed may help.
    pub(crate) fn woken(&self, state: &mut ClusterState) -> BTreeSet<GangId> {
        let mut woken = BTreeSet::new();
        let freed = core::mem::take(&mut state.freed);
        if !freed.is_empty() {
            for (class, scopes) in &self.fits {
                state.refresh(*class);
                for node in &freed {
                    wake_on_node(state, *class, scopes, *node, &mut woken);
                }
            }
            for (gang, classes) in &self.any_room {
                let helps = |node: &NodeId| {
                    classes.iter().any(|class| {
                        state.classes.get(*class).is_some_and(|_| {
                            !matches!(state.static_verdict(*class, *node), None | Some(Err(_)))
                        })
                    })
                };
                if freed.iter().any(helps) {
                    woken.insert(*gang);
                }
            }
        }
        for queue in core::mem::take(&mut state.released) {
            for queue in state.queues.path(queue) {
                woken.extend(self.queues.get(&queue).into_iter().flatten());
            }
        }
        woken
    }
}

/// Wakes the gangs of a class for which one node's room completes what they need.
fn wake_on_node(
    state: &mut ClusterState,
    class: ClassId,
    scopes: &BTreeMap<Scope, BTreeSet<(u64, GangId)>>,
    node: NodeId,
    woken: &mut BTreeSet<GangId>,
) {
    let Some(mut table) = state.classes[class].table.take() else {
        return;
    };
    if table.count(node) > 0 {
        for (scope, gangs) in scopes {
            let fits = match *scope {
                Scope::Cluster => table.total,
                Scope::OneNode => u64::from(table.count(node)),
                Scope::Node(only) => u64::from(table.count(only)),
                Scope::Level(id, level) | Scope::DomainOf(id, level, _) => {
                    let anchor = if let Scope::DomainOf(_, _, anchor) = scope {
                        *anchor
                    } else {
                        node
                    };
                    let Some(topology) = state.topologies.get(id) else {
                        continue;
                    };
                    let domain = topology.path(anchor).get(level).copied();
                    let sums = table.sums(id, topology);
                    domain.map_or(0, |domain| sums[crate::ids::Id::index(domain)])
                }
            };
            woken.extend(
                gangs
                    .iter()
                    .take_while(|(need, _)| *need <= fits)
                    .map(|(_, gang)| *gang),
            );
        }
    }
    state.classes[class].table = Some(table);
}
