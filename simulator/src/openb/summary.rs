//! All runs of an experiment, their page and their table.

use super::{Experiment, Policy, Run};
use crate::report::openb::{Curve, Metric, comparison, panels};
use crate::report::{Report, Table};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

impl Experiment {
    /// Runs each policy with each seed, on so many threads. The runs are returned in the order of
    /// policies, then seeds. `tried` is called after each pod. Seeds whose order is not known are
    /// left out.
    #[must_use]
    pub fn run_all(
        &self,
        policies: &[Policy],
        seeds: &[u64],
        threads: NonZeroUsize,
        tried: impl Fn() + Sync,
    ) -> Vec<Run> {
        let with_seeds = |policy| seeds.iter().map(move |seed| (policy, *seed));
        let pairs: Vec<_> = policies.iter().copied().flat_map(with_seeds).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((policy, seed)) = pairs.get(index) else {
                    return done;
                };
                done.push((index, self.run(*policy, *seed, &tried)));
            }
        };
        let mut runs: Vec<(usize, Option<Run>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.get()).map(|_| scope.spawn(work)).collect();
            let done = threads.into_iter().map(ScopedJoinHandle::join);
            done.flat_map(|done| done.expect("a run does not panic"))
                .collect()
        });
        runs.sort_by_key(|(index, _)| *index);
        runs.into_iter().filter_map(|(_, run)| run).collect()
    }

    /// The results as a page, beside the published curves of this workload, if there are any.
    #[must_use]
    pub fn report(&self, runs: &[Run], published: &[Curve]) -> Report {
        let measured: Vec<Curve> = runs.iter().flat_map(|run| run.curves.clone()).collect();
        let published: Vec<Curve> = published
            .iter()
            .filter(|curve| curve.workload == self.workload)
            .cloned()
            .collect();
        let policies = policies(runs);
        let mut seeds: Vec<u64> = measured.iter().map(|curve| curve.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        let gpus: u64 = self.machines.iter().map(|machine| machine.gpus).sum();
        let mut tables = vec![self.table(runs)];
        if !published.is_empty() {
            tables.push(comparison(&policies, &measured, &published));
        }
        Report {
            title: format!("Fill-up experiment: {}", self.workload),
            subtitle:
                "Pods arrive until 130 % of the GPUs were asked for; each is tried once, and \
                       none leaves."
                    .to_owned(),
            facts: vec![
                ("Workload".to_owned(), self.workload.clone()),
                ("Nodes".to_owned(), self.machines.len().to_string()),
                ("GPUs".to_owned(), gpus.to_string()),
                ("Seeds".to_owned(), seeds.join(", ")),
            ],
            panels: panels(&policies, &measured, &published),
            tables,
            runs: policies,
        }
    }

    /// One row for each policy: means over its seeds.
    #[must_use]
    pub fn table(&self, runs: &[Run]) -> Table {
        let columns = [
            "policy",
            "runs",
            "GPUs in use at 100 % asked for, %",
            "at the end, %",
            "lost to fragments at the end, %",
            "pods without a place",
        ];
        let mut table = Table::new(
            "Means over the seeds",
            "More GPUs in use is better.",
            &columns,
        );
        for policy in policies(runs) {
            let own: Vec<&Run> = runs
                .iter()
                .filter(|run| run.curves[0].policy == *policy)
                .collect();
            let mean = |of: &dyn Fn(&Run) -> Option<f64>| {
                let values: Vec<f64> = own.iter().filter_map(|run| of(run)).collect();
                let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
                if values.is_empty() {
                    return String::new();
                }
                format!("{:.2}", values.iter().sum::<f64>() / count)
            };
            table.row(vec![
                policy.clone(),
                own.len().to_string(),
                mean(&|run| point(run, Metric::Alloc, Some(100))),
                mean(&|run| point(run, Metric::Alloc, None)),
                mean(&|run| point(run, Metric::FragAmount, None)),
                mean(&|run| u32::try_from(run.failed).ok().map(f64::from)),
            ]);
        }
        table
    }
}

/// The names of the policies of the runs, each once, in the order of the runs.
fn policies(runs: &[Run]) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for run in runs {
        let policy = &run.curves[0].policy;
        if !policies.contains(policy) {
            policies.push(policy.clone());
        }
    }
    policies
}

/// The value of a curve at so many percent; `None`: its last value.
fn point(run: &Run, metric: Metric, percent: Option<usize>) -> Option<f64> {
    let curve = run.curves.iter().find(|curve| curve.metric == metric)?;
    let mut values = curve.values.iter().copied();
    match percent {
        Some(percent) => values.nth(percent).filter(|value| value.is_finite()),
        None => values.rfind(|value| value.is_finite()),
    }
}
