//! What an eviction plan becomes when it is carried out: the hold, the nominations, the evictions
//! with what owners are told of them, and the queues that give. Nothing here changes anything.

use crate::bind::givers::Givers;
use crate::bind::takings::Eviction;
use crate::command::EvictionCause;
use crate::facts::{Uid, UnixMs};
use crate::ids::{GangId, NodeId, PodId};
use crate::plan::victims::{Action, Plan};
use crate::queues::{ClaimKind, QueueId};
use crate::state::ClusterState;
use crate::state::holds::{Hold, Holder};
use crate::tell::taken;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

/// The plan that was chosen for a gang of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) plan: &'a Plan,
    pub(super) queue: QueueId,
    pub(super) gang: GangId,
}

impl Chosen<'_> {
    /// The hold for the places of the gang's members.
    pub(super) fn hold(self, state: &ClusterState) -> Hold {
        let places = self.plan.places.iter();
        let places = places.map(|(pod, node)| (state.pods[*pod].class, *node));
        let preemptible = state.gangs[self.gang].spec.preemptible;
        let leavers = self.plan.evict.iter().map(|pod| state.pods[*pod].uid);
        Hold {
            leavers: leavers.collect(),
            ..Hold::new(
                Holder::Gang(self.gang),
                Some((self.queue, preemptible)),
                places.collect(),
            )
        }
    }

    /// The holds for the places of gangs that only move, by the controllers that make their pods
    /// anew. Of a gang that is reclaimed or preempted no place is held: it waits for its turn.
    pub(super) fn holds_for_movers(self, state: &ClusterState) -> BTreeMap<Uid, Hold> {
        let mut by_owner: BTreeMap<Uid, Hold> = BTreeMap::new();
        for (pod, node) in &self.plan.moved {
            if self.cause(state, *pod) != EvictionCause::Consolidate {
                continue;
            }
            let record = &state.pods[*pod];
            let (Some(owner), Some(account)) = (record.owner(), record.account()) else {
                continue;
            };
            let hold = by_owner.entry(owner.uid).or_insert_with(|| {
                let to = Some((account.queue, account.preemptible));
                Hold::new(Holder::Owner(owner.uid), to, Vec::new())
            });
            hold.places.push((record.class, *node));
        }
        by_owner
    }

    /// The nodes on which the gang's members would be.
    pub(super) fn nodes(self) -> BTreeSet<NodeId> {
        self.plan.places.iter().map(|(_, node)| *node).collect()
    }

    /// The gang's members, each with the name of the node to which it is to be nominated.
    pub(super) fn nominations(self, state: &ClusterState) -> VecDeque<(Uid, Box<str>)> {
        let nominations = self.plan.places.iter().map(|(pod, node)| {
            let node = state.nodes[*node].name.clone();
            (state.pods[*pod].uid, node)
        });
        nominations.collect()
    }

    /// The pods that the gang waits for, by name: pods that the plan evicts, and others that are
    /// leaving its nodes.
    pub(super) fn awaited(self, state: &ClusterState) -> Vec<Uid> {
        let mut awaited: Vec<PodId> = self.plan.evict.clone();
        let nodes = self.nodes();
        let on_nodes_now = nodes.iter().flat_map(|node| &state.nodes[*node].pods);
        awaited.extend(on_nodes_now.filter(|pod| state.pods[**pod].leaving));
        let name = |pod: &PodId| (&state.pods[*pod].namespace, &state.pods[*pod].name);
        awaited.sort_by(|one, other| name(one).cmp(&name(other)));
        awaited.into_iter().map(|pod| state.pods[pod].uid).collect()
    }

    /// By which right a pod is evicted.
    fn cause(self, state: &ClusterState, id: PodId) -> EvictionCause {
        let pod = &state.pods[id];
        let has_a_place = || self.plan.moved.iter().any(|(moved, _)| *moved == id);
        let own_queue = pod
            .account()
            .is_some_and(|account| account.queue == self.queue);
        let priority = |gang: GangId| state.gangs[gang].spec.priority;
        let is_lower = || {
            let of = pod.gang();
            of.is_some_and(|of| priority(of) < priority(self.gang))
        };
        match self.plan.action {
            Action::Consolidate | Action::Free => EvictionCause::Consolidate,
            Action::Reclaim(_) => EvictionCause::Reclaim,
            Action::Preempt => EvictionCause::Preempt,
            Action::Mixed(_) if !own_queue && has_a_place() => EvictionCause::Consolidate,
            Action::Mixed(_) if !own_queue => EvictionCause::Reclaim,
            Action::Mixed(_) if is_lower() => EvictionCause::Preempt,
            Action::Mixed(_) => EvictionCause::Consolidate,
        }
    }

    /// The queues from which the plan reclaims, once its pods count as leaving.
    pub(super) fn givers(self, state: &ClusterState) -> Option<Givers> {
        let is_reclaimed = |pod: &PodId| self.cause(state, *pod) == EvictionCause::Reclaim;
        let reclaimed = self.plan.evict.iter().copied().filter(is_reclaimed);
        let kind = self.plan.action.claims()?;
        Some(Givers::of(state, self.queue, reclaimed, kind))
    }

    /// The evictions, first of pods under disruption budgets: if one of these is refused, fewer
    /// pods have left for nothing.
    pub(super) fn evictions(self, state: &ClusterState, now_ms: UnixMs) -> VecDeque<Eviction> {
        let mut of_gangs: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
        for id in &self.plan.evict {
            if let Some(of) = state.pods[*id].gang() {
                of_gangs.entry(of).or_default().push(*id);
            }
        }
        let mut purposes: BTreeMap<_, String> = BTreeMap::new();
        let mut evictions: Vec<(bool, Eviction)> = Vec::with_capacity(self.plan.evict.len());
        for id in &self.plan.evict {
            let pod = &state.pods[*id];
            let cause = self.cause(state, *id);
            let kind = self.plan.action.claims().unwrap_or(ClaimKind::Quota);
            let from = pod.account().map(|account| account.queue);
            let purpose = purposes.entry((from, cause));
            let purpose =
                purpose.or_insert_with(|| taken::purpose(state, from, self.gang, (cause, kind)));
            // The first eviction of a pod of a gang tells the gang of all its pods that are
            // evicted.
            let of_gang = pod.gang().and_then(|of| {
                let pods = of_gangs.remove(&of)?;
                state.gangs[of].object.as_ref()?;
                let object = state.object_of(&state.gangs[of])?;
                Some((object, taken::why_all(state, &pods, purpose, now_ms).into()))
            });
            let eviction = Eviction {
                uid: pod.uid,
                cause,
                message: taken::why(state, *id, purpose, now_ms).into(),
                of_gang,
            };
            evictions.push((state.budgets_of(*id).next().is_none(), eviction));
        }
        evictions.sort_by_key(|(is_free, _)| *is_free);
        evictions
            .into_iter()
            .map(|(_, eviction)| eviction)
            .collect()
    }
}

/// The members of a gang that wait and are nominated to a node that exists.
pub(super) fn nominated(state: &ClusterState, gang: GangId) -> Vec<(PodId, NodeId)> {
    let members = state.gangs[gang].members.iter();
    let nominated = members.filter_map(|pod| {
        let record = &state.pods[*pod];
        let node = record.own.as_ref()?.nominated.as_deref()?;
        let node = *state.node_ids.get(node)?;
        state.nodes[node].known.as_ref()?;
        record.could_be_placed().then_some((*pod, node))
    });
    nominated.collect()
}
