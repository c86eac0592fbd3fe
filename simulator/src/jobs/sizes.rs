//! How long jobs waited by how large they are: small jobs find room soon, and what a policy does
//! for the large ones is lost in the mean over all jobs.

use super::summary::{Hundredths, mean, quantile};
use super::{Run, Workload};

/// The classes of sizes: their names, and the fewest GPUs of a job of the class. A job is of the
/// last class whose number it reaches.
pub const CLASSES: [(&str, u32); 4] = [("1", 1), ("2-7", 2), ("8-63", 8), ("64+", 64)];

/// How long the jobs of one class waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits {
    /// The class, an index into [`CLASSES`].
    pub class: usize,
    /// How many jobs ran to their ends. A job that does not takes part in none of the figures.
    pub jobs: u64,
    /// The mean time that jobs waited: before their first start, and after each eviction.
    pub mean: Hundredths,
    /// The median of the waits, in seconds; `None`: there are no jobs.
    pub median_s: Option<u64>,
    /// The 99th percentile of the waits, in seconds, as in
    /// [`Summary::wait_p99_s`](super::summary::Summary); `None`: there are no jobs.
    pub p99_s: Option<u64>,
}

/// The class of a job with so many GPUs, an index into [`CLASSES`].
#[must_use]
pub fn class(gpus: u32) -> usize {
    let reached = CLASSES.partition_point(|(_, fewest)| *fewest <= gpus);
    reached.saturating_sub(1)
}

/// The waits of each class of which the trace has jobs, the smallest first.
#[must_use]
pub fn waits(run: &Run, workload: Workload<'_>) -> Vec<Waits> {
    let mut of_classes: [Option<Vec<u64>>; CLASSES.len()] = Default::default();
    for (index, job) in workload.jobs.jobs.iter().enumerate() {
        let waits_s = of_classes[class(job.num_gpus)].get_or_insert_default();
        waits_s.extend(run.waited_s(index, job));
    }
    let of_classes = of_classes.into_iter().enumerate();
    let waits = of_classes.filter_map(|(class, waits_s)| {
        let mut waits_s = waits_s?;
        Some(Waits {
            class,
            jobs: waits_s.len() as u64,
            mean: mean(waits_s.iter().copied().map(u128::from).sum(), waits_s.len()),
            median_s: quantile(&mut waits_s, 50),
            p99_s: quantile(&mut waits_s, 99),
        })
    });
    waits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_reaches_from_its_number_to_the_next_one() {
        let of = [1, 2, 7, 8, 63, 64, 1_024].map(|gpus| CLASSES[class(gpus)].0);
        assert_eq!(of, ["1", "2-7", "2-7", "8-63", "8-63", "64+", "64+"]);
    }
}
