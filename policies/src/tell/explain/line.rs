//! The place of a gang in the line of its queue, and of its queue among the others.

use super::{Ahead, QueueStanding, Rank, Rivals, Standing};
use crate::facts::UnixMs;
use crate::gangs::demand;
use crate::ids::GangId;
use crate::plan::order::{CandidateKey, CandidateKind};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::tell::{Teller, View};
use alloc::{collections::BTreeMap, string::String, vec::Vec};

/// How many are named that stand before a gang.
const BEFORE_NAMED: usize = 3;

impl Teller {
    /// The place of a gang; `None`: it has none, because something keeps it out of the line.
    ///
    /// Queues are compared as if everybody first in line were tried now, and the gang itself in its
    /// own queue, by what the planning loop compares. Looks at every gang once.
    pub(super) fn standing(&self, view: View<'_>, id: GangId) -> Option<Standing> {
        let (state, waiting) = (view.state, view.waiting);
        let demand_of = |gang: GangId, queue: QueueId| {
            let View {
                settings, progress, ..
            } = view;
            demand::demand_of(state, settings, progress, gang, queue, UnixMs::MAX)
        };
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
            if self.is_rival(view, other) {
                be_first(&mut rivals);
            }
        }
        line.sort_unstable();
        let at = line.iter().position(|(_, other)| *other == id)?;
        let before = line[..at].iter().rev().take(BEFORE_NAMED);
        let before = before.map(|(other, gang)| {
            let (gang, reason) = self.name_and_reason(view, *gang);
            Ahead {
                gang,
                because: because(other, key),
                reason,
            }
        });
        let gangs = line[..at].iter();
        let gangs = gangs.filter(|(_, gang)| self.is_rival(view, *gang));
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
                sent_before: gang.map(|(_, gang)| self.name_and_reason(view, *gang)),
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

    /// Whether new room may help a gang: no bound of a queue keeps it out.
    fn is_rival(&self, view: View<'_>, id: GangId) -> bool {
        let reason = self.reason(view.waiting, id);
        !reason.is_some_and(Reason::is_of_queue)
    }

    /// The name of a gang in the line, and why it waits.
    fn name_and_reason(&self, view: View<'_>, id: GangId) -> (String, Reason) {
        let name = view.state.name_of(&view.state.gangs[id]);
        let reason = self.reason(view.waiting, id);
        ((&*name).into(), reason.unwrap_or(Reason::WaitingForTurn))
    }
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
