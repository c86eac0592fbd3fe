//! Past use, which counts in some worlds. It is drawn from a sequence of its own, so that worlds
//! without past use are not changed by this module.

use crate::objects::GPU;
use crate::random::Random;
use gpu_batch_policies::facts::Amount;

/// In how many percent of the worlds past use counts.
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

/// A queue, and what it has used on average before the world begins: resources, in thousandths of
/// base units.
pub(crate) type Used = (&'static str, Vec<(Box<str>, Amount)>);

/// Something that happens after the first rest: `after_ms` milliseconds after a minute has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Later {
    /// The scheduler is killed, and starts again after `down_ms`.
    Restart { after_ms: u64, down_ms: u64 },
    /// The configuration has another half-life.
    HalfLife { after_ms: u64, half_life_ms: u64 },
    /// Past use does not count any more.
    Forget { after_ms: u64 },
    /// A running pod ends: the one with this number, modulo their count.
    PodEnds { after_ms: u64, number: u64 },
    /// The minimum of a PodGroup with members on nodes is raised: of the one with this number,
    /// modulo their count.
    Raised { after_ms: u64, number: u64, by: u32 },
}

/// How past use counts in a world.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) half_life_ms: u64,
    /// How long after a whole minute the world begins.
    pub(crate) offset_ms: u64,
    pub(crate) used: Vec<Used>,
    /// What happens in each of the minutes after the first rest, in some minutes nothing.
    pub(crate) later: Vec<Vec<Later>>,
}

/// Draws the past use of a world; `None`: it does not count there.
pub(crate) fn past(random: &mut Random) -> Option<Past> {
    if !random.percent(WORLDS_PERCENT) {
        return None;
    }
    let mut used = Vec::new();
    for queue in ["research", "red", "blue", "green"] {
        if random.percent(60) {
            let gpus = random.between(1, 40_000);
            used.push((queue, vec![(GPU.into(), gpus)]));
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

/// Draws what happens in a minute. Pods and the configuration change some seconds after it has
/// begun, when a scheduler that was down is back. So it is certain at the end of the minute what is
/// held, and how fast it is forgotten.
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
