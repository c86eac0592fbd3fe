//! How evenly a run served the queues, and how much of the cluster it used.
//!
//! How a queue is *served* is the part of its quota that it got while it asked for it: the GPU time
//! that its jobs held up to its quota, over the GPU time that they held or waited for up to its
//! quota. 1: whenever the queue had jobs, it had its quota, or all that it wanted. GPUs that the
//! queue borrows beyond its quota do not count, so the measure also suits policies that never lend.
//! What an evicted job has held counts as held, also where its work was lost: what is lost is told
//! beside, see [`Losses`](super::evictions::Losses).

use super::{Run, Workload};

/// How a run served the queues.
#[derive(Debug, Clone, PartialEq)]
pub struct Fairness {
    /// The part of all GPU time that jobs held, from time 0 to the last submission, after which the
    /// cluster empties under every policy. If all jobs were submitted at once, to the last end.
    pub utilisation: f64,
    /// By queue of the workload: how it was served, from 0 to 1; `None`: it never asked for GPUs,
    /// or has no quota.
    pub served: Vec<Option<f64>>,
    /// Jain's index of how the queues were served: 1 if all were served alike, 1/n if only one of n
    /// was served at all (Jain, Chiu and Hawe, 1984).
    pub jain: f64,
}

impl Fairness {
    /// The queue that got the least of its quota, and how it was served.
    #[must_use]
    pub fn worst(&self) -> Option<(usize, f64)> {
        let served = self.served.iter().enumerate();
        let served = served.filter_map(|(queue, served)| Some((queue, (*served)?)));
        served.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The time until which the use of the cluster is measured, in seconds: the last submission, after
/// which the cluster runs empty. If all jobs were submitted at once, the last end.
fn measured_until_s(run: &Run, workload: Workload<'_>) -> u64 {
    let jobs = &workload.jobs.jobs;
    let submitted = jobs.first().zip(jobs.last());
    let (first_s, last_s) = submitted.map_or((0, 0), |(a, b)| (a.submit_s, b.submit_s));
    if first_s < last_s {
        return last_s;
    }
    let ends = jobs
        .iter()
        .enumerate()
        .filter_map(|(index, job)| run.end_s(index, job));
    ends.max().unwrap_or(0)
}

/// Measures a run.
#[must_use]
pub fn fairness(run: &Run, workload: Workload<'_>) -> Fairness {
    let places = workload.queues_of_trace();
    let mut changes: Vec<Vec<Change>> = vec![Vec::new(); workload.queues.len()];
    let jobs = &workload.jobs.jobs;
    let until_s = measured_until_s(run, workload);
    let mut busy = 0;
    for (index, job) in jobs.iter().enumerate() {
        let queue = places[job.queue as usize];
        let (Some(queue), Some(end_s)) = (queue, run.end_s(index, job)) else {
            continue;
        };
        let gpus = i64::from(job.num_gpus);
        changes[queue].extend([(job.submit_s, gpus, 0), (end_s, -gpus, 0)]);
        for (from_s, to_s) in run.runs_s(index, job) {
            let held_s = to_s.min(until_s).saturating_sub(from_s);
            busy += u128::from(job.num_gpus) * u128::from(held_s);
            changes[queue].extend([(from_s, 0, gpus), (to_s, 0, -gpus)]);
        }
    }
    let gpus = workload.gpus();
    let served: Vec<Option<f64>> = changes
        .into_iter()
        .zip(workload.queues)
        .map(|(changes, queue)| {
            let quota = i64::from(queue.nodes) * i64::from(workload.gpus_per_node);
            served(changes, quota)
        })
        .collect();
    Fairness {
        utilisation: ratio(busy, u128::from(gpus) * u128::from(until_s)).unwrap_or(0.0),
        jain: jain(&served),
        served,
    }
}

/// A time in seconds, and by how many GPUs two amounts of a queue change then: what its jobs hold
/// or wait for, and what they hold.
type Change = (u64, i64, i64);

fn served(mut changes: Vec<Change>, quota: i64) -> Option<f64> {
    changes.sort_unstable_by_key(|(at_s, ..)| *at_s);
    let (mut wanted, mut held) = (0, 0);
    let (mut due, mut got): (u128, u128) = (0, 0);
    let mut before_s = 0;
    for (at_s, more_wanted, more_held) in changes {
        let passed_s = u128::from(at_s - before_s);
        due += passed_s * part(wanted, quota);
        got += passed_s * part(held, quota);
        wanted += more_wanted;
        held += more_held;
        before_s = at_s;
    }
    ratio(got, due)
}

fn part(amount: i64, quota: i64) -> u128 {
    u128::try_from(amount.min(quota)).unwrap_or(0)
}

fn jain(served: &[Option<f64>]) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for served in served.iter().flatten() {
        count += 1.0;
        sum += served;
        squares += served * served;
    }
    if squares == 0.0 {
        1.0
    } else {
        sum * sum / (count * squares)
    }
}

fn ratio(part: u128, whole: u128) -> Option<f64> {
    // Readers look at no more than a part in a million.
    let millionths = (part * 1_000_000).checked_div(whole)?;
    Some(u32::try_from(millionths).map_or(f64::INFINITY, f64::from) / 1e6)
}
