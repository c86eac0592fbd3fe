//! Past use: in some worlds it counts. What is drawn for it is drawn apart, so that worlds without
//! it stay what they are.

use crate::random::Random;
use gpu_batch_policies::facts::Amount;

/// Some worlds have a past; the others are as they would be without this module.
const WORLDS_PERCENT: u64 = 20;
const MINUTE_MS: u64 = 60_000;
const HALF_LIVES_MS: [u64; 6] = [
    MINUTE_MS,
    3 * MINUTE_MS,
    10 * MINUTE_MS,
    60 * MINUTE_MS,
    7 * 24 * 60 * MINUTE_MS,
    365 * 24 * 60 * MINUTE_MS,
];

/// What a queue has used on average before the world begins, in thousandths of base units.
pub(crate) type Used = (&'static str, Vec<(Box<str>, Amount)>);

/// Something that happens after everything has come to rest: so many milliseconds after a minute
/// has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Later {
    /// The scheduler is killed, and starts again after a while.
    Restart { after_ms: u64, down_ms: u64 },
    /// The configuration has another half-life.
    HalfLife { after_ms: u64, half_life_ms: u64 },
    /// The past does not count any more.
    Forget { after_ms: u64 },
    /// A running pod ends: the one with this number, counted round.
    PodEnds { after_ms: u64, number: u64 },
    /// A PodGroup of which members run has a higher minimum from now on: the one with this number,
    /// counted round.
    Raised { after_ms: u64, number: u64, by: u32 },
}

/// How the past counts in a world.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) half_life_ms: u64,
    /// The world begins so long after a whole minute.
    pub(crate) offset_ms: u64,
    pub(crate) used: Vec<Used>,
    /// What happens in the minutes after the first rest; there is nothing in some of them.
    pub(crate) later: Vec<Vec<Later>>,
}

/// The past of a world, if it counts there.
pub(crate) fn past(random: &mut Random) -> Option<Past> {
    if !random.percent(WORLDS_PERCENT) {
        return None;
    }
    let mut used = Vec::new();
    for queue in ["research", "red", "blue", "green"] {
        if random.percent(60) {
            let gpus = random.between(1, 40_000);
            used.push((queue, vec![("nvidia.com/gpu".into(), gpus)]));
        }
    }
    let half_life_ms = *random.pick(&HALF_LIVES_MS);
    let offset_ms = random.below(MINUTE_MS);
    let minutes = random.between(2, 6);
    let later = (0..minutes).map(|minute| drawn(random, minute + 1 == minutes));
    let mut later: Vec<Vec<Later>> = later.collect();
    for later in &mut later {
        later.extend(raised(random));
    }
    Some(Past {
        half_life_ms,
        offset_ms,
        used,
        later,
    })
}

/// A minimum may be raised at any time, also while no scheduler runs.
fn raised(random: &mut Random) -> Option<Later> {
    random.percent(40).then(|| Later::Raised {
        after_ms: random.below(MINUTE_MS),
        number: random.next_u64(),
        by: u32::try_from(random.between(1, 3)).unwrap_or(1),
    })
}

/// What happens in a minute. Pods and the configuration change when it has begun and every
/// scheduler is back that was down then, so that what is held, and how fast it is forgotten, is
/// beyond doubt when it ends.
fn drawn(random: &mut Random, last: bool) -> Vec<Later> {
    let mut later = Vec::new();
    let after_ms = random.between(10_000, 20_000);
    match random.below(10) {
        0..3 => {
            let number = random.next_u64();
            later.push(Later::PodEnds { after_ms, number });
        }
        3..5 => {
            let half_life_ms = *random.pick(&HALF_LIVES_MS);
            later.push(Later::HalfLife {
                after_ms,
                half_life_ms,
            });
        }
        5 if last => later.push(Later::Forget { after_ms }),
        _ => {}
    }
    if random.percent(50) {
        later.push(Later::Restart {
            after_ms: random.below(MINUTE_MS),
            down_ms: random.below(8_000),
        });
    }
    later
}

#[cfg(test)]
mod tests {
    use super::{Later, past};
    use crate::random::Random;

    #[test]
    fn there_is_something_of_every_sort() {
        let (mut worlds, mut used) = (0, 0);
        let (mut restarts, mut half_lives, mut forgotten, mut ends) = (0, 0, 0, 0);
        let mut raised = 0;
        for seed in 0..2_000 {
            let Some(past) = past(&mut Random::new(seed)) else {
                continue;
            };
            worlds += 1;
            used += past.used.len();
            for later in past.later.iter().flatten() {
                let count = match later {
                    Later::Restart { .. } => &mut restarts,
                    Later::HalfLife { .. } => &mut half_lives,
                    Later::Forget { .. } => &mut forgotten,
                    Later::PodEnds { .. } => &mut ends,
                    Later::Raised { .. } => &mut raised,
                };
                *count += 1;
            }
        }
        let counts = [worlds, used, restarts, half_lives, forgotten, ends, raised];
        let least = [300, 600, 500, 200, 20, 300, 400];
        assert!(
            counts.iter().zip(least).all(|it| *it.0 > it.1),
            "{counts:?}"
        );
    }
}
