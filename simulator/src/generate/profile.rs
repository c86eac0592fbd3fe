//! The clusters that a trace can be like.
//!
//! Of each cluster three numbers are published or measured, and met by its tables: the mean of
//! GPUs, the mean and the median of durations. The rest of a table is measured where the data is
//! public, and assumed where it is not; `docs/traces.md` says which.

use super::draw::Quantiles;

/// A cluster of which a trace is public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Like {
    /// Microsoft's Philly in 2017 (Jeon et al., USENIX ATC 2019).
    Philly,
    /// SenseTime's four Helios clusters in 2020 (Hu et al., SC 2021).
    Helios,
    /// Alibaba's GPU cluster of the openb trace, 2023 (Weng et al., USENIX ATC 2023). A job with a
    /// share of a GPU counts as a job with one GPU.
    Openb,
}

impl Like {
    /// The tables of this cluster.
    #[must_use]
    pub fn profile(self) -> &'static Profile {
        match self {
            Self::Philly => &PHILLY,
            Self::Helios => &HELIOS,
            Self::Openb => &OPENB,
        }
    }
}

/// The statistics of a real trace from which jobs are drawn.
#[derive(Debug)]
pub struct Profile {
    /// GPUs of the real cluster.
    pub gpus: u32,
    /// Queues of the real cluster.
    pub queues: u32,
    /// The real GPUs of a job, on average.
    pub mean_gpus: f64,
    /// The real seconds that a job ran, on average.
    pub mean_duration_s: f64,
    /// The real seconds that half of the jobs did not exceed.
    pub median_duration_s: f64,
    pub(super) sizes: &'static [Size],
    durations: &'static [Quantiles],
    /// How many jobs arrive in each hour of the day, compared with each other.
    pub(super) hours: [u32; 24],
    /// How many jobs arrive on each weekday from Monday, compared with each other.
    pub(super) weekdays: [u32; 7],
}

/// Jobs of one size.
#[derive(Debug)]
pub(super) struct Size {
    gpus: u32,
    /// How many of 100,000 jobs have this size.
    pub(super) weight: u32,
    /// Index into the durations of the profile.
    durations: usize,
}

impl Profile {
    /// The durations of the jobs of a size, by its index.
    pub(super) fn durations(&self, size: usize) -> &Quantiles {
        &self.durations[self.sizes[size].durations]
    }

    /// The sizes in GPUs in a cluster where a job has at most `largest` GPUs. A larger size becomes
    /// the largest size of the profile that fits. `largest` is at least 1.
    pub(super) fn gpus(&self, largest: u32) -> Vec<u32> {
        let fits = |size: &&Size| size.gpus <= largest;
        let cut = self.sizes.iter().rfind(fits).map_or(1, |size| size.gpus);
        self.sizes.iter().map(|size| size.gpus.min(cut)).collect()
    }

    /// A thousand times the GPU seconds that a job needs on average, in a cluster where a job has
    /// at most `largest` GPUs.
    pub(super) fn gpu_seconds_thousandths(&self, largest: u32) -> u128 {
        let weights: u64 = self.sizes.iter().map(|size| u64::from(size.weight)).sum();
        let sizes = self.sizes.iter().zip(self.gpus(largest));
        let needed = sizes.map(|(size, gpus)| {
            let mean = self.durations[size.durations].mean_thousandths();
            u64::from(size.weight) * u64::from(gpus) * mean
        });
        u128::from(needed.sum::<u64>() / weights)
    }
}

const fn size(gpus: u32, weight: u32, durations: usize) -> Size {
    Size {
        gpus,
        weight,
        durations,
    }
}

const PHILLY: Profile = Profile {
    gpus: 2_816,
    queues: 11,
    mean_gpus: 1.93,
    mean_duration_s: 18_006.1,
    median_duration_s: 874.0,
    sizes: &[
        size(1, 83_100, 0),
        size(2, 5_000, 1),
        size(4, 5_000, 2),
        size(8, 5_400, 3),
        size(16, 1_000, 3),
        size(32, 400, 3),
        size(64, 75, 3),
        size(128, 25, 3),
    ],
    durations: &[
        Quantiles([1, 27, 34, 142, 765, 1_430, 3_750, 7_650, 58_900, 1_090_000]),
        Quantiles([1, 4, 5, 29, 178, 3_920, 85_500, 137_000, 397_000, 535_000]),
        Quantiles([
            9, 42, 73, 343, 13_200, 47_500, 109_000, 229_000, 594_000, 821_000,
        ]),
        Quantiles([
            7, 80, 192, 2_490, 46_700, 102_000, 222_000, 318_000, 887_000, 2_550_000,
        ]),
    ],
    hours: [
        57, 51, 56, 38, 20, 51, 71, 102, 43, 40, 41, 31, 36, 24, 26, 22, 40, 28, 24, 21, 48, 36,
        51, 44,
    ],
    weekdays: [122, 156, 147, 178, 202, 99, 96],
};

const HELIOS: Profile = Profile {
    gpus: 6_216,
    queues: 16,
    mean_gpus: 3.72,
    mean_duration_s: 6_651.7,
    median_duration_s: 206.0,
    sizes: &[
        size(1, 66_600, 0),
        size(2, 7_000, 1),
        size(4, 8_000, 1),
        size(8, 13_650, 1),
        size(16, 2_650, 2),
        size(32, 1_550, 2),
        size(64, 380, 2),
        size(128, 120, 2),
        size(256, 35, 2),
        size(512, 11, 2),
        size(1_024, 4, 2),
    ],
    durations: &[
        Quantiles([1, 5, 9, 39, 140, 700, 4_670, 15_600, 70_000, 306_000]),
        Quantiles([1, 8, 16, 62, 233, 1_950, 15_600, 38_900, 125_000, 550_000]),
        Quantiles([2, 12, 23, 93, 467, 6_230, 38_900, 70_000, 156_000, 913_000]),
    ],
    hours: [
        30, 24, 20, 17, 15, 15, 17, 21, 32, 49, 58, 57, 45, 47, 58, 61, 61, 58, 48, 50, 55, 58, 56,
        48,
    ],
    weekdays: [156, 158, 158, 157, 153, 110, 108],
};

const OPENB: Profile = Profile {
    gpus: 6_208,
    queues: 12,
    mean_gpus: 1.052,
    mean_duration_s: 27_175.7,
    median_duration_s: 545.0,
    sizes: &[
        size(1, 98_940, 0),
        size(2, 230, 1),
        size(4, 210, 1),
        size(8, 620, 1),
    ],
    durations: &[
        Quantiles([
            1, 43, 74, 175, 544, 1_980, 6_030, 14_100, 106_000, 4_480_000,
        ]),
        Quantiles([
            23, 40, 55, 250, 561, 8_010, 60_100, 120_000, 914_000, 2_990_000,
        ]),
    ],
    hours: [
        30, 19, 29, 27, 20, 18, 17, 24, 39, 52, 70, 59, 47, 52, 51, 64, 61, 53, 42, 56, 54, 41, 37,
        39,
    ],
    weekdays: [1; 7],
};
