//! Worlds in which nodes say for a while that their GPUs have failed. Conditions come, go and flap.
//! All of it is drawn from a sequence of its own, so that other worlds are not changed by this
//! module.

use super::Arrival;
use crate::random::Random;
use gpu_batch_policies::facts::{ConditionStatus, UnixMs};
use gpu_batch_policies::settings::{Health, HealthRule, Sign};

/// A condition that only closes its node.
const CLOSES: &str = "GpuSmWatch";

/// A condition that also evicts after a delay.
const EVICTS: &str = "GpuMemWatch";

/// What follows from the conditions of these worlds.
pub(crate) fn health(random: &mut Random) -> Health {
    let rule = |kind: &str, evict_after_ms| HealthRule {
        sign: Sign::Condition {
            kind: kind.into(),
            status: ConditionStatus::True,
        },
        evict_after_ms,
    };
    let delay_ms = random.below(6_000);
    Health {
        rules: vec![rule(CLOSES, None), rule(EVICTS, Some(delay_ms))],
        recovery_ms: random.below(3_000),
    }
}

/// Lets nodes show these conditions for a while. In the end all nodes are well.
pub(crate) fn ail(
    arrivals: &mut Vec<(UnixMs, Arrival)>,
    random: &mut Random,
    start_ms: UnixMs,
    span_ms: u64,
) {
    for _ in 0..random.between(1, 5) {
        let kind = *random.pick(&[CLOSES, EVICTS]);
        let node = random.below(5);
        let from_ms = random.below(span_ms / 2);
        let until_ms = from_ms + random.between(500, span_ms / 2);
        let period_ms = match random.percent(50) {
            true => random.between(200, 1_500),
            false => span_ms,
        };
        let turns = (from_ms..until_ms).step_by(usize::try_from(period_ms).unwrap_or(1));
        for (turn, at_ms) in turns.enumerate() {
            let shows = turn.is_multiple_of(2);
            arrivals.push((start_ms + at_ms, Arrival::Ails(node, kind, shows)));
        }
        // Another ailment of the same node and kind may end later, but none after the span.
        arrivals.push((start_ms + until_ms, Arrival::Ails(node, kind, false)));
    }
}
