//! The whole scheduler against a real API server, beside a bare binder in the same run.
//!
//! The *bare binder* is given the places and only posts the bindings, with the scheduler's own
//! client and as many requests under way; no scheduler can be faster against this API server on
//! this machine. Both work on equal pods, made anew for each run, and take turns.
//!
//! ```text
//!   for each repetition:   create pods -> bare binder -> delete      (the order alternates)
//!                          create pods -> scheduler   -> delete
//! ```

pub(crate) mod beside;
mod bound;
mod cards;
mod cluster;
mod objects;
mod process;
mod processor;
pub(crate) mod reclaim;
pub(crate) mod restart;
mod run;
pub(crate) mod soak;

use super::{Bound, Row, median};
use crate::kube::connection::Named;
use anyhow::Context;
use cluster::Cluster;
use run::{Run, Runs, measure};

/// A load: the nodes, and the gangs that are bound to them.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    nodes: usize,
    /// How many gangs there are; gangs of one member are pods without a PodGroup.
    gangs: usize,
    members: usize,
    gpus: u32,
    /// What other schedulers take, and how the bare binder did beside them.
    peers: &'static str,
    /// The figure that has a target of its own: a rate of single pods, or a time.
    target: Target,
}

#[derive(Debug, Clone, Copy)]
enum Target {
    /// The rate must be at least this part of the bare binder's.
    Rate(f64),
    /// First: at most this many seconds from the scheduler's start. Second: at most this many times
    /// the bare binder's time if the scheduler runs already.
    Times(f64, f64),
}

const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "single pods",
        nodes: 500,
        gangs: 4_000,
        members: 1,
        gpus: 1,
        peers: "beside a binder of 943 pods/s: Volcano 267, kube-scheduler 248, KAI 53",
        target: Target::Rate(0.85),
    },
    Workload {
        name: "many gangs",
        nodes: 5_000,
        gangs: 1_000,
        members: 4,
        gpus: 8,
        peers: "beside a binder of 2.7 s: Volcano 29.7 s, native gang 41.6 s, KAI 73.4 s",
        target: Target::Rate(0.85),
    },
    Workload {
        name: "one gang",
        nodes: 512,
        gangs: 1,
        members: 512,
        gpus: 8,
        peers: "beside a binder of 0.27 s: native gang 2.99 s, Volcano 3.29 s, KAI 6.17 s",
        target: Target::Times(0.6, 1.2),
    },
];

impl Workload {
    fn pods(&self) -> usize {
        self.gangs * self.members
    }

    fn scenario(&self) -> String {
        let Self {
            nodes,
            gangs,
            members,
            gpus,
            ..
        } = self;
        match members {
            1 => format!("{gangs} pods of {gpus} GPU on {nodes} nodes"),
            _ => format!("{gangs} x {members} pods of {gpus} GPUs on {nodes} nodes"),
        }
    }
}

/// How many pairs of runs decide: an odd number, so that one run that other work has slowed down
/// does not move the median.
const REPEATS: usize = 5;

/// The benchmark that takes room back.
const RECLAIM: &str = "reclaim";

/// The benchmark of parts of cards.
const CARDS: &str = "cards";

/// The benchmark that restarts the scheduler.
const RESTART: &str = "restart";

/// The benchmark beside the real kube-scheduler, with the extender.
const BESIDE: &str = "kube-scheduler";

/// The names of the benchmarks.
#[must_use]
pub(crate) fn names() -> Vec<&'static str> {
    let workloads = WORKLOADS.iter().map(|workload| workload.name);
    workloads.chain([RECLAIM, CARDS, RESTART, BESIDE]).collect()
}

/// Measures the benchmarks whose name contains the filter, on a local control plane or on the
/// user's cluster.
///
/// # Errors
/// If there is no cluster, or the API server refuses something.
pub(crate) async fn run(filter: &str, named: Option<&Named>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for workload in WORKLOADS
        .iter()
        .filter(|workload| workload.name.contains(filter))
    {
        let cluster = Cluster::start(named, workload.nodes).await?;
        let measured = measure(&cluster, workload).await;
        let removed = cluster.remove().await;
        let runs = measured.with_context(|| format!("cannot measure {}", workload.name))?;
        removed.context("cannot remove what was created for the measurement")?;
        let measured = report(workload, &runs).into_iter();
        rows.extend(measured.map(|row| row.of(workload.name)));
    }
    if RECLAIM.contains(filter) {
        let measured = reclaim::measure(reclaim::BIG, named).await?;
        rows.extend(measured.into_iter().map(|row| row.of(RECLAIM)));
    }
    if CARDS.contains(filter) {
        let measured = cards::measure(named).await?;
        rows.extend(measured.into_iter().map(|row| row.of(CARDS)));
    }
    if RESTART.contains(filter) {
        let executable = std::env::current_exe().context("cannot find this program")?;
        let measured = restart::measure(restart::BIG, &executable, named).await?;
        rows.extend(measured.into_iter().map(|row| row.of(RESTART)));
    }
    if BESIDE.contains(filter) {
        match named {
            None => {
                let measured = beside::measure(beside::BIG).await?;
                rows.extend(measured.into_iter().map(|row| row.of(BESIDE)));
            }
            Some(_) => eprintln!("{BESIDE} is measured on a local control plane only"),
        }
    }
    Ok(rows)
}

fn report(workload: &Workload, runs: &[Runs]) -> Vec<Row> {
    let of = |time: &dyn Fn(&Runs) -> f64| median(runs.iter().map(time).collect());
    let (bare, started) = (
        |runs: &Runs| runs.bare.took,
        |runs: &Runs| runs.started.took,
    );
    let running = |runs: &Runs| runs.running.map_or(f64::NAN, |run| run.took);
    let scenario = workload.scenario();
    let row = |figure, value, unit| Row::new(figure, &scenario, value, unit);
    let pods = super::as_f64(workload.pods());
    let mut rows = match workload.target {
        Target::Rate(part) => vec![
            row(
                "rate from start to last bind",
                pods / of(&started),
                "pods/s",
            )
            .beside(pods / of(&bare), workload.peers),
            row("time from start to last bind", of(&started), "s")
                .beside(of(&bare), workload.peers),
            row(
                "rate over the bare binder's",
                of(&|runs| bare(runs) / started(runs)),
                "x",
            )
            .against(Bound::AtLeast, part, "target; median of the pairs"),
        ],
        Target::Times(seconds, factor) => vec![
            row("time from start to last bind", of(&started), "s").against(
                Bound::AtMost,
                seconds,
                workload.peers,
            ),
            row("time from last pod to last bind", of(&running), "s")
                .beside(of(&bare), "reference: the bare binder"),
            row(
                "time over the bare binder's",
                of(&|runs| running(runs) / bare(runs)),
                "x",
            )
            .against(Bound::AtMost, factor, "target; median of the pairs"),
        ],
    };
    let used = |part: fn(&Run) -> f64| {
        (
            of(&|runs| part(&runs.started)),
            of(&|runs| part(&runs.bare)),
        )
    };
    let (served, served_bare) = used(|run| run.used.control_plane);
    let (own, own_bare) = used(|run| run.used.own);
    let note = "reference: while the bare binder binds";
    if served_bare > 0.0 {
        rows.push(
            row("processor time of API server and etcd", served, "s").beside(served_bare, note),
        );
    }
    rows.push(row("processor time of its own", own, "s").beside(own_bare, note));
    rows
}
