//! The summary of a run, queue by queue: how long jobs waited and took.

use super::{Run, Workload};

/// Figures of the jobs of one queue, or of all queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The queue, an index into [`Workload::queues`]; `None`: all queues.
    pub queue: Option<usize>,
    /// How many jobs ran to their ends. A job that does not takes part in none of the figures.
    pub jobs: u64,
    /// The mean time from submission to end.
    pub completion: Hundredths,
    /// The mean time that jobs waited: before their first start, and after each eviction.
    pub wait: Hundredths,
    /// The 99th percentile of the waits, in seconds: the wait at index `jobs * 99 / 100` from 0, in
    /// order of length. 0 if no job started.
    pub wait_p99_s: u64,
    /// Seconds from the first submission to the last end.
    pub makespan_s: u64,
}

/// A mean in hundredths of a second, rounded to the nearest; `None`: there are no values.
pub type Hundredths = Option<u64>;

/// The summary of each queue that has jobs in the trace, in the order of the queues, and of all
/// queues together as the last.
#[must_use]
pub fn summaries(run: &Run, workload: Workload<'_>) -> Vec<Summary> {
    let places = workload.queues_of_trace();
    let mut figures: Vec<Option<Figures>> = vec![None; workload.queues.len()];
    let mut all = Figures::default();
    for (index, job) in workload.jobs.jobs.iter().enumerate() {
        let Some(queue) = places[job.queue as usize] else {
            continue;
        };
        let figures = figures[queue].get_or_insert_default();
        let (Some(wait_s), Some(end_s)) = (run.waited_s(index, job), run.end_s(index, job)) else {
            continue;
        };
        for figures in [figures, &mut all] {
            figures.waits_s.push(wait_s);
            figures.completion_s += u128::from(end_s - job.submit_s);
            figures.first_s = figures.first_s.min(job.submit_s);
            figures.last_s = figures.last_s.max(end_s);
        }
    }
    let of_queues = figures.into_iter().enumerate();
    let rows = of_queues.filter_map(|(queue, figures)| Some(figures?.summary(Some(queue))));
    rows.chain([all.summary(None)]).collect()
}

#[derive(Debug, Clone)]
struct Figures {
    waits_s: Vec<u64>,
    completion_s: u128,
    first_s: u64,
    last_s: u64,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            waits_s: Vec::new(),
            completion_s: 0,
            first_s: u64::MAX,
            last_s: 0,
        }
    }
}

impl Figures {
    fn summary(mut self, queue: Option<usize>) -> Summary {
        let jobs = self.waits_s.len();
        let wait_s = self.waits_s.iter().copied().map(u128::from).sum();
        Summary {
            queue,
            jobs: jobs as u64,
            completion: mean(self.completion_s, jobs),
            wait: mean(wait_s, jobs),
            wait_p99_s: quantile(&mut self.waits_s, 99).unwrap_or(0),
            makespan_s: self.last_s.saturating_sub(self.first_s),
        }
    }
}

/// The value at index `count * percent / 100` from 0, in order of size; `None`: there are no
/// values. `percent` is below 100. Reorders the values.
pub(crate) fn quantile<N: Copy + Ord>(values: &mut [N], percent: usize) -> Option<N> {
    let place = values.len() * percent / 100;
    (!values.is_empty()).then(|| *values.select_nth_unstable(place).1)
}

/// The mean of so many values with this sum, in seconds.
pub(super) fn mean(sum_s: u128, count: usize) -> Hundredths {
    let count = count as u128;
    let rounded = (sum_s * 200 + count).checked_div(2 * count)?;
    u64::try_from(rounded).ok()
}

/// A mean as the files have it: seconds with two decimals; empty if there is no mean.
#[must_use]
pub fn seconds(mean: Hundredths) -> String {
    mean.map_or_else(String::new, |mean| {
        format!("{}.{:02}", mean / 100, mean % 100)
    })
}
