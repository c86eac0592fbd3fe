//! How near each other the members of gangs come in a month, beside first-fit and random.
//!
//! Each choice of hosts gets a month of its own, with equal jobs. A seed gives the same figures on
//! every machine, but for the figure that is a time.

use super::{processor_time, trace};
use crate::lab::bench::{Row, as_f64};
use anyhow::Context;
use gpu_batch_simulator::generate::profile::Like;
use gpu_batch_simulator::generate::{GPUS_PER_NODE, Scale, Settings, generate};
use gpu_batch_simulator::jobs::nearness::{Choice, Nearness, Network, measure};

const SEED: u64 = 1;
const DAYS: u32 = 30;
const LOAD_PERCENT: u32 = 85;

const CHOICES: [(&str, Choice); 3] = [
    ("gpu-batch", Choice::Engine),
    ("first-fit", Choice::FirstFit),
    ("random", Choice::Random(SEED)),
];

/// Two zones of four blocks of twelve racks of eight nodes. The names of the nodes follow the
/// racks, which is the best case for first-fit.
pub(super) fn racks() -> anyhow::Result<Vec<Row>> {
    let network = Network::of_racks(2, 4, 12, 8);
    on("96 racks of 8 nodes in 8 blocks", &network)
}

/// The three-tier network of Alibaba's Lingjun cluster; a rack is what is below one switch.
pub(super) fn lingjun() -> anyhow::Result<Vec<Row>> {
    let network = Network::read_lingjun(&trace("lingjun/topo.csv")?)?;
    on("Lingjun, 847 hosts below 119 switches", &network)
}

fn on(name: &str, network: &Network) -> anyhow::Result<Vec<Row>> {
    let hosts = u32::try_from(network.hosts()).context("too many hosts")?;
    let month = generate(&Settings {
        like: Like::Helios,
        seed: SEED,
        days: DAYS,
        scale: Scale::Cluster {
            gpus: Some(hosts * GPUS_PER_NODE),
            load_percent: LOAD_PERCENT,
        },
        queues: Some(1),
    })?;
    let mut rows = Vec::new();
    for (chosen_by, choice) in CHOICES {
        let started = processor_time();
        let found = measure(&month.jobs, network, choice);
        let took = processor_time().saturating_sub(started);
        let jobs = month.jobs.jobs.len();
        anyhow::ensure!(
            found.started == jobs as u64,
            "{chosen_by}: {} of {jobs} jobs started",
            found.started
        );
        let scenario = format!("{name}, {} gangs in a month, {chosen_by}", found.gangs);
        rows.extend(figures(&found, &scenario));
        if choice == Choice::Engine {
            let each_us = took.as_secs_f64() * 1e6 / as_f64(jobs);
            let row = Row::new("time of a job, mean", scenario, each_us, "us");
            rows.push(row);
        }
    }
    Ok(rows)
}

fn figures(found: &Nearness, scenario: &str) -> Vec<Row> {
    let over = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
    let row = |name, value, unit| Row::new(name, scenario, value, unit);
    let best = "reference: each gang alone in an empty cluster";
    vec![
        row(
            "gangs in one rack",
            100.0 * over(found.together, found.gangs),
            "%",
        )
        .beside(100.0 * over(found.together_at_best, found.gangs), best),
        row(
            "racks of a gang, mean",
            over(found.racks, found.gangs),
            "racks",
        )
        .beside(over(found.racks_at_best, found.gangs), best),
        row(
            "largest gang that would still fit in one rack, mean",
            over(found.open_in_rack_ms, found.lasted_ms),
            "nodes",
        ),
        row(
            "largest gang that would still fit, mean",
            over(found.open_ms, found.lasted_ms),
            "nodes",
        ),
        row(
            "racks that are free as a whole, mean",
            over(found.free_racks_ms, found.lasted_ms),
            "racks",
        ),
        row(
            "wait, mean",
            over(found.waited_ms, found.started) / 1_000.0,
            "s",
        ),
    ]
}
