//! How long the owners of generated jobs expect them to run.

use super::Trace;
use super::draw::{Fraction, Quantiles};
use crate::random::Random;
use crate::trace::jobs::Job;

/// How good expectations are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Every job runs exactly as long as expected: what is the most that expectations can give?
    Exact,
    /// As those of users: nearly all expect far too much, and some too little.
    Rough,
}

/// Quantiles of the real time over the expected one, in thousandths: those of the 28,481 jobs of
/// KTH-SP2 in the Parallel Workloads Archive. Other logs are alike (Mu'alem and Feitelson, TPDS
/// 2001; Tsafrir, Etsion and Feitelson, JSSPP 2005).
const RATIO_THOUSANDTHS: Quantiles = Quantiles([1, 2, 17, 83, 413, 881, 996, 999, 1_000, 1_000]);

/// So many of a hundred jobs run for longer than expected; assumed. In KTH-SP2 none does: jobs are
/// killed there. Here they run on.
const OVERRUNS_PERCENT: u64 = 5;

/// A job that runs for longer than expected runs up to twice as long; assumed.
const OVERRUN_THOUSANDTHS: (u64, u64) = (1_001, 2_000);

/// Users expect whole minutes.
const MINUTE_S: u64 = 60;

/// Users expect at most 30 days, except of a job that needs more.
const EXPECTED_MAX_S: u64 = 30 * 86_400;

impl Trace {
    /// Sets [`Job::expected_s`] of all jobs and nothing else. Equal seeds give equal expectations.
    pub fn expect(&mut self, expected: Expected, seed: u64) {
        // Not the numbers from which the jobs were drawn.
        let mut random = Random::new(!seed);
        for job in &mut self.jobs.jobs {
            job.expected_s = Some(match expected {
                Expected::Exact => job.duration_s,
                Expected::Rough => rough_s(job, &mut random),
            });
        }
    }
}

fn rough_s(job: &Job, random: &mut Random) -> u64 {
    let duration_s = job.duration_s;
    if random.percent(OVERRUNS_PERCENT) {
        let (low, high) = OVERRUN_THOUSANDTHS;
        let expected_s = duration_s * 1_000 / random.between(low, high);
        return (expected_s / MINUTE_S * MINUTE_S).max(MINUTE_S);
    }
    let ratio = RATIO_THOUSANDTHS.at(Fraction::of_stratum(0, 1, random));
    let expected_s = duration_s * 1_000 / ratio.max(1);
    let expected_s = expected_s.min(EXPECTED_MAX_S).max(duration_s);
    expected_s.div_ceil(MINUTE_S).max(1) * MINUTE_S
}
