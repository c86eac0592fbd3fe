//! The status of a PodGroup, read back: what is there need not be written again.

use crate::objects::Condition;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{MemberCounts, Phase, PodGroupStatus, Staleness};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    observed_generation: i64,
    phase: Box<str>,
    members: Members,
    conditions: Vec<Condition>,
    reason: Option<Box<str>>,
    message: Box<str>,
}

#[derive(Deserialize)]
struct Members {
    expected: u32,
    created: u32,
    bound: u32,
    running: u32,
    succeeded: u32,
    failed: u32,
}

/// The status, if the scheduler could have written it so. `None` for everything else, which it
/// writes anew.
pub(super) fn read(status: Value) -> Option<PodGroupStatus> {
    let written: Written = serde_json::from_value(status).ok()?;
    let reason = match &written.reason {
        Some(word) => Some(Reason::ALL.into_iter().find(|it| it.as_str() == &**word)?),
        None => None,
    };
    let members = written.members;
    let (scheduled, scheduled_since_ms) = condition(&written.conditions, "PodGroupScheduled")?;
    let staleness = condition(&written.conditions, "Stale");
    Some(PodGroupStatus {
        observed_generation: written.observed_generation,
        phase: Phase::ALL
            .into_iter()
            .find(|it| it.as_str() == &*written.phase)?,
        members: MemberCounts {
            expected: members.expected,
            created: members.created,
            bound: members.bound,
            running: members.running,
            succeeded: members.succeeded,
            failed: members.failed,
        },
        reason,
        message: written.message,
        scheduled,
        scheduled_since_ms,
        staleness: staleness.map(|(stale, since_ms)| Staleness { stale, since_ms }),
    })
}

/// Whether a condition is true, and since when it is as it is.
fn condition(conditions: &[Condition], kind: &str) -> Option<(bool, UnixMs)> {
    let condition = conditions.iter().find(|it| &*it.kind == kind)?;
    Some((
        &*condition.status == "True",
        condition.last_transition_time?.0,
    ))
}
