//! When a gang that waits is expected to start, and what that rests on.

use super::eviction::counted;
use crate::kube::format::seconds;
use gpu_batch_policies::explain::{EndCause, ExpectedEnd, ExpectedStart, StartStanding};
use serde::{Deserialize, Serialize};

/// How many gangs the text names.
const ENDS_NAMED: usize = 6;

/// The source of an end that is known because pods are being deleted.
const LEAVING: &str = "Leaving";

/// When a gang that waits is expected to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartView {
    /// When there is room for it at the latest, if all gangs end as expected; `null`: that cannot
    /// be said.
    pub at: Option<String>,
    /// Whether the gang has a reservation for this time.
    pub promised: bool,
    /// Whether the room is held for the gang, and pods are leaving it. If it is neither held nor
    /// promised, the time is a guess, and gangs may still go before it.
    #[serde(default)]
    pub held: bool,
    /// Whose ends make the room, the first to end first.
    pub ends: Vec<EndView>,
    /// Gangs that run or are promised to start, and of whose runtime nothing is known, at most
    /// three: first those whose ends would let the gang start. Empty if it lacks room, and no end
    /// that lets it start was found.
    pub endless: Vec<String>,
    /// How many such gangs there are; 0 if none is named.
    pub endless_count: usize,
}

/// When room is expected to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndView {
    /// The gang that gives it; of a pod without a gang, the pod.
    pub gang: String,
    /// When the room is expected.
    pub at: String,
    /// `Said`: the gang says how long it runs. `Owner`, `Queue`: earlier gangs of its owner, or of
    /// its queue, ran so long. `Leaving`: pods of it are being deleted.
    pub source: String,
    /// Whether it was expected to end before now, and has not.
    pub overdue: bool,
    /// Whether it does not run yet: it is promised to start.
    pub waits: bool,
}

impl From<ExpectedStart> for StartView {
    fn from(start: ExpectedStart) -> Self {
        Self {
            at: start.at_ms.map(seconds),
            promised: start.standing == StartStanding::Promised,
            held: start.standing == StartStanding::Held,
            ends: start.ends.into_iter().map(Into::into).collect(),
            endless: start.endless,
            endless_count: start.endless_count,
        }
    }
}

impl From<ExpectedEnd> for EndView {
    fn from(end: ExpectedEnd) -> Self {
        let (source, overdue, waits) = match end.cause {
            EndCause::Runs { source, is_overdue } => (source.as_str(), is_overdue, false),
            EndCause::WillRun { source } => (source.as_str(), false, true),
            EndCause::Leaves => (LEAVING, false, false),
        };
        Self {
            gang: end.gang,
            at: seconds(end.at_ms),
            source: source.to_owned(),
            overdue,
            waits,
        }
    }
}

/// The expected start in lines of text.
pub(super) fn lines(view: &StartView) -> Vec<String> {
    let Some(at) = &view.at else {
        return vec![match view.endless.as_slice() {
            [] => {
                "Nobody can say: no end of gangs that run was found to make room for it.".to_owned()
            }
            [first, ..] => {
                let who = match view.endless_count {
                    1 => format!("{first} runs"),
                    count => format!("{count} gangs run, such as {first},"),
                };
                // `NS/NAME` is the gang of a PodGroup; other names have a kind in them.
                let says = match first.split('/').count() {
                    2 => "`expectedRuntime`, or `gpu-batch.io/expected-runtime` on all its pods,",
                    _ => "the annotation `gpu-batch.io/expected-runtime`",
                };
                format!("Nobody can say: how long {who} is not known ({says} says it).")
            }
        }];
    };
    let mut lines = vec![match (view.promised, view.held) {
        (true, _) => format!(
            "By {at}: that is promised. Overruns, lost nodes and gangs that go before it may delay it."
        ),
        (_, true) => format!("By {at}: the room is held for it, and pods are leaving."),
        (false, false) => format!("By {at}, but that is a guess: gangs may still go before it."),
    }];
    lines.extend(view.ends.iter().take(ENDS_NAMED).map(end));
    if view.ends.len() > ENDS_NAMED {
        let more = counted(view.ends.len() - ENDS_NAMED, "gang");
        lines.push(format!("  and {more} more"));
    }
    lines
}

/// `  when vision/old ends, expected at 2026-11-21T10:00:00Z as it says`.
fn end(end: &EndView) -> String {
    let (gang, at) = (&end.gang, &end.at);
    if end.source == LEAVING {
        return format!("  when {gang} has left, by {at}: its grace period ends");
    }
    // Of a gang that overruns its time, the expected end is the scheduler's guess.
    let because = match (end.source.as_str(), end.overdue) {
        ("Said", false) => " as it says",
        ("Said", true) => ": it runs longer than it said",
        ("Owner", false) => " as earlier gangs of its owner did",
        ("Owner", true) => ": it runs longer than earlier gangs of its owner did",
        (_, false) => " as earlier gangs of its queue did",
        (_, true) => ": it runs longer than earlier gangs of its queue did",
    };
    let waits = match end.waits {
        true => ", after a start that it is promised",
        false => "",
    };
    format!("  when {gang} ends, expected at {at}{because}{waits}")
}
