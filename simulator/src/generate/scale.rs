//! How much work there is for how large a cluster. Of the numbers of jobs, GPUs and load, two give
//! the third.

use super::profile::Profile;
use super::{DAY_HOURS, GPUS_PER_NODE, HOUR_S, Settings};
use crate::trace::queues::{NODES_MAX, TraceQueue};
use thiserror::Error;

/// The most jobs of a trace: years of the busiest published cluster, and about half a gigabyte of
/// memory.
const JOBS_MAX: u64 = 10_000_000;

/// The most days of a trace: ten years.
const DAYS_MAX: u32 = 3_660;

const LOAD_PERCENT_MAX: u32 = 1_000;

/// Which sizes of the trace are given. The others follow from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The load and the cluster. There are so many jobs that they ask for this part of its GPU
    /// time.
    Cluster {
        /// How many GPUs; `None`: as many as the real cluster had.
        gpus: Option<u32>,
        /// Percent of the GPU time that the jobs are expected to need.
        load_percent: u32,
    },
    /// The load and the number of jobs. The cluster has as many GPUs as the jobs need.
    Jobs {
        /// How many jobs.
        jobs: u64,
        /// Percent of the GPU time that the jobs are expected to need.
        load_percent: u32,
    },
    /// The jobs and the cluster. The load follows from them.
    Both {
        /// How many jobs.
        jobs: u64,
        /// How many GPUs.
        gpus: u32,
    },
}

/// Settings from which no trace can be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScaleError {
    /// A number is not within its bounds.
    #[error("{name}: {value} is not from {min} to {max}")]
    OutOfRange {
        /// The name of the number.
        name: &'static str,
        /// The value that was given, or worked out.
        value: u64,
        /// The smallest possible value.
        min: u64,
        /// The largest possible value.
        max: u64,
    },
}

/// The sizes of a trace, all within their bounds.
pub(super) struct Size {
    pub(super) jobs: u64,
    pub(super) queues: Vec<TraceQueue>,
}

pub(super) fn resolve(settings: &Settings, profile: &Profile) -> Result<Size, ScaleError> {
    within("days", settings.days.into(), 1, DAYS_MAX.into())?;
    if let Scale::Cluster { load_percent, .. } | Scale::Jobs { load_percent, .. } = settings.scale {
        within("load", load_percent.into(), 1, LOAD_PERCENT_MAX.into())?;
    }
    if let Scale::Both { jobs, .. } | Scale::Jobs { jobs, .. } = settings.scale {
        within("jobs", jobs, 1, JOBS_MAX)?;
    }
    let node = u64::from(GPUS_PER_NODE);
    let gpus = match settings.scale {
        Scale::Both { gpus, .. } => gpus.into(),
        Scale::Cluster { gpus, .. } => gpus.unwrap_or(profile.gpus).into(),
        Scale::Jobs { jobs, load_percent } => {
            // Counted as if the largest jobs fit: how far they are cut depends on the number of
            // GPUs, which is worked out here.
            let needed = u128::from(jobs) * profile.gpu_seconds_thousandths(u32::MAX);
            let gpus = clamped(needed.div_ceil(offered(1, settings.days, load_percent)));
            gpus.div_ceil(node).saturating_mul(node)
        }
    };
    within("gpus", gpus, node, u64::from(NODES_MAX) * node)?;
    let nodes = u32::try_from(gpus / node).unwrap_or(NODES_MAX);
    let count = settings.queues.unwrap_or(profile.queues.min(nodes));
    within("queues", count.into(), 1, nodes.into())?;
    let queues = super::queues(nodes, count);
    let jobs = match settings.scale {
        Scale::Both { jobs, .. } | Scale::Jobs { jobs, .. } => jobs,
        Scale::Cluster { load_percent, .. } => {
            let needed = profile.gpu_seconds_thousandths(super::largest_gpus(&queues));
            clamped(offered(gpus, settings.days, load_percent) / needed)
        }
    };
    within("jobs", jobs, 1, JOBS_MAX)?;
    Ok(Size { jobs, queues })
}

/// A thousand times the GPU seconds that jobs may need for this load.
fn offered(gpus: u64, days: u32, load_percent: u32) -> u128 {
    let time_s = u64::from(days) * DAY_HOURS * HOUR_S;
    u128::from(gpus) * u128::from(time_s) * u128::from(load_percent) * 10
}

fn clamped(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn within(name: &'static str, value: u64, min: u64, max: u64) -> Result<(), ScaleError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ScaleError::OutOfRange {
        name,
        value,
        min,
        max,
    })
}
