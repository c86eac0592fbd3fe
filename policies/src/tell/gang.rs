//! The status of a gang, as its members make it.

use crate::command::ObjectReference;
use crate::event::Kind;
use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Wait;
use crate::ids::ById;
use crate::ids::GangId;
use crate::plan::waiting::Waiting;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::gang::Gang;
use crate::state::pod::Stage;
use crate::status::{MemberCounts, Phase, PodGroupStatus, Staleness};
use crate::tell::told::Told;
use crate::tell::why;
use alloc::format;

/// The status of a gang as its members make it.
pub(crate) fn gang_status(
    state: &ClusterState,
    told: &ById<GangId, Told>,
    waiting: &ById<GangId, Waiting>,
    progress: &ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
    now_ms: UnixMs,
) -> PodGroupStatus {
    let gang = &state.gangs[id];
    let phase = phase(counts);
    let scheduled = matches!(phase, Phase::Running | Phase::Succeeded | Phase::Failed);
    let (was, since_ms) = match (told[id].scheduled, gang.shown()) {
        ((_, 0), Some(shown)) => (shown.scheduled, shown.scheduled_since_ms),
        (known, _) => known,
    };
    let since_ms = if was == scheduled && since_ms > 0 {
        since_ms
    } else {
        whole_seconds(now_ms)
    };
    let verdict = why::why_it_waits(state, waiting, id);
    let message = match (&verdict, phase) {
        (Some(verdict), _) => verdict.message.clone(),
        (None, Phase::Pending) => "waits for its turn".into(),
        (None, Phase::Binding) => format!("{} members are being bound", counts.assumed),
        (None, Phase::Failed) => {
            let Counts {
                created, failed, ..
            } = counts;
            format!("all {created} members have ended, {failed} of them failed")
        }
        (None, _) => format!(
            "{} of at least {} members run or ran",
            scheduled_members(counts),
            counts.expected
        ),
    };
    let waits = matches!(phase, Phase::Pending | Phase::Binding);
    let turn = (waiting[id].wait == Wait::Turn).then_some(Reason::WaitingForTurn);
    PodGroupStatus {
        observed_generation: gang.object.as_ref().map_or(0, |object| object.generation),
        phase,
        members: MemberCounts {
            expected: counts.expected,
            created: counts.created,
            bound: counts.bound,
            running: counts.running,
            succeeded: counts.succeeded,
            failed: counts.failed,
        },
        reason: verdict
            .map(|verdict| verdict.reason)
            .or(turn)
            .filter(|_| waits),
        message: message.into(),
        scheduled,
        scheduled_since_ms: since_ms,
        staleness: staleness(&progress[id], &told[id], now_ms),
    }
}

/// The object that stands for a gang.
pub(crate) fn object_of(state: &ClusterState, gang: &Gang) -> Option<ObjectReference> {
    if let Some(object) = &gang.object {
        let (api_version, kind) = Kind::from(object.source).api_type();
        return Some(ObjectReference {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: object.uid,
        });
    }
    // A Deployment's pods have several owners: the one that waits is meant.
    let mut members = gang.members.iter().map(|id| &state.pods[*id]);
    let waiting = members.clone().find(|pod| pod.stage == Stage::Waiting);
    let pod = waiting.or_else(|| members.next())?;
    let owner = pod.own.as_ref().and_then(|own| own.owner.as_ref());
    match owner {
        Some(owner) if !gang.is_explicit() => Some(ObjectReference {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            namespace: pod.namespace.clone(),
            name: owner.name.clone(),
            uid: owner.uid,
        }),
        _ => Some(pod.object()),
    }
}

/// The condition `Stale` of a gang that has been complete.
fn staleness(progress: &Progress, told: &Told, now_ms: UnixMs) -> Option<Staleness> {
    let complete_ms = progress.start.complete_ms()?;
    let of_these = |(since_ms, told)| (since_ms == complete_ms).then_some(told);
    let known = told.staleness.and_then(of_these).or(progress.staleness);
    let stale = progress.lost_ms.is_some();
    let known = known.filter(|known| !stale && !known.stale);
    let since_ms = progress.lost_ms.unwrap_or(now_ms);
    Some(known.unwrap_or(Staleness {
        stale,
        since_ms: whole_seconds(since_ms),
    }))
}

/// Times in statuses have whole seconds.
fn whole_seconds(at_ms: UnixMs) -> UnixMs {
    at_ms - at_ms % 1_000
}

/// The phase, derived from the members.
fn phase(counts: &Counts) -> Phase {
    if counts.have_ended() {
        return if counts.failed > 0 {
            Phase::Failed
        } else {
            Phase::Succeeded
        };
    }
    if counts.met && counts.created > 0 {
        return Phase::Running;
    }
    if counts.assumed > 0 {
        Phase::Binding
    } else {
        Phase::Pending
    }
}

fn scheduled_members(counts: &Counts) -> u32 {
    counts.bound + counts.succeeded
}
