//! The occupants of some nodes, gangs that have a resource there that other gangs lack, and the
//! room of holds on these nodes.

use super::{KeptRoom, Occupant};
use crate::facts::{Amount, UnixMs};
use crate::gangs::counts::{began_ms, count};
use crate::ids::{ClassId, GangId, NodeId, PodId, ResourceId};
use crate::resources::amount_of;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::tell::words::amount_in_words;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};
use core::cmp::Reverse;

/// The amount of a resource that one gang takes on some nodes.
#[derive(Debug)]
pub(crate) struct Occupancy {
    /// `None`: pods of other schedulers.
    pub(crate) gang: Option<GangId>,
    pub(crate) resource: ResourceId,
    pub(crate) amount: Amount,
    pub(crate) on: BTreeSet<NodeId>,
    /// The pods that take the amount.
    pub(crate) pods: Vec<PodId>,
    /// When the gang ends, if its runtime was given and has not passed.
    pub(crate) ends_ms: Option<UnixMs>,
}

/// What each gang but `own` takes of a resource on these nodes: gangs that end first come first,
/// then gangs that take most.
pub(crate) fn occupancies(
    state: &ClusterState,
    own: GangId,
    resource: ResourceId,
    nodes: &[NodeId],
    now_ms: UnixMs,
) -> Vec<Occupancy> {
    let mut found: BTreeMap<Option<GangId>, Occupancy> = BTreeMap::new();
    for node in nodes {
        for id in &state.nodes[*node].pods {
            let pod = &state.pods[*id];
            let amount = amount_of(&state.classes[pod.class].requests, resource);
            let gang = pod.own.as_ref().and_then(|own| own.gang);
            if amount == 0 || gang == Some(own) {
                continue;
            }
            let known = found.entry(gang).or_insert_with(|| Occupancy {
                gang,
                resource,
                amount: 0,
                on: BTreeSet::new(),
                pods: Vec::new(),
                ends_ms: gang.and_then(|gang| ends_ms(state, gang, now_ms)),
            });
            known.amount = known.amount.saturating_add(amount);
            known.on.insert(*node);
            known.pods.push(*id);
        }
    }
    let mut found: Vec<Occupancy> = found.into_values().collect();
    found.sort_by_key(|one| {
        // A PodGroup of ours and a native one may have one name.
        let name = one.gang.map(|gang| &state.gangs[gang]);
        let name = name.map(|gang| (&*gang.name, &gang.key));
        let ends = (one.ends_ms.is_none(), one.ends_ms);
        (ends, Reverse(one.amount), name)
    });
    found
}

/// The room on these nodes that is held, but not for the gang `own`.
pub(crate) fn kept(
    state: &ClusterState,
    own: GangId,
    resource: ResourceId,
    nodes: &[NodeId],
) -> Vec<KeptRoom> {
    let nodes: BTreeSet<NodeId> = nodes.iter().copied().collect();
    let asked = |class: ClassId| amount_of(&state.classes[class].requests, resource);
    let holds = state.holds.iter();
    let of_others = holds.filter(|hold| hold.holder != Holder::Gang(own));
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
                Holder::Owner(owner) => state.holds.ends_ms(owner),
                Holder::Gang(_) | Holder::Foreign(..) => None,
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

/// For which gang or pods room is held, in words.
fn beneficiary(state: &ClusterState, holder: Holder) -> String {
    match holder {
        Holder::Gang(gang) => {
            let name = state.name_of(&state.gangs[gang]);
            format!("the gang {name}, for which others leave")
        }
        Holder::Owner(owner) => match state.jobs.get(&owner) {
            Some(job) => format!(
                "new pods of the Job {}/{}, whose pods were moved",
                job.namespace, job.name
            ),
            None => "new pods of a controller whose pods were moved".into(),
        },
        Holder::Foreign(..) => "a pod of another scheduler that is nominated there".into(),
    }
}

impl Occupancy {
    /// The occupant in words. `asked`: how much of the resource one waiting member asks for.
    pub(crate) fn told(&self, state: &ClusterState, asked: Amount) -> Occupant {
        let gang = self.gang.map(|gang| state.name_of(&state.gangs[gang]));
        Occupant {
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
        let mut taken: BTreeMap<NodeId, u128> = BTreeMap::new();
        for pod in &self.pods {
            let Some(node) = state.node_of(*pod) else {
                continue;
            };
            let class = &state.classes[state.pods[*pod].class];
            *taken.entry(node).or_insert(0) +=
                u128::from(amount_of(&class.requests, self.resource));
        }
        let members = |free: Amount| free.checked_div(asked).unwrap_or(0);
        let room = taken.into_iter().map(|(node, taken)| {
            let node = &state.nodes[node];
            let without = members(node.free_without(self.resource, taken));
            without.saturating_sub(members(node.free(self.resource)))
        });
        room.fold(0, u64::saturating_add)
    }
}

/// When a gang ends, if its runtime was given and has not passed.
fn ends_ms(state: &ClusterState, id: GangId, now_ms: UnixMs) -> Option<UnixMs> {
    let runtime_ms = state.gangs[id].spec.expected_runtime_ms?;
    let counts = count(state, id, now_ms);
    let ends_ms = began_ms(state, id, &counts, now_ms).saturating_add(runtime_ms);
    Some(ends_ms).filter(|ends_ms| *ends_ms > now_ms)
}
