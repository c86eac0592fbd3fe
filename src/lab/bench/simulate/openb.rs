//! The fill-up experiment on the Alibaba trace openb.

use super::{processor_time, trace};
use crate::lab::bench::{Bound, Row, as_f64, median};
use gpu_batch_simulator::openb::{Experiment, Files, Policy};
use std::num::NonZeroUsize;
use std::time::Instant;

const WORKLOADS: [&str; 5] = ["default", "cpu100", "gpushare60", "gpuspec33", "multigpu30"];

const NOTE: &str = "target, one core; the original Go simulator takes about 10 min on two";

/// One run of each policy on one core, and all published curves of the given workloads on all
/// cores.
pub(super) fn measure() -> anyhow::Result<Vec<Row>> {
    let experiments = WORKLOADS.map(experiment);
    let experiments = experiments
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    let default = &experiments[0];
    let mut rows = Vec::new();
    for policy in Policy::DETERMINISTIC {
        let mut times = Vec::new();
        for seed in default.seeds().take(5) {
            let started = processor_time();
            default.run(policy, seed, || ());
            times.push(processor_time().saturating_sub(started).as_secs_f64());
        }
        let scenario = format!("openb, default, 1213 nodes, 10800 pods, {}", policy.name());
        let row = Row::new("filling a cluster", scenario, median(times), "s");
        rows.push(row.against(Bound::AtMost, 0.3, NOTE));
    }
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let started = (Instant::now(), processor_time());
    let mut runs = 0;
    for experiment in &experiments {
        let seeds: Vec<u64> = experiment.seeds().collect();
        runs += experiment
            .run_all(&Policy::DETERMINISTIC, &seeds, threads, || ())
            .len();
    }
    let processors = processor_time().saturating_sub(started.1).as_secs_f64();
    let scenario = format!("openb, {runs} runs: 5 workloads, 10 seeds, 5 policies");
    let elapsed = started.0.elapsed().as_secs_f64();
    let row = Row::new("filling clusters, elapsed", scenario.clone(), elapsed, "s");
    rows.push(row.against(Bound::AtMost, 60.0, "target, two cores"));
    let each = processors / as_f64(runs.max(1));
    rows.push(Row::new("filling a cluster, mean", scenario, each, "s"));
    Ok(rows)
}

fn experiment(workload: &str) -> anyhow::Result<Experiment> {
    Ok(Experiment::read(Files {
        nodes: &trace("openb/openb_node_list_gpu_node.csv")?,
        pods: &trace(&format!("openb/openb_pod_list_{workload}.csv.gz"))?,
        order: &trace(&format!("openb/order_{workload}.csv.gz"))?,
        typical: None,
    })?)
}
