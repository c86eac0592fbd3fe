//! The published curves of the fill-up experiment, point by point. The files are not part of this
//! repository; see `traces`.

use gpu_batch_simulator::openb::{Experiment, Files, Policy, read_published};
use gpu_batch_simulator::report::openb::{Curve, Metric};
use std::path::PathBuf;

/// The published files are rounded to two decimals, the ratio to four.
fn tolerance(metric: Metric) -> f64 {
    match metric {
        Metric::Alloc | Metric::FragAmount => 0.0051,
        Metric::FragRatio => 0.00051,
    }
}

fn traces() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/traces");
    let path = std::env::var("GPU_BATCH_TRACES").unwrap_or_else(|_| beside.to_owned());
    let path = PathBuf::from(path).join("openb");
    assert!(
        path.is_dir(),
        "{} is not there: set GPU_BATCH_TRACES to the directory with the public traces",
        path.display()
    );
    path
}

fn experiment(workload: &str, given: bool) -> Experiment {
    let file = |name: String| traces().join(name);
    let typical = file(format!("typical_{workload}.csv"));
    Experiment::read(Files {
        nodes: &file("openb_node_list_gpu_node.csv".to_owned()),
        pods: &file(format!("openb_pod_list_{workload}.csv.gz")),
        order: &file(format!("order_{workload}.csv.gz")),
        typical: given.then_some(&*typical),
    })
    .unwrap()
}

fn published() -> Vec<Curve> {
    let read = |name: &str, metric| {
        let path = traces().join(format!("expected_{name}.csv.gz"));
        read_published(&path, metric).unwrap()
    };
    [
        read("alloc", Metric::Alloc),
        read("frag_amount", Metric::FragAmount),
        read("frag_ratio", Metric::FragRatio),
    ]
    .concat()
}

/// Compares every point of the run's curves with the published ones.
fn check(experiment: &Experiment, policy: Policy, seed: u64, published: &[Curve]) {
    let started = std::time::Instant::now();
    let run = experiment.run(policy, seed, || ()).unwrap();
    println!(
        "{} {policy:?} {seed}: {:?}",
        experiment.workload(),
        started.elapsed()
    );
    for curve in run.curves {
        let expected = published
            .iter()
            .find(|other| {
                (&other.workload, &other.policy, other.seed, other.metric)
                    == (&curve.workload, &curve.policy, curve.seed, curve.metric)
            })
            .unwrap();
        assert_eq!(curve.values.len(), expected.values.len());
        let points = curve.values.iter().zip(&expected.values).enumerate();
        for (percent, (ours, theirs)) in points {
            assert!(
                (ours - theirs).abs() < tolerance(curve.metric),
                "{} {policy:?} {seed} {:?} at {percent} %: {ours}, published {theirs}",
                curve.workload,
                curve.metric
            );
        }
    }
}

#[test]
fn first() {
    let published = published();
    let experiment = experiment("default", false);
    for policy in Policy::ALL {
        if policy != Policy::Random {
            check(&experiment, policy, 42, &published);
        }
    }
}
