//! The place of a gang in the line of its queue, and of its queue among the others.

use super::{Ahead, QueueStanding, Rank, Rivals, Standing};
use crate::ids::{ById, GangId};
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::plan::waiting::Waiting;
use crate::queues::{Demand, QueueId};
use crate::reason::Reason;
use crate::state::ClusterState;
use alloc::{collections::BTreeMap, string::String, vec::Vec};

/// How many are named that stand before a gang.
const BEFORE_NAMED: usize = 3;

/// The place of a gang; `None`: it has none, because something keeps it out of the line.
///
/// Queues are compared as if everybody first in line were tried now, and the gang itself in its own
/// queue, by what the planning loop compares, `demand_of` among it. Looks at every gang once.
pub(crate) fn standing(
    state: &ClusterState,
    id: GangId,
    waiting: &ById<GangId, Waiting>,
    demand_of: impl Fn(GangId, QueueId) -> Demand,
) -> Option<Standing> {
    let (queue, key) = waiting[id].place.as_ref()?;
    let mut line: Vec<(&CandidateKey, GangId)> = Vec::new();
    let mut firsts: BTreeMap<QueueId, (&CandidateKey, GangId)> = BTreeMap::new();
    // The first gang of each queue, of those that new room may help.
    let mut rivals: BTreeMap<QueueId, (&CandidateKey, GangId)> = BTreeMap::new();
    for other in state.gangs.ids() {
        let Some((its_queue, its_key)) = &waiting[other].place else {
            continue;
        };
        let entry = (its_key, other);
        if its_queue == queue {
            line.push(entry);
        }
        let be_first = |of: &mut BTreeMap<_, _>| {
            let first = of.entry(*its_queue).or_insert(entry);
            *first = (*first).min(entry);
        };
        be_first(&mut firsts);
        if is_rival(&waiting[other]) {
            be_first(&mut rivals);
        }
    }
    line.sort_unstable();
    let at = line.iter().position(|(_, other)| *other == id)?;
    let before = line[..at].iter().rev().take(BEFORE_NAMED);
    let before = before.map(|(other, gang)| {
        let (gang, reason) = why(state, waiting, *gang);
        Ahead {
            gang,
            because: because(other, key),
            reason,
        }
    });
    let gangs = line[..at].iter();
    let gangs = gangs.filter(|(_, gang)| is_rival(&waiting[*gang]));
    firsts.insert(*queue, (key, id));
    rivals.insert(*queue, (key, id));
    let levels_of = |firsts: &BTreeMap<QueueId, (&CandidateKey, GangId)>| {
        let heads = firsts.iter();
        let heads = heads.map(|(queue, (_, gang))| (*queue, demand_of(*gang, *queue)));
        state.queues.standing(*queue, heads.collect())
    };
    let levels = levels_of(&firsts).into_iter();
    let levels = levels.map(|level| {
        let sends = level.before.as_ref().map(|before| before.sends);
        let gang = sends.and_then(|leaf| firsts.get(&leaf));
        QueueStanding {
            level,
            sent_before: gang.map(|(_, gang)| why(state, waiting, *gang)),
        }
    });
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Some(Standing {
        position: count(at + 1),
        length: count(line.len()),
        rank: rank(key, state.gangs[id].spec.priority),
        before: before.collect(),
        levels: levels.collect(),
        rivals: Rivals {
            gangs: count(gangs.count()),
            levels: levels_of(&rivals),
        },
    })
}

/// What its place in the line follows from.
fn rank(key: &CandidateKey, priority: i32) -> Rank {
    Rank {
        unfinished: key.kind == CandidateKind::Unfinished,
        replacement: key.kind == CandidateKind::Replacement,
        priority,
        surplus: key.surplus,
        created_ms: key.created_ms,
    }
}

/// Whether new room may help a gang: no bound of a queue keeps it out.
fn is_rival(waiting: &Waiting) -> bool {
    let verdict = waiting.wait.verdict();
    !verdict.is_some_and(|verdict| verdict.reason.is_of_queue())
}

/// The name of a gang in the line, and why it waits.
fn why(state: &ClusterState, waiting: &ById<GangId, Waiting>, id: GangId) -> (String, Reason) {
    let gang = &state.gangs[id];
    let reason = waiting[id].wait.verdict().map(|verdict| verdict.reason);
    let reason = reason.unwrap_or(Reason::WaitingForTurn);
    ((&*state.name_of(gang)).into(), reason)
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
