//! One gang takes the whole cluster back from jobs of another queue: the time from its last pod to
//! its last bind, beside the time that the API server needs for as many evictions and binds alone.
//!
//! ```text
//!   for each repetition:
//!     jobs that run, a gang                       -> evict and bind without deciding -> delete
//!     jobs that run, the scheduler, then a gang   -> all its members are bound       -> delete
//! ```
//!
//! Evictions are not paced here; with the default pace of 20 a second the pace would be measured.
//! The pods have no time to end: no fake node holds them up.

use super::REPEATS;
use super::cluster::Cluster;
use super::objects::{self, NAMESPACE, Post, QUEUES, post_all};
use super::run::{Begun, Run, configuration, wait_a_moment};
use crate::kube::connection::{self, Named};
use crate::lab::bench::{Row, median};
use crate::live::Scheduler;
use gpu_batch_policies::settings::Evictions;
use serde_json::json;

/// How large the cluster is: nodes of 8 GPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    /// How many nodes there are.
    pub nodes: usize,
}

/// The world that the documentation describes.
pub(crate) const BIG: World = World { nodes: 500 };

const GPUS: u32 = 8;
const GANG: &str = "gang";
const LENDER: &str = "gpu-batch-bench-lender";
const BORROWER: &str = "gpu-batch-bench-borrower";

impl World {
    fn jobs(self) -> usize {
        self.nodes * GPUS as usize
    }
}

/// Measures on a local control plane, or on the user's cluster.
///
/// # Errors
/// If there is no cluster, or the API server refuses something.
pub(crate) async fn measure(world: World, named: Option<&Named>) -> anyhow::Result<Vec<Row>> {
    let cluster = Cluster::start(named, world.nodes).await?;
    let measured = runs(&cluster, world).await;
    for queue in [LENDER, BORROWER] {
        cluster.delete(&format!("{QUEUES}/{queue}")).await?;
    }
    cluster.remove().await?;
    let (bare, own): (Vec<Run>, Vec<Run>) = measured?.into_iter().unzip();
    let scenario = format!(
        "{} x 1 GPU for 1 x {} x {GPUS} GPUs",
        world.jobs(),
        world.nodes
    );
    let of = |runs: &[Run], part: fn(&Run) -> f64| median(runs.iter().map(part).collect());
    let row = |name, part| {
        Row::new(name, scenario.clone(), of(&own, part), "s").beside(
            of(&bare, part),
            "reference: the evictions and binds alone; KAI takes 694 s",
        )
    };
    let pairs = bare.iter().zip(&own);
    let factors = pairs.map(|(bare, own)| own.took / bare.took).collect();
    Ok(vec![
        row("time from last pod to last bind", |run| run.took),
        Row::new(
            "time over that of the requests alone",
            &scenario,
            median(factors),
            "x",
        ),
        row("processor time of API server and etcd", |run| {
            run.used.control_plane
        }),
        row("processor time of its own", |run| run.used.own),
    ])
}

async fn runs(cluster: &Cluster, world: World) -> anyhow::Result<Vec<(Run, Run)>> {
    let quotas = [(LENDER, world.jobs()), (BORROWER, 0)];
    cluster
        .create(quotas.map(|(name, gpus)| objects::queue(name, gpus)).into())
        .await?;
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        let pair = (
            requests_alone(cluster, world).await?,
            scheduled(cluster, world).await?,
        );
        tracing::info!("reclaim: {pair:?}");
        runs.push(pair);
    }
    Ok(runs)
}

async fn requests_alone(cluster: &Cluster, world: World) -> anyhow::Result<Run> {
    let at_a_time = configuration()?.settings.in_flight.actions;
    fill(cluster, world).await?;
    create_gang(cluster, world).await?;
    let evictions = (0..world.jobs()).map(|number| eviction(&job(number)));
    let binds = (0..world.nodes).map(|number| objects::binding(&member(number), number));
    let (evictions, binds) = (evictions.collect(), binds.collect());
    let begun = Begun::now();
    let client = connection::client(&cluster.config)?;
    post_all(&client, evictions, at_a_time).await?;
    post_all(&client, binds, at_a_time).await?;
    let run = begun.end();
    cluster.clear().await?;
    Ok(run)
}

async fn scheduled(cluster: &Cluster, world: World) -> anyhow::Result<Run> {
    fill(cluster, world).await?;
    let mut configuration = configuration()?;
    configuration.settings.evictions = Evictions {
        in_flight: configuration.settings.in_flight.actions,
        per_second: 100_000,
    };
    let scheduler = Scheduler::start(&cluster.config, configuration).await?;
    let run = until_bound(cluster, world, &scheduler).await;
    scheduler.stop().await?;
    cluster.clear().await?;
    run
}

async fn until_bound(
    cluster: &Cluster,
    world: World,
    scheduler: &Scheduler,
) -> anyhow::Result<Run> {
    let waits = Begun::now();
    while !scheduler.is_ready() {
        wait_a_moment(&waits, "the scheduler is not ready").await?;
    }
    create_gang(cluster, world).await?;
    let created = Begun::now();
    while scheduler.binds() < world.nodes as u64 {
        wait_a_moment(&created, "the gang has not started").await?;
    }
    Ok(created.end())
}

/// Fills the nodes with jobs of one GPU.
async fn fill(cluster: &Cluster, world: World) -> anyhow::Result<()> {
    let jobs = (0..world.jobs()).map(|number| {
        let mut pod = objects::plain_pod(&job(number), 1);
        pod.body["metadata"]["labels"]["gpu-batch.io/queue"] = json!(BORROWER);
        pod.body["spec"]["terminationGracePeriodSeconds"] = json!(0);
        pod
    });
    cluster.create(jobs.collect()).await?;
    let binding = |number| objects::binding(&job(number), number / GPUS as usize);
    cluster
        .create((0..world.jobs()).map(binding).collect())
        .await
}

async fn create_gang(cluster: &Cluster, world: World) -> anyhow::Result<()> {
    let mut group = objects::pod_group(GANG, world.nodes);
    group.body["spec"]["queue"] = json!(LENDER);
    cluster.create(vec![group]).await?;
    let members = (0..world.nodes).map(|number| {
        let mut pod = objects::plain_pod(&member(number), GPUS);
        pod.body["metadata"]["labels"]["gpu-batch.io/pod-group"] = json!(GANG);
        pod
    });
    cluster.create(members.collect()).await
}

fn job(number: usize) -> String {
    format!("job-{number}")
}

fn member(number: usize) -> String {
    format!("member-{number}")
}

fn eviction(name: &str) -> Post {
    Post {
        path: format!("{}/{name}/eviction", objects::pods_path()),
        body: json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": NAMESPACE, "name": name},
        }),
    }
}
