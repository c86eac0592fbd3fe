//! The queues and gangs that could take the room of a running gang, and from when on.
//!
//! The search for victims keeps these rules (`plan::victims::units`). Whether a gang takes the room
//! in the end depends also on that gang: here only the rules about the running gang are told.

use crate::explain::Takers;
use crate::facts::{DisruptionBudgetFacts, UnixMs};
use crate::gangs::progress::Progress;
use crate::gangs::protected::{
    Holding, NEVER_MS, come_back, evictable_from, follow, holdings, may_lose_room,
};
use crate::ids::{ById, GangId, PodId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::minima::Surplus;
use crate::tell::words::date_and_time;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Why no gang takes room from any other: an administrator has said so.
pub(super) const SWITCHED_OFF: &str =
    "evictions are switched off: evictions.inFlight is 0 in the configuration";

/// The queues and gangs that could take the room of a gang's minimum; `None`: the gang does not
/// run, or its queue is gone, so that no gang takes its room.
pub(super) fn takers(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    gang: GangId,
    now_ms: UnixMs,
) -> Option<Takers> {
    let Some(queue) = state.queues.find(&state.gangs[gang].spec.queue) else {
        return without_queue(state, gang);
    };
    // What the quota guarantees depends on the division, where quotas promise too much.
    state.queues.divide_all();
    follow(state);
    let state = &*state;
    let holding = holdings(state, queue)
        .into_iter()
        .find(|holding| holding.minimum.gang == gang)?;
    let surplus = holding.minimum.surplus.iter();
    let surplus: usize = surplus.map(|one| one.pods.len()).sum();
    let surplus = u32::try_from(surplus).unwrap_or(u32::MAX);
    let mut takers = Takers {
        preemptible: state.gangs[gang].spec.preemptible,
        surplus,
        ..Takers::default()
    };
    if !may_lose_room(state, progress, gang) {
        return None;
    }
    let nobody = if !takers.preemptible {
        Some("it is not preemptible")
    } else {
        (settings.evictions.in_flight == 0).then_some(SWITCHED_OFF)
    };
    if let Some(why) = nobody {
        takers.sentences = Vec::from([format!("nobody: {why}")]);
        return Some(takers);
    }
    let from = evictable_from(state, &holding.minimum, now_ms);
    let could_move = settings.moved_gpus_max > 0 && come_back(state, &holding.minimum.core);
    takers.preempt_from_ms = Some(from.preempt_ms);
    takers.reclaim_from_ms = Some(from.reclaim_ms).filter(|_| !holding.is_protected);
    takers.move_from_ms = Some(from.move_ms).filter(|_| could_move);
    takers.sentences = sentences(state, &takers, &holding, now_ms);
    for from_ms in [
        &mut takers.preempt_from_ms,
        &mut takers.reclaim_from_ms,
        &mut takers.move_from_ms,
    ] {
        *from_ms = from_ms.filter(|from_ms| *from_ms < NEVER_MS);
    }
    Some(takers)
}

/// Of a gang whose queue is gone; `None`: it has no room.
fn without_queue(state: &ClusterState, gang: GangId) -> Option<Takers> {
    let members = &state.gangs[gang].members;
    let has_room = |pod: &PodId| state.pods[*pod].stage.node().is_some();
    members.iter().any(has_room).then(|| Takers {
        preemptible: state.gangs[gang].spec.preemptible,
        sentences: Vec::from(["nobody: its queue is gone, and nothing is divided for it".into()]),
        ..Takers::default()
    })
}

/// The fields of a queue that let its gangs run for a while.
const PREEMPT: &str = "preemptMinRuntime";
const RECLAIM: &str = "reclaimMinRuntime";

/// The queues and gangs that could take the room, in a sentence each.
fn sentences(
    state: &ClusterState,
    takers: &Takers,
    holding: &Holding,
    now_ms: UnixMs,
) -> Vec<String> {
    let when = |from_ms: UnixMs, why: &str| match from_ms {
        NEVER_MS => format!("at no time: {why} of its queue cannot be read"),
        _ if from_ms <= now_ms => String::from("at any time"),
        _ => format!("from {} on: {why} of its queue", date_and_time(from_ms)),
    };
    let priority = state.gangs[holding.minimum.gang].spec.priority;
    let guard = guard(state, &holding.minimum.core);
    let mut sentences = Vec::from_iter(guard.map(|guard| guard + "; but for that:"));
    sentences.push(match takers.reclaim_from_ms {
        None => "no other queue: its minimum is within the quota of its queue".into(),
        Some(from_ms) => format!(
            "other queues could reclaim its minimum, which the quota of its queue does not \
             protect, {}",
            when(from_ms, RECLAIM)
        ),
    });
    if let Some(from_ms) = takers.preempt_from_ms {
        sentences.push(format!(
            "gangs of its queue with a priority above {priority} could preempt it {}",
            when(from_ms, PREEMPT)
        ));
    }
    if let Some(from_ms) = takers.move_from_ms {
        let why = match (takers.preempt_from_ms, from_ms) {
            (Some(NEVER_MS), _) => PREEMPT,
            (_, NEVER_MS) => RECLAIM,
            _ => "the longer of preemptMinRuntime and reclaimMinRuntime",
        };
        sentences.push(format!(
            "gangs of any queue could have it moved to other nodes {}",
            when(from_ms, why)
        ));
    }
    if takers.surplus > 0 {
        sentences.push(format!(
            "of its {} beyond the minimum: these gangs at any time, and other queues {}while its \
             queue holds more than its quota",
            counted(takers.surplus, "pod"),
            unprotected(holding)
        ));
    }
    sentences
}

/// Which of the surplus other queues may take, if not all of it: "at most 2 of them, ".
fn unprotected(holding: &Holding) -> String {
    let surplus = holding.minimum.surplus.iter().enumerate();
    let protected = surplus
        .clone()
        .filter(|(place, _)| holding.protects(*place));
    let count = |pods: usize, (_, one): (usize, &Surplus)| pods + one.pods.len();
    match (protected.fold(0, count), surplus.fold(0, count)) {
        (0, _) => String::new(),
        (protected, all) => format!("at most {} of them, ", all - protected),
    }
}

/// What disruption budgets say against evicting these pods now; `None`: nothing.
fn guard(state: &ClusterState, pods: &[PodId]) -> Option<String> {
    let mut guarded: BTreeMap<(&str, &str), (u32, u32)> = BTreeMap::new();
    for id in pods.iter().filter(|pod| state.pods[**pod].running) {
        let mut budgets = state.budgets_of(*id);
        let Some(DisruptionBudgetFacts {
            namespace,
            name,
            allowed,
            ..
        }) = budgets.next()
        else {
            continue;
        };
        if budgets.next().is_some() {
            let pod = &state.pods[*id].name;
            return Some(format!(
                "nobody for now: two disruption budgets select the pod {pod}, and the API server \
                 evicts no such pod"
            ));
        }
        guarded.entry((namespace, name)).or_insert((0, *allowed)).0 += 1;
    }
    let mut guarded = guarded.into_iter();
    let ((namespace, name), (pods, allowed)) =
        guarded.find(|(_, (pods, allowed))| pods > allowed)?;
    Some(format!(
        "nobody for now: the disruption budget {namespace}/{name} allows {}, and selects {} of \
         its minimum",
        counted(allowed, "eviction"),
        counted(pods, "pod")
    ))
}

fn counted(count: u32, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
