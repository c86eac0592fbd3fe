//! The place of a gang in the line of its queue, and of its queue among the others.

use super::{Ahead, QueueStanding, Rank, Rivals, Standing};
use crate::facts::UnixMs;
use crate::gangs::wanted;
use crate::ids::{ById, GangId};
use crate::plan::bounds;
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::plan::waiting::Waiting;
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::tell::why::reason_now;
use crate::tell::{Scene, View};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How many of the gangs before a gang are named.
const BEFORE_NAMED: usize = 3;

/// The place of a gang in the order; `None`: something keeps the gang out of the line.
///
/// Queues are compared as the planner compares them, as if the first gang of each line were tried
/// now; of the gang's own queue, the gang itself. Looks at the place of every gang; the bounds, and
/// perhaps the nodes, are asked about the gangs before the gang and about the first of each line.
pub(super) fn standing(scene: &mut Scene<'_>, id: GangId) -> Option<Standing> {
    let (queue, key) = scene.waiting[id].place.as_ref()?;
    let mut lines = lines_of(scene.state, scene.waiting);
    let mut firsts = firsts_of(&lines);
    firsts.insert(*queue, id);
    let mut line = lines.remove(queue)?;
    line.sort_unstable();
    let at = line.iter().position(|(_, other)| *other == id)?;
    let mut is_kept = |queue: QueueId, gang: GangId| is_kept_by_bound(scene, queue, gang);
    let before = line[..at].iter();
    let rivals_before = before.filter(|(_, gang)| !is_kept(*queue, *gang)).count();
    let mut rivals = first_rivals(lines, is_kept);
    rivals.insert(*queue, id);
    let levels_of = |firsts: &BTreeMap<QueueId, GangId>| {
        let demand_of = |(queue, gang): (&QueueId, &GangId)| {
            let (settings, progress) = (scene.settings, scene.progress);
            let demand =
                wanted::demand_of(scene.state, settings, progress, *gang, *queue, UnixMs::MAX);
            (*queue, demand)
        };
        let heads = firsts.iter().map(demand_of).collect();
        scene.state.queues.standing(*queue, heads)
    };
    let (levels, rival_levels) = (levels_of(&firsts), levels_of(&rivals));
    let mut name_and_reason = |id: GangId| {
        let reason = reason_now(scene, id);
        let name = scene.state.name_of(&scene.state.gangs[id]);
        ((&*name).into(), reason.unwrap_or(Reason::WaitingForTurn))
    };
    let before = line[..at].iter().rev().take(BEFORE_NAMED);
    let before = before.map(|(other, gang)| {
        let (gang, reason) = name_and_reason(*gang);
        Ahead {
            gang,
            because: because(other, key),
            reason,
        }
    });
    let before = before.collect();
    let levels = levels.into_iter().map(|level| {
        let sends = level.before.as_ref().map(|before| before.sends);
        let gang = sends.and_then(|leaf| firsts.get(&leaf));
        QueueStanding {
            level,
            sent_before: gang.map(|gang| name_and_reason(*gang)),
        }
    });
    let levels = levels.collect();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Some(Standing {
        position: count(at + 1),
        length: count(line.len()),
        rank: rank(key, scene.state.gangs[id].spec.priority),
        before,
        levels,
        rivals: Rivals {
            gangs: count(rivals_before),
            levels: rival_levels,
        },
    })
}

/// The gangs of one queue that wait, each with its place.
type Line<'a> = Vec<(&'a CandidateKey, GangId)>;

/// The lines of all queues, in no order.
fn lines_of<'a>(
    state: &ClusterState,
    waiting: &'a ById<GangId, Waiting>,
) -> BTreeMap<QueueId, Line<'a>> {
    let mut lines: BTreeMap<QueueId, Line<'a>> = BTreeMap::new();
    for id in state.gangs.ids() {
        if let Some((queue, key)) = &waiting[id].place {
            lines.entry(*queue).or_default().push((key, id));
        }
    }
    lines
}

/// The first gang of each line.
fn firsts_of(lines: &BTreeMap<QueueId, Line<'_>>) -> BTreeMap<QueueId, GangId> {
    let first = |line: &Line<'_>| line.iter().min().map(|(_, gang)| *gang);
    let firsts = lines.iter();
    firsts
        .filter_map(|(queue, line)| Some((*queue, first(line)?)))
        .collect()
}

/// The first gang of each line that no bound of a queue keeps waiting. Mostly that is the first
/// gang of the line, so a line is put in order only if it is not.
fn first_rivals(
    lines: BTreeMap<QueueId, Line<'_>>,
    mut is_kept: impl FnMut(QueueId, GangId) -> bool,
) -> BTreeMap<QueueId, GangId> {
    let mut rivals = BTreeMap::new();
    for (queue, mut line) in lines {
        let first = line.iter().min().map(|(_, gang)| *gang);
        let rival = first.filter(|gang| !is_kept(queue, *gang)).or_else(|| {
            line.sort_unstable();
            let mut others = line.iter().skip(1).map(|(_, gang)| *gang);
            others.find(|gang| !is_kept(queue, *gang))
        });
        rivals.extend(rival.map(|gang| (queue, gang)));
    }
    rivals
}

/// Whether a gang was refused and a bound of a queue keeps it waiting: then new room does not help
/// it, and it is no rival of other gangs.
fn is_kept_by_bound(scene: &mut Scene<'_>, queue: QueueId, id: GangId) -> bool {
    let View {
        state,
        settings,
        progress,
        waiting,
        now_ms,
    } = scene.view();
    // Most gangs are below all bounds, which is seen without their requests.
    let near_bounds = waiting[id].is_parked()
        && (state.queues.has_model_limits(queue)
            || bounds::excess(state, settings, progress, id, queue, now_ms).is_some());
    near_bounds && reason_now(scene, id).is_some_and(Reason::is_of_queue)
}

/// What the place of a gang in the line follows from.
fn rank(key: &CandidateKey, priority: i32) -> Rank {
    Rank {
        unfinished: key.kind == CandidateKind::Unfinished,
        replacement: key.kind == CandidateKind::Replacement,
        priority,
        surplus: key.surplus,
        created_ms: key.created_ms,
    }
}

/// What puts `first` before `second`.
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
