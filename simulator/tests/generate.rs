//! Generated traces beside the real ones whose files are at hand.
//!
//! The real traces are not part of the project; `GPU_BATCH_TRACES` says where they are.

#[path = "shared/public_traces.rs"]
mod public_traces;

use gpu_batch_simulator::generate::profile::Like;
use gpu_batch_simulator::generate::statistics::Statistics;
use gpu_batch_simulator::generate::{Scale, Settings, generate};
use gpu_batch_simulator::input::Table;
use gpu_batch_simulator::trace::jobs::Jobs;

/// When the first job of the Philly extract was submitted: on a Monday, 10:30:41.
const PHILLY_START_S: u64 = 37_841;

fn like(like: Like, jobs: u64, gpus: u32) -> Settings {
    Settings {
        like,
        seed: 1,
        days: 28,
        scale: Scale::Both { jobs, gpus },
        queues: None,
    }
}

/// How large a part of the jobs arrives in each of `count` periods of `length_s`.
fn shares(arrivals_s: &[u64], length_s: u64, count: u64) -> Vec<f64> {
    let periods = arrivals_s.iter().map(|at_s| at_s / length_s % count);
    let periods: Vec<u64> = periods.collect();
    let of = |period: u64| periods.iter().filter(|other| **other == period).count();
    (0..count)
        .map(|period| of(period) as f64 / periods.len() as f64)
        .collect()
}

#[test]
fn jobs_arrive_by_the_hours_and_weekdays_of_philly() {
    let real = Jobs::read(&public_traces::file("philly/philly_jobs_sep_oct.csv.gz")).unwrap();
    let made = generate(&like(Like::Philly, real.jobs.len() as u64, 2_816)).unwrap();
    let real_s = real.jobs.iter().map(|job| PHILLY_START_S + job.submit_s);
    let real_s: Vec<u64> = real_s.collect();
    let made_s: Vec<u64> = made.jobs.jobs.iter().map(|job| job.submit_s).collect();
    for (length_s, count) in [(3_600, 24), (86_400, 7)] {
        let pairs = shares(&real_s, length_s, count)
            .into_iter()
            .zip(shares(&made_s, length_s, count));
        for (period, (real, made)) in pairs.enumerate() {
            println!("{length_s} s, {period}: real {real:.3}, generated {made:.3}");
            assert!((real - made).abs() < 0.01, "{real} {made}");
        }
    }
}

#[test]
fn sizes_and_durations_are_those_of_openb() {
    let columns = ["num_gpu", "creation_time", "deletion_time"];
    let path = public_traces::file("openb/openb_pod_list_default.csv.gz");
    let mut table = Table::open(&path, &columns, &[]).unwrap();
    let (mut gpus, mut durations) = (Vec::new(), Vec::new());
    while let Some(row) = table.next_row().unwrap() {
        let [number, created_s, deleted_s] =
            [0, 1, 2].map(|column| row.whole(column, u64::MAX).unwrap());
        if number > 0 {
            gpus.push(number);
            durations.push(deleted_s - created_s);
        }
    }
    durations.sort_unstable();
    let count = gpus.len() as f64;
    let real_gpus = gpus.iter().sum::<u64>() as f64 / count;
    let real_mean_s = durations.iter().sum::<u64>() as f64 / count;
    let real_median_s = durations[durations.len() / 2] as f64;
    let made = generate(&like(Like::Openb, 100_000, 6_208)).unwrap();
    let made = Statistics::of(&made, 28);
    let pairs = [
        ("mean GPUs", real_gpus, made.mean_gpus),
        ("mean duration", real_mean_s, made.mean_duration_s),
        ("median", real_median_s, made.median_duration_s as f64),
    ];
    for (what, real, made) in pairs {
        println!("{what}: real {real:.2}, generated {made:.2}");
        assert!((made / real - 1.0).abs() < 0.02, "{what}: {real} {made}");
    }
}
