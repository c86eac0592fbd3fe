//! Statistics of a trace: the numbers that are published of real traces.

use super::{GPUS_PER_NODE, Trace};
use crate::trace::jobs::Job;
use crate::trace::queues;
use serde::Serialize;

/// The numbers of one trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    /// How many jobs there are.
    pub jobs: u64,
    /// GPUs of all nodes.
    pub gpus: u64,
    /// GPUs of a job, on average.
    pub mean_gpus: f64,
    /// GPUs of the largest job.
    pub largest_gpus: u32,
    /// Seconds that a job runs, on average.
    pub mean_duration_s: f64,
    /// Seconds that half of the jobs do not exceed.
    pub median_duration_s: u64,
    /// Percent of the cluster's GPU time that the jobs need.
    pub load_percent: f64,
}

impl Statistics {
    /// Measures a trace whose jobs were submitted within so many days.
    #[must_use]
    pub fn of(trace: &Trace, days: u32) -> Self {
        let jobs = &trace.jobs.jobs;
        let mut durations: Vec<u64> = jobs.iter().map(|job| job.duration_s).collect();
        durations.sort_unstable();
        let nodes = queues::nodes(&trace.queues);
        let gpus = nodes * u64::from(GPUS_PER_NODE);
        let sum = |value: fn(&Job) -> f64| jobs.iter().map(value).sum::<f64>();
        let count = jobs.len().max(1) as f64;
        let gpu_seconds = sum(|job| job.duration_s as f64 * f64::from(job.num_gpus));
        let offered = gpus as f64 * f64::from(days) * 86_400.0;
        Self {
            jobs: jobs.len() as u64,
            gpus,
            mean_gpus: sum(|job| f64::from(job.num_gpus)) / count,
            largest_gpus: jobs
                .iter()
                .map(|job| job.num_gpus)
                .max()
                .unwrap_or_default(),
            mean_duration_s: sum(|job| job.duration_s as f64) / count,
            median_duration_s: durations.get(jobs.len() / 2).copied().unwrap_or_default(),
            load_percent: 100.0 * gpu_seconds / offered.max(1.0),
        }
    }
}
