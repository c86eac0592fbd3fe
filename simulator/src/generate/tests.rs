use super::statistics::Statistics;
use super::*;
use crate::jobs::expectations::expectations;
use crate::trace::queues;
use std::collections::BTreeSet;

const ALL: [Like; 3] = [Like::Philly, Like::Helios, Like::Openb];

fn month(like: Like, seed: u64) -> Settings {
    Settings {
        like,
        seed,
        days: 30,
        scale: Scale::Cluster {
            gpus: None,
            load_percent: 90,
        },
        queues: None,
    }
}

fn small(like: Like) -> Settings {
    Settings {
        scale: Scale::Both {
            jobs: 2_000,
            gpus: 256,
        },
        ..month(like, 7)
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325;
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    bytes.iter().fold(start, step)
}

fn written(trace: &Trace) -> (Vec<u8>, Vec<u8>) {
    let (mut jobs, mut nodes) = (Vec::new(), Vec::new());
    trace.jobs.write(&mut jobs).unwrap();
    queues::write(&trace.queues, &mut nodes).unwrap();
    (jobs, nodes)
}

#[test]
fn months_have_the_published_means_and_medians() {
    for (like, seed) in ALL.into_iter().flat_map(|like| [(like, 1), (like, 2)]) {
        let profile = like.profile();
        let found = Statistics::of(&generate(&month(like, seed)).unwrap(), 30);
        println!("{like:?} {seed}: {found:?}");
        let near = |found: f64, published: f64, percent: f64| {
            let off = 100.0 * (found / published - 1.0);
            assert!(
                off.abs() < percent,
                "{like:?} {seed}: {found} is {off} % off"
            );
        };
        near(found.mean_gpus, profile.mean_gpus, 1.0);
        near(found.mean_duration_s, profile.mean_duration_s, 1.0);
        near(
            found.median_duration_s as f64,
            profile.median_duration_s,
            2.0,
        );
        near(found.load_percent, 90.0, 3.0);
        assert_eq!(found.gpus, u64::from(profile.gpus));
        let largest = profile.gpus(u32::MAX).into_iter().max();
        assert_eq!(Some(found.largest_gpus), largest);
    }
}

#[test]
fn a_seed_gives_the_same_bytes_for_ever() {
    let bytes = |like| {
        let (jobs, nodes) = written(&generate(&small(like)).unwrap());
        checksum(&[jobs, nodes].concat())
    };
    assert_eq!(
        ALL.map(bytes),
        [
            11_605_707_060_448_519_363,
            8_004_285_739_983_994_411,
            12_452_767_383_184_100_463
        ]
    );
    let other = Settings {
        seed: 8,
        ..small(Like::Philly)
    };
    assert_ne!(generate(&other), generate(&small(Like::Philly)));
}

#[test]
fn expectations_are_a_column_more_and_change_nothing_else() {
    let month = Settings {
        scale: Scale::Both {
            jobs: 40_000,
            gpus: 6_216,
        },
        ..month(Like::Helios, 1)
    };
    let plain = generate(&month).unwrap();
    let told = |expected| {
        let mut trace = plain.clone();
        trace.expect(expected, month.seed);
        trace
    };
    let exact = told(Expected::Exact);
    let is_exact = |job: &Job| job.expected_s == Some(job.duration_s);
    assert!(exact.jobs.jobs.iter().all(is_exact));
    let mut rough = told(Expected::Rough);
    assert!(rough == told(Expected::Rough));
    let all = expectations(&rough.jobs).pop().unwrap();
    println!("{all:?}");
    assert_eq!(all.expected.jobs, all.jobs);
    // Of jobs of a few seconds a minute is expected at least, so the ratios are smaller than those
    // that are drawn, and fewer than one of twenty run for longer.
    assert!((200..413).contains(&all.expected.median.unwrap()));
    assert!((990..1_100).contains(&all.expected.p95.unwrap()));
    assert!((30..50).contains(&all.expected.overruns_per_mille().unwrap()));
    for job in &mut rough.jobs.jobs {
        assert!(job.expected_s.is_some_and(|it| it >= 60 && it % 60 == 0));
        job.expected_s = None;
    }
    assert!(rough == plain);
}

#[test]
fn what_is_written_is_read_again() {
    let mut trace = generate(&small(Like::Helios)).unwrap();
    trace.expect(Expected::Rough, 7);
    let folder = std::env::temp_dir().join(format!("gpu-batch-generate-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (jobs, nodes) = written(&trace);
    std::fs::write(folder.join("a"), jobs).unwrap();
    std::fs::write(folder.join("b"), nodes).unwrap();
    let mut read = Jobs::read(&folder.join("a")).unwrap();
    let nodes = queues::read(&folder.join("b")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(nodes, trace.queues);
    let named = |jobs: &Jobs| -> Vec<String> {
        let name = |job: &Job| jobs.queues[job.queue as usize].clone();
        jobs.jobs.iter().map(name).collect()
    };
    assert_eq!(named(&read), named(&trace.jobs));
    for (job, made) in read.jobs.iter_mut().zip(&trace.jobs.jobs) {
        job.queue = made.queue;
    }
    assert_eq!(read.jobs, trace.jobs.jobs);
}

#[test]
fn every_job_fits_into_the_nodes_of_its_queue() {
    let tiny = Settings {
        scale: Scale::Both { jobs: 500, gpus: 8 },
        ..month(Like::Helios, 1)
    };
    for settings in [tiny, small(Like::Helios), month(Like::Helios, 3)] {
        let trace = generate(&settings).unwrap();
        let used: BTreeSet<u32> = trace.jobs.jobs.iter().map(|job| job.queue).collect();
        assert_eq!(used.len(), trace.queues.len());
        for job in &trace.jobs.jobs {
            let queue = &trace.queues[job.queue as usize];
            assert!(job.num_gpus <= queue.nodes * GPUS_PER_NODE, "{job:?}");
        }
    }
}

#[test]
fn queues_are_skewed_and_have_all_nodes() {
    for (nodes, count) in [(1, 1), (7, 7), (352, 11), (777, 16), (1_000_000, 40)] {
        let queues = queues(nodes, count);
        let sizes: Vec<u32> = queues.iter().map(|queue| queue.nodes).collect();
        assert_eq!(sizes.iter().sum::<u32>(), nodes);
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        assert!(sizes.iter().all(|nodes| *nodes > 0));
        let skewed = sizes[0] > 4 * sizes[sizes.len() - 1];
        assert!(skewed || nodes < 8, "{sizes:?}");
    }
}

#[test]
fn jobs_arrive_by_the_hours_and_weekdays_of_the_profile() {
    let profile = Like::Philly.profile();
    let mut random = Random::new(5);
    let arrivals = arrivals_s(profile, 200_000, 14, &mut random);
    assert!(arrivals.is_sorted());
    assert!(arrivals.iter().all(|at_s| *at_s < 14 * 86_400));
    let check = |weights: &[u32], which: fn(u64) -> u64| {
        let sum: u32 = weights.iter().sum();
        for (index, weight) in weights.iter().enumerate() {
            let count = arrivals.iter().filter(|at_s| which(**at_s) == index as u64);
            let off = count.count() as f64 / 200_000.0 - f64::from(*weight) / f64::from(sum);
            assert!(off.abs() < 0.003, "{index}: {off}");
        }
    };
    check(&profile.hours, |at_s| at_s / HOUR_S % DAY_HOURS);
    check(&profile.weekdays, |at_s| at_s / HOUR_S / DAY_HOURS % 7);
}

#[test]
fn two_of_jobs_cluster_and_load_give_the_third() {
    let of = |scale| {
        let settings = Settings {
            scale,
            ..month(Like::Openb, 1)
        };
        generate(&settings).map(|trace| Statistics::of(&trace, 30))
    };
    let load_percent = 50;
    let gpus = Some(2_000);
    let by_gpus = of(Scale::Cluster { gpus, load_percent }).unwrap();
    assert_eq!(by_gpus.gpus, 2_000);
    assert!((47.0..53.0).contains(&by_gpus.load_percent), "{by_gpus:?}");
    let jobs = by_gpus.jobs;
    let by_jobs = of(Scale::Jobs { jobs, load_percent }).unwrap();
    assert_eq!((by_jobs.jobs, by_jobs.gpus), (jobs, 2_000));
    let cut = Settings {
        scale: Scale::Cluster {
            gpus: Some(512),
            load_percent,
        },
        ..month(Like::Helios, 1)
    };
    let cut = Statistics::of(&generate(&cut).unwrap(), 30);
    assert_eq!(cut.largest_gpus, 64, "the largest queue has 11 nodes");
    assert!((48.0..52.0).contains(&cut.load_percent), "{cut:?}");
    let both = of(Scale::Both { jobs, gpus: 4_000 }).unwrap();
    assert!((23.0..27.0).contains(&both.load_percent), "{both:?}");
}

#[test]
fn impossible_settings_are_refused() {
    let message = |change: fn(&mut Settings)| {
        let mut settings = month(Like::Philly, 1);
        change(&mut settings);
        generate(&settings).unwrap_err().to_string()
    };
    assert_eq!(message(|s| s.days = 0), "days: 0 is not from 1 to 3660");
    assert_eq!(
        message(|s| s.queues = Some(353)),
        "queues: 353 is not from 1 to 352"
    );
    assert_eq!(
        message(|s| s.queues = Some(0)),
        "queues: 0 is not from 1 to 352"
    );
    let both = |jobs, gpus| Scale::Both { jobs, gpus };
    let refused = |scale| {
        let settings = Settings {
            scale,
            ..month(Like::Philly, 1)
        };
        generate(&settings).unwrap_err().to_string()
    };
    assert_eq!(refused(both(0, 8)), "jobs: 0 is not from 1 to 10000000");
    assert_eq!(refused(both(1, 7)), "gpus: 7 is not from 8 to 8000000");
    let jobs = |jobs| Scale::Jobs {
        jobs,
        load_percent: 1,
    };
    assert_eq!(refused(jobs(0)), "jobs: 0 is not from 1 to 10000000");
    let huge = refused(jobs(u64::MAX));
    assert!(huge.starts_with("jobs: 18446744073709551615"), "{huge}");
    let too_large = refused(jobs(10_000_000));
    assert!(too_large.starts_with("gpus: "), "{too_large}");
    let none = Scale::Jobs {
        jobs: 1,
        load_percent: 0,
    };
    assert_eq!(refused(none), "load: 0 is not from 1 to 1000");
}
