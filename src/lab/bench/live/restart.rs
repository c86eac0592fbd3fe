//! A restart in a big world: the time until the first bind beside a bare list of the same objects,
//! and the memory that the world takes.
//!
//! ```text
//!   empty cluster: memory -> nodes: memory -> pods -> 3 x (bare lists, restart) -> memory
//! ```
//!
//! The *bare list* reads the pages that the scheduler reads, in its form, with its client, all
//! kinds at the same time, and throws them away: no scheduler can know the world earlier. Beside it
//! stands a bare list in JSON, the form of clients that ask for no other.

use super::cluster::Cluster;
use super::objects::{self, Post, node_name};
use super::process::{Memory, Process};
use crate::kube::connection::{self, Named};
use crate::kube::convert::Watched;
use crate::kube::objects::{Node, Pod, PodGroup};
use crate::kube::watch::Page;
use crate::lab::bench::{Bound, Row, as_f64, median};
use anyhow::{Context, anyhow, ensure};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// How large the world is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    /// Nodes, each with one gang.
    pub nodes: usize,
    /// Bound pods of ours, the members of each gang on one node.
    pub pods: usize,
}

/// The world that the documentation describes.
pub(crate) const BIG: World = World {
    nodes: 5_000,
    pods: 140_000,
};

const REPEATS: usize = 3;

/// How often to look whether the pod is bound.
const POLL: Duration = Duration::from_millis(10);

/// How long the first bind may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long the scheduler is left alone before its memory is read: it writes statuses meanwhile.
const REST: Duration = Duration::from_secs(10);

/// The pod that is bound first.
const FIRST: &str = "first";

/// The form in which objects are listed.
#[derive(Clone, Copy)]
enum Form {
    /// The form in which the scheduler lists the kind.
    Scheduler,
    Json,
}

/// What a bare list took.
#[derive(Clone, Copy)]
struct Listed {
    seconds: f64,
    bytes: usize,
}

/// The figures of one repetition, which are compared with each other.
struct Repetition {
    list: Listed,
    json: Listed,
    /// Seconds from the start of the process to the first bind.
    restart: f64,
}

/// The measurements.
struct Measured {
    repetitions: Vec<Repetition>,
    empty: Memory,
    with_nodes: Memory,
    full: Memory,
}

/// Measures restarts of `executable`, which is a `gpu-batch`, in a world of this size.
///
/// # Errors
/// If there is no cluster, the API server refuses something, or the scheduler does not work.
pub(crate) async fn measure(
    world: World,
    executable: &Path,
    named: Option<&Named>,
) -> anyhow::Result<Vec<Row>> {
    let mut cluster = Cluster::start(named, 0).await?;
    let measured = restarts(world, executable, &mut cluster).await;
    let removed = cluster.remove().await;
    let rows = report(world, &measured?);
    removed.context("cannot remove what was created for the measurement")?;
    Ok(rows)
}

async fn restarts(
    world: World,
    executable: &Path,
    cluster: &mut Cluster,
) -> anyhow::Result<Measured> {
    let empty = memory(executable, cluster).await?;
    cluster.add_nodes(world.nodes).await?;
    let with_nodes = memory(executable, cluster).await?;
    fill(world, cluster).await?;
    let mut repetitions = Vec::new();
    let mut full = None;
    for number in 0..REPEATS {
        let json = bare_list(cluster, Form::Json).await?;
        let list = bare_list(cluster, Form::Scheduler).await?;
        cluster.create(vec![pod(FIRST, 0, None)]).await?;
        let (mut process, restart) = first_bind(executable, cluster).await?;
        tracing::info!(
            "{number}: bare list {:.2} s (JSON {:.2} s), first bind {restart:.2} s",
            list.seconds,
            json.seconds
        );
        repetitions.push(Repetition {
            list,
            json,
            restart,
        });
        tokio::time::sleep(REST).await;
        full = Some(process.memory()?);
        drop(process);
        cluster.delete_pod(FIRST).await?;
    }
    Ok(Measured {
        repetitions,
        empty,
        with_nodes,
        full: full.context("nothing was measured")?,
    })
}

/// The memory that the scheduler holds at rest in the world as it is.
async fn memory(executable: &Path, cluster: &Cluster) -> anyhow::Result<Memory> {
    let mut process = Process::start(executable, cluster).await?;
    process.ready().await?;
    tokio::time::sleep(REST / 2).await;
    let memory = process.memory()?;
    drop(process);
    Ok(memory)
}

/// Starts a process; the seconds from its start until the waiting pod has a node.
async fn first_bind(executable: &Path, cluster: &Cluster) -> anyhow::Result<(Process, f64)> {
    let begun = Instant::now();
    let process = Process::start(executable, cluster).await?;
    let path = format!("{}/{FIRST}", objects::pods_path());
    while cluster.get(&path).await?["spec"]["nodeName"].is_null() {
        ensure!(begun.elapsed() < PATIENCE, "the first pod is not bound");
        tokio::time::sleep(POLL).await;
    }
    Ok((process, begun.elapsed().as_secs_f64()))
}

/// Reads all pages of the kinds that a scheduler needs, in one form.
async fn bare_list(cluster: &Cluster, form: Form) -> anyhow::Result<Listed> {
    let client = connection::client(&cluster.config)?;
    let begun = Instant::now();
    let (nodes, groups, pods) = tokio::try_join!(
        pages::<Node>(&client, form),
        pages::<PodGroup>(&client, form),
        pages::<Pod>(&client, form),
    )?;
    Ok(Listed {
        seconds: begun.elapsed().as_secs_f64(),
        bytes: nodes + groups + pods,
    })
}

async fn pages<T: Watched>(client: &kube::Client, form: Form) -> anyhow::Result<usize> {
    let (mut bytes, mut token) = (0, String::new());
    loop {
        let page = match form {
            Form::Scheduler => Page::fetch::<T>(client.clone(), token).await,
            Form::Json => Page::fetch_json::<T>(client, &token).await,
        };
        let page = page.map_err(|failure| anyhow!("{}", failure.message()))?;
        bytes += page.size();
        token = page.token_ahead();
        if token.is_empty() {
            return Ok(bytes);
        }
    }
}

/// Creates the gangs and their pods, each with its node from the beginning.
async fn fill(world: World, cluster: &Cluster) -> anyhow::Result<()> {
    let members = world.pods / world.nodes;
    let group = |gang| objects::pod_group(&format!("gang-{gang}"), members);
    cluster
        .create((0..world.nodes).map(group).collect())
        .await?;
    let member = |number| {
        let (node, member) = (number / members, number % members);
        let gpus = u32::from(member < 8);
        pod(&format!("gang-{node}-{member}"), gpus, Some(node))
    };
    cluster.create_many(world.pods, member).await
}

/// A pod with about as much text as a pod of a training job; with `node`, it is on that node, as a
/// member of the node's gang.
fn pod(name: &str, gpus: u32, node: Option<usize>) -> Post {
    let mut post = objects::plain_pod(name, gpus);
    let metadata = &mut post.body["metadata"];
    metadata["annotations"] = json!({
        "example.com/submitted-by": "somebody@example.com",
        "example.com/experiment": "https://experiments.example.com/runs/2026-11-21/llama-pretrain",
    });
    metadata["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": true,
        "uid": "11111111-2222-3333-4444-555555555555",
    }]);
    if let Some(node) = node {
        metadata["labels"]["gpu-batch.io/pod-group"] = json!(format!("gang-{node}"));
        post.body["spec"]["nodeName"] = json!(node_name(node));
    }
    let variable = |number: usize| json!({"name": format!("SETTING_{number}"), "value": "a value"});
    post.body["spec"]["volumes"] = json!([
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        {"name": "data", "hostPath": {"path": "/mnt/data"}},
    ]);
    let container = &mut post.body["spec"]["containers"][0];
    container["env"] = (0..12).map(variable).collect();
    container["command"] = json!(["torchrun", "--nnodes=8", "--nproc-per-node=8", "train.py"]);
    container["volumeMounts"] = json!([
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "data", "mountPath": "/data", "readOnly": true},
    ]);
    post
}

fn report(world: World, measured: &Measured) -> Vec<Row> {
    let Measured {
        repetitions,
        empty,
        with_nodes,
        full,
    } = measured;
    let scenario = format!("{} nodes, {} bound pods", world.nodes, world.pods);
    let row = |name, value, unit| Row::new(name, &scenario, value, unit);
    let of = |figure: fn(&Repetition) -> f64| median(repetitions.iter().map(figure).collect());
    let megabytes = |bytes: u64| as_f64(usize::try_from(bytes).unwrap_or(usize::MAX)) / 1e6;
    let each = |more: &Memory, less: &Memory, objects: usize| {
        megabytes(more.resident.saturating_sub(less.resident)) * 1e6 / as_f64(objects)
    };
    let peers = "target; Volcano 8 min 17 s (volcano#5819)";
    vec![
        row("restart to first bind", of(|each| each.restart), "s").against(
            Bound::AtMost,
            15.0,
            peers,
        ),
        row(
            "bare list of the same objects",
            of(|each| each.list.seconds),
            "s",
        ),
        row("bare list in JSON", of(|each| each.json.seconds), "s"),
        row(
            "size of the list",
            of(|each| as_f64(each.list.bytes) / 1e6),
            "MB",
        ),
        row(
            "size in JSON",
            of(|each| as_f64(each.json.bytes) / 1e6),
            "MB",
        ),
        row(
            "restart over the bare list",
            of(|each| each.restart / each.list.seconds),
            "x",
        )
        .against(Bound::AtMost, 1.3, "target; median of the repetitions"),
        row(
            "restart over the bare list in JSON",
            of(|each| each.restart / each.json.seconds),
            "x",
        ),
        row("resident memory", megabytes(full.resident), "MB").against(
            Bound::AtMost,
            400.0,
            "target; Volcano's sizing guide: about 26 GB",
        ),
        row("resident memory, peak", megabytes(full.peak), "MB"),
        row(
            "resident memory, empty cluster",
            megabytes(empty.resident),
            "MB",
        ),
        row(
            "memory of a node",
            each(with_nodes, empty, world.nodes),
            "bytes",
        ),
        row(
            "memory of a pod",
            each(full, with_nodes, world.pods),
            "bytes",
        ),
    ]
}
