//! A soak: gangs come, run and go for a long time, and the scheduler must neither grow nor drift.
//!
//! ```text
//!   1,000 an hour:  submit -> bound -> Running -> (1 to 5 minutes) -> Succeeded -> deleted
//!   every minute:   memory, /debug/audit, /debug/compare
//! ```
//!
//! The soak plays the users and the kubelets: it sets the phases of pods as a kubelet would.

use super::cluster::Cluster;
use super::objects::{self, NAMESPACE};
use super::process::Process;
use crate::kube::connection::Named;
use crate::lab::bench::{Bound, Row, as_f64};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const GANGS_AN_HOUR: u32 = 1_000;
/// With so many nodes the gangs take two thirds of the GPUs on average: with too few, more and more
/// gangs would wait, and the memory that they take would look like a leak.
const NODES: usize = 384;
const MINUTE: Duration = Duration::from_secs(60);

/// Minutes before the memory is judged. From the sixth minute on about as many gangs go as come.
const WARM_UP: usize = 8;

/// The growth of the memory since the warm-up that still counts as flat, as a ratio.
const FLAT: f64 = 1.1;

/// How often to look whether a gang is bound.
const POLL: Duration = Duration::from_secs(1);

/// How long a gang that has ended stays before it is deleted.
const LEFT_FOR: Duration = Duration::from_secs(20);

/// What became of the gangs.
#[derive(Debug, Default)]
struct Counts {
    submitted: AtomicUsize,
    started: AtomicUsize,
    deleted: AtomicUsize,
}

/// What the scheduler was like during the soak.
#[derive(Debug, Default)]
struct Samples {
    /// Resident bytes after each minute.
    resident: Vec<u64>,
    /// What pages and processes said, where it was not `ok`.
    findings: Vec<String>,
}

/// The name of this benchmark.
pub(crate) const NAME: &str = "soak";

/// Runs `executable`, which is a `gpu-batch`, for `minutes` on a local control plane or on the
/// user's cluster.
///
/// # Errors
/// If there is no cluster, the API server refuses something, or the scheduler ends.
pub(crate) async fn run(
    minutes: u32,
    executable: &Path,
    named: Option<&Named>,
) -> anyhow::Result<Vec<Row>> {
    let cluster = Arc::new(Cluster::start(named, NODES).await?);
    let measured = measure(minutes, executable, &cluster).await;
    let removed = cluster.remove().await;
    let rows = measured?;
    removed.context("cannot remove what was created for the measurement")?;
    Ok(rows.into_iter().map(|row| row.of(NAME)).collect())
}

async fn measure(
    minutes: u32,
    executable: &Path,
    cluster: &Arc<Cluster>,
) -> anyhow::Result<Vec<Row>> {
    let mut process = Process::start(executable, cluster).await?;
    process.ready().await?;
    let counts = Arc::new(Counts::default());
    let begun = Instant::now();
    let mut users = JoinSet::new();
    users.spawn(submit(Arc::clone(cluster), Arc::clone(&counts)));
    let mut samples = Samples::default();
    for minute in 1..=minutes {
        tokio::time::sleep((begun + MINUTE * minute).saturating_duration_since(Instant::now()))
            .await;
        // A task that plays users and fails ends the soak.
        while let Some(ended) = users.try_join_next() {
            ended??;
        }
        sample(&mut process, &mut samples).await?;
        tracing::info!("minute {minute}: {:?}, {counts:?}", samples.resident.last());
    }
    // The tasks that play users stop first: objects that they create from now on would be left
    // behind.
    users.shutdown().await;
    drop(process);
    Ok(report(minutes, &counts, &samples))
}

async fn sample(process: &mut Process, samples: &mut Samples) -> anyhow::Result<()> {
    samples.resident.push(process.memory()?.resident);
    for path in ["/debug/audit", "/debug/compare"] {
        let (status, page) = process.page(path).await?;
        if !status.is_success() {
            tracing::warn!("{path}: {page}");
            samples.findings.push(page);
        }
    }
    Ok(())
}

/// Submits gangs for ever, each in a task of its own.
async fn submit(cluster: Arc<Cluster>, counts: Arc<Counts>) -> anyhow::Result<()> {
    let mut gangs = JoinSet::new();
    let mut clock = tokio::time::interval(MINUTE * 60 / GANGS_AN_HOUR);
    for number in 0_u32.. {
        clock.tick().await;
        while let Some(ended) = gangs.try_join_next() {
            ended??;
        }
        let (cluster, counts) = (Arc::clone(&cluster), Arc::clone(&counts));
        gangs.spawn(async move { live(number, &cluster, &counts).await });
    }
    Ok(())
}

/// The life of a gang.
async fn live(number: u32, cluster: &Cluster, counts: &Counts) -> anyhow::Result<()> {
    let name = format!("soak-{number}");
    let members = [8, 1, 16, 4, 2, 32][number as usize % 6];
    let gpus = [1, 8, 2, 4][number as usize % 4];
    let runs_for = Duration::from_secs(60 + u64::from(number) * 37 % 240);
    let pod = |member: usize| {
        let mut post = objects::plain_pod(&format!("{name}-{member}"), gpus);
        post.body["metadata"]["labels"]["gpu-batch.io/pod-group"] = json!(name);
        post
    };
    cluster
        .create(vec![objects::pod_group(&name, members)])
        .await?;
    cluster.create((0..members).map(pod).collect()).await?;
    counts.submitted.fetch_add(1, Ordering::Relaxed);
    let selector = format!("labelSelector=gpu-batch.io/pod-group={name}");
    let path = format!("{}?{selector}", objects::pods_path());
    loop {
        let pods = cluster.get(&path).await?;
        let items = pods["items"].as_array().map_or(&[][..], Vec::as_slice);
        ensure!(items.len() == members, "{name} has lost members");
        if items.iter().all(|pod| pod["spec"]["nodeName"].is_string()) {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    counts.started.fetch_add(1, Ordering::Relaxed);
    set_phase(cluster, &name, members, "Running").await?;
    tokio::time::sleep(runs_for).await;
    set_phase(cluster, &name, members, "Succeeded").await?;
    tokio::time::sleep(LEFT_FOR).await;
    cluster.delete(&path).await?;
    let groups = format!("/apis/gpu-batch.io/v1alpha1/namespaces/{NAMESPACE}/podgroups");
    cluster.delete(&format!("{groups}/{name}")).await?;
    counts.deleted.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Sets the phase of all members, as their kubelets would.
async fn set_phase(
    cluster: &Cluster,
    gang: &str,
    members: usize,
    phase: &str,
) -> anyhow::Result<()> {
    for member in 0..members {
        let path = format!("{}/{gang}-{member}/status", objects::pods_path());
        let status: Value = json!({"status": {"phase": phase}});
        cluster.merge(&path, &status).await?;
    }
    Ok(())
}

fn report(minutes: u32, counts: &Counts, samples: &Samples) -> Vec<Row> {
    let scenario = format!("{minutes} minutes, {GANGS_AN_HOUR} gangs an hour, {NODES} nodes");
    let row = |name, value, unit| Row::new(name, &scenario, value, unit);
    let count = |of: &AtomicUsize| as_f64(of.load(Ordering::Relaxed));
    let megabytes = |bytes: Option<&u64>| {
        bytes.map_or(0.0, |bytes| {
            as_f64(usize::try_from(*bytes).unwrap_or(usize::MAX)) / 1e6
        })
    };
    let (_, warm) = samples
        .resident
        .split_at(WARM_UP.min(samples.resident.len()).saturating_sub(1));
    let first = megabytes(warm.first());
    vec![
        row("gangs submitted", count(&counts.submitted), "gangs"),
        row("gangs started", count(&counts.started), "gangs"),
        row("gangs ended and deleted", count(&counts.deleted), "gangs"),
        row("resident memory after 8 minutes", first, "MB"),
        row("resident memory at the end", megabytes(warm.last()), "MB").against(
            Bound::AtMost,
            first * FLAT,
            "target: flat within a tenth",
        ),
        row(
            "resident memory, most since",
            megabytes(warm.iter().max()),
            "MB",
        ),
        row(
            "pages of audit or comparer with findings",
            as_f64(samples.findings.len()),
            "pages",
        )
        .against(Bound::AtMost, 0.0, "target"),
    ]
}
