//! One workload: the bare binder, the scheduler from its start, and the scheduler that runs
//! already.

use super::cluster::Cluster;
use super::objects::{self, NAMESPACE, SCHEDULER, post_all};
use super::processor::Processor;
use super::{REPEATS, Target, Workload};
use crate::kube::connection;
use crate::kube::execute::LeaseName;
use crate::live::Scheduler;
use crate::live::config::Configuration;
use anyhow::ensure;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// How often the scheduler's counter is read.
const POLL: Duration = Duration::from_millis(2);

/// How long a run may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// One run: how long it took, in seconds, and the processor time that it used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) took: f64,
    pub(super) used: Processor,
}

/// The runs of one repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs {
    /// The bare binder, when all pods exist.
    pub(super) bare: Run,
    /// The scheduler, from its start to the last bind, when all pods exist.
    pub(super) started: Run,
    /// The scheduler that runs already, from the creation of the last pod; measured only for
    /// workloads that have a target for it.
    pub(super) running: Option<Run>,
}

/// A run that has begun.
pub(super) struct Begun {
    at: Instant,
    used: Processor,
}

impl Begun {
    pub(super) fn now() -> Self {
        Self {
            used: Processor::now(),
            at: Instant::now(),
        }
    }

    pub(super) fn end(&self) -> Run {
        Run {
            took: self.at.elapsed().as_secs_f64(),
            used: Processor::since(self.used),
        }
    }
}

pub(super) async fn measure(cluster: &Cluster, workload: &Workload) -> anyhow::Result<Vec<Runs>> {
    let mut all = Vec::new();
    for repetition in 0..REPEATS {
        let (bare, started);
        // The second of the two measurements finds a larger store and a warmer API server.
        if repetition % 2 == 0 {
            bare = bare_binder(cluster, workload).await?;
            started = from_start(cluster, workload).await?;
        } else {
            started = from_start(cluster, workload).await?;
            bare = bare_binder(cluster, workload).await?;
        }
        let running = match workload.target {
            Target::Times(..) => Some(while_running(cluster, workload).await?),
            Target::Rate(_) => None,
        };
        let runs = Runs {
            bare,
            started,
            running,
        };
        tracing::info!("{}: {runs:?}", workload.name);
        all.push(runs);
    }
    Ok(all)
}

async fn create(cluster: &Cluster, workload: &Workload) -> anyhow::Result<()> {
    cluster.create(objects::pod_groups(workload)).await?;
    cluster.create(objects::pods(workload)).await
}

async fn bare_binder(cluster: &Cluster, workload: &Workload) -> anyhow::Result<Run> {
    create(cluster, workload).await?;
    let bindings = objects::bindings(workload);
    let at_a_time = configuration()?.settings.in_flight.actions;
    let begun = Begun::now();
    // A new client, as the scheduler has: the connections are made anew.
    let client = connection::client(&cluster.config)?;
    post_all(&client, bindings, at_a_time).await?;
    let run = begun.end();
    cluster.clear().await?;
    Ok(run)
}

async fn from_start(cluster: &Cluster, workload: &Workload) -> anyhow::Result<Run> {
    create(cluster, workload).await?;
    let begun = Begun::now();
    let scheduler = start(cluster).await?;
    let run = until_bound(&scheduler, workload.pods(), begun).await;
    scheduler.stop().await?;
    cluster.clear().await?;
    run
}

async fn while_running(cluster: &Cluster, workload: &Workload) -> anyhow::Result<Run> {
    let scheduler = start(cluster).await?;
    let begun = Begun::now();
    while !scheduler.is_ready() {
        wait_a_moment(&begun, "the scheduler is not ready").await?;
    }
    create(cluster, workload).await?;
    let created = Begun::now();
    let run = until_bound(&scheduler, workload.pods(), created).await;
    scheduler.stop().await?;
    cluster.clear().await?;
    run
}

async fn start(cluster: &Cluster) -> anyhow::Result<Scheduler> {
    Ok(Scheduler::start(&cluster.config, configuration()?).await?)
}

/// The configuration of `gpu-batch run` without a file, with a name and a lease of its own.
pub(super) fn configuration() -> anyhow::Result<Configuration> {
    let defaults = Configuration::load(None)?;
    Ok(Configuration {
        scheduler_name: SCHEDULER.to_owned(),
        serve_address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        lease: LeaseName {
            namespace: NAMESPACE.to_owned(),
            name: SCHEDULER.to_owned(),
        },
        ..defaults
    })
}

/// Lets a moment pass.
///
/// # Errors
/// The run began too long ago: says what it `lacks`.
pub(super) async fn wait_a_moment(begun: &Begun, lacks: &str) -> anyhow::Result<()> {
    ensure!(begun.at.elapsed() < PATIENCE, "{lacks} after {PATIENCE:?}");
    tokio::time::sleep(POLL).await;
    Ok(())
}

/// Ends a run when the scheduler has bound so many pods.
///
/// # Errors
/// If that takes too long.
pub(super) async fn until_bound(
    scheduler: &Scheduler,
    pods: usize,
    begun: Begun,
) -> anyhow::Result<Run> {
    loop {
        let bound = scheduler.binds();
        if bound >= pods as u64 {
            return Ok(begun.end());
        }
        wait_a_moment(&begun, &format!("only {bound} of {pods} pods are bound")).await?;
    }
}
