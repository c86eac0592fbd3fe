//! The rules that hold at the end of a plan: which queues may give, in which key, and which queues
//! may claim.
//!
//! No two queues take room from each other in turn. A victim is taken in one entry, of its GPU
//! model or the plain one, in which its queues are over their bounds. In that very entry the
//! claimant's queues must be within their bounds, with the claimant, although the claimant may ask
//! for no model at all. So none of the claimant's queues gives back in that entry what it has won.

use super::Why;
use super::units::{May, Unit, add_on};
use crate::facts::Amount;
use crate::ids::{ClassId, NodeId, ResourceId};
use crate::queues::{ClaimKind, Demand, GovernedId, QueueId, add_demand};
use crate::resources::{ResourceNames, Resources};
use crate::state::ClusterState;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What leaves together in the end: a gang with its surplus, or surplus alone.
#[derive(Debug)]
pub(super) struct Departure {
    queue: QueueId,
    holds: Demand,
    frees: Vec<(NodeId, Resources)>,
    may: May,
}

impl Departure {
    /// The departures of which these are the units, in rising order.
    pub(super) fn of(units: &[Unit], gone: &[usize]) -> Vec<Self> {
        let leads = |unit: &&usize| units[**unit].leader_in(gone).is_none();
        let first = gone.iter().filter(leads);
        let departures = first.map(|unit| {
            let one = &units[*unit];
            let mut departure = Self {
                queue: one.queue,
                holds: one.holds.clone(),
                frees: one.frees.clone(),
                may: one.may,
            };
            let followers = one.followers.iter();
            for follower in followers.filter(|unit| gone.binary_search(unit).is_ok()) {
                add_demand(&mut departure.holds, &units[*follower].holds);
                for (node, frees) in &units[*follower].frees {
                    add_on(&mut departure.frees, *node, frees);
                }
            }
            departure
        });
        departures.collect()
    }
}

/// Whether the pods of a unit have room where they stood, and in their queue.
pub(super) fn fits_back(state: &ClusterState, unit: &Unit) -> bool {
    short_on_nodes(state, &unit.frees).is_empty()
        && state.queues.room(unit.queue, &unit.holds).is_ok()
        && has_ports_and_cards(state, unit)
}

/// Whether the host ports, the disks, the cards and the NUMA nodes of the pods of a unit are free
/// where they stood. On a node where they need cards or NUMA nodes in several ways, that is not
/// told: they count as taken.
fn has_ports_and_cards(state: &ClusterState, unit: &Unit) -> bool {
    let mut with_cards: BTreeMap<NodeId, (ClassId, u32)> = BTreeMap::new();
    for (pod, node) in &unit.pods {
        let id = state.pods[*pod].class;
        let class = &state.classes[id];
        if state.nodes[*node].in_way(class).is_some() {
            return false;
        }
        let is_aligned = state.nodes[*node].cells.is_some() && class.is_aligned();
        if class.cards.is_some() || is_aligned {
            let (first, count) = with_cards.entry(*node).or_insert((id, 0));
            if *first != id {
                return false;
            }
            *count += 1;
        }
    }
    let mut alike = with_cards.iter();
    alike.all(|(node, (class, count))| {
        state.nodes[*node].multiplicity(&state.classes[*class]) >= *count
    })
}

/// The resources of which nodes have too little left to take back what they gave.
fn short_on_nodes(
    state: &ClusterState,
    frees: &[(NodeId, Resources)],
) -> Vec<(NodeId, ResourceId)> {
    let mut short = Vec::new();
    for (node, frees) in frees {
        let amounts = frees.iter();
        let lacking =
            amounts.filter(|(resource, amount)| state.nodes[*node].free(*resource) < *amount);
        short.extend(lacking.map(|(resource, _)| (*node, *resource)));
    }
    short
}

/// Whether each unit that has gone was taken from queues that are still over their bounds before
/// the last unit left, in something that is short; and whether the claimant's queues are within
/// their bounds, in what the claimant asks for and in what is taken for it (R1 to R4).
///
/// # Errors
/// The rule that is broken, and whether it is broken whatever nodes are chosen.
pub(super) fn claims_are_met(
    state: &ClusterState,
    leaf: QueueId,
    asked: &Demand,
    (gone, back): (&[Departure], &[(QueueId, May)]),
    kind: ClaimKind,
) -> Result<(), (Why, bool)> {
    let reclaimed: Vec<&Departure> = gone.iter().filter(|unit| unit.queue != leaf).collect();
    let back = back
        .iter()
        .filter(|(queue, may)| *queue != leaf || !may.be_preempted);
    let mut back_from = Vec::new();
    for (queue, may) in back {
        if !may.be_reclaimed {
            return Err((Why::NoOtherPlace, true));
        }
        back_from.push(*queue);
    }
    let from = reclaimed.iter().map(|unit| unit.queue).chain(back_from);
    let levels = from.map(|queue| state.queues.below_common(leaf, queue));
    for queue in levels.max_by_key(Vec::len).unwrap_or_default() {
        if state.queues.beyond(queue, asked, kind, |_| 0).is_some() {
            return Err((Why::Claims(queue), true));
        }
    }
    let victims = reclaimed.iter().map(|unit| (unit.queue, &unit.holds));
    let largest = state.queues.largest_of(victims);
    for unit in &reclaimed {
        is_claimed(state, leaf, unit, &largest, kind)?;
    }
    let own = gone.iter().filter(|unit| unit.queue == leaf);
    match own.into_iter().all(|unit| unit.may.be_preempted) {
        true => Ok(()),
        false => Err((Why::NoOtherPlace, true)),
    }
}

/// Whether a victim that has gone was taken in an entry that is short, in which its queues are over
/// their bounds before the last victim left, and the claimant's queues are within theirs.
/// `largest`: what the largest victims of queues held.
fn is_claimed(
    state: &ClusterState,
    leaf: QueueId,
    unit: &Departure,
    largest: &BTreeMap<(QueueId, GovernedId), Amount>,
    kind: ClaimKind,
) -> Result<(), (Why, bool)> {
    if !unit.may.be_reclaimed {
        return Err((Why::NoOtherPlace, true));
    }
    let queues = &state.queues;
    let givers = queues.below_common(unit.queue, leaf);
    let claimants = queues.below_common(leaf, unit.queue);
    let gives = |(plain, model): &Entry| {
        givers.iter().all(|queue| {
            let key = queues.deciding(*queue, *plain, *model);
            let last = largest.get(&(*queue, key)).copied().unwrap_or(0);
            queues.stands_over(*queue, key, last, kind)
        })
    };
    let beyond = |(plain, model): Entry| {
        let mut claimants = claimants.iter().copied();
        claimants.find(|queue| {
            let key = queues.deciding(*queue, plain, model);
            // tests plant bugs here: entry-of-a-claim
            queues.stands_over(*queue, key, 0, kind)
        })
    };
    let given = short_entries(state, unit).into_iter().filter(gives);
    match given.map(beyond).min() {
        Some(None) => Ok(()),
        // On nodes of other models the claimant's queue may be within its bounds.
        Some(Some(queue)) => Err((Why::Claims(queue), false)),
        // What is short depends on where the claimant is placed.
        None => {
            let is_proved = !entries(state, &unit.holds).iter().any(gives);
            Err((Why::Gives(unit.queue), is_proved))
        }
    }
}

/// What decides about a victim: the plain key of a resource, and the key of the model of its GPUs.
type Entry = (GovernedId, Option<GovernedId>);

/// Everything that could be short if a victim that holds this came back.
pub(super) fn entries(state: &ClusterState, holds: &Demand) -> Vec<Entry> {
    let held = holds.iter().map(|(key, _)| {
        let plain = state.queues.plain_of(*key);
        (plain, Some(*key).filter(|key| *key != plain))
    });
    held.collect()
}

/// What would be short if a unit came back.
fn short_entries(state: &ClusterState, unit: &Departure) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (node, resource) in short_on_nodes(state, &unit.frees) {
        let name = state.resource_names.name(resource);
        let Some(plain) = state.queues.governed_id(name, None) else {
            continue;
        };
        let known = state.nodes[node].known.as_ref();
        let model = known.and_then(|known| known.model);
        entries.push((plain, model.filter(|_| resource == ResourceNames::gpu())));
    }
    if let Err(excess) = state.queues.room(unit.queue, &unit.holds) {
        let plain = state.queues.plain_of(excess.key);
        let models = unit.holds.iter().map(|(key, _)| *key);
        let is_meant = |key: &GovernedId| *key == excess.key || excess.key == plain;
        let models = models.filter(|key| *key != plain && state.queues.plain_of(*key) == plain);
        let before = entries.len();
        entries.extend(models.filter(is_meant).map(|model| (plain, Some(model))));
        if entries.len() == before {
            entries.push((plain, None));
        }
    }
    entries
}
