//! The status of a gang, as its members make it.

use crate::facts::UnixMs;
use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Wait;
use crate::ids::GangId;
use crate::plan::waiting::Waiting;
use crate::reason::Reason;
use crate::state::gang::Gang;
use crate::status::{MemberCounts, Phase, PodGroupStatus, Staleness};
use crate::tell::told::Told;
use crate::tell::{Teller, View};
use alloc::format;

impl Teller {
    /// The status of a gang as its members make it.
    pub(super) fn gang_status(
        &self,
        view: View<'_>,
        id: GangId,
        counts: &Counts,
    ) -> PodGroupStatus {
        let (gang, told) = (&view.state.gangs[id], &self.told[id]);
        let phase = phase(counts);
        let (scheduled, scheduled_since_ms) = scheduled(gang, told, counts, view.now_ms);
        let verdict = self.why_it_waits(view.state, view.waiting, id);
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
        let turn = (view.waiting[id].wait == Wait::Turn).then_some(Reason::WaitingForTurn);
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
            scheduled_since_ms,
            staleness: staleness(&view.progress[id], told, view.now_ms),
            protected: protected(gang, told, counts),
            estimated_start_ms: estimated_start_ms(&view.waiting[id], phase),
        }
    }
}

/// Whether a gang is scheduled, and since when, in whole seconds. Until `told` knows a time, the
/// status of the PodGroup counts.
pub(super) fn scheduled(
    gang: &Gang,
    told: &Told,
    counts: &Counts,
    now_ms: UnixMs,
) -> (bool, UnixMs) {
    let scheduled = !matches!(phase(counts), Phase::Pending | Phase::Binding);
    let known = match (told.scheduled, gang.shown()) {
        ((_, 0), Some(shown)) => (shown.scheduled, shown.scheduled_since_ms),
        (known, _) => known,
    };
    match known {
        (was, since_ms) if was == scheduled && since_ms > 0 => known,
        _ => (scheduled, whole_seconds(now_ms)),
    }
}

/// The condition `Stale` of a gang; `None`: the gang is not complete.
pub(super) fn staleness(progress: &Progress, told: &Told, now_ms: UnixMs) -> Option<Staleness> {
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

/// Whether the minimum of a gang is protected from other queues. Until that is worked out, the
/// status of the PodGroup counts.
fn protected(gang: &Gang, told: &Told, counts: &Counts) -> Option<bool> {
    let shown = || gang.shown().and_then(|shown| shown.protected);
    let holds = counts.bound > 0;
    told.protected.or_else(shown).filter(|_| holds)
}

/// When a gang that waits is promised to start, in whole seconds.
fn estimated_start_ms(waiting: &Waiting, phase: Phase) -> Option<UnixMs> {
    let promised_ms = waiting.promised_ms.filter(|_| phase == Phase::Pending)?;
    Some(whole_seconds(promised_ms))
}

/// Times in statuses have whole seconds.
fn whole_seconds(at_ms: UnixMs) -> UnixMs {
    at_ms - at_ms % 1_000
}

/// The phase of a gang, derived from its members.
pub(super) fn phase(counts: &Counts) -> Phase {
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
