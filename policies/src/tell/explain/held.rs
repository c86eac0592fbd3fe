//! The holders of a resource on some nodes, and those for whom room is kept there.

use super::{Holder, KeptRoom};
use crate::facts::{Amount, UnixMs};
use crate::ids::{ClassId, GangId, NodeId, PodId, ResourceId};
use crate::resources::amount_of;
use crate::state::ClusterState;
use crate::state::gang::Gang;
use crate::state::holds::Holder as Keeper;
use crate::tell::words::amount_in_words;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};
use core::cmp::Reverse;

/// The amount of a resource that one gang holds on some nodes.
#[derive(Debug)]
pub(crate) struct Held {
    /// `None`: pods of other schedulers.
    pub(crate) gang: Option<GangId>,
    pub(crate) resource: ResourceId,
    pub(crate) amount: Amount,
    pub(crate) on: BTreeSet<NodeId>,
    /// The pods that hold the amount.
    pub(crate) pods: Vec<PodId>,
    /// When the gang ends, if its runtime was given and has not passed.
    pub(crate) ends_ms: Option<UnixMs>,
}

/// The holders of a resource on these nodes, without the gang `own`: those that end first come
/// first, then those that hold most.
pub(crate) fn held(
    state: &ClusterState,
    own: GangId,
    resource: ResourceId,
    nodes: &[NodeId],
    now_ms: UnixMs,
) -> Vec<Held> {
    let mut held: BTreeMap<Option<GangId>, Held> = BTreeMap::new();
    for node in nodes {
        for id in &state.nodes[*node].pods {
            let pod = &state.pods[*id];
            let amount = amount_of(&state.classes[pod.class].requests, resource);
            let gang = pod.own.as_ref().and_then(|own| own.gang);
            if amount == 0 || gang == Some(own) {
                continue;
            }
            let known = held.entry(gang).or_insert_with(|| Held {
                gang,
                resource,
                amount: 0,
                on: BTreeSet::new(),
                pods: Vec::new(),
                ends_ms: gang.and_then(|gang| ends_ms(state, &state.gangs[gang], now_ms)),
            });
            known.amount = known.amount.saturating_add(amount);
            known.on.insert(*node);
            known.pods.push(*id);
        }
    }
    let mut held: Vec<Held> = held.into_values().collect();
    held.sort_by_key(|held| {
        // A PodGroup of ours and a native one may have one name.
        let name = held.gang.map(|gang| &state.gangs[gang]);
        let name = name.map(|gang| (&*gang.name, &gang.key));
        let ends = (held.ends_ms.is_none(), held.ends_ms);
        (ends, Reverse(held.amount), name)
    });
    held
}

/// The room on these nodes that is kept for others than the gang `own`.
pub(crate) fn kept(
    state: &ClusterState,
    own: GangId,
    resource: ResourceId,
    nodes: &[NodeId],
) -> Vec<KeptRoom> {
    let nodes: BTreeSet<NodeId> = nodes.iter().copied().collect();
    let asked = |class: ClassId| amount_of(&state.classes[class].requests, resource);
    let holds = state.holds.iter();
    let of_others = holds.filter(|hold| hold.holder != Keeper::Gang(own));
    let kept = of_others.filter_map(|hold| {
        let places = hold.places.iter();
        let places = places.filter(|(class, node)| nodes.contains(node) && asked(*class) > 0);
        let amounts = places.clone().map(|(class, _)| asked(*class));
        let amount = amounts.fold(0, Amount::saturating_add);
        let on: BTreeSet<NodeId> = places.map(|(_, node)| *node).collect();
        (!on.is_empty()).then(|| KeptRoom {
            beneficiary: beneficiary(state, hold.holder),
            amount: amount_in_words(state.resource_names.name(resource), amount),
            nodes: u32::try_from(on.len()).unwrap_or(u32::MAX),
            until_ms: match hold.holder {
                Keeper::Owner(owner) => state.holds.ends_ms(owner),
                Keeper::Gang(_) | Keeper::Foreign(..) => None,
            },
        })
    });
    let mut kept: Vec<KeptRoom> = kept.collect();
    // Gangs have their numbers by when they came, and equal states are told alike.
    kept.sort_by(|one, other| {
        let key = |kept: &KeptRoom| (kept.nodes, kept.until_ms);
        let by_words = one.beneficiary.cmp(&other.beneficiary);
        let by_words = by_words.then_with(|| one.amount.cmp(&other.amount));
        by_words.then_with(|| key(one).cmp(&key(other)))
    });
    kept
}

/// Those who are to have room that is kept, in words.
fn beneficiary(state: &ClusterState, keeper: Keeper) -> String {
    match keeper {
        Keeper::Gang(gang) => {
            let name = state.name_of(&state.gangs[gang]);
            format!("the gang {name}, for which others leave")
        }
        Keeper::Owner(owner) => match state.jobs.get(&owner) {
            Some(job) => format!(
                "new pods of the Job {}/{}, whose pods were moved",
                job.namespace, job.name
            ),
            None => "new pods of a controller whose pods were moved".into(),
        },
        Keeper::Foreign(..) => "a pod of another scheduler that is nominated there".into(),
    }
}

impl Held {
    /// The holder in words. `asked`: how much of the resource one waiting member asks for.
    pub(crate) fn told(&self, state: &ClusterState, asked: Amount) -> Holder {
        let gang = self.gang.map(|gang| state.name_of(&state.gangs[gang]));
        Holder {
            gang: gang.map(|name| String::from(&*name)),
            holds: amount_in_words(state.resource_names.name(self.resource), self.amount),
            nodes: u32::try_from(self.on.len()).unwrap_or(u32::MAX),
            makes_room_for: self.makes_room_for(state, asked),
            ends_ms: self.ends_ms,
        }
    }

    /// How many more members would fit on the nodes of these pods if the pods ended, by the
    /// resource alone. Where more is used than a node has, an end frees less.
    fn makes_room_for(&self, state: &ClusterState, asked: Amount) -> u64 {
        let mut held: BTreeMap<NodeId, u128> = BTreeMap::new();
        for pod in &self.pods {
            let Some(node) = state.node_of(*pod) else {
                continue;
            };
            let class = &state.classes[state.pods[*pod].class];
            *held.entry(node).or_insert(0) += u128::from(amount_of(&class.requests, self.resource));
        }
        let members = |free: Amount| free.checked_div(asked).unwrap_or(0);
        let room = held.into_iter().map(|(node, held)| {
            let node = &state.nodes[node];
            let without = members(node.free_without(self.resource, held));
            without.saturating_sub(members(node.free(self.resource)))
        });
        room.fold(0, u64::saturating_add)
    }
}

/// When a gang ends, if its runtime was given and has not passed.
fn ends_ms(state: &ClusterState, gang: &Gang, now_ms: UnixMs) -> Option<UnixMs> {
    let members = gang.members.iter().map(|pod| &state.pods[*pod]);
    let bound_ms = members.filter_map(|pod| pod.own.as_ref()?.bound_ms).max()?;
    let ends_ms = bound_ms.saturating_add(gang.spec.expected_runtime_ms?);
    Some(ends_ms).filter(|ends_ms| *ends_ms > now_ms)
}
