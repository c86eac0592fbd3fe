//! Beside the real kube-scheduler: both bind equal pods in one world, one after the other; and in
//! that world the answers of the extender, with HTTP and JSON.
//!
//! ```text
//!   nodes -> pods that run -> for each shape, REPEATS times:
//!       create pods -> bare binder    -> delete
//!       create pods -> kube-scheduler -> delete
//!       create pods -> gpu-batch      -> delete
//!   -> the extender is asked about pods
//! ```
//!
//! All pods wait before a scheduler starts, and a rate counts from the first bind to the last: how
//! long lists take is measured elsewhere, and no scheduler waits for pods to be created. The shapes
//! are those of kube-scheduler's own benchmark, scheduler_perf.

mod binds;
mod filter;
mod shapes;

use super::cluster::Cluster;
use super::objects::{self, SCHEDULER, node_name, post_all};
use super::run::configuration;
use crate::kube::connection;
use crate::lab::bench::{Bound, Row, median};
use crate::live::Scheduler;
use binds::Binds;
use serde_json::json;
use shapes::Shape;

/// How large the world is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    /// Nodes, in three zones.
    pub nodes: usize,
    /// Pods that run, of another scheduler.
    pub running: usize,
    /// Pods of one shape that wait. At most one on a node, where the shape keeps them apart.
    pub waiting: usize,
}

/// The world that the documentation describes.
pub(crate) const BIG: World = World {
    nodes: 5_000,
    running: 50_000,
    waiting: 500,
};

const REPEATS: usize = 3;

/// The `schedulerName` of pods that kube-scheduler binds.
const PEER: &str = "default-scheduler";

/// By which factor gpu-batch is to be faster than kube-scheduler, unless the bare binder is slower.
const PLAIN_FACTOR: f64 = 2.0;
const RELATIONAL_FACTOR: f64 = 5.0;

/// What binds the pods.
#[derive(Debug, Clone, Copy)]
enum Binder {
    /// The bare binder, to one node after the other.
    Bare,
    KubeScheduler,
    GpuBatch,
}

/// The rates of one repetition, in pods a second.
#[derive(Debug, Clone, Copy)]
struct Rates {
    bare: f64,
    peer: f64,
    own: f64,
}

/// Measures on a local control plane.
///
/// # Errors
/// If there is no control plane, or the API server refuses something.
pub(crate) async fn measure(world: World) -> anyhow::Result<Vec<Row>> {
    let mut cluster = Cluster::with_kube_scheduler().await?;
    fill(&cluster, world).await?;
    let mut rows = Vec::new();
    for shape in Shape::ALL {
        let mut rates = Vec::new();
        for _ in 0..REPEATS {
            let measured = repetition(&mut cluster, world, shape).await?;
            tracing::info!("{}: {measured:?}", shape.name());
            rates.push(measured);
        }
        rows.extend(report(world, shape, &rates));
    }
    rows.extend(filter::measure(&cluster, world).await?);
    Ok(rows)
}

fn report(world: World, shape: Shape, rates: &[Rates]) -> [Row; 2] {
    let of = |rate: &dyn Fn(&Rates) -> f64| median(rates.iter().map(rate).collect());
    let World {
        nodes,
        running,
        waiting,
    } = world;
    let name = shape.name();
    let scenario = format!("{waiting} pods {name}, {nodes} nodes, {running} pods running");
    let factor = match shape {
        Shape::Plain => PLAIN_FACTOR,
        _ => RELATIONAL_FACTOR,
    };
    let least = |rates: &Rates| rates.own / (factor * rates.peer).min(rates.bare);
    [
        Row::new("rate of binds", &scenario, of(&|rates| rates.own), "pods/s")
            .beside(of(&|rates| rates.peer), "reference: kube-scheduler"),
        Row::new("rate over what it is to be", &scenario, of(&least), "x").against(
            Bound::AtLeast,
            1.0,
            match shape {
                Shape::Plain => "2 times kube-scheduler's, or the bare binder's",
                _ => "5 times kube-scheduler's, or the bare binder's",
            },
        ),
    ]
}

/// Creates the nodes and the pods that run.
async fn fill(cluster: &Cluster, world: World) -> anyhow::Result<()> {
    let node = |number| {
        let mut post = objects::node(number);
        let zone = format!("zone-{}", number % 3);
        post.body["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
        post
    };
    cluster.create_many(world.nodes, node).await?;
    let running = |number| {
        let mut post = objects::plain_pod(&format!("running-{number}"), 0);
        post.body["metadata"]["labels"] = json!({"app": "running"});
        post.body["spec"]["schedulerName"] = json!(PEER);
        post.body["spec"]["nodeName"] = json!(node_name(number % world.nodes));
        post
    };
    cluster.create_many(world.running, running).await
}

async fn repetition(cluster: &mut Cluster, world: World, shape: Shape) -> anyhow::Result<Rates> {
    Ok(Rates {
        bare: rate(cluster, world, shape, Binder::Bare).await?,
        peer: rate(cluster, world, shape, Binder::KubeScheduler).await?,
        own: rate(cluster, world, shape, Binder::GpuBatch).await?,
    })
}

/// Lets a binder bind the pods of a shape, which are there before it starts and gone afterwards.
/// Returns its rate, in pods a second.
async fn rate(
    cluster: &mut Cluster,
    world: World,
    shape: Shape,
    binder: Binder,
) -> anyhow::Result<f64> {
    let pods = world.waiting;
    let scheduler = match binder {
        Binder::KubeScheduler => PEER,
        Binder::Bare | Binder::GpuBatch => SCHEDULER,
    };
    let waiting = |number| shape.pod(&pod_name(number), number, scheduler);
    cluster.create_many(pods, waiting).await?;
    let binds = Binds::watch(&cluster.config)?;
    let rate = match binder {
        Binder::Bare => {
            let at_a_time = configuration()?.settings.in_flight.actions;
            let client = connection::client(&cluster.config)?;
            let binding = |number| objects::binding(&pod_name(number), number % world.nodes);
            post_all(&client, (0..pods).map(binding).collect(), at_a_time).await?;
            binds.rate(pods).await
        }
        Binder::KubeScheduler => {
            cluster.start_kube_scheduler()?;
            let rate = binds.rate(pods).await;
            cluster.stop_kube_scheduler();
            rate
        }
        Binder::GpuBatch => {
            let scheduler = Scheduler::start(&cluster.config, configuration()?).await?;
            let rate = binds.rate(pods).await;
            scheduler.stop().await?;
            rate
        }
    };
    cluster.delete_pods(shapes::SELECTOR).await?;
    rate
}

fn pod_name(number: usize) -> String {
    format!("waiting-{number}")
}
