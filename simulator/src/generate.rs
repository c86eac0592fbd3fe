//! Traces that are drawn from a seed and look like those of real clusters.
//!
//! For users without data: a month of jobs at once, with the sizes, durations and hours of arrival
//! of a published trace, and queues to go with it. A [`profile`] says what is drawn and where its
//! numbers come from. Only whole numbers are used, so that a seed gives the same bytes on every
//! machine.
//!
//! The jobs do not depend on each other. In real traces they do: users submit sweeps of equal jobs
//! at once, and submit jobs again that have failed.

mod draw;
mod expected;
pub mod profile;
mod scale;
pub mod statistics;
#[cfg(test)]
mod tests;

use crate::random::Random;
use crate::trace::jobs::{Job, Jobs};
use crate::trace::queues::TraceQueue;
use draw::{Fraction, Weighted, shuffle};
pub use expected::Expected;
use profile::{Like, Profile};
pub use scale::{Scale, ScaleError};

/// GPUs of each node.
pub const GPUS_PER_NODE: u32 = 8;

const HOUR_S: u64 = 3_600;
const DAY_HOURS: u64 = 24;

/// A queue's share of the work is its share of the nodes times a percentage between these two,
/// drawn for each queue. So some queues have too few nodes, and others lend theirs.
const DEMAND_PERCENT: (u64, u64) = (70, 130);

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The real trace that the new one should be like.
    pub like: Like,
    /// Equal seeds give equal traces; another seed gives a different month of the same kind.
    pub seed: u64,
    /// Over how many days submissions are spread, from a Monday 0:00.
    pub days: u32,
    /// How much work there is for how many GPUs.
    pub scale: Scale,
    /// How many queues share the cluster. `None`: as many as in the real cluster, but no more than
    /// there are nodes.
    pub queues: Option<u32>,
}

/// A trace and the queues that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The jobs, by time of submission.
    pub jobs: Jobs,
    /// The queues by size, the largest first. Their nodes are the cluster.
    pub queues: Vec<TraceQueue>,
}

/// Draws a trace.
///
/// A job is never larger than the nodes of the queue that submits it. In a cluster whose largest
/// queue is smaller than the profile's largest jobs, these jobs are as large as fits.
///
/// # Errors
/// If the settings contradict each other or ask for more than a trace can hold.
pub fn generate(settings: &Settings) -> Result<Trace, ScaleError> {
    let profile = settings.like.profile();
    let size = scale::resolve(settings, profile)?;
    let mut random = Random::new(settings.seed);
    let demand = Demand::new(profile, &size.queues, &mut random);
    let arrivals = arrivals_s(profile, size.jobs, settings.days, &mut random);
    let work = work(profile, size.jobs, &mut random);
    let mut jobs = Vec::with_capacity(arrivals.len());
    for ((row, submit_s), (kind, duration_s)) in (1..).zip(arrivals).zip(work) {
        jobs.push(Job {
            row,
            submit_s,
            duration_s,
            num_gpus: demand.gpus[kind],
            queue: index(demand.queues[kind].pick(&mut random)),
            checkpoint_s: None,
            expected_s: None,
            owner: None,
        });
    }
    let queues = size.queues;
    let names = queues.iter().map(|queue| queue.name.clone()).collect();
    Ok(Trace {
        jobs: Jobs {
            jobs,
            queues: names,
            owners: Vec::new(),
        },
        queues,
    })
}

/// Divides nodes among queues of skewed size: the k-th queue gets a share like 1/(k+1), and at
/// least one node.
fn queues(nodes: u32, count: u32) -> Vec<TraceQueue> {
    let weight = |k: u32| u64::from(u32::MAX) / u64::from(k + 2);
    let total: u64 = (0..count).map(weight).sum();
    let spare = u64::from(nodes - count);
    let share = |k: u32| u32::try_from(spare * weight(k) / total).unwrap_or(nodes);
    let mut left = nodes - count - (0..count).map(share).sum::<u32>();
    let queue = |k: u32| {
        let rest = u32::from(left > 0);
        left -= rest;
        TraceQueue {
            name: format!("team-{:02}", k + 1),
            nodes: 1 + share(k) + rest,
        }
    };
    (0..count).map(queue).collect()
}

fn gpus_of(queue: &TraceQueue) -> u32 {
    queue.nodes.saturating_mul(GPUS_PER_NODE)
}

/// The GPUs of the largest queue.
fn largest_gpus(queues: &[TraceQueue]) -> u32 {
    queues.iter().map(gpus_of).max().unwrap_or_default()
}

/// The sizes of jobs and the queues that submit them, prepared for drawing.
struct Demand {
    /// By index of the profile's sizes: the GPUs of such jobs in this cluster.
    gpus: Vec<u32>,
    /// By index of the profile's sizes: the queues whose nodes have room for such a job.
    queues: Vec<Weighted>,
}

impl Demand {
    fn new(profile: &Profile, queues: &[TraceQueue], random: &mut Random) -> Self {
        let gpus = profile.gpus(largest_gpus(queues));
        let (low, high) = DEMAND_PERCENT;
        let mut weight = |queue: &TraceQueue| u64::from(queue.nodes) * random.between(low, high);
        let weights: Vec<u64> = queues.iter().map(&mut weight).collect();
        let fitting = |gpus: &u32| {
            let fits = queues.iter().map(|queue| gpus_of(queue) >= *gpus);
            let weights = fits.zip(&weights);
            Weighted::new(weights.map(|(fits, weight)| if fits { *weight } else { 0 }))
        };
        Self {
            queues: gpus.iter().map(fitting).collect(),
            gpus,
        }
    }
}

/// The jobs as indexes of the profile's sizes, and their durations, in no order.
///
/// The jobs are drawn in strata. If they were drawn one by one, a few jobs of a hundred GPUs for a
/// month would decide how much work there is, and a month would be like the profile only on
/// average.
fn work(profile: &Profile, jobs: u64, random: &mut Random) -> Vec<(usize, u64)> {
    let kinds = Weighted::new(profile.sizes.iter().map(|size| u64::from(size.weight)));
    let mut counts = vec![0; profile.sizes.len()];
    for stratum in 0..jobs {
        counts[kinds.at(Fraction::of_stratum(stratum, jobs, random))] += 1;
    }
    let mut work = Vec::new();
    for (kind, count) in counts.into_iter().enumerate() {
        let durations = profile.durations(kind);
        for stratum in 0..count {
            let fraction = Fraction::of_stratum(stratum, count, random);
            work.push((kind, durations.at(fraction)));
        }
    }
    shuffle(&mut work, random);
    work
}

/// When jobs are submitted, in order: by weekday and hour as the profile says, anywhere within
/// the hour.
fn arrivals_s(profile: &Profile, jobs: u64, days: u32, random: &mut Random) -> Vec<u64> {
    let weekdays = profile.weekdays.iter().cycle().take(days as usize);
    let hours =
        weekdays.flat_map(|day| profile.hours.iter().map(move |hour| u64::from(day * hour)));
    let hours = Weighted::new(hours);
    let mut arrivals: Vec<u64> = (0..jobs)
        .map(|_| hours.pick(random) as u64 * HOUR_S + random.below(HOUR_S))
        .collect();
    arrivals.sort_unstable();
    arrivals
}

fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
