//! The place of a gang in the line of its queue, and of its queue among the others.

use super::{Ahead, Rank, Standing};
use crate::engine::members_needed;
use crate::facts::UnixMs;
use crate::ids::{GangId, PodId};
use crate::queues::{Demand, QueueId};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::gang::{CandidateKey, CandidateKind};
use alloc::{collections::BTreeMap, vec::Vec};
use core::cmp::Reverse;

/// How many are named that stand before a gang.
const BEFORE_NAMED: usize = 3;

/// The place of a gang; `None`: it has none, because something keeps it out of the line.
///
/// Queues are compared as if everybody first in line were tried now, and the gang itself in its own
/// queue. Looks at every gang once.
pub(crate) fn standing(state: &ClusterState, id: GangId, now_ms: UnixMs) -> Option<Standing> {
    let (queue, key) = state.gangs[id].place.as_ref()?;
    let mut line: Vec<(&CandidateKey, GangId)> = Vec::new();
    let mut firsts: BTreeMap<QueueId, (&CandidateKey, GangId)> = BTreeMap::new();
    for (other, gang) in state.gangs.iter() {
        let Some((its_queue, its_key)) = &gang.place else {
            continue;
        };
        let entry = (its_key, other);
        if its_queue == queue {
            line.push(entry);
        }
        let first = firsts.entry(*its_queue).or_insert(entry);
        *first = (*first).min(entry);
    }
    line.sort_unstable();
    let at = line.iter().position(|(_, other)| *other == id)?;
    let before = line[..at].iter().rev().take(BEFORE_NAMED);
    let before = before.map(|(other, gang)| {
        let gang = &state.gangs[*gang];
        let verdict = gang.verdict();
        Ahead {
            gang: (&*gang.name).into(),
            because: because(other, key),
            reason: verdict.map_or(Reason::WaitingForTurn, |verdict| verdict.reason),
        }
    });
    firsts.insert(*queue, (key, id));
    let heads = firsts.into_iter();
    let heads = heads.map(|(queue, (_, gang))| (queue, demand(state, gang, now_ms)));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Some(Standing {
        position: count(at + 1),
        length: count(line.len()),
        rank: Rank {
            unfinished: key.kind == CandidateKind::Unfinished,
            replacement: key.kind == CandidateKind::Replacement,
            priority: state.gangs[id].spec.priority,
            surplus: key.surplus,
            created_ms: key.created_ms,
        },
        before: before.collect(),
        levels: state.queues.standing(*queue, heads.collect()),
    })
}

/// What puts the first before the second.
fn because(first: &CandidateKey, second: &CandidateKey) -> &'static str {
    if first.kind != second.kind {
        match first.kind {
            CandidateKind::Unfinished => "a part of it is bound",
            CandidateKind::Replacement => "it replaces lost members",
            CandidateKind::Ordinary => "it is older",
        }
    } else if first.priority_descending < second.priority_descending {
        "its priority is higher"
    } else if first.aged_ms != second.aged_ms {
        "it has waited longer"
    } else if first.surplus != second.surplus {
        "it is below its minimum"
    } else if first.runtime_ms != second.runtime_ms {
        "it is shorter"
    } else if first.created_ms != second.created_ms {
        "it is older"
    } else {
        "it is as old, and its name comes first"
    }
}

/// What the members of a gang ask for that it wants to place next.
pub(crate) fn demand(state: &ClusterState, id: GangId, now_ms: UnixMs) -> Demand {
    let mut pods: Vec<PodId> = state.gangs[id].members.to_vec();
    pods.retain(|pod| state.pods[*pod].can_be_placed(now_ms));
    pods.sort_by_cached_key(|pod| {
        let pod = &state.pods[*pod];
        (Reverse(pod.priority), pod.created_ms, pod.name.clone())
    });
    pods.truncate(members_needed(state, id, now_ms).max(1) as usize);
    demand_of(state, &pods)
}

/// What these members ask for, where they count in a queue.
pub(crate) fn demand_of(state: &ClusterState, pods: &[PodId]) -> Demand {
    let own = pods.iter().filter_map(|pod| state.pods[*pod].own.as_ref());
    let accounts = own.filter_map(|own| own.account.as_ref());
    let mut sum = BTreeMap::new();
    for (entry, amount) in accounts.flat_map(|account| &account.demand) {
        let total: &mut u64 = sum.entry(*entry).or_insert(0);
        *total = total.saturating_add(*amount);
    }
    sum.into_iter().collect()
}
