//! The published curves of the fill-up experiment, point by point.
//!
//! The files are not part of the repository. `GPU_BATCH_TRACES` names the directory that has them
//! in `openb/`; without it they are looked for beside the repository. A part of the curves is
//! compared in each test run, all of them where `GPU_BATCH_ALL_CURVES` is set (in release mode that
//! is a matter of a minute).

#[path = "shared/public_traces.rs"]
mod public_traces;

use gpu_batch_simulator::openb::{Experiment, Files, Policy, Run, read_published};
use gpu_batch_simulator::report::openb::{Curve, Metric};
use std::path::PathBuf;
use std::sync::LazyLock;

const WORKLOADS: [&str; 5] = ["default", "cpu100", "gpushare60", "gpuspec33", "multigpu30"];

/// The published files are rounded to two decimals, the ratio to four.
fn tolerance(metric: Metric) -> f64 {
    match metric {
        Metric::Alloc | Metric::FragAmount => 0.0051,
        Metric::FragRatio => 0.00051,
    }
}

fn file(name: &str) -> PathBuf {
    public_traces::file(&format!("openb/{name}"))
}

fn experiment(workload: &str, typical_given: bool) -> Experiment {
    let typical = file(&format!("typical_{workload}.csv"));
    let files = Files {
        nodes: &file("openb_node_list_gpu_node.csv"),
        pods: &file(&format!("openb_pod_list_{workload}.csv.gz")),
        order: &file(&format!("order_{workload}.csv.gz")),
        typical: typical_given.then_some(&*typical),
    };
    Experiment::read(files).expect("the public files are good")
}

static PUBLISHED: LazyLock<Vec<Curve>> = LazyLock::new(|| {
    let read = |name: &str, metric| {
        let path = file(&format!("expected_{name}.csv.gz"));
        read_published(&path, metric).expect("the public files are good")
    };
    [
        read("alloc", Metric::Alloc),
        read("frag_amount", Metric::FragAmount),
        read("frag_ratio", Metric::FragRatio),
    ]
    .concat()
});

fn published(curve: &Curve) -> &'static Curve {
    let key = |curve: &Curve| {
        let Curve {
            workload,
            policy,
            seed,
            metric,
            ..
        } = curve;
        (workload.clone(), policy.clone(), *seed, *metric)
    };
    let same = PUBLISHED.iter().find(|other| key(other) == key(curve));
    same.unwrap_or_else(|| panic!("no published curve {:?}", key(curve)))
}

/// Points of a run that are others than the published ones.
fn differences(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for curve in &run.curves {
        let expected = &published(curve).values;
        assert_eq!(curve.values.len(), expected.len());
        for (percent, (ours, theirs)) in curve.values.iter().zip(expected).enumerate() {
            // A value that is not a number is a difference, too.
            let same = (ours - theirs).abs() < tolerance(curve.metric);
            if !same {
                let Curve {
                    workload,
                    policy,
                    seed,
                    metric,
                    ..
                } = curve;
                let at = format!("{workload} {policy} {seed} {metric:?} at {percent} %");
                found.push(format!("{at}: {ours}, published {theirs}"));
            }
        }
    }
    found
}

/// The curves that each test run compares: workload, policies, seed.
const SUBSET: [(&str, &[Policy], u64); 6] = [
    ("default", &Policy::DETERMINISTIC, 42),
    ("cpu100", &[Policy::Fgd], 43),
    ("gpushare60", &[Policy::Fgd], 44),
    ("gpuspec33", &[Policy::Fgd], 45),
    ("gpuspec33", &[Policy::BestFit], 46),
    ("multigpu30", &[Policy::Fgd], 47),
];

#[test]
fn every_point_of_the_deterministic_policies_is_the_published_one() {
    let all = std::env::var_os("GPU_BATCH_ALL_CURVES").is_some();
    let threads = std::thread::available_parallelism().unwrap();
    let mut compared = 0;
    for workload in WORKLOADS {
        let experiment = experiment(workload, false);
        let seeds: Vec<u64> = experiment.seeds().collect();
        let subset = SUBSET.iter().filter(|(name, ..)| *name == workload);
        let parts: Vec<(&[Policy], &[u64])> = match all {
            true => vec![(&Policy::DETERMINISTIC, &seeds)],
            false => subset
                .map(|(_, policies, seed)| (*policies, std::slice::from_ref(seed)))
                .collect(),
        };
        for (policies, seeds) in parts {
            let runs = experiment.run_all(policies, seeds, threads, || ());
            compared += runs.len();
            let found: Vec<String> = runs.iter().flat_map(differences).collect();
            assert_eq!(found, Vec::<String>::new());
        }
    }
    assert_eq!(compared, if all { 250 } else { 10 });
}

#[test]
fn the_number_of_threads_makes_no_difference() {
    let experiment = experiment("multigpu30", false);
    let runs = |threads| {
        let threads = std::num::NonZeroUsize::new(threads).unwrap();
        experiment.run_all(
            &[Policy::Random, Policy::BestFit],
            &[42, 43],
            threads,
            || (),
        )
    };
    assert_eq!(runs(1), runs(3));
}

#[test]
fn the_target_workload_is_the_shipped_one() {
    for workload in WORKLOADS {
        let (computed, given) = (experiment(workload, false), experiment(workload, true));
        // A file that is another one would be used as it is.
        assert_eq!(computed.target(), given.target(), "{workload}");
    }
}

#[test]
fn the_end_of_the_first_run_is_the_published_one() {
    let experiment = experiment("default", true);
    let run = experiment.run(Policy::Fgd, 42, || ()).unwrap();
    assert_eq!(differences(&run), Vec::<String>::new());
    assert_eq!(experiment.arrivals(42), Some(10_866));
    assert_eq!((run.placed, run.failed), (8_334, 2_532));
    assert_eq!(run.used_thousandths, 5_919_410);
}

/// Random drew at run time in the published experiment, so only means can agree. Four seeds of the
/// default trace in each test run; all ten of all five traces where all curves are asked for. The
/// ratio is left out: what it divides by is small where little is free, so its means scatter more.
#[test]
fn random_is_as_good_as_the_published_one_on_the_average() {
    let all = std::env::var_os("GPU_BATCH_ALL_CURVES").is_some();
    let threads = std::thread::available_parallelism().unwrap();
    for workload in &WORKLOADS[..if all { WORKLOADS.len() } else { 1 }] {
        let experiment = experiment(workload, false);
        let count = if all { 10 } else { 4 };
        let seeds: Vec<u64> = experiment.seeds().take(count).collect();
        let runs = experiment.run_all(&[Policy::Random], &seeds, threads, || ());
        for metric in 0..2 {
            for percent in [100, 130] {
                let off = runs.iter().map(|run| {
                    let curve = &run.curves[metric];
                    curve.values[percent] - published(curve).values[percent]
                });
                let off = off.sum::<f64>() / runs.len() as f64;
                let of = runs[0].curves[metric].metric;
                println!("{workload} {of:?} at {percent} %: {off:.3} points off");
                assert!(
                    off.abs() < 0.3,
                    "{off} points off: {workload} {of:?} {percent}"
                );
            }
        }
    }
}
