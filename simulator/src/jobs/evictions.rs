//! Evictions of jobs: who had to leave for whom, and which work was lost.
//!
//! An evicted job goes back to its queue at once, with new pods, as its controller would make them,
//! and with what it has not saved still to do. Jobs are rigid: when one pod is evicted, all pods of
//! the job end. Work is saved after each [`Job::checkpoint_s`] of running, and what was saved by an
//! earlier run stays saved. Pods leave without a grace period, and to save and to load takes no
//! time, so of the GPU time that a job holds nothing is useful but its work, and nothing is lost
//! but work: what all runs of a job held is its duration and what it lost.

#[cfg(test)]
mod tests;

use super::{Run, Workload};
use crate::trace::jobs::Job;
use gpu_batch_policies::command::EvictionCause;
use std::collections::BTreeMap;

/// A job was evicted while it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eviction {
    /// The index of the job in the trace.
    pub job: usize,
    /// When the run of the job began that the eviction ended, in seconds.
    pub start_s: u64,
    /// When the job was evicted, in seconds.
    pub at_s: u64,
    /// By which right it was evicted.
    pub cause: EvictionCause,
    /// The index of the job that got the room; `None`: it was evicted for nobody.
    pub beneficiary: Option<usize>,
    /// How many seconds of the job's work are saved, by all its runs.
    pub saved_s: u64,
    /// How many seconds of the job's work were lost.
    pub lost_s: u64,
}

impl Eviction {
    /// How much work was lost, in GPU-seconds.
    #[must_use]
    pub fn lost_gpu_s(&self, job: &Job) -> u64 {
        self.lost_s.saturating_mul(job.num_gpus.into())
    }
}

/// Some evictions together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// How many evictions.
    pub evictions: u64,
    /// How much work was lost, in GPU-seconds.
    pub lost_gpu_s: u64,
}

impl Losses {
    /// Counts one more eviction.
    pub fn add(&mut self, eviction: &Eviction, job: &Job) {
        self.evictions += 1;
        self.lost_gpu_s = self.lost_gpu_s.saturating_add(eviction.lost_gpu_s(job));
    }

    /// What tables show: how many evictions, and how much work was lost, in GPU-hours with one
    /// decimal.
    #[must_use]
    pub fn shown(&self) -> [String; 2] {
        let tenths = self.lost_gpu_s.saturating_add(180) / 360;
        let hours = format!("{}.{}", tenths / 10, tenths % 10);
        [self.evictions.to_string(), hours]
    }
}

/// Who gave and who got: two queues, as indices into [`Workload::queues`]. The second is `None`
/// where nobody got the room.
pub type Pair = (usize, Option<usize>);

impl Run {
    /// The evictions of a job, the first one first.
    #[must_use]
    pub fn evictions_of(&self, index: usize) -> &[Eviction] {
        let from = self.evictions.partition_point(|it| it.job < index);
        let rest = &self.evictions[from..];
        &rest[..rest.partition_point(|it| it.job == index)]
    }

    /// When a job started for the first time, in seconds; `None`: it never started.
    #[must_use]
    pub fn first_start_s(&self, index: usize) -> Option<u64> {
        let evicted = self.evictions_of(index).first();
        evicted.map_or(self.starts_s[index], |eviction| Some(eviction.start_s))
    }

    /// When a job ended, in seconds; `None`: it never started, or not again after an eviction.
    #[must_use]
    pub fn end_s(&self, index: usize, job: &Job) -> Option<u64> {
        let start_s = self.starts_s.get(index).copied().flatten()?;
        let saved_s = self.evictions_of(index).last().map_or(0, |it| it.saved_s);
        Some(start_s.saturating_add(job.duration_s - saved_s))
    }

    /// From when to when each run of a job held its GPUs, in seconds, the first run first.
    pub fn runs_s(&self, index: usize, job: &Job) -> impl Iterator<Item = (u64, u64)> {
        let evicted = self.evictions_of(index).iter();
        let evicted = evicted.map(|eviction| (eviction.start_s, eviction.at_s));
        evicted.chain(self.starts_s[index].zip(self.end_s(index, job)))
    }

    /// How long a job waited in all, in seconds: before its first start, and after each eviction.
    /// `None`: it did not come to its end.
    #[must_use]
    pub fn waited_s(&self, index: usize, job: &Job) -> Option<u64> {
        let end_s = self.end_s(index, job)?;
        let ran_s: u64 = self.runs_s(index, job).map(|(from, to)| to - from).sum();
        Some(end_s.saturating_sub(job.submit_s).saturating_sub(ran_s))
    }

    /// What evictions have taken, by who gave and who got.
    #[must_use]
    pub fn losses(&self, workload: Workload<'_>) -> BTreeMap<Pair, Losses> {
        let places = workload.queues_of_trace();
        let jobs = &workload.jobs.jobs;
        let queue = |job: usize| places[jobs[job].queue as usize];
        let mut losses: BTreeMap<Pair, Losses> = BTreeMap::new();
        for eviction in &self.evictions {
            // A job that ran has a queue.
            let Some(gave) = queue(eviction.job) else {
                continue;
            };
            let pair = (gave, eviction.beneficiary.and_then(queue));
            let losses = losses.entry(pair).or_default();
            losses.add(eviction, &jobs[eviction.job]);
        }
        losses
    }
}

/// How far the jobs of a cluster have come that may be evicted.
#[derive(Debug, Default)]
pub(super) struct Courses(BTreeMap<usize, Course>);

#[derive(Debug, Default)]
struct Course {
    /// The number of the present run: how many were evicted before.
    run: u32,
    /// When the present run began, in seconds; `None`: the job waits.
    start_s: Option<u64>,
    saved_s: u64,
}

impl Courses {
    /// Notes that a run of a job has begun.
    pub(super) fn start(&mut self, number: usize, at_s: u64) {
        self.0.entry(number).or_default().start_s = Some(at_s);
    }

    /// Whether a job has ever started.
    pub(super) fn has_started(&self, number: usize) -> bool {
        self.0.contains_key(&number)
    }

    /// How long a job has still to run, in seconds, after its last save.
    pub(super) fn left_s(&self, number: usize, job: &Job) -> u64 {
        let saved_s = self.0.get(&number).map_or(0, |course| course.saved_s);
        job.duration_s - saved_s
    }

    /// Notes that a pod of a run was evicted. `None`: another pod of the run was evicted before.
    pub(super) fn evict(
        &mut self,
        (number, run): (usize, u32),
        job: &Job,
        at_s: u64,
        (cause, beneficiary): (EvictionCause, Option<usize>),
    ) -> Option<Eviction> {
        let course = self.0.get_mut(&number)?;
        let start_s = course.start_s.filter(|_| course.run == run)?;
        let ran_s = at_s - start_s;
        let saved_s = job
            .checkpoint_s
            .map_or(0, |every_s| ran_s - ran_s % every_s);
        *course = Course {
            run: run + 1,
            start_s: None,
            saved_s: course.saved_s + saved_s,
        };
        Some(Eviction {
            job: number,
            start_s,
            at_s,
            cause,
            beneficiary,
            saved_s: course.saved_s,
            lost_s: ran_s - saved_s,
        })
    }
}
