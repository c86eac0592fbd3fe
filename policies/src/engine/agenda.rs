//! Who is to be tried, and who waits for what.
//!
//! A refused gang is parked under what its verdict names and looked at again only when an event
//! touches that. Nobody polls.

use crate::ids::{ClassId, GangId, NodeId};
use crate::queues::QueueId;
use crate::settings::Queueing;
use crate::state::ClusterState;
use crate::state::gang::{CandidateKey, CandidateKind, Scope, Shortage, Wake};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// Gangs in the order of a queue.
type Line = BTreeSet<(CandidateKey, GangId)>;

/// Parked gangs by how many pods they need, and by queue.
type Short = BTreeMap<(u64, QueueId), Line>;

/// Candidates by queue, and parked gangs by what wakes them.
#[derive(Debug)]
pub(crate) struct Agenda {
    candidates: BTreeMap<QueueId, Line>,
    /// Those of which a part is bound already: they come before every queue's turn.
    unfinished: BTreeSet<(CandidateKey, QueueId, GangId)>,
    /// The refused gangs that keep those behind them in their queue waiting.
    blocking: BTreeMap<QueueId, Line>,
    queueing: Queueing,
    /// By class and scope, those that need least first.
    fits: BTreeMap<ClassId, BTreeMap<Scope, Short>>,
    any_room: BTreeMap<GangId, Vec<ClassId>>,
    queues: BTreeMap<QueueId, BTreeSet<GangId>>,
}

impl Agenda {
    pub(crate) fn new(queueing: Queueing) -> Self {
        Self {
            candidates: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            blocking: BTreeMap::new(),
            queueing,
            fits: BTreeMap::new(),
            any_room: BTreeMap::new(),
            queues: BTreeMap::new(),
        }
    }

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
        take_out(&mut self.candidates, &queue, &(key, gang));
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

    /// Keeps a refused gang until what its refusal names changes.
    pub(crate) fn park(&mut self, gang: GangId, wake: &Wake, queue: QueueId, key: &CandidateKey) {
        match wake {
            Wake::Fits { class, scope, need } => {
                let scopes = self.fits.entry(*class).or_default();
                let short = scopes.entry(*scope).or_default();
                let line = short.entry((*need, queue)).or_default();
                line.insert((key.clone(), gang));
            }
            Wake::AnyRoom(classes, full) => {
                self.any_room.insert(gang, classes.clone());
                if let Some(full) = full {
                    self.queues.entry(*full).or_default().insert(gang);
                }
            }
            Wake::Queue(full) => {
                self.queues.entry(*full).or_default().insert(gang);
            }
        }
        if self.queueing == Queueing::Strict {
            let blocking = self.blocking.entry(queue).or_default();
            blocking.insert((key.clone(), gang));
        }
    }

    pub(crate) fn unpark(&mut self, gang: GangId, wake: &Wake, queue: QueueId, key: &CandidateKey) {
        // What is parked is found by the same key again.
        let entry = (key.clone(), gang);
        take_out(&mut self.blocking, &queue, &entry);
        match wake {
            Wake::Fits { class, scope, need } => {
                let Some(scopes) = self.fits.get_mut(class) else {
                    return;
                };
                if let Some(short) = scopes.get_mut(scope) {
                    take_out(short, &(*need, queue), &entry);
                    if short.is_empty() {
                        scopes.remove(scope);
                    }
                }
                if scopes.is_empty() {
                    self.fits.remove(class);
                }
            }
            Wake::AnyRoom(_, full) => {
                self.any_room.remove(&gang);
                if let Some(full) = full {
                    take_out(&mut self.queues, full, &gang);
                }
            }
            Wake::Queue(full) => take_out(&mut self.queues, full, &gang),
        }
    }

    /// The first in line of those that lack the same.
    pub(crate) fn first_of(&self, shortage: &Shortage) -> Option<GangId> {
        let short = self.fits.get(&shortage.class)?.get(&shortage.scope)?;
        let line = short.get(&(shortage.need, shortage.queue))?;
        line.first().map(|(_, gang)| *gang)
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

/// Takes one out of a set, and the set with the last one.
fn take_out<K: Ord, T: Ord>(sets: &mut BTreeMap<K, BTreeSet<T>>, key: &K, one: &T) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(one);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}

/// Wakes the gangs of a class for which one node's room completes what they need.
fn wake_on_node(
    state: &mut ClusterState,
    class: ClassId,
    scopes: &BTreeMap<Scope, Short>,
    node: NodeId,
    woken: &mut BTreeSet<GangId>,
) {
    let Some(mut table) = state.classes[class].table.take() else {
        return;
    };
    if table.count(node) > 0 {
        for (scope, short) in scopes {
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
            let helped = short.range(..=(fits, QueueId::LAST));
            woken.extend(helped.filter_map(|(_, line)| Some(line.first()?.1)));
        }
    }
    state.classes[class].table = Some(table);
}
